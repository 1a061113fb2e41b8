"""Clamping of queries that are so far away that squares of distances overflow float64. The answer does not change.

Far from all data only the direction of a query matters: which points are nearest no longer changes. So the distance of
a query from the box around the data is divided by a power of two, the same for all features, until it is within a
limit that is still far. A feature in which the query is much less far outside would then be lost beside the farthest.
Yet it decides among points that are equally near along the farthest: below a smaller limit a feature is not changed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

Box = tuple[Float[Tensor, " dim"], Float[Tensor, " dim"]]  # smallest and largest number of each feature

LARGEST = 1e150  # its square is finite


class Limits(NamedTuple):
    """Largest distance of a query outside the box, and the distance below which a feature is not changed."""

    far: float
    unchanged: float


EXACT = Limits(1e60, 1e30)  # where differences of distances are computed without their squares
BY_SQUARES = Limits(1e6, 1e3)  # where squares of distances must keep digits
BY_DISTANCES = Limits(1e8, 1e4)  # the same for distances


def within(
    query: Float[Tensor, "q dim"], box: Box, width: Float[Tensor, " dim"], limits: Limits
) -> Float[Tensor, "q dim"]:
    """The queries, clamped to limits in bandwidths or in widths of the box, whichever is larger."""
    low, high = box
    width = width.to(query.device)
    finite = torch.where(torch.isfinite(width), width, 0.0)
    unit = torch.maximum(finite, high - low)
    unit = torch.where(unit > 0, unit, 1.0).clamp_max(LARGEST)
    largest = torch.where(finite > 0, LARGEST * width, torch.inf)
    return clamp_to(query, box, torch.minimum(limits.far * unit, largest), limits.unchanged * unit)


def clamp_to(
    query: Float[Tensor, "q dim"], box: Box, far: Float[Tensor, " dim"], unchanged: Float[Tensor, " dim"]
) -> Float[Tensor, "q dim"]:
    """The queries, clamped to limits in the units of each feature."""
    inside = torch.minimum(torch.maximum(query, box[0]), box[1])
    outside = query - inside
    rows = (outside.abs() > far).any(1).nonzero().squeeze(1)
    if not len(rows):
        return query
    # Powers of two, so that features that are as far stay so to the last bit; numpy, whose exponents have no end.
    gap, limit, least = (part.numpy(force=True) for part in (outside[rows], far, unchanged))
    steps = np.frexp(gap)[1] - np.frexp(limit)[1] + 1
    steps = np.where(np.abs(gap) > limit, steps, 0).max(1, keepdims=True)
    least = np.minimum(np.abs(gap), least)
    kept = np.copysign(np.maximum(np.abs(np.ldexp(gap, -steps)), least), gap)
    kept = torch.from_numpy(kept).to(query.device)
    clamped = torch.where(kept == outside[rows], query[rows], inside[rows] + kept)
    return query.index_copy(0, rows, clamped)
