"""A question in its own units: points in bandwidths from a middle, values in standard deviations from their mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from regard import scores
from regard.operands import NEVER
from regard.regression.kernel_sums.sample import Sample, scale_of
from regard.regression.kernel_sums.state import Pooled
from regard.scores import Score

SEEN_FOR_MIDDLE = 512


@dataclass(frozen=True, eq=False)
class Scaled:
    """What every way is handed. `lift` brings its answer back to the caller's units."""

    x: Float[Tensor, "n dim"]
    query: Float[Tensor, "q dim"]
    values: Float[Tensor, "n columns"]
    log_weight: Float[Tensor, " n"] | None  # finite
    kernel: str
    middle: Float[Tensor, " columns"]
    unit: Float[Tensor, " columns"]

    @property
    def span(self) -> float:
        """How far apart two values can be, in standard deviations: what a stray weight can do to an average."""
        if not len(self.values):
            return 1.0
        low, high = torch.aminmax(self.values, dim=0)
        return max(1.0, float((high - low).max())) if self.values.shape[1] else 1.0

    def score(self) -> Score:
        """The kernel between scaled points, as a score of attention."""
        score = scores.kernel(self.kernel)
        return score if self.log_weight is None else score + scores.bias(self.log_weight.unsqueeze(0))

    def asking(self, query: Float[Tensor, "p dim"]) -> Scaled:
        """The same points, asked elsewhere."""
        return replace(self, query=query)

    def taking(self, take: Callable[[Tensor], Tensor]) -> Scaled:
        """Some of the points, in some order."""
        weight = None if self.log_weight is None else take(self.log_weight)
        return replace(self, x=take(self.x), values=take(self.values), log_weight=weight)

    def lift(self, found: Pooled) -> Pooled:
        mean = torch.where(found.lse.unsqueeze(-1) == NEVER, 0.0, found.mean * self.unit + self.middle)
        return Pooled(found.lse, mean, found.error)


def counting(sample: Sample) -> Sample:
    """Features of infinite width and points without weight are left out: they say nothing."""
    told, weight = torch.isfinite(sample.bandwidth), sample.log_weight
    if not bool(told.all()):
        sample = replace(sample, x=sample.x[:, told], bandwidth=sample.bandwidth[told])
    if weight is not None:
        counts = weight > NEVER
        if not bool(counts.all()):
            sample = replace(sample, x=sample.x[counts], values=sample.values[counts], log_weight=weight[counts])
    return sample


def scaled(sample: Sample, query: Float[Tensor, "q dim"]) -> Scaled:
    """What counts of a sample, and a query about it."""
    told = torch.isfinite(sample.bandwidth)
    sample = counting(sample)
    x, values, bandwidth, weight = sample.x, sample.values, sample.bandwidth, sample.log_weight
    ask = query if bool(told.all()) else query[:, told]
    # The middle is taken away before anything is divided: a large offset would eat the digits of what differs.
    centre = _middle(x)
    middle = values.mean(0) if len(values) else values.new_zeros(values.shape[1])
    unit = scale_of(values) if len(values) else torch.ones_like(middle)
    return Scaled(
        (x - centre) / bandwidth,
        (ask - centre) / bandwidth,
        (values - middle) / unit,
        weight,
        sample.kernel,
        middle,
        unit,
    )


def _middle(x: Float[Tensor, "n dim"]) -> Float[Tensor, " dim"]:
    if not x.numel():
        return x.new_zeros(x.shape[1])
    return x[:: max(1, len(x) // SEEN_FOR_MIDDLE)].median(0).values
