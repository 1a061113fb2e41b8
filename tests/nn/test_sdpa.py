"""regard's scaled_dot_product_attention in the place of torch's: the same answers, gradients, layouts and refusals."""

import gc
import inspect
import math
import weakref
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.attention.bias
from hypothesis import given
from hypothesis import strategies as st
from strategies import normal, seeded
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

import regard as rg
from regard.errors import MaskError, RegardError
from regard.nn.functional import scaled_dot_product_attention as ours

theirs = torch._C._nn.scaled_dot_product_attention
HIDDEN = -math.inf


def qkv(n=5, m=17, d=7, d_v=7, lead=(2, 3), dtype=torch.float64, seed=0):
    g = seeded(seed)
    shapes = (*lead, n, d), (*lead, m, d), (*lead, m, d_v)
    return [normal(g, *shape, dtype=dtype) for shape in shapes]


def learning(*tensors):
    return [t.detach().clone(memory_format=torch.preserve_format).requires_grad_() for t in tensors]


def close(a: Tensor, b: Tensor, tolerance: float = 1e-10) -> None:
    torch.testing.assert_close(a, b, atol=tolerance, rtol=tolerance)


# --- equal to torch, whatever is asked


def spread_out(t: Tensor) -> Tensor:
    return torch.stack([t, t.neg()], -1)[..., 0]


def heads_last(t: Tensor) -> Tensor:
    return t.transpose(-3, -2).contiguous().transpose(-3, -2) if t.dim() > 2 else t


def one_row_for_all(t: Tensor) -> Tensor:
    return t[..., :1, :].expand(t.shape)


LAYOUTS = {
    "as it is": lambda t: t,
    "transposed": lambda t: t.mT.contiguous().mT,
    "every other": spread_out,
    "heads last": heads_last,
    "expanded rows": one_row_for_all,
    "one number a row": lambda t: t[..., :1].expand(t.shape),
}

# Leading shapes of query, key and value, and whether heads are grouped.
LEADS = [
    ((), (), (), False),
    ((3,), (3,), (3,), False),
    ((3,), (), (1,), False),
    ((), (3,), (2, 1), False),
    ((2, 3), (2, 3), (2, 3), False),
    ((2, 3), (2, 1), (1, 3), False),
    ((2, 1), (2, 3), (2, 3), False),
    ((2, 3), (3,), (), False),
    ((3,), (2, 3), (5, 1, 1), False),
    ((2, 1, 3), (5, 3), (5, 3), False),
    ((1, 2, 3), (1, 2, 3), (1, 2, 3), False),
    ((2, 6), (2, 3), (2, 3), True),
    ((2, 6), (2, 3), (2, 2), True),
    ((2, 6), (1, 1), (3,), True),
    ((6,), (3,), (2,), True),
    ((6,), (2, 3), (2, 6), True),
    ((5, 2, 6), (5, 2, 3), (5, 2, 3), True),
]


class Case(NamedTuple):
    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None
    options: dict[str, object]
    recipe: str

    def __repr__(self) -> str:
        return self.recipe


def make_mask(kind: str, full: tuple[int, ...], ones: list[bool], g: torch.Generator) -> Tensor | None:
    """Of the last len(ones) dimensions of the scores, those marked are 1."""
    tail = full[len(full) - len(ones) :]
    shape = [1 if one else length for one, length in zip(ones, tail, strict=True)]
    if kind == "none":
        return None
    if kind == "bool":
        return torch.rand(shape, generator=g) < 0.5
    mask = normal(g, *shape)
    if kind == "holes":
        return mask.masked_fill(torch.rand(shape, generator=g) < 0.4, HIDDEN)
    return mask.requires_grad_(kind == "learned")


@st.composite
def cases(draw: st.DrawFn) -> Case:
    q_lead, k_lead, v_lead, grouped = draw(st.sampled_from(LEADS))
    n, m, d, d_v = draw(st.permutations([5, 7, 11, 17, 19]))[:4]
    d_v = draw(st.sampled_from([d, d_v]))
    seed = draw(st.integers(0, 2**31))
    g = seeded(seed)
    layouts = [draw(st.sampled_from(sorted(LAYOUTS))) for _ in range(3)]
    shapes = (*q_lead, n, d), (*k_lead, m, d), (*v_lead, m, d_v)
    q, k, v = (LAYOUTS[layout](normal(g, *shape)) for layout, shape in zip(layouts, shapes, strict=True))
    lead = torch.broadcast_shapes(q_lead, (*k_lead[:-1], q_lead[-1]) if grouped else k_lead)
    kind = draw(st.sampled_from(["none", "bool", "numbers", "holes", "learned"]))
    ones = draw(st.lists(st.booleans(), max_size=len(lead) + 2))
    options: dict[str, object] = {"enable_gqa": grouped, "scale": draw(st.sampled_from([None, 0.3, 0.0, -0.7, 2]))}
    if kind == "none":
        options["is_causal"] = draw(st.booleans())
    mask = make_mask(kind, (*lead, n, m), ones, g)
    return Case(q, k, v, mask, options, f"{shapes} {layouts} {kind} {ones} {options} seed {seed}")


def answer(function, case: Case, *, mask: Tensor | None):
    """The output, and its gradients by everything that learns."""
    tensors = learning(case.q, case.k, case.v)
    output = function(*tensors, mask, **case.options)
    wanted = tensors if mask is None or not mask.requires_grad else [*tensors, mask]
    towards = normal(seeded(1), *output.shape, dtype=output.dtype)
    return output, torch.autograd.grad(output, wanted, towards)


