"""Which way to leave-one-out is quicker at a bandwidth: all pairs, or the fast sum where there is one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.operands import NEVER
from regard.regression.bandwidth.leave_one_out.fourier import ROOM, SUREST, Fast
from regard.regression.bandwidth.leave_one_out.pairwise import (
    FIRM,
    Pairs,
    lines_of_moments,
    moments,
    scaled,
    split_moments,
)
from regard.regression.bandwidth.leave_one_out.problem import Evaluation, Problem
from regard.regression.kernel_sums import engine, relative_weights
from regard.regression.kernel_sums.categorical import Kinds
from regard.regression.kernel_sums.fourier import Series
from regard.regression.kernel_sums.plan import LEAVE_ONE_OUT_CALLS, LEAVE_ONE_OUT_PAIR, transform_seconds
from regard.regression.kernel_sums.relative_weights import LeaveOut
from regard.regression.kernel_sums.sample import EXACT_PAIRS, Sample
from regard.regression.kernel_sums.state import Pooled
from regard.regression.local import linear_exact, linear_from_averages
from regard.regression.local.linear_fourier import lines_if_cheapest

MOST = 0.99  # of all weight: without a point that has more, moments of all say little of the others


@dataclass(eq=False)
class Objective:
    """Leave-one-out of a problem, each bandwidth by the way that is quicker for it."""

    problem: Problem
    tol: float = SUREST

    def __post_init__(self) -> None:
        self.pairs = Pairs(self.problem)
        self.fast = Fast(self.problem, tol=self.tol)

    def __call__(self, bandwidth: Float[Tensor, " features"], *, gradient: bool = True) -> Evaluation:
        if self._all_alike(bandwidth):
            return self.problem.answer(_of_all_alike(self.problem), bandwidth.new_zeros(len(bandwidth)))
        way = self.fast if self.seconds(bandwidth) < self._seconds_of_pairs() else self.pairs
        return way(bandwidth, gradient=gradient)

    def seconds(self, bandwidth: Float[Tensor, " features"]) -> float:
        """What an evaluation costs, roughly, by the quicker way."""
        if self._all_alike(bandwidth):
            return 0.0
        series = self.fast.series(bandwidth)
        slow = self._seconds_of_pairs()
        return slow if series is None else min(slow, self._seconds_of(series))

    def _all_alike(self, bandwidth: Float[Tensor, " features"]) -> bool:
        kinds, dim = self.problem.kinds, self.problem.x.shape[1]
        apart = kinds is not None and bool(self.problem.matters(bandwidth[dim:]).any())
        return not apart and not self.fast.axes(bandwidth)

    def _seconds_of_pairs(self) -> float:
        n, dim = self.problem.x.shape
        return LEAVE_ONE_OUT_PAIR * n * n * (1 + self.problem.degree * dim / 2)

    def _seconds_of(self, series: Series) -> float:
        n, outputs = self.problem.y.shape
        dim = len(series.modes)
        transform = transform_seconds(series, n, larger_grid=ROOM[dim] ** dim)
        return LEAVE_ONE_OUT_CALLS + (outputs + 2) // 2 * 2 * transform


def _of_all_alike(problem: Problem) -> Float[Tensor, "n outputs"]:
    """Every width infinite: each point predicted by the mean of the others, or by one line through them."""
    columns = moments(problem.x, problem.y) if problem.degree else problem.y
    left = problem.share * torch.exp(problem.log_left_out - problem.log_weights)
    mean = (problem.share @ columns - left.unsqueeze(1) * columns) / (1 - left).unsqueeze(1)
    if not problem.degree:
        return problem.y - mean
    parts = split_moments(mean, problem.x.shape[1], problem.y.shape[1])
    line = lines_of_moments(problem.x, *parts)
    found, weak = problem.y - line.fit, ~(line.firm >= FIRM) | (left > MOST)
    if bool(weak.any()):
        found[weak] = Pairs(problem).rows(problem.no_help, weak.nonzero().flatten(), gradient=False)[0]
    return found


OWN = 1e-6  # a row where the others together weigh less than this part is computed without its own point


def residuals(
    sample: Sample,
    *,
    degree: int = 0,
    left_out: Float[Tensor, " n"] | None = None,
    tol: float = 1e-6,
    kinds: Kinds | None = None,
) -> Float[Tensor, "n outputs"]:
    """y_i - f_{-i}(x_i): each point predicted by all the others, with an error of at most `tol` standard deviations.

    `left_out` is how much of each weight is left out, all of it by default (see `Problem`).

    A point's share in its own average is p_ii = s_i / sum_j s_j K_ij, so the average of the others is
    (mean_i - p_ii v_i) / (1 - p_ii). Where p_ii is near 1 nothing would be left of the digits: such rows are done again
    with their own point left out from the start.
    """
    problem = Problem.of(sample.x, sample.values, sample.kernel, degree, sample.log_weight, left_out, kinds)
    bandwidth = sample.bandwidth if kinds is None else torch.cat((sample.bandwidth, kinds.chance))
    if degree:
        return _of_lines(sample, problem, bandwidth, tol, kinds)
    if len(problem.x) ** 2 <= EXACT_PAIRS:
        return Pairs(problem)(bandwidth, gradient=False).residuals
    return problem.back(_from_all(problem, bandwidth, tol))


def _of_lines(
    sample: Sample, problem: Problem, bandwidth: Tensor, tol: float, kinds: Kinds | None
) -> Float[Tensor, "n outputs"]:
    """Quickly where rows are many, and from the points what is in doubt; a row that sees no other by the nearest."""
    log_kept = None if problem.log_kept is None else problem.back(problem.log_kept)
    if len(sample.x) ** 2 <= EXACT_PAIRS:
        value, again = torch.empty_like(sample.values), torch.arange(len(sample.x), device=sample.x.device)
    else:
        value, doubt = _quickly(sample, problem.back(problem.log_left_out), tol, kinds)
        again = doubt.nonzero().flatten()
    if not len(again):
        return sample.values - value
    middle = sample.values.mean(0)
    leave_out, value_at = (
        LeaveOut(again, None if log_kept is None else log_kept[again]),
        linear_exact.value(sample.values - middle),
    )
    query = sample.x[again]
    if kinds is None:
        lse, line = relative_weights.for_neighbourhoods(sample, query, value_at, leave_out)
    else:
        lse, line = relative_weights.for_neighbourhoods_by_category(
            sample, kinds, query, kinds.codes[again], value_at, leave_out
        )
    value[again] = line + middle
    found = sample.values - value
    alone = again[lse == NEVER]
    if len(alone):
        found[alone] = Pairs(problem).rows(bandwidth, torch.argsort(problem.order)[alone], gradient=False)[0]
    return found


def _quickly(
    sample: Sample, log_left_out: Float[Tensor, " n"], tol: float, kinds: Kinds | None
) -> tuple[Float[Tensor, "n outputs"], Bool[Tensor, " n"]]:
    """The line at each row through the others, and the rows where that is in doubt."""
    fast = None
    if kinds is None:
        fast = lines_if_cheapest(sample, sample.x, tol=tol, left_out=torch.exp(log_left_out))
    if fast is not None:
        return fast.value, ~(fast.error <= tol)

    def pool(columns: Tensor, tol: float) -> Pooled:
        some = replace(sample, values=columns)
        if kinds is None:
            return engine.pool(some, sample.x, tol=tol)
        return engine.pool_by_category(some, kinds, sample.x, kinds.codes, tol=tol)

    return linear_from_averages.left_out(sample, pool, tol, log_left_out)


def _from_all(problem: Problem, bandwidth: Tensor, tol: float) -> Float[Tensor, "n outputs"]:
    """Degree 0."""
    _, _, x, _, _, kinds = scaled(problem, bandwidth)
    sample = Sample(x, problem.y, x.new_ones(x.shape[1]), problem.kernel, problem.log_weight)
    lse, mean, error = (
        engine.pool(sample, x, tol=tol)
        if kinds is None
        else engine.pool_by_category(sample, kinds, x, kinds.codes, tol=tol)
    )
    own = torch.exp(problem.log_left_out - lse).clamp_max(1.0)
    others = 1 - own
    poor = (error > tol * others) | (others < OWN)
    found = problem.y - (mean - own.unsqueeze(1) * problem.y) / torch.where(poor, 1.0, others).unsqueeze(1)
    again = poor.nonzero().flatten()
    if len(again):
        found[again] = Pairs(problem).rows(bandwidth, again, gradient=False)[0]
    return found
