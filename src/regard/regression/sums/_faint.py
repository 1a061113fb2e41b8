"""Points that are too faint to matter to any query of a tile, one by one.

What a point can add at a query of a tile is at most its weight times K of the distance to the box around the tile. Such
points are left out, the faintest first, while together they are at most a share delta of a guess of the smallest sum
at the tile's queries. The guess is the sum at a few of them, so it may be wrong, and nothing rests on it: what was left
out is known, and is held against what was found at each query afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard._operands import NEVER
from regard.regression.sums import _direct
from regard.regression.sums._scaled import Scaled

ONE_IN = 256  # one in so many queries of a tile is looked at for the guess
FEWEST = 2
SQUARES = 2.0**-48  # by how much, at most, a squared distance is rounded
DIGITS = 1e-280  # a sum of shares below this has lost some of them to underflow


def guess(parts: Iterable[Scaled]) -> float:
    """The log of the smallest sum at the queries, about, from some of them; all parts ask the same queries."""
    found: Tensor | None = None
    for part in parts:
        some = part.query[:: max(1, min(ONE_IN, len(part.query) // FEWEST))]
        here = _logits(some, part).logsumexp(-1)
        found = here if found is None else torch.logaddexp(found, here)
    return NEVER if found is None else float(found.min()) - math.log(2)


def _logits(query: Float[Tensor, "q dim"], part: Scaled) -> Float[Tensor, "q n"]:
    """The log of each point's weight at each query, about: by a product of matrices where there is one."""
    if part.kernel != "gaussian":
        logits = _direct.log_kernel(_direct.squared_distance(query, part.x), part.kernel)
        return logits if part.log_weight is None else logits.add_(part.log_weight)
    middle = query.mean(0)
    query, x = query - middle, part.x - middle
    bias = x.square().sum(1).mul_(-0.5)
    if part.log_weight is not None:
        bias += part.log_weight
    return torch.addmm(bias, query, x.mT).sub_(query.square().sum(1, keepdim=True).mul_(0.5))


def without(part: Scaled, floor: float, delta: float) -> tuple[Scaled, float]:
    """The points that matter, and the log of what the others add at most, wherever in the tile."""
    if not math.isfinite(floor):  # too far for a number, or not one: nothing is known
        return part, NEVER
    most = _most(part)
    share = torch.exp(most - floor)
    # On a processor torch takes three times as long as numpy.
    order = torch.from_numpy(np.argsort(share.numpy())) if share.device.type == "cpu" else share.argsort()
    together = share[order].cumsum(0)
    faint = int(torch.searchsorted(together, delta, right=True))
    if not faint:
        return part, NEVER
    lost, bright = float(together[faint - 1]), order[faint:]
    # Nothing beside the guess may be all there is at a query where the sum is far below it.
    log_lost = math.log(lost) + floor if lost > DIGITS else float(most[order[:faint]].logsumexp(0))
    return part.taking(lambda tensor: tensor[bright]), log_lost


def nearest(part: Scaled) -> Float[Tensor, " n"]:
    """The squared distance of each point to the box around the queries."""
    low, high = torch.aminmax(part.query, dim=0)
    return (part.x - part.x.clamp(low, high)).square_().sum(1)


def _most(part: Scaled) -> Float[Tensor, " n"]:
    """The log of what each point adds at most, squares rounded down."""
    found = _direct.log_kernel(nearest(part) * (1 - SQUARES), part.kernel)
    return found if part.log_weight is None else found + part.log_weight
