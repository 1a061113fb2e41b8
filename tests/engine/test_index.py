"""Indexing the weights means what it means for a tensor, and costs only what is picked."""

import pytest
import torch
from largest_allocation import LargestAllocation
from random_qkv import qkv

import regard as rg
from regard import masks


def positions_of(weights, *lengths):
    generator = torch.Generator().manual_seed(5)
    return [
        torch.randint(-size, size, (length,), generator=generator)
        for size, length in zip(weights.shape, lengths, strict=True)
    ]


I, J, H, B = (
    torch.tensor([0, 4, -1, 4]),
    torch.tensor([6, 0, 0, -2]),
    torch.tensor([2, 0, -1, 2]),
    torch.tensor([1, 0, 0, 1]),
)


ALL = slice(None)


MIXED = {
    "all four": (B, H, I, J),
    "broadcast": (B[:, None], H, I[:2, None, None], J),
    "heads and rows": (ALL, H, I),
    "heads and rows of some columns": (0, H, I, slice(1, 6, 2)),
    "heads and columns": (B, ALL, ALL, J),
    "heads and columns, side by side but for an int": (ALL, H, 3, J),
    "heads and columns of some rows": (ALL, H, slice(0, 5, 2), J),
    "batch and heads": (B, H),
    "batch and rows": (B, ALL, I),
    "batch, rows, columns": (B, slice(1, 3), I, J),
    "rows and columns": (slice(0, 1), ALL, I, J),
    "booleans": (torch.tensor([True, True]), torch.tensor([True, False, True]), 1, ALL),
    "none": (B[:0], H[:0], I[:0], J[:0]),
    "no heads of some": (B[:0], H[:0], ALL, ALL),
}


def test_boolean_indices_pick_as_they_do_from_a_tensor():
    q, k, _ = qkv()
    weights = rg.Weights(q, k)
    rows = torch.arange(20) % 3 == 0
    torch.testing.assert_close(weights[..., rows, :], weights.dense()[..., rows, :])
    with pytest.raises(IndexError, match="20"):
        weights[..., torch.ones(4, dtype=torch.bool), :]


@pytest.mark.parametrize("name", list(MIXED))
@pytest.mark.parametrize("budget", [1, 1 << 10, None])
@pytest.mark.parametrize("mask", [None, masks.window(2, 1, align="top-left")])
def test_mixed_indices_mean_what_they_mean_for_tensors(name, budget, mask):
    q, k, _ = qkv(n=5, m=7, lead=(2, 3))
    weights = rg.Weights(q, k, mask=mask, plan="tiled", budget=budget)
    index = MIXED[name]
    torch.testing.assert_close(weights[index], weights.dense()[index])
    turned = tuple((*index, ALL, ALL, ALL)[:4])
    turned = (*turned[:2], turned[3], turned[2])
    torch.testing.assert_close(weights.mT[turned], weights.dense().mT[turned])


def test_picking_elements_stays_within_the_budget():
    q, k, _ = qkv(n=400, m=500, lead=(2, 3))
    weights = rg.Weights(q, k, plan="tiled", budget=1 << 18)
    index = tuple(positions_of(weights, *[300] * 4))
    with LargestAllocation() as largest:
        found = weights[index]
    torch.testing.assert_close(found, weights.dense()[index])
    assert largest.bytes <= 1 << 18  # 300 rows by 300 columns of 6 heads are 2 MiB


def test_picking_from_many_heads_stays_within_the_budget():
    q, k = qkv(n=3, lead=(200,))[0], torch.randn(500, 8)
    weights = rg.Weights(q, k, plan="tiled", budget=1 << 16)
    with LargestAllocation() as largest:
        found = weights[:, 1, 7]
    torch.testing.assert_close(found, weights.dense()[:, 1, 7])
    assert largest.bytes <= 1 << 16  # a row of all heads is 400 kB
