"""Blocks of single heads under masks with numbers for each sequence or head, and NaN in what a head hides."""

import pytest
import torch
from random_qkv import qkv

import regard as rg
from regard import masks

LEAD, N, M = (2, 3), 29, 37
ROWS = torch.arange(N)
MASKS = {
    "packed": masks.segments(ROWS // 7, torch.arange(M) // 9),
    "packed, ids for each sequence": masks.segments(torch.stack([ROWS // 7, ROWS // 13]), torch.arange(M) // 9),
    "padding": masks.padding(torch.tensor([37, 11])),
    "padding of heads, causal": masks.padding(torch.tensor([[37, 11, 0], [5, 20, 36]])) & masks.causal("bottom-right"),
    "ranges, some empty": masks.ranges(ROWS * 2 % 31, ROWS + 3),
    "packed, in a window": masks.segments(ROWS // 7, torch.arange(M) // 9) & masks.window(3, 1, "top-left"),
}


def visible(mask):
    """The mask as booleans (*LEAD, N, M)."""
    q, k, v = torch.zeros(*LEAD, N, 1), torch.zeros(*LEAD, M, 1), torch.eye(M).expand(*LEAD, M, M)
    return rg.attend(q, k, v, mask=mask, plan="dense").output > 0


@pytest.mark.parametrize("plan", ["tiled", "auto"])
@pytest.mark.parametrize("name", MASKS)
def test_blocks_of_single_heads_are_those_of_the_dense_matrix(name, plan):
    q, k, _ = qkv(N, M, d=5, lead=LEAD, dtype=torch.float64)
    weights = rg.Weights(q, k, mask=MASKS[name], plan=plan)
    dense = weights.dense()
    for index in ((1, 2), (1, slice(1, 3)), (slice(1, 2), slice(None), slice(3, 9)), (1, 0, 20, slice(4, None))):
        torch.testing.assert_close(weights[index], dense[index])
    for batch in range(LEAD[0]):
        torch.testing.assert_close(weights.select(batch=batch).dense(), dense[batch])


@pytest.mark.parametrize("name", MASKS)
def test_tiles_keep_hidden_nan_out_of_outputs_and_gradients(name):
    hidden = ~visible(MASKS[name]).any(-2, keepdim=True).mT  # keys that no query of their head sees
    q, k, v = qkv(N, M, d=5, lead=LEAD, dtype=torch.float64)
    found = []
    for filled in (0.0, torch.nan):
        leaves = [part.clone().requires_grad_() for part in (q, *(x.masked_fill(hidden, filled) for x in (k, v)))]
        output, weights = rg.attend(*leaves, mask=MASKS[name], plan="tiled")
        output.square().sum().backward()
        found.append([output, weights.entropy(), *(leaf.grad for leaf in leaves)])
    for clean, poisoned in zip(*found, strict=True):
        torch.testing.assert_close(poisoned, clean)
