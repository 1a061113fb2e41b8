"""One head's n x m weights as a pyramid of tiles, n x m never built.

A pixel of level z is the mean or the maximum of 2^z x 2^z cells, those at the edges cut. Fine levels are made tile by
tile from the statistics of the rows; coarse levels come from one pass over the head, and until that is done from
sampled rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.engine.questions import unseen
from regard.errors import ChoiceError
from regard.operands import NEVER
from regard.tracing import plain_dtypes
from regard.web.maps.cache import Cache
from regard.web.maps.head import BAND, Head
from regard.web.maps.pooling import MAX, SUM, cells, pixels, sampled
from regard.web.maps.refine import Cancelled, Pass, never
from regard.web.maps.thumbnails import Entry, Thumbs, thumbs
from regard.web.server.priority import awaited
from regard.weights import Weights

__all__ = ["TILE", "Cache", "Map", "Picture", "Thumbs", "thumbs"]

TILE = 256  # pixels of a tile's side
FINEST_COARSE = 5  # up to level 4, 16 x 16 cells a pixel, a tile is made on its own
BASE = 1 << 23  # pixels that the pass keeps at most, of each pool
SAMPLE = 1 << 23  # cells that an estimate may look at
PEEK = 32  # rows from which the largest weight is guessed when nothing else is known
POOLS = {"mean": SUM, "max": MAX}


class Picture(NamedTuple):
    """Pixels, and whether they are what the weights say or an estimate from sampled rows."""

    values: np.ndarray  # (rows, cols) float32
    exact: bool


class Map:
    """The weights of one head, to be looked at from any distance.

    weights (..., n, m); heads are the last leading dimension where there are two or more, and `batch` counts those
    before. lse (n,): the log-sum-exp of every row if somebody has it, as a recording does.

    >>> import torch, regard as rg
    >>> tokens = torch.randn(1, 2, 600, 8)
    >>> one = Map(rg.Weights(tokens, tokens), batch=0, head=1)
    >>> one.tile("mean", level=2, row=0, column=0).values.shape
    (150, 150)
    """

    def __init__(self, weights: Weights, batch: int = 0, head: int = 0, lse: Tensor | None = None) -> None:
        self._weights = weights
        with torch.no_grad(), plain_dtypes():
            self._head = Head(weights, batch, head, lse)
        self.n, self.m = self._head.n, self._head.m
        self.levels = levels(max(self.n, self.m))
        base = _base(self.n, self.m)
        self._pass = Pass(self._head, 1 << base) if base < self.levels else None
        self._largest: float | None = None
        self._empty: list[tuple[int, int]] | None = None

    @classmethod
    def of_entry(cls, entry: Entry, batch: int, head: int) -> Map:
        """Of one head of a recorded call, for which a file reads that head alone."""
        if len(entry.shape) != 4:
            return cls(entry.load().weights(), batch, head)
        call = entry.load(head)
        if not 0 <= batch < call.shape[0]:
            raise ChoiceError(f"batch={batch} is not among the {call.shape[0]} there are")
        return cls(call.weights(), batch, 0, None if call.lse is None else call.lse[batch, 0])

    @property
    def exact(self) -> bool:
        """Whether every tile is."""
        return self._pass is None or all(self._pass.done)

    @property
    def progress(self) -> float:
        """The share of the coarse levels that is exact."""
        return 1.0 if self._pass is None else self._pass.progress

    @property
    def bytes(self) -> int:
        """What it holds in memory."""
        return self._head.bytes + (0 if self._pass is None else self._pass.state.nbytes)

    def refine(self, cancelled: Cancelled = never, workers: int | None = None) -> Iterator[float]:
        """Make the coarse levels exact, yielding the share that is. Stops between blocks, and may be asked again."""
        self._check()
        if self._pass is None:
            yield 1.0
            return
        with torch.no_grad(), plain_dtypes():
            yield from self._pass.run(cancelled, workers)

    @awaited
    def tile(self, pool: str, level: int, row: int, column: int) -> Picture:
        """256 x 256 pixels, fewer at the edges."""
        self._check()
        if pool not in POOLS:
            raise ChoiceError(f"tiles are pooled by 'mean' or 'max', not by {pool!r}")
        if not 0 <= level < self.levels:
            raise ChoiceError(f"level={level} is not among the {self.levels} of a map of {self.n} x {self.m}")
        side = 1 << level
        rows = _part("row", row, self.n, side)
        cols = _part("column", column, self.m, side)
        if self._pass is None or side < self._pass.side:
            found, exact = self._head.squares(rows, cols, side, POOLS[pool]), True
        elif self._pass.covers(rows.start, rows.stop):
            found, exact = self._pass.squares(rows, cols, side, POOLS[pool]), True
        else:
            found, exact = self._estimate(self._pass, rows, cols, side, POOLS[pool]), False
        if pool == "mean":
            found = found / _cells(rows, side, self.n).unsqueeze(-1) / _cells(cols, side, self.m)
        if pool == "max" or side == 1:
            self._seen(found)
        return Picture(_plain(found), exact)

    @awaited
    def row(self, i: int) -> np.ndarray:
        """The weights of a query, (m,)."""
        self._check()
        return _plain(self._head.rows(_among("row", i, self.n), i + 1)[0])

    @awaited
    def column(self, j: int) -> np.ndarray:
        """What a key gets from every query, (n,)."""
        self._check()
        j = _among("column", j, self.m)
        return _plain(self._head.squares(range(self.n), range(j, j + 1), 1, SUM)[:, 0])

    @awaited
    def top(self, i: int, k: int = 8) -> tuple[list[int], list[float]]:
        """The keys with the largest weights of a query, largest first, and their weights; only those that it sees."""
        self._check()
        if not 1 <= k <= max(self.m, 1):
            raise ChoiceError(f"k={k} is not from 1 to the number of keys, {self.m}")
        return self._head.top(_among("row", i, self.n), k)

    @awaited
    def info(self) -> dict[str, Any]:
        """What a viewer needs to begin, as JSON takes it."""
        self._check()
        if self._largest is None:
            self._peek()
        return {
            "n": self.n,
            "m": self.m,
            "tile": TILE,
            "levels": self.levels,
            "exact": self.exact,
            "progress": self.progress,
            "max": self._known_max(),
            "empty": [list(run) for run in self._empty_rows()],
        }

    # Coarse levels

    def _estimate(self, behind: Pass, rows: range, cols: range, side: int, pool: int) -> Tensor:
        """From some rows of every strip of pixels; strips that the pass has done are as they are."""
        strips = _cells(rows, side, self.n)
        each = min(side, max(1, SAMPLE // (self.m * len(strips))))
        index = (sampled(strips, each) + rows.start).to(self._head.size.device)
        lines = self._head.lines(index, cols, side, pool).unflatten(0, (len(strips), each))
        found = lines.amax(1) if pool == MAX else lines.mean(1) * strips.unsqueeze(-1).to(lines)
        for pixel in range(len(strips)):
            low = rows.start + pixel * side
            high = min(low + side, rows.stop)
            if behind.covers(low, high):
                found[pixel] = behind.squares(range(low, high), cols, side, pool)[0]
        return found

    # What is known

    def _check(self) -> None:
        """Refuse if the caller's tensors have changed: what was found before would be of another map."""
        self._weights._check_fresh()  # noqa: SLF001

    def _peek(self) -> None:
        if self.n and self.m:
            index = torch.linspace(0, self.n - 1, min(PEEK, self.n)).long().unique()
            self._seen(self._head.lines(index.to(self._head.size.device), range(self.m), self.m, MAX))

    def _seen(self, weights: Tensor) -> None:
        largest = float(weights.nan_to_num(0.0).max()) if weights.numel() else 0.0
        self._largest = max(largest, self._largest or 0.0)

    def _known_max(self) -> float | None:
        if self._pass is not None and any(self._pass.done):
            self._seen(self._pass.state[0, 0, MAX])
        return self._largest

    def _empty_rows(self) -> list[tuple[int, int]]:
        """Runs of rows that see nothing; where scores themselves may be -inf, among those that have been looked at."""
        if self._empty is not None:
            return self._empty
        head = self._head
        if not head.problem.spec.score.compact:
            self._empty = _runs(unseen(head.problem)[0, 0])
            return self._empty
        known = torch.tensor(head.known).repeat_interleave(BAND)[: self.n]
        found = _runs(known & (head.statistic[0, 0].cpu() == NEVER))
        if all(head.known):
            self._empty = found
        return found


