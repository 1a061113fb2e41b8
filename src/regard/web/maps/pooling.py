"""Cells pooled into square pixels, and two reducers for a pass over a head: pooled pixels and row statistics.

A pixel is a square of side x side cells; pixels at the right and bottom edges may be cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.engine.reducers import Block, LogSumExp, Reducer
from regard.normalisers import Normaliser
from regard.operands import NEVER, Size, Span

GOLDEN_RATIO = 0.6180339887498949  # its multiples modulo 1 fill the unit interval evenly, without a pattern
SUM, MAX = 0, 1  # the two poolings, in the order in which `SumMaxPooling` stores them
Pixels = Float[Tensor, "*lead 2 pixel_rows pixel_cols"]
Statistic = Float[Tensor, "*lead queries"]


def n_pixels(length: int, side: int) -> int:
    """Number of pixels along an axis of `length` cells."""
    return -(-length // side)


def pixel_lengths(cells: range, side: int, length: int) -> Int[Tensor, " pixels"]:
    """Number of cells in each pixel that these cells fall into, along an axis of `length` cells."""
    edges = (torch.arange(cells.start // side, n_pixels(cells.stop, side) + 1) * side).clamp_max(length)
    return edges.diff()


def pool_axis(
    x: Float[Tensor, "*batch rows cols"], dim: int, start: int, side: int, pool: int
) -> Float[Tensor, "*batch pooled_rows pooled_cols"]:
    """Sum or maximum of each pixel along an axis (-1 or -2); the first cell has position `start`."""
    if side == 1:
        return x
    length = x.shape[dim]
    head = min(-start % side, length)
    body = (length - head) // side * side
    parts = [x.narrow(dim, 0, head).unsqueeze(dim - 1)] if head else []
    if body:
        parts.append(x.narrow(dim, head, body).unflatten(dim, (body // side, side)))
    if head + body < length:
        parts.append(x.narrow(dim, head + body, length - head - body).unsqueeze(dim - 1))
    pixels = [part.amax(dim) if pool == MAX else part.sum(dim) for part in parts]
    return pixels[0] if len(pixels) == 1 else torch.cat(pixels, dim)


def pool_2d(
    x: Float[Tensor, "*batch rows cols"], row: int, column: int, side: int, pool: int
) -> Float[Tensor, "*batch pixel_rows pixel_cols"]:
    """Sum or maximum of each pixel of a block that begins at (row, column)."""
    return pool_axis(pool_axis(x, -2, row, side, pool), -1, column, side, pool)  # rows first: whole vectors are added


def to_float32(tensor: Float[Tensor, "*shape"]) -> np.ndarray:
    """A contiguous array of float32, little-endian."""
    return np.ascontiguousarray(tensor.to("cpu", torch.float32).numpy(), "<f4")


def add_pixels(target: Float[Tensor, "*shape"], pixels: Float[Tensor, "*shape"], pool: int) -> None:
    """Pool pixels into those that are there already, in place."""
    target.copy_(torch.maximum(target, pixels)) if pool == MAX else target.add_(pixels)


def sample_rows(strips: Int[Tensor, " strips"], each: int) -> Int[Tensor, " rows"]:
    """Positions of `each` rows from every strip of the given lengths; the same at every call.

    Distances are uneven, because a pattern in the weights could hide between rows at even distances.
    """
    offsets = (torch.arange(strips.numel() * each, dtype=torch.float64) * GOLDEN_RATIO % 1).reshape(-1, each)
    offsets = (torch.arange(each) + offsets) / each
    starts = (strips.cumsum(0) - strips).unsqueeze(-1)
    return (starts + (offsets * strips.unsqueeze(-1)).long()).flatten()


@dataclass
class SumMaxPooling(Reducer[Tensor]):
    """Sum and maximum of every pixel: (..., 2, pixel rows, pixel columns)."""

    side: int

    by_row = False

    def empty(self, lead: tuple[int, ...], rows: int, size: Size, dtype: torch.dtype) -> Pixels:
        del rows
        shape = (*lead, 2, n_pixels(size.n, self.side), n_pixels(size.m, self.side))
        return torch.zeros(shape, dtype=dtype, device=size.device)

    def step(self, state: Pixels, block: Block) -> Pixels:
        first = block.rows.start // self.side
        for pool in (SUM, MAX):
            strips = pool_axis(block.weights, -2, block.rows.start, self.side, pool)
            target = state.select(-3, pool).narrow(-2, first, strips.shape[-2])
            for low, high, start in contiguous_runs(block.cols):
                pixels = pool_axis(strips[..., low:high], -1, start, self.side, pool)
                add_pixels(target.narrow(-1, start // self.side, pixels.shape[-1]), pixels, pool)
        return state

    def merge(self, one: Pixels, two: Pixels) -> Pixels:
        sums = one.select(-3, SUM) + two.select(-3, SUM)
        return torch.stack([sums, torch.maximum(one.select(-3, MAX), two.select(-3, MAX))], -3)

    def finish(self, state: Pixels) -> Pixels:
        return state


def contiguous_runs(cols: Span) -> Iterator[tuple[int, int, int]]:
    """(first, last + 1, position of the first) for each run of consecutive columns."""
    if cols.index is None:
        yield 0, len(cols), cols.start
        return
    breaks = (cols.index.diff() != 1).nonzero().flatten() + 1
    edges = [0, *breaks.tolist(), len(cols)]
    for low, high in pairwise(edges):
        yield low, high, int(cols.index[low])


class RowStatistic(Reducer[Tensor]):
    """The normaliser's statistic of each row, from which all its weights follow; -inf for a row that sees nothing."""

    def __init__(self, normaliser: Normaliser) -> None:
        self.normaliser = normaliser
        self.log_sums: LogSumExp = LogSumExp()

    def empty(self, lead: tuple[int, ...], rows: int, size: Size, dtype: torch.dtype) -> Statistic:
        return self.log_sums.empty(lead, rows, size, dtype)

    def step(self, state: Statistic, block: Block) -> Statistic:
        return self.merge(state, self.first(block))

    def first(self, block: Block) -> Statistic:
        if block.partial:  # only a statistic that merges is ever computed in parts
            return self.normaliser.statistic(block.scores, block.cols)
        best, weight = block.peak
        return torch.where(best == NEVER, NEVER, self.normaliser.statistic_from_weight(best, weight))

    def merge(self, one: Statistic, two: Statistic) -> Statistic:
        return self.log_sums.merge(one, two)

    def finish(self, state: Statistic) -> Statistic:
        return state
