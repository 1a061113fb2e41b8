"""Local lines from the points themselves, for queries that no fast sum is certain about: few points, or hardly spread.

By least squares on the points, not on their covariance, in which half of the digits of a small spread are lost. A
direction in which the data near a query hardly varies counts as flat, as in `_moments`.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression.sums import _apart
from regard.regression.sums._apart import Seen
from regard.regression.sums._sample import Sample

FLAT = 1e-12  # a local variance below that, over the square of the distance to the points, counts as none
TINY = 1e-150


def lines(sample: Sample, query: Float[Tensor, "q dim"]) -> Float[Tensor, "q outputs"]:
    """The local line at each query; all features are of finite width."""
    problem, found = _apart.answered(sample, query, _line)
    return problem.lift(found).mean


def _line(seen: Seen) -> Float[Tensor, "q outputs"]:
    mean, y = (seen.weights * seen.apart).sum(2), seen.weights @ seen.values  # (dim, q), (q, outputs)
    away, root = seen.gap - mean.T, seen.weights.sqrt()
    design = (root * (seen.apart - mean.unsqueeze(2))).permute(1, 2, 0)  # (q, n, dim)
    aim = root.unsqueeze(2) * (seen.values - y.unsqueeze(1))
    unit = (design.square().sum(1) + away.square()).clamp_min(TINY).sqrt()
    across, triangle = torch.linalg.qr(design)
    left, strength, right = torch.linalg.svd(triangle / unit.unsqueeze(1), full_matrices=False)
    inverse = torch.where(strength.square() > FLAT, 1 / strength, 0.0)
    slope = right.mT @ (inverse.unsqueeze(2) * (left.mT @ (across.mT @ aim)))  # (q, dim, outputs)
    return y + ((away / unit).unsqueeze(1) @ slope).squeeze(1)