@given(cases())
def test_answers_and_gradients_are_those_of_torch(case):
    def torchs(q, k, v, mask, **options):  # its kernel takes masks of two dimensions and more, its plain formula any
        return theirs(q, k, v, mask if mask is None or mask.dim() > 1 else mask.reshape(1, -1), **options)

    output, gradients = answer(ours, case, mask=case.mask)
    expected, expected_gradients = answer(torchs, case, mask=case.mask)
    close(output, expected)
    assert output.dtype == expected.dtype and output.requires_grad
    for found, wanted in zip(gradients, expected_gradients, strict=True):
        close(found, wanted)


@given(cases())
def test_without_gradients_the_answer_is_the_same(case):
    mask = None if case.mask is None else case.mask.detach()
    with torch.no_grad():
        output = ours(case.q, case.k, case.v, mask, **case.options)
    close(output, answer(ours, case, mask=mask)[0].detach())
    assert not output.requires_grad


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("mask", [None, torch.bool, torch.float32, "own"], ids=str)
def test_other_dtypes_are_rounded_once(dtype, mask):
    q, k, v = qkv(dtype=dtype)
    if mask is not None:
        mask = (
            torch.rand(5, 17) < 0.5 if mask == torch.bool else torch.randn(5, 17).to(dtype if mask == "own" else mask)
        )
    output = ours(q, k, v, mask)
    wide = mask if mask is None or mask.dtype == torch.bool else mask.double()
    exact = theirs(q.double(), k.double(), v.double(), wide)
    assert output.dtype == dtype
    close(output, exact.to(dtype), 1e-5 if dtype == torch.float32 else 2 * torch.finfo(dtype).eps)


def test_a_float32_mask_is_added_to_float64():
    q, k, v = qkv()
    mask = torch.randn(5, 17)
    close(ours(q, k, v, mask), theirs(q, k, v, mask.double()))


@pytest.mark.parametrize("m", [3, 11, 17])
@pytest.mark.parametrize("n", [3, 13, 23])
def test_causal_is_aligned_at_the_top_left(n, m):
    q, k, v = qkv(n, m)
    seen = torch.ones(n, m, dtype=torch.bool).tril()
    close(ours(q, k, v, is_causal=True), theirs(q, k, v, seen))


@pytest.mark.parametrize("scale", [3, True, np.float32(0.5), np.int64(2), torch.tensor(0.3), math.nan, math.inf])
@pytest.mark.plain
def test_any_number_is_a_scale(scale):
    q, k, v = qkv()
    torch.testing.assert_close(ours(q, k, v, scale=scale), theirs(q, k, v, scale=scale), equal_nan=True)


@pytest.mark.parametrize("scale", [0, -1.5])
@pytest.mark.parametrize("m", [11, 17])
def test_causal_at_a_scale_that_is_not_positive(scale, m):
    """There torch's kernel gives NaN."""
    q, k, v = qkv(5, m)
    seen = torch.ones(5, m, dtype=torch.bool).tril()
    close(ours(q, k, v, is_causal=True, scale=scale), theirs(q, k, v, seen, scale=scale))
    assert theirs(q, k, v, is_causal=True, scale=scale).isnan().any()  # the trap is there


ZERO_SIZES = [
    ((2, 3, 0, 7), (2, 3, 17, 7), (2, 3, 17, 7)),
    ((2, 3, 5, 7), (2, 3, 0, 7), (2, 3, 0, 7)),
    ((2, 3, 0, 7), (2, 3, 0, 7), (2, 3, 0, 7)),
    ((2, 3, 5, 0), (2, 3, 17, 0), (2, 3, 17, 0)),
    ((2, 3, 5, 0), (2, 3, 17, 0), (2, 3, 17, 4)),
    ((2, 3, 5, 7), (2, 3, 17, 7), (2, 3, 17, 0)),
    ((0, 3, 5, 7), (0, 3, 17, 7), (0, 3, 17, 7)),
    ((2, 0, 5, 7), (2, 0, 17, 7), (2, 0, 17, 7)),
    ((2, 0, 5, 7), (2, 1, 17, 7), (2, 1, 17, 7)),
    ((0, 7), (17, 7), (17, 7)),
    ((5, 7), (0, 7), (0, 3)),
    ((3, 5, 7), (3, 0, 7), (3, 0, 7)),
]


@pytest.mark.parametrize("shapes", ZERO_SIZES, ids=str)
@pytest.mark.parametrize(
    "options",
    [{}, {"is_causal": True}, {"dropout_p": 0.5}, {"scale": 0.3}, {"mask": "bool"}, {"mask": "float"}],
    ids=str,
)
def test_axes_of_length_zero_give_the_shapes_of_torch(shapes, options):
    options = dict(options)
    tensors = learning(*(normal(seeded(0), *shape) for shape in shapes))
    if "mask" in options:
        mask = torch.ones(shapes[0][-2], shapes[1][-2], dtype=torch.bool)
        options["attn_mask"] = mask if options.pop("mask") == "bool" else mask.double()
    output, expected = ours(*tensors, **options), theirs(*tensors, **options)
    assert output.shape == expected.shape and output.requires_grad == expected.requires_grad
    if not options.get("dropout_p"):
        close(output, expected.nan_to_num(0.0))
    found = torch.autograd.grad(output.sum(), tensors)
    assert [(g.shape, bool(g.isfinite().all())) for g in found] == [(t.shape, True) for t in tensors]


