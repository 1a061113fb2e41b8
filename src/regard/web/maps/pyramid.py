"""The n x m weights of one head as a pyramid of tiles; n x m is never built.

A pixel of level z is the mean or the maximum of 2^z x 2^z cells, fewer at the edges. Tiles of fine levels are computed
one by one from the statistics of their rows. Coarse levels come from one exact pass over the head, and until that is
done from sampled rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.engine.questions import rows_without_keys
from regard.errors import ChoiceError
from regard.operands import NEVER
from regard.tracing import without_autocast
from regard.web.maps.arrays import TILE, ArrayResult
from regard.web.maps.head import BAND, HeadWeights, interactive
from regard.web.maps.pooling import MAX, SUM, n_pixels, pixel_lengths, sample_rows, to_float32
from regard.web.maps.refine import Cancelled, ExactPass, never
from regard.web.maps.thumbnails import Entry
from regard.weights import Weights, matrix_of

FIRST_COARSE_LEVEL = 5  # up to level 4, 16 x 16 cells a pixel, a tile is computed on its own
MAX_PASS_PIXELS = 1 << 23  # pixels that the exact pass keeps, for each pooling
SAMPLED_CELLS = 1 << 23  # cells that an estimate may compute
PEEK_ROWS = 32  # rows from which the largest weight is estimated when nothing else is known
POOLS = {"mean": SUM, "max": MAX}


class AttentionMap:
    """The weights of one head at any scale.

    weights (..., n, m); heads are the last leading dimension where there are two or more, and `batch` counts those
    before. lse (n,): the log-sum-exp of every row if it is known, as in a recording.

    >>> import torch, regard as rg
    >>> tokens = torch.randn(1, 2, 600, 8)
    >>> one = AttentionMap(rg.Weights(tokens, tokens), batch=0, head=1)
    >>> one.tile("mean", level=2, row=0, column=0).values.shape
    (150, 150)
    """

    def __init__(
        self, weights: Weights, batch: int = 0, head: int = 0, lse: Float[Tensor, " queries"] | None = None
    ) -> None:
        self._weights = weights
        with torch.no_grad(), without_autocast():
            self._head = HeadWeights(weights, batch, head, lse)
        self.n: int = self._head.n
        self.m: int = self._head.m
        self.levels: int = n_levels(max(self.n, self.m))
        base = _pass_level(self.n, self.m)
        self._pass = ExactPass(self._head, 1 << base) if base < self.levels else None
        self._largest: float | None = None
        self._empty: list[tuple[int, int]] | None = None

    @classmethod
    def of_entry(cls, entry: Entry, batch: int, head: int) -> AttentionMap:
        """The map of one head of a recorded call; of a file only that head is read."""
        if len(entry.shape) != 4:
            return cls(entry.load().weights(), batch, head)
        call = entry.load(head)
        if not 0 <= batch < call.shape[0]:
            raise ChoiceError(f"batch={batch} is not among the {call.shape[0]} there are")
        return cls(call.weights(), batch, 0, None if call.lse is None else call.lse[batch, 0])

    @property
    def exact(self) -> bool:
        """True if every tile is exact."""
        return self._pass is None or all(self._pass.done)

    @property
    def progress(self) -> float:
        """Fraction of the coarse levels that is exact."""
        return 1.0 if self._pass is None else self._pass.progress

    @property
    def bytes(self) -> int:
        """Bytes that the map holds in memory."""
        return self._head.bytes + (0 if self._pass is None else self._pass.pixels.nbytes)

    def refine(self, cancelled: Cancelled = never, workers: int | None = None) -> Iterator[float]:
        """Make the coarse levels exact and yield the progress. It can be cancelled between blocks and called again."""
        self._check()
        if self._pass is None:
            yield 1.0
            return
        with torch.no_grad(), without_autocast():
            yield from self._pass.run(cancelled, workers)

    @interactive
    def tile(self, pool: str, level: int, row: int, column: int) -> ArrayResult:
        """A tile of 256 x 256 pixels, fewer at the edges."""
        self._check()
        if pool not in POOLS:
            raise ChoiceError(f"tiles are pooled by 'mean' or 'max', not by {pool!r}")
        if not 0 <= level < self.levels:
            raise ChoiceError(f"level={level} is not among the {self.levels} of a map of {self.n} x {self.m}")
        side = 1 << level
        rows = _tile_range("row", row, self.n, side)
        cols = _tile_range("column", column, self.m, side)
        if self._pass is None or side < self._pass.side:
            pixels, exact = self._head.pooled_box(rows, cols, side, POOLS[pool]), True
        elif self._pass.covers(rows.start, rows.stop):
            pixels, exact = self._pass.pooled_box(rows, cols, side, POOLS[pool]), True
        else:
            pixels, exact = self._estimate(self._pass, rows, cols, side, POOLS[pool]), False
        if pool == "mean":
            pixels = pixels / pixel_lengths(rows, side, self.n).unsqueeze(-1) / pixel_lengths(cols, side, self.m)
        if pool == "max" or side == 1:
            self._update_largest(pixels)
        return ArrayResult(to_float32(pixels), exact)

    @interactive
    def row(self, i: int) -> np.ndarray:
        """The weights of query i, (m,)."""
        self._check()
        return to_float32(self._head.rows(_check_index("row", i, self.n), i + 1)[0])

    @interactive
    def column(self, j: int) -> np.ndarray:
        """The weights of key j in every row, (n,)."""
        self._check()
        j = _check_index("column", j, self.m)
        return to_float32(self._head.pooled_box(range(self.n), range(j, j + 1), 1, SUM)[:, 0])

    @interactive
    def top(self, i: int, k: int = 8) -> tuple[list[int], list[float]]:
        """The visible keys with the k largest weights of query i, largest first, and their weights."""
        self._check()
        if not 1 <= k <= max(self.m, 1):
            raise ChoiceError(f"k={k} is not from 1 to the number of keys, {self.m}")
        return self._head.top(_check_index("row", i, self.n), k)

    @interactive
    def info(self) -> dict[str, Any]:
        """Size, levels, progress, largest weight and runs of empty rows, as JSON."""
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

    def _estimate(
        self, exact_pass: ExactPass, rows: range, cols: range, side: int, pool: int
    ) -> Float[Tensor, "pixel_rows pixel_cols"]:
        """Pixels from sampled rows; a line of pixels that the pass has done is exact."""
        strips = pixel_lengths(rows, side, self.n)
        each = min(side, max(1, SAMPLED_CELLS // (self.m * len(strips))))
        index = (sample_rows(strips, each) + rows.start).to(self._head.size.device)
        sampled = self._head.pooled_rows(index, cols, side, pool).unflatten(0, (len(strips), each))
        pixels = sampled.amax(1) if pool == MAX else sampled.mean(1) * strips.unsqueeze(-1).to(sampled)
        for line in range(len(strips)):
            low = rows.start + line * side
            high = min(low + side, rows.stop)
            if exact_pass.covers(low, high):
                pixels[line] = exact_pass.pooled_box(range(low, high), cols, side, pool)[0]
        return pixels

    # Largest weight and empty rows

    def _check(self) -> None:
        """Raise if the caller's tensors have changed: cached statistics would belong to other weights."""
        matrix_of(self._weights).check_fresh()

    def _peek(self) -> None:
        """Estimate the largest weight from a few rows."""
        if self.n and self.m:
            index = torch.linspace(0, self.n - 1, min(PEEK_ROWS, self.n)).long().unique()
            self._update_largest(self._head.pooled_rows(index.to(self._head.size.device), range(self.m), self.m, MAX))

    def _update_largest(self, weights: Float[Tensor, "*shape"]) -> None:
        largest = float(weights.nan_to_num(0.0).max()) if weights.numel() else 0.0
        self._largest = max(largest, self._largest or 0.0)

    def _known_max(self) -> float | None:
        if self._pass is not None and any(self._pass.done):
            self._update_largest(self._pass.pixels[0, 0, MAX])
        return self._largest

    def _empty_rows(self) -> list[tuple[int, int]]:
        """Runs of rows without a visible key; where a score may be -inf, only among rows whose statistic is known."""
        if self._empty is not None:
            return self._empty
        head = self._head
        if not head.problem.spec.score.hides_keys:
            self._empty = _runs(rows_without_keys(head.problem)[0, 0])
            return self._empty
        known = torch.tensor(head.known_bands).repeat_interleave(BAND)[: self.n]
        empty = _runs(known & (head.statistic[0, 0].cpu() == NEVER))
        if all(head.known_bands):
            self._empty = empty
        return empty


