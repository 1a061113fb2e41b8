"""Tiles that are alike go to the kernel together: nothing but the number of calls may change."""

import math

import pytest
import torch
from torch import Tensor

import regard as rg
from regard import masks, scores
from regard.engine.fused import query_blocks
from regard.engine.tile_batches import TileBatch
from regard.masks._rules import Align

N = 1009
LEADS = [(), (3,), (2, 3), (2, 1, 3)]


def inputs(lead: tuple[int, ...], m: int = N, turned: bool = False) -> list[Tensor]:
    generator = torch.Generator().manual_seed(len(lead) + m)

    def normal(rows: int) -> Tensor:
        if turned and len(lead) > 1:  # as layers make heads: (..., rows, heads, d) seen from the side
            wide = torch.randn(*lead[:-1], rows, lead[-1], 5, generator=generator, dtype=torch.float64)
            return wide.transpose(-3, -2).requires_grad_()
        return torch.randn(*lead, rows, 5, generator=generator, dtype=torch.float64).requires_grad_()

    return [normal(N), normal(m), normal(m)]


def runs_made(monkeypatch: pytest.MonkeyPatch) -> list[TileBatch]:
    found, original = [], query_blocks.batch_tiles

    def spy(*arguments: object) -> tuple[TileBatch, ...]:
        batch_tiles = original(*arguments)  # pyright: ignore[reportArgumentType]
        found.extend(batch_tiles)
        return batch_tiles

    monkeypatch.setattr(query_blocks, "batch_tiles", spy)
    return found


def assert_same_as_dense(x: list[Tensor], **words: object) -> None:
    fused, dense = (rg.attend(*x, **words, plan=plan).output for plan in ("fused", "dense"))  # pyright: ignore[reportArgumentType]
    torch.testing.assert_close(fused, dense, atol=1e-10, rtol=1e-8)
    weight = torch.randn(dense.shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    ours, theirs = (torch.autograd.grad(out, x, weight) for out in (fused, dense))
    for a, e in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, e, atol=1e-10, rtol=1e-8)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("lead", LEADS, ids=str)
@pytest.mark.parametrize("mask", [masks.window(61, 0), masks.window(37, 41), ~masks.window(400, 400)], ids=str)
def test_a_window_is_the_same_in_runs(
    mask: masks.Mask, lead: tuple[int, ...], turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = runs_made(monkeypatch)
    assert_same_as_dense(inputs(lead, turned=turned), mask=mask)
    assert max(len(run.tiles) for run in found) > 1 or "~" in str(mask)


@pytest.mark.parametrize("align", ["top-left", "bottom-right"])
@pytest.mark.parametrize("m", [701, 1301])
def test_rows_that_see_nothing_stay_empty_beside_runs(m: int, align: Align, monkeypatch: pytest.MonkeyPatch) -> None:
    found = runs_made(monkeypatch)
    assert_same_as_dense(inputs((2, 3), m), mask=masks.window(61, 3, align))
    assert max(len(run.tiles) for run in found) > 1


@pytest.mark.parametrize("budget", [1 << 18, 1 << 20, 1 << 22])
def test_a_run_keeps_to_the_budget(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = runs_made(monkeypatch)
    q, k, v = inputs((2, 3))
    rg.attend(q, k, v, mask=masks.window(61, 0), budget=budget)
    for run in found:
        heads = math.prod(cut.stop - cut.start for cut in run.first.lead)
        scratch = len(run.tiles) * heads * 16 * (len(run.first.rows) + 2 * len(run.first.cols)) * 8
        assert len(run.tiles) == 1 or scratch <= budget
    assert sum(len(run.tiles) * len(run.first.rows) for run in found) >= N


def test_blocks_with_a_bias_of_their_own_go_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found = runs_made(monkeypatch)
    score = scores.scaled_dot() + scores.bias(torch.randn(N, N, dtype=torch.float64))
    assert_same_as_dense(inputs((3,)), score=score, mask=masks.window(61, 0))
    assert max(len(run.tiles) for run in found) == 1