# --- where regard does better, and says so


@pytest.mark.parametrize("m", [11, 17])
@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("lead", [(), (3,), (2, 3)], ids=str)
def test_a_row_that_sees_nothing_is_zero(lead, kind, m):
    q, k, v = learning(*qkv(m=m, lead=lead))
    seen = torch.ones(5, m, dtype=torch.bool)
    seen[2] = False
    mask = seen if kind == "bool" else torch.zeros(5, m, dtype=torch.float64).masked_fill(~seen, HIDDEN)
    output = ours(q, k, v, mask)
    assert not output[..., 2, :].any() and output[..., 3, :].all()
    for gradient in torch.autograd.grad(output.sum(), (q, k, v)):
        assert gradient.isfinite().all()


def hiding(kind: str, n: int, m: int):
    """Options under which the last key is hidden from every query."""
    seen = torch.ones(1, m, dtype=torch.bool)
    seen[:, -1] = False
    if kind == "causal":
        return None, {"is_causal": True}
    if kind == "bool":
        return seen, {}
    numbers = torch.zeros(1, m, dtype=torch.float64).masked_fill(~seen, HIDDEN)
    return numbers.expand(n, m) if kind == "float" else numbers, {}


@pytest.mark.parametrize("how", ["eager", "vmap", "compile"])
@pytest.mark.parametrize("kind", ["causal", "bool", "float", "float by key"])
@pytest.mark.parametrize("m", [pytest.param(11, marks=pytest.mark.long), 17])
@pytest.mark.plain
def test_nan_that_is_hidden_stays_hidden(m, kind, how):
    q, k, v = learning(*qkv(m=m))
    mask, options = hiding(kind, 5, m)
    clean = ours(q, k, v, mask, **options)
    towards = torch.randn_like(clean)
    wanted = torch.autograd.grad(clean, (q, k, v), towards)
    with torch.no_grad():
        k[..., -1, :], v[..., -1, :] = math.nan, math.inf
    call = lambda q, k, v: ours(q, k, v, mask, **options)  # noqa: E731
    torch.compiler.reset()
    ways = {
        "eager": lambda f: f,
        "vmap": torch.vmap,
        "compile": lambda f: torch.compile(f, fullgraph=True, backend="aot_eager"),
    }
    output = ways[how](call)(q, k, v)
    close(output, clean)
    for found, exact in zip(torch.autograd.grad(output, (q, k, v), towards), wanted, strict=True):
        close(found[..., :-1, :], exact[..., :-1, :])
        assert found.isfinite().all()


@pytest.mark.parametrize("m", [3, 17])
def test_nan_that_is_seen_shows(m):
    q, k, v = qkv(m=m)
    q[0, 0, 1] = math.nan
    output = ours(q, k, v)
    assert output[0, 0, 1].isnan().all() and output[1].isfinite().all()


# --- dropout


def test_dropout_keeps_or_drops_each_weight():
    q, k = torch.randn(2, 3, 5000, 7), torch.randn(2, 3, 1, 7)
    output = ours(q, k, torch.ones(2, 3, 1, 1), dropout_p=0.3)
    assert output.unique().tolist() == [0.0, pytest.approx(1 / 0.7)]
    kept = (output > 0).double().mean().item()
    assert abs(kept - 0.7) < 5 * math.sqrt(0.3 * 0.7 / 30000)


def test_dropout_follows_the_seed_and_needs_no_training_mode():
    q, k, v = qkv()
    one, two = (torch.manual_seed(seed) and ours(q, k, v, dropout_p=0.5) for seed in (3, 4))
    torch.manual_seed(3)
    close(ours(q, k, v, dropout_p=0.5), one)
    assert not torch.allclose(one, two)


@pytest.mark.parametrize("m", [11, 17])
@pytest.mark.parametrize("p", [1, 1.0, True])
def test_a_dropout_of_one_gives_zeros(p, m):
    q, k, v = learning(*qkv(m=m, d_v=5))
    output = ours(q, k, v, dropout_p=p)
    assert output.shape == (2, 3, 5, 5) and not output.any()
    assert not any(g.any() for g in torch.autograd.grad(output.sum(), (q, k, v)))


def test_a_checkpoint_drops_the_same_again():
    q, k, v = learning(*qkv())

    def gradients(wrapped):
        torch.manual_seed(5)
        return torch.autograd.grad(wrapped(q, k, v).sin().sum(), (q, k, v))

    drop = lambda *x: ours(*x, dropout_p=0.4)  # noqa: E731
    for a, b in zip(gradients(drop), gradients(lambda *x: checkpoint(drop, *x, use_reentrant=False)), strict=True):
        close(a, b)


# --- derivatives


def second_derivatives(function, tensors, mask=None, **options):
    tensors = learning(*tensors)
    if mask is not None and mask.requires_grad:
        tensors += learning(mask)
        mask = tensors[-1]
    output = function(*tensors[:3], mask, **options)
    first = torch.autograd.grad((output**3).sum(), tensors, create_graph=True)
    return torch.autograd.grad(sum(g.square().sum() for g in first), tensors)


