"""Ranges of keys: what a mask says of rows and columns as ranges is what it says of single pairs."""

from __future__ import annotations

import pytest
import torch
from random_qkv import qkv
from torch import Tensor

import regard as rg
from regard import masks
from regard.engine.key_ranges import key_ranges
from regard.masks import ALL, NONE, Mask
from regard.operands import Size, Span

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


def visible(mask: Mask) -> Tensor:
    """The mask as booleans (*LEAD, N, M)."""
    q, k, v = torch.zeros(*LEAD, N, 1), torch.zeros(*LEAD, M, 1), torch.eye(M).expand(*LEAD, M, M)
    return rg.attend(q, k, v, mask=mask, plan="dense").output > 0


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("rows", [Span(0, N), Span(6, 15), Span(14, 21), Span(28, 29)])
@pytest.mark.parametrize("heads", [(slice(0, 2), slice(0, 3)), (slice(1, 2), slice(0, 2))])
def test_blocks_are_what_the_rows_see(name: str, rows: Span, heads: tuple[slice, ...]) -> None:
    ranges = key_ranges(MASKS[name], LEAD, Size(N, M, torch.device("cpu")))
    assert ranges is not None
    states = torch.full((M,), NONE)
    for start, stop, state in ranges.blocks(heads, rows):
        states[start:stop] = state
    seen = visible(MASKS[name])[heads][..., rows.place, :]
    assert not seen[..., states == NONE].any()
    assert seen[..., states == ALL].all()
    if seen.any():
        first, last = seen.flatten(0, -2).any(0).nonzero()[[0, -1], 0]
        assert states[first] != NONE != states[last]
        assert (states != NONE).nonzero()[[0, -1], 0].tolist() == [first, last]


@pytest.mark.parametrize("name", MASKS)
def test_widths_hold_all_that_the_rows_see(name: str) -> None:
    ranges = key_ranges(MASKS[name], LEAD, Size(N, M, torch.device("cpu")))
    assert ranges is not None
    seen = visible(MASKS[name]).flatten(0, -3).any(0)
    for low in range(N):
        for step, width in ranges.widths(low, (1, 2, 8, 64)):
            columns = seen[low : low + step].any(0).nonzero()
            assert width == (int(columns[-1] - columns[0]) + 1 if len(columns) else 0)


def test_a_tile_may_end_where_a_document_ends() -> None:
    packed = masks.segments(torch.arange(100) // 23)
    ranges = key_ranges(packed, LEAD, Size(100, 100, torch.device("cpu")))
    assert ranges is not None
    assert dict(ranges.widths(23, (16, 32, 64))) == {16: 23, 23: 23, 32: 46, 64: 69}


@pytest.mark.parametrize("mask", [masks.segments(torch.arange(N) % 2), masks.prefix(3) | masks.window(2, 2)])
def test_rows_with_a_hidden_key_between_have_no_range(mask: Mask) -> None:
    assert key_ranges(mask, LEAD, Size(N, N, torch.device("cpu"))) is None


QUESTIONS = {
    "entropy": lambda weights: weights.entropy(),
    "received": lambda weights: weights.received(),
    "top": lambda weights: weights.top(3).values,
    "heatmap": lambda weights: weights.heatmap(4),
    "rows": lambda weights: weights[..., 5:20, :],
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_are_those_of_the_dense_plan(name: str, question: str) -> None:
    q, k, _ = qkv(N, M, d=5, lead=LEAD, dtype=torch.float64)
    ours, dense = (QUESTIONS[question](rg.Weights(q, k, mask=MASKS[name], plan=plan)) for plan in ("auto", "dense"))
    torch.testing.assert_close(ours, dense, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("plan", ["tiled", "auto"])
@pytest.mark.parametrize("name", MASKS)
def test_blocks_of_single_heads_are_those_of_the_dense_matrix(name: str, plan: str) -> None:
    q, k, _ = qkv(N, M, d=5, lead=LEAD, dtype=torch.float64)
    weights = rg.Weights(q, k, mask=MASKS[name], plan=plan)
    dense = weights.dense()
    for index in ((1, 2), (1, slice(1, 3)), (slice(1, 2), slice(None), slice(3, 9)), (1, 0, 20, slice(4, None))):
        torch.testing.assert_close(weights[index], dense[index])
    for batch in range(LEAD[0]):
        torch.testing.assert_close(weights.select(batch=batch).dense(), dense[batch])


@pytest.mark.parametrize("name", MASKS)
def test_tiles_keep_hidden_nan_out_of_outputs_and_gradients(name: str) -> None:
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
