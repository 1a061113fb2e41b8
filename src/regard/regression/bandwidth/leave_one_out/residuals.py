"""Leave-one-out residuals at one bandwidth, at any size: the average of all points, less each point's own part."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.operands import NEVER
from regard.regression.bandwidth.leave_one_out.pairwise import Pairs, scaled
from regard.regression.bandwidth.problem import Problem
from regard.regression.kernel_sums import categorical, engine, relative_weights
from regard.regression.kernel_sums.categorical import Kinds
from regard.regression.kernel_sums.relative_weights import Own
from regard.regression.kernel_sums.sample import Sample
from regard.regression.kernel_sums.state import Pooled
from regard.regression.local import linear_exact, linear_from_averages
from regard.regression.local.linear_fourier import lines_if_cheapest

FEW = 10**7  # pairs: below, each row is computed without its own point
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
    if len(problem.x) ** 2 <= FEW:
        return Pairs(problem)(bandwidth, gradient=False).residuals
    return problem.back(_from_all(problem, bandwidth, tol))


def _of_lines(
    sample: Sample, problem: Problem, bandwidth: Tensor, tol: float, kinds: Kinds | None
) -> Float[Tensor, "n outputs"]:
    """Quickly where rows are many, and from the points what is in doubt; a row that sees no other by the nearest."""
    log_kept = None if problem.log_kept is None else problem.back(problem.log_kept)
    if len(sample.x) ** 2 <= FEW:
        value, again = torch.empty_like(sample.values), torch.arange(len(sample.x), device=sample.x.device)
    else:
        value, doubt = _quickly(sample, problem.back(problem.log_left_out), tol, kinds)
        again = doubt.nonzero().flatten()
    if not len(again):
        return sample.values - value
    middle = sample.values.mean(0)
    own, answer = Own(again, None if log_kept is None else log_kept[again]), linear_exact.value(sample.values - middle)
    query = sample.x[again]
    if kinds is None:
        lse, line = relative_weights.answered(sample, query, answer, own)
    else:
        lse, line = categorical.answered(sample, kinds, query, kinds.codes[again], answer, own)
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
        return categorical.pool(some, kinds, sample.x, kinds.codes, tol=tol)

    return linear_from_averages.left_out(sample, pool, tol, log_left_out)


def _from_all(problem: Problem, bandwidth: Tensor, tol: float) -> Float[Tensor, "n outputs"]:
    """Degree 0."""
    _, _, x, _, _, kinds = scaled(problem, bandwidth)
    sample = Sample(x, problem.y, x.new_ones(x.shape[1]), problem.kernel, problem.log_weight)
    lse, mean, error = (
        engine.pool(sample, x, tol=tol) if kinds is None else categorical.pool(sample, kinds, x, kinds.codes, tol=tol)
    )
    own = torch.exp(problem.log_left_out - lse).clamp_max(1.0)
    others = 1 - own
    poor = (error > tol * others) | (others < OWN)
    found = problem.y - (mean - own.unsqueeze(1) * problem.y) / torch.where(poor, 1.0, others).unsqueeze(1)
    again = poor.nonzero().flatten()
    if len(again):
        found[again] = Pairs(problem).rows(bandwidth, again, gradient=False)[0]
    return found