TWICE = {
    "two dimensions": (qkv(lead=()), {}),
    "three dimensions, causal": (qkv(lead=(3,)), {"is_causal": True}),
    "wide values": (qkv(d_v=11), {}),
    "few keys": (qkv(m=11, lead=(3,)), {}),
    "a mask": (qkv(lead=(3,)), {"mask": torch.rand(5, 17) < 0.7}),
    "a bias": (qkv(lead=(3,)), {"mask": torch.randn(5, 17, dtype=torch.float64)}),
    "a learned bias": (qkv(), {"mask": torch.randn(5, 17, dtype=torch.float64, requires_grad=True)}),
    "a learned bias of keys": (qkv(), {"mask": torch.randn(1, 17, dtype=torch.float64, requires_grad=True)}),
    "heads that broadcast": ([qkv(lead=(2, 1))[0], *qkv(lead=(2, 3))[1:]], {}),
    "grouped heads": ([qkv(lead=(6,))[0], *qkv(lead=(3,))[1:]], {"enable_gqa": True}),
    "scaled": (qkv(lead=(3,)), {"scale": -0.3}),
}


@pytest.mark.parametrize("name", TWICE)
def test_second_derivatives_exist_where_torch_has_them(name):
    tensors, options = TWICE[name]
    for found, wanted in zip(
        second_derivatives(ours, tensors, **options), second_derivatives(theirs, tensors, **options), strict=True
    ):
        close(found, wanted, 1e-8)


def test_second_derivatives_are_asked_for_as_of_torch():
    with sdpa_kernel(SDPBackend.MATH):
        for found, wanted in zip(second_derivatives(ours, qkv()), second_derivatives(theirs, qkv()), strict=True):
            close(found, wanted, 1e-8)


@pytest.mark.parametrize("function", [theirs, ours])
def test_the_kernel_has_no_second_derivative_elsewhere(function):
    with pytest.raises(RuntimeError):
        second_derivatives(function, qkv())


