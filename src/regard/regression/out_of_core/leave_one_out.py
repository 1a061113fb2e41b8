"""Leave-one-out over out-of-core data: each pair of chunks gives a partial state, and states merge wherever they are.

A chunk of queries i meets a chunk of points j. With K the kernel and g = -2 dK / d(u^2) (K itself for a Gaussian),

    f_-i = E_K[y],    d f_-i / d log h_k = G/K (E_g[y d_k] - f_-i E_g[d_k]),    d_k = ((x_i - x_j)_k / h_k)^2,

where E are averages without the point itself and G/K is the ratio of the total weights. d_k is a polynomial in x_j, so
the averages of y, x, x^2, y x and y x^2 are enough. The engine computes these for a Gaussian; for other kernels all
pairs are computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard import kernels
from regard.operands import NEVER
from regard.regression.bandwidth.leave_one_out.problem import as_counts
from regard.regression.kernel_sums import engine, fourier
from regard.regression.kernel_sums.radius_search import Nearest
from regard.regression.kernel_sums.sample import BLOCK_PAIRS, Sample
from regard.regression.kernel_sums.state import Pooled, empty
from regard.regression.out_of_core.average import LinearAverages, PartialState
from regard.regression.out_of_core.source import Chunk, Source, Summary
from regard.scores import squared_distance

MAX_SUBTRACTED_SHARE = 0.5  # a point with a larger share of its own sum: the others are summed again without it
TOL = 1e-8  # of the averages, in standard deviations


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Leave-one-out at one bandwidth: what every pair of chunks computes."""

    summary: Summary
    bandwidth: Float[Tensor, " dim"]
    kernel: str = "gaussian"
    gradient: bool = True
    count_unit: float | None = None  # weights are multiples of this; leaving a point out takes one of them
    plan: str = "auto"
    lines: LinearAverages | None = None  # for degree 1, which has no gradient

    @property
    def is_finite(self) -> Bool[Tensor, " dim"]:
        """Features of finite bandwidth: the others do not matter."""
        return torch.isfinite(self.bandwidth)

    @staticmethod
    def of(
        source: Source, summary: Summary, bandwidth: Float[Tensor, " dim"], *, kernel: str, degree: int
    ) -> LeaveOneOut:
        """Leave-one-out without its gradient."""
        lines = LinearAverages.of(summary, bandwidth) if degree else None
        return LeaveOneOut(summary, bandwidth, kernel, gradient=False, count_unit=count_unit(source), lines=lines)

    def points(self, chunk: Chunk) -> Float[Tensor, "rows finite"]:
        """Features of finite bandwidth, in bandwidths from the mean of the data."""
        return ((chunk.x - self.summary.x.mean) / self.bandwidth)[:, self.is_finite]

    def outputs(self, chunk: Chunk) -> Float[Tensor, "rows outputs"]:
        """Differences of y from its mean over all data."""
        return chunk.y - self.summary.y.mean

    def columns(self, chunk: Chunk) -> Float[Tensor, "rows columns"]:
        """Columns to average: y, and for the gradient x, x^2, y x and y x^2; for lines those of `LinearAverages`."""
        if self.lines is not None:
            return self.lines.frame.columns(chunk.x, chunk.y)
        x, y = self.points(chunk), self.outputs(chunk)
        if not self.gradient:
            return y
        powers = torch.cat((x, x.square()), 1)
        return torch.cat((y, powers, (y.unsqueeze(2) * powers.unsqueeze(1)).flatten(1)), 1)

    def predictions(self, queries: Chunk, mean: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows outputs"]:
        """Predictions from averages of `columns`, as differences from the mean of y."""
        if self.lines is not None:
            return self.lines.values(queries.x, mean) - self.lines.frame.level
        return mean[:, : queries.y.shape[1]]

    def kept_weight(self, chunk: Chunk) -> Float[Tensor, " rows"]:
        """Weight that remains of a row when it is left out: 2 of a count of 3."""
        if chunk.weight is None or self.count_unit is None:
            return chunk.x.new_zeros(len(chunk.x))
        return (chunk.weight - self.count_unit).clamp_min(0.0)

    def tol(self) -> float:
        """Tolerance of the averages. The gradient is a difference of moments, which grow with the range of the data."""
        if not self.gradient or not bool(self.is_finite.any()):
            return TOL
        spread = (self.summary.x.deviation() / self.bandwidth)[self.is_finite].max()
        return max(fourier.MIN_EPS, TOL / (1 + float(spread) ** 2))

    def average(self, queries: Chunk, chunk: Chunk) -> Pooled:
        """Average of the columns of a chunk at each query under a Gaussian, the query's own point included."""
        if self.lines is not None:
            sample = Sample(chunk.x, self.columns(chunk), self.bandwidth, log_weight=chunk.log_weight)
            return self.lines.average(sample, queries.x, TOL, self.plan)
        x = self.points(chunk)
        sample = Sample(x, self.columns(chunk), torch.ones_like(x[0]), log_weight=chunk.log_weight)
        return engine.pool(sample, self.points(queries), tol=self.tol(), plan=self.plan)

    def per_output(self) -> Float[Tensor, " outputs"]:
        """Factor of a squared residual: with several outputs, one over the variance of each."""
        variance = self.summary.y.deviation().square()
        return torch.where(variance > 0, 1 / variance, 1.0) if len(variance) > 1 else torch.ones_like(variance)


def count_unit(source: Source) -> float | None:
    """Return 1 if there are weights and all are whole numbers, which then count rows; else None."""

    def are_counts(chunk: Chunk) -> bool:
        return chunk.weight is not None and as_counts(chunk.weight) is not None

    return 1.0 if source.fold(are_counts, lambda one, two: one and two) else None


# Values and residuals


def evaluate(source: Source, problem: LeaveOneOut) -> tuple[float, Float[Tensor, " dim"]]:
    """Mean squared leave-one-out residual, and its gradient by the logarithm of each bandwidth."""
    step, finish = partial(_pair_state, problem), partial(_objective, problem)
    total = source.fold_pairs(step, PartialState.merge, finish, ObjectiveSums.merge)
    return float(total.squares / total.weight), total.gradient / total.weight


def residuals(source: Source, problem: LeaveOneOut) -> Float[Tensor, "n outputs"]:
    """Leave-one-out residuals y_i - f_-i(x_i) of all rows, in the order of the source; they must fit into memory."""
    step, finish = partial(_pair_state, problem), partial(_residuals, problem)
    return source.fold_pairs(step, PartialState.merge, finish, lambda one, two: torch.cat((one, two)))


class ObjectiveSums(NamedTuple):
    """Sums over queries: weighted squared residuals, weights, and the gradient."""

    squares: Float[Tensor, ""]
    weight: Float[Tensor, ""]
    gradient: Float[Tensor, " dim"]

    def merge(self, other: ObjectiveSums) -> ObjectiveSums:
        return ObjectiveSums(*(one + two for one, two in zip(self, other, strict=True)))


def _objective(problem: LeaveOneOut, queries: Chunk, state: PartialState) -> ObjectiveSums:
    residual = _residuals(problem, queries, state)
    weight = residual.new_ones(len(residual)) if queries.weight is None else queries.weight
    weighted = residual * problem.per_output() * weight.unsqueeze(1)
    # A row of weight 0 does not count, also where its residual is NaN because it has no neighbours.
    weighted = torch.where(weight.unsqueeze(1) > 0, weighted, 0.0)
    squares = torch.where(weighted != 0, weighted * residual, 0.0).sum()
    gradient = torch.zeros_like(problem.bandwidth)
    if problem.gradient:
        derivative = _prediction_derivative(problem, queries, state)
        gradient[problem.is_finite] = -2 * torch.einsum("qo,qok->k", weighted, derivative)
    return ObjectiveSums(squares, weight.sum(), gradient)


def _residuals(problem: LeaveOneOut, queries: Chunk, state: PartialState) -> Float[Tensor, "rows outputs"]:
    """y_i - f_-i(x_i). A point without neighbours is predicted by the nearest points; if there are none, by NaN."""
    mean, alone = state.average.mean, state.average.lse == NEVER
    if state.nearest is not None:
        mean = torch.where(alone.unsqueeze(1), state.nearest.mean, mean)
        alone = alone & (state.nearest.total == 0)
    return problem.outputs(queries) - torch.where(alone.unsqueeze(1), torch.nan, problem.predictions(queries, mean))


def _prediction_derivative(
    problem: LeaveOneOut, queries: Chunk, state: PartialState
) -> Float[Tensor, "rows outputs finite"]:
    """Derivative d f_-i / d log h."""
    query, outputs = problem.points(queries), queries.y.shape[1]
    dim = query.shape[1]
    under_g = state.average if state.slope is None else state.slope
    y, x, xx, products = under_g.mean.split((outputs, dim, dim, 2 * dim * outputs), 1)
    yx, yxx = products.unflatten(1, (outputs, 2 * dim)).split((dim, dim), 2)  # (rows, outputs, dim)
    fit = state.average.mean[:, :outputs].unsqueeze(2)
    query, x, xx = query.unsqueeze(1), x.unsqueeze(1), xx.unsqueeze(1)
    change = (y.unsqueeze(2) - fit) * query.square() - 2 * query * (yx - fit * x) + (yxx - fit * xx)
    if state.slope is None:
        return change
    # The prediction by the nearest points changes only by jumps: its derivative is 0.
    ratio = torch.exp(state.slope.lse - torch.where(state.average.lse == NEVER, torch.inf, state.average.lse))
    return change * ratio.reshape(-1, 1, 1)


# States of pairs of chunks


class OwnPoint(NamedTuple):
    """The point that each query is, and the weight that remains of it when it is left out."""

    point: Int[Tensor, " q"]
    kept_weight: Float[Tensor, " q"]

    def at(self, rows: Tensor) -> OwnPoint:
        return OwnPoint(self.point[rows], self.kept_weight[rows])


def _pair_state(problem: LeaveOneOut, queries: Chunk, chunk: Chunk) -> PartialState:
    """State of one pair of chunks. A chunk that meets itself leaves out the point that each query is."""
    query, x, columns = problem.points(queries), problem.points(chunk), problem.columns(chunk)
    own = OwnPoint(torch.arange(len(x)), problem.kept_weight(chunk)) if queries.number == chunk.number else None
    if problem.kernel != "gaussian":
        return _all_pairs(problem.kernel, query, x, chunk.weight, columns, own)
    if not len(query) or not len(x):
        return PartialState(empty(len(query), columns.shape[1], query))
    average = problem.average(queries, chunk)
    return PartialState(average if own is None else _without_own_point(average, query, x, chunk, columns, own))


def _without_own_point(
    average: Pooled, query: Tensor, x: Tensor, chunk: Chunk, columns: Tensor, own: OwnPoint
) -> Pooled:
    """Subtract the point that a query is, whose K(0) = 1; where it has most of the weight, sum the others again."""
    weight = torch.ones_like(own.kept_weight) if chunk.weight is None else chunk.weight
    # Through logarithms: far from everything a row of weight 0 would be 0 times infinity.
    share = torch.exp((weight - own.kept_weight).log() - torch.where(average.lse == NEVER, 0.0, average.lse))
    rest = (1 - share).clamp_min(1 - MAX_SUBTRACTED_SHARE)
    mean = (average.mean - share.unsqueeze(1) * columns) / rest.unsqueeze(1)
    others = Pooled(average.lse + rest.log(), mean, average.error / rest)
    heavy = (share > MAX_SUBTRACTED_SHARE).nonzero().squeeze(1)
    if len(heavy):
        others.put(heavy, _all_pairs("gaussian", query[heavy], x, chunk.weight, columns, own.at(heavy)).average)
    return others


def _all_pairs(
    kernel: str,
    query: Float[Tensor, "q dim"],
    x: Float[Tensor, "n dim"],
    weight: Float[Tensor, " n"] | None,
    columns: Float[Tensor, "n columns"],
    own: OwnPoint | None,
) -> PartialState:
    """State from all pairs in float64, tile by tile."""
    tiles = torch.arange(len(query), device=query.device).split(max(1, BLOCK_PAIRS // (len(x) + 1)))
    states = [_tile(kernel, query[rows], x, weight, columns, own and own.at(rows)) for rows in tiles]
    return states[0] if len(states) == 1 else PartialState(*map(_concatenated, zip(*states, strict=True)))


def _concatenated(states: tuple[Any, ...]) -> Any:
    """States of successive queries as one; None where they are None."""
    return None if states[0] is None else type(states[0])(*map(torch.cat, zip(*states, strict=True)))


def _tile(
    name: str, query: Tensor, x: Tensor, weight: Tensor | None, columns: Tensor, own: OwnPoint | None
) -> PartialState:
    kernel, log_weight = kernels.get(name), x.new_zeros(len(x)) if weight is None else weight.log()
    square = squared_distance(query, x) if x.shape[1] else query.new_zeros(len(query), len(x))
    log_k = kernel.log_kernel(square)
    score, log_slope = log_k + log_weight, kernel.log_of_derivative(square, log_k) + log_weight
    square = torch.where(log_weight > NEVER, square, torch.inf)
    if own is not None:
        cells = torch.arange(len(query), device=query.device), own.point
        score[cells], log_slope[cells], square[cells] = own.kept_weight.log(), NEVER, torch.inf
    slope = None if kernel is kernels.gaussian else Pooled.of(log_slope, columns)
    nearest = Nearest.of(square, weight, columns) if kernel.compact else None
    return PartialState(Pooled.of(score, columns), nearest, slope)
