"""Kernel averages without the points that are too far to matter, each query with a bound on what was pruned.

**Tiles.** For a tile Q of queries and a tile t of points with total weight W_t, their bounding boxes give the nearest
and the farthest two of their points can be. So the sum at any query in Q is at least S = sum_t W_t K(farthest), and
tile t adds at most W_t K(nearest) to it. Tiles are pruned, those that add least first, while together they add at most
delta S. If delta' S was pruned and D >= S was kept, with true mean (N + n) / (D + d) and kept mean N / D,

    |mean - true| = |sum over pruned points of w_i (v_i - mean)| / (D + d) <= (delta' S / D) (max v - min v),

and log(D + d) - log D <= delta' S / D. A query far from everything has a small S, and the points nearest to it decide
S: the bound is right at any distance. A kernel with an edge adds exactly nothing beyond it.

**Points.** Boxes are wide in many dimensions, and S is then far below the sum at any query. So points of the tiles
that are kept are pruned once more, one by one, by an estimate of S from a few queries. A point adds at most its weight
times K(distance to the box of queries). Nothing rests on the estimate: what was pruned is compared with the sum at each
query afterwards, and a query at which it was more than delta is computed again with all points.

Tiles are the leaves of a kd-tree. A region of queries is large, so that points are prepared for many queries at once;
its tiles are small, so that the boxes around them are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial, reduce
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard import kernels
from regard.engine import threads
from regard.regression.kernel_sums.sample import Standardised, in_original_order
from regard.regression.kernel_sums.state import Pooled, concatenate, empty, merge

POINTS = 256  # in a tile
QUERIES = 256  # in a tile: fewer need fewer points, and more comparisons of boxes
KERNEL_ROWS = 64  # queries that the fused kernel takes at once: large halves are multiples of it
PAIRS_OF_BOXES = 2**18  # of query tiles and point tiles, compared together
PREPARED_POINTS = 1 << 14  # points that are prepared at once
POINTS_FOR_THRESHOLD = 1024  # points that are sorted to choose a threshold of pruning
QUERIES_FOR_FLOOR = 2  # queries of a tile at which the smallest sum is estimated
# Shares of the error allowed: for whole tiles, and for single points, whose estimate of S is too high at some queries.
TILE_SHARE, POINT_SHARE = 0.05, 0.8
COMPACT_REACH = 1.0  # bandwidths at which a kernel with an edge ends
SQUARE_ERROR = 2.0**-48  # relative rounding error of a squared distance, at most
SHARE_ERROR = 1.001  # times: more than a sum of shares can lose in single precision
NEGLIGIBLE = 2.0**-60  # of the total weight: less than float64 can hold beside it

Rows = slice | Int[Tensor, " rows"]
Pieces = Sequence[Callable[[], "PreparedPoints"]]
Finish = Callable[[Float[Tensor, "q dim"], Pooled], Pooled]


class Tiles(NamedTuple):
    """Tile t holds the points order[start[t] : start[t + 1]], all of them between low[t] and high[t]."""

    order: Int[Tensor, " n"]
    start: tuple[int, ...]
    low: Float[Tensor, "tiles dim"]
    high: Float[Tensor, "tiles dim"]

    def __len__(self) -> int:
        return len(self.start) - 1

    def rows(self, tile: int) -> slice:
        """The rows of one tile, of a tensor in this order."""
        return slice(self.start[tile], self.start[tile + 1])

    def original_order(self, rows: Tensor) -> Tensor:
        """Rows in this order, put back into the order in which the points came."""
        return in_original_order(rows, self.order)


def tiles(points: Float[Tensor, "n dim"], largest: int) -> Tiles:
    """Halves at the median of the widest feature, and halves of these, until none has more than `largest` points.

    Medians follow the data, so that clusters and heavy tails make tiles of the same size as anything else.
    """
    coordinates = points.detach().numpy()
    order, starts = _split(coordinates, largest)
    coordinates = coordinates.take(order, axis=0)
    low = np.minimum.reduceat(coordinates, starts, axis=0) if starts else coordinates
    high = np.maximum.reduceat(coordinates, starts, axis=0) if starts else coordinates
    return Tiles(torch.from_numpy(order), (*starts, len(points)), torch.from_numpy(low), torch.from_numpy(high))


def _split(points: np.ndarray, largest: int) -> tuple[np.ndarray, list[int]]:
    """The order of the points and where each tile starts. One feature is sorted once instead of split."""
    line = points.shape[1] == 1
    order = np.argsort(points[:, 0], kind="stable") if line else np.arange(len(points))
    # A feature lies side by side, and single precision is enough to tell who is a neighbour.
    by_axis = points.T if line else np.ascontiguousarray(points.T, dtype=np.float32)
    starts: list[int] = []
    waiting = [(0, len(points))] if len(points) else []
    while waiting:
        low, high = waiting.pop()
        if high - low <= largest:
            starts.append(low)
            continue
        half = (high - low) // 2
        middle = low + (half if half < 2 * KERNEL_ROWS else half // KERNEL_ROWS * KERNEL_ROWS)
        if not line:
            part = by_axis[:, low:high]
            axis = int(np.argmax(part.max(1) - part.min(1)))
            moved = np.argpartition(part[axis], middle - low)
            by_axis[:, low:high], order[low:high] = part.take(moved, axis=1), order[low:high].take(moved)
        waiting += [(middle, high), (low, middle)]
    return order, starts


@runtime_checkable
class PreparedPoints(Protocol):
    """Points prepared for the queries of a region."""

    def log_contribution_bound(
        self, low: Float[Tensor, "tiles dim"], high: Float[Tensor, "tiles dim"]
    ) -> Float[Tensor, "tiles n"]:
        """Upper bound on log(s_j K) of each point, for any query in each box."""
        ...

    def pool_tiles(self, tiles: Sequence[Rows], kept: Sequence[Int[Tensor, " _"] | None]) -> Pooled:
        """States of the queries of each tile from the points kept for it (None: all), one tile after the other."""
        ...


class Region(NamedTuple):
    """Queries that lie together, and pieces of the points, each of which is prepared at once."""

    points: Standardised
    query: Float[Tensor, "q dim"]
    pieces: Sequence[list[slice]]
    prepare: Callable[[Standardised], PreparedPoints]
    finish: Finish  # adds errors of its own once all points are in
    value_range: float
    log_pruned: float  # log of the weight of all points that are in no piece, at most

    def prepared(self) -> Pieces:
        """One call for each piece. Several are prepared at each call: kept together they may be large."""
        calls = [partial(self._prepare, piece) for piece in self.pieces]
        return calls if len(calls) > 1 else [cache(call) for call in calls]

    def _prepare(self, piece: list[slice]) -> PreparedPoints:
        def rows(tensor: Tensor) -> Tensor:
            return tensor[piece[0]] if len(piece) == 1 else torch.cat([tensor[run] for run in piece])

        return self.prepare(self.points.with_query(self.query).subset(rows))

    def with_pruning_error(self, state: Pooled, log_pruned: Float[Tensor, " q"]) -> Pooled:
        """Add the pruning error: at most (pruned share of the weight) x (range of values)."""
        state, share = self.finish(self.query, state), _pruned_share(log_pruned, state)
        return state._replace(error=state.error + torch.where(share > NEGLIGIBLE, share * self.value_range, 0.0))


class KeptTiles(NamedTuple):
    """Tiles of points that each tile of queries needs, the bound S, and the share of it that was pruned at most."""

    kept: Bool[Tensor, "query_tiles point_tiles"]
    log_floor: Float[Tensor, " query_tiles"]
    pruned_share: Float[Tensor, " query_tiles"]


class KeptPoints(NamedTuple):
    """Points that are kept for each tile (None: all), and the log of what the others add at most."""

    kept: list[Int[Tensor, " _"] | None]
    log_pruned: Float[Tensor, " tiles"]


def no_finish(_: Float[Tensor, "q dim"], state: Pooled) -> Pooled:
    """The state as it is: sums in float64 have no error but rounding."""
    return state


def pool(
    data: Standardised,
    tol: float,
    queries: int,
    prepare: Callable[[Standardised], PreparedPoints],
    *,
    finish: Finish = no_finish,
    by_point: bool = True,
) -> Pooled:
    """The average at each query, with at most `tol` of error from what is pruned (0: only what is NEGLIGIBLE).

    Queries lie in regions of `queries`. `prepare` is given at most PREPARED_POINTS points at once; states of several
    such pieces are merged, and `finish` adds errors to the merged state. With `by_point`, single points are pruned for
    each tile of QUERIES queries; without, points of any order are one tile.
    """
    columns = data.values.shape[1]
    if not len(data.x) or not len(data.query):
        return empty(len(data.query), columns, data.query)
    point_tiles, regions = tiles(data.x, POINTS if by_point else len(data.x)), tiles(data.query, queries)
    ordered = data.subset(lambda rows: rows.index_select(0, point_tiles.order))
    ordered = ordered.with_query(data.query.index_select(0, regions.order))
    value_range = data.value_range
    delta = max(tol, NEGLIGIBLE) / value_range
    by_point = by_point and not kernels.get(data.kernel).compact
    parts: list[Pooled] = []
    for group, reach in tiles_in_reach(regions, point_tiles, data.log_weight, data.kernel, TILE_SHARE * delta):

        def pool_region(number: int, first: int = group.start, reach: KeptTiles = reach) -> Pooled:
            row = number - first
            pieces = tuple(_pieces(reach.kept[row], point_tiles))
            log_pruned = float(reach.pruned_share[row].log() + reach.log_floor[row])
            query = ordered.query[regions.rows(number)]
            region = Region(ordered, query, pieces, prepare, finish, value_range, log_pruned)
            if not pieces:
                return empty(len(query), columns, query)
            return _pool_pruned(region, delta) if by_point else _pool_all(region)

        parts += threads.parallel_map(pool_region, group)
    return Pooled(*(regions.original_order(part) for part in concatenate(parts, columns, data.query)))


def tiles_in_reach(
    queries: Tiles, points: Tiles, log_weight: Float[Tensor, " n"] | None, kernel: str, delta: float
) -> Iterator[tuple[range, KeptTiles]]:
    """Pairs of tiles that are needed for an error of `delta` of the total weight, for one range of query tiles after
    another. `log_weight` is in the order in which the points came.
    """
    if log_weight is None:
        log_weights = torch.tensor(points.start, dtype=torch.float64).diff().log()
    else:
        ordered = log_weight[points.order]
        log_weights = torch.stack([ordered[points.rows(tile)].logsumexp(0) for tile in range(len(points))])
    size = max(1, PAIRS_OF_BOXES // len(points))
    for start in range(0, len(queries), size):
        group = range(start, min(start + size, len(queries)))
        yield group, _kept_tiles(queries, group, points, log_weights, kernel, delta)


def _kept_tiles(
    queries: Tiles, group: range, points: Tiles, log_weights: Float[Tensor, " tiles"], kernel: str, delta: float
) -> KeptTiles:
    """Tiles of points that a range of query tiles needs. NaN is kept."""
    low, high = (side[group.start : group.stop].unsqueeze(1) for side in (queries.low, queries.high))
    gap = torch.maximum(points.low - high, low - points.high).clamp_min(0)
    nearest = gap.square().sum(-1) * (1 - SQUARE_ERROR)
    record = kernels.get(kernel)
    if record.compact:
        zero = log_weights.new_zeros(len(group))
        return KeptTiles(~(nearest > COMPACT_REACH), zero, zero)
    farthest = torch.maximum(points.high - low, high - points.low).square().sum(-1) * (1 + SQUARE_ERROR)
    log_floor = torch.logsumexp(record.log_kernel(farthest) + log_weights, -1)
    share_bound = torch.exp(record.log_kernel(nearest) + log_weights - log_floor.unsqueeze(-1))
    ascending = share_bound.sort(-1)
    together = ascending.values.cumsum(-1)
    spare = together <= delta
    kept = torch.ones_like(spare).scatter(-1, ascending.indices, ~spare)
    return KeptTiles(kept, log_floor, torch.where(spare, together, 0.0).amax(-1))


def _pieces(kept: Bool[Tensor, " tiles"], points: Tiles) -> Iterator[list[slice]]:
    """Runs of points in the kept tiles, in groups of at most PREPARED_POINTS points."""
    edges = torch.nn.functional.pad(kept.to(torch.int8), (1, 1)).diff().nonzero().squeeze(-1).tolist()
    piece: list[slice] = []
    count = 0
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        stop = points.start[last]
        for low in range(points.start[first], stop, PREPARED_POINTS):
            high = min(low + PREPARED_POINTS, stop)
            if piece and count + high - low > PREPARED_POINTS:
                yield piece
                piece, count = [], 0
            piece.append(slice(low, high))
            count += high - low
    if piece:
        yield piece


def _pool_all(region: Region) -> Pooled:
    """The average over every point of a region's pieces."""
    state = _pool_rows(region.prepared(), slice(None))
    return region.with_pruning_error(state, torch.full_like(state.lse, region.log_pruned))