def test_gradients_of_everything_by_finite_differences():
    q, k, v = learning(*qkv(n=3, d=2, d_v=3, lead=(2,)))
    mask = torch.randn(3, 17, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(ours, (q, k, v, mask))
    assert torch.autograd.gradgradcheck(lambda *x: ours(*x, is_causal=True), (q, k, v))


@pytest.mark.parametrize("lead", [(3,), (2, 3)], ids=str)
def test_a_graph_is_gone_after_its_backward_pass(lead):
    held = weakref.WeakSet()

    class Box:
        def __init__(self, tensor):
            self.tensor = tensor.detach()
            held.add(self)

    q, k, v = learning(*qkv(lead=lead))
    with saved_tensors_hooks(Box, lambda box: box.tensor):
        output = ours(q, k, v)
    output.sum().backward(retain_graph=True)
    assert held
    output.sum().backward()
    gc.collect()
    assert not held
    with pytest.raises(RuntimeError, match="second time"):
        output.sum().backward()


@pytest.mark.parametrize("is_causal", [False, True])
def test_forward_derivatives_exist_where_torch_has_them(is_causal):
    q, k, v = qkv(lead=(3,))
    call = lambda function: lambda q: function(q, k, v, is_causal=is_causal)  # noqa: E731
    for found, wanted in zip(
        torch.func.jvp(call(ours), (q,), (k[:, :5],)), torch.func.jvp(call(theirs), (q,), (k[:, :5],)), strict=True
    ):
        close(found, wanted)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(q, k[:, :5])
        close(*(forward_ad.unpack_dual(call(function)(dual)).tangent for function in (ours, theirs)))


# --- the same mistakes


def t(*shape, dtype=torch.float32):
    return torch.ones(shape).to(dtype)


Q, K, V = t(2, 3, 5, 7), t(2, 3, 17, 7), t(2, 3, 17, 7)
MISTAKES = {
    "query is None": ((None, K, V), {}),
    "key is a list": ((Q, [[1.0]], V), {}),
    "value is an array": ((Q, K, V.numpy()), {}),
    "mask is a list": ((Q, K, V, [[True]]), {}),
    "mask is a bool": ((Q, K, V, True), {}),
    "integers": ((Q.long(), K.long(), V.long()), {}),
    "booleans": ((Q.bool(), K.bool(), V.bool()), {}),
    "complex numbers": ((Q.cfloat(), K.cfloat(), V.cfloat()), {}),
    "eight bits": (tuple(x.to(torch.float8_e4m3fn) for x in (Q, K, V)), {}),
    "query of another dtype": ((Q.double(), K, V), {}),
    "key of another dtype": ((Q, K.half(), V), {}),
    "value of another dtype": ((Q, K, V.long()), {}),
    "query elsewhere": ((Q.to("meta"), K, V), {}),
    "value elsewhere": ((Q, K, V.to("meta")), {}),
    "a mask of integers": ((Q, K, V, t(5, 17).long()), {}),
    "a mask of bytes": ((Q, K, V, t(5, 17).byte()), {}),
    "a mask of float64": ((Q, K, V, t(5, 17).double()), {}),
    "a mask of float16": ((Q, K, V, t(5, 17).half()), {}),
    "a mask of bfloat16 beside float16": ((Q.half(), K.half(), V.half(), t(5, 17).bfloat16()), {}),
    "one dimension": ((t(7), K, V), {}),
    "one dimension everywhere": ((t(7), t(7), t(7)), {}),
    "no dimension": ((t(), t(), t()), {}),
    "values of one dimension": ((t(5, 7), t(17, 7), t(17)), {}),
    "widths differ": ((Q, t(2, 3, 17, 11), t(2, 3, 17, 11)), {}),
    "widths differ, two dimensions": ((t(5, 7), t(17, 11), t(17, 7)), {}),
    "lengths differ": ((t(5, 7), t(17, 7), t(19, 7)), {}),
    "batches differ": ((Q, t(3, 3, 17, 7), V), {}),
    "batches of values differ": ((Q, K, t(5, 3, 17, 7)), {}),
    "heads differ": ((t(2, 5, 5, 7), K, V), {}),
    "heads are a multiple but not grouped": ((t(2, 6, 5, 7), K, V), {}),
    "heads differ in three dimensions": ((t(6, 5, 7), t(3, 17, 7), t(3, 17, 7)), {}),
    "grouped, no multiple": ((t(2, 5, 5, 7), K, V), {"enable_gqa": True}),
    "grouped, values no multiple": ((t(2, 6, 5, 7), K, t(2, 5, 17, 7)), {"enable_gqa": True}),
    "grouped the wrong way": ((t(2, 3, 5, 7), t(2, 6, 17, 7), t(2, 6, 17, 7)), {"enable_gqa": True}),
    "grouped without heads": ((t(5, 7), t(17, 7), t(17, 7)), {"enable_gqa": True}),
    "grouped, keys without heads": ((t(6, 5, 7), t(17, 7), t(17, 7)), {"enable_gqa": True}),
    "a mask for other keys": ((Q, K, V, t(5, 19).bool()), {}),
    "a mask for other queries": ((Q, K, V, t(7, 17)), {}),
    "a mask for other heads": ((Q, K, V, t(2, 5, 17)), {}),
    "a mask for another batch": ((Q, K, V, t(5, 1, 5, 17)), {}),
    "a mask of one dimension for other keys": ((Q, K, V, t(5)), {}),
    "a mask of one dimension and causal": ((Q, K, V, t(5).bool()), {"is_causal": True}),
    "a mask with too many dimensions": ((Q, K, V, t(1, 2, 3, 5, 17)), {}),
    "a mask for the groups": ((t(2, 6, 5, 7), K, V, t(2, 3, 5, 17)), {"enable_gqa": True}),
    "dropout above 1": ((Q, K, V), {"dropout_p": 1.1}),
    "dropout below 0": ((Q, K, V), {"dropout_p": -0.1}),
    "dropout nan": ((Q, K, V), {"dropout_p": math.nan}),
    "dropout in words": ((Q, K, V), {"dropout_p": "0.1"}),
    "dropout None": ((Q, K, V), {"dropout_p": None}),
    "scale in words": ((Q, K, V), {"scale": "1"}),
    "a complex scale": ((Q, K, V), {"scale": 1j}),
    "a scale that learns": ((Q, K, V), {"scale": torch.tensor(0.3, requires_grad=True)}),
    "a scale for each head": ((Q, K, V), {"scale": t(3)}),
    "causal as a number": ((Q, K, V), {"is_causal": 1}),
    "causal as a tensor": ((Q, K, V), {"is_causal": torch.tensor(True)}),
    "causal None": ((Q, K, V), {"is_causal": None}),
    "grouped as a number": ((Q, K, V), {"enable_gqa": 0}),
    "causal and a mask that learns": ((Q, K, V, t(5, 17).requires_grad_()), {"is_causal": True}),
    "causal and a mask in three dimensions": ((Q[0], K[0], V[0], t(5, 17).bool()), {"is_causal": True}),
    "causal and a mask, wide values": ((Q, K, t(2, 3, 17, 11), t(5, 17)), {"is_causal": True}),
    "causal and a mask and dropout": ((Q, K, V, t(5, 17)), {"is_causal": True, "dropout_p": 0.1}),
}


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.plain
def test_mistakes_are_refused_as_torch_refuses_them(name):
    arguments, options = MISTAKES[name]
    with pytest.raises(Exception) as expected:
        theirs(*arguments, **options)
    with pytest.raises(type(expected.value)) as caught:
        ours(*arguments, **options)
    assert isinstance(caught.value, RegardError) or "elsewhere" in name  # what has no numbers is handed to torch


@pytest.mark.parametrize(
    ("arguments", "options"),
    [((Q, K, t(2, 3, 19, 7)), {}), ((Q, K[:, :0], V[:, :0]), {}), ((Q[0], K[0], V[0]), {"dropout_p": -0.1})],
    ids=["lengths", "no heads", "dropout"],
)
def test_mistakes_that_torch_overlooks_are_refused(arguments, options):
    theirs(*arguments, **options)
    with pytest.raises(RegardError) as caught:
        ours(*arguments, **options)
    assert isinstance(caught.value, RuntimeError)


def test_a_message_says_what_was_given_and_what_would_be_right():
    with pytest.raises(RuntimeError, match=r"attn_mask.*\(2, 3, 5, 17\).*\(5, 19\)"):
        ours(Q, K, V, t(5, 19))
    with pytest.raises(RuntimeError, match=r"query has 5, key has 3"):
        ours(t(2, 5, 5, 7), K, V, enable_gqa=True)


@pytest.mark.parametrize("wrong", [(Q, K), (Q, K, V, None, 0.0, False, 0.3)], ids=["too few", "too many"])
@pytest.mark.parametrize("function", [theirs, ours])
@pytest.mark.plain
def test_arguments_are_counted_as_torch_counts_them(function, wrong):
    with pytest.raises(TypeError):
        function(*wrong)
    with pytest.raises(TypeError):
        function(Q, K, V, need_weights=True)


@pytest.mark.plain
def test_the_signature_is_that_of_torch():
    # torch's is in the first lines of its help alone
    promised = torch.nn.functional.scaled_dot_product_attention.__doc__.split("->")[0].split("(", 1)[1]
    written = [part.strip(" \n)") for part in promised.split(",")]
    parameters = inspect.signature(ours).parameters.values()
    assert [p.name if p.default is p.empty else f"{p.name}={p.default}" for p in parameters] == written


@pytest.mark.parametrize("mask", [t(5, 17).bool().triu(), t(5, 17)], ids=["bool", "float"])
def test_a_mask_beside_causal_hides_as_well_where_torch_takes_both(mask):
    q, k, v = qkv(dtype=torch.float32)
    close(ours(q, k, v, mask, is_causal=True), theirs(q, k, v, mask, is_causal=True), 1e-6)


# --- modes and kinds of tensors


@pytest.mark.parametrize(
    ("is_compiled", "dtype", "mask"),
    [
        *product([False], [torch.bfloat16, torch.float16], [None, torch.bool, torch.float32, torch.float16]),
        *product([True], [torch.bfloat16], [None, torch.float32]),
    ],
    ids=str,
)
@pytest.mark.plain
def test_autocast_decides_the_dtype(is_compiled, mask, dtype):
    q, k, v = learning(*qkv(dtype=torch.float32))
    mask = None if mask is None else torch.ones(5, 17).to(mask)
    torch.compiler.reset()
    call = torch.compile(ours, fullgraph=True, backend="aot_eager") if is_compiled else ours
    with torch.autocast("cpu", dtype):
        output, expected = call(q, k, v, mask), theirs(q, k, v, mask)
        mixed = call(q, k.to(dtype), v, mask)
    assert output.dtype == expected.dtype == mixed.dtype == dtype
    close(output, expected, 0.02)
    output.float().sum().backward()
    assert q.grad is not None and q.grad.dtype == torch.float32


def test_autocast_leaves_float64_and_other_devices_alone():
    q, k, v = qkv()
    with torch.autocast("cpu", torch.bfloat16):
        close(ours(q, k, v), theirs(q, k, v))
        with pytest.raises(RuntimeError):
            ours(q, k.float(), v)
    with torch.autocast("cuda", torch.float16):
        assert ours(q.float(), k.float(), v.float()).dtype == torch.float32


def test_inference_mode_and_no_grad():
    q, k, v = learning(*qkv())
    expected = theirs(q, k, v)
    with torch.no_grad():
        assert not ours(q, k, v).requires_grad
    with torch.inference_mode():
        output = ours(q, k, v)
    assert output.is_inference()
    close(output.clone(), expected.detach())


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("m", [0, 11, 17])
def test_whatever_learns_makes_the_output_learn(m, which):
    tensors = [*qkv(m=m), torch.zeros(5, m, dtype=torch.float64)]
    assert not ours(*tensors).requires_grad
    tensors[which].requires_grad_()
    assert ours(*tensors).requires_grad
    assert theirs(*tensors).requires_grad or (m, which) == (0, 3)


MASKED = [(None, (2, 3)), ("bool", (3,)), ("float", (2, 3)), ("learned", (3,))]
OPTIONS = [{}, {"is_causal": True}, {"scale": 0.3}, {"enable_gqa": True}, {"dropout_p": 1.0}]
# A mask beside is_causal is left out: torch documents it as an error.
COMPILED = [(mask, lead, o) for (mask, lead), o in product(MASKED, OPTIONS) if not (mask and "is_causal" in o)]
COMPILED = [  # each takes seconds: a mask and an option together are for the long run
    pytest.param(*one, marks=pytest.mark.long) if one[0] and one[2] else one for one in COMPILED
]


@pytest.mark.parametrize(("mask", "lead", "options"), COMPILED, ids=str)
@pytest.mark.plain
def test_compiled_in_one_graph_equals_eager(mask, lead, options):
    q, k, v = qkv(lead=lead)
    q = torch.cat([q, q + 1], -3) if options.get("enable_gqa") else q
    tensors = [q, k, v]
    if mask:
        tensors.append(torch.rand(5, 17) < 0.6 if mask == "bool" else torch.randn(5, 17, dtype=torch.float64))
    last = 4 if mask == "learned" else 3
    torch.compiler.reset()
    compiled = torch.compile(lambda *x: ours(*x, **options), fullgraph=True, backend="aot_eager")

    def answers(function):
        given = [*learning(*tensors[:last]), *tensors[last:]]
        output = function(*given)
        return [output, *torch.autograd.grad(output.sin().sum(), given[:last])]

    for found, wanted in zip(answers(compiled), answers(lambda *x: theirs(*x, **options)), strict=True):
        close(found, wanted)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}], ids=str)
