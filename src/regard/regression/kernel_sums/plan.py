"""The plan of a kernel average and the reason for it: the one cost model of kernel regression.

`choose` is a pure function of a few numbers; `plan_for` takes them from the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from regard import kernels
from regard.errors import ChoiceError, PlanError
from regard.regression.kernel_sums import fourier, pruned_sum
from regard.regression.kernel_sums.fourier import Series
from regard.regression.kernel_sums.sample import (
    EXACT_PAIRS,
    Sample,
    Standardised,
    extent,
    relevant,
    squared_distance_by_feature,
    standardise,
)

Name = Literal["pairs", "cells", "fast"]
NAMES: tuple[Name, ...] = ("pairs", "cells", "fast")

SINGLE_TOL = 1e-5  # the smallest `tol` for which single precision is tried

# Seconds; only their ratios matter. Fitted to the benchmarks regression_pairs (two cores).
PAIR_SINGLE = 0.65e-9  # a pair of a Gaussian in single precision
PAIR_DOUBLE = 2.6e-9  # in double precision
PAIR_DIRECT = 8e-9  # a pair of another kernel, by differences of coordinates
PAIR_DIRECT_FEATURE = 1e-9  # more for each feature
PRUNED_PAIR = 1.1  # times as much where pairs are pruned: blocks are small
PRUNED_POINT = 1e-6  # to sort a point or a query into a tile, and to compare its box
# Fitted to the benchmarks regression_fast and regression_bandwidth (one core, finufft).
SPREAD_POINT = 0.9e-9  # a transform: a point times a grid cell that it is spread over
GRID_CELL = 30e-9  # a transform: a grid cell in the FFT
STANDARDISE_COORDINATE = 60e-9  # a coordinate of a point or query, before and after the transforms
LEAVE_ONE_OUT_PAIR = 6e-9  # a pair in leave-one-out with its gradient
LEAVE_ONE_OUT_CALLS = 6e-4  # the calls of one leave-one-out evaluation by transforms

# Rows that are looked at to estimate how many pairs are within the kernel's reach.
ESTIMATE_TILES, ESTIMATE_QUERIES, ESTIMATE_POINTS = 8, 1 << 13, 1 << 10


@dataclass(frozen=True, slots=True)
class Workload:
    """All that the choice may depend on."""

    queries: int
    points: int
    dim: int  # features of finite bandwidth
    kernel: str
    tol: float
    columns: int = 1  # that are averaged
    extent: tuple[float, ...] = ()  # of the points, in bandwidths, for each feature
    share: float = 1.0  # of all pairs in tiles within each other's reach, estimated
    device: str = "cpu"
    forced: str = "auto"

    @property
    def pairs(self) -> int:
        """Pairs of query and point."""
        return self.queries * self.points


@dataclass(frozen=True, slots=True)
class Plan:
    """One of the algorithms "pairs", "cells" and "fast", and the reason in words."""

    name: Name
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def plan_for(
    sample: Sample, query: Float[Tensor, "q dim"], *, tol: float, forced: str = "auto", explain: bool = False
) -> Plan:
    """The plan for a sample and queries. With `explain`, all costs that its reason names are estimated."""
    sample, query = relevant(sample, query)
    (n, dim), columns, device = sample.x.shape, sample.values.shape[1], sample.x.device.type
    workload = Workload(len(query), n, dim, sample.kernel, tol, columns, device=device, forced=forced)
    if (workload.pairs <= EXACT_PAIRS and forced == "auto") or not workload.pairs or not workload.dim:
        return choose(workload)  # small problems do not wait for estimates
    low, high = extent(sample.x)
    workload = replace(workload, extent=tuple(((high - low) / sample.bandwidth).tolist()))
    if not explain:
        cheapest = choose(replace(workload, share=0.0))
        if forced != "auto" or cheapest.name != "cells":
            return cheapest  # no share of pairs makes "cells" cheaper than a share of 0
    return choose(replace(workload, share=estimate_share_in_reach(sample, query, tol)))


def choose(workload: Workload) -> Plan:
    """The cheapest plan that can serve, or the one that is forced."""
    if workload.forced != "auto":
        return _forced(workload)
    if workload.pairs <= EXACT_PAIRS:
        return Plan("pairs", f"{_sizes(workload)} pairs are few enough to take every one, in float64")
    able: list[Name] = [name for name in NAMES if obstacle(name, workload) is None]
    if workload.tol < fourier.MIN_EPS and "fast" in able:
        able.remove("fast")  # it would repair every query, which its cost does not include
    costs: dict[Name, float] = {name: seconds(name, workload) for name in able}
    best = min(able, key=costs.__getitem__)
    return Plan(best, _reason(best, workload, costs))


def _forced(workload: Workload) -> Plan:
    if workload.forced not in NAMES:
        raise ChoiceError(f"plan must be 'auto' or one of {', '.join(map(repr, NAMES))}, but it is {workload.forced!r}")
    name: Name = workload.forced
    why_not = obstacle(name, workload)
    if why_not is not None:
        can = [repr(other) for other in ("auto", *NAMES) if other == "auto" or obstacle(other, workload) is None]
        raise PlanError(f"plan={name!r} cannot serve this: {why_not}; {' or '.join(can)} would")
    return Plan(name, f"asked for; {_sizes(workload)} pairs")


def obstacle(name: Name, workload: Workload) -> str | None:
    """Why a plan cannot serve, or None if it can."""
    if name == "pairs":
        return None
    if workload.device != "cpu":
        return f"it runs on the processor, and the data is on {workload.device}"
    if workload.dim == 0:
        return "no feature has a finite bandwidth, so every query has the same answer"
    if name == "cells":
        return None
    if workload.kernel != "gaussian":
        return f"the fast sum knows the Gaussian kernel alone, and the kernel is {workload.kernel}"
    if workload.dim > 3:
        return f"the fast sum works in 1 to 3 dimensions, and {workload.dim} features matter here"
    if not fourier.widest_series(workload.extent, workload.tol).fits:
        wide = " x ".join(f"{extent:.3g}" for extent in workload.extent)
        return f"the data is {wide} bandwidths wide, which takes too many frequencies"
    return None


def seconds(name: Name, workload: Workload) -> float:
    """The estimated cost of a plan, without repairs."""
    rows, many = workload.points + workload.queries, workload.pairs > EXACT_PAIRS
    if name == "fast":
        series = fourier.widest_series(workload.extent, workload.tol)
        transforms = sum(transform_seconds(series, points) for points in (workload.points, workload.queries))
        return (workload.columns + 2) // 2 * transforms + STANDARDISE_COORDINATE * workload.dim * rows
    if workload.kernel != "gaussian":
        pairs = workload.pairs * (PAIR_DIRECT + PAIR_DIRECT_FEATURE * workload.dim)
    else:
        pairs = workload.pairs * (PAIR_SINGLE if many and workload.tol >= SINGLE_TOL else PAIR_DOUBLE)
    return pairs * workload.share * PRUNED_PAIR + rows * PRUNED_POINT if name == "cells" else pairs


def transform_seconds(series: Series, points: int, larger_grid: float = 1.0) -> float:
    """The cost of one non-uniform transform; the grid may be `larger_grid` times that of the series."""
    width = math.ceil(-math.log10(series.eps)) + 1  # grid cells that a point is spread over, along each axis
    return SPREAD_POINT * points * width ** len(series.modes) + GRID_CELL * series.cells * larger_grid


def pairwise_leave_one_out_seconds(rows: int, dim: int, degree: int) -> float:
    """The cost of one leave-one-out evaluation over all pairs; lines need moments of each feature."""
    return LEAVE_ONE_OUT_PAIR * rows**2 * (1 + degree * dim / 2)


def fourier_leave_one_out_seconds(series: Series, rows: int, outputs: int, larger_grid: float) -> float:
    """The cost of one leave-one-out evaluation by transforms: to the points, and back for the gradient."""
    return LEAVE_ONE_OUT_CALLS + (outputs + 2) // 2 * 2 * transform_seconds(series, rows, larger_grid)


def _reason(name: Name, workload: Workload, costs: dict[Name, float]) -> str:
    others = ", ".join(f"{other} {_duration(cost)}" for other, cost in costs.items() if other != name)
    against = f", against {others}" if others else ""
    what = {
        "pairs": f"every one of {_sizes(workload)} pairs",
        "cells": f"about {workload.share:.1%} of {_sizes(workload)} pairs are within the kernel's reach, which",
        "fast": f"a sum over frequencies instead of {_sizes(workload)} pairs",
    }[name]
    return f"{what} takes about {_duration(costs[name])}{against}"


def _duration(cost: float) -> str:
    return f"{cost * 1e3:.0f} ms" if cost < 1 else f"{cost:.1f} s"


def _sizes(workload: Workload) -> str:
    return f"{workload.queries:,} x {workload.points:,}"


def estimate_share_in_reach(sample: Sample, query: Float[Tensor, "q dim"], tol: float) -> float:
    """The selectivity of pruning: the share of all pairs that is left, estimated from a few tiles of queries."""
    n, few = len(sample.x), sample.subset(lambda rows: _every(rows, ESTIMATE_POINTS))
    few = replace(few, log_weight=few.log_weights + math.log(n / len(few.x)))  # with the weight of all
    data = standardise(few, _every(query, ESTIMATE_QUERIES))
    members = max(1, min(len(data.query), round(pruned_sum.QUERIES / len(query) * len(data.query))))
    centres = _every(data.query, ESTIMATE_TILES)
    distances = [(data.query - centre).abs().amax(-1) for centre in centres]  # in the maximum norm
    tiles = torch.stack([data.query[distance.topk(members, largest=False).indices] for distance in distances])
    kept = _mean_points_kept(data, tiles, max(tol, pruned_sum.NEGLIGIBLE))
    return min(1.0, max(kept / len(data.x), pruned_sum.POINTS / n))


def _every(rows: Float[Tensor, "n ..."], count: int) -> Float[Tensor, "some ..."]:
    """About `count` rows, evenly along their order."""
    if len(rows) <= count:
        return rows
    return rows[torch.linspace(0, len(rows) - 1, count, dtype=torch.float64).long()]


def _mean_points_kept(data: Standardised, tiles: Float[Tensor, "tiles members dim"], tol: float) -> float:
    """Mean number of points that are kept for a tile of queries."""
    low, high = tiles.amin(1), tiles.amax(1)
    if kernels.get(data.kernel).compact:
        square = pruned_sum.squared_distance_to_boxes(data.x, low, high)
        return float((square <= pruned_sum.COMPACT_REACH).double().sum(1).mean())
    few = tiles[:, :: max(1, tiles.shape[1] // pruned_sum.QUERIES_FOR_FLOOR)]
    log_weights = data.log_weight_at(squared_distance_by_feature(few.flatten(0, 1), data.x))
    log_floor = log_weights.logsumexp(1).view(few.shape[:2]).amin(1)
    log_bound = pruned_sum.log_contribution_bound(data, low, high)
    kept, _ = pruned_sum.prune_points(log_bound, log_floor, pruned_sum.POINT_SHARE * tol / data.value_range)
    return sum(len(data.x) if points is None else len(points) for points in kept) / len(kept)
