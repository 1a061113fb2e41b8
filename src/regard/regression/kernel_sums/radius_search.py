"""Neighbours within a radius, and Gaussian averages over them; and the points nearest to a query.

Neighbours are lists in CSR form, without a loop over queries: from cell lists for radii of some bandwidths, from a
sorted axis or a kd-tree for larger ones.

**The radius of an average.** If the weight at a query is certainly at least f, the points beyond a radius r add at most
the share S exp(-r^2 / 2) / f to it (S: the sum of all weights), and move the average by at most that share of the
values' range. So r^2 = 2 log(S range / (f tol)) is enough. Without a better f, the nearest point alone gives
f = s exp(-d^2 / 2). In bandwidths.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.engine import threads
from regard.regression.kernel_sums.sample import (
    BLOCK_PAIRS,
    TILE_PAIRS,
    UNIT_ROUNDOFF,
    Sample,
    Standardised,
    relevant,
    squared_distance_by_feature,
)
from regard.regression.kernel_sums.state import Pooled, empty

MOVED_SHARE = 0.1  # of `tol`, for the points outside the radius: a smaller one costs only a logarithm
MAX_CELL_RADIUS = 14.0  # bandwidths; a wider ball would cover many empty cells
CELLS_PER_RADIUS = 2  # cells to each side of a query
LAST_AXIS_CELLS = 8  # times as many along the last axis: points there stand in a row anyway
RADIUS_SLACK = 1 + 1e-9  # a point on the edge of a cell may be counted to either
MAX_CELL_KEY = 2.0**62  # cells are numbered by int64
MAX_COARSE_CELLS = 2**22  # of the coarse grid that tells which points are near any query
TIE_ERROR = 2.0**-50  # relative rounding error of a sum of products: points that differ by less are equally near


class Neighbours(NamedTuple):
    """Lists of points in CSR form: the points of list after list, the query of each list, and its length."""

    points: Int[Tensor, " pairs"]
    query: Int[Tensor, " lists"]
    length: Int[Tensor, " lists"]  # never 0

    def sums(self, terms: Float[Tensor, "pairs ..."]) -> Float[Tensor, "lists ..."]:
        """The sum of a term over each list."""
        return torch.from_numpy(np.add.reduceat(terms.numpy(), (self.length.cumsum(0) - self.length).numpy()))


def runs_to_lists(
    query: Int[Tensor, " runs"], start: Int[Tensor, " runs"], stop: Int[Tensor, " runs"]
) -> Iterator[Neighbours]:
    """Lists of points that stand in a row, about TILE_PAIRS pairs or one list at a time."""
    filled = stop > start
    query, start, length = query[filled], start[filled], (stop - start)[filled]
    for part in blocks_of_lists(length):
        lengths = length[part]
        ends = lengths.cumsum(0)
        shift = torch.repeat_interleave(start[part] - (ends - lengths), lengths)
        yield Neighbours(shift + torch.arange(len(shift)), query[part], lengths)


def blocks_of_lists(length: Int[Tensor, " lists"]) -> Iterator[slice]:
    """Slices of lists with about TILE_PAIRS pairs each, or one longer list."""
    ends = length.cumsum(0)
    first, done = 0, 0
    while first < len(length):
        last = max(first + 1, int(torch.searchsorted(ends, done + TILE_PAIRS, right=True)))
        yield slice(first, last)
        first, done = last, int(ends[last - 1])


class Grid(NamedTuple):
    """Cells over a box: where it begins, and the length and number of the cells along each axis."""

    low: Float[Tensor, " dim"]
    side: list[float]
    cells: list[int]

    @staticmethod
    def of(low: Float[Tensor, " dim"], high: Float[Tensor, " dim"], side: list[float]) -> Grid:
        """A grid over the box from `low` to `high`."""
        return Grid(low, side, [int(float(width) / one) + 1 for width, one in zip(high - low, side, strict=True)])

    def keys(self, x: Float[Tensor, "dim n"]) -> Int[Tensor, " n"]:
        """The number of each point's cell."""
        key = torch.zeros(x.shape[1], dtype=torch.int64)
        for row, edge, side, count in zip(x, self.low, self.side, self.cells, strict=True):
            key.mul_(count).add_(((row - edge) / side).to(torch.int64).clamp_(0, count - 1))
        return key


