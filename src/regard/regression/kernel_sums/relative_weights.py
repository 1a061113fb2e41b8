"""Kernel averages from weights relative to the nearest point: exact at any distance from the data, and slower.

-|q - x_i|^2 / 2 is 5 * 10^11 at a million bandwidths, and float64 has 4 digits left behind the decimal point. Only
differences matter, and these need no large squares: with x_0 the point nearest to q,

    (|q - x_0|^2 - |q - x_i|^2) / 2 = (x_i - x_0).((q - x_i) + (q - x_0)) / 2,

where every difference is taken before anything is divided, so that it is exact for points that are close to each other.
For the Laplace kernel the same over the mean of both distances is the difference of the distances.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard import kernels
from regard.engine import threads
from regard.operands import NEVER
from regard.regression.kernel_sums import pruned_sum
from regard.regression.kernel_sums.pruned_sum import Tiles, tiles
from regard.regression.kernel_sums.sample import EXACT_PAIRS, TILE_PAIRS, Sample, scale_of, standardise
from regard.regression.kernel_sums.state import Pooled

MAX_TILE_QUERIES = 256  # where queries are few, they are seldom neighbours, and each has a tile of its own
PRUNED_SHARE = 2.0**-100  # of the weight; so small because a caller may divide by a spread of nearly nothing
MAX_FLOAT64 = torch.finfo(torch.float64).max


class Neighbourhood(NamedTuple):
    """Some queries, all points that matter to them, and the points' weights."""

    queries: Int[Tensor, " q"]  # rows of the queries
    points: Int[Tensor, " n"]  # rows of the points
    weights: Float[Tensor, "q n"]  # of sum 1; all 0 where no point is in reach
    offset: Float[Tensor, "q dim n"]  # of each point from the one nearest to the query, in bandwidths
    query_offset: Float[Tensor, "q dim"]  # of the query from that point
    square: Float[Tensor, "q n"]  # of the distance from the query, in bandwidths
    log_weight: Float[Tensor, " n"] | None  # of the points
    lse: Float[Tensor, " q"]


class LeaveOut(NamedTuple):
    """The data point that each query is, and the log of the share of its own weight that it keeps."""

    points: Int[Tensor, " q"]
    log_kept: Float[Tensor, " q"] | None = None  # None: nothing is kept


Statistic = Callable[[Neighbourhood], tuple[Tensor, ...]]  # results have a row for each query


def pool(sample: Sample, query: Float[Tensor, "q dim"]) -> Pooled:
    """The average at each query, with no error but rounding."""
    middle = sample.values.mean(0)
    values = sample.values - middle
    lse, mean = for_neighbourhoods(sample, query, lambda near: (near.weights @ values[near.points],))
    return Pooled(lse, mean + middle, torch.zeros_like(lse))


def weight_gradient(
    sample: Sample, near: Neighbourhood, factor: Float[Tensor, "q n"] | None = None
) -> Float[Tensor, "q dim n"]:
    """Gradient in the query of the points' weights, before they are divided by their sum; times a factor.

    With g = -2 s K'(u^2) / sum s K, which is p for a Gaussian, it is g (x_i - q) / h^2. For a bandwidth that is small
    beside the data a difference of averages would keep the rounding of x / h, and nothing else would be left of it.
    """
    kernel, finite = kernels.get(sample.kernel), torch.isfinite(sample.bandwidth).unsqueeze(1)
    slope = kernel.weight_derivative(near.square, near.weights, near.lse, near.log_weight)
    slope = slope if factor is None else slope * factor
    toward = torch.where(finite, near.offset - near.query_offset.unsqueeze(2), 0.0)
    return slope.unsqueeze(1) * toward / feature_units(sample).unsqueeze(1)


