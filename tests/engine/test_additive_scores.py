"""Additive scores in chunks: right for any size of chunk, and never n x m x hidden numbers in memory."""

import math

import pytest
import torch
from largest_allocation import LargestAllocation

from regard.scores import _additive


def additive_operands(n=23, m=29, h=7, lead=(2,), dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    shapes = (*lead, n, h), (*lead, m, h), (h,)
    return [(torch.randn(s, generator=generator, dtype=dtype)).requires_grad_() for s in shapes]


@pytest.mark.parametrize("size", [1.0, 50.0, math.nan])
@pytest.mark.parametrize("chunk", [1, 100, 1 << 12])
def test_additive_scores_in_chunks_of_any_size(monkeypatch, size, chunk):
    """`chunk` cuts within a row, between rows, and not at all; a steep sum and a NaN take the plain tanh."""
    monkeypatch.setattr(_additive, "BLOCK_NUMBERS", chunk)
    a, b, v = additive_operands()
    with torch.no_grad():
        a[0, 3, 2] = size
    x = (a, b, v)
    found, expected = _additive.tanh_score(*x), torch.tanh(a.unsqueeze(-2) + b.unsqueeze(-3)) @ v
    torch.testing.assert_close(found, expected, equal_nan=True)
    pull = torch.randn_like(expected)
    grads = torch.autograd.grad(found, x, pull), torch.autograd.grad(expected, x, pull)
    torch.testing.assert_close(*grads, equal_nan=True)


@pytest.mark.parametrize("size", [1.0, 50.0])
def test_gradients_of_additive_scores_in_chunks(monkeypatch, size):
    monkeypatch.setattr(_additive, "BLOCK_NUMBERS", 20)
    a, b, v = additive_operands(3, 5, 2, ())
    with torch.no_grad():
        a[1, 1] = size
        b[2, 1] = -size  # so that something is steep and yet has a slope
    assert torch.autograd.gradcheck(_additive.tanh_score, (a, b, v))
    assert torch.autograd.gradgradcheck(_additive.tanh_score, (a, b, v))


@pytest.mark.parametrize("size", [1.0, 50.0, math.nan])
@pytest.mark.parametrize(("n", "m"), [(256, 256), (2, 1 << 15)])
def test_additive_scores_never_hold_rows_by_keys_by_features(size, n, m):
    a, b, v = additive_operands(n, m, 64, (), torch.float32)
    with torch.no_grad():
        a[0, 0] = size
    with LargestAllocation() as largest:
        _additive.tanh_score(a, b, v).sum().backward()
    assert 4 * n * m * 64 > 4 * 4 * _additive.BLOCK_NUMBERS  # what the broadcast formula holds
    assert largest.bytes <= max(4 * _additive.BLOCK_NUMBERS, 4 * m * 64)
