"""How many pairs matter, guessed from a few: what a plan needs to know of the data."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression.sums import _cells
from regard.regression.sums._direct import squared_distance
from regard.regression.sums._plan import INFINITE
from regard.regression.sums._scaled import Scaled

SOME_QUERIES = 128
SOME_POINTS = 1024


def share_within_reach(problem: Scaled, tol: float) -> float:
    """The share of all pairs that lie in tiles within the kernel's reach of each other, about."""
    x, query = _some(problem.x, SOME_POINTS), _some(problem.query, SOME_QUERIES)
    distance = squared_distance(query, x).sqrt().sort(1).values
    nearest = distance[:, :1]
    near = (distance <= _reach(problem, nearest, tol) + _tile_width(problem, distance)).double().mean()
    fewest = 3.0 ** problem.x.shape[1] * _cells.POINTS / len(problem.x)
    return min(1.0, max(float(near), fewest))


def _some(points: Float[Tensor, "n dim"], count: int) -> Float[Tensor, "some dim"]:
    if len(points) <= count:
        return points
    return points[torch.linspace(0, len(points) - 1, count, dtype=torch.float64).long()]


def _reach(problem: Scaled, nearest: Float[Tensor, "q 1"], tol: float) -> Tensor | float:
    """The distance at which a point has become faint beside the nearest one."""
    if problem.kernel not in INFINITE:
        return 1.0
    faint = math.log(problem.span / max(tol, _cells.ROUNDING))
    return nearest + faint if problem.kernel == "laplace" else (nearest.square() + 2 * faint).sqrt()


def _tile_width(problem: Scaled, distance: Float[Tensor, "q n"]) -> Float[Tensor, "q 1"]:
    """About the width of a tile of queries and one of points, from how far as many points reach around a query."""
    tile, seen = min(1.0, _cells.POINTS / len(problem.x)), distance.shape[1]
    rank = max(1, math.ceil(tile * seen))
    shrink = (tile * seen / rank) ** (1 / problem.x.shape[1])
    return 3 * shrink * distance[:, rank - 1 : rank]
