"""Every query with every point; or, where that is asked for, with those in reach."""

from __future__ import annotations

import torch

from regard.attention import attend
from regard.regression.kernel_sums import direct, pairwise_float32, pruned_tiles
from regard.regression.kernel_sums.plan import EXACT_PAIRS, SINGLE_TOL
from regard.regression.kernel_sums.scaled import Scaled
from regard.regression.kernel_sums.state import Pooled

NARROW = 32.0  # bandwidths from the middle: up to here squares lose at most 10 of float64's 53 bits
SKIPPED = 0.75  # of the error allowed, for what is left out; single precision needs the rest
DIRECT_DIMENSIONS = 4  # up to here `attend` takes differences before squares


def pool(problem: Scaled, tol: float, *, skip: bool = False) -> Pooled:
    """In float64; where single precision is enough and worth it, in that, and float64 for queries it fails.

    With `skip`, pairs of tiles beyond the kernel's reach are left out, within `tol`.
    """
    if problem.x.device.type == "cpu" and problem.kernel == "gaussian":
        if len(problem.query) * len(problem.x) > EXACT_PAIRS and tol >= SINGLE_TOL:
            found = pairwise_float32.pool(problem, tol * SKIPPED if skip else 0.0)
            return _repaired(problem, found, tol, skip=skip)
        return _double(problem, tol, skip=skip)
    if skip:
        return pruned_tiles.pool(problem, tol)
    return _attended(problem) if problem.x.shape[1] <= DIRECT_DIMENSIONS else direct.pool(problem)


def _repaired(problem: Scaled, found: Pooled, tol: float, *, skip: bool) -> Pooled:
    """What single precision found, and in double where its bound is above `tol` (or is not a number)."""
    bad = (~(found.error <= tol)).nonzero().squeeze(-1)
    if len(bad):
        again = _double(problem.asking(problem.query[bad]), tol, skip=skip)
        for whole, part in zip(found, again, strict=True):
            whole[bad] = part
    return found


def _double(problem: Scaled, tol: float, *, skip: bool) -> Pooled:
    if skip:
        return pruned_tiles.pool(problem, tol)
    farthest = max((float(side.abs().amax()) for side in (problem.x, problem.query) if side.numel()), default=0.0)
    if farthest <= NARROW and len(problem.query) * len(problem.x) <= EXACT_PAIRS:
        return _attended(problem)
    return pruned_tiles.pool(problem, 0.0)  # tiles around centres of their own, each the work of one processor


def _attended(problem: Scaled) -> Pooled:
    answer = attend(problem.query, problem.x, problem.values, score=problem.score())
    lse = answer.weights.logsumexp()
    return Pooled(lse, answer.output, torch.zeros_like(lse))
