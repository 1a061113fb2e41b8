r"""The kernel of categorical features, after Aitchison and Aitken.

It gives 1 - lambda to the same of c categories and lambda / (c - 1) to another, with lambda from 0 (only the same
counts) to (c - 1) / c (categories do not matter). It multiplies the kernel of the other features, so for all queries of
one category it is a weight of the points, and every plan of a kernel average can serve.

Lambda = 0 is the limit of small lambdas: where no point of the same categories is in reach, those count that differ in
the fewest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.operands import NEVER
from regard.regression.kernel_sums.sample import Sample

Rows = slice | Int[Tensor, " rows"]  # some of the queries


class Categories(NamedTuple):
    """Categorical features: the number of its category in each row, how many there are, and lambda."""

    codes: Float[Tensor, "n features"]
    counts: Float[Tensor, " features"]
    smoothing: Float[Tensor, " features"]

    @property
    def max_smoothing(self) -> Float[Tensor, " features"]:
        """The largest lambda: another category counts as much as one's own."""
        return (self.counts - 1) / self.counts

    @property
    def log_other(self) -> Float[Tensor, " features"]:
        """The log of the weight of another category, where the same has 1."""
        return self.ratio().log()

    def ratio(self) -> Float[Tensor, " features"]:
        """The weight of another category, where the same has 1; all alike at the largest lambda, exactly."""
        ratio = self.smoothing / ((self.counts - 1).clamp_min(1) * (1 - self.smoothing))
        return torch.where((self.smoothing >= self.max_smoothing) & (self.counts > 1), 1.0, ratio)

    def squared(self) -> Categories:
        """The lambdas of the square of the kernel."""
        others = (self.counts - 1) * self.ratio().square()
        return self._replace(smoothing=others / (1 + others))

    def at(self, rows: Tensor) -> Categories:
        return self._replace(codes=self.codes[rows])

    def one_hot(self, codes: Float[Tensor, "q features"]) -> Float[Tensor, "q categories"]:
        """A column for each category of each feature: 1 in its rows, 0 elsewhere."""
        columns = zip(codes.unbind(1), self.counts.tolist(), strict=True)
        return torch.cat([(code.unsqueeze(1) == torch.arange(count).to(code)).to(codes) for code, count in columns], 1)


def by_category(
    sample: Sample,
    categories: Categories | None,
    codes: Float[Tensor, "q features"],
    function: Callable[[Sample, Rows], tuple[Tensor, ...]],
) -> tuple[Tensor, ...]:
    """The results of `function` for one group of queries after another that share their categories.

    `function` is given a sample whose weights include the categorical kernel, and the rows of its queries. The first of
    its results is the log of the total weight; where that is -inf, the points that differ in more categories are tried.
    Without categories all queries are one group.
    """
    if categories is None or not len(codes):
        return function(sample, slice(None))
    results: tuple[Tensor, ...] = ()
    combinations, group = torch.unique(codes, dim=0, return_inverse=True)
    for number, combination in enumerate(combinations):
        rows = (group == number).nonzero().squeeze(-1)
        for log_weight in _log_weights(sample, categories, categories.codes != combination):
            parts = function(replace(sample, log_weight=log_weight), rows)
            results = results or tuple(part.new_zeros(len(codes), *part.shape[1:]) for part in parts)
            for result, part in zip(results, parts, strict=True):
                result[rows] = part
            rows = rows[parts[0] == NEVER]
            if not len(rows):
                break
    return results


def _log_weights(
    sample: Sample, categories: Categories, differs: Bool[Tensor, "n features"]
) -> Iterator[Float[Tensor, " n"]]:
    """Log weights of the points for one combination of categories, and then for queries left without any point."""
    log_other = categories.log_other
    own = sample.log_weights
    weight = own + torch.where(differs & (log_other > NEVER), log_other, 0.0).sum(1)
    steps = (differs & (log_other == NEVER)).sum(1)  # categories of lambda 0 in which a point differs
    for step in torch.unique(steps[own > NEVER]):
        yield torch.where(steps == step, weight, NEVER)
