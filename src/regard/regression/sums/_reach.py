"""How many pairs matter, guessed from a few: what a plan needs to know of the data."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression.sums import _cells, _faint, _single
from regard.regression.sums._plan import SINGLE_TOL
from regard.regression.sums._sample import INFINITE
from regard.regression.sums._scaled import Scaled

SOME_TILES = 12
SOME_QUERIES = 1 << 13
SOME_POINTS = 1 << 10


def share_within_reach(problem: Scaled, tol: float) -> float:
    """The share of all pairs that are looked at where points beyond the reach of a tile of queries are not, about."""
    some = _thinned(problem)
    query = _every(problem.query, SOME_QUERIES)
    single = problem.kernel == "gaussian" and tol >= SINGLE_TOL
    members = (_single.QUERIES if single else _cells.QUERIES) / len(problem.query) * len(query)
    shares = [_kept(some.asking(_around(centre, query, members)), tol) for centre in _every(query, SOME_TILES)]
    return min(1.0, max(sum(shares) / len(shares), _cells.POINTS / len(problem.x)))


def _every(points: Float[Tensor, "n dim"], count: int) -> Float[Tensor, "some dim"]:
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


def _kept(tile: Scaled, tol: float) -> float:
    """The share of the points that matter to a tile."""
    if tile.kernel not in INFINITE:
        return float((_faint.nearest(tile) <= _cells.COMPACT_REACH).double().mean())
    delta = _cells.FOR_POINTS * max(tol, _cells.ROUNDING) / tile.span
    return len(_faint.without(tile, _faint.guess([tile]), delta)[0].x) / len(tile.x)
