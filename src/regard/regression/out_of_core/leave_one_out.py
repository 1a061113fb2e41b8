"""Leave-one-out over data in blocks: each pair of blocks gives a state, and states merge, wherever the blocks are.

A block of queries i meets a block of points j. With K the kernel and g = -2 dK / d(u^2) (K itself for a Gaussian),

    f_-i = E_K[y],    d f_-i / d log h_k = G/K (E_g[y d_k] - f_-i E_g[d_k]),    d_k = ((x_i - x_j)_k / h_k)^2,

where E are averages without the point itself and G/K is the ratio of their totals. d_k is a polynomial in x_j, so the
averages of y, x, x^2, y x and y x^2 say it all, and these averages are what the engine computes and `merge` adds up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.operands import NEVER
from regard.regression.kernel_sums import engine
from regard.regression.kernel_sums.sample import Sample
from regard.regression.kernel_sums.state import Pooled, empty
from regard.regression.out_of_core.leave_one_out_state import Own, Seen, look
from regard.regression.out_of_core.local_linear import Lines
from regard.regression.out_of_core.source import Block, Blocks
from regard.regression.out_of_core.summary import Summary

HALF = 0.5  # a point that is more than this of its own sum: the others are added up again without it
TOL = 1e-8
LEAST_TOL = 1e-13


@dataclass(frozen=True, eq=False)
class Question:
    """Leave-one-out at one bandwidth: what every pair of blocks is asked."""

    summary: Summary
    bandwidth: Float[Tensor, " dim"]
    kernel: str = "gaussian"
    gradient: bool = True
    unit: float | None = None  # weights are counts of this; a point that is left out leaves one of them
    plan: str = "auto"
    counts: Tensor = field(init=False)  # bool (dim,): features of finite width

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", torch.isfinite(self.bandwidth))

    def points(self, block: Block) -> Float[Tensor, "rows counted"]:
        """x in units of the bandwidth, from the middle of the data."""
        return ((block.x - self.summary.x.mean) / self.bandwidth)[:, self.counts]

    def outputs(self, block: Block) -> Float[Tensor, "rows outputs"]:
        return block.y - self.summary.y.mean

    def columns(self, block: Block) -> Float[Tensor, "rows columns"]:
        """y, and for the gradient x, x^2, y x and y x^2."""
        x, y = self.points(block), self.outputs(block)
        if not self.gradient:
            return y
        powers = torch.cat((x, x.square()), 1)
        return torch.cat((y, powers, (y.unsqueeze(2) * powers.unsqueeze(1)).flatten(1)), 1)

    def fit(self, queries: Block, mean: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows outputs"]:
        """What averages of `columns` predict, from the mean of y."""
        return mean[:, : queries.y.shape[1]]

    def kept(self, block: Block) -> Float[Tensor, " rows"]:
        """What stays of a row's weight when it is left out."""
        if block.weight is None or self.unit is None:
            return block.x.new_zeros(len(block.x))
        return (block.weight - self.unit).clamp_min(0.0)

    def tol(self) -> float:
        """A derivative is a difference of moments, which are larger the farther the data reaches."""
        if not self.gradient or not bool(self.counts.any()):
            return TOL
        reach = (self.summary.x.deviation() / self.bandwidth)[self.counts].max()
        return max(LEAST_TOL, TOL / (1 + float(reach) ** 2))

    def average(self, queries: Block, block: Block) -> Pooled:
        """Of the columns of a block around each query, for a Gaussian, the query itself included."""
        x = self.points(block)
        sample = Sample(x, self.columns(block), torch.ones_like(x[0]), log_weight=block.log_weight)
        return _pool(sample, self.points(queries), self)

    def per_output(self) -> Float[Tensor, " outputs"]:
        """What a squared residual is multiplied by: with several outputs, one over the variance of each."""
        variance = self.summary.y.deviation().square()
        return torch.where(variance > 0, 1 / variance, 1.0) if len(variance) > 1 else torch.ones_like(variance)