@pytest.mark.parametrize("lead", [(5,), (5, 3), (5, 2, 3)], ids=str)
def test_vmap_equals_a_batch(lead, options):
    q, k, v = qkv(lead=lead)
    close(torch.vmap(lambda *x: ours(*x, **options))(q, k, v), theirs(q, k, v, **options))
    shared = torch.vmap(lambda q: ours(q, k[0], v[0], **options))(q)
    close(shared, theirs(q, k[0].expand_as(k), v[0].expand_as(v), **options))
    gradient = torch.func.grad(lambda q, k, v: ours(q, k, v, **options).sin().sum())
    (q_learns,) = learning(q)
    theirs(q_learns, k, v, **options).sin().sum().backward()
    close(torch.vmap(gradient)(q, k, v), q_learns.grad)


def test_vmap_over_masks_equals_a_batch_of_masks():
    q, k, v = qkv(lead=(5, 3))
    seen = torch.rand(5, 5, 17) < 0.6
    close(torch.vmap(ours)(q, k, v, seen), theirs(q, k, v, seen[:, None]))
    numbers = torch.randn(5, 17, dtype=torch.float64)
    close(torch.vmap(ours)(q, k, v, numbers), theirs(q, k, v, numbers[:, None, None]))


def test_vmap_must_be_told_how_to_draw():
    q, k, v = qkv(lead=(5, 3))
    drop = lambda *x: ours(*x, dropout_p=0.5)  # noqa: E731
    with pytest.raises(RuntimeError, match="randomness"):
        torch.vmap(drop)(q, k, v)
    assert torch.vmap(drop, randomness="different")(q, k, v).shape == q.shape


