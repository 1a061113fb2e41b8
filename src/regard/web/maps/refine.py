"""One exact pass over a head for the levels of its map that a tile alone cannot afford."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from threading import Condition, Thread

import torch
from torch import Tensor

from regard.operands import NEVER
from regard.web.maps.bands import Cancelled, Strips
from regard.web.maps.head import BAND, Head
from regard.web.maps.pooling import SUM, Squares, pixels, square

WAIT = 0.05  # seconds between two reports of progress


def never() -> bool:
    return False


class Pass:
    """Squares of side x side cells of the whole head, strip by strip of rows.

    A strip is written by one worker and by nobody else, so the order of strips does not matter, nor who made them: a
    pass that was cancelled goes on where it was, to the same bits.
    """

    def __init__(self, head: Head, side: int) -> None:
        self.head, self.side = head, side
        self.height = max(BAND, side)
        self.state = Squares(side).empty((1, 1), 0, head.size, head.problem.dtype)
        self.statistic = torch.full_like(head.statistic, NEVER)
        self._told = list(head.known)  # what is learned later does not count: the bits would depend on who looked when
        self.strips = pixels(head.n, self.height)
        self.done = [False] * self.strips
        self._left = deque(range(self.strips))
        self._changed = Condition()
        self._error: BaseException | None = None

    @property
    def progress(self) -> float:
        return sum(self.done) / self.strips if self.strips else 1.0

    def covers(self, low: int, high: int) -> bool:
        """Whether these rows are done."""
        return all(self.done[low // self.height : pixels(high, self.height)])

    def squares(self, rows: range, cols: range, side: int, pool: int) -> Tensor:
        """A box of rows that are done as larger squares, sums or maxima."""
        down, across = (slice(span.start // self.side, pixels(span.stop, self.side)) for span in (rows, cols))
        part = self.state[0, 0, pool, down, across]
        return square(part.double() if pool == SUM else part, 0, 0, side // self.side, pool)

    def run(self, cancelled: Cancelled = never, workers: int | None = None) -> Iterator[float]:
        """Do what is left, yielding the share that is done. Several may run at a time: they share the work."""
        count = min(workers or cores(), len(self._left))
        stop = [False]
        threads = [Thread(target=self._work, args=(lambda: stop[0] or cancelled(),), daemon=True) for _ in range(count)]
        own = torch.get_num_threads()
        for thread in threads:
            thread.start()
        try:
            while not all(self.done) and not cancelled():
                yield self.progress
                with self._changed:
                    self._changed.wait_for(lambda: all(self.done) or self._error, WAIT)
                if self._error is not None:
                    break
                if not any(thread.is_alive() for thread in threads) and self._left:
                    break  # somebody else's pass was cancelled, and left some to a later one
        finally:
            stop[0] = True
            for thread in threads:
                thread.join()
            torch.set_num_threads(own)  # torch would give what the workers had to any thread that comes after
        error, self._error = self._error, None
        if error is not None:
            raise error
        yield self.progress

    @torch.no_grad()
    def _work(self, stopped: Cancelled) -> None:
        torch.set_num_threads(1)  # many small steps: to split each between threads costs more than it gains
        strips = Strips(self.head, self.side, self.state, self.statistic, self._told)
        while not stopped() and self._left:
            try:
                strip = self._left.popleft()
            except IndexError:
                return
            rows = range(strip * self.height, min((strip + 1) * self.height, self.head.n))
            finished = False
            try:
                finished = strips.fill(rows, stopped)
            except BaseException as error:  # noqa: BLE001  it is raised again where the pass was asked for
                self._error = error
                return
            finally:
                if finished:
                    self._learn(rows)
                with self._changed:
                    self.done[strip] = finished
                    if not finished:
                        self._left.appendleft(strip)
                    self._changed.notify_all()

    def _learn(self, rows: range) -> None:
        head = self.head
        if head.pointwise and not all(head.known[rows.start // BAND : pixels(rows.stop, BAND)]):
            head.learn(rows, self.statistic[0, 0, rows.start : rows.stop])


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