def fits_cells(low: Float[Tensor, " dim"], high: Float[Tensor, " dim"], radius: float) -> bool:
    """True where the cells of a box can be numbered."""
    side = radius / CELLS_PER_RADIUS
    return math.prod(float(width) / side + 1 for width in high - low) * LAST_AXIS_CELLS < MAX_CELL_KEY


def cell_list(
    x: Float[Tensor, "n dim"],
    low: Float[Tensor, " dim"],
    high: Float[Tensor, " dim"],
    query: Float[Tensor, "q dim"],
    radius: Float[Tensor, " q"],
) -> tuple[Int[Tensor, " m"], Iterator[Neighbours]]:
    """The points within each query's own radius, and some beyond it. `low` and `high` hold all points.

    The first result is an order: the points near any query, sorted by cell, row after row. Each query reads the part of
    each row that its ball touches, so its neighbours stand in runs. The points of the lists are places in that order.
    """
    points, at = x.T, query.T
    radius = radius * RADIUS_SLACK
    largest = float(radius.max())
    side = largest / CELLS_PER_RADIUS
    grid = Grid.of(low, high, [side] * (len(points) - 1) + [side / LAST_AXIS_CELLS])
    near = _near_any_query(Grid.of(low, high, [largest] * len(points)), points, at)
    key, order = torch.sort(grid.keys(points if near is None else points[:, near]))
    return order if near is None else near[order], runs_to_lists(*_runs_in_ball(grid, at, radius, key))


def _near_any_query(
    grid: Grid, x: Float[Tensor, "dim n"], query: Float[Tensor, "dim q"]
) -> Int[Tensor, " near"] | None:
    """Points in the cell of a query or next to it: the others need not be sorted. None: not worth it."""
    if math.prod(grid.cells) > MAX_COARSE_CELLS or math.prod(grid.cells) <= 3 ** len(grid.cells):
        return None
    marks = torch.zeros(grid.cells, dtype=torch.bool)
    own = [
        ((row - edge) / side).floor().to(torch.int64)
        for row, edge, side in zip(query, grid.low, grid.side, strict=True)
    ]
    for step in itertools.product((-1, 0, 1), repeat=len(grid.cells)):
        cells = [(cell + s).clamp(0, count - 1) for cell, s, count in zip(own, step, grid.cells, strict=True)]
        marks[tuple(cells)] = True  # clamped: a cell too many is harmless
    return torch.nonzero(marks.flatten()[grid.keys(x)]).squeeze(-1)


