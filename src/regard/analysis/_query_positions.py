"""Where the queries of a recorded layer stand among its keys, and which of them are padding."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.operands import Span, Tile
from regard.weights import Weights, matrix_of

BLOCK = 256  # queries whose mask is looked at together


@dataclass(frozen=True, eq=False)
class Places:
    """Of a matrix (..., n, m)."""

    at: Tensor | None  # (n,): the key that is the query's own token; None in cross attention
    real: Tensor  # (..., n) of bool: False where a query is padding
    first: Tensor  # (..., 1): the first key that is no padding

    def targets(self) -> Tensor:
        """The first, the previous and the own key of every query, (..., n, 3), -1 where there is none."""
        first = self.first.unsqueeze(-1)
        if self.at is None:
            return torch.cat([first, torch.full_like(first, -1), torch.full_like(first, -1)], -1).expand(
                *first.shape[:-2], self.real.shape[-1], 3
            )
        own = self.at.unsqueeze(-1).expand(*first.shape[:-2], -1, 1)
        previous = torch.where(own > first, own - 1, -1)
        return torch.cat([first.expand_as(own), previous, own], -1)


@torch.no_grad()
def places(weights: Weights, *, cross: bool) -> Places:
    """In self attention query i of n stands at key i + m - n: earlier keys came from a cache.

    A query is padding if it may not see its own token: that is how models hide padding from everybody.
    """
    n, m = weights.shape[-2:]
    lead = tuple(weights.shape[:-2])
    device = weights.device
    everywhere = torch.ones((*lead, n), dtype=torch.bool, device=device)
    start = torch.zeros((*lead, 1), dtype=torch.int64, device=device)
    if not m or not n:
        return Places(None, everywhere, start)
    if cross or n > m:
        seen = visible(weights, Span(0, 1), Span(0, m))[..., 0, :]
        return Places(None, everywhere, seen.to(torch.uint8).argmax(-1, keepdim=True).expand_as(start))
    at = torch.arange(m - n, m, device=device)
    blocks = [(low, min(low + BLOCK, n)) for low in range(0, n, BLOCK)]
    own = [visible(weights, Span(a, b), Span(a + m - n, b + m - n)).diagonal(dim1=-2, dim2=-1) for a, b in blocks]
    real = torch.cat(own, -1)
    real = real | ~real.any(-1, keepdim=True)  # where nobody sees itself, that tells nothing
    first = real.to(torch.uint8).argmax(-1, keepdim=True) if n == m else start
    return Places(at, real, first)


def visible(weights: Weights, rows: Span, cols: Span) -> Tensor:
    """What the mask says of a block, (..., rows, cols)."""
    shape = (*weights.shape[:-2], len(rows), len(cols))
    if weights.spec.mask is None:
        return torch.ones(shape, dtype=torch.bool, device=weights.device)
    problem = matrix_of(weights).problem()
    tile = Tile(tuple(slice(0, length) for length in problem.lead), rows, cols)
    tensors = [tile.cut(operand) for operand in problem.operands]
    return problem.visible(tensors, tile, 0, len(cols)).expand(shape)
