"""Gaussian weights as products of features, on torch's fused kernel: a block of queries around a centre of its own.

-|q - x|^2 / 2 = q.x - |x|^2 / 2 - |q|^2 / 2 with q and x measured from a centre. The squares cancel, so what is lost
grows with the distance from the centre; points that matter to a query are near it, so a narrow block loses little.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from regard.engine.fused import kernel
from regard.regression.kernel_sums.state import Pooled

KEPT = kernel.Bias(None, None)


def pool(
    query: Float[Tensor, "q dim"],
    x: Float[Tensor, "n dim"],
    values: Float[Tensor, "n columns"],
    log_weight: Float[Tensor, " n"] | None,
) -> Pooled:
    """One block in float64; query and x are measured from its centre."""
    bias = x.square().sum(1, keepdim=True) * -0.5
    if log_weight is not None:
        bias += log_weight.unsqueeze(1)
    dim, columns = x.shape[1], values.shape[1]
    width = max(dim + 1, columns)
    left = torch.cat([query, query.new_ones(len(query), 1), query.new_zeros(len(query), width - dim - 1)], 1)
    right = torch.cat([x, bias, x.new_zeros(len(x), width - dim - 1)], 1)
    mean, lse = kernel.whole(left, right, pad(values, (0, width - columns)), (), causal=False, scale=1.0, bias=KEPT)
    return Pooled(lse - query.square().sum(1) * 0.5, mean[:, :columns], lse.new_zeros(len(lse)))


class Around(NamedTuple):
    """What a block of queries is measured from, and how far its corner is from its middle."""

    centre: Float[Tensor, " dim"]
    radius: float


def around(query: Float[Tensor, "q dim"], x: Float[Tensor, "n dim"]) -> Around:
    """The middle of a block, or the point nearest to it where all points are far.

    Points that matter to a query are hardly farther from it than the nearest, so they are near this centre too.
    """
    low, high = torch.aminmax(query, dim=0)
    middle, radius = (low + high) / 2, float((high - low).norm()) / 2
    squares = (x - middle).square().sum(1)
    nearest = squares.argmin()
    return Around(x[nearest] if float(squares[nearest]) > radius**2 else middle, radius)
