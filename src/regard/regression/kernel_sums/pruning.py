"""Points that are too faint to matter to any query of a tile, one by one.

What a point can add at a query of a tile is at most its weight times K of the distance to the box around the tile. Such
points are left out, the faintest first, while together they are at most a share delta of a guess of the smallest sum
at the tile's queries. That is a guess from a few queries and a few points, so it may be wrong, and nothing rests on it:
what was left out is known, and is held against what was found at each query afterwards.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.regression.kernel_sums import direct
from regard.regression.kernel_sums.scaled import Scaled

SQUARES = 2.0**-48  # by how much, at most, a squared distance is rounded
ROUNDED = 1.001  # times: more than a sum of shares can lose in single precision
LOOKED_AT = 1024  # points, for a guess of how many are faint


class Bright(NamedTuple):
    """Which points are left to each tile, None for all of them, and the log of what the others add at most."""

    kept: list[Int[Tensor, " some"] | None]
    log_lost: Float[Tensor, " tiles"]


def bright(most: Float[Tensor, "tiles n"], floor: Float[Tensor, " tiles"], delta: float) -> Bright:
    """Points are left out, the faintest first, while the most they can add sums to `delta` of the floor, about."""
    shares = (most - floor.unsqueeze(1).to(most)).clamp_max_(0.0).exp_()  # above the floor all are bright
    kept = ~(shares <= _brightest_faint(shares, delta))  # and what is no number
    # A share that underflows is not nothing: it may be all there is at a query where the sum is far below the floor.
    below = shares.shape[1] * torch.finfo(shares.dtype).tiny
    lost = shares.masked_fill_(kept, 0.0).sum(1, dtype=torch.float64) * ROUNDED + below
    masks = kept.numpy(force=True)
    some = [None if mask.all() else torch.from_numpy(np.flatnonzero(mask)).to(most.device) for mask in masks]
    return Bright(some, lost.log() + floor)


def _brightest_faint(shares: Float[Tensor, "tiles n"], delta: float) -> Float[Tensor, "tiles 1"]:
    """The share up to which points sum to at most `delta`, judged by some of them: to put all in order takes longer."""
    one_in = max(1, shares.shape[1] // LOOKED_AT)
    faintest = np.sort(shares[:, ::one_in].numpy(force=True), axis=1)
    count = (faintest.cumsum(1, dtype=np.float64) * one_in <= delta).sum(1, keepdims=True)
    edge = np.where(count, np.take_along_axis(faintest, np.maximum(count, 1) - 1, axis=1), -1.0)
    return torch.from_numpy(edge).to(shares)


def nearest(
    x: Float[Tensor, "n dim"], low: Float[Tensor, "tiles dim"], high: Float[Tensor, "tiles dim"]
) -> Float[Tensor, "tiles n"]:
    """The squared distance of each point to each box."""
    found = x.new_zeros(len(low), len(x))
    for place, below, above in zip(x.unbind(1), low.unbind(1), high.unbind(1), strict=True):
        gap = torch.clamp(place, below.unsqueeze(1), above.unsqueeze(1)).sub_(place)
        found.addcmul_(gap, gap)
    return found


def most(part: Scaled, low: Float[Tensor, "tiles dim"], high: Float[Tensor, "tiles dim"]) -> Float[Tensor, "tiles n"]:
    """The log of what each point adds at most, squares rounded down."""
    found = direct.log_kernel(nearest(part.x, low, high) * (1 - SQUARES), part.kernel)
    return found if part.log_weight is None else found + part.log_weight
