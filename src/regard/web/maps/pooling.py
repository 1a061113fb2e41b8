"""Cells pooled into squares, and two questions for a pass: every square, and the statistic of every row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from regard.engine.reducers import Block, LogSumExp, Reducer
from regard.normalisers import Normaliser
from regard.operands import NEVER, Size, Span

GOLDEN = 0.6180339887498949  # its multiples fill the unit interval evenly, in no pattern
SUM, MAX = 0, 1  # what `Squares` keeps of each square, in this order


def pixels(length: int, side: int) -> int:
    """How many squares lie side by side; the last one may be cut."""
    return -(-length // side)


def cells(low: int, high: int, side: int, length: int) -> Tensor:
    """How many positions there are in pixels low to high."""
    edges = (torch.arange(low, high + 1) * side).clamp_max(length)
    return edges.diff()


def pooled(x: Tensor, dim: int, start: int, side: int, pool: int) -> Tensor:
    """Sums or maxima over the pixels that positions `start` and on fall into, along a dimension (-1 or -2)."""
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
    found = [part.amax(dim) if pool == MAX else part.sum(dim) for part in parts]
    return found[0] if len(found) == 1 else torch.cat(found, dim)


def square(x: Tensor, rows: int, cols: int, side: int, pool: int) -> Tensor:
    """A block that begins at (rows, cols), in pixels. Rows go first: they add up whole vectors."""
    return pooled(pooled(x, -2, rows, side, pool), -1, cols, side, pool)


def sampled(strips: Tensor, each: int) -> Tensor:
    """Positions, `each` from every strip of the given lengths, spread out but not at even distances.

    A pattern could hide between even ones. The same at every call.
    """
    shares = (torch.arange(strips.numel() * each, dtype=torch.float64) * GOLDEN % 1).reshape(-1, each)
    shares = (torch.arange(each) + shares) / each
    starts = (strips.cumsum(0) - strips).unsqueeze(-1)
    return (starts + (shares * strips.unsqueeze(-1)).long()).flatten()


@dataclass
class Squares(Reducer[Tensor]):
    """Sum and maximum of every square of side x side cells, those at the edges cut: (..., 2, rows, cols) of squares."""

    side: int

    by_row = False

    def empty(self, lead: tuple[int, ...], rows: int, size: Size, dtype: torch.dtype) -> Tensor:
        del rows
        shape = (*lead, 2, pixels(size.n, self.side), pixels(size.m, self.side))
        return torch.zeros(shape, dtype=dtype, device=size.device)

    def step(self, state: Tensor, block: Block) -> Tensor:
        first = block.rows.start // self.side
        for pool in (SUM, MAX):
            strips = pooled(block.weights, -2, block.rows.start, self.side, pool)
            target = state.select(-3, pool).narrow(-2, first, strips.shape[-2])
            for low, high, start in runs(block.cols):
                found = pooled(strips[..., low:high], -1, start, self.side, pool)
                part = target.narrow(-1, start // self.side, found.shape[-1])
                part.copy_(torch.maximum(part, found)) if pool == MAX else part.add_(found)
        return state

    def merge(self, one: Tensor, two: Tensor) -> Tensor:
        sums = one.select(-3, SUM) + two.select(-3, SUM)
        return torch.stack([sums, torch.maximum(one.select(-3, MAX), two.select(-3, MAX))], -3)

    def finish(self, state: Tensor) -> Tensor:
        return state


def runs(cols: Span) -> Iterator[tuple[int, int, int]]:
    """(first column, last + 1, its position) for each run of columns that lie side by side."""
    if cols.index is None:
        yield 0, len(cols), cols.start
        return
    breaks = (cols.index.diff() != 1).nonzero().flatten() + 1
    edges = [0, *breaks.tolist(), len(cols)]
    for low, high in pairwise(edges):
        yield low, high, int(cols.index[low])


class Statistic(Reducer[Tensor]):
    """The one number from which all weights of a row follow, (..., n); -inf for a row that sees nothing."""

    def __init__(self, normaliser: Normaliser) -> None:
        self.normaliser = normaliser
        self.parts = LogSumExp()

    def empty(self, lead: tuple[int, ...], rows: int, size: Size, dtype: torch.dtype) -> Tensor:
        return self.parts.empty(lead, rows, size, dtype)

    def step(self, state: Tensor, block: Block) -> Tensor:
        return self.merge(state, self.first(block))

    def first(self, block: Block) -> Tensor:
        if block.partial:  # only a statistic that merges is ever asked for in parts
            return self.normaliser.statistic(block.scores, block.cols)
        best, weight = block.peak
        return torch.where(best == NEVER, NEVER, self.normaliser.statistic_of(best, weight))

    def merge(self, one: Tensor, two: Tensor) -> Tensor:
        return self.parts.merge(one, two)

    def finish(self, state: Tensor) -> Tensor:
        return state
