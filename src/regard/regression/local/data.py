"""Data of a local fit: a sample with its settings, and every kernel average that a fit takes of it.

`Data` has numeric features. `MixedData` also has categories, with the kernel of `kernel_sums.categorical`. Both take
tables with all features as queries.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard import kernels, scores
from regard.attention import attend
from regard.operands import NEVER
from regard.regression.kernel_sums import clamp, engine, relative_weights
from regard.regression.kernel_sums.categorical import Categories, by_category
from regard.regression.kernel_sums.fourier import Gradient
from regard.regression.kernel_sums.relative_weights import Statistic
from regard.regression.kernel_sums.sample import BLOCK_PAIRS, Sample, extent
from regard.regression.kernel_sums.state import Pooled
from regard.scores import Score
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
    """Sample whose values are y, the precision of its averages and how they are computed."""

    sample: Sample
    tol: float = 1e-6  # in standard deviations of y
    plan: str = "auto"
    outside: str = "nearest"  # what a query without points in reach gets: "nearest", "nan" or "raise"

    # Numeric features and all features

    def numeric(self, table: Float[Tensor, "q features ..."]) -> Float[Tensor, "q dim ..."]:
        """Numeric features of a table: all but the categories."""
        return table

    def table(self) -> Float[Tensor, "n features"]:
        """Features of the data, as a table of queries."""
        return self.sample.x

    def all_features(self, slopes: Float[Tensor, "q dim outputs"]) -> Float[Tensor, "q features outputs"]:
        """Slopes of the numeric features, with NaN for categories, in the order of the table."""
        return slopes

    # Averages

    def pool(
        self,
        query: Float[Tensor, "q features"],
        values: Float[Tensor, "n columns"] | None = None,
        tol: float | None = None,
    ) -> Pooled:
        """Kernel average of y, or of other values, at each query."""
        sample = self.sample if values is None else replace(self.sample, values=values)
        return self._average(sample, query, tol or self.tol)

    def _average(self, sample: Sample, query: Float[Tensor, "q features"], tol: float) -> Pooled:
        return engine.pool(sample, query, tol=tol, plan=self.plan)

    def gradient(self, query: Float[Tensor, "q features"]) -> Gradient | None:
        """df/dx of the kernel average by Fourier series, with error bounds; None where that is not the best plan."""
        return engine.gradient(self.sample, query, tol=self.tol, plan=self.plan)

    def from_points(self, query: Float[Tensor, "q features"], statistic: Statistic) -> tuple[Tensor, ...]:
        """Log of the total weight at each query, and `statistic` of the points around it. Exact."""
        return relative_weights.for_neighbourhoods(self.sample, query, statistic)

    def autograd_derivative(self, query: Float[Tensor, "q features"]) -> Float[Tensor, "q features outputs"]:
        """Derivative of the kernel average of y by autograd, over all pairs: row i depends on query i alone."""
        with torch.enable_grad():
            at = query.detach().clone().requires_grad_()
            answer = attend(self._keys(at), self._keys(self.table()), self.sample.values, score=self._score()).output
            parts = [torch.autograd.grad(column.sum(), at, retain_graph=True)[0] for column in answer.unbind(1)]
        return torch.stack(parts, 2)

    # Weights

    def weights(self, query: Float[Tensor, "q features"]) -> Weights:
        """Weight of each point at each query, as a matrix that is never built."""
        return Weights(self._near_keys(query), self._keys(self.table()), score=self._score())

    def own_weight(self, lse: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Weight p_ii of each point at itself: s_i K(0) over the sum of its row, with K(0) = 1."""
        log_weight = self.sample.log_weight
        return torch.exp(-lse if log_weight is None else log_weight - lse)

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
        pooled = self._squared(*square, values).pool(query, tol=tol)
        pooled = pooled._replace(lse=torch.where(lse == NEVER, NEVER, pooled.lse - 2 * lse))
        far = ((lse < -LARGEST_LOG_WEIGHT) & (lse != NEVER)).nonzero().flatten()
        if len(far):
            for whole, part in zip(pooled, self._pool_squared_weights(query[far], values), strict=True):
                whole[far] = part
        return pooled

    def _squared(self, kernel: str, narrower: float, values: Float[Tensor, "n columns"]) -> Data:
        """Data under the square of its kernel, which is another kernel and so many times narrower."""
        width = self.sample.bandwidth / narrower
        return replace(self, sample=replace(self.sample, values=values, kernel=kernel, bandwidth=width))

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

    # Attention between queries and points

    def _keys(self, table: Float[Tensor, "q features"]) -> Float[Tensor, "q keys"]:
        """Points in bandwidths, as attention scores them."""
        return self.sample.scaled(table)

    def _near_keys(self, table: Float[Tensor, "q features"]) -> Float[Tensor, "q keys"]:
        """Queries in bandwidths; far ones are moved to where the kernel still has digits."""
        sample = self.sample
        far, beside = clamp.BY_DISTANCES if kernels.get(sample.kernel).tail_power <= 1 else clamp.BY_SQUARES
        box = extent(sample.x)
        return sample.scaled(clamp.clamp_to(table, box, far * sample.bandwidth, beside * sample.bandwidth))

    def _score(self) -> Score:
        return self.sample.score()


