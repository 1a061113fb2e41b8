"""The n x m weights of one head: rows, boxes and pooled boxes are computed on demand, n x m is never built."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import wraps
from threading import Lock
from typing import ParamSpec, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.engine.fold import Buffers, fold_tiles, tile_block
from regard.engine.index import ParsedIndex, block, select_heads
from regard.engine.questions import top_reducer
from regard.engine.tiles import Problem
from regard.errors import ChoiceError
from regard.normalisers import Softmax
from regard.operands import NEVER, Axis, Operand, Size, Span, Tile
from regard.tracing import without_autocast
from regard.web.maps.pooling import RowStatistic, add_pixels, contiguous_runs, n_pixels, pool_2d, pool_axis
from regard.web.server.priority import GATE
from regard.weights import Weights, matrix_of

SINGLE_HEAD = (slice(0, 1), slice(0, 1))
BAND = 256  # rows whose statistic is computed together
BANDS_PER_LOCK = 4  # bands that one thread computes before another may
BOX_CELLS = 1 << 20  # cells computed at a time: they stay in the processor's cache
MAX_ROW_CELLS = 4 * BOX_CELLS  # cells of whole rows computed at a time; longer rows are cut
MIN_ROWS = 64  # rows computed together even where they are long: with fewer, a product waits for memory
BOX_COLUMNS = 4096  # columns of a box of whole bands
CHECKED_ROWS = 16  # rows at which a given log-sum-exp is compared with our own
LSE_TOLERANCE = 1e-6  # relative, and twice that absolute: a larger difference would show in the weights

Args = ParamSpec("Args")
Result = TypeVar("Result")


def interactive(query: Callable[Args, Result]) -> Callable[Args, Result]:
    """Decorate a query that a person waits for: background work pauses; no autograd graph, no autocast."""

    @wraps(query)
    def wrapped(*args: Args.args, **options: Args.kwargs) -> Result:
        with GATE.foreground(), torch.no_grad(), without_autocast():
            return query(*args, **options)

    return wrapped


class HeadWeights:
    """The weights of one head, and the statistics (log-sum-exp for softmax) of the rows that were computed.

    statistic (n,): log-sum-exp of every row if somebody has it; it is used if it agrees with the scores.
    """

    def __init__(
        self, weights: Weights, batch: int, head: int, statistic: Float[Tensor, " queries"] | None = None
    ) -> None:
        matrix = matrix_of(weights)
        matrix.check_fresh()
        self.problem: Problem = single_head_problem(matrix.problem(), lead_index(matrix.lead, batch, head))
        self.n: int = self.problem.size.n
        self.m: int = self.problem.size.m
        self.pointwise: bool = self.problem.spec.normaliser.pointwise
        self.is_softmax: bool = isinstance(self.problem.spec.normaliser, Softmax)
        self.statistic: Tensor = torch.full(
            (1, 1, self.n), math.nan, dtype=self.problem.dtype, device=self.problem.size.device
        )
        self.zero_statistic: Tensor = torch.zeros_like(
            self.statistic
        )  # given this statistic, softmax weights are exp(score)
        self.known_bands: list[bool] = [False] * n_pixels(self.n, BAND)
        self._lock = Lock()
        if statistic is not None:
            self._accept_given_statistic(statistic)

    @property
    def size(self) -> Size:
        """Numbers of queries and keys, and the device."""
        return self.problem.size

    @property
    def bytes(self) -> int:
        """Bytes of the tensors that are kept in memory; shared memory counts once."""
        tensors = (self.statistic, *(operand.tensor for operand in self.problem.operands))
        return sum({t.data_ptr(): t.numel() * t.element_size() for t in tensors}.values())

    # Rows

    def rows(self, low: int, high: int, cols: slice | None = None) -> Float[Tensor, "rows cols"]:
        """Weights of rows low to high, computed from whole rows."""
        cols = slice(0, self.m) if cols is None else cols
        picked = ParsedIndex((0, 0, slice(low, high, 1), slice(cols.start, cols.stop, 1)), (1, 1, self.n, self.m))
        return block(self.problem, picked, BOX_CELLS)

    def pooled_rows(
        self, index: Int[Tensor, " rows"], cols: range, side: int, pool: int
    ) -> Float[Tensor, "rows pixels"]:
        """The rows at `index`, with their columns pooled by sum or maximum."""
        out = self.statistic.new_zeros(len(index), n_pixels(len(cols), side))
        known = self.pointwise and all(self.known_bands[band] for band in set((index // BAND).tolist()))
        step, buffers = max(1, 2 * BOX_CELLS // max(len(cols) if known else self.m, 1)), Buffers(self.problem)
        for low in range(0, len(index), step):
            rows, target = Span(0, 0, index[low : low + step]), out[low : low + step]
            if known:
                part = self.box(rows, Span(cols.start, cols.stop), buffers)
                if part is not None:
                    target.copy_(pool_axis(part, -1, 0, side, pool))
            else:
                self._add_whole_rows(rows, cols, side, pool, buffers, target)
        return out

    def _add_whole_rows(
        self, rows: Span, cols: range, side: int, pool: int, buffers: Buffers, out: Float[Tensor, "rows pixels"]
    ) -> None:
        tile = self.problem.tile(SINGLE_HEAD, rows)
        if tile is None:
            return
        weights = tile_block(self.problem, tile, buffers).weights[0, 0]
        for low, high, start in contiguous_runs(tile.cols):
            first, last = max(start, cols.start), min(start + high - low, cols.stop)
            if first < last:
                pixels = pool_axis(weights[:, low + first - start : low + last - start], -1, first, side, pool)
                add_pixels(out.narrow(-1, first // side - cols.start // side, pixels.shape[-1]), pixels, pool)

    def top(self, row: int, k: int) -> tuple[list[int], list[float]]:
        """The keys with the k largest weights of a row, and the weights; keys that are hidden are left out."""
        tile = self.problem.tile(SINGLE_HEAD, Span(row, row + 1))
        if tile is None:
            return [], []
        reducer = top_reducer(self.problem.spec.normaliser, k)
        values, keys = reducer.finish(reducer.first(tile_block(self.problem, tile)))
        visible = keys.flatten() >= 0
        return keys.flatten()[visible].tolist(), values.flatten()[visible].tolist()

    # Boxes

    def pooled_box(self, rows: range, cols: range, side: int, pool: int) -> Float[Tensor, "pixel_rows pixel_cols"]:
        """A box pooled into pixels by sum or maximum. It begins at the edge of a pixel."""
        shape = (n_pixels(len(rows), side), n_pixels(len(cols), side))
        out = torch.zeros(shape, dtype=self.problem.dtype, device=self.size.device)
        for low, left, part in self._boxes(rows, cols, side):
            pixels = pool_2d(part, 0, 0, side, pool)
            target = out[(low - rows.start) // side :, (left - cols.start) // side :]
            target[: pixels.shape[0], : pixels.shape[1]].copy_(pixels)
        return out

    def _boxes(self, rows: range, cols: range, side: int) -> Iterator[tuple[int, int, Float[Tensor, "rows cols"]]]:
        """The visible parts of a box, cut to about BOX_CELLS cells: (first row, first column, weights)."""
        width = min(len(cols), max(side, math.isqrt(BOX_CELLS))) if self.pointwise else len(cols)
        computed = width if self.pointwise else self.m  # columns
        height = max(side, BOX_CELLS // max(computed, 1) // side * side)
        buffers = Buffers(self.problem)
        if self.pointwise:
            self.compute_statistic(rows.start, rows.stop)
        for low in range(rows.start, rows.stop, height):
            high = min(low + height, rows.stop)
            for left in range(cols.start, cols.stop, max(width, 1)):
                right = min(left + width, cols.stop)
                part = (
                    self.box(Span(low, high), Span(left, right), buffers)
                    if self.pointwise
                    else self.rows(low, high, slice(left, right))
                )
                if part is not None:
                    yield low, left, part

    def boxes_of_rows(
        self, rows: range, buffers: Buffers, statistic: Float[Tensor, "1 1 queries"] | None = None
    ) -> Iterator[tuple[Span, Float[Tensor, "rows cols"]]]:
        """The visible boxes of these rows from left to right: (columns, weights). The next box reuses the memory."""
        for left in range(0, self.m, BOX_COLUMNS):
            cols = Span(left, min(left + BOX_COLUMNS, self.m))
            part = self.box(Span(rows.start, rows.stop), cols, buffers, statistic)
            if part is not None:
                yield cols, part

    def box(
        self, rows: Span, cols: Span, buffers: Buffers, statistic: Float[Tensor, "1 1 queries"] | None = None
    ) -> Float[Tensor, "rows cols"] | None:
        """Weights from the rows' statistic, None if all are hidden. The next box reuses the memory."""
        tile = self.problem.box(SINGLE_HEAD, rows, cols)
        if tile is None:
            return None
        first, second = buffers.take((1, 1, len(rows), len(cols)))
        scores = self.problem.scores([tile.cut(o) for o in self.problem.operands], tile, out=first)
        if statistic is self.zero_statistic:
            return torch.exp(scores, out=scores if scores.data_ptr() == first.data_ptr() else None).expand(first.shape)[
                0, 0
            ]
        statistic = rows.take(self.statistic if statistic is None else statistic, -1)
        broken = bool(self.problem.gaps(tile)) and bool(statistic.isnan().any())
        out = (second if broken else scores) if scores.data_ptr() == first.data_ptr() else None
        weights = self.problem.spec.normaliser.from_statistic(scores, statistic, cols, out)
        if broken:
            weights = weights.masked_fill(scores == NEVER, 0)  # a row that attends to NaN is NaN at its visible keys
        return weights.expand(first.shape)[0, 0]

    # Statistics

    def compute_statistic(self, low: int, high: int) -> None:
        """Compute the statistics of rows low to high where they are not known."""
        missing = [band for band in range(low // BAND, n_pixels(high, BAND)) if not self.known_bands[band]]
        for group in (missing[i : i + BANDS_PER_LOCK] for i in range(0, len(missing), BANDS_PER_LOCK)):
            with self._lock:  # for a few bands at a time, so that another thread need not wait long
                bands = [range(b * BAND, min((b + 1) * BAND, self.n)) for b in group if not self.known_bands[b]]
                for rows in bands:
                    statistic = self._log_sums(rows) if self.is_softmax else None
                    if statistic is None:
                        statistic = self._statistics_of_rows([rows])[rows.start : rows.stop]
                    self.set_statistic(rows, statistic)

    def _log_sums(self, rows: range) -> Float[Tensor, " rows"] | None:
        """log sum_j exp(score_ij) without subtracting the maximum, None if that loses digits; see `are_safe_sums`.

        It takes less time than a softmax of whole rows.
        """
        total = torch.zeros(len(rows), dtype=torch.float64, device=self.size.device)
        for _, part in self.boxes_of_rows(rows, Buffers(self.problem), self.zero_statistic):
            total += part.sum(-1)
        return total.log() if are_safe_sums(total, self.problem.dtype) else None

    def _statistics_of_rows(self, parts: list[range]) -> Float[Tensor, " queries"]:
        """Statistics of these rows, computed from whole rows; -inf for all other rows."""
        statistics = torch.full_like(self.statistic, NEVER)
        tiles = (tile for rows in parts for tile in self.row_tiles(rows))
        fold_tiles(self.problem, [RowStatistic(self.problem.spec.normaliser)], tiles, MAX_ROW_CELLS, [statistics])
        return statistics[0, 0]

    def row_tiles(self, rows: range, multiple: int = 1) -> Iterator[Tile]:
        """Tiles of whole rows, about 2 * BOX_CELLS cells each; their rows are a multiple of `multiple` if possible."""
        step = max(1, 2 * BOX_CELLS // max(self.m, 1))
        step = step // multiple * multiple or min(multiple, MIN_ROWS)
        for low in range(rows.start, rows.stop, step):
            tile = self.problem.tile(SINGLE_HEAD, Span(low, min(low + step, rows.stop)))
            if tile is not None:
                yield tile

    def set_statistic(self, rows: range, statistics: Float[Tensor, " rows"]) -> None:
        """Store the statistics of whole bands, or of rows that complete them."""
        # An infinite score makes its whole row NaN.
        self.statistic[0, 0, rows.start : rows.stop] = statistics.masked_fill(statistics == math.inf, math.nan)
        last = rows.stop // BAND if rows.stop < self.n else len(self.known_bands)
        for band in range(n_pixels(rows.start, BAND), last):
            self.known_bands[band] = True

    def _accept_given_statistic(self, lse: Float[Tensor, "*queries"]) -> None:
        """Store log-sum-exps that the caller has, if their precision is enough and they agree with the scores."""
        lse = lse.detach().reshape(-1).to(self.size.device)
        if lse.numel() != self.n:
            raise ChoiceError(f"lse needs one number for each of {self.n} queries, but it has {lse.numel()}")
        if not self.is_softmax or not self.n or lse.dtype.itemsize < self.problem.dtype.itemsize:
            return
        checked = torch.linspace(0, self.n - 1, min(CHECKED_ROWS, self.n)).long().tolist()
        own = self._statistics_of_rows([range(row, row + 1) for row in checked])[checked]
        tolerance = {"rtol": LSE_TOLERANCE, "atol": 2 * LSE_TOLERANCE}
        near = torch.isclose(own, lse[checked].to(own.dtype), **tolerance, equal_nan=True)
        if bool((near | (own == NEVER)).all()):  # fused kernels give 0 for a row that sees nothing
            self.set_statistic(range(self.n), lse.to(self.problem.dtype))
            doubtful = (lse == 0) | ~lse.isfinite()
            for band in set((doubtful.nonzero().flatten() // BAND).tolist()):
                self.known_bands[band] = False


def are_safe_sums(totals: Float[Tensor, " rows"], dtype: torch.dtype) -> bool:
    """True if no sum of exp(score) is NaN, zero, or near the smallest or largest float: their logs are accurate."""
    ends = torch.finfo(dtype)
    return bool(((totals > ends.tiny**0.25) & (totals < ends.max**0.75)).all())


def lead_index(lead: tuple[int, ...], batch: int, head: int) -> tuple[int, ...]:
    """The index of a head in each leading dimension; heads are the last of two or more leading dimensions."""
    heads = lead[-1] if len(lead) > 1 else 1
    before = lead[:-1] if len(lead) > 1 else lead
    for name, number, count in (("batch", batch, math.prod(before)), ("head", head, heads)):
        if not 0 <= number < count:
            raise ChoiceError(f"{name}={number} is not among the {count} there are (weights {(*lead, 'n', 'm')})")
    at: list[int] = []
    for length in reversed(before):
        batch, entry = divmod(batch, length)
        at.insert(0, entry)
    return (*at, head) if len(lead) > 1 else tuple(at)


def single_head_problem(problem: Problem, at: tuple[int, ...]) -> Problem:
    """The problem of one head, with leading dimensions (1, 1) and contiguous rows."""
    one = select_heads(problem, at)

    def own(operand: Operand) -> Operand:
        tensor, axis = operand
        if axis is Axis.FIXED:
            return operand
        tensor = tensor.detach().reshape(1, 1, *tensor.shape[-2:]) if tensor.dim() != 4 else tensor.detach()
        if axis in (Axis.QUERY, Axis.KEY):
            tensor = tensor.clone(memory_format=torch.contiguous_format)
        return Operand(tensor, axis)

    return Problem(one.spec, (1, 1), one.size, one.dtype, one.nan_safe, tuple(own(o) for o in one.operands))
