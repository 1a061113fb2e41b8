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
from regard.regression.kernel_sums.sample import Sample, Standardised, extent, in_original_order

COUNT_ROUNDING = 1e-12  # relative: a whole number that went through its logarithm has lost some digits


class Evaluation(NamedTuple):
    """Leave-one-out at one bandwidth."""

    value: float  # CV(h)
    # d CV / d log h of each bandwidth, 0 where it is infinite; d CV / d lambda of each lambda, 0 where it is 0.
    gradient: Float[Tensor, " features"]
    ordered: Float[Tensor, "n outputs"]  # residuals in units and in the order of the problem's rows
    order: Int[Tensor, " n"]  # the caller's row of each
    scale: Float[Tensor, " outputs"]  # the unit of each output

    @property
    def residuals(self) -> Float[Tensor, "n outputs"]:
        """y_i - f_{-i}(x_i) as the caller knows them, computed when asked for: a million rows take a while."""
        return in_original_order(self.ordered * self.scale, self.order)


@dataclass(frozen=True, eq=False)
class Problem:
    """Data of leave-one-out: a standardised sample that is its own queries, and what happens to a row left out.

    Features are in standard deviations from their means, outputs nearly so, and rows are sorted along the widest
    feature. With categories, rows of one combination of them stand together, and a bandwidth has its lambdas last.
    """

    data: Standardised
    degree: int
    log_kept: Float[Tensor, " n"] | None  # log of the share of its weight that a left out row keeps; None: nothing
    share: Float[Tensor, " n"]  # w_i / sum w
    output_weight: Float[Tensor, " outputs"]  # of a squared residual in CV
    unit: Float[Tensor, " features"]  # standard deviation of each feature; 1 for categories
    order: Int[Tensor, " n"]  # the caller's row of each row
    categories: Categories | None = None

    @classmethod
    def of(cls, rows: Rows, degree: int = 0) -> Problem:
        """Standardise and sort the rows, whatever their bandwidth; a constant feature becomes exactly 0."""
        sample, left_out, categories, _ = rows
        share, log_weight = sample.share(), sample.log_weight
        x = sample.x - share @ sample.x
        deviation = (share @ x.square()).sqrt()
        changes = (x.amax(0) > x.amin(0)) & (deviation > 0)
        unit = torch.where(changes, deviation, 1.0)
        x = torch.where(changes, x / unit, 0.0)
        mean = share @ sample.values
        variance = share @ (sample.values - mean).square()
        # A power of two, at most the standard deviation, by which numbers are divided without rounding.
        scale = torch.from_numpy(np.ldexp(1.0, np.frexp(variance.sqrt().numpy())[1] - 1))
        scale = torch.where(variance > 0, scale, 1.0)
        low, high = extent(x)
        order = torch.argsort(x[:, (high - low).argmax()], stable=True) if x.shape[1] else torch.arange(len(x))
        if categories is not None:
            combination = torch.unique(categories.codes, dim=0, return_inverse=True)[1]
            order = order[torch.argsort(combination[order], stable=True)]
            categories, unit = categories.at(order), torch.cat((unit, torch.ones_like(categories.max_smoothing)))
        log_kept = None
        if left_out is not None and log_weight is not None:
            log_kept = torch.log((1 - left_out / torch.exp(log_weight)).clamp_min(0.0))[order]
        log_weight, values = None if log_weight is None else log_weight[order], ((sample.values - mean) / scale)[order]
        x = x[order]
        data = Standardised(x, x, values, log_weight, sample.kernel, low, high, mean=mean, scale=scale)
        several = (len(scale) > 1) & (variance > 0)
        output_weight = scale.square() * torch.where(several, 1 / variance, 1.0)
        return cls(data, degree, log_kept, share[order], output_weight, unit, order, categories)

    def subsample(self, rows: int) -> Problem:
        """About this many rows, evenly along the order, in the same units."""
        chosen = torch.linspace(0, len(self.data.x) - 1, rows, dtype=torch.float64).round().to(torch.int64)
        data = self.data.subset(lambda rows: rows[chosen])
        low, high = extent(data.x)
        log_kept = None if self.log_kept is None else self.log_kept[chosen]
        return replace(
            self,
            data=replace(data, query=data.x, low=low, high=high),
            log_kept=log_kept,
            share=self.share[chosen] / self.share[chosen].sum(),
            order=torch.arange(len(chosen)),
            categories=None if self.categories is None else self.categories.at(chosen),
        )

    @cached_property
    def extent(self) -> Float[Tensor, " dim"]:
        """Largest minus smallest value of each feature, in standard deviations."""
        return self.data.high - self.data.low

    @cached_property
    def irrelevant(self) -> Float[Tensor, " features"]:
        """Bandwidth at which no feature matters: infinite widths and the largest lambdas."""
        infinite = torch.full_like(self.extent, torch.inf)
        return infinite if self.categories is None else torch.cat((infinite, self.categories.max_smoothing))

    def relevant_categories(self, lambdas: Float[Tensor, " categories"]) -> Bool[Tensor, " categories"]:
        """Categories that change the weights at these lambdas: more than one occurs, and lambda is not the largest."""
        if self.categories is None:
            return torch.zeros_like(lambdas, dtype=torch.bool)
        return (self.categories.codes != self.categories.codes[0]).any(0) & (lambdas < self.categories.max_smoothing)

    def at(self, bandwidth: Float[Tensor, " features"]) -> tuple[Sample, Categories | None, Bool[Tensor, " features"]]:
        """The rows as a sample at a bandwidth in the caller's units, with relevant features alone, and which these are.

        Relevant features have a finite bandwidth or a small lambda, and are not constant.
        """
        data, (h, lambdas) = self.data, (bandwidth / self.unit).tensor_split([len(self.extent)])
        relevant, which, categories = torch.isfinite(h) & (self.extent > 0), self.relevant_categories(lambdas), None
        if self.categories is not None and bool(which.any()):
            codes, counts, _ = self.categories
            categories = Categories(codes[:, which], counts[which], lambdas[which])
        sample = Sample(data.x[:, relevant], data.values, h[relevant], data.kernel, data.log_weight)
        return sample, categories, torch.cat((relevant, which))

    def line_coordinates(self, bandwidth: Float[Tensor, " features"]) -> Float[Tensor, "n dim"]:
        """Coordinates of local lines: all features, in bandwidths or in standard deviations, whichever is smaller."""
        h = (bandwidth / self.unit)[: len(self.extent)]
        return self.data.x / torch.where(torch.isfinite(h) & (self.extent > 0), h, 1.0).clamp_max(1.0)

    @cached_property
    def log_left_out(self) -> Float[Tensor, " n"]:
        """Log of the weight that goes when a row is left out."""
        whole = self.data.log_weights
        return whole if self.log_kept is None else whole + torch.log1p(-torch.exp(self.log_kept))

    @property
    def total_variance(self) -> float:
        """Value of CV if each row were predicted by the mean of all."""
        return float(self.share @ self.data.values.square() @ self.output_weight)

    def evaluation(self, residuals: Float[Tensor, "n outputs"], gradient: Float[Tensor, " features"]) -> Evaluation:
        """CV from the residuals, which are in the problem's units and order."""
        value = float(self.share @ residuals.square() @ self.output_weight)
        return Evaluation(value, gradient, residuals, self.order, self.data.scale)


