"""Sums of squared weights, which decide how much of the noise an average keeps.

With weights p_i = s_i K_i / sum_j s_j K_j, a point of weight s has the variance sigma^2 / s, being a mean of s rows:

    sum_i (p_i^2 / s_i) v_i = sum_i s_i K_i^2 v_i / (sum_j s_j K_j)^2.

The square of a kernel is often a kernel: of a Gaussian, one that is narrower by sqrt(2). Then this is two averages by
the engine; otherwise blocks of the weights are squared, one after another.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard import kernels
from regard.operands import NEVER
from regard.regression.kernel_sums.state import Pooled
from regard.regression.local.data import Data

BLOCK = 2**20  # weights that are held at a time
FAR = -1e6  # the log of a total weight from which the digits behind the point no longer tell


class Noise(NamedTuple):
    """What becomes of the noise of the data in a prediction."""

    variance: Float[Tensor, "q outputs"]  # of one row near the query
    kept: Float[Tensor, " q"]  # sum_i l_i^2 / s_i: the part of it that the prediction keeps
    rows: Float[Tensor, " q"]  # how many rows of equal weight would say as much: 1 / sum_i p_i^2 / s_i


def pool(
    data: Data,
    query: Float[Tensor, "q dim"],
    lse: Float[Tensor, " q"],
    values: Float[Tensor, "n columns"],
    tol: float | None = None,
) -> Pooled:
    """The log of sum_i p_i^2 / s_i, and the mean of the values under these; `lse` is that of the unsquared kernel."""
    sample = data.sample
    square = kernels.get(sample.kernel).square
    if square is None:
        return _by_blocks(data, query, values)
    kernel, narrower = square
    found = data.squared(kernel, narrower, values).pool(query, tol=tol)
    found = found._replace(lse=torch.where(lse == NEVER, NEVER, found.lse - 2 * lse))
    far = ((lse < FAR) & (lse != NEVER)).nonzero().flatten()
    if len(far):  # a difference of two large numbers, of which nothing is left
        for whole, part in zip(found, _by_blocks(data, query[far], values), strict=True):
            whole[far] = part
    return found


def _by_blocks(data: Data, query: Tensor, values: Tensor) -> Pooled:
    weights, inverse = data.weights(query), _inverse(data)
    parts = [_block(weights[low : low + step], inverse, values) for low, step in _steps(weights.shape)]
    lse, mean = (torch.cat(part) for part in zip(*parts, strict=True))
    return Pooled(lse, mean, lse.new_zeros(len(lse)))


def _inverse(data: Data) -> Tensor | None:
    log_weight = data.sample.log_weight
    return None if log_weight is None else torch.where(log_weight == NEVER, 0.0, torch.exp(-log_weight))


def _steps(shape: torch.Size) -> list[tuple[int, int]]:
    step = max(1, BLOCK // shape[1])
    return [(low, step) for low in range(0, max(1, shape[0]), step)]


def _block(weights: Tensor, inverse: Tensor | None, values: Tensor) -> tuple[Tensor, Tensor]:
    squares = weights.square() if inverse is None else weights.square() * inverse
    total = squares.sum(1)
    return total.log(), squares @ values / torch.where(total > 0, total, 1.0).unsqueeze(1)
