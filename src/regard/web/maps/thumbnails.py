"""Every head of a layer as a small picture, for the wall."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from regard.engine.fold import Buffers, survey, whole_rows
from regard.engine.index import some_heads
from regard.engine.reducers import Heatmap
from regard.engine.tiles import Problem, head_slices
from regard.errors import ChoiceError
from regard.operands import Span
from regard.recording._call import Call
from regard.web.maps.head import BOX, place
from regard.web.maps.pooling import runs, sampled
from regard.web.server.priority import awaited

EXACT = 1 << 25  # cells of a layer that are all looked at; of more, some rows


@runtime_checkable
class Entry(Protocol):
    """A call in a recording: `recording.entries[i]`."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def load(self, head: int | None = None) -> Call: ...


class Thumbs(NamedTuple):
    """Pictures, and whether they are what the weights say or an estimate from sampled rows."""

    values: np.ndarray  # (heads, side, side) float32
    exact: bool


@awaited
def thumbs(entry: Entry, batch: int = 0, side: int = 64) -> Thumbs:
    """The mean weight in each of side x side cells, for every head of one sequence: (heads, side, side).

    Cells are those of `weights.heatmap(side)`; a matrix with fewer rows or columns repeats them. Rows of a long one
    are sampled.

    >>> import torch, regard as rg
    >>> layer = rg.nn.SelfAttention(8, 2)
    >>> with rg.record(layer) as recording:
    ...     _ = layer(torch.randn(1, 5, 8))
    >>> thumbs(recording.entries[0], batch=0, side=16).values.shape
    (2, 16, 16)
    """
    if side < 1:
        raise ChoiceError(f"side is a number of pixels, 1 or more, and not {side}")
    weights = entry.load().weights()
    lead = tuple(weights.shape[:-2])
    at = place(lead, batch, 0)
    wanted = (*at[:-1], slice(0, lead[-1], 1)) if len(lead) > 1 else at
    problem = some_heads(weights._problem(), wanted)  # noqa: SLF001
    cells = Heatmap(side, "mean", problem.size)
    if not problem.size.n or not problem.size.m:
        return Thumbs(np.zeros((lead[-1] if len(lead) > 1 else 1, side, side), "<f4"), True)
    exact = math.prod((*problem.lead, problem.size.n, problem.size.m)) <= EXACT
    found = survey(problem, [cells], 2 * BOX)[0] if exact else _from_samples(problem, cells)
    found = found.reshape(-1, *found.shape[-2:])[:, _repeated(found.shape[-2], side)][
        ..., _repeated(found.shape[-1], side)
    ]
    return Thumbs(np.ascontiguousarray(found.to("cpu", torch.float32).numpy(), "<f4"), exact)


def _from_samples(problem: Problem, cells: Heatmap) -> Tensor:
    """The same from as many rows of each cell as there is time for."""
    strips, widths = (cells.edges(length).diff() for length in problem.size[:2])
    each = min(int(strips.max()), max(1, EXACT // (len(strips) * math.prod(problem.lead) * problem.size.m)))
    index = sampled(strips, each).to(problem.size.device)
    out = torch.zeros((*problem.lead, len(index), len(widths)), dtype=problem.dtype, device=problem.size.device)
    step = max(1, BOX // problem.size.m)
    buffers = Buffers(problem)
    for cut in head_slices(problem.lead, max(1, BOX // (step * problem.size.m))):
        for low in range(0, len(index), step):
            rows = Span(0, 0, index[low : low + step])
            tile = problem.tile(cut, rows)
            if tile is None:
                continue
            weights = whole_rows(problem, tile, buffers).weights
            target = out[(*cut, slice(low, low + step))]
            for first, last, start in runs(tile.cols):
                _add_columns(target, weights[..., first:last], start, cells.edges(problem.size.m).tolist())
    lines = out.unflatten(-2, (len(strips), each)).mean(-2)
    return lines / widths.to(lines)


def _add_columns(target: Tensor, weights: Tensor, start: int, edges: list[int]) -> None:
    """Add columns from `start` on to the cells that they fall into."""
    stop = start + weights.shape[-1]
    for number, (low, high) in enumerate(pairwise(edges)):
        first, last = max(low, start), min(high, stop)
        if first < last:
            target[..., number] += weights[..., first - start : last - start].sum(-1)


def _repeated(cells: int, side: int) -> Tensor:
    """The cell that each pixel shows."""
    return torch.arange(side) * cells // side
