"""The data of a fit, and the ways in which it is asked: every average of this package goes through here."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from regard import kernels, scores
from regard.attention import attend
from regard.regression.kernel_sums import clamp, engine, relative_weights
from regard.regression.kernel_sums.categorical import Kinds
from regard.regression.kernel_sums.fourier_gradient import Gradient
from regard.regression.kernel_sums.plan import plan_for
from regard.regression.kernel_sums.relative_weights import Statistic
from regard.regression.kernel_sums.sample import EXACT_PAIRS, Sample, extent
from regard.regression.kernel_sums.state import Pooled
from regard.regression.local.linear_fourier import Lines, lines_if_cheapest
from regard.scores import Score
from regard.weights import Weights


@dataclass(frozen=True, eq=False)
class Data:
    """A sample whose values are y, and how its averages are to be found."""

    sample: Sample
    tol: float = 1e-6
    plan: str = "auto"
    outside: str = "nearest"  # what a query gets that no point reaches

    def points(self, table: Float[Tensor, "q features ..."]) -> Float[Tensor, "q dim ..."]:
        """These features of a table."""
        return table

    def table(self) -> Float[Tensor, "n features"]:
        """The data itself as queries."""
        return self.sample.x

    def spread_out(self, slopes: Float[Tensor, "q dim outputs"]) -> Float[Tensor, "q features outputs"]:
        """Slopes of the features with distances, among all features."""
        return slopes

    def squared(self, kernel: str, narrower: float, values: Float[Tensor, "n columns"]) -> Data:
        """The same points under the square of their kernel, which is `kernel` with a narrower bandwidth."""
        width = self.sample.bandwidth / narrower
        return replace(self, sample=replace(self.sample, values=values, kernel=kernel, bandwidth=width))

    def share(self) -> Float[Tensor, " n"]:
        """The weight of each point among all, before any kernel."""
        return self.sample.share()

    def pool(
        self, query: Float[Tensor, "q dim"], values: Float[Tensor, "n columns"] | None = None, tol: float | None = None
    ) -> Pooled:
        """The kernel average of y, or of other values, at each query."""
        sample = self.sample if values is None else replace(self.sample, values=values)
        return engine.pool(sample, query, tol=tol or self.tol, plan=self.plan)

    def gradient(self, query: Float[Tensor, "q dim"]) -> Gradient | None:
        """df/dx by the fast sum, each query with its bound; None where another way is better."""
        return engine.gradient(self.sample, query, tol=self.tol, plan=self.plan)

    def lines(self, query: Float[Tensor, "q dim"]) -> Lines | None:
        """The local line at each query by the fast sum, with its bound; None where another way is better."""
        return lines_if_cheapest(self.sample, query, tol=self.tol, plan=self.plan)

    def near(self, query: Float[Tensor, "q dim"], statistic: Statistic) -> tuple[Tensor, ...]:
        """The log of the total weight at each query, and what `statistic` makes of the points around it: exactly."""
        return relative_weights.for_neighbourhoods(self.sample, query, statistic)

    def few(self, query: Float[Tensor, "q dim"]) -> bool:
        """Whether every pair is looked at."""
        return len(query) * len(self.sample.x) <= EXACT_PAIRS

    def differentiable(
        self, query: Float[Tensor, "q dim"], values: Float[Tensor, "n columns"]
    ) -> Float[Tensor, "q columns"]:
        """The same average with a gradient for the query; all pairs, tile by tile."""
        sample = self.sample
        return attend(sample.scaled(query), sample.scaled(sample.x), values, score=sample.score()).output

    def weights(self, query: Float[Tensor, "q dim"]) -> Weights:
        """The weight of each point for each query as a matrix that is never built."""
        sample = self.sample
        return Weights(self.told(query), sample.scaled(sample.x), score=sample.score())

    def told(self, points: Float[Tensor, "q dim"]) -> Float[Tensor, "q dim"]:
        """Points in units of the bandwidth, from no farther than what the kernel is told of them keeps digits."""
        sample = self.sample
        far, beside = clamp.BY_DISTANCES if kernels.get(sample.kernel).tail_power <= 1 else clamp.BY_SQUARES
        box = extent(sample.x)
        return sample.scaled(clamp.clamp_to(points, box, far * sample.bandwidth, beside * sample.bandwidth))


NEARLY_NEVER = 1e6  # a score of that much less is a weight of 0 up to 10^3 bandwidths, and leaves others 10 digits


@dataclass(frozen=True, eq=False)
class Mixed(Data):
    """Data with categories: queries are tables of all features, the sample holds those with distances."""

    kinds: Kinds = field(kw_only=True)
    measured: tuple[int, ...] = field(kw_only=True)  # columns with distances
    columns: tuple[int, ...] = field(kw_only=True)  # columns of categories

    @classmethod
    def of(cls, data: Data, columns: tuple[int, ...], counts: Float[Tensor, " kinds"]) -> Mixed:
        """The same data, of which some columns are categories, numbered from 0, and their widths are lambdas."""
        sample = data.sample
        measured = tuple(i for i in range(sample.x.shape[1]) if i not in columns)
        own, width = list(measured), sample.bandwidth
        split = replace(sample, x=sample.x[:, own], bandwidth=width[own])
        kinds = Kinds(sample.x[:, list(columns)], counts, width[list(columns)])
        return cls(split, data.tol, data.plan, data.outside, kinds=kinds, measured=measured, columns=columns)

    def joined(self, bandwidth: Float[Tensor, " features"]) -> Float[Tensor, " features"]:
        """Widths and after them lambdas, brought into the order of the columns."""
        whole = torch.empty_like(bandwidth)
        whole[list(self.measured + self.columns)] = bandwidth
        return whole

    def table(self) -> Float[Tensor, "n features"]:
        whole = self.sample.x.new_empty(len(self.sample.x), len(self.measured) + len(self.columns))
        whole[:, list(self.measured)] = self.sample.x
        whole[:, list(self.columns)] = self.kinds.codes
        return whole

    def points(self, table: Float[Tensor, "q features ..."]) -> Float[Tensor, "q dim ..."]:
        return table[:, list(self.measured)]

    def spread_out(self, slopes: Float[Tensor, "q dim outputs"]) -> Float[Tensor, "q features outputs"]:
        whole = slopes.new_full((len(slopes), len(self.measured) + len(self.columns), slopes.shape[2]), torch.nan)
        whole[:, list(self.measured)] = slopes
        return whole

    def gradient(self, query: Float[Tensor, "q features"]) -> None:
        """A sum over frequencies knows no categories."""

    def lines(self, query: Float[Tensor, "q features"]) -> None:
        """The same; a plan that cannot serve is refused all the same."""
        plan_for(self.sample, self.points(query), tol=self.tol, forced=self.plan)

    def squared(self, kernel: str, narrower: float, values: Float[Tensor, "n columns"]) -> Mixed:
        plain = super().squared(kernel, narrower, values)
        return replace(self, sample=plain.sample, kinds=self.kinds.squared())

    def pool(
        self, query: Float[Tensor, "q dim"], values: Float[Tensor, "n columns"] | None = None, tol: float | None = None
    ) -> Pooled:
        """The kernel average under the kernel of the distances times that of the categories."""
        sample = self.sample if values is None else replace(self.sample, values=values)
        codes = query[:, list(self.columns)]
        return engine.pool_by_category(
            sample, self.kinds, self.points(query), codes, tol=tol or self.tol, plan=self.plan
        )

    def near(self, query: Float[Tensor, "q features"], statistic: Statistic) -> tuple[Tensor, ...]:
        codes = query[:, list(self.columns)]
        return relative_weights.for_neighbourhoods_by_category(
            self.sample, self.kinds, self.points(query), codes, statistic
        )

    def differentiable(
        self, query: Float[Tensor, "q features"], values: Float[Tensor, "n columns"]
    ) -> Float[Tensor, "q columns"]:
        return attend(self._features(query), self._features(self.table()), values, score=self._score()).output

    def weights(self, query: Float[Tensor, "q features"]) -> Weights:
        near = self._features(query)
        near[:, : len(self.measured)] = self.told(self.points(query))
        return Weights(near, self._features(self.table()), score=self._score())

    def _features(self, table: Float[Tensor, "q features"]) -> Tensor:
        """Distances in bandwidths, and a one for each category: attention knows how to score both."""
        marks = [
            (table[:, column, None] == torch.arange(levels, device=table.device)).to(table.dtype)
            for column, levels in zip(self.columns, self._levels(), strict=True)
        ]
        return torch.cat([self.sample.scaled(self.points(table)), *marks], 1)

    def _levels(self) -> list[int]:
        return [int(count) for count in self.kinds.counts.tolist()]

    def _score(self) -> Score:
        dim, levels = len(self.measured), self._levels()
        same = (-self.kinds.log_other).clamp_max(NEARLY_NEVER)
        same = same.repeat_interleave(torch.tensor(levels, device=same.device))
        width = same.new_full((dim + len(same),), torch.inf)
        width[:dim] = 1.0
        score = scores.kernel(self.sample.kernel, width) + scores.general(
            torch.diag(torch.cat([width[:dim] * 0, same]))
        )
        weight = self.sample.log_weight
        return score if weight is None else score + scores.bias(weight.unsqueeze(0))
