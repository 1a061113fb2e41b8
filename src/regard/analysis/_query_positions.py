"""Positions of queries among the keys, and which queries are padding: read off the mask of a layer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.operands import Span, Tile
from regard.weights import Weights, matrix_of

MASK_ROWS = 256  # queries whose part of the mask is built at a time


@dataclass(frozen=True, eq=False)
class QueryPositions:
    """Positions for weights (..., queries, keys)."""

    own: Int[Tensor, " queries"] | None  # the key that is the query's own token; None in cross attention
    real: Bool[Tensor, "*lead queries"]  # False where a query is padding
    first: Int[Tensor, "*lead 1"]  # the first key that is no padding

    def targets(self) -> Int[Tensor, "*lead queries 3"]:
        """The first, the previous and the own key of every query; -1 where there is none."""
        first = self.first.unsqueeze(-1)
        if self.own is None:
            missing = torch.full_like(first, -1)
            return torch.cat([first, missing, missing], -1).expand(*first.shape[:-2], self.real.shape[-1], 3)
        own = self.own.unsqueeze(-1).expand(*first.shape[:-2], -1, 1)
        previous = torch.where(own > first, own - 1, -1)
        return torch.cat([first.expand_as(own), previous, own], -1)


@torch.no_grad()
def query_positions(weights: Weights, *, cross: bool) -> QueryPositions:
    """Positions of the queries among the keys, and which queries are padding.

    In self attention query i of n stands at key i + m - n: earlier keys came from a cache. A query is padding if it may
    not see its own token, because models hide padding from every query. In cross attention all queries are real.
    """
    n, m = weights.shape[-2:]
    lead = tuple(weights.shape[:-2])
    device = weights.device
    everywhere = torch.ones((*lead, n), dtype=torch.bool, device=device)
    start = torch.zeros((*lead, 1), dtype=torch.int64, device=device)
    if not m or not n:
        return QueryPositions(None, everywhere, start)
    if cross or n > m:
        seen = _visible(weights, Span(0, 1), Span(0, m))[..., 0, :]
        return QueryPositions(None, everywhere, seen.to(torch.uint8).argmax(-1, keepdim=True).expand_as(start))
    own = torch.arange(m - n, m, device=device)
    blocks = [(low, min(low + MASK_ROWS, n)) for low in range(0, n, MASK_ROWS)]
    diagonals = [
        _visible(weights, Span(a, b), Span(a + m - n, b + m - n)).diagonal(dim1=-2, dim2=-1) for a, b in blocks
    ]
    real = torch.cat(diagonals, -1)
    real = real | ~real.any(-1, keepdim=True)  # where no query sees itself, the mask tells nothing about padding
    first = real.to(torch.uint8).argmax(-1, keepdim=True) if n == m else start
    return QueryPositions(own, real, first)


def _visible(weights: Weights, rows: Span, cols: Span) -> Bool[Tensor, "*lead rows cols"]:
    """The mask of a block of the weights."""
    shape = (*weights.shape[:-2], len(rows), len(cols))
    if weights.spec.mask is None:
        return torch.ones(shape, dtype=torch.bool, device=weights.device)
    problem = matrix_of(weights).problem()
    tile = Tile(tuple(slice(0, length) for length in problem.lead), rows, cols)
    tensors = [tile.cut(operand) for operand in problem.operands]
    return problem.visible(tensors, tile, 0, len(cols)).expand(shape)
