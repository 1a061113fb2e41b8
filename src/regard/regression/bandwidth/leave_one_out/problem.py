"""What leave-one-out is asked about: the data in units in which nothing is large, and what an answer holds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.regression.kernel_sums.categorical import Kinds


class Evaluation(NamedTuple):
    """Leave-one-out at one bandwidth."""

    value: float  # sum_i w_i r_i^2 / sum_i w_i; with several outputs each square is divided by its output's variance
    # Of the value by the logarithm of each bandwidth, 0 where it is infinite; and by each lambda, 0 where it is 0.
    gradient: Float[Tensor, " features"]
    ordered: Float[Tensor, "n outputs"]  # residuals as the problem has its rows
    order: Tensor  # the caller's row of each

    @property
    def residuals(self) -> Float[Tensor, "n outputs"]:
        """y_i - f_{-i}(x_i) in the caller's order. A search asks once, at its end: a million rows take a while."""
        return _back(self.ordered, self.order)


@dataclass(frozen=True, eq=False)
class Problem:
    """Points in the order of their widest feature, features in standard deviations, outputs from their mean.

    A point of weight w counts w times in the average of squares. It leaves itself out whole unless `left_out` says how
    much of w goes: 1 where a weight is a count, so that a point of weight 2 is a pair of twins that predict each other.

    With categories, those of one combination stand together, and a bandwidth has the lambdas after the widths.
    """

    x: Float[Tensor, "n dim"]
    y: Float[Tensor, "n outputs"]
    kernel: str
    degree: int
    log_weight: Float[Tensor, " n"] | None
    log_kept: Float[Tensor, " n"] | None  # log of the part of its weight that a point keeps when left out; None: none
    share: Float[Tensor, " n"]  # w_i / sum w
    per_output: Float[Tensor, " outputs"]  # what a squared residual of each output is multiplied by
    unit: Float[Tensor, " features"]  # of each feature, in the caller's; 1 for categories
    order: Tensor  # the caller's row of each row
    kinds: Kinds | None = None

    @classmethod
    def of(
        cls,
        x: Float[Tensor, "n dim"],
        y: Float[Tensor, "n outputs"],
        kernel: str = "gaussian",
        degree: int = 0,
        log_weight: Float[Tensor, " n"] | None = None,
        left_out: Float[Tensor, " n"] | None = None,
        kinds: Kinds | None = None,
    ) -> Problem:
        weight = torch.ones_like(y[:, 0]) if log_weight is None else torch.exp(log_weight - log_weight.max())
        share = weight / weight.sum()
        x, unit = _standard(x, share)
        y = y - share @ y
        variance = share @ y.square()
        several = y.shape[1] > 1
        per_output = torch.where(variance > 0, 1 / variance, 1.0) if several else torch.ones_like(variance)
        widest = int((x.amax(0) - x.amin(0)).argmax()) if x.shape[1] else 0
        order = torch.argsort(x[:, widest], stable=True) if x.shape[1] else torch.arange(len(x), device=x.device)
        if kinds is not None:
            combination = torch.unique(kinds.codes, dim=0, return_inverse=True)[1]
            order = order[torch.argsort(combination[order], stable=True)]
            kinds, unit = kinds.at(order), torch.cat((unit, torch.ones_like(kinds.most)))
        log_kept = None
        if left_out is not None and log_weight is not None:
            log_kept = torch.log((1 - left_out / torch.exp(log_weight)).clamp_min(0.0))[order]
        log_weight = None if log_weight is None else log_weight[order]
        x, y, share = x[order], y[order], share[order]
        return cls(x, y, kernel, degree, log_weight, log_kept, share, per_output, unit, order, kinds)

    def thinned(self, points: int) -> Problem:
        """About so many of the points, evenly along the order, in the same units."""
        some = torch.linspace(0, len(self.x) - 1, points, dtype=torch.float64).round().to(torch.int64)
        log_weight, log_kept = (None if t is None else t[some] for t in (self.log_weight, self.log_kept))
        y = self.y[some]
        share = self.share[some] / self.share[some].sum()
        order = torch.arange(len(some))
        parts = self.x[some], y, self.kernel, self.degree, log_weight, log_kept, share, self.per_output, self.unit
        return Problem(*parts, order, None if self.kinds is None else self.kinds.at(some))

    @cached_property
    def spread(self) -> Float[Tensor, " dim"]:
        """Largest less smallest value of each feature, in its units."""
        return self.x.amax(0) - self.x.amin(0)

    @cached_property
    def no_help(self) -> Float[Tensor, " features"]:
        """The bandwidth at which no feature matters."""
        infinite = torch.full_like(self.x[0], torch.inf)
        return infinite if self.kinds is None else torch.cat((infinite, self.kinds.most))

    def matters(self, chance: Float[Tensor, " kinds"]) -> Bool[Tensor, " kinds"]:
        """Which categories these lambdas tell apart, of those that differ at all."""
        assert self.kinds is not None  # noqa: S101  a caller that has lambdas has categories
        return (self.kinds.codes != self.kinds.codes[0]).any(0) & (chance < self.kinds.most)

    @cached_property
    def deviation(self) -> Float[Tensor, " outputs"]:
        """Of each output; 1 where it is constant."""
        deviation = (self.share @ self.y.square()).sqrt()
        return torch.where(deviation > 0, deviation, 1.0)

    @cached_property
    def log_left_out(self) -> Float[Tensor, " n"]:
        """Log of the weight that goes when a point is left out."""
        whole = self.log_weights
        return whole if self.log_kept is None else whole + torch.log1p(-torch.exp(self.log_kept))

    @cached_property
    def log_weights(self) -> Float[Tensor, " n"]:
        """Log of each weight, also where none was given."""
        return torch.zeros_like(self.share) if self.log_weight is None else self.log_weight

    @property
    def total_variance(self) -> float:
        """What the value would be if each point were predicted by the mean of all."""
        return float(self.share @ self.y.square() @ self.per_output)

    def back(self, rows: Float[Tensor, "n ..."]) -> Float[Tensor, "n ..."]:
        """What is known of each row, in the caller's order."""
        return _back(rows, self.order)

    def answer(self, residuals: Float[Tensor, "n outputs"], gradient: Float[Tensor, " dim"]) -> Evaluation:
        """Weigh the squares of the residuals."""
        value = float(self.share @ residuals.square() @ self.per_output)
        return Evaluation(value, gradient, residuals, self.order)


def _back(rows: Tensor, order: Tensor) -> Tensor:
    found = torch.empty_like(rows)
    found[order] = rows
    return found


def _standard(x: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """Features from their mean, in standard deviations; one that never changes becomes 0 exactly."""
    x = x - share @ x
    deviation = (share @ x.square()).sqrt()
    changes = (x.amax(0) > x.amin(0)) & (deviation > 0)
    unit = torch.where(changes, deviation, 1.0)
    return torch.where(changes, x / unit, 0.0), unit