@dataclass(frozen=True, eq=False)
class MixedData(Data):
    """Data with categories: the sample holds the numeric features, `categories` the categories."""

    categories: Categories = field(kw_only=True)
    numeric_columns: tuple[int, ...] = field(kw_only=True)
    category_columns: tuple[int, ...] = field(kw_only=True)

    @classmethod
    def of(cls, data: Data, columns: tuple[int, ...], counts: Float[Tensor, " categories"]) -> MixedData:
        """Data with some columns as categories, numbered from 0; their bandwidths are lambdas."""
        sample = data.sample
        numeric = tuple(i for i in range(sample.x.shape[1]) if i not in columns)
        own, width = list(numeric), sample.bandwidth
        split = replace(sample, x=sample.x[:, own], bandwidth=width[own])
        categories = Categories(sample.x[:, list(columns)], counts, width[list(columns)])
        return cls(
            split,
            data.tol,
            data.plan,
            data.outside,
            categories=categories,
            numeric_columns=numeric,
            category_columns=columns,
        )

    def in_column_order(self, bandwidth: Float[Tensor, " features"]) -> Float[Tensor, " features"]:
        """Bandwidths followed by lambdas, brought into the order of the table's columns."""
        whole = torch.empty_like(bandwidth)
        whole[list(self.numeric_columns + self.category_columns)] = bandwidth
        return whole

    def numeric(self, table: Float[Tensor, "q features ..."]) -> Float[Tensor, "q dim ..."]:
        return table[:, list(self.numeric_columns)]

    def table(self) -> Float[Tensor, "n features"]:
        whole = self.sample.x.new_empty(len(self.sample.x), len(self.numeric_columns) + len(self.category_columns))
        whole[:, list(self.numeric_columns)] = self.sample.x
        whole[:, list(self.category_columns)] = self.categories.codes
        return whole

    def all_features(self, slopes: Float[Tensor, "q dim outputs"]) -> Float[Tensor, "q features outputs"]:
        features = len(self.numeric_columns) + len(self.category_columns)
        whole = slopes.new_full((len(slopes), features, slopes.shape[2]), torch.nan)
        whole[:, list(self.numeric_columns)] = slopes
        return whole

    def _average(self, sample: Sample, query: Float[Tensor, "q features"], tol: float) -> Pooled:
        """Kernel average under the product of the kernels of numeric features and of categories."""
        points, codes = self.numeric(query), query[:, list(self.category_columns)]

        def average(group: Sample, rows: Int[Tensor, " rows"]) -> Pooled:
            return engine.pool(group, points[rows], tol=tol, plan=self.plan)

        return Pooled(*by_category(sample, self.categories, codes, average))

    def gradient(self, query: Float[Tensor, "q features"]) -> None:
        """Return None: a Fourier series knows no categories."""

    def from_points(self, query: Float[Tensor, "q features"], statistic: Statistic) -> tuple[Tensor, ...]:
        points, codes = self.numeric(query), query[:, list(self.category_columns)]

        def around(group: Sample, rows: Int[Tensor, " rows"]) -> tuple[Tensor, ...]:
            return relative_weights.for_neighbourhoods(group, points[rows], statistic)

        return by_category(self.sample, self.categories, codes, around)

    def _squared(self, kernel: str, narrower: float, values: Float[Tensor, "n columns"]) -> MixedData:
        sample = super()._squared(kernel, narrower, values).sample
        return replace(self, sample=sample, categories=self.categories.squared())

    def _keys(self, table: Float[Tensor, "q features"]) -> Float[Tensor, "q keys"]:
        """Points in bandwidths, and one column for each category that is 1 in its rows."""
        one_hot = [
            (table[:, column, None] == torch.arange(levels, device=table.device)).to(table.dtype)
            for column, levels in zip(self.category_columns, self._levels(), strict=True)
        ]
        return torch.cat([super()._keys(self.numeric(table)), *one_hot], 1)

    def _near_keys(self, table: Float[Tensor, "q features"]) -> Float[Tensor, "q keys"]:
        keys = self._keys(table)
        keys[:, : len(self.numeric_columns)] = super()._near_keys(self.numeric(table))
        return keys

    def _levels(self) -> list[int]:
        return [int(count) for count in self.categories.counts.tolist()]

    def _score(self) -> Score:
        """Kernel of the numeric features, plus a score for each category that two rows share."""
        dim = len(self.numeric_columns)
        same = (-self.categories.log_other).clamp_max(-DIFFERENT_CATEGORY)
        same = same.repeat_interleave(torch.tensor(self._levels(), device=same.device))
        width = same.new_full((dim + len(same),), torch.inf)
        width[:dim] = 1.0
        one_hot = scores.general(torch.diag(torch.cat([torch.zeros_like(width[:dim]), same])))
        score = scores.kernel(self.sample.kernel, width) + one_hot
        weight = self.sample.log_weight
        return score if weight is None else score + scores.bias(weight.unsqueeze(0))
