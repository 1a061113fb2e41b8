"""Every query with every point."""

from __future__ import annotations

import torch

from regard.attention import attend
from regard.regression import _cells, _direct, _single
from regard.regression._plan import EXACT_PAIRS, SINGLE_TOL
from regard.regression._scaled import Scaled
from regard.regression._state import Pooled

NARROW = 32.0  # bandwidths from the middle: up to here squares lose at most 10 of float64's 53 bits
DIRECT_DIMENSIONS = 4  # up to here `attend` takes differences before squares


def pool(problem: Scaled, tol: float) -> Pooled:
    """In float64; where single precision is enough and worth it, in that, and float64 for queries it fails."""
    pairs = len(problem.query) * len(problem.x)
    if problem.kernel == "gaussian" and problem.x.device.type == "cpu":
        if pairs > EXACT_PAIRS and tol >= SINGLE_TOL:
            return _repaired(problem, _single.pool(problem), tol)
        return _double(problem)
    return _attended(problem) if problem.x.shape[1] <= DIRECT_DIMENSIONS else _direct.pool(problem)


def _repaired(problem: Scaled, found: Pooled, tol: float) -> Pooled:
    """What single precision found, and in double where its bound is above `tol` (or is not a number)."""
    bad = (~(found.error <= tol)).nonzero().squeeze(-1)
    if len(bad):
        again = _double(problem.asking(problem.query[bad]))
        for whole, part in zip(found, again, strict=True):
            whole[bad] = part
    return found


def _double(problem: Scaled) -> Pooled:
    farthest = max((float(side.abs().amax()) for side in (problem.x, problem.query) if side.numel()), default=0.0)
    if farthest <= NARROW:
        return _attended(problem)
    return _cells.pool(problem, 0.0)  # blocks around centres of their own


def _attended(problem: Scaled) -> Pooled:
    answer = attend(problem.query, problem.x, problem.values, score=problem.score())
    lse = answer.weights.logsumexp()
    return Pooled(lse, answer.output, torch.zeros_like(lse))
