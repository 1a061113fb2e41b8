"""What a block of queries knows of some points in leave-one-out; for kernels other than the Gaussian, pair by pair."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.operands import NEVER
from regard.regression.kernel_sums.kernel_derivatives import SLOPES
from regard.regression.kernel_sums.nearest import Nearest
from regard.regression.kernel_sums.state import Pooled, merge
from regard.scores._distance import LOG_KERNELS, squared_distance

TILE = 2**20  # pairs at a time
ENDLESS = ("gaussian", "laplace")


class Own(NamedTuple):
    """Which point each query is, and how much of its weight stays when it is left out: a count of 3 is then 2."""

    point: Int[Tensor, " q"]
    kept: Float[Tensor, " q"]

    def of(self, rows: Tensor) -> Own:
        return Own(self.point[rows], self.kept[rows])


class Seen(NamedTuple):
    """Averages over some points, the query itself left out."""

    average: Pooled  # under K
    slope: Pooled | None = None  # under -2 dK / d(u^2), where that is not K
    nearest: Nearest | None = None  # where K ends

    def merge(self, other: Seen) -> Seen:
        slope = None if self.slope is None or other.slope is None else merge(self.slope, other.slope)
        nearest = None if self.nearest is None or other.nearest is None else self.nearest.merge(other.nearest)
        return Seen(merge(self.average, other.average), slope, nearest)


def look(
    kernel: str,
    query: Float[Tensor, "q dim"],
    x: Float[Tensor, "n dim"],
    weight: Float[Tensor, " n"] | None,
    columns: Float[Tensor, "n columns"],
    own: Own | None = None,
) -> Seen:
    """All pairs in float64; of the point that a query is, it sees only what is kept."""
    rows = torch.arange(len(query), device=query.device).split(max(1, TILE // (len(x) + 1)))
    parts = [_tile(kernel, query[some], x, weight, columns, None if own is None else own.of(some)) for some in rows]
    return parts[0] if len(parts) == 1 else _together(parts)


def _tile(kernel: str, query: Tensor, x: Tensor, weight: Tensor | None, columns: Tensor, own: Own | None) -> Seen:
    square = squared_distance(query, x) if x.shape[1] else query.new_zeros(len(query), len(x))
    hidden = _hidden(square, weight, own)
    log_weight = None if weight is None else weight.log()
    inside = square * -0.5 if kernel == "gaussian" else LOG_KERNELS[kernel](square)
    average = _average(inside, hidden, log_weight, columns, own)
    if kernel == "gaussian":
        return Seen(average)
    slope = _average(_log_slope(kernel, square, inside), hidden, log_weight, columns)
    if kernel in ENDLESS:
        return Seen(average, slope)
    return Seen(average, slope, Nearest.of(square.masked_fill(hidden, torch.inf), weight, columns))


def _hidden(square: Tensor, weight: Tensor | None, own: Own | None) -> Tensor:
    hidden = torch.zeros_like(square, dtype=torch.bool)
    if weight is not None:
        hidden |= weight == 0
    if own is not None:
        hidden[torch.arange(len(square), device=square.device), own.point] = True
    return hidden


def _average(
    score: Tensor, hidden: Tensor, log_weight: Tensor | None, columns: Tensor, own: Own | None = None
) -> Pooled:
    score = (score if log_weight is None else score + log_weight).masked_fill(hidden, NEVER)
    if own is not None:
        score[torch.arange(len(score), device=score.device), own.point] = own.kept.log()
    lse = score.logsumexp(1)
    # Their sum is 1 to the last bit, however far away: see `merge`.
    weights = torch.softmax(score, 1).masked_fill((lse == NEVER).unsqueeze(1), 0.0)
    return Pooled(lse, weights @ columns, torch.zeros_like(lse))


def _log_slope(kernel: str, square: Tensor, inside: Tensor) -> Tensor:
    if kernel == "laplace":  # through the logarithm: far from everything the kernel itself is 0 in float64
        return torch.where(square > 0, inside - 0.5 * torch.where(square > 0, square, 1.0).log(), NEVER)
    slope: Callable[[Tensor], Tensor] = SLOPES[kernel]
    return torch.where(inside > NEVER, slope(square.clamp_max(1.0)).log(), NEVER)


def _together(parts: list[Seen]) -> Seen:
    averages, slopes, nearest = (list(states) for states in zip(*parts, strict=True))
    return Seen(
        Pooled(*_joined(averages)),
        None if slopes[0] is None else Pooled(*_joined(slopes)),
        None if nearest[0] is None else Nearest(*_joined(nearest)),
    )


def _joined(states: list[Any]) -> list[Tensor]:
    return [torch.cat(part) for part in zip(*states, strict=True)]