def for_neighbourhoods(
    sample: Sample, query: Float[Tensor, "q dim"], statistic: Statistic, leave_out: LeaveOut | None = None
) -> tuple[Tensor, ...]:
    """The log of the total weight at each query, and a statistic of the points around it.

    Points are pruned that weigh less than PRUNED_SHARE of all together.
    """
    unit, weighted = feature_units(sample), torch.arange(len(sample.x), device=sample.x.device)
    if sample.log_weight is not None:
        weighted = weighted[sample.log_weight > NEVER]

    def run(task: _Task) -> tuple[Tensor, ...]:
        points = weighted if task.points is None else weighted[task.points()]
        points = points if len(points) else weighted[:1]  # out of reach: its weight is 0
        parts = []
        for rows in task.queries.split(max(1, TILE_PAIRS // max(1, len(points)))):
            near = _neighbourhood(sample, unit, query, rows, points, leave_out)
            parts.append((near.lse, *statistic(near)))
        return tuple(torch.cat(part) for part in zip(*parts, strict=True))

    tasks = _tasks(sample, query)
    parts = threads.parallel_map(run, tasks) if query.device.type == "cpu" else [run(task) for task in tasks]
    original = torch.argsort(torch.cat([task.queries for task in tasks]))
    return tuple(torch.cat(part)[original] for part in zip(*parts, strict=True))


class _Task(NamedTuple):
    """Queries that lie together, and the points that matter to any of them."""

    queries: Int[Tensor, " q"]
    points: Callable[[], Int[Tensor, " n"]] | None = None  # among the points of positive weight; None: all


def feature_units(sample: Sample) -> Float[Tensor, " dim"]:
    """The unit of each feature: its bandwidth, or its standard deviation where the bandwidth is infinite."""
    finite = torch.isfinite(sample.bandwidth)
    return sample.bandwidth if bool(finite.all()) else torch.where(finite, sample.bandwidth, scale_of(sample.x))


def _tasks(sample: Sample, query: Float[Tensor, "q dim"]) -> list[_Task]:
    data = standardise(sample, query)
    n, rows = len(data.x), torch.arange(len(query), device=query.device)
    if query.device.type != "cpu" or not data.x.shape[1] or not len(query) or n <= pruned_sum.POINTS:
        return [_Task(part) for part in rows.split(max(1, TILE_PAIRS // max(1, n)))]
    few = len(query) * n <= EXACT_PAIRS
    size = max(1, TILE_PAIRS // n) if few else min(max(1, len(query) // MAX_TILE_QUERIES), MAX_TILE_QUERIES)
    point_tiles, query_tiles = tiles(data.x, pruned_sum.POINTS), tiles(data.query, size)
    tasks: list[_Task] = []
    in_reach = pruned_sum.tiles_in_reach(query_tiles, point_tiles, data.log_weight, data.kernel, PRUNED_SHARE)
    for group, reach in in_reach:
        tasks += [
            _Task(query_tiles.order[query_tiles.rows(tile)], partial(_members, point_tiles, kept))
            for tile, kept in zip(group, reach.kept, strict=True)
        ]
    return tasks


def _members(points: Tiles, kept: Bool[Tensor, " tiles"]) -> Int[Tensor, " n"]:
    """The points of the tiles that are kept."""
    if bool(kept.all()):
        return points.order
    parts = [points.order[points.rows(tile)] for tile in kept.nonzero().flatten().tolist()]
    return torch.cat([points.order[:0], *parts])


def _neighbourhood(
    sample: Sample, unit: Tensor, query: Tensor, rows: Tensor, points: Tensor, leave_out: LeaveOut | None
) -> Neighbourhood:
    x, at, kernel = sample.x[points], query[rows], kernels.get(sample.kernel)
    axes = torch.isfinite(sample.bandwidth).nonzero().flatten().tolist()
    square = at.new_zeros(len(at), len(x))
    to_query = [(at[:, axis : axis + 1] - x[:, axis]).div_(unit[axis]) for axis in axes]
    for one in to_query:
        square.addcmul_(one, one)
    own = None if leave_out is None else points == leave_out.points[rows].unsqueeze(1)
    if own is not None and leave_out is not None and leave_out.log_kept is None:
        square.masked_fill_(own, torch.inf)
    offset, query_offset = _offsets(square.argmin(1), x, at, unit)
    best = square.amin(1, keepdim=True)
    if kernel.compact:
        logits, log_nearest = kernel.log_kernel(square), 0.0
    else:
        log_nearest = kernel.log_kernel(best).squeeze(1)
        logits = kernel.log_relative(_half_difference(offset, query_offset, to_query, axes), square, best)
        for _ in axes:  # far away all squares are rounded alike: the nearest is found one feature at a time
            nearer = logits.masked_fill(square == torch.inf, NEVER)
            if not bool((nearer > 0).any()):
                break
            offset, query_offset = _offsets(nearer.argmax(1), x, at, unit)
            logits = kernel.log_relative(_half_difference(offset, query_offset, to_query, axes), square, best)
    log_weight = None if sample.log_weight is None else sample.log_weight[points]
    if log_weight is not None:
        logits += log_weight
    if own is not None and leave_out is not None:
        kept = NEVER if leave_out.log_kept is None else logits + leave_out.log_kept[rows, None]
        logits = torch.where(own, kept, logits)
    top = logits.amax(1, keepdim=True)
    weights = logits.sub_(torch.where(top == NEVER, 0.0, top)).exp_()
    total = weights.sum(1, keepdim=True)
    lse = (top + total.log()).squeeze(1)
    lse = torch.where(lse == NEVER, NEVER, (lse + log_nearest).clamp_min(-MAX_FLOAT64))
    weights /= torch.where(total > 0, total, 1.0)
    return Neighbourhood(rows, points, weights, offset, query_offset, square, log_weight, lse)


def _offsets(
    nearest: Int[Tensor, " q"], x: Float[Tensor, "n dim"], at: Float[Tensor, "q dim"], unit: Float[Tensor, " dim"]
) -> tuple[Float[Tensor, "q dim n"], Float[Tensor, "q dim"]]:
    """Offsets of all points, and of the query, from the point nearest to each query."""
    offset = torch.empty(len(at), x.shape[1], len(x), dtype=at.dtype, device=at.device)
    for axis, feature in enumerate(x.unbind(1)):
        torch.sub(feature, feature[nearest].unsqueeze(1), out=offset[:, axis]).div_(unit[axis])
    return offset, (at - x[nearest]) / unit


def _half_difference(offset: Tensor, query_offset: Tensor, to_query: list[Tensor], axes: list[int]) -> Tensor:
    """(|q - x_0|^2 - |q - x_i|^2) / 2 of each point, (q, n)."""
    half = offset.new_zeros(len(offset), offset.shape[2])
    for axis, one in zip(axes, to_query, strict=True):
        half.addcmul_(offset[:, axis], one + query_offset[:, axis : axis + 1], value=0.5)
    return half
