"""Weights as torch's layer returns them: dense, averaged over heads or not, and differentiable."""

from __future__ import annotations

import math
import sys

import torch
from torch import Tensor

from regard.tracing import is_tracing
from regard.weights import Weights, matrix_of

BLOCK = 1 << 22  # weights of all heads that are averaged at a time


def dense(weights: Weights, *, average: bool) -> Tensor:
    """(..., heads, n, m), or (..., n, m) for the average over heads."""
    if is_tracing() or matrix_of(weights).wants_gradient():
        whole = matrix_of(weights).dense_with_graph()
        return whole.mean(-3) if average else whole
    if not average:
        return weights.dense(limit=sys.maxsize)
    *lead, n, m = weights.shape
    out = torch.empty((*lead[:-1], n, m), dtype=weights.dtype, device=weights.device)
    rows = max(1, BLOCK // max(1, math.prod(lead) * m))
    for low in range(0, n, rows):
        out[..., low : low + rows, :] = weights[..., low : low + rows, :].mean(-3)
    return out
