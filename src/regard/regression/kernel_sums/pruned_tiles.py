"""Tiles of neighbours, and only those pairs of tiles that are within the kernel's reach of each other.

Of a query tile Q and a tile t of points with total weight W_t, the boxes around them give the nearest and the farthest
two of their points can be. So the sum at any query in Q is at least S = sum_t W_t K(farthest), and tile t adds at most
W_t K(nearest) to it. Tiles are left out, the faintest first, while what they could add together is at most delta S.
If delta' S is what was left out and D >= S what was kept, with true mean (N + n) / (D + d) and kept mean N / D,

    |mean - true| = |sum over left out of w_i (v_i - mean)| / (D + d) <= (delta' S / D) (max v - min v),

and log(D + d) - log D <= delta' S / D. A query far from everything has a small S, and the points nearest to it decide
S: the limit is right at any distance. A kernel with an edge adds exactly nothing beyond it.

Boxes are wide in many dimensions, and S is then far below what any query finds. So of the tiles that are kept, points
are left out once more, one by one and by a guess of S (`_faint`); a query at which the guess was too high is done again
with all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard import kernels
from regard.engine import threads
from regard.regression.kernel_sums import direct, inner_products, pruned_region, pruning
from regard.regression.kernel_sums.kd_tree import Tiles, tiles
from regard.regression.kernel_sums.pruned_region import ROUNDING, Ready, Region, with_all
from regard.regression.kernel_sums.pruning import SQUARES
from regard.regression.kernel_sums.scaled import Scaled
from regard.regression.kernel_sums.state import Pooled, empty

POINTS = 256  # in a tile
QUERIES = 256
BOXES = 1 << 18  # pairs of tiles looked at together
KEYS = 1 << 14  # points at once
WIDEST = 32.0  # bandwidths from the middle of a block to its corner: squares lose at most 12 of float64's 53 bits
FEWEST_KEYS = 16  # the fused kernel wants as many
FOR_TILES, FOR_POINTS = 0.05, 0.8  # of what may be left out; the guess for points is too high at some queries
COMPACT_REACH = 1.0  # a kernel with an edge ends at one bandwidth


class Reach(NamedTuple):
    """Which tiles of points each query tile needs, and the bound S and share of it that may be missing."""

    kept: Bool[Tensor, "query_tiles point_tiles"]
    log_least: Float[Tensor, " query_tiles"]
    missing: Float[Tensor, " query_tiles"]


@dataclass(frozen=True, slots=True)
class Plain:
    """Points as they are, and a way to average them for some queries."""

    part: Scaled
    block: Callable[[Scaled], Pooled]

    def most(self, low: Float[Tensor, "tiles dim"], high: Float[Tensor, "tiles dim"]) -> Float[Tensor, "tiles n"]:
        return pruning.most(self.part, low, high)

    def by_tiles(self, tiles: Sequence[slice], kept: Sequence[Int[Tensor, " some"] | None]) -> Pooled:
        parts = [self._pool(rows, some) for rows, some in zip(tiles, kept, strict=True)]
        return direct.gathered(parts, self.part.values.shape[1], self.part.query)

    def at(self, rows: Int[Tensor, " rows"]) -> Pooled:
        return self._pool(rows, None)

    def _pool(self, rows: slice | Int[Tensor, " rows"], some: Int[Tensor, " some"] | None) -> Pooled:
        part = self.part if some is None else self.part.taking(lambda tensor: tensor[some])
        part = part.asking(part.query[rows])
        return self.block(part) if len(part.x) else empty(len(part.query), part.values.shape[1], part.query)


def pool(problem: Scaled, tol: float) -> Pooled:
    """The average at each query, each with its own bound, in float64."""
    return by_tiles(problem, tol, POINTS, QUERIES, lambda part: Plain(part, _block))


def _as_it_is(_: Float[Tensor, "q dim"], state: Pooled) -> Pooled:
    return state


def by_tiles(
    problem: Scaled,
    tol: float,
    points: int,
    queries: int,
    ready: Callable[[Scaled], Ready],
    *,
    finish: Callable[[Float[Tensor, "q dim"], Pooled], Pooled] = _as_it_is,
    tile: int | None = None,
    by_point: bool = True,
) -> Pooled:
    """Tiles of so many points and regions of so many queries; `ready` makes points ready for the queries of a region.

    It is handed at most KEYS points at once, and what is found with several such parts is merged; `finish` tells the
    errors of that. With `tol` 0 only what float64 cannot tell from nothing is left out. With `by_point`, points are
    looked at one by one, for each `tile` of so many queries.
    """
    columns = problem.values.shape[1]
    if not len(problem.x) or not len(problem.query):
        return empty(len(problem.query), columns, problem.query)
    there, asked = tiles(problem.x, points), tiles(problem.query, queries)
    near = problem.taking(lambda part: part.index_select(0, there.order))
    near = near.asking(problem.query.index_select(0, asked.order))
    span = problem.span
    log_weights = tile_weights(there, near.log_weight)
    delta = max(tol, ROUNDING) / span
    faint = by_point and not kernels.get(problem.kernel).compact
    parts: list[Pooled] = []
    for some in _groups(len(asked), max(1, BOXES // len(there))):
        reach = reach_of(asked, some, there, log_weights, problem.kernel, FOR_TILES * delta)

        def one(number: int, first: int = some.start, reach: Reach = reach) -> Pooled:
            row = number - first
            pieces = tuple(_pieces(_runs(reach.kept[row], there), KEYS))
            log_lost = float(reach.missing[row].log() + reach.log_least[row])
            region = Region(near, near.query[asked.cut(number)], pieces, ready, finish, span, log_lost)
            return (
                pruned_region.without_faint(region, tile or queries, delta, FOR_POINTS) if faint else with_all(region)
            )

        parts += threads.parallel_map(one, some)
    return Pooled(*(asked.back(part) for part in direct.gathered(parts, columns, problem.query)))


def _groups(count: int, size: int) -> Iterator[range]:
    for low in range(0, count, size):
        yield range(low, min(low + size, count))


def tile_weights(points: Tiles, log_weight: Float[Tensor, " n"] | None) -> Float[Tensor, " tiles"]:
    """The log of the total weight in each tile."""
    if log_weight is None:
        return torch.tensor(points.start, dtype=torch.float64).diff().log()
    return torch.stack([log_weight[points.cut(tile)].logsumexp(0) for tile in range(len(points))])


def reach_of(
    asked: Tiles, some: range, points: Tiles, log_weights: Float[Tensor, " tiles"], kernel: str, delta: float
) -> Reach:
    """Which pairs of tiles are needed for an error of `delta` of the total weight. What is not a number is kept."""
    low, high = (side[some.start : some.stop].unsqueeze(1) for side in (asked.low, asked.high))
    gap = torch.maximum(points.low - high, low - points.high).clamp_min(0)
    nearest = gap.square().sum(-1) * (1 - SQUARES)
    if kernels.get(kernel).compact:
        kept = ~(nearest > COMPACT_REACH)
        nothing = log_weights.new_zeros(len(some))
        return Reach(kept, nothing, nothing)
    farthest = torch.maximum(points.high - low, high - points.low).square().sum(-1) * (1 + SQUARES)
    least = torch.logsumexp(direct.log_kernel(farthest, kernel) + log_weights, -1)
    most = torch.exp(direct.log_kernel(nearest, kernel) + log_weights - least.unsqueeze(-1))
    faintest = most.sort(-1)
    together = faintest.values.cumsum(-1)
    spare = together <= delta
    kept = torch.ones_like(spare).scatter(-1, faintest.indices, ~spare)
    return Reach(kept, least, torch.where(spare, together, 0.0).amax(-1))


def _runs(kept: Bool[Tensor, " tiles"], points: Tiles) -> list[slice]:
    """Kept tiles as stretches of points."""
    edges = torch.nn.functional.pad(kept.to(torch.int8), (1, 1)).diff().nonzero().squeeze(-1).tolist()
    return [slice(points.start[a], points.start[b]) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _pieces(runs: Sequence[slice], most: int) -> Iterator[list[slice]]:
    """Stretches in groups of at most so many points."""
    some: list[slice] = []
    count = 0
    for run in runs:
        for low in range(run.start, run.stop, most):
            part = slice(low, min(low + most, run.stop))
            if some and count + part.stop - part.start > most:
                yield some
                some, count = [], 0
            some.append(part)
            count += part.stop - part.start
    if some:
        yield some


def _block(problem: Scaled) -> Pooled:
    """One block of queries: products where they keep their digits, differences elsewhere."""
    if problem.kernel != "gaussian" or len(problem.x) < FEWEST_KEYS:
        return direct.pool(problem)
    around = inner_products.around(problem.query, problem.x)
    if not around.radius <= WIDEST:
        return direct.pool(problem)
    query, x = problem.query - around.centre, problem.x - around.centre
    return inner_products.pool(query, x, problem.values, problem.log_weight)
