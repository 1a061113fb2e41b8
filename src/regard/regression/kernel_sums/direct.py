"""The plainest tile: differences first, squares after, all in float64, so that nothing cancels. Any kernel."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from regard import kernels
from regard.operands import NEVER
from regard.regression.kernel_sums.scaled import Scaled
from regard.regression.kernel_sums.state import Pooled, empty, merge

TILE = 1 << 18  # pairs: a few buffers of them stay in the cache
KEYS = 1 << 15  # points at once


def log_kernel(square: Tensor, kernel: str) -> Tensor:
    """log K from squared distances."""
    return kernels.get(kernel).log_kernel(square)


def pool(problem: Scaled) -> Pooled:
    """All pairs, a tile at a time."""
    columns = problem.values.shape[1]
    width = max(1, min(KEYS, len(problem.x)))
    rows = max(1, TILE // width)
    parts: list[Pooled] = []
    for low in range(0, len(problem.query), rows):
        query = problem.query[low : low + rows]
        state = empty(len(query), columns, problem.query)
        for first in range(0, len(problem.x), width):
            state = merge(state, tile(query, problem, slice(first, first + width)))
        parts.append(state)
    return gathered(parts, columns, problem.query)


def gathered(parts: list[Pooled], columns: int, like: Tensor) -> Pooled:
    """States of successive queries, one after the other."""
    return Pooled(*(torch.cat(part) for part in zip(*parts, strict=True))) if parts else empty(0, columns, like)


def tile(query: Float[Tensor, "q dim"], problem: Scaled, keys: slice) -> Pooled:
    """Some queries against some points."""
    logits = log_kernel(squared_distance(query, problem.x[keys]), problem.kernel)
    if problem.log_weight is not None:
        logits = logits + problem.log_weight[keys]
    return averaged(logits, problem.values[keys])


def averaged(logits: Float[Tensor, "q n"], values: Float[Tensor, "n columns"]) -> Pooled:
    """The state of a tile, from the logs of its weights."""
    top = logits.amax(-1, keepdim=True)
    weights = torch.exp(logits - torch.where(top == NEVER, 0.0, top))
    total = weights.sum(-1, keepdim=True)
    mean = (weights @ values) / torch.where(total == 0, 1.0, total)
    lse = (top + torch.log(total)).squeeze(-1)
    return Pooled(torch.where(top.squeeze(-1) == NEVER, NEVER, lse), mean, lse.new_zeros(len(lse)))


def squared_distance(query: Float[Tensor, "q dim"], x: Float[Tensor, "n dim"]) -> Float[Tensor, "q n"]:
    """|query_i - x_j|^2, feature by feature: |q|^2 + |x|^2 - 2 q.x would lose the distance between close points."""
    total = query.new_zeros(len(query), len(x))
    difference = torch.empty_like(total)
    for a, b in zip(query.unbind(1), x.unbind(1), strict=True):
        torch.sub(a.unsqueeze(1), b, out=difference)
        total.addcmul_(difference, difference)
    return total
