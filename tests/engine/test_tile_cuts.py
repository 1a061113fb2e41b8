"""The cuts of a matrix into tiles are remembered, and are those that would be found anew."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import regard as rg
from regard import masks
from regard.engine import tile_cuts
from regard.engine.tiles import Problem
from regard.masks import Mask
from regard.normalisers import softmax
from regard.operands import Size, Span
from regard.scores import scaled_dot
from regard.spec import Spec

N, M = 37, 67
SINKS = (masks.prefix(4) & masks.causal("bottom-right")) | masks.window(9, 0, "bottom-right")
MASKS = {
    "none": None,
    "window": masks.window(9, 0, "bottom-right"),
    "another window": masks.window(20, 5, "bottom-right"),
    "a window from the top": masks.window(9, 0, "top-left"),
    "sinks and a window": SINKS,
    "the complement": ~SINKS,
    "padding": masks.padding(torch.tensor([67, 40])) & masks.window(9, 0, "bottom-right"),
    "more padding": masks.padding(torch.tensor([13, 59])) & masks.window(9, 0, "bottom-right"),
}


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch) -> dict[Any, Any]:
    known: dict[Any, Any] = {}
    monkeypatch.setattr(tile_cuts, "_remembered", known)
    return known


def problem(mask: Mask | None) -> Problem:
    spec = Spec(scaled_dot(), mask, softmax())
    return Problem.build(spec, torch.zeros(2, 3, N, 8), torch.zeros(2, 3, M, 8), (2, 3))


def described(mask: Mask | None, tile_scores: int) -> list[tuple[Any, ...]]:
    """All that a tile is, as values that can be compared."""
    cpu = torch.device("cpu")
    return [
        (tile.lead, tile.rows.start, tile.rows.stop, tile.cols.positions(cpu).tolist(), tile.masked)
        for tile in problem(mask).tiles(tile_scores)
    ]


def inputs() -> list[Tensor]:
    torch.manual_seed(4)
    return [torch.randn(2, 3, rows, 8, dtype=torch.float64) for rows in (N, M, M)]


@pytest.mark.parametrize("tile_scores", [40, 500, 10**5])
def test_what_is_remembered_is_what_would_be_found_anew(tile_scores: int, cache: dict[Any, Any]) -> None:
    fresh = {}
    for name, mask in MASKS.items():
        cache.clear()
        fresh[name] = described(mask, tile_scores)
    cache.clear()
    for _ in range(2):  # at first they are stored, all in one cache; then they are taken from it
        assert {name: described(mask, tile_scores) for name, mask in MASKS.items()} == fresh
    assert cache


@pytest.mark.parametrize("plan", ["tiled", "fused"])
@pytest.mark.parametrize("name", MASKS)
def test_a_second_call_gives_what_one_dense_tile_gives(name: str, plan: str) -> None:
    def results(plan: str) -> list[Tensor]:
        leaves = [t.requires_grad_() for t in inputs()]
        output, weights = rg.attend(*leaves, mask=MASKS[name], plan=plan, budget=1 << 14)
        return [output, *torch.autograd.grad(output.pow(2).sum(), leaves), weights.received()]

    results(plan)
    for ours, dense in zip(results(plan), results("dense"), strict=True):
        torch.testing.assert_close(ours, dense, atol=1e-10, rtol=1e-8)


def test_cuts_are_found_once_for_a_kind_of_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Span] = []
    original = masks.Band.reach

    def spy(self: masks.Band, rows: Span, size: Size) -> list[tuple[int, int]]:
        asked.append(rows)
        return original(self, rows, size)

    monkeypatch.setattr(masks.Band, "reach", spy)
    described(masks.window(9, 0, "bottom-right"), 500)
    before = len(asked)
    described(masks.window(9, 0, "bottom-right"), 500)
    assert len(asked) == before > 0


def test_positions_found_in_inference_mode_serve_gradients() -> None:
    with torch.inference_mode():
        rg.attend(*inputs(), mask=SINKS, plan="tiled", budget=1 << 14)
    leaves = [t.requires_grad_() for t in inputs()]
    output = rg.attend(*leaves, mask=SINKS, plan="tiled", budget=1 << 14).output
    assert all(grad.isfinite().all() for grad in torch.autograd.grad(output.sum(), leaves))


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch, cache: dict[Any, Any]) -> None:
    monkeypatch.setattr(tile_cuts, "MAX_KINDS", 4)
    for left in range(20):
        described(masks.window(left, 0, "bottom-right"), 500)
        assert len(cache) <= 4
    cache.clear()
    monkeypatch.setattr(tile_cuts, "MAX_REMEMBERED", 2)
    described(SINKS, 500)
    assert not cache