def n_levels(length: int) -> int:
    """Number of levels until the whole map is one tile.

    >>> n_levels(256), n_levels(257)
    (1, 2)
    """
    count = 1
    while n_pixels(length, 1 << (count - 1)) > TILE:
        count += 1
    return count


def _pass_level(n: int, m: int) -> int:
    """The finest level that comes from the exact pass."""
    level = FIRST_COARSE_LEVEL
    while n_pixels(n, 1 << level) * n_pixels(m, 1 << level) > MAX_PASS_PIXELS:
        level += 1
    return level


def _tile_range(name: str, number: int, length: int, side: int) -> range:
    """The rows or columns of a tile."""
    count = n_pixels(n_pixels(length, side), TILE)
    if not 0 <= number < count:
        raise ChoiceError(f"{name}={number} is not among the {count} tiles that there are at {side} cells a pixel")
    low = number * TILE * side
    return range(low, min(low + TILE * side, length))


def _check_index(name: str, number: int, count: int) -> int:
    if not 0 <= number < count:
        raise ChoiceError(f"{name}={number} is not among the {count} there are")
    return number


def _runs(marks: Bool[Tensor, " rows"]) -> list[tuple[int, int]]:
    """[start, stop) of each run of True."""
    padded = torch.nn.functional.pad(marks.cpu().to(torch.int8), (1, 1))
    edges = padded.diff().nonzero().flatten().tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))