def _pool_pruned(region: Region, delta: float) -> Pooled:
    """The average without points that hardly add to a tile of queries.

    A query at which more than `delta` of the weight was pruned is computed again with all points.
    """
    inner = tiles(region.query, QUERIES)
    region = region._replace(query=region.query[inner.order])
    pieces = region.prepared()
    state, log_pruned = _pool_tiles(region, inner, pieces, POINT_SHARE * delta / len(region.pieces))
    uncertain = (~(_pruned_share(log_pruned, state) <= delta)).nonzero().flatten()
    if len(uncertain):
        log_pruned[uncertain] = region.log_pruned
        state.put(uncertain, _pool_rows(pieces, uncertain))
    return Pooled(*map(inner.original_order, region.with_pruning_error(state, log_pruned)))


def _pool_tiles(region: Region, inner: Tiles, pieces: Pieces, delta: float) -> tuple[Pooled, Float[Tensor, " q"]]:
    """The state at each query, and the log of the weight that was pruned at most."""
    rows = [inner.rows(tile) for tile in range(len(inner))]
    log_floor = _estimate_log_floor(pieces, rows)
    states: list[Pooled] = []
    pruned = [torch.full_like(log_floor, region.log_pruned)]
    for piece in pieces:
        points = piece()
        kept, log_pruned = prune_points(points.log_contribution_bound(inner.low, inner.high), log_floor, delta)
        pruned.append(log_pruned)
        states.append(points.pool_tiles(rows, kept))
    together = torch.stack(pruned).logsumexp(0)
    return reduce(merge, states), together.repeat_interleave(torch.tensor(inner.start).diff())


