"""Thumbnails: every head of a recorded call as a small heatmap."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.engine.fold import Buffers, fold, tile_block
from regard.engine.index import select_heads
from regard.engine.reducers import Heatmap
from regard.engine.tile_cuts import head_slices
from regard.engine.tiles import Problem
from regard.errors import ChoiceError
from regard.operands import Span
from regard.recording import Call
from regard.web.maps.arrays import ArrayResult
from regard.web.maps.head import BOX_CELLS, interactive, lead_index
from regard.web.maps.pooling import contiguous_runs, sample_rows, to_float32
from regard.weights import matrix_of

EXACT_CELLS = 1 << 25  # cells of a call that are all computed; of a larger one, rows are sampled


@runtime_checkable
class Entry(Protocol):
    """A call in a recording: `recording.entries[i]`."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def load(self, head: int | None = None) -> Call: ...


@interactive
def thumbnails(entry: Entry, batch: int = 0, side: int = 64) -> ArrayResult:
    """The heatmap `weights.heatmap(side)` of every head of one sequence: (heads, side, side).

    A matrix with fewer rows or columns than `side` repeats them. Rows of a long one are sampled.

    >>> import torch, regard as rg
    >>> layer = rg.nn.SelfAttention(8, 2)
    >>> with rg.record(layer) as recording:
    ...     _ = layer(torch.randn(1, 5, 8))
    >>> thumbnails(recording.entries[0], batch=0, side=16).values.shape
    (2, 16, 16)
    """
    if side < 1:
        raise ChoiceError(f"side is a number of pixels, 1 or more, and not {side}")
    weights = entry.load().weights()
    lead = tuple(weights.shape[:-2])
    index = lead_index(lead, batch, 0)
    heads = (*index[:-1], slice(0, lead[-1], 1)) if len(lead) > 1 else index
    problem = select_heads(matrix_of(weights).problem(), heads)
    reducer = Heatmap(side, "mean", problem.size)
    if not problem.size.n or not problem.size.m:
        return ArrayResult(np.zeros((lead[-1] if len(lead) > 1 else 1, side, side), "<f4"))
    exact = math.prod((*problem.lead, problem.size.n, problem.size.m)) <= EXACT_CELLS
    maps = fold(problem, [reducer], 2 * BOX_CELLS)[0] if exact else _from_sampled_rows(problem, reducer)
    maps = maps.reshape(-1, *maps.shape[-2:])
    rows, cols = (_repeated(length, side) for length in maps.shape[-2:])
    return ArrayResult(to_float32(maps[:, rows][..., cols]), exact)


def _from_sampled_rows(problem: Problem, reducer: Heatmap) -> Float[Tensor, "*lead rows cols"]:
    """The heatmaps, estimated from sampled rows: about EXACT_CELLS cells are computed."""
    strips, widths = (reducer.edges(length).diff() for length in problem.size[:2])
    each = min(int(strips.max()), max(1, EXACT_CELLS // (len(strips) * math.prod(problem.lead) * problem.size.m)))
    index = sample_rows(strips, each).to(problem.size.device)
    out = torch.zeros((*problem.lead, len(index), len(widths)), dtype=problem.dtype, device=problem.size.device)
    step = max(1, BOX_CELLS // problem.size.m)
    buffers = Buffers(problem)
    for cut in head_slices(problem.lead, max(1, BOX_CELLS // (step * problem.size.m))):
        for low in range(0, len(index), step):
            rows = Span(0, 0, index[low : low + step])
            tile = problem.tile(cut, rows)
            if tile is None:
                continue
            weights = tile_block(problem, tile, buffers).weights
            target = out[(*cut, slice(low, low + step))]
            for first, last, start in contiguous_runs(tile.cols):
                _add_columns(target, weights[..., first:last], start, reducer.edges(problem.size.m).tolist())
    lines = out.unflatten(-2, (len(strips), each)).mean(-2)
    return lines / widths.to(lines)


def _add_columns(
    target: Float[Tensor, "*lead rows bins"], weights: Float[Tensor, "*lead rows cols"], start: int, edges: list[int]
) -> None:
    """Add the columns from position `start` on to the bins that they fall into."""
    stop = start + weights.shape[-1]
    for number, (low, high) in enumerate(pairwise(edges)):
        first, last = max(low, start), min(high, stop)
        if first < last:
            target[..., number] += weights[..., first - start : last - start].sum(-1)


def _repeated(bins: int, side: int) -> Int[Tensor, " side"]:
    """The bin that each of `side` pixels shows."""
    return torch.arange(side) * bins // side
