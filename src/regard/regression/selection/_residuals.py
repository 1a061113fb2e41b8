"""Leave-one-out residuals at one bandwidth, at any size: the average of all points, less each point's own part."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression.selection._loo import Pairs, scaled
from regard.regression.selection._loo_rows import FIRM, lines_of_moments, moments, split_moments
from regard.regression.selection._problem import Problem
from regard.regression.sums import _kinds
from regard.regression.sums._engine import lines, pool
from regard.regression.sums._kinds import Kinds
from regard.regression.sums._sample import Sample

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
    if len(problem.x) ** 2 <= FEW:
        return Pairs(problem)(bandwidth, gradient=False).residuals
    found = _by_lines(problem, bandwidth, tol) if degree and kinds is None else None
    found = _from_all(problem, bandwidth, tol) if found is None else found
    back = torch.empty_like(found)
    back[problem.order] = found
    return back


def _by_lines(problem: Problem, bandwidth: Tensor, tol: float) -> Float[Tensor, "n outputs"] | None:
    """By the fast sum, where a row's own part is in two of the sums alone; None where another way is better."""
    counts, h, *_ = scaled(problem, bandwidth)
    if not bool(counts.all()):
        return None
    sample = Sample(problem.x, problem.y, h, problem.kernel, problem.log_weight)
    line = lines(sample, problem.x, tol=tol, left_out=torch.exp(problem.log_left_out))
    if line is None:
        return None
    found = problem.y - line.value
    again = (~(line.error <= tol)).nonzero().flatten()
    if len(again):
        found[again] = Pairs(problem).rows(bandwidth, again, gradient=False)[0]
    return found


def _from_all(problem: Problem, bandwidth: Tensor, tol: float) -> Float[Tensor, "n outputs"]:
    counts, h, x, z, _, kinds = scaled(problem, bandwidth)
    columns = moments(z, problem.y) if problem.degree else problem.y
    if problem.degree:
        # A slope is a difference of moments over h^2.
        tol = tol * float(h[counts].clamp_max(1.0).amin()) ** 2 if counts.any() else tol
    sample = Sample(x, columns, x.new_ones(x.shape[1]), problem.kernel, problem.log_weight)
    lse, mean, error = (
        pool(sample, x, tol=tol) if kinds is None else _kinds.pool(sample, kinds, x, kinds.codes, tol=tol)
    )
    own = torch.exp(problem.log_left_out - lse).clamp_max(1.0)
    others = 1 - own
    poor = (error > tol * others) | (others < OWN)
    mean = (mean - own.unsqueeze(1) * columns) / torch.where(poor, 1.0, others).unsqueeze(1)
    if problem.degree:
        line = lines_of_moments(z, *split_moments(mean, z.shape[1], problem.y.shape[1]))
        found = problem.y - line.fit
        poor |= line.firm < FIRM
    else:
        found = problem.y - mean
    again = poor.nonzero().flatten()
    if len(again):
        found[again] = Pairs(problem).rows(bandwidth, again, gradient=False)[0]
    return found
