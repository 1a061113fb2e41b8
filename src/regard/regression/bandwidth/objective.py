"""Leave-one-out at one bandwidth, by the cheapest route: the criterion of a search, and residuals of a fit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.operands import NEVER
from regard.regression.bandwidth.leave_one_out.fourier import RANGE, SEARCH_TOL, Fourier
from regard.regression.bandwidth.leave_one_out.pairwise import Pairwise, lines_of_moments
from regard.regression.bandwidth.leave_one_out.problem import Evaluation, Problem, Rows
from regard.regression.kernel_sums import engine, relative_weights
from regard.regression.kernel_sums.categorical import Categories, by_category
from regard.regression.kernel_sums.plan import fourier_leave_one_out_seconds, pairwise_leave_one_out_seconds
from regard.regression.kernel_sums.relative_weights import LeaveOut
from regard.regression.kernel_sums.sample import EXACT_PAIRS, Sample
from regard.regression.kernel_sums.state import Pooled
from regard.regression.local.least_squares import Moments, moment_columns
from regard.regression.local.linear_fourier import lines_if_cheapest
from regard.regression.local.linear_statistics import exact_value, fast_leave_one_out_value

MAX_SHARE_FOR_MOMENTS = 0.99  # of a row in all weights: above, moments without it have lost 2 digits
LEAST_OTHERS_FOR_AVERAGE = 1e-6  # share of the other points at a row: below, their average has lost 6 digits


@dataclass(eq=False)
class Objective:
    """Leave-one-out criterion of a problem: each bandwidth by Fourier series or all pairs, whichever is faster."""

    problem: Problem
    tol: float = SEARCH_TOL

    def __post_init__(self) -> None:
        self.pairwise: Pairwise = Pairwise(self.problem)
        self.fourier: Fourier = Fourier(self.problem, tol=self.tol)
        n, dim = self.problem.data.x.shape
        self.pairwise_seconds: float = pairwise_leave_one_out_seconds(n, dim, self.problem.degree)

    def __call__(self, bandwidth: Float[Tensor, " features"], *, gradient: bool = True) -> Evaluation:
        """CV, gradient and residuals at a bandwidth in the caller's units."""
        if self._is_flat(bandwidth):
            return self.problem.evaluation(_flat_residuals(self.problem), bandwidth.new_zeros(len(bandwidth)))
        route = self.fourier if self._fourier_seconds(bandwidth) < self.pairwise_seconds else self.pairwise
        return route(bandwidth, gradient=gradient)

    def seconds(self, bandwidth: Float[Tensor, " features"]) -> float:
        """Rough cost of an evaluation, by the faster route."""
        return 0.0 if self._is_flat(bandwidth) else min(self.pairwise_seconds, self._fourier_seconds(bandwidth))

    def _fourier_seconds(self, bandwidth: Float[Tensor, " features"]) -> float:
        series = self.fourier.series(bandwidth)
        if series is None:
            return math.inf
        (n, outputs), dim = self.problem.data.values.shape, len(series.modes)
        return fourier_leave_one_out_seconds(series, n, outputs, RANGE[dim] ** dim)

    def _is_flat(self, bandwidth: Float[Tensor, " features"]) -> bool:
        """True where no feature matters: all points have the same weight."""
        by_category = self.problem.relevant_categories(bandwidth[len(self.problem.extent) :])
        return not self.fourier.axes(bandwidth) and not bool(by_category.any())


def _flat_residuals(problem: Problem) -> Float[Tensor, "n outputs"]:
    """Residuals where all bandwidths are infinite: of the mean of the other rows, or of one line through them."""
    x, y = problem.data.x, problem.data.values
    columns = moment_columns(x, y) if problem.degree else y
    left_out = problem.share * torch.exp(problem.log_left_out - problem.data.log_weights)
    mean = (problem.share @ columns - left_out.unsqueeze(1) * columns) / (1 - left_out).unsqueeze(1)
    if not problem.degree:
        return y - mean
    lines, weak = lines_of_moments(Moments.of(x, mean, y.shape[1]))
    residuals, redo = y - lines.fit, left_out > MAX_SHARE_FOR_MOMENTS
    redo[weak] = True
    if bool(redo.any()):
        residuals[redo] = Pairwise(problem).rows(problem.irrelevant, redo.nonzero().flatten(), gradient=False)[0]
    return residuals