class Marked(torch.Tensor):
    pass


class Stranger:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func, kwargs


@pytest.mark.plain
def test_tensors_of_other_classes():
    q, k, v = qkv()
    expected = theirs(q, k, v)
    marked = ours(q.as_subclass(Marked), k, v)
    assert type(marked) is Marked
    close(marked.as_subclass(Tensor), expected)
    masked = ours(q, k, v, torch.ones(5, 17, dtype=torch.bool).as_subclass(Marked))
    assert type(masked) is Tensor, "a mask does not decide what comes out"
    close(masked, expected)
    learned = ours(nn.Parameter(q), nn.Parameter(k), nn.Parameter(v))
    assert type(learned) is Tensor and learned.requires_grad
    close(learned.detach(), expected)
    function, options = ours(q, Stranger(), v, is_causal=True)
    assert function is ours and options["is_causal"]


def test_nested_and_meta_tensors_are_handed_to_torch():
    ragged = torch.nested.nested_tensor([torch.randn(5, 3, 7), torch.randn(4, 3, 7)], layout=torch.jagged).transpose(
        1, 2
    )
    close(ours(ragged, ragged, ragged).values(), theirs_nested(ragged).values(), 1e-6)
    nowhere = [x.to("meta") for x in qkv()]
    assert ours(*nowhere, is_causal=True).shape == (2, 3, 5, 7)


def theirs_nested(x):
    return torch.nn.functional.scaled_dot_product_attention(x, x, x)


def test_inputs_are_left_as_they_are():
    q, k, v = qkv()
    mask = torch.randn(5, 17, dtype=torch.float64)
    copies = [x.clone() for x in (q, k, v, mask)]
    ours(q, k, v, mask, scale=math.inf)
    ours(q, k, v, mask, dropout_p=0.5)
    assert all(torch.equal(a, b) for a, b in zip((q, k, v, mask), copies, strict=True))


@pytest.mark.parametrize("d", [7, 16])
@pytest.mark.parametrize("layout", ["as it is", "heads last", "transposed"])
@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (2, 3, 5)], ids=str)
def test_the_output_lies_in_memory_as_torch_lays_it(lead, layout, d):
    q, k, v = (LAYOUTS[layout](x) for x in qkv(n=17, d=d, d_v=d, lead=lead))
    for options in ({}, {"is_causal": True}, {"attn_mask": torch.ones(17, 17, dtype=torch.bool)}):
        assert ours(q, k, v, **options).stride() == theirs(q, k, v, **options).stride()


# --- in its place


class Block(nn.Module):
    """A decoder block as people write it: fused projection, grouped heads, and a view of what comes out."""

    def __init__(self, width=24, heads=6, kv_heads=2):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.project = nn.Linear(width, (heads + 2 * kv_heads) * self.size)
        self.out = nn.Linear(width, width)
        self.feed = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x, mask=None):
        batch, n, _ = x.shape
        parts = self.project(x).view(batch, n, -1, self.size).transpose(1, 2)
        q, k, v = parts.split([self.heads, self.kv_heads, self.kv_heads], 1)
        y = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=True
        )
        x = x + self.out(y.transpose(1, 2).reshape(batch, n, -1))
        return x + self.feed(x)


class Counted:
    def __init__(self):
        self.calls = 0

    def __call__(self, *arguments, **options):
        self.calls += 1
        return ours(*arguments, **options)


def run(model, *arguments, **options):
    model.zero_grad()
    output = model(*arguments, **options)
    output = output[0] if isinstance(output, tuple) else output
    output.square().mean().backward()
    return [output.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)]


def swapped_agrees(monkeypatch, model, *arguments, **options):
    """The model's output and gradients do not tell which of the two functions is in torch.nn.functional."""
    expected = run(model, *arguments, **options)
    counted = Counted()
    with monkeypatch.context() as patch:
        patch.setattr(torch.nn.functional, "scaled_dot_product_attention", counted)
        found = run(model, *arguments, **options)
    assert counted.calls > 0 and len(found) > 1
    for a, b in zip(found, expected, strict=True):
        close(a, b)


