"""Rows of leave-one-out: duplicates merged, standardised and sorted; and the result at one bandwidth.

The criterion of a bandwidth h is the mean squared leave-one-out residual

    CV(h) = sum_i w_i (y_i - f_{-i}(x_i))^2 / sum_i w_i,

where f_{-i} is fitted without row i. With several outputs each square is divided by the variance of its output.

A row that occurs three times and a row of weight three are the same data: one of the three is left out, not all of
them. Weights are counts where all of them are whole numbers. Any other weights say how much a row is worth, and then
the whole row is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.operands import NEVER
from regard.regression.kernel_sums.categorical import Categories
from regard.regression.kernel_sums.sample import Sample

COUNT_ROUNDING = 1e-12  # relative: a whole number that went through its logarithm has lost some digits


class Evaluation(NamedTuple):
    """Leave-one-out at one bandwidth."""

    value: float  # CV(h)
    # d CV / d log h of each bandwidth, 0 where it is infinite; d CV / d lambda of each lambda, 0 where it is 0.
    gradient: Float[Tensor, " features"]
    ordered: Float[Tensor, "n outputs"]  # residuals in the order of the problem's rows
    order: Int[Tensor, " n"]  # the caller's row of each

    @property
    def residuals(self) -> Float[Tensor, "n outputs"]:
        """y_i - f_{-i}(x_i) in the caller's order, computed when asked for: a million rows take a while."""
        return _unsort(self.ordered, self.order)


@dataclass(frozen=True, eq=False)
class Problem:
    """Data of leave-one-out: features standardised, outputs centred, rows sorted along the widest feature.

    A row of weight w counts w times in CV. It is left out whole unless `left_out` says how much of w goes: 1 where
    weights are counts, so that a row of weight 2 is a pair of equal rows that predict each other.

    With categories, rows of one combination of categories stand together, and a bandwidth has its lambdas last.
    """

    x: Float[Tensor, "n dim"]
    y: Float[Tensor, "n outputs"]
    kernel: str
    degree: int
    log_weight: Float[Tensor, " n"] | None
    log_kept: Float[Tensor, " n"] | None  # log of the share of its weight that a left out row keeps; None: nothing
    share: Float[Tensor, " n"]  # w_i / sum w
    output_weight: Float[Tensor, " outputs"]  # of a squared residual in CV
    unit: Float[Tensor, " features"]  # standard deviation of each feature; 1 for categories
    order: Int[Tensor, " n"]  # the caller's row of each row
    categories: Categories | None = None

    @classmethod
    def of(
        cls,
        x: Float[Tensor, "n dim"],
        y: Float[Tensor, "n outputs"],
        kernel: str = "gaussian",
        degree: int = 0,
        log_weight: Float[Tensor, " n"] | None = None,
        left_out: Float[Tensor, " n"] | None = None,
        categories: Categories | None = None,
    ) -> Problem:
        """Standardise and sort the data; a constant feature becomes exactly 0."""
        weight = torch.ones_like(y[:, 0]) if log_weight is None else torch.exp(log_weight - log_weight.max())
        share = weight / weight.sum()
        x = x - share @ x
        deviation = (share @ x.square()).sqrt()
        changes = (x.amax(0) > x.amin(0)) & (deviation > 0)
        unit = torch.where(changes, deviation, 1.0)
        x = torch.where(changes, x / unit, 0.0)
        y = y - share @ y
        variance = share @ y.square()
        several = y.shape[1] > 1
        output_weight = torch.where(variance > 0, 1 / variance, 1.0) if several else torch.ones_like(variance)
        widest = int((x.amax(0) - x.amin(0)).argmax()) if x.shape[1] else 0
        order = torch.argsort(x[:, widest], stable=True) if x.shape[1] else torch.arange(len(x), device=x.device)
        if categories is not None:
            combination = torch.unique(categories.codes, dim=0, return_inverse=True)[1]
            order = order[torch.argsort(combination[order], stable=True)]
            categories, unit = categories.at(order), torch.cat((unit, torch.ones_like(categories.max_smoothing)))
        log_kept = None
        if left_out is not None and log_weight is not None:
            log_kept = torch.log((1 - left_out / torch.exp(log_weight)).clamp_min(0.0))[order]
        log_weight = None if log_weight is None else log_weight[order]
        x, y, share = x[order], y[order], share[order]
        return cls(x, y, kernel, degree, log_weight, log_kept, share, output_weight, unit, order, categories)

    def subsample(self, rows: int) -> Problem:
        """About this many rows, evenly along the order, in the same units."""
        some = torch.linspace(0, len(self.x) - 1, rows, dtype=torch.float64).round().to(torch.int64)
        log_weight, log_kept = (None if t is None else t[some] for t in (self.log_weight, self.log_kept))
        share = self.share[some] / self.share[some].sum()
        parts = self.x[some], self.y[some], self.kernel, self.degree, log_weight, log_kept, share
        categories = None if self.categories is None else self.categories.at(some)
        return Problem(*parts, self.output_weight, self.unit, torch.arange(len(some)), categories)

    @cached_property
    def extent(self) -> Float[Tensor, " dim"]:
        """Largest minus smallest value of each feature, in standard deviations."""
        return self.x.amax(0) - self.x.amin(0)

    @cached_property
    def irrelevant(self) -> Float[Tensor, " features"]:
        """Bandwidth at which no feature matters: infinite widths and the largest lambdas."""
        infinite = torch.full_like(self.x[0], torch.inf)
        return infinite if self.categories is None else torch.cat((infinite, self.categories.max_smoothing))

    def relevant_categories(self, lambdas: Float[Tensor, " categories"]) -> Bool[Tensor, " categories"]:
        """Categories that change the weights at these lambdas: more than one occurs, and lambda is not the largest."""
        if self.categories is None:
            return torch.zeros_like(lambdas, dtype=torch.bool)
        return (self.categories.codes != self.categories.codes[0]).any(0) & (lambdas < self.categories.max_smoothing)

    @cached_property
    def deviation(self) -> Float[Tensor, " outputs"]:
        """Standard deviation of each output; 1 where it is constant."""
        deviation = (self.share @ self.y.square()).sqrt()
        return torch.where(deviation > 0, deviation, 1.0)

    @cached_property
    def log_left_out(self) -> Float[Tensor, " n"]:
        """Log of the weight that goes when a row is left out."""
        whole = self.log_weights
        return whole if self.log_kept is None else whole + torch.log1p(-torch.exp(self.log_kept))

    @cached_property
    def log_weights(self) -> Float[Tensor, " n"]:
        """Log of each weight; 0 where no weights were given."""
        return torch.zeros_like(self.share) if self.log_weight is None else self.log_weight

    @property
    def total_variance(self) -> float:
        """Value of CV if each row were predicted by the mean of all."""
        return float(self.share @ self.y.square() @ self.output_weight)

    def in_caller_order(self, rows: Float[Tensor, "n ..."]) -> Float[Tensor, "n ..."]:
        """Rows in the order in which the caller gave the data."""
        return _unsort(rows, self.order)

    def evaluation(self, residuals: Float[Tensor, "n outputs"], gradient: Float[Tensor, " features"]) -> Evaluation:
        """CV from the residuals."""
        value = float(self.share @ residuals.square() @ self.output_weight)
        return Evaluation(value, gradient, residuals, self.order)


