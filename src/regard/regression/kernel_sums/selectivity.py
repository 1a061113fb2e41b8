"""How many pairs matter, guessed from a few: what a plan needs to know of the data."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from regard import kernels
from regard.regression.kernel_sums import direct, pairwise_float32, pruned_region, pruned_tiles, pruning
from regard.regression.kernel_sums.plan import SINGLE_TOL
from regard.regression.kernel_sums.pruned_region import ROUNDING
from regard.regression.kernel_sums.scaled import Scaled

SOME_TILES = 8
SOME_QUERIES = 1 << 13
SOME_POINTS = 1 << 10


def share_within_reach(problem: Scaled, tol: float) -> float:
    """The share of all pairs that are looked at where points beyond the reach of a tile of queries are not, about."""
    some, query = _thinned(problem), _every(problem.query, SOME_QUERIES)
    single = problem.kernel == "gaussian" and tol >= SINGLE_TOL
    members = (pairwise_float32.TILE if single else pruned_tiles.QUERIES) / len(problem.query) * len(query)
    asked = [_around(centre, query, members) for centre in _every(query, SOME_TILES)]
    kept = _kept(some, torch.stack(asked), max(tol, ROUNDING))
    return min(1.0, max(kept / len(some.x), pruned_tiles.POINTS / len(problem.x)))


def _every(points: Float[Tensor, "n ..."], count: int) -> Float[Tensor, "some ..."]:
    """About so many, evenly along the order in which they came."""
    if len(points) <= count:
        return points
    return points[torch.linspace(0, len(points) - 1, count, dtype=torch.float64).long()]


def _thinned(problem: Scaled) -> Scaled:
    """Fewer points with the same weight in all."""
    some = problem.taking(lambda part: _every(part, SOME_POINTS))
    heavier = torch.full_like(some.x[:, 0], math.log(len(problem.x) / len(some.x)))
    return replace(some, log_weight=heavier if some.log_weight is None else some.log_weight + heavier)


def _around(
    centre: Float[Tensor, " dim"], query: Float[Tensor, "q dim"], members: float
) -> Float[Tensor, "members dim"]:
    """A tile of queries, about: as many as it would have, in a cube."""
    away = (query - centre).abs().amax(-1)
    return query[away.topk(max(1, min(len(query), round(members))), largest=False).indices]


def _kept(points: Scaled, asked: Float[Tensor, "tiles members dim"], tol: float) -> float:
    """How many points matter to a tile, on average."""
    low, high = asked.amin(1), asked.amax(1)
    if kernels.get(points.kernel).compact:
        return float((pruning.nearest(points.x, low, high) <= pruned_tiles.COMPACT_REACH).double().sum(1).mean())
    looked_at = asked[:, :: max(1, asked.shape[1] // pruned_region.LOOKED_AT)]
    floor = direct.pool(points.asking(looked_at.flatten(0, 1))).lse.view(looked_at.shape[:2]).amin(1)
    kept, _ = pruning.bright(pruning.most(points, low, high), floor, pruned_tiles.FOR_POINTS * tol / points.span)
    return sum(len(points.x) if some is None else len(some) for some in kept) / len(kept)