def _runs_in_ball(grid: Grid, query: Tensor, radius: Tensor, key: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For every query and every row of cells near it: the query, the first point and the one after the last."""
    low, side, count = grid.low, grid.side, grid.cells
    row = torch.zeros(query.shape[1], 1, dtype=torch.int64)
    left = radius.square().unsqueeze(-1)  # what remains of the squared radius along the last axis; (q, rows)
    steps = torch.arange(-CELLS_PER_RADIUS, CELLS_PER_RADIUS + 1)
    for at, edge, length, cells in zip(query[:-1], low, side, count, strict=False):
        cell = ((at - edge) / length).floor().to(torch.int64).unsqueeze(-1) + steps
        begin = edge + cell * length
        gap = torch.maximum(begin - at.unsqueeze(-1), at.unsqueeze(-1) - begin - length).clamp_min_(0.0)
        outside = ((cell < 0) | (cell >= cells)).unsqueeze(1)
        left = (left.unsqueeze(-1) - gap.square().unsqueeze(1)).masked_fill_(outside, -1.0).flatten(1)
        row = (row.unsqueeze(-1) * cells + cell.unsqueeze(1)).flatten(1)
    half = torch.sqrt(left.clamp_min(0.0))
    at, last = (query[-1] - low[-1]).unsqueeze(-1), count[-1] - 1
    first_cell = ((at - half) / side[-1] - 1e-9).floor()
    last_cell = ((at + half) / side[-1] + 1e-9).floor()
    touched = (left >= 0) & (last_cell >= 0) & (first_cell <= last)
    base = row[touched] * count[-1]
    start = torch.searchsorted(key, base + first_cell[touched].clamp_(0, last).to(torch.int64))
    stop = torch.searchsorted(key, base + last_cell[touched].clamp_(0, last).to(torch.int64), right=True)
    return torch.nonzero(touched)[:, 0], start, stop


class SortedAxis:
    """Points with one feature, sorted: neighbours stand in a row."""

    def __init__(self, x: Float[Tensor, "n 1"]) -> None:
        self.sorted: Float[Tensor, " n"]
        self.order: Int[Tensor, " n"]
        self.sorted, self.order = torch.sort(x[:, 0], stable=True)

    def nearest(self, query: Float[Tensor, "q 1"]) -> tuple[Float[Tensor, " q"], Int[Tensor, " q"]]:
        """The distance to the nearest point of each query, and its row."""
        at = query[:, 0].contiguous()
        right = torch.searchsorted(self.sorted, at).clamp_(max=len(self.sorted) - 1)
        left = (right - 1).clamp_min_(0)
        to_left, to_right = ((self.sorted[side] - at).abs() for side in (left, right))
        closer = to_left < to_right
        return torch.where(closer, to_left, to_right), self.order[torch.where(closer, left, right)]

    def within(self, query: Float[Tensor, "q 1"], radius: Float[Tensor, " q"]) -> Iterator[Neighbours]:
        """The points within each query's own radius, as places in `order`."""
        at, radius = query[:, 0], radius * RADIUS_SLACK
        start = torch.searchsorted(self.sorted, at - radius)
        stop = torch.searchsorted(self.sorted, at + radius, right=True)
        return runs_to_lists(torch.arange(len(radius)), start, stop)


class KdTree:
    """Points with two or three features, in scipy's kd-tree."""

    def __init__(self, x: Float[Tensor, "n dim"]) -> None:
        from scipy.spatial import KDTree

        # A balanced tree takes twice as long to build and answers no faster here.
        self.tree: Any = KDTree(x.contiguous().numpy(), balanced_tree=False, compact_nodes=False)
        self.order: None = None  # the points are not sorted
        self.workers: int = threads.n_threads()

    def nearest(self, query: Float[Tensor, "q dim"]) -> tuple[Float[Tensor, " q"], Int[Tensor, " q"]]:
        """The distance to the nearest point of each query, and its row."""
        distance, row = self.tree.query(query.contiguous().numpy(), workers=self.workers)
        return torch.from_numpy(distance), torch.from_numpy(row)

    def within(self, query: Float[Tensor, "q dim"], radius: Float[Tensor, " q"]) -> Iterator[Neighbours]:
        """The points within each query's own radius."""
        at, reach = query.contiguous().numpy(), (radius * RADIUS_SLACK).numpy()
        length = torch.from_numpy(self.tree.query_ball_point(at, reach, workers=self.workers, return_length=True))
        rows = torch.arange(len(length))[length > 0]
        for part in blocks_of_lists(length[rows]):
            chosen = rows[part].numpy()
            lists = self.tree.query_ball_point(at[chosen], reach[chosen], workers=self.workers)
            points = np.concatenate([np.asarray(one, dtype=np.int64) for one in lists])
            yield Neighbours(torch.from_numpy(points), rows[part], length[rows][part])


def search_index(x: Float[Tensor, "n dim"]) -> SortedAxis | KdTree:
    """The index for radii that are too large for cells."""
    return SortedAxis(x) if x.shape[1] == 1 else KdTree(x)


def radius_for(log_influence: float, tol: float, log_floor: Float[Tensor, " q"]) -> Float[Tensor, " q"]:
    """Radius beyond which all points together move an average by less than a share of `tol`.

    `log_floor` is the log of a weight that each query certainly has.
    """
    # Less than rounding cannot be seen: a tol of 0 means what float64 can hold.
    log_needed = log_influence - math.log(MOVED_SHARE * max(tol, UNIT_ROUNDOFF))
    return torch.sqrt(2 * (log_needed - log_floor).clamp_min(0.0))


def log_influence(data: Standardised) -> float:
    """log(S range), with S the sum of all weights and the range the largest difference of two values."""
    log_mass = math.log(len(data.x)) if data.log_weight is None else float(torch.logsumexp(data.log_weight, 0))
    return log_mass + math.log(data.value_range)


def pool(data: Standardised, tol: float, log_floor: Float[Tensor, " q"] | None = None) -> Pooled:
    """The Gaussian average at each query over the points that matter; `data` is standardised by axis.

    `log_floor` is the log of a weight that each query certainly has, or -inf where none is known.
    """
    state, index = empty(len(data.query), data.values.shape[1], data.query), None
    floor = state.lse.clone() if log_floor is None else log_floor.clone()
    unknown = torch.nonzero(floor == -math.inf).squeeze(-1)
    if len(unknown):
        index = search_index(data.x)
        distance, row = index.nearest(data.at(unknown).query)
        floor[unknown] = (0.0 if data.log_weight is None else data.log_weight[row]) - distance.square() / 2
    log_moved = log_influence(data)
    radius = radius_for(log_moved, tol, floor)
    near = radius <= MAX_CELL_RADIUS
    by_cells = bool(near.any()) and fits_cells(data.low, data.high, float(radius[near].max()))
    for chosen in (near, ~near) if by_cells else (torch.ones_like(near),):
        rows = torch.nonzero(chosen).squeeze(-1)
        part, reach = data.at(rows), radius[rows]
        if not len(rows):
            continue
        if by_cells and chosen is near:
            order, lists = cell_list(data.x, data.low, data.high, part.query, reach)
        else:
            index = index or search_index(data.x)
            order, lists = index.order, index.within(part.query, reach)
        if order is not None:
            part = part.subset(lambda rows, order=order: rows.T[:, order].T if rows.dim() == 2 else rows[order])
        weight, total = _weighted_sums(part, floor[rows], lists)
        error = torch.exp(log_moved - reach.square() / 2 - floor[rows]) / weight
        state.put(rows, Pooled(weight.log() + floor[rows], total / weight.unsqueeze(-1), error))
    return state


def _weighted_sums(
    data: Standardised, floor: Float[Tensor, " q"], lists: Iterable[Neighbours]
) -> tuple[Float[Tensor, " q"], Float[Tensor, "q columns"]]:
    """The weight at each query over exp(floor), which keeps it in range, and the weighted sums of the values."""
    weight = torch.zeros_like(floor)
    total = floor.new_zeros(len(floor), data.values.shape[1])
    for block in lists:
        points, query, length = block
        exponent = torch.repeat_interleave(-floor[query], length)  # log weight - |difference|^2 / 2 - floor
        for row, at in zip(data.x.T, data.query.T, strict=True):
            difference = row[points]
            difference -= torch.repeat_interleave(at[query], length)
            exponent.addcmul_(difference, difference, value=-0.5)
        if data.log_weight is not None:
            exponent += data.log_weight[points]
        share = exponent.exp_()
        weight.index_add_(0, query, block.sums(share))
        for column in range(total.shape[1]):
            total[:, column].index_add_(0, query, block.sums(share * data.values[points, column]))
    return weight, total


class Nearest(NamedTuple):
    """The points nearest to each query, as a state that merges: squared distance, total weight and mean."""

    square: Float[Tensor, " q"]  # in units of the bandwidth; inf before any point
    total: Float[Tensor, " q"]
    mean: Float[Tensor, "q columns"]

    @staticmethod
    def empty(queries: int, columns: int, like: Tensor) -> Nearest:
        """The state before any point: the identity of `merge`."""
        square = torch.full((queries,), math.inf, dtype=torch.float64, device=like.device)
        return Nearest(square, torch.zeros_like(square), square.new_zeros(queries, columns))

    @staticmethod
    def of(
        square: Float[Tensor, "q n"], weight: Float[Tensor, " n"] | None, values: Float[Tensor, "n columns"]
    ) -> Nearest:
        """The nearest of all points at these squared distances; inf: the point does not count."""
        if not square.shape[1]:
            return Nearest.empty(len(square), values.shape[1], square)
        best = square.amin(1)
        near = ((square == best.unsqueeze(1)) & (square < math.inf)).to(square.dtype)
        near = near if weight is None else near * weight
        total = near.sum(1)
        return Nearest(best, total, near @ values / torch.where(total > 0, total, 1.0).unsqueeze(1))

    def merge(self, other: Nearest) -> Nearest:
        """The nearest points of two parts of the data."""
        square = torch.minimum(self.square, other.square)
        mine = torch.where(self.square == square, self.total, 0.0)
        theirs = torch.where(other.square == square, other.total, 0.0)
        total = mine + theirs
        share = (theirs / torch.where(total > 0, total, 1.0)).unsqueeze(1)
        return Nearest(square, total, self.mean + share * (other.mean - self.mean))


def nearest_points(sample: Sample, query: Float[Tensor, "q dim"], rows: Int[Tensor, " rows"]) -> Nearest:
    """The points of a sample nearest to some of the queries; the other queries have an empty state."""
    counted, at = relevant(sample, query[rows])
    x, tiles = counted.scaled(counted.x), counted.scaled(at).split(max(1, BLOCK_PAIRS // (len(counted.x) + 1)))
    weight = None if counted.log_weight is None else counted.log_weight.exp()
    parts = [Nearest.of(squared_distance_by_feature(tile, x), weight, counted.values) for tile in tiles]
    nearest = Nearest(*(torch.cat(part) for part in zip(*parts, strict=True)))
    whole = Nearest.empty(len(query), sample.values.shape[1], query)
    return Nearest(*(part.index_copy(0, rows, new) for part, new in zip(whole, nearest, strict=True)))


def is_nearest(
    query: Float[Tensor, "q dim"], x: Float[Tensor, "n dim"], bandwidth: Float[Tensor, " dim"]
) -> Bool[Tensor, "q n"]:
    """True for the points nearest to each query, at any distance: by differences of squares, as in `relative_weights`.

    Far away all squares are rounded to the same number, and the first point is as good a start as any. The point that
    is nearer by most replaces it, until there is none: features that are farther are decided first.
    """
    first = squared_distance_by_feature(query / bandwidth, x / bandwidth).argmin(1)
    nearer, error = _nearer_than(query, x, bandwidth, first)
    for _ in range(x.shape[1]):
        best = (nearer - error).argmax(1)
        better = (nearer - error).gather(1, best.unsqueeze(1)).squeeze(1) > 0
        if not bool(better.any()):
            break
        first = torch.where(better, best, first)
        nearer, error = _nearer_than(query, x, bandwidth, first)
    return nearer >= -error


def _nearer_than(
    query: Tensor, x: Tensor, bandwidth: Tensor, reference: Int[Tensor, " q"]
) -> tuple[Float[Tensor, "q n"], Float[Tensor, "q n"]]:
    """Half the squared distance of the reference less that of each point, and the rounding error of the difference."""
    nearer, size = query.new_zeros(len(query), len(x)), query.new_zeros(len(query), len(x))
    for a, b, h in zip(query.unbind(1), x.unbind(1), bandwidth.unbind(), strict=True):
        at = b[reference].unsqueeze(1)
        product = (b - at) / h * ((a.unsqueeze(1) - (b + at) / 2) / h)
        nearer += product
        size += product.abs()
    return nearer, size * TIE_ERROR
