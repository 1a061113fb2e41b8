"""Data of which some features are categories: how its averages are asked for. The kernel is that of `sums._kinds`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from regard import scores
from regard.attention import attend
from regard.regression.kernel_sums import categorical, engine
from regard.regression.kernel_sums.categorical import Kinds
from regard.regression.kernel_sums.relative_weights import Answer
from regard.regression.kernel_sums.state import Pooled
from regard.regression.local.data import Data
from regard.scores import Score
from regard.weights import Weights

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

    def slopes(self, query: Float[Tensor, "q features"]) -> None:
        """A sum over frequencies knows no categories."""

    def lines(self, query: Float[Tensor, "q features"]) -> None:
        """The same; a plan that cannot serve is refused all the same."""
        engine.way_of(self.sample, self.points(query), tol=self.tol, plan=self.plan)

    def squared(self, kernel: str, narrower: float, values: Float[Tensor, "n columns"]) -> Mixed:
        plain = super().squared(kernel, narrower, values)
        return replace(self, sample=plain.sample, kinds=self.kinds.squared())

    def pool(
        self, query: Float[Tensor, "q dim"], values: Float[Tensor, "n columns"] | None = None, tol: float | None = None
    ) -> Pooled:
        """The kernel average under the kernel of the distances times that of the categories."""
        sample = self.sample if values is None else replace(self.sample, values=values)
        codes = query[:, list(self.columns)]
        return categorical.pool(sample, self.kinds, self.points(query), codes, tol=tol or self.tol, plan=self.plan)

    def near(self, query: Float[Tensor, "q features"], answer: Answer) -> tuple[Tensor, ...]:
        codes = query[:, list(self.columns)]
        return categorical.answered(self.sample, self.kinds, self.points(query), codes, answer)

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
