"""Tensors that are no ordinary ones: subclasses, other layouts, small floats. Understood, or refused in words."""

import pytest
import torch
from torch import Tensor, nn
from torch.masked import masked_tensor
from torch.nn.attention.bias import causal_lower_right

import regard as rg
from regard import masks, scores
from regard.errors import DtypeError

N, D = 20, 8

pytestmark = pytest.mark.filterwarnings("ignore")


def x():
    return torch.randn(1, 2, N, D)


class Marked(Tensor):
    pass


STRANGE = {
    "masked": (lambda: masked_tensor(x(), x() > 0), "it is a MaskedTensor"),
    "nested": (lambda: torch.nested.nested_tensor([x()[0], x()[0]]), "it is a nested tensor"),
    "jagged": (lambda: torch.nested.nested_tensor([*x()[0]], layout=torch.jagged), "it is a nested tensor"),
    "sparse": (lambda: x().to_sparse(), "its layout is torch.sparse_coo: make it dense"),
    "csr": (lambda: torch.rand(N, N).to_sparse_csr(), "its layout is torch.sparse_csr: make it dense"),
    "mkldnn": (lambda: x().to_mkldnn(), "its layout is torch._mkldnn: make it dense"),
    "causal bias": (lambda: causal_lower_right(N, N), "a CausalBias, which holds no numbers"),
    "float8": (lambda: x().to(torch.float8_e4m3fn), "its numbers are of torch.float8_e4m3fn"),
}


@pytest.mark.plain
@pytest.mark.parametrize("before", ["first", "after ordinary ones of the same shape"])
@pytest.mark.parametrize("what", list(STRANGE))
def test_tensors_that_are_no_numbers_are_refused_in_words(what, before):
    make, words = STRANGE[what]
    strange, plain = make(), x()
    if before != "first":
        rg.attend(plain, plain, plain)
        rg.attend(plain, plain, plain, plan="tiled")
    asked = [
        lambda: rg.attend(strange, strange, strange),
        lambda: rg.attend(strange, strange, strange, plan="tiled"),
        lambda: rg.Weights(strange, strange),
        lambda: scores.bias(strange),
        lambda: scores.general(strange),
        lambda: scores.gaussian(strange),
    ]
    if what != "float8":
        asked += [lambda: rg.attend(plain[0, 0], plain[0, 0], strange)]
    for ask in asked:
        with pytest.raises(DtypeError, match=f"must be an ordinary dense tensor, but .*{words}"):
            ask()


@pytest.mark.plain
def test_strange_tensors_of_masks_are_refused_in_words():
    visible = torch.rand(N, N) > 0.5
    for mask in (masks.allow, masks.hide):
        with pytest.raises(DtypeError, match=r"its layout is torch.sparse_coo: make it dense"):
            mask(visible.to_sparse())
        with pytest.raises(DtypeError, match="it is a MaskedTensor"):
            mask(masked_tensor(visible, visible))
    with pytest.raises(DtypeError, match=r"lengths.* its layout is torch.sparse_coo"):
        masks.padding(torch.ones(3, dtype=torch.int64).to_sparse())


def test_subclasses_without_a_meaning_of_their_own_are_ordinary_tensors():
    q = x()
    expected = rg.attend(q, q, q).output
    for one in (q.as_subclass(Marked), nn.Parameter(q), nn.Buffer(q)):
        output, weights = rg.attend(one, one, one)
        torch.testing.assert_close(output.detach().as_subclass(Tensor), expected)
        torch.testing.assert_close((weights @ q).detach().as_subclass(Tensor), expected)