def _unsort(rows: Tensor, order: Tensor) -> Tensor:
    result = torch.empty_like(rows)
    result[order] = rows
    return result


# Duplicate rows


class Rows(NamedTuple):
    """Rows of positive weight, and how much of its weight each loses when it is left out."""

    x: Float[Tensor, "n dim"]
    y: Float[Tensor, "n outputs"]
    weight: Float[Tensor, " n"] | None
    left_out: Float[Tensor, " n"] | None  # None: all of it
    merged: bool  # fewer rows than the sample has, in an order of their own
    categories: Categories | None = None

    @property
    def total(self) -> float | None:
        """Number of rows with their duplicates, where weights are counts."""
        return float(self.weight.sum()) if self.weight is not None and self.left_out is not None else None


def merge_duplicates(sample: Sample, categories: Categories | None = None) -> Rows:
    """Rows of a sample without duplicates; if there were any, in an order that does not depend on the given one."""
    if categories is None:
        return _merge(sample)
    dim = sample.x.shape[1]
    widths = torch.cat((sample.bandwidth, categories.smoothing))
    rows = _merge(replace(sample, x=torch.cat((sample.x, categories.codes), 1), bandwidth=widths))
    return rows._replace(x=rows.x[:, :dim], categories=categories._replace(codes=rows.x[:, dim:]))


def _merge(sample: Sample) -> Rows:
    if sample.log_weight is None:
        if not _may_have_duplicates(sample.x, sample.values):
            return Rows(sample.x, sample.values, None, None, merged=False)
        return _unique(sample.x, sample.values, torch.ones_like(sample.x[:, 0]))
    kept = sample.log_weight > NEVER
    x, y, weight = sample.x[kept], sample.values[kept], sample.log_weight[kept].exp()
    counts = as_counts(weight)
    if counts is None:
        return Rows(x, y, weight, None, merged=not bool(kept.all()))
    return _unique(x, y, counts)


def as_counts(weight: Float[Tensor, " n"]) -> Float[Tensor, " n"] | None:
    """Weights rounded to whole numbers, or None if they are none."""
    whole = weight.round()
    return whole if bool(((weight - whole).abs() <= COUNT_ROUNDING * weight).all()) else None


def _unique(x: Tensor, y: Tensor, counts: Tensor) -> Rows:
    columns = torch.cat([x, y], 1).numpy(force=True)
    rows, inverse = np.unique(columns, axis=0, return_inverse=True)
    total = np.bincount(inverse.reshape(-1), weights=counts.numpy(force=True))
    table = torch.from_numpy(rows).to(x.device)
    weight = torch.from_numpy(total).to(x.device)
    return Rows(table[:, : x.shape[1]], table[:, x.shape[1] :], weight, torch.ones_like(weight), merged=True)


def _may_have_duplicates(x: Float[Tensor, "n dim"], y: Float[Tensor, "n outputs"]) -> bool:
    """True if two rows may be equal: one random projection of the rows is much cheaper to sort than the rows."""
    columns = [*x.unbind(1), *y.unbind(1)]
    factors = torch.randn(len(columns), dtype=torch.float64, generator=torch.Generator().manual_seed(0)).tolist()
    projection = torch.zeros_like(columns[0])
    for factor, column in zip(factors, columns, strict=True):
        projection += factor * column
    projection = projection.sort().values
    return bool((projection[1:] == projection[:-1]).any())
