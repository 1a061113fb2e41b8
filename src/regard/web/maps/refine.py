"""One exact pass over a head, for the coarse levels of its map: a single coarse tile would cost as much.

A head is cut into strips of rows, each for one worker. A strip has one or more bands of BAND rows.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from threading import Condition
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.engine.fold import Buffers, fold_tiles
from regard.engine.reducers import Block, Reducer
from regard.engine.threads import daemon_workers
from regard.operands import NEVER, Span
from regard.web.maps.head import BAND, MAX_ROW_CELLS, HeadWeights, are_safe_sums
from regard.web.maps.pooling import (
    MAX,
    SUM,
    Pixels,
    RowStatistic,
    SumMaxPooling,
    add_pixels,
    n_pixels,
    pool_2d,
    pool_axis,
)
from regard.web.server.priority import GATE

REPORT_SECONDS = 0.05  # between two reports of progress
Cancelled = Callable[[], bool]
Item = TypeVar("Item")


def never() -> bool:
    """Never cancel."""
    return False


class ExactPass:
    """Sum and maximum of all pixels of a head, side x side cells each, computed strip by strip.

    Each strip is written by one worker alone, so neither their order nor the number of workers changes a bit: a pass
    that was cancelled continues where it stopped.
    """

    def __init__(self, head: HeadWeights, side: int) -> None:
        self.head: HeadWeights = head
        self.side: int = side
        self.height: int = max(BAND, side)  # rows of a strip
        self.pixels: Pixels = SumMaxPooling(side).empty((1, 1), 0, head.size, head.problem.dtype)
        self.statistic: Tensor = torch.full_like(head.statistic, NEVER)
        self._known_bands = list(head.known_bands)  # a copy: with later ones the bits would depend on timing
        self.n_strips: int = n_pixels(head.n, self.height)
        self.done: list[bool] = [False] * self.n_strips
        self._queue = deque(range(self.n_strips))
        self._changed = Condition()
        self._error: BaseException | None = None

    @property
    def progress(self) -> float:
        """Share of the strips that are done, 0 to 1."""
        return sum(self.done) / self.n_strips if self.n_strips else 1.0

    def covers(self, low: int, high: int) -> bool:
        """True if rows low to high are done."""
        return all(self.done[low // self.height : n_pixels(high, self.height)])

    def pooled_box(self, rows: range, cols: range, side: int, pool: int) -> Float[Tensor, "pixel_rows pixel_cols"]:
        """A box of rows that are done, pooled into larger pixels by sum or maximum."""
        down, across = (slice(span.start // self.side, n_pixels(span.stop, self.side)) for span in (rows, cols))
        part = self.pixels[0, 0, pool, down, across]
        return pool_2d(part.double() if pool == SUM else part, 0, 0, side // self.side, pool)

    def run(self, cancelled: Cancelled = never, workers: int | None = None) -> Iterator[float]:
        """Compute the strips that are left and yield the progress. Several calls may run at once and share the work."""
        count = min(workers or cores(), len(self._queue))
        stop = [False]
        with daemon_workers(lambda: self._work(lambda: stop[0] or cancelled()), count) as threads:
            try:
                while not all(self.done) and not cancelled():
                    yield self.progress
                    with self._changed:
                        self._changed.wait_for(lambda: all(self.done) or self._error, REPORT_SECONDS)
                    if self._error is not None:
                        break
                    if not any(thread.is_alive() for thread in threads) and self._queue:
                        break  # another call was cancelled, and its strips are left for a later one
            finally:
                stop[0] = True
        error, self._error = self._error, None
        if error is not None:
            raise error
        yield self.progress

    @torch.no_grad()
    def _work(self, stopped: Cancelled) -> None:
        worker = BandWorker(self.head, self.side, self.pixels, self.statistic, self._known_bands)
        while not stopped() and self._queue:
            try:
                strip = self._queue.popleft()
            except IndexError:
                return
            rows = range(strip * self.height, min((strip + 1) * self.height, self.head.n))
            finished = False
            try:
                finished = worker.fill_strip(rows, stopped)
            except BaseException as error:  # noqa: BLE001  raised again by `run`
                self._error = error
                return
            finally:
                if finished:
                    self._share_statistic(rows)
                with self._changed:
                    self.done[strip] = finished
                    if not finished:
                        self._queue.appendleft(strip)
                    self._changed.notify_all()

    def _share_statistic(self, rows: range) -> None:
        """Let the head use the statistics of a strip that is done."""
        head = self.head
        if head.pointwise and not all(head.known_bands[rows.start // BAND : n_pixels(rows.stop, BAND)]):
            head.set_statistic(rows, self.statistic[0, 0, rows.start : rows.stop])


def cores() -> int:
    """Number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class PassStopped(Exception):  # noqa: N818  it is no error
    """A worker was asked to stop in the middle of a strip."""