@pytest.mark.parametrize("n", [11, 19])
@pytest.mark.parametrize("masked", [False, True])
def test_a_transformer_computes_the_same_with_this_function(monkeypatch, masked, n):
    model = nn.Sequential(Block(), Block()).double() if not masked else Block().double()
    x = torch.randn(2, n, 24, dtype=torch.float64)
    mask = [torch.ones(2, 1, n, n, dtype=torch.bool).tril(1)] if masked else []
    swapped_agrees(monkeypatch, model, x, *mask)


@pytest.mark.parametrize("case", ["plain", "padded", "masked", "causal", "both", "unbatched", "more keys"])
def test_torch_multihead_attention_computes_the_same_with_this_function(monkeypatch, case):
    n = 19
    options = {"add_bias_kv": True, "add_zero_attn": True} if case == "more keys" else {}
    layer = nn.MultiheadAttention(24, 3, batch_first=True, dtype=torch.float64, **options)
    x = torch.randn(*(() if case == "unbatched" else (2,)), n, 24, dtype=torch.float64)
    asked = {"need_weights": False}
    if case in ("padded", "both"):
        asked["key_padding_mask"] = torch.arange(n) >= torch.tensor([[n], [13]])
    if case in ("masked", "both"):
        asked["attn_mask"] = torch.ones(n, n, dtype=torch.bool).triu(1)
    if case == "causal":
        asked |= {
            "attn_mask": nn.Transformer.generate_square_subsequent_mask(n, dtype=torch.float64),
            "is_causal": True,
        }
    swapped_agrees(monkeypatch, layer, x, x, x, **asked)


SIZES = [(5, 5), (5, 17), (17, 5), (1, 17), (17, 1)]


@pytest.mark.filterwarnings("ignore:Lower right")
@pytest.mark.parametrize("name", ["causal_lower_right", "causal_upper_left"])
@pytest.mark.parametrize("declared", SIZES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("grad", [False, True])
def test_a_causal_bias_of_torch_is_the_causal_mask_that_it_says(name, declared, size, grad):
    attn_bias = getattr(torch.nn.attention.bias, name)(*declared)
    q = torch.randn(2, 3, size[0], 16, dtype=torch.float64, requires_grad=grad)
    k, v = (torch.randn(2, 3, size[1], 16, dtype=torch.float64) for _ in range(2))
    try:
        expected = theirs(q, k, v, attn_bias)
    except RuntimeError:
        with pytest.raises(RuntimeError, match="attn_mask must broadcast"):
            ours(q, k, v, attn_bias)
        return
    found = ours(q, k, v, attn_bias)
    assert type(found) is Tensor
    close(found, expected.nan_to_num())  # torch gives NaN, or 0, to a query that sees nothing
    if grad:
        found.sum().backward()
        assert q.grad.isfinite().all()


def test_a_causal_bias_beside_is_causal_is_refused_as_by_torch():
    q, k, v = qkv()
    for function in (ours, theirs):
        with pytest.raises(ValueError, match=r"(?i)causal"):
            function(q, k, v, torch.nn.attention.bias.causal_upper_left(5, 17), is_causal=True)


def test_a_causal_bias_passes_through_torch_modes_and_beside_subclasses():
    q, k, v = qkv()
    attn_bias = torch.nn.attention.bias.causal_lower_right(5, 17)
    expected = theirs(q, k, v, torch.ones(5, 17, dtype=torch.bool).tril(12))
    with torch.device("cpu"):
        close(ours(q, k, v, attn_bias), expected)
    close(ours(q.as_subclass(Marked), k, v, attn_bias).as_subclass(Tensor), expected)


class Meaning(torch.Tensor):
    """A subclass that means something else than its numbers, and says so to torch's function alone."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.mark.plain
@pytest.mark.filterwarnings("ignore")
def test_masks_with_a_meaning_of_their_own_are_refused_in_words():
    q, k, v = qkv()
    mask = torch.ones(5, 17, dtype=torch.bool)
    masked = torch.masked.masked_tensor(torch.zeros(5, 17), mask)
    ragged = torch.nested.nested_tensor([torch.randn(5, 3), torch.randn(4, 3)], layout=torch.jagged)
    for one in (mask.as_subclass(Meaning), masked, ragged):
        with pytest.raises(MaskError, match="a meaning of its own, which is not known here"):
            ours(q, k, v, one)
    with pytest.raises(RuntimeError, match="attn_mask must be an ordinary tensor, but it is nested"):
        ours(q, k, v, torch.nested.nested_tensor([mask, mask]))
    layer = rg.nn.MultiheadAttention(12, 3, batch_first=True)
    x = torch.randn(2, 5, 12)
    for one in (torch.zeros(5, 5).as_subclass(Meaning), torch.nn.attention.bias.causal_upper_left(5, 5)):
        with pytest.raises(MaskError, match="a meaning of its own, which is not known here"):
            layer(x, x, x, attn_mask=one)
    learned = nn.Parameter(torch.zeros(5, 17, dtype=torch.float64))
    output = ours(q.double(), k.double(), v.double(), learned)
    output.square().sum().backward()
    assert type(output) is Tensor and learned.grad.abs().sum() > 0
    close(ours(q, k, v, nn.Buffer(mask)), theirs(q, k, v, mask))
