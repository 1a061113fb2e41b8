"""What a block of queries knows of some points in leave-one-out; for kernels other than the Gaussian, pair by pair."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard import kernels
from regard.operands import NEVER
from regard.regression.kernel_sums import engine
from regard.regression.kernel_sums.radius_search import Nearest
from regard.regression.kernel_sums.sample import Sample
from regard.regression.kernel_sums.state import Pooled, empty, merge
from regard.regression.out_of_core.average import Lines
from regard.regression.out_of_core.source import Block, Blocks
from regard.regression.out_of_core.summary import Summary
from regard.scores._distance import squared_distance

TILE = 2**20  # pairs at a time


class Own(NamedTuple):
    """Which point each query is, and how much of its weight stays when it is left out: a count of 3 is then 2."""

    point: Int[Tensor, " q"]
    kept: Float[Tensor, " q"]

    def of(self, rows: Tensor) -> Own:
        return Own(self.point[rows], self.kept[rows])


class Seen(NamedTuple):
    """Averages over some points, the query itself left out."""

    average: Pooled  # under K
    slope: Pooled | None = None  # under -2 dK / d(u^2), where that is not K
    nearest: Nearest | None = None  # where K ends

    def merge(self, other: Seen) -> Seen:
        slope = None if self.slope is None or other.slope is None else merge(self.slope, other.slope)
        nearest = None if self.nearest is None or other.nearest is None else self.nearest.merge(other.nearest)
        return Seen(merge(self.average, other.average), slope, nearest)


def look(
    kernel: str,
    query: Float[Tensor, "q dim"],
    x: Float[Tensor, "n dim"],
    weight: Float[Tensor, " n"] | None,
    columns: Float[Tensor, "n columns"],
    own: Own | None = None,
) -> Seen:
    """All pairs in float64; of the point that a query is, it sees only what is kept."""
    rows = torch.arange(len(query), device=query.device).split(max(1, TILE // (len(x) + 1)))
    parts = [_tile(kernel, query[some], x, weight, columns, None if own is None else own.of(some)) for some in rows]
    return parts[0] if len(parts) == 1 else _together(parts)


def _tile(kernel: str, query: Tensor, x: Tensor, weight: Tensor | None, columns: Tensor, own: Own | None) -> Seen:
    square = squared_distance(query, x) if x.shape[1] else query.new_zeros(len(query), len(x))
    hidden = _hidden(square, weight, own)
    log_weight = None if weight is None else weight.log()
    inside = kernels.get(kernel).log_kernel(square)
    average = _average(inside, hidden, log_weight, columns, own)
    if kernel == "gaussian":
        return Seen(average)
    slope = _average(kernels.get(kernel).log_of_derivative(square, inside), hidden, log_weight, columns)
    if not kernels.get(kernel).compact:
        return Seen(average, slope)
    return Seen(average, slope, Nearest.of(square.masked_fill(hidden, torch.inf), weight, columns))


def _hidden(square: Tensor, weight: Tensor | None, own: Own | None) -> Tensor:
    hidden = torch.zeros_like(square, dtype=torch.bool)
    if weight is not None:
        hidden |= weight == 0
    if own is not None:
        hidden[torch.arange(len(square), device=square.device), own.point] = True
    return hidden


def _average(
    score: Tensor, hidden: Tensor, log_weight: Tensor | None, columns: Tensor, own: Own | None = None
) -> Pooled:
    score = (score if log_weight is None else score + log_weight).masked_fill(hidden, NEVER)
    if own is not None:
        score[torch.arange(len(score), device=score.device), own.point] = own.kept.log()
    lse = score.logsumexp(1)
    # Their sum is 1 to the last bit, however far away: see `merge`.
    weights = torch.softmax(score, 1).masked_fill((lse == NEVER).unsqueeze(1), 0.0)
    return Pooled(lse, weights @ columns, torch.zeros_like(lse))


def _together(parts: list[Seen]) -> Seen:
    averages, slopes, nearest = (list(states) for states in zip(*parts, strict=True))
    return Seen(
        Pooled(*_joined(averages)),
        None if slopes[0] is None else Pooled(*_joined(slopes)),
        None if nearest[0] is None else Nearest(*_joined(nearest)),
    )


def _joined(states: list[Any]) -> list[Tensor]:
    return [torch.cat(part) for part in zip(*states, strict=True)]


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