def _estimate_log_floor(pieces: Pieces, tiles: Sequence[slice]) -> Float[Tensor, " tiles"]:
    """The log of the smallest sum at the queries of each tile, estimated from a few of them."""
    chosen = [range(rows.start, rows.stop, max(1, (rows.stop - rows.start) // QUERIES_FOR_FLOOR)) for rows in tiles]
    lse = _pool_rows(pieces, torch.tensor([row for rows in chosen for row in rows])).lse
    return torch.stack([tile.min() for tile in lse.split([len(rows) for rows in chosen])]) - math.log(2)


def _pool_rows(pieces: Pieces, rows: Rows) -> Pooled:
    return reduce(merge, (piece().pool_tiles([rows], [None]) for piece in pieces))


def _pruned_share(log_pruned: Float[Tensor, " q"], state: Pooled) -> Float[Tensor, " q"]:
    """The pruned weight as a share of the kept one, whose log is rounded."""
    return torch.exp(log_pruned - state.lse + SQUARE_ERROR * state.lse.abs())


def prune_points(log_bound: Float[Tensor, "tiles n"], log_floor: Float[Tensor, " tiles"], delta: float) -> KeptPoints:
    """Prune the points that add least to each tile, while together they add about `delta` of exp(log_floor)."""
    # A point that may add more than the floor is kept, however much more.
    shares = (log_bound - log_floor.unsqueeze(1).to(log_bound)).clamp_max_(0.0).exp_()
    kept = ~(shares <= _pruning_threshold(shares, delta))  # NaN is kept
    # A share that underflows is not 0: it may be all there is at a query where the sum is far below the floor.
    underflow = shares.shape[1] * torch.finfo(shares.dtype).tiny
    pruned = shares.masked_fill_(kept, 0.0).sum(1, dtype=torch.float64) * SHARE_ERROR + underflow
    masks = kept.numpy(force=True)
    rows = [None if mask.all() else torch.from_numpy(np.flatnonzero(mask)).to(log_bound.device) for mask in masks]
    return KeptPoints(rows, pruned.log() + log_floor)


def _pruning_threshold(shares: Float[Tensor, "tiles n"], delta: float) -> Float[Tensor, "tiles 1"]:
    """The share up to which points sum to at most `delta`, judged by some of them: sorting all takes longer."""
    one_in = max(1, shares.shape[1] // POINTS_FOR_THRESHOLD)
    ascending = np.sort(shares[:, ::one_in].numpy(force=True), axis=1)
    count = (ascending.cumsum(1, dtype=np.float64) * one_in <= delta).sum(1, keepdims=True)
    edge = np.where(count, np.take_along_axis(ascending, np.maximum(count, 1) - 1, axis=1), -1.0)
    return torch.from_numpy(edge).to(shares)


def squared_distance_to_boxes(
    x: Float[Tensor, "n dim"], low: Float[Tensor, "tiles dim"], high: Float[Tensor, "tiles dim"]
) -> Float[Tensor, "tiles n"]:
    """The squared distance of each point to each box."""
    square = x.new_zeros(len(low), len(x))
    for feature, below, above in zip(x.unbind(1), low.unbind(1), high.unbind(1), strict=True):
        gap = torch.clamp(feature, below.unsqueeze(1), above.unsqueeze(1)).sub_(feature)
        square.addcmul_(gap, gap)
    return square


def log_contribution_bound(
    points: Standardised, low: Float[Tensor, "tiles dim"], high: Float[Tensor, "tiles dim"]
) -> Float[Tensor, "tiles n"]:
    """Upper bound on log(s_j K) of each point, for any query in each box; squared distances are rounded down."""
    square = squared_distance_to_boxes(points.x, low, high) * (1 - SQUARE_ERROR)
    return points.log_weight_at(square)
