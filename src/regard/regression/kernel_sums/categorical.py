r"""Features without distances: a point of the same category counts in full, one of another for less.

Aitchison and Aitken's kernel gives 1 - lambda to the same of c categories and lambda / (c - 1) to another, with lambda
from 0 (only the same counts) to (c - 1) / c (categories do not matter). It multiplies the kernel of the other features,
so for all queries of one category it is nothing but a weight of the points: every way to pool stays open.

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
from regard.regression.kernel_sums import engine, relative_weights
from regard.regression.kernel_sums.relative_weights import Answer, Own
from regard.regression.kernel_sums.sample import Sample
from regard.regression.kernel_sums.state import Pooled, empty


class Kinds(NamedTuple):
    """Columns of categories: the number of its category in each row, how many there are, and lambda."""

    codes: Float[Tensor, "n kinds"]
    counts: Float[Tensor, " kinds"]
    chance: Float[Tensor, " kinds"]

    @property
    def most(self) -> Float[Tensor, " kinds"]:
        """The largest lambda: another category counts as much as one's own."""
        return (self.counts - 1) / self.counts

    @property
    def log_other(self) -> Float[Tensor, " kinds"]:
        """The log of the weight of another category, where the same has 1."""
        return self.ratio().log()

    def ratio(self) -> Float[Tensor, " kinds"]:
        """The weight of another category, where the same has 1; all alike at the largest lambda, exactly."""
        found = self.chance / ((self.counts - 1).clamp_min(1) * (1 - self.chance))
        return torch.where((self.chance >= self.most) & (self.counts > 1), 1.0, found)

    def squared(self) -> Kinds:
        """The lambdas of the square of the kernel."""
        others = (self.counts - 1) * self.ratio().square()
        return self._replace(chance=others / (1 + others))

    def at(self, rows: Tensor) -> Kinds:
        return self._replace(codes=self.codes[rows])


def pool(
    sample: Sample,
    kinds: Kinds,
    query: Float[Tensor, "q dim"],
    codes: Float[Tensor, "q kinds"],
    *,
    tol: float = 1e-6,
    plan: str = "auto",
) -> Pooled:
    """The kernel average at each query, one group of queries after another that share their categories."""

    def ask(some: Sample, rows: Tensor) -> Pooled:
        return engine.pool(some, query[rows], tol=tol, plan=plan)

    return Pooled(*_by_groups(sample, kinds, codes, ask)) if len(query) else empty(0, sample.values.shape[1], query)


def answered(
    sample: Sample,
    kinds: Kinds,
    query: Float[Tensor, "q dim"],
    codes: Float[Tensor, "q kinds"],
    answer: Answer,
    own: Own | None = None,
) -> tuple[Tensor, ...]:
    """The same for all that is made of the points around a query, as `_apart.answered` has it."""

    def ask(some: Sample, rows: Tensor) -> tuple[Tensor, ...]:
        return relative_weights.answered(some, query[rows], answer, None if own is None else own.of(rows))

    if not len(query):
        return relative_weights.answered(sample, query, answer, own)
    return _by_groups(sample, kinds, codes, ask)


def _by_groups(
    sample: Sample,
    kinds: Kinds,
    codes: Float[Tensor, "q kinds"],
    ask: Callable[[Sample, Int[Tensor, " some"]], tuple[Tensor, ...]],
) -> tuple[Tensor, ...]:
    """What is asked of queries that share their categories; the first that is told is the log of the total weight."""
    found: tuple[Tensor, ...] = ()
    combinations, group = torch.unique(codes, dim=0, return_inverse=True)
    for number, combination in enumerate(combinations):
        rows = (group == number).nonzero().squeeze(-1)
        for log_weight in _weights(sample, kinds, kinds.codes != combination):
            part = ask(replace(sample, log_weight=log_weight), rows)
            found = found or tuple(some.new_zeros(len(codes), *some.shape[1:]) for some in part)
            for whole, some in zip(found, part, strict=True):
                whole[rows] = some
            rows = rows[part[0] == NEVER]
            if not len(rows):
                break
    return found


def _weights(sample: Sample, kinds: Kinds, differs: Bool[Tensor, "n kinds"]) -> Iterator[Float[Tensor, " n"]]:
    """The log weight of each point for one combination of categories, and those for whom the first leaves nobody."""
    log_other = kinds.log_other
    own = torch.zeros_like(sample.values[:, 0]) if sample.log_weight is None else sample.log_weight
    weight = own + torch.where(differs & (log_other > NEVER), log_other, 0.0).sum(1)
    steps = (differs & (log_other == NEVER)).sum(1)  # categories of lambda 0 in which a point differs
    for step in torch.unique(steps[own > NEVER]):
        yield torch.where(steps == step, weight, NEVER)
