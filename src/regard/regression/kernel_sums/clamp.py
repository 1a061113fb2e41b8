"""Queries from so far away that squares of distances do not fit float64, brought nearer without changing the answer.

Far from all data only directions tell, and which of the points are nearest no longer changes. So what a query lies
outside the box around the data is divided by a power of two, the same for all features, until it is within a limit that
is far in every sense. A feature in which it lies outside by much less would be lost beside the farthest, and yet
decides among points that are as near along that: such a feature is left alone below a smaller limit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

LARGEST = 1e150  # has a square


class Limits(NamedTuple):
    """How far outside a query may be: along its farthest feature, and what is left alone along the others."""

    far: float
    beside: float


EXACT = Limits(1e60, 1e30)  # where differences of distances are told without their squares
BY_SQUARES = Limits(1e6, 1e3)  # where squares of distances must keep digits
BY_DISTANCES = Limits(1e8, 1e4)  # the same for distances


def ends(x: Float[Tensor, "n dim"]) -> tuple[Float[Tensor, " dim"], Float[Tensor, " dim"]]:
    """The smallest and the largest number of each feature."""
    if not x.numel():
        return x.new_zeros(x.shape[1]), x.new_zeros(x.shape[1])
    low, high = zip(*(torch.aminmax(feature) for feature in x.unbind(1)), strict=True)
    return torch.stack(low), torch.stack(high)


def within(
    query: Float[Tensor, "q dim"],
    box: tuple[Float[Tensor, " dim"], Float[Tensor, " dim"]],
    width: Float[Tensor, " dim"],
    limits: Limits,
) -> Float[Tensor, "q dim"]:
    """The queries, those of them brought nearer that are beyond the limits, in bandwidths or in widths of the box."""
    low, high = box
    width = width.to(query.device)
    finite = torch.where(torch.isfinite(width), width, 0.0)
    unit = torch.maximum(finite, high - low)
    unit = torch.where(unit > 0, unit, 1.0).clamp_max(LARGEST)
    most = torch.where(finite > 0, LARGEST * width, torch.inf)
    return brought(query, box, torch.minimum(limits.far * unit, most), limits.beside * unit)


def brought(
    query: Float[Tensor, "q dim"],
    box: tuple[Float[Tensor, " dim"], Float[Tensor, " dim"]],
    far: Float[Tensor, " dim"],
    beside: Float[Tensor, " dim"],
) -> Float[Tensor, "q dim"]:
    """The same with limits in the units of each feature."""
    inside = torch.minimum(torch.maximum(query, box[0]), box[1])
    outside = query - inside
    rows = (outside.abs() > far).any(1).nonzero().squeeze(1)
    if not len(rows):
        return query
    parts = (part.numpy(force=True) for part in (query[rows], inside[rows], outside[rows], far, beside))
    return query.index_copy(0, rows, torch.from_numpy(_nearer(*parts)).to(query.device))


def _nearer(
    query: np.ndarray, inside: np.ndarray, outside: np.ndarray, far: np.ndarray, beside: np.ndarray
) -> np.ndarray:
    # Powers of two, so that features that are as far stay so to the last bit; numpy, whose exponents have no end.
    steps = np.frexp(outside)[1] - np.frexp(far)[1] + 1
    steps = np.where(np.abs(outside) > far, steps, 0).max(1, keepdims=True)
    least = np.minimum(np.abs(outside), beside)
    kept = np.copysign(np.maximum(np.abs(np.ldexp(outside, -steps)), least), outside)
    return np.where(kept == outside, query, inside + kept)
