"""One query: only the keys that it sees are read, and the answers are those of one dense tile."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import regard as rg
from regard import masks
from regard.engine import decode
from regard.masks import Mask
from regard.operands import Size

M = 67
KEYS = torch.arange(M)
TABLE = KEYS % 5 > 1
MASKS = {
    "padding": masks.padding(torch.tensor([67, 41])),
    "padding of everything": masks.padding(torch.tensor([0, 3])),
    "segments": masks.segments(torch.tensor([1]), KEYS // 30),
    "segments that come back": masks.segments(torch.tensor([2]), KEYS % 3),
    "few keys": masks.segments(torch.tensor([1]), KEYS % 4) & masks.padding(torch.tensor([66, 60])),
    "allow": masks.allow(TABLE[None]),
    "allow for each head": masks.allow(torch.stack([TABLE, ~TABLE, KEYS > 50])[:, None]),
    "ranges": masks.ranges(torch.tensor([20]), torch.tensor([50])),
    "one key": masks.prefix(21) & masks.ranges(torch.tensor([20]), torch.tensor([50])),
    "segments and allow": masks.segments(torch.tensor([1]), KEYS // 30) & masks.allow(TABLE[None]),
    "window and allow": masks.window(20, 0, "bottom-right") & masks.allow(TABLE[None]),
    "sinks and a window": masks.prefix(4) | masks.window(20, 0, "bottom-right"),
    "complement": ~masks.window(20, 0, "bottom-right"),
}


def make(key_heads: int = 3) -> list[Tensor]:
    torch.manual_seed(3)
    shapes = ((2, 3, 1, 16), (2, key_heads, M, 16), (2, key_heads, M, 16))
    return [torch.randn(shape, dtype=torch.float64) for shape in shapes]


def results(x: list[Tensor], mask: Mask, plan: str) -> list[Tensor]:
    leaves = [t.clone().requires_grad_() for t in x]
    q, k, v = leaves
    output, weights = rg.attend(q, k, v, mask=mask, plan=plan)
    return [output, *torch.autograd.grad(output.pow(2).sum(), leaves), weights.logsumexp(), weights.entropy()]


@pytest.mark.parametrize("key_heads", [1, 3])
@pytest.mark.parametrize("name", MASKS)
def test_answers_and_gradients_are_those_of_one_tile(name: str, key_heads: int) -> None:
    x = make(key_heads)
    for ours, dense in zip(results(x, MASKS[name], "auto"), results(x, MASKS[name], "dense"), strict=True):
        torch.testing.assert_close(ours, dense, atol=1e-10, rtol=1e-8)


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("name", MASKS)
def test_hidden_nan_harms_neither_output_nor_gradient(name: str, gradients: bool) -> None:
    q, k, v = make()
    clean, *grads = results([q, k, v], MASKS[name], "dense")[:4]
    hidden = rg.Weights(q, k, mask=MASKS[name], plan="dense").dense().mT == 0
    leaves = [t.requires_grad_(gradients) for t in (q, *(t.masked_fill(hidden, torch.nan) for t in (k, v)))]
    q, k, v = leaves
    output = rg.attend(q, k, v, mask=MASKS[name]).output
    torch.testing.assert_close(output, clean)
    if gradients:
        found = torch.autograd.grad(output.pow(2).sum(), leaves)
        for ours, exact in zip(found, grads, strict=True):
            torch.testing.assert_close(ours, exact)


@pytest.mark.parametrize("name", MASKS)
def test_a_seen_nan_shows(name: str) -> None:
    q, k, v = make()
    seen = rg.Weights(q, k, mask=MASKS[name], plan="dense").dense().mT > 0
    output = rg.attend(q, k, v.masked_fill(seen, torch.nan), mask=MASKS[name]).output
    assert torch.equal(output.isnan().any(-1), seen.any(-2))


def test_a_range_needs_no_mask_and_few_keys_are_picked() -> None:
    size = Size(1, M, torch.device("cpu"))
    cols, row = decode.visible_keys(MASKS["ranges"], (2, 3), size)
    assert (cols.start, cols.stop, cols.index, row) == (20, 50, None, None)
    far = masks.segments(torch.tensor([0]), torch.arange(400) % 5)
    cols, row = decode.visible_keys(far, (2, 3), Size(1, 400, torch.device("cpu")))
    assert cols.index is not None
    assert torch.equal(cols.index, torch.arange(0, 400, 5))
    assert row is None
