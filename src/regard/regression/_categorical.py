r"""Features without distances: a point of the same category counts in full, one of another for less.

Aitchison and Aitken's kernel gives 1 - lambda to the same of c categories and lambda / (c - 1) to another, with lambda
from 0 (only the same counts) to (c - 1) / c (categories do not matter). It multiplies the kernel of the other features,
so for all queries of one category it is nothing but a weight of the points: every way to pool stays open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from regard import scores
from regard._operands import NEVER
from regard.attention import attend
from regard.regression._data import Data
from regard.regression.sums._state import Pooled, empty
from regard.scores import Score
from regard.weights import Weights

NEARLY_NEVER = 1e4  # a score of that much less is a weight of 0, and keeps the digits of the others


def log_other(widths: Float[Tensor, " kinds"], counts: Float[Tensor, " kinds"]) -> Float[Tensor, " kinds"]:
    """The log of the weight of another category, where the same has 1."""
    return torch.log(widths / ((counts - 1).clamp_min(1) * (1 - widths)))


@dataclass(frozen=True, eq=False)
class Mixed(Data):
    """Data with categories: queries are tables of all features, the sample holds those with distances."""

    # Of each category column: its number in each row, how many there are, and the weight of another than one's own.
    codes: Float[Tensor, "n kinds"] = field(kw_only=True)
    counts: Float[Tensor, " kinds"] = field(kw_only=True)
    log_other: Float[Tensor, " kinds"] = field(kw_only=True)
    measured: tuple[int, ...] = field(kw_only=True)  # columns with distances
    kinds: tuple[int, ...] = field(kw_only=True)  # columns of categories

    @classmethod
    def of(cls, data: Data, kinds: tuple[int, ...], counts: Float[Tensor, " kinds"]) -> Mixed:
        """The same data, of which some columns are categories, numbered from 0, and their widths are lambdas."""
        sample = data.sample
        measured = tuple(i for i in range(sample.x.shape[1]) if i not in kinds)
        own, width = list(measured), sample.bandwidth
        split = replace(sample, x=sample.x[:, own], bandwidth=width[own])
        return cls(
            split,
            data.tol,
            data.plan,
            data.outside,
            codes=sample.x[:, list(kinds)],
            counts=counts,
            log_other=log_other(width[list(kinds)], counts),
            measured=measured,
            kinds=kinds,
        )

    def table(self) -> Float[Tensor, "n features"]:
        whole = self.sample.x.new_empty(len(self.sample.x), len(self.measured) + len(self.kinds))
        whole[:, list(self.measured)] = self.sample.x
        whole[:, list(self.kinds)] = self.codes
        return whole

    def points(self, table: Float[Tensor, "q features ..."]) -> Float[Tensor, "q dim ..."]:
        return table[:, list(self.measured)]

    def spread_out(self, slopes: Float[Tensor, "q dim outputs"]) -> Float[Tensor, "q features outputs"]:
        whole = slopes.new_full((len(slopes), len(self.measured) + len(self.kinds), slopes.shape[2]), torch.nan)
        whole[:, list(self.measured)] = slopes
        return whole

    def slopes(self, query: Float[Tensor, "q features"]) -> None:
        """A sum over frequencies knows no categories."""

    def lines(self, query: Float[Tensor, "q features"]) -> None:
        """The same."""

    def squared(self, kernel: str, narrower: float, values: Float[Tensor, "n columns"]) -> Mixed:
        plain = super().squared(kernel, narrower, values)
        return replace(self, sample=plain.sample, log_other=self.log_other * 2)

    def pool(
        self, query: Float[Tensor, "q dim"], values: Float[Tensor, "n columns"] | None = None, tol: float | None = None
    ) -> Pooled:
        """The kernel average, one group of queries after another that share their categories."""
        values = self.sample.values if values is None else values
        found = empty(len(query), values.shape[1], query)
        plain = Data(self.sample, self.tol, self.plan, self.outside)
        for rows, weight in self._groups(query):
            part = replace(plain, sample=replace(self.sample, log_weight=weight))
            if bool((weight > NEVER).any()):
                for whole, some in zip(found, part.pool(self.points(query[rows]), values, tol), strict=True):
                    whole[rows] = some
        return found

    def _groups(self, query: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows of the query with the same categories, and the log weight of each point for them."""
        kinds, group = torch.unique(query[:, list(self.kinds)], dim=0, return_inverse=True)
        own = torch.zeros_like(self.codes[:, 0]) if self.sample.log_weight is None else self.sample.log_weight
        for number, kind in enumerate(kinds):
            other = torch.where(self.codes == kind, 0.0, self.log_other)
            yield (group == number).nonzero().squeeze(-1), own + other.sum(1)

    def differentiable(
        self, query: Float[Tensor, "q features"], values: Float[Tensor, "n columns"]
    ) -> Float[Tensor, "q columns"]:
        return attend(self._features(query), self._features(self.table()), values, score=self._score()).output

    def weights(self, query: Float[Tensor, "q features"]) -> Weights:
        return Weights(self._features(query), self._features(self.table()), score=self._score())

    def _features(self, table: Float[Tensor, "q features"]) -> Tensor:
        """Distances in bandwidths, and a one for each category: attention knows how to score both."""
        marks = [
            (table[:, column, None] == torch.arange(levels, device=table.device)).to(table.dtype)
            for column, levels in zip(self.kinds, self._levels(), strict=True)
        ]
        return torch.cat([self.sample.scaled(self.points(table)), *marks], 1)

    def _levels(self) -> list[int]:
        return [int(count) for count in self.counts.tolist()]

    def _score(self) -> Score:
        dim, levels = len(self.measured), self._levels()
        same = (
            (-self.log_other)
            .clamp_max(NEARLY_NEVER)
            .repeat_interleave(torch.tensor(levels, device=self.log_other.device))
        )
        width = same.new_full((dim + len(same),), torch.inf)
        width[:dim] = 1.0
        score = scores.kernel(self.sample.kernel, width) + scores.general(
            torch.diag(torch.cat([width[:dim] * 0, same]))
        )
        weight = self.sample.log_weight
        return score if weight is None else score + scores.bias(weight.unsqueeze(0))
