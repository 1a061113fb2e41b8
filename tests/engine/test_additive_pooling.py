"""Additive attention of a decoder's steps: one function for score, softmax and pooling equals the formula."""

import pytest
import torch

from regard import attend, masks, scores
from regard.engine import additive
from regard.errors import ShapeError
from regard.nn import AdditiveAttention


def formula(query, key, value, layer, visible=None):
    e = torch.tanh((query @ layer.w_q.mT).unsqueeze(-2) + (key @ layer.w_k.mT).unsqueeze(-3)) @ layer.v
    if visible is not None:
        e = e.masked_fill(~visible[:, None], -torch.inf)
    return torch.softmax(e, -1) @ value


def tensors(batch, n, m, dtype=torch.float64):
    layer = AdditiveAttention(5, 7, 11, dtype=dtype)
    made = [torch.randn(batch, *shape, dtype=dtype, requires_grad=True) for shape in ((n, 5), (m, 7), (m, 3))]
    return layer, *made


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("block", [1 << 16, 50])
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_output_and_gradients_are_those_of_the_formula(monkeypatch, n, block, scale):
    for name in ("BLOCK_NUMBERS", "SEVERAL_NUMBERS"):
        monkeypatch.setattr(f"regard.scores._additive.{name}", block)
    layer, query, key, value = tensors(13, n, 6)
    key = (scale * key).detach().requires_grad_()
    lengths = torch.tensor([6, 1, 3, 6, 2, 5, 6, 6, 4, 1, 2, 3, 6])
    visible = torch.arange(6) < lengths[:, None]
    inputs = (query, key, value, layer.w_q, layer.w_k, layer.v)
    for given, mask in ((None, None), (lengths, visible)):
        plain = formula(query, key, value, layer, mask)
        grad = torch.randn_like(plain)
        wanted = torch.autograd.grad(plain, inputs, grad)
        for out in (
            layer(query, key, value, valid_lens=given).output,
            layer.attend_projected(query, layer.project_keys(key), value, given).output,
        ):
            torch.testing.assert_close(out, plain)
            for one, other in zip(torch.autograd.grad(out, inputs, grad), wanted, strict=True):
                torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9)


def test_path_is_taken_by_a_batch_of_decoder_steps(monkeypatch):
    layer, query, key, value = tensors(3, 1, 6)
    calls = []
    pool = additive.pool
    monkeypatch.setattr(additive, "pool", lambda *args: calls.append(1) or pool(*args))
    layer(query, key, value)
    attend(query[0], key[0], value[0], layer.score(6))  # no batch: the general path
    assert len(calls) == 1


def test_second_derivatives_are_those_of_the_formula():
    layer, query, key, value = tensors(2, 1, 3)
    lengths = torch.tensor([3, 2])
    assert torch.autograd.gradgradcheck(lambda *x: layer(*x, valid_lens=lengths).output, (query, key, value))


def test_hidden_nan_and_rows_that_see_no_key_give_zeros():
    layer, query, key, value = tensors(2, 1, 4)
    key.data[0, 2:], value.data[0, 2:] = torch.nan, torch.inf
    out = layer(query, key, value, valid_lens=torch.tensor([2, 0])).output
    out.sum().backward()
    assert bool(out.isfinite().all()) and out[1].abs().max() == 0
    assert all(bool(t.grad.isfinite().all()) for t in (query, key, value, layer.w_q))


def test_weights_of_projected_keys_are_those_of_the_layer():
    layer, query, key, value = tensors(2, 3, 4)
    plain = layer(query, key, value, masks.padding(torch.tensor([4, 2]))).weights
    projected = layer.attend_projected(query, layer.project_keys(key), value, torch.tensor([4, 2])).weights
    torch.testing.assert_close(projected.dense(), plain.dense())


def test_projected_keys_of_another_width_are_refused():
    layer, query, key, value = tensors(2, 1, 4)
    with pytest.raises(ShapeError, match="built for projected of width 11"):
        layer.attend_projected(query, key, value)
    with pytest.raises(ShapeError, match="no w_k, for projected keys of width 11"):
        attend(query, key, value, scores.additive(layer.w_q, None, layer.v))
