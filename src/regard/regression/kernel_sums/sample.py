"""Data of a kernel average: `Sample` in the user's units, `Standardised` in bandwidths and standard deviations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard import kernels, scores
from regard.operands import NEVER
from regard.scores import Score

Points = TypeVar("Points", bound="WeightedPoints")

EXACT_PAIRS = 10**7  # up to this many pairs of query and point every pair is summed in float64: documented
UNIT_ROUNDOFF = 2.0**-53  # the relative error of one operation in float64
TILE_PAIRS = 2**18  # pairs of query and point at a time, 2 MB a buffer: a few buffers stay in the cache
BLOCK_PAIRS = 2**20  # pairs at a time where each is needed once, 8 MB a buffer: calls cost nothing beside the work
ROWS_FOR_CENTRE = 512  # the median of so many rows: it need not be exact, it must be near most points


class WeightedPoints:
    """Points with values and weights s, under a kernel: what `Sample` and `Standardised` have in common."""

    x: Float[Tensor, "n dim"]
    values: Float[Tensor, "n columns"]
    log_weight: Float[Tensor, " n"] | None
    kernel: str
    __dataclass_fields__: ClassVar[dict[str, Any]]  # both are dataclasses, each with its own order of fields

    def subset(self: Points, take: Callable[[Tensor], Tensor]) -> Points:  # noqa: PYI019  jaxtyping does not know Self
        """Some of the points; `take` selects rows of a tensor."""
        weight = None if self.log_weight is None else take(self.log_weight)
        return replace(self, x=take(self.x), values=take(self.values), log_weight=weight)

    @property
    def log_weights(self) -> Float[Tensor, " n"]:
        """log s of each point; 0 where no weights were given."""
        return torch.zeros_like(self.values[:, 0]) if self.log_weight is None else self.log_weight

    def log_weight_at(self, square: Float[Tensor, "q n"]) -> Float[Tensor, "q n"]:
        """log(s K) of the points at these squared distances, in bandwidths."""
        log_k = kernels.get(self.kernel).log_kernel(square)
        return log_k if self.log_weight is None else log_k + self.log_weight

    def score(self, bandwidth: Float[Tensor, " dim"] | float = 1.0) -> Score:
        """log K + log s between points in bandwidths, as a score of attention."""
        score = scores.kernel(self.kernel, bandwidth)
        return score if self.log_weight is None else score + scores.bias(self.log_weight.unsqueeze(0))


@dataclass(frozen=True, eq=False)
class Sample(WeightedPoints):
    """Data of a kernel average: sum_i s_i K(|(x - x_i) / h|) v_i over the same sum without v. All in float64."""

    x: Float[Tensor, "n dim"]
    values: Float[Tensor, "n columns"]
    bandwidth: Float[Tensor, " dim"]  # inf: the feature does not matter
    kernel: str = "gaussian"
    log_weight: Float[Tensor, " n"] | None = None  # log s; -inf: the point does not count

    def scaled(self, points: Float[Tensor, "q dim"]) -> Float[Tensor, "q dim"]:
        """Points in units of the bandwidth; a feature of infinite bandwidth becomes 0."""
        return points / self.bandwidth

    def share(self) -> Float[Tensor, " n"]:
        """The weight s_i / sum_j s_j of each point, before any kernel."""
        one = self.values.new_ones(len(self.values))
        return one / len(one) if self.log_weight is None else torch.softmax(self.log_weight, 0)


@dataclass(frozen=True, eq=False)
class Standardised(WeightedPoints):
    """A sample and queries in bandwidths from a centre, its values in standard deviations from their mean.

    Only features of finite bandwidth and points of positive weight are left.
    """

    x: Float[Tensor, "n dim"]
    query: Float[Tensor, "q dim"]
    values: Float[Tensor, "n columns"]
    log_weight: Float[Tensor, " n"] | None  # finite
    kernel: str
    low: Float[Tensor, " dim"]  # a box that holds all x
    high: Float[Tensor, " dim"]
    mean: Float[Tensor, " columns"]  # taken out of the values
    scale: Float[Tensor, " columns"]  # the values' unit

    @property
    def value_range(self) -> float:
        """The largest difference of two values in a column, at least 1: it bounds what a stray weight can do."""
        if not self.values.numel():
            return 1.0
        low, high = torch.aminmax(self.values, dim=0)
        return max(1.0, float((high - low).max()))

    def with_query(self, query: Float[Tensor, "p dim"]) -> Standardised:
        """This sample with other queries."""
        return replace(self, query=query)

    def at(self, rows: Int[Tensor, " p"]) -> Standardised:
        """This sample with some of its queries, in the layout that they have in memory."""
        return replace(self, query=self.query.T[:, rows].T)


def relevant(sample: Sample, query: Float[Tensor, "q dim"]) -> tuple[Sample, Float[Tensor, "q finite"]]:
    """The sample and queries without features of infinite bandwidth, and without points of weight 0."""
    finite, weight = torch.isfinite(sample.bandwidth), sample.log_weight
    if not bool(finite.all()):
        sample, query = replace(sample, x=sample.x[:, finite], bandwidth=sample.bandwidth[finite]), query[:, finite]
    if weight is not None and not bool((counts := weight > NEVER).all()):
        sample = sample.subset(lambda rows: rows[counts])
    return sample, query


def standardise(sample: Sample, query: Float[Tensor, "q dim"]) -> Standardised:
    """A sample and queries around the median of its points: most points are near it, and keep their digits."""
    sample, query = relevant(sample, query)
    x = sample.x
    centre = x[:: max(1, len(x) // ROWS_FOR_CENTRE)].median(0).values if x.numel() else x.new_zeros(x.shape[1])
    # The centre is taken away before anything is divided: a large offset would eat the digits of what differs.
    x = (x - centre) / sample.bandwidth
    return _standardised(sample, x, (query - centre) / sample.bandwidth, *extent(x))


def standardise_by_axis(sample: Sample, query: Float[Tensor, "q dim"]) -> Standardised:
    """A sample and queries around the middle of the points' box, each axis contiguous: `x.T` is (dim, n) in memory.

    This is the layout that Fourier transforms and cell lists read.
    """
    sample, query = relevant(sample, query)
    bandwidth = sample.bandwidth
    low, high = extent(sample.x)
    centre = low + (high - low) / 2
    x, query = (_rows_by_axis(points, centre, bandwidth) for points in (sample.x, query))
    return _standardised(sample, x, query, (low - centre) / bandwidth, (high - centre) / bandwidth)


def _standardised(sample: Sample, x: Tensor, query: Tensor, low: Tensor, high: Tensor) -> Standardised:
    values = sample.values
    if not values.numel():
        mean, scale = values.new_zeros(values.shape[1]), values.new_ones(values.shape[1])
    else:
        mean = values.mean(0)
        # Where the deviation is only the rounding of equal numbers, that rounding is the unit.
        scale = torch.maximum(scale_of(values), 8 * UNIT_ROUNDOFF * values.abs().amax(0))
    return Standardised(
        x, query, (values - mean) / scale, sample.log_weight, sample.kernel, low, high, mean=mean, scale=scale
    )


def _rows_by_axis(points: Tensor, centre: Tensor, bandwidth: Tensor) -> Float[Tensor, "n dim"]:
    rows = points.new_empty(points.shape[1], len(points))
    for axis, row in enumerate(rows):
        torch.sub(points[:, axis], centre[axis], out=row).div_(bandwidth[axis])
    return rows.T


def extent(x: Float[Tensor, "n dim"]) -> tuple[Float[Tensor, " dim"], Float[Tensor, " dim"]]:
    """The smallest and the largest number of each feature; feature by feature, several times as fast as along a dim."""
    if not x.numel():
        return x.new_zeros(x.shape[1]), x.new_zeros(x.shape[1])
    low, high = zip(*(torch.aminmax(feature) for feature in x.unbind(1)), strict=True)
    return torch.stack(low), torch.stack(high)


def scale_of(values: Float[Tensor, "n columns"]) -> Float[Tensor, " columns"]:
    """The unit in which a column's error is promised: its standard deviation, or 1 where it is constant."""
    deviation = values.std(0, correction=0)
    return torch.where(deviation > 0, deviation, 1.0)


def in_original_order(rows: Float[Tensor, "n ..."], order: Int[Tensor, " n"]) -> Float[Tensor, "n ..."]:
    """Rows that were sorted by `order`, put back into the order in which they came."""
    result = torch.empty_like(rows)
    result[order] = rows
    return result


def squared_distance_by_feature(query: Float[Tensor, "q dim"], x: Float[Tensor, "n dim"]) -> Float[Tensor, "q n"]:
    """|query_i - x_j|^2, feature by feature: |q|^2 + |x|^2 - 2 q.x would lose the distance between close points."""
    total = query.new_zeros(len(query), len(x))
    difference = torch.empty_like(total)
    for a, b in zip(query.unbind(1), x.unbind(1), strict=True):
        torch.sub(a.unsqueeze(1), b, out=difference)
        total.addcmul_(difference, difference)
    return total
