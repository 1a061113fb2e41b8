"""Runs of rows for which a mask needs no bias: all of a run see the same keys, or each row one key more than the last.

Packed documents and padding, causal or not, consist of such runs. The fused kernel is called on the keys that a run
sees, without a mask or with its own causal one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Int

from regard.engine.costs import MIN_RUN_ROWS, TILE_OVERHEAD
from regard.masks import Mask
from regard.operands import Size, Span, Tile

SAME, CAUSAL, OTHER = 0, 1, 2  # how a row's keys follow from those of the row above


def row_runs(mask: Mask, lead: tuple[int, ...], size: Size) -> tuple[Tile, ...] | None:
    """The runs as tiles; one with a masked part is causal. None if there are other rows, or too many runs to be fast.

    Rows that see no key are in no run.
    """
    ranges = mask.row_ranges([operand.tensor for operand in mask.operands(lead)], size)
    if ranges is None:
        return None
    start, stop = (edge.long().clamp(0, size.m) for edge in ranges)
    start, stop = torch.where(start < stop, start, 0), torch.where(start < stop, stop, 0)
    own = (1,) * (len(lead) + 1 - start.dim()) + tuple(start.shape[:-1])
    starts, stops = (edge.expand(*own, -1).numpy(force=True) for edge in (start, stop))
    # More work than the whole matrix in one call, which is a tile as well, is not worth it.
    left = math.prod(lead) * size.n * size.m + TILE_OVERHEAD
    tiles: list[Tile] = []
    for index in np.ndindex(own):
        heads = tuple(
            slice(0, whole) if one == 1 else slice(i, i + 1) for i, one, whole in zip(index, own, lead, strict=True)
        )
        count = math.prod(cut.stop - cut.start for cut in heads)
        most = min(left // TILE_OVERHEAD, 2 + size.n // MIN_RUN_ROWS)
        for run in _runs(starts[index], stops[index], size.n, most):
            if run is None:
                return None
            rows, cols, causal = run
            left -= TILE_OVERHEAD + count * len(rows) * len(cols)
            if left < 0:
                return None
            tiles.append(Tile(heads, rows, cols, ((0, len(cols)),) if causal else ()))
    return tuple(tiles)


def _runs(
    start: Int[np.ndarray, " #queries"], stop: Int[np.ndarray, " #queries"], n: int, most: int
) -> Iterator[tuple[Span, Span, bool] | None]:
    """Rows and columns of each run, and True if it is causal; None where the mask has no runs, or more than `most`."""
    if len(start) == 1:  # all rows see the same keys
        if start[0] < stop[0]:
            yield Span(0, n), Span(int(start[0]), int(stop[0])), False
        return
    start_step, stop_step = np.diff(start), np.diff(stop)
    steps = np.where(start_step == 0, np.where(stop_step == 0, SAME, OTHER), OTHER)
    steps[(start_step == 0) & (stop_step == 1) & (stop[:-1] > 0)] = CAUSAL
    steps = np.append(steps, OTHER)  # the last row goes on nowhere
    changes = np.flatnonzero(np.diff(steps, append=SAME)) + 1
    if np.count_nonzero(steps == OTHER) > most:  # each ends a run
        yield None
        return
    row = 0
    while row < len(steps):
        kind, low = steps[row], row
        row = row + 1 if kind == OTHER else int(changes[np.searchsorted(changes, row, side="right")]) + 1
        most -= 1
        if most < 0 or (kind == CAUSAL and stop[low] - start[low] != 1):
            yield None
            return
        if start[low] < stop[low]:
            yield Span(low, row), Span(int(start[low]), int(stop[row - 1])), bool(kind == CAUSAL)
