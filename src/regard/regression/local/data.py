"""Data of a local fit: a sample with its settings, and every kernel average that a fit takes of it.

Queries are tables with all features. Categories have the kernel of `kernel_sums.categorical`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard import kernels, scores
from regard.operands import NEVER
from regard.regression.kernel_sums import clamp, engine, relative_weights
from regard.regression.kernel_sums.categorical import Categories, by_category
from regard.regression.kernel_sums.relative_weights import Statistic
from regard.regression.kernel_sums.sample import BLOCK_PAIRS, Sample, extent
from regard.regression.kernel_sums.state import Pooled
from regard.weights import Weights

LARGEST_LOG_WEIGHT = 1e6  # |lse| above which lse2 - 2 lse has lost 6 of 16 digits
DIFFERENT_CATEGORY = -1e6  # score instead of -inf: a weight of 0 up to 10^3 bandwidths, and 10 digits are left


class Noise(NamedTuple):
    """Noise of the data in a prediction: its standard error is sqrt(variance x kept)."""

    variance: Float[Tensor, "q outputs"]  # of one row near the query
    kept: Float[Tensor, " q"]  # sum_i l_i^2 / s_i, the share of that variance in the prediction
    rows: Float[Tensor, " q"]  # effective number of rows of equal weight, 1 / sum_i (p_i^2 / s_i)


@dataclass(frozen=True, eq=False)
class Data:
    """Sample whose values are y, its categories, the precision of its averages and how they are computed."""

    sample: Sample  # with the numeric features
    tol: float = 1e-6  # in standard deviations of y
    plan: str = "auto"
    outside: str = "nearest"  # what a query without points in reach gets: "nearest", "nan" or "raise"
    categories: Categories | None = None
    columns: tuple[int, ...] = ()  # with categories: the numeric columns of the table, then the categorical ones

    def with_categories(self, columns: tuple[int, ...], counts: Float[Tensor, " categories"]) -> Data:
        """Data with some columns as categories, numbered from 0; their bandwidths are lambdas."""
        x, width, chosen = self.sample.x, self.sample.bandwidth, list(columns)
        numeric = [column for column in range(x.shape[1]) if column not in columns]
        sample = replace(self.sample, x=x[:, numeric], bandwidth=width[numeric])
        categories = Categories(x[:, chosen], counts, width[chosen])
        return replace(self, sample=sample, categories=categories, columns=(*numeric, *columns))

    # Numeric features and all features

    def numeric(self, table: Float[Tensor, "q features"]) -> Float[Tensor, "q dim"]:
        """Numeric features of a table: all but the categories."""
        return table if self.categories is None else table[:, list(self.columns[: self.sample.x.shape[1]])]

    def codes(self, table: Float[Tensor, "q features"]) -> Float[Tensor, "q categories"]:
        """Categories of a table, as numbers."""
        return table[:, list(self.columns[self.sample.x.shape[1] :])]

    def in_column_order(self, features: Float[Tensor, "*rows features"]) -> Float[Tensor, "*rows features"]:
        """Numeric features followed by categories, brought into the order of the table's columns."""
        return features if self.categories is None else features[..., torch.tensor(self.columns).argsort()]

    def table(self) -> Float[Tensor, "n features"]:
        """Features of the data, as a table of queries."""
        x = self.sample.x
        return x if self.categories is None else self.in_column_order(torch.cat((x, self.categories.codes), 1))

    def all_features(self, slopes: Float[Tensor, "q dim outputs"]) -> Float[Tensor, "q features outputs"]:
        """Slopes of the numeric features, with NaN for categories, in the order of the table."""
        missing = slopes.new_full((len(slopes), len(self.columns[slopes.shape[1] :]), slopes.shape[2]), torch.nan)
        return self.in_column_order(torch.cat((slopes, missing), 1).mT).mT

    # Averages

    def pool(
        self,
        query: Float[Tensor, "q features"],
        values: Float[Tensor, "n columns"] | None = None,
        tol: float | None = None,
    ) -> Pooled:
        """Kernel average of y, or of other values, at each query."""
        sample = self.sample if values is None else replace(self.sample, values=values)
        average = partial(engine.pool, tol=tol or self.tol, plan=self.plan)
        return Pooled(*self._by_category(sample, query, average))

    def from_points(self, query: Float[Tensor, "q features"], statistic: Statistic) -> tuple[Tensor, ...]:
        """Log of the total weight at each query, and `statistic` of the points around it. Exact."""
        around = partial(relative_weights.for_neighbourhoods, statistic=statistic)
        return self._by_category(self.sample, query, around)

    def _by_category(
        self, sample: Sample, query: Float[Tensor, "q features"], function: Callable[..., tuple[Tensor, ...]]
    ) -> tuple[Tensor, ...]:
        """Results of `function` of a sample and points, for queries of one category after another."""
        points = self.numeric(query)
        return by_category(
            sample, self.categories, self.codes(query), lambda group, rows: function(group, points[rows])
        )

    # Weights

    def weights(self, query: Float[Tensor, "q features"]) -> Weights:
        """Weight of each point at each query, as a matrix that is never built.

        Far queries are moved to where the kernel still has digits. Categories are columns of 0 and 1, one for each
        category, and a score of their own for each that query and point share.
        """
        sample, width = self.sample, self.sample.bandwidth
        far, beside = clamp.BY_DISTANCES if kernels.get(sample.kernel).tail_power <= 1 else clamp.BY_SQUARES
        near = clamp.clamp_to(self.numeric(query), extent(sample.x), far * width, beside * width)
        at, keys = sample.scaled(near), sample.scaled(sample.x)
        if self.categories is None:
            return Weights(at, keys, score=sample.score())
        same = (-self.categories.log_other).clamp_max(-DIFFERENT_CATEGORY)
        same = same.repeat_interleave(self.categories.counts.long())
        shared = scores.general(torch.diag(torch.cat([torch.zeros_like(width), same])))
        width = torch.cat([torch.ones_like(width), torch.full_like(same, torch.inf)])
        at = torch.cat([at, self.categories.one_hot(self.codes(query))], 1)
        keys = torch.cat([keys, self.categories.one_hot(self.categories.codes)], 1)
        return Weights(at, keys, score=sample.score(width) + shared)

    def own_weight(self, lse: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Weight p_ii of each point at itself: s_i K(0) over the sum of its row, with K(0) = 1."""
        return torch.exp(self.sample.log_weights - lse)

    def pool_squared(
        self,
        query: Float[Tensor, "q features"],
        lse: Float[Tensor, " q"],
        values: Float[Tensor, "n columns"],
        tol: float | None = None,
    ) -> Pooled:
        """Log of sum_i p_i^2 / s_i, and the mean of the values under these weights; `lse` is that of the kernel.

        A point of weight s is a mean of s rows and has the variance sigma^2 / s, so noise adds up as

            sum_i (p_i^2 / s_i) v_i = sum_i s_i K_i^2 v_i / (sum_j s_j K_j)^2.

        The square of many kernels is a kernel: of a Gaussian, one narrower by sqrt(2). Then this is a kernel average.
        Otherwise blocks of weights are squared, one after another.
        """
        square = kernels.get(self.sample.kernel).square
        if square is None:
            return self._pool_squared_weights(query, values)
        kernel, narrower = square
        sample = replace(self.sample, kernel=kernel, bandwidth=self.sample.bandwidth / narrower)
        categories = None if self.categories is None else self.categories.squared()
        pooled = replace(self, sample=sample, categories=categories).pool(query, values, tol)
        pooled = pooled._replace(lse=torch.where(lse == NEVER, NEVER, pooled.lse - 2 * lse))
        far = ((lse < -LARGEST_LOG_WEIGHT) & (lse != NEVER)).nonzero().flatten()
        if len(far):
            pooled.put(far, self._pool_squared_weights(query[far], values))
        return pooled

    def _pool_squared_weights(self, query: Tensor, values: Tensor) -> Pooled:
        weights, log_weight = self.weights(query), self.sample.log_weight
        per_weight = None if log_weight is None else torch.where(log_weight == NEVER, 0.0, torch.exp(-log_weight))
        step = max(1, BLOCK_PAIRS // weights.shape[1])
        lse, mean = values.new_empty(len(query)), values.new_empty(len(query), values.shape[1])
        for low in range(0, len(query), step):
            rows = slice(low, low + step)
            squares = weights[rows].square()
            squares = squares if per_weight is None else squares * per_weight
            total = squares.sum(1)
            lse[rows] = total.log()
            mean[rows] = squares @ values / torch.where(total > 0, total, 1.0).unsqueeze(1)
        return Pooled(lse, mean, torch.zeros_like(lse))