# Duplicate rows


class Rows(NamedTuple):
    """Rows of positive weight as they were given, and how much of its weight each loses when it is left out.

    A row of weight w counts w times in CV. It is left out whole unless `left_out` says how much of w goes: 1 where
    weights are counts, so that a row of weight 2 is a pair of equal rows that predict each other.
    """

    sample: Sample
    left_out: Float[Tensor, " n"] | None = None
    categories: Categories | None = None
    merged: bool = False  # fewer rows than there were, in an order of their own

    @property
    def bandwidth(self) -> Float[Tensor, " features"]:
        """Bandwidths of the sample, followed by the lambdas of the categories."""
        widths = self.sample.bandwidth
        return widths if self.categories is None else torch.cat((widths, self.categories.smoothing))

    @property
    def total(self) -> float | None:
        """Number of rows with their duplicates, where weights are counts."""
        return None if self.left_out is None else float(self.sample.log_weights.exp().sum())


def merge_duplicates(sample: Sample, categories: Categories | None = None) -> Rows:
    """Rows of a sample without duplicates; if there were any, in an order that does not depend on the given one."""
    codes = sample.x[:, :0] if categories is None else categories.codes
    columns, counts = torch.cat((sample.x, codes, sample.values), 1), torch.ones_like(sample.values[:, 0])
    if sample.log_weight is not None:
        kept = sample.log_weight > NEVER
        columns, counts = columns[kept], as_counts(sample.log_weight[kept].exp())
        if counts is None:
            weighted, categories = sample.subset(lambda rows: rows[kept]), categories and categories.at(kept)
            return Rows(weighted, categories=categories, merged=not bool(kept.all()))
    elif not _may_have_duplicates(columns):
        return Rows(sample, categories=categories)
    distinct, inverse = np.unique(columns.numpy(), axis=0, return_inverse=True)
    total = torch.from_numpy(np.bincount(inverse.reshape(-1), weights=counts.numpy()))
    x, codes, values = torch.from_numpy(distinct).split([part.shape[1] for part in (sample.x, codes, sample.values)], 1)
    merged = replace(sample, x=x, values=values, log_weight=total.log())
    return Rows(merged, torch.ones_like(total), categories and categories._replace(codes=codes), merged=True)


def as_counts(weight: Float[Tensor, " n"]) -> Float[Tensor, " n"] | None:
    """Weights rounded to whole numbers, or None if they are none."""
    whole = weight.round()
    return whole if bool(((weight - whole).abs() <= COUNT_ROUNDING * weight).all()) else None


def _may_have_duplicates(rows: Float[Tensor, "n columns"]) -> bool:
    """True if two rows may be equal: one random projection of the rows is much cheaper to sort than the rows."""
    columns = rows.unbind(1)
    factors = torch.randn(len(columns), dtype=torch.float64, generator=torch.Generator().manual_seed(0)).tolist()
    projection = torch.zeros_like(columns[0])
    for factor, column in zip(factors, columns, strict=True):
        projection += factor * column
    projection = projection.sort().values
    return bool((projection[1:] == projection[:-1]).any())