class BandWorker:
    """One worker of an exact pass: it writes the pixels and row statistics of a strip, band by band."""

    def __init__(
        self,
        head: HeadWeights,
        side: int,
        pixels: Float[Tensor, "1 1 2 pixel_rows pixel_cols"],
        statistic: Float[Tensor, "1 1 queries"],
        known_bands: list[bool],
    ) -> None:
        self.head: HeadWeights = head
        self.pooling: SumMaxPooling = SumMaxPooling(side)
        self.pixels: Tensor = pixels
        self.statistic: Tensor = statistic
        self.known_bands: list[bool] = known_bands
        self.buffers: Buffers = Buffers(head.problem)

    def fill_strip(self, rows: range, stopped: Cancelled) -> bool:
        """Write the pixels of a strip and the statistics of its rows; False if it was stopped before the end."""
        side = self.pooling.side
        self.pixels[..., rows.start // side : n_pixels(rows.stop, side), :] = 0  # a stopped worker may have left some
        self.statistic[..., rows.start : rows.stop] = NEVER
        try:
            for low in range(rows.start, rows.stop, BAND):
                self._fill_band(range(low, min(low + BAND, rows.stop)), stopped)
        except PassStopped:
            return False
        return True

    def _fill_band(self, rows: range, stopped: Cancelled) -> None:
        """Write one band by the cheapest of three methods that is accurate for it."""
        if self.head.pointwise and self.known_bands[rows.start // BAND]:
            self._from_statistics(rows, stopped)
        elif not self.head.is_softmax or not self._from_exponentials(rows, stopped):
            self._from_whole_rows(rows, stopped)

    def _from_statistics(self, rows: range, stopped: Cancelled) -> None:
        """Compute weights box by box from their scores and the known statistics."""
        for cols, part in _stoppable(self.head.boxes_of_rows(rows, self.buffers), stopped):
            weights = part[None, None]
            block = Block(weights, weights, Span(rows.start, rows.stop), cols, self.head.size, partial=True)
            self.pooling.step(self.pixels, block)

    def _from_exponentials(self, rows: range, stopped: Cancelled) -> bool:
        """Pool exp(score) box by box and divide by the sums of the rows at the end; False if a sum loses digits."""
        head, side = self.head, self.pooling.side
        pooled = head.statistic.new_zeros(2, len(rows), n_pixels(head.m, side))
        for cols, part in _stoppable(head.boxes_of_rows(rows, self.buffers, head.zero_statistic), stopped):
            for pool in (SUM, MAX):
                pixels = pool_axis(part, -1, cols.start, side, pool)
                add_pixels(pooled[pool].narrow(-1, cols.start // side, pixels.shape[-1]), pixels, pool)
        total = pooled[SUM].sum(-1, dtype=torch.float64)
        if not are_safe_sums(total, pooled.dtype):
            return False
        pooled *= total.reciprocal().to(pooled.dtype).unsqueeze(-1)
        for pool in (SUM, MAX):
            pixels = pool_axis(pooled[pool], -2, rows.start, side, pool)
            add_pixels(self.pixels[0, 0, pool].narrow(0, rows.start // side, pixels.shape[0]), pixels, pool)
        self.statistic[0, 0, rows.start : rows.stop] = total.log()
        return True

    def _from_whole_rows(self, rows: range, stopped: Cancelled) -> None:
        """Normalise whole rows, which is always accurate."""
        reducers: list[Reducer[Tensor]] = [self.pooling]
        if self.head.pointwise:
            reducers.append(RowStatistic(self.head.problem.spec.normaliser))
        tiles = _stoppable(self.head.row_tiles(rows, self.pooling.side), stopped)
        fold_tiles(self.head.problem, reducers, tiles, MAX_ROW_CELLS, [self.pixels, self.statistic][: len(reducers)])


def _stoppable(items: Iterable[Item], stopped: Cancelled) -> Iterator[Item]:
    """The items, with a pause for foreground work after each; raises PassStopped once `stopped()` is true."""
    for item in items:
        yield item
        if stopped():
            raise PassStopped
        GATE.pause()