@dataclass(frozen=True, eq=False)
class OfLines(Question):
    """The same for local lines, and without a derivative: what is averaged is what lines are made of."""

    gradient: bool = field(default=False, init=False)
    lines: Lines = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "lines", Lines.of(self.summary, self.bandwidth))

    def columns(self, block: Block) -> Float[Tensor, "rows columns"]:
        return self.lines.columns(block)

    def fit(self, queries: Block, mean: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows outputs"]:
        return self.lines.drawn(queries.x, mean) - self.lines.frame.level

    def average(self, queries: Block, block: Block) -> Pooled:
        sample = Sample(block.x, self.columns(block), self.bandwidth, log_weight=block.log_weight)
        return self.lines.average(sample, queries.x, TOL, self.plan)


class Total(NamedTuple):
    """Sums over queries: of weighted squared residuals, of weights, and of the derivative."""

    squares: Float[Tensor, ""]
    weight: Float[Tensor, ""]
    gradient: Float[Tensor, " dim"]

    def merge(self, other: Total) -> Total:
        return Total(*(one + two for one, two in zip(self, other, strict=True)))


def evaluate(blocks: Blocks, question: Question) -> tuple[float, Float[Tensor, " dim"]]:
    """The mean squared leave-one-out residual, and its derivative by the logarithm of each bandwidth."""
    total = blocks.fold_pairs(see, Seen.merge, finish, Total.merge, question)
    return float(total.squares / total.weight), total.gradient / total.weight


def residuals(blocks: Blocks, question: Question) -> Float[Tensor, "n outputs"]:
    """y_i - f_-i(x_i) of every row, in the order of the blocks."""
    return blocks.fold_pairs(see, Seen.merge, left_over, lambda one, two: torch.cat((one, two)), question)


def see(question: Question, queries: Block, block: Block) -> Seen:
    """What a block of queries learns from a block of points: its own rows are left out where it meets itself."""
    query, x, columns = question.points(queries), question.points(block), question.columns(block)
    own = Own(torch.arange(len(x)), question.kept(block)) if queries.number == block.number else None
    if question.kernel != "gaussian":
        return look(question.kernel, query, x, block.weight, columns, own)
    if not len(query) or not len(x):
        return Seen(empty(len(query), columns.shape[1], query))
    average = question.average(queries, block)
    return Seen(average) if own is None else _without_itself(average, query, x, block, columns, own)


def _pool(sample: Sample, query: Float[Tensor, "q counted"], question: Question) -> Pooled:
    if query.shape[1]:
        return engine.pool(sample, query, tol=question.tol(), plan=question.plan)
    nowhere = Sample(
        sample.x.new_zeros(len(sample.x), 1), sample.values, sample.x.new_ones(1), log_weight=sample.log_weight
    )
    found = engine.pool(nowhere, query.new_zeros(1, 1), tol=question.tol())  # no feature counts: one answer for all
    return Pooled(*(part.expand(len(query), *part.shape[1:]) for part in found))


def _without_itself(average: Pooled, query: Tensor, x: Tensor, block: Block, columns: Tensor, own: Own) -> Seen:
    """The same averages without the point that a query is, whose K(0) = 1; one that weighs most is added up again."""
    weight = torch.ones_like(own.kept) if block.weight is None else block.weight
    # Through logarithms: far from everything a row of weight 0 would be nothing times infinity.
    share = torch.exp((weight - own.kept).log() - torch.where(average.lse == NEVER, 0.0, average.lse))
    rest = (1 - share).clamp_min(1 - HALF)
    mean = (average.mean - share.unsqueeze(1) * columns) / rest.unsqueeze(1)
    found = Pooled(average.lse + rest.log(), mean, average.error / rest)
    heavy = (share > HALF).nonzero().squeeze(1)
    if not len(heavy):
        return Seen(found)
    again = look("gaussian", query[heavy], x, block.weight, columns, own.of(heavy)).average
    return Seen(Pooled(*(part.index_copy(0, heavy, better) for part, better in zip(found, again, strict=True))))


def left_over(question: Question, queries: Block, seen: Seen) -> Float[Tensor, "rows outputs"]:
    """y_i - f_-i(x_i). A point that sees no other is predicted by the nearest; where there is none, by NaN."""
    mean, alone = seen.average.mean, seen.average.lse == NEVER
    if seen.nearest is not None:
        mean = torch.where(alone.unsqueeze(1), seen.nearest.mean, mean)
        alone = alone & (seen.nearest.total == 0)
    return question.outputs(queries) - torch.where(alone.unsqueeze(1), torch.nan, question.fit(queries, mean))


def finish(question: Question, queries: Block, seen: Seen) -> Total:
    """The part of the sums that these queries add."""
    residual = left_over(question, queries, seen)
    weight = residual.new_ones(len(residual)) if queries.weight is None else queries.weight
    pull = residual * question.per_output() * weight.unsqueeze(1)
    # A row of weight 0 asks for nothing, also where it would be alone.
    pull = torch.where(weight.unsqueeze(1) > 0, pull, 0.0)
    squares = torch.where(pull != 0, pull * residual, 0.0).sum()
    gradient = torch.zeros_like(question.bandwidth)
    if question.gradient:
        gradient[question.counts] = -2 * torch.einsum("qo,qok->k", pull, _derivative(question, queries, seen))
    return Total(squares, weight.sum(), gradient)


def _derivative(question: Question, queries: Block, seen: Seen) -> Float[Tensor, "rows outputs counted"]:
    """d f_-i / d log h."""
    x, outputs = question.points(queries), queries.y.shape[1]
    dim = x.shape[1]
    under = seen.average if seen.slope is None else seen.slope
    y, once, twice, products = under.mean.split((outputs, dim, dim, 2 * dim * outputs), 1)
    y_once, y_twice = products.unflatten(1, (outputs, 2 * dim)).split((dim, dim), 2)  # (rows, outputs, dim)
    fit = seen.average.mean[:, :outputs].unsqueeze(2)
    here, once, twice = x.unsqueeze(1), once.unsqueeze(1), twice.unsqueeze(1)
    change = (y.unsqueeze(2) - fit) * here.square() - 2 * here * (y_once - fit * once) + (y_twice - fit * twice)
    if seen.slope is None:
        return change
    # Whom a lonely point is nearest to changes by jumps.
    ratio = torch.exp(seen.slope.lse - torch.where(seen.average.lse == NEVER, torch.inf, seen.average.lse))
    return change * ratio.reshape(-1, 1, 1)
