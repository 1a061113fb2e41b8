"""One query: only the keys that it sees are read, and the answers are those of one dense tile."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import regard as rg
from regard import masks
from regard.engine import decode, fast_path
from regard.masks import Mask
from regard.operands import Size

M, HEADS = 67, 6
KEYS = torch.arange(M)
TABLE = KEYS % 5 > 1
MASKS = {
    "padding": masks.padding(torch.tensor([67, 41])),
    "padding of everything": masks.padding(torch.tensor([0, 3])),
    "segments": masks.segments(torch.tensor([1]), KEYS // 30),
    "segments that come back": masks.segments(torch.tensor([2]), KEYS % 3),
    "few keys": masks.segments(torch.tensor([1]), KEYS % 4) & masks.padding(torch.tensor([66, 60])),
    "allow": masks.allow(TABLE[None]),
    "allow for each head": masks.allow(torch.stack([TABLE, ~TABLE, KEYS > 50] * 2)[:, None]),
    "ranges": masks.ranges(torch.tensor([20]), torch.tensor([50])),
    "one key": masks.prefix(21) & masks.ranges(torch.tensor([20]), torch.tensor([50])),
    "segments and allow": masks.segments(torch.tensor([1]), KEYS // 30) & masks.allow(TABLE[None]),
    "window and allow": masks.window(20, 0, "bottom-right") & masks.allow(TABLE[None]),
    "sinks and a window": masks.prefix(4) | masks.window(20, 0, "bottom-right"),
    "the first key": masks.causal("top-left"),
    "complement": ~masks.window(20, 0, "bottom-right"),
}


KEY_HEADS = pytest.mark.parametrize("key_heads", [1, 2, HEADS])


def make(key_heads: int) -> list[Tensor]:
    torch.manual_seed(3)
    shapes = ((2, HEADS, 1, 16), (2, key_heads, M, 16), (2, key_heads, M, 16))
    return [torch.randn(shape, dtype=torch.float64) for shape in shapes]


def seen_keys(q: Tensor, k: Tensor, mask: Mask) -> Tensor:
    """True where one of the heads that share a key sees it, (2, key_heads, M, 1)."""
    seen = rg.Weights(q, k, mask=mask, plan="dense").dense().mT > 0
    return seen.unflatten(1, (k.shape[1], -1)).any(2)


def results(x: list[Tensor], mask: Mask, plan: str) -> list[Tensor]:
    leaves = [t.clone().requires_grad_() for t in x]
    q, k, v = leaves
    output, weights = rg.attend(q, k, v, mask=mask, plan=plan)
    return [output, *torch.autograd.grad(output.pow(2).sum(), leaves), weights.logsumexp(), weights.entropy()]


@KEY_HEADS
@pytest.mark.parametrize("name", MASKS)
def test_answers_and_gradients_are_those_of_one_tile(name: str, key_heads: int) -> None:
    x = make(key_heads)
    for ours, dense in zip(results(x, MASKS[name], "auto"), results(x, MASKS[name], "dense"), strict=True):
        torch.testing.assert_close(ours, dense, atol=1e-10, rtol=1e-8)


@KEY_HEADS
@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("name", MASKS)
def test_hidden_nan_harms_neither_output_nor_gradient(name: str, gradients: bool, key_heads: int) -> None:
    q, k, v = make(key_heads)
    clean, *grads = results([q, k, v], MASKS[name], "dense")[:4]
    hidden = ~seen_keys(q, k, MASKS[name])
    leaves = [t.requires_grad_(gradients) for t in (q, *(t.masked_fill(hidden, torch.nan) for t in (k, v)))]
    q, k, v = leaves
    output = rg.attend(q, k, v, mask=MASKS[name]).output
    torch.testing.assert_close(output, clean)
    if gradients:
        found = torch.autograd.grad(output.pow(2).sum(), leaves)
        for ours, exact in zip(found, grads, strict=True):
            torch.testing.assert_close(ours, exact)


@KEY_HEADS
@pytest.mark.parametrize("name", MASKS)
def test_a_seen_nan_shows(name: str, key_heads: int) -> None:
    q, k, v = make(key_heads)
    empty = rg.Weights(q, k, mask=MASKS[name], plan="dense").empty_rows()
    output = rg.attend(q, k, v.masked_fill(seen_keys(q, k, MASKS[name]), torch.nan), mask=MASKS[name]).output
    assert torch.equal(output.isnan().any(-1), ~empty)


@KEY_HEADS
def test_heads_may_share_keys_on_the_fast_path(key_heads: int) -> None:
    q, k, v = make(key_heads)
    for mask in (None, masks.prefix(21), MASKS["ranges"], MASKS["one key"]):
        assert fast_path.attend(q, k, v, mask) is not None
    assert (fast_path.attend(q, k, v, MASKS["allow for each head"]) is not None) == (key_heads == HEADS)


def test_a_range_needs_no_mask_and_few_keys_are_picked() -> None:
    size = Size(1, M, torch.device("cpu"))
    cols, row = decode.visible_keys(MASKS["ranges"], (2, 3), size)
    assert (cols.start, cols.stop, cols.index, row) == (20, 50, None, None)
    far = masks.segments(torch.tensor([0]), torch.arange(400) % 5)
    cols, row = decode.visible_keys(far, (2, 3), Size(1, 400, torch.device("cpu")))
    assert cols.index is not None
    assert torch.equal(cols.index, torch.arange(0, 400, 5))
    assert row is None
