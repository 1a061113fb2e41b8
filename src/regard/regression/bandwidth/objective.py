"""Leave-one-out at one bandwidth, by the cheapest route: the criterion of a search, and residuals of a fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.operands import NEVER
from regard.regression.bandwidth.leave_one_out.fourier import RANGE, SEARCH_TOL, Fourier
from regard.regression.bandwidth.leave_one_out.pairwise import Pairwise, lines_of_moments, scaled
from regard.regression.bandwidth.leave_one_out.problem import Evaluation, Problem
from regard.regression.kernel_sums import engine, relative_weights
from regard.regression.kernel_sums.categorical import Categories, by_category
from regard.regression.kernel_sums.plan import LEAVE_ONE_OUT_CALLS, LEAVE_ONE_OUT_PAIR, transform_seconds
from regard.regression.kernel_sums.relative_weights import LeaveOut
from regard.regression.kernel_sums.sample import EXACT_PAIRS, Sample
from regard.regression.kernel_sums.state import Pooled
from regard.regression.local.least_squares import Moments, moment_columns
from regard.regression.local.linear_fourier import lines_if_cheapest
from regard.regression.local.linear_statistics import exact_value, fast_leave_one_out_value

LARGEST_OWN_SHARE = 0.99  # of a row in all weights: above, moments without it have lost 2 digits
LEAST_OTHERS = 1e-6  # share of the other points at a row: below, the average without the row has lost 6 digits


@dataclass(eq=False)
class Objective:
    """Leave-one-out criterion of a problem: each bandwidth by Fourier series or all pairs, whichever is faster."""

    problem: Problem
    tol: float = SEARCH_TOL

    def __post_init__(self) -> None:
        self.pairwise: Pairwise = Pairwise(self.problem)
        self.fourier: Fourier = Fourier(self.problem, tol=self.tol)

    def __call__(self, bandwidth: Float[Tensor, " features"], *, gradient: bool = True) -> Evaluation:
        """CV, gradient and residuals at a bandwidth in the caller's units."""
        if self._is_flat(bandwidth):
            return self.problem.evaluation(_flat_residuals(self.problem), bandwidth.new_zeros(len(bandwidth)))
        route = self.fourier if self.seconds(bandwidth) < self._pairwise_seconds() else self.pairwise
        return route(bandwidth, gradient=gradient)

    def seconds(self, bandwidth: Float[Tensor, " features"]) -> float:
        """Rough cost of an evaluation, by the faster route."""
        if self._is_flat(bandwidth):
            return 0.0
        pairwise, series = self._pairwise_seconds(), self.fourier.series(bandwidth)
        if series is None:
            return pairwise
        (n, outputs), dim = self.problem.y.shape, len(series.modes)
        transform = transform_seconds(series, n, larger_grid=RANGE[dim] ** dim)
        return min(pairwise, LEAVE_ONE_OUT_CALLS + (outputs + 2) // 2 * 2 * transform)

    def _is_flat(self, bandwidth: Float[Tensor, " features"]) -> bool:
        """True where no feature matters: all points have the same weight."""
        by_category = self.problem.relevant_categories(bandwidth[self.problem.x.shape[1] :])
        return not self.fourier.axes(bandwidth) and not bool(by_category.any())

    def _pairwise_seconds(self) -> float:
        n, dim = self.problem.x.shape
        return LEAVE_ONE_OUT_PAIR * n * n * (1 + self.problem.degree * dim / 2)


def _flat_residuals(problem: Problem) -> Float[Tensor, "n outputs"]:
    """Residuals where all bandwidths are infinite: of the mean of the other rows, or of one line through them."""
    columns = moment_columns(problem.x, problem.y) if problem.degree else problem.y
    left_out = problem.share * torch.exp(problem.log_left_out - problem.log_weights)
    mean = (problem.share @ columns - left_out.unsqueeze(1) * columns) / (1 - left_out).unsqueeze(1)
    if not problem.degree:
        return problem.y - mean
    lines, weak = lines_of_moments(Moments.of(problem.x, mean, problem.y.shape[1]))
    residuals, redo = problem.y - lines.fit, left_out > LARGEST_OWN_SHARE
    redo[weak] = True
    if bool(redo.any()):
        residuals[redo] = Pairwise(problem).rows(problem.irrelevant, redo.nonzero().flatten(), gradient=False)[0]
    return residuals


def residuals(
    sample: Sample,
    *,
    degree: int = 0,
    left_out: Float[Tensor, " n"] | None = None,
    tol: float = 1e-6,
    categories: Categories | None = None,
) -> Float[Tensor, "n outputs"]:
    """Leave-one-out residuals y_i - f_{-i}(x_i) of any number of rows, within `tol` standard deviations of y.

    `left_out` is how much of each weight is left out, all of it by default (see `Problem`).

    A row's share in its own average is p_ii = s_i / sum_j s_j K_ij, so the average of the others is
    (mean_i - p_ii y_i) / (1 - p_ii). Where p_ii is near 1 no digits would be left: such rows are computed from the
    other points alone. With up to EXACT_PAIRS pairs all rows are.
    """
    problem = Problem.of(sample.x, sample.values, sample.kernel, degree, sample.log_weight, left_out, categories)
    bandwidth = sample.bandwidth if categories is None else torch.cat((sample.bandwidth, categories.smoothing))
    if degree:
        return _line_residuals(sample, problem, bandwidth, tol, categories)
    if len(problem.x) ** 2 <= EXACT_PAIRS:
        return Pairwise(problem)(bandwidth, gradient=False).residuals
    at = scaled(problem, bandwidth)
    sample = Sample(at.x, problem.y, at.x.new_ones(at.x.shape[1]), problem.kernel, problem.log_weight)
    lse, mean, error = _pool(sample, at.categories, tol)
    own = torch.exp(problem.log_left_out - lse).clamp_max(1.0)
    others = 1 - own
    poor = (error > tol * others) | (others < LEAST_OTHERS)
    result = problem.y - (mean - own.unsqueeze(1) * problem.y) / torch.where(poor, 1.0, others).unsqueeze(1)
    redo = poor.nonzero().flatten()
    if len(redo):
        result[redo] = Pairwise(problem).rows(bandwidth, redo, gradient=False)[0]
    return problem.in_caller_order(result)


def _line_residuals(
    sample: Sample, problem: Problem, bandwidth: Tensor, tol: float, categories: Categories | None
) -> Float[Tensor, "n outputs"]:
    """Residuals of degree 1: by a fast route if pairs are many, and from the points where that is in doubt."""
    log_kept = None if problem.log_kept is None else problem.in_caller_order(problem.log_kept)
    if len(sample.x) ** 2 <= EXACT_PAIRS:
        value, redo = torch.empty_like(sample.values), torch.arange(len(sample.x), device=sample.x.device)
    else:
        value, doubt = _fast_lines(sample, problem.in_caller_order(problem.log_left_out), tol, categories)
        redo = doubt.nonzero().flatten()
    if not len(redo):
        return sample.values - value
    middle = sample.values.mean(0)
    statistic = partial(exact_value, sample.values - middle)

    def exact(group: Sample, rows: Int[Tensor, " some"]) -> tuple[Tensor, ...]:
        own = redo[rows]
        leave_out = LeaveOut(own, None if log_kept is None else log_kept[own])
        return relative_weights.for_neighbourhoods(group, sample.x[own], statistic, leave_out)

    if categories is None:
        lse, line = exact(sample, torch.arange(len(redo), device=redo.device))
    else:
        lse, line = by_category(sample, categories, categories.codes[redo], exact)
    value[redo] = line + middle
    result = sample.values - value
    alone = redo[lse == NEVER]
    if len(alone):  # no other point in reach: predicted by the nearest
        result[alone] = Pairwise(problem).rows(bandwidth, torch.argsort(problem.order)[alone], gradient=False)[0]
    return result


def _fast_lines(
    sample: Sample, log_left_out: Float[Tensor, " n"], tol: float, categories: Categories | None
) -> tuple[Float[Tensor, "n outputs"], Bool[Tensor, " n"]]:
    """Value of the line through the other rows at each row, and the rows where it is in doubt."""
    if categories is None:
        lines = lines_if_cheapest(sample, sample.x, tol, "auto", torch.exp(log_left_out))
        if lines is not None:
            return lines.value, ~(lines.error <= tol)

    def pool(columns: Tensor, tol: float) -> Pooled:
        return _pool(replace(sample, values=columns), categories, tol)

    return fast_leave_one_out_value(sample, pool, tol, log_left_out)


def _pool(sample: Sample, categories: Categories | None, tol: float) -> Pooled:
    """Kernel average at the points of the sample."""
    if categories is None:
        return engine.pool(sample, sample.x, tol=tol)
    parts = by_category(
        sample, categories, categories.codes, lambda group, rows: engine.pool(group, sample.x[rows], tol=tol)
    )
    return Pooled(*parts)
