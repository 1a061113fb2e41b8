"""A strip of rows as squares, by the cheapest way that its numbers allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import torch
from torch import Tensor

from regard.engine.fold import Buffers, survey_tiles
from regard.engine.reducers import Block, Reducer
from regard.operands import NEVER, Span
from regard.web.maps.head import BAND, CAP, Head, in_range
from regard.web.maps.pooling import MAX, SUM, Squares, Statistic, pixels, pooled
from regard.web.server.priority import TURNS

Cancelled = Callable[[], bool]
Item = TypeVar("Item")


class Stopped(Exception):  # noqa: N818
    """Whoever asked has had enough."""


class Strips:
    """What one worker of a pass needs: where it writes, and memory that it uses again."""

    def __init__(self, head: Head, side: int, state: Tensor, statistic: Tensor, told: list[bool]) -> None:
        self.head, self.squares = head, Squares(side)
        self.state, self.statistic, self.told = state, statistic, told
        self.buffers = Buffers(head.problem)

    def fill(self, rows: range, stopped: Cancelled) -> bool:
        """Write the squares of a strip, and the statistics of its rows; False if it was stopped before the end."""
        side = self.squares.side
        self.state[..., rows.start // side : pixels(rows.stop, side), :] = 0  # away with what a stopped worker left
        self.statistic[..., rows.start : rows.stop] = NEVER
        try:
            for low in range(rows.start, rows.stop, BAND):
                self._band(range(low, min(low + BAND, rows.stop)), stopped)
        except Stopped:
            return False
        return True

    def _band(self, rows: range, stopped: Cancelled) -> None:
        if self.head.pointwise and self.told[rows.start // BAND]:
            self._from_statistics(rows, stopped)
        elif not self.head.softmax or not self._from_exponentials(rows, stopped):
            self._from_whole_rows(rows, stopped)

    def _from_statistics(self, rows: range, stopped: Cancelled) -> None:
        """Weights are known from their scores alone, box by box."""
        for cols, part in _watched(self.head.across(rows, self.buffers), stopped):
            weights = part[None, None]
            block = Block(weights, weights, Span(rows.start, rows.stop), cols, self.head.size, partial=True)
            self.squares.step(self.state, block)

    def _from_exponentials(self, rows: range, stopped: Cancelled) -> bool:
        """exp(score) box by box with the columns pooled, divided by the sum of the row when that is known."""
        head, side = self.head, self.squares.side
        found = head.statistic.new_zeros(2, len(rows), pixels(head.m, side))
        for cols, part in _watched(head.across(rows, self.buffers, head.nothing), stopped):
            for pool in (SUM, MAX):
                cells = pooled(part, -1, cols.start, side, pool)
                _merge(found[pool].narrow(-1, cols.start // side, cells.shape[-1]), cells, pool)
        total = found[SUM].sum(-1, dtype=torch.float64)
        if not in_range(total, found.dtype):
            return False
        found *= total.reciprocal().to(found.dtype).unsqueeze(-1)
        for pool in (SUM, MAX):
            cells = pooled(found[pool], -2, rows.start, side, pool)
            _merge(self.state[0, 0, pool].narrow(0, rows.start // side, cells.shape[0]), cells, pool)
        self.statistic[0, 0, rows.start : rows.stop] = total.log()
        return True

    def _from_whole_rows(self, rows: range, stopped: Cancelled) -> None:
        """The way that always goes."""
        asked: list[Reducer[Tensor]] = [self.squares]
        if self.head.pointwise:
            asked.append(Statistic(self.head.problem.spec.normaliser))
        tiles = _watched(self.head.tiles(rows, self.squares.side), stopped)
        survey_tiles(self.head.problem, asked, tiles, CAP, [self.state, self.statistic][: len(asked)])


def _merge(target: Tensor, cells: Tensor, pool: int) -> None:
    target.copy_(torch.maximum(target, cells)) if pool == MAX else target.add_(cells)


def _watched(items: Iterable[Item], stopped: Cancelled) -> Iterator[Item]:
    """One after the other, with a look around before each."""
    for item in items:
        yield item
        if stopped():
            raise Stopped
        TURNS.give_way()