def residuals(rows: Rows, degree: int = 0, tol: float = 1e-6) -> Float[Tensor, "n outputs"]:
    """Leave-one-out residuals y_i - f_{-i}(x_i) of any number of rows, within `tol` standard deviations of y."""
    return evaluate(Problem.of(rows, degree), rows.sample, rows.bandwidth, tol).residuals


def evaluate(problem: Problem, sample: Sample, bandwidth: Float[Tensor, " features"], tol: float) -> Evaluation:
    """CV and residuals within `tol`, without a gradient; `sample` has the rows in the caller's units and order.

    A row's share in its own average is p_ii = s_i / sum_j s_j K_ij, so the average of the others is
    (mean_i - p_ii y_i) / (1 - p_ii). Where p_ii is near 1 no digits would be left: such rows are computed from the
    other points alone. With up to EXACT_PAIRS pairs all rows are.
    """
    no_gradient = torch.zeros_like(bandwidth)
    if problem.degree:
        return problem.evaluation(_line_residuals(problem, sample, bandwidth, tol), no_gradient)
    if len(sample.x) ** 2 <= EXACT_PAIRS:
        return Pairwise(problem)(bandwidth, gradient=False)
    y = problem.data.values
    lse, mean, error = _pool(*problem.at(bandwidth)[:2], tol)
    own = torch.exp(problem.log_left_out - lse).clamp_max(1.0)
    others = 1 - own
    poor = (error > tol * others) | (others < LEAST_OTHERS_FOR_AVERAGE)
    result = y - (mean - own.unsqueeze(1) * y) / torch.where(poor, 1.0, others).unsqueeze(1)
    redo = poor.nonzero().flatten()
    if len(redo):
        result[redo] = Pairwise(problem).rows(bandwidth, redo, gradient=False)[0]
    return problem.evaluation(result, no_gradient)


def _line_residuals(problem: Problem, sample: Sample, bandwidth: Tensor, tol: float) -> Float[Tensor, "n outputs"]:
    """Residuals of degree 1: by a fast route if pairs are many, and from the points where that is in doubt.

    Points keep the caller's units: the digits of points that hardly differ decide which directions are flat.
    """
    widths, lambdas = bandwidth.tensor_split([len(problem.extent)])
    categories = None if problem.categories is None else problem.categories._replace(smoothing=lambdas)
    values, log_kept = problem.data.values, problem.log_kept
    sample = replace(sample.subset(lambda rows: rows[problem.order]), values=values, bandwidth=widths)
    if len(sample.x) ** 2 <= EXACT_PAIRS:
        fit, redo = torch.empty_like(values), torch.arange(len(values))
    else:
        fit, doubt = _fast_lines(sample, problem.log_left_out, tol, categories)
        redo = doubt.nonzero().flatten()
    if not len(redo):
        return values - fit

    def exact(group: Sample, rows: slice | Int[Tensor, " some"]) -> tuple[Tensor, ...]:
        own = redo[rows]
        leave_out = LeaveOut(own, None if log_kept is None else log_kept[own])
        return relative_weights.for_neighbourhoods(group, sample.x[own], partial(exact_value, values), leave_out)

    lse, fit[redo] = by_category(sample, categories, _codes(sample, categories)[redo], exact)
    result, alone = values - fit, redo[lse == NEVER]
    if len(alone):  # no other point in reach: predicted by the nearest
        result[alone] = Pairwise(problem).rows(bandwidth, alone, gradient=False)[0]
    return result


def _fast_lines(
    sample: Sample, log_left_out: Float[Tensor, " n"], tol: float, categories: Categories | None
) -> tuple[Float[Tensor, "n outputs"], Bool[Tensor, " n"]]:
    """Value of the line through the other rows at each row, and the rows where it is in doubt."""
    lines = lines_if_cheapest(sample, sample.x, tol, categories=categories, left_out=torch.exp(log_left_out))
    if lines is not None:
        return lines.value, ~(lines.error <= tol)

    def pool(columns: Tensor, tol: float) -> Pooled:
        return _pool(replace(sample, values=columns), categories, tol)

    return fast_leave_one_out_value(sample, pool, tol, log_left_out)


def _pool(sample: Sample, categories: Categories | None, tol: float) -> Pooled:
    """Kernel average at the points of the sample."""
    codes = _codes(sample, categories)
    return Pooled(*by_category(sample, categories, codes, lambda group, at: engine.pool(group, sample.x[at], tol=tol)))


def _codes(sample: Sample, categories: Categories | None) -> Float[Tensor, "n categories"]:
    return sample.x[:, :0] if categories is None else categories.codes