def levels(length: int) -> int:
    """As many as it takes until the whole map is one tile."""
    count = 1
    while pixels(length, 1 << (count - 1)) > TILE:
        count += 1
    return count


def _base(n: int, m: int) -> int:
    """The finest level that comes from the pass."""
    level = FINEST_COARSE
    while pixels(n, 1 << level) * pixels(m, 1 << level) > BASE:
        level += 1
    return level


def _part(name: str, number: int, length: int, side: int) -> range:
    """The positions under a tile."""
    count = pixels(pixels(length, side), TILE)
    if not 0 <= number < count:
        raise ChoiceError(f"{name}={number} is not among the {count} tiles that there are at {side} cells a pixel")
    low = number * TILE * side
    return range(low, min(low + TILE * side, length))


def _cells(span: range, side: int, length: int) -> Tensor:
    return cells(span.start // side, pixels(span.stop, side), side, length)


def _among(name: str, number: int, count: int) -> int:
    if not 0 <= number < count:
        raise ChoiceError(f"{name}={number} is not among the {count} there are")
    return number


def _runs(marks: Tensor) -> list[tuple[int, int]]:
    """[start, stop) of each run of True."""
    padded = torch.nn.functional.pad(marks.cpu().to(torch.int8), (1, 1))
    edges = padded.diff().nonzero().flatten().tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def _plain(tensor: Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.to("cpu", torch.float32).numpy(), "<f4")
