"""Scores and masks that depend on j - i alone (ALiBi, a table of distances, a band), without a table of n x m.

Such a bias is a Toeplitz matrix t[j - i]. With the keys in reverse order, key m - 1 - c in column c, it is
t[m - 1 - (r + c)]: a view of one vector, with stride 1 along rows and along columns. The kernel reads n + m numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add

import torch
from jaxtyping import Float
from torch import Tensor

from regard.engine.costs import MIN_BLOCK_ROWS, TILE_OVERHEAD
from regard.engine.fused.kernel import call_kernel
from regard.engine.fused.query_blocks import FlashBlocks
from regard.engine.tile_batches import TileBatch
from regard.engine.versions import Versions
from regard.masks import Mask
from regard.operands import NEVER, Size, Span, Tile
from regard.scores import Score
from regard.spec import Spec

MAX_LEAD = 2  # leading dimensions: the kernel takes two, and to merge more of them could copy the bias


def is_relative(spec: Spec, lead: tuple[int, ...]) -> bool:
    """True if all that varies by query and key depends on j - i alone, and no bias of the keys comes to it."""
    if len(lead) > MAX_LEAD or not (spec.mask is None or spec.mask.relative):
        return False
    return all(leaf.relative or not (leaf.positional or leaf.is_pairwise) for leaf in spec.score.leaves())


def pool_relative(
    spec: Spec,
    rest: tuple[Score, ...],
    inputs: tuple[Tensor, Tensor, Tensor],
    scale: float,
    lead: tuple[int, ...],
) -> tuple[Float[Tensor, "*batch queries dim"], Float[Tensor, "*batch queries"]]:
    """The output and the log-sum-exp. `inputs` are queries, keys and values of one width; `rest` is relative."""
    q, k, v = (t.expand(*lead, *t.shape[-2:]) for t in inputs)
    size = Size(q.shape[-2], k.shape[-2], q.device)
    with torch.no_grad():
        blocks = RelativeBlocks(_by_distance(spec.mask, rest, q, k, size), scale)
    k, v = k.flip(-2), v.flip(-2)
    tiles = tuple(_tiles(spec.mask, lead, size))
    if [(len(tile.rows), len(tile.cols)) for tile in tiles] == [(size.n, size.m)]:
        return call_kernel(q, k, v, lead, causal=False, scale=scale, bias=blocks.bias_of(tiles[0], q.dtype))
    batches = tuple(TileBatch((tile,)) for tile in tiles)
    return FlashBlocks.apply(blocks, batches, q, k, v)  # pyright: ignore[reportReturnType]


@dataclass(frozen=True, slots=True, eq=False)
class RelativeBlocks:
    """Blocks of queries on keys in reverse order, each with its part of one vector as bias."""

    vector: Tensor  # (..., n + m - 1), the bias of row r and column c at r + c
    scale: float
    versions: Versions = ()  # the vector is a copy, so the caller may change his tensors

    def is_causal(self, tile: Tile) -> bool:
        """False: what is hidden is -inf in the vector."""
        del tile
        return False

    def bias_of(self, tile: Tile, dtype: torch.dtype) -> Float[Tensor, "... rows cols"]:
        """The bias of a tile, a view."""
        vector = self.vector.to(dtype)
        start = vector.storage_offset() + tile.rows.start + tile.cols.start
        shape = (*vector.shape[:-1], len(tile.rows), len(tile.cols))
        return vector.as_strided(shape, (*vector.stride()[:-1], 1, 1), start)


def _by_distance(
    mask: Mask | None,
    rest: tuple[Score, ...],
    query: Float[Tensor, "*batch queries dim"],
    key: Float[Tensor, "*batch keys dim"],
    size: Size,
) -> Float[Tensor, "... distances"]:
    """The bias of every distance j - i, from m - 1 down to 1 - n: what the terms say of query 0 and a key at j - i."""
    row = Span(0, 1)
    cols = Span(1 - size.n, size.m, torch.arange(size.m - 1, -size.n, -1, device=size.device))
    scores = [leaf.tile([operand.tensor for operand in leaf.operands(query, key)], row, cols) for leaf in rest]
    vector = reduce(add, scores).to(query.dtype)
    if mask is not None:
        vector = torch.where(mask.tile((), row, cols, size), vector, NEVER)
    return vector.squeeze(-2).contiguous()


def _tiles(mask: Mask | None, lead: tuple[int, ...], size: Size) -> Iterator[Tile]:
    """Blocks of rows on the keys that they may see, numbered from the last key; all rows at once without a mask."""
    heads = tuple(slice(0, length) for length in lead)
    # Rows b of a block cost TILE_OVERHEAD / b for a row, and about b / 2 hidden scores of it in each head.
    step = max(MIN_BLOCK_ROWS, math.isqrt(2 * TILE_OVERHEAD // max(1, math.prod(lead)))) if mask is not None else size.n
    for low in range(0, size.n, step):
        rows = Span(low, min(low + step, size.n))
        reach = [(0, size.m)] if mask is None else mask.reach(rows, size)
        if reach:
            yield Tile(heads, rows, Span(size.m - max(high for _, high in reach), size.m - reach[0][0]))
