"""One head of a lazy matrix, of which rows, boxes and squares are made on demand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from threading import Lock

import torch
from torch import Tensor

from regard.engine import index as index_module
from regard.engine.fold import Buffers, survey_tiles, whole_rows
from regard.engine.questions import top
from regard.engine.tiles import Problem
from regard.errors import ChoiceError
from regard.normalisers import Softmax
from regard.operands import NEVER, Axis, Operand, Size, Span, Tile
from regard.web.maps.pooling import MAX, Statistic, pixels, pooled, runs, square
from regard.weights import Weights

ONE = (slice(0, 1), slice(0, 1))
BAND = 256  # rows whose statistic is found together
AT_ONCE = 4  # bands
BOX = 1 << 20  # cells that are made at a time: they stay in the cache
CAP = 4 * BOX  # cells of whole rows; longer rows are cut
FEWEST = 64  # rows that are made together even where they are long: below that a product waits for memory
WIDE = 4096  # columns of a box of whole bands
TRIED = 16  # rows by which a statistic that was given is tried
AGREES = 1e-6  # relative, and twice that absolute: more would show in the weights


class Head:
    """The n x m weights of one head, and the statistics of its rows as far as they are known."""

    def __init__(self, weights: Weights, batch: int, head: int, statistic: Tensor | None = None) -> None:
        weights._check_fresh()  # noqa: SLF001
        self.problem = alone(weights._problem(), place(tuple(weights.shape[:-2]), batch, head))  # noqa: SLF001
        self.n, self.m = self.problem.size.n, self.problem.size.m
        self.pointwise = self.problem.spec.normaliser.pointwise
        self.softmax = isinstance(self.problem.spec.normaliser, Softmax)
        self.statistic = torch.full((1, 1, self.n), math.nan, dtype=self.problem.dtype, device=self.problem.size.device)
        self.nothing = torch.zeros_like(self.statistic)  # under which weights of softmax are exp(score)
        self.known = [False] * pixels(self.n, BAND)
        self._lock = Lock()
        if statistic is not None:
            self._believe(statistic)

    @property
    def size(self) -> Size:
        return self.problem.size

    @property
    def bytes(self) -> int:
        tensors = (self.statistic, *(operand.tensor for operand in self.problem.operands))
        return sum({t.data_ptr(): t.numel() * t.element_size() for t in tensors}.values())

    # Rows

    def rows(self, low: int, high: int, cols: slice | None = None) -> Tensor:
        """Weights (rows, cols), from whole rows."""
        wanted = slice(0, self.m) if cols is None else cols
        picked = index_module.Picked(
            (0, 0, slice(low, high, 1), slice(wanted.start, wanted.stop, 1)), (1, 1, self.n, self.m)
        )
        return index_module.block(self.problem, picked, BOX)

    def lines(self, index: Tensor, cols: range, side: int, pool: int) -> Tensor:
        """Rows picked one by one with their columns pooled, sums or maxima: (rows, pixels)."""
        out = self.statistic.new_zeros(len(index), pixels(len(cols), side))
        known = self.pointwise and all(self.known[band] for band in set((index // BAND).tolist()))
        step, buffers = max(1, 2 * BOX // max(len(cols) if known else self.m, 1)), Buffers(self.problem)
        for low in range(0, len(index), step):
            rows, target = Span(0, 0, index[low : low + step]), out[low : low + step]
            if known:
                part = self.box(rows, Span(cols.start, cols.stop), buffers)
                if part is not None:
                    target.copy_(pooled(part, -1, 0, side, pool))
            else:
                self._whole_lines(rows, cols, side, pool, buffers, target)
        return out

    def _whole_lines(self, rows: Span, cols: range, side: int, pool: int, buffers: Buffers, out: Tensor) -> None:
        tile = self.problem.tile(ONE, rows)
        if tile is None:
            return
        weights = whole_rows(self.problem, tile, buffers).weights[0, 0]
        for low, high, start in runs(tile.cols):
            first, last = max(start, cols.start), min(start + high - low, cols.stop)
            if first < last:
                found = pooled(weights[:, low + first - start : low + last - start], -1, first, side, pool)
                target = out.narrow(-1, first // side - cols.start // side, found.shape[-1])
                target.copy_(torch.maximum(target, found)) if pool == MAX else target.add_(found)

    def top(self, row: int, k: int) -> tuple[list[int], list[float]]:
        """The keys with the largest weights of a row, those that it sees, and their weights."""
        tile = self.problem.tile(ONE, Span(row, row + 1))
        if tile is None:
            return [], []
        reducer = top(self.problem.spec.normaliser, k)
        values, keys = reducer.finish(reducer.first(whole_rows(self.problem, tile)))
        seen = keys.flatten() >= 0
        return keys.flatten()[seen].tolist(), values.flatten()[seen].tolist()

    # Boxes

    def squares(self, rows: range, cols: range, side: int, pool: int) -> Tensor:
        """A box as squares, sums or maxima. It begins at the edge of one."""
        shape = (pixels(len(rows), side), pixels(len(cols), side))
        out = torch.zeros(shape, dtype=self.problem.dtype, device=self.size.device)
        for low, left, part in self._boxes(rows, cols, side):
            found = square(part, 0, 0, side, pool)
            target = out[(low - rows.start) // side :, (left - cols.start) // side :]
            target[: found.shape[0], : found.shape[1]].copy_(found)
        return out

    def _boxes(self, rows: range, cols: range, side: int) -> Iterator[tuple[int, int, Tensor]]:
        """The visible parts of a box, as large as the cache likes them, and where they begin."""
        width = min(len(cols), max(side, math.isqrt(BOX))) if self.pointwise else len(cols)
        taken = width if self.pointwise else self.m
        height = max(side, BOX // max(taken, 1) // side * side)
        buffers = Buffers(self.problem)
        if self.pointwise:
            self.need(rows.start, rows.stop)
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

    def across(self, rows: range, buffers: Buffers, statistic: Tensor | None = None) -> Iterator[tuple[Span, Tensor]]:
        """The visible boxes of some rows from left to right: columns, and weights that are gone with the next box."""
        for left in range(0, self.m, WIDE):
            cols = Span(left, min(left + WIDE, self.m))
            part = self.box(Span(rows.start, rows.stop), cols, buffers, statistic)
            if part is not None:
                yield cols, part

    def box(self, rows: Span, cols: Span, buffers: Buffers, statistic: Tensor | None = None) -> Tensor | None:
        """Weights (rows, cols) from the statistic (1, 1, n), None if all are hidden; gone with the next."""
        tile = self.problem.box(ONE, rows, cols)
        if tile is None:
            return None
        first, second = buffers.take((1, 1, len(rows), len(cols)))
        scores = self.problem.scores([tile.cut(o) for o in self.problem.operands], tile, out=first)
        if statistic is self.nothing:
            return torch.exp(scores, out=scores if scores.data_ptr() == first.data_ptr() else None).expand(first.shape)[
                0, 0
            ]
        statistic = rows.take(self.statistic if statistic is None else statistic, -1)
        broken = bool(self.problem.gaps(tile)) and bool(statistic.isnan().any())
        out = (second if broken else scores) if scores.data_ptr() == first.data_ptr() else None
        weights = self.problem.spec.normaliser.given(scores, statistic, cols, out)
        if broken:
            weights = weights.masked_fill(scores == NEVER, 0)  # a row that sees NaN is NaN where it sees
        return weights.expand(first.shape)[0, 0]

    # Statistics

    def need(self, low: int, high: int) -> None:
        """Know the statistics of these rows."""
        missing = [band for band in range(low // BAND, pixels(high, BAND)) if not self.known[band]]
        for some in (missing[i : i + AT_ONCE] for i in range(0, len(missing), AT_ONCE)):
            with self._lock:  # for some at a time: another thread may need others, and not for long
                bands = [range(b * BAND, min((b + 1) * BAND, self.n)) for b in some if not self.known[b]]
                for rows in bands:
                    found = self._sums(rows) if self.softmax else None
                    self.learn(rows, self._statistics([rows])[rows.start : rows.stop] if found is None else found)

    def _sums(self, rows: range) -> Tensor | None:
        """log sum exp of scores as they are, (rows,), for less than a softmax of whole rows; see `in_range`."""
        total = torch.zeros(len(rows), dtype=torch.float64, device=self.size.device)
        for _, part in self.across(rows, Buffers(self.problem), self.nothing):
            total += part.sum(-1)
        return total.log() if in_range(total, self.problem.dtype) else None

    def _statistics(self, parts: list[range]) -> Tensor:
        """(n,) by a look at whole rows, -inf where there was none."""
        whole = torch.full_like(self.statistic, NEVER)
        tiles = (tile for rows in parts for tile in self.tiles(rows))
        survey_tiles(self.problem, [Statistic(self.problem.spec.normaliser)], tiles, CAP, [whole])
        return whole[0, 0]

    def tiles(self, rows: range, multiple: int = 1) -> Iterator[Tile]:
        """Whole rows, as many at a time as caches like, if possible a multiple of some number."""
        step = max(1, 2 * BOX // max(self.m, 1))
        step = step // multiple * multiple or min(multiple, FEWEST)
        for low in range(rows.start, rows.stop, step):
            tile = self.problem.tile(ONE, Span(low, min(low + step, rows.stop)))
            if tile is not None:
                yield tile

    def learn(self, rows: range, statistics: Tensor) -> None:
        """Take over the statistics (rows,) of whole bands, or of rows that complete them."""
        plain = statistics.masked_fill(statistics == math.inf, math.nan)  # one infinite score makes NaN of its row
        self.statistic[0, 0, rows.start : rows.stop] = plain
        for band in range(pixels(rows.start, BAND), rows.stop // BAND if rows.stop < self.n else len(self.known)):
            self.known[band] = True

    def _believe(self, given: Tensor) -> None:
        """Take over statistics from elsewhere, if they have the digits and are those of these scores."""
        given = given.detach().reshape(-1).to(self.size.device)
        if given.numel() != self.n:
            raise ChoiceError(f"lse needs one number for each of {self.n} queries, but it has {given.numel()}")
        if not self.softmax or not self.n or given.dtype.itemsize < self.problem.dtype.itemsize:
            return
        tried = torch.linspace(0, self.n - 1, min(TRIED, self.n)).long().tolist()
        own = self._statistics([range(row, row + 1) for row in tried])[tried]
        near = torch.isclose(own, given[tried].to(own.dtype), rtol=AGREES, atol=2 * AGREES, equal_nan=True)
        if bool((near | (own == NEVER)).all()):  # kernels have a 0 where a row sees nothing
            self.learn(range(self.n), given.to(self.problem.dtype))
            doubtful = (given == 0) | ~given.isfinite()
            for band in set((doubtful.nonzero().flatten() // BAND).tolist()):
                self.known[band] = False


def in_range(totals: Tensor, dtype: torch.dtype) -> bool:
    """Whether sums of exp(score) tell all: no NaN among them, no empty row, none next to the ends of float."""
    ends = torch.finfo(dtype)
    return bool(((totals > ends.tiny**0.25) & (totals < ends.max**0.75)).all())


def place(lead: tuple[int, ...], batch: int, head: int) -> tuple[int, ...]:
    """The entry of each leading dimension: heads are the last where there are two or more."""
    heads = lead[-1] if len(lead) > 1 else 1
    before = lead[:-1] if len(lead) > 1 else lead
    for name, asked, count in (("batch", batch, math.prod(before)), ("head", head, heads)):
        if not 0 <= asked < count:
            raise ChoiceError(f"{name}={asked} is not among the {count} there are (weights {(*lead, 'n', 'm')})")
    at: list[int] = []
    for length in reversed(before):
        batch, entry = divmod(batch, length)
        at.insert(0, entry)
    return (*at, head) if len(lead) > 1 else tuple(at)


def alone(problem: Problem, at: tuple[int, ...]) -> Problem:
    """The problem of one head, with leading dimensions (1, 1), its rows side by side in memory."""
    one = index_module.some_heads(problem, at)

    def own(operand: Operand) -> Operand:
        tensor, axis = operand
        if axis is Axis.FIXED:
            return operand
        tensor = tensor.detach().reshape(1, 1, *tensor.shape[-2:]) if tensor.dim() != 4 else tensor.detach()
        if axis in (Axis.QUERY, Axis.KEY):
            tensor = tensor.clone(memory_format=torch.contiguous_format)
        return Operand(tensor, axis)

    return Problem(one.spec, (1, 1), one.size, one.dtype, one.careful, tuple(own(o) for o in one.operands))
