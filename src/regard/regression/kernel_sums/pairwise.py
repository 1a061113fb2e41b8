"""Kernel averages over pairs of query and point in float64, with no error but rounding.

Two formulas for squared distances: differences first, which never cancel, for any kernel; and for the Gaussian inner
products on the fused kernel of attention, -|q - x|^2 / 2 = q.x - |x|^2 / 2 - |q|^2 / 2 with q and x measured from a
centre. There the squares cancel, so what is lost grows with the distance from the centre. Points that matter to a query
are near it, so a narrow block of queries around a centre of its own loses little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from regard.engine.fused import kernel
from regard.regression.kernel_sums import pruned_sum
from regard.regression.kernel_sums.sample import TILE_PAIRS, Standardised, squared_distance_by_feature
from regard.regression.kernel_sums.state import Pooled, concatenate, empty, merge

TILE_POINTS = 1 << 15  # points of a tile
MIN_FUSED_POINTS = 16  # the fused kernel wants as many
# Bandwidths from the centre of a block to its corner. Up to here squares lose at most 12 of float64's 53 bits.
MAX_BLOCK_RADIUS = 32.0


def pool(data: Standardised) -> Pooled:
    """The average over all pairs by differences of coordinates, a tile at a time."""
    columns = data.values.shape[1]
    width = max(1, min(TILE_POINTS, len(data.x)))
    rows = max(1, TILE_PAIRS // width)
    parts: list[Pooled] = []
    for low in range(0, len(data.query), rows):
        query = data.query[low : low + rows]
        state = empty(len(query), columns, data.query)
        for first in range(0, len(data.x), width):
            points = data.subset(lambda rows, first=first: rows[first : first + width])
            log_weights = points.log_weight_at(squared_distance_by_feature(query, points.x))
            state = merge(state, Pooled.of(log_weights, points.values))
        parts.append(state)
    return concatenate(parts, columns, data.query)


def pool_block(block: Standardised) -> Pooled:
    """The average of one block of queries: by inner products where they keep their digits, else by differences."""
    if block.kernel != "gaussian" or len(block.x) < MIN_FUSED_POINTS or not len(block.query):
        return pool(block)
    centre, radius = _block_centre(block.query, block.x)
    if not radius <= MAX_BLOCK_RADIUS:
        return pool(block)
    return _pool_by_inner_products(block.query - centre, block.x - centre, block.values, block.log_weight)


def _block_centre(query: Float[Tensor, "q dim"], x: Float[Tensor, "n dim"]) -> tuple[Float[Tensor, " dim"], float]:
    """The middle of a block of queries, or the point nearest to it where all points are far; and the block's radius.

    Points that matter to a query are hardly farther from it than the nearest, so they are near this centre too.
    """
    low, high = torch.aminmax(query, dim=0)
    middle, radius = (low + high) / 2, float((high - low).norm()) / 2
    squares = (x - middle).square().sum(1)
    nearest = squares.argmin()
    return x[nearest] if float(squares[nearest]) > radius**2 else middle, radius


def _pool_by_inner_products(
    query: Float[Tensor, "q dim"],
    x: Float[Tensor, "n dim"],
    values: Float[Tensor, "n columns"],
    log_weight: Float[Tensor, " n"] | None,
) -> Pooled:
    """One block of the Gaussian on the fused kernel; query and x are measured from the block's centre."""
    bias = x.square().sum(1, keepdim=True) * -0.5
    if log_weight is not None:
        bias += log_weight.unsqueeze(1)
    dim, columns = x.shape[1], values.shape[1]
    width = max(dim + 1, columns)
    left = torch.cat([query, query.new_ones(len(query), 1), query.new_zeros(len(query), width - dim - 1)], 1)
    right = torch.cat([x, bias, x.new_zeros(len(x), width - dim - 1)], 1)
    mean, lse = kernel.call_kernel(
        left, right, pad(values, (0, width - columns)), (), causal=False, scale=1.0, bias=None
    )
    return Pooled(lse - query.square().sum(1) * 0.5, mean[:, :columns], lse.new_zeros(len(lse)))


class DoublePoints(NamedTuple):
    """Points in float64, as `pruned_sum` needs them."""

    data: Standardised

    def log_contribution_bound(
        self, low: Float[Tensor, "tiles dim"], high: Float[Tensor, "tiles dim"]
    ) -> Float[Tensor, "tiles n"]:
        return pruned_sum.log_contribution_bound(self.data, low, high)

    def pool_tiles(self, tiles: Sequence[pruned_sum.Rows], kept: Sequence[Int[Tensor, " _"] | None]) -> Pooled:
        data, parts = self.data, []
        for rows, points in zip(tiles, kept, strict=True):
            block = data if points is None else data.subset(lambda tensor, points=points: tensor[points])
            parts.append(pool_block(block.with_query(data.query[rows])))
        return concatenate(parts, data.values.shape[1], data.query)


def pool_pruned(data: Standardised, tol: float) -> Pooled:
    """The average over the pairs in reach, with at most `tol` of error from pairs that are pruned."""
    return pruned_sum.pool(data, tol, pruned_sum.QUERIES, DoublePoints)
