"""Queries that no point reaches: a compact kernel ends, and what then is the caller's choice."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard._operands import NEVER
from regard.errors import OutsideError
from regard.regression._sample import Sample
from regard.regression._state import Pooled

PAIRS = 2**20  # distances that are held at a time


def answer(pooled: Pooled, sample: Sample, query: Float[Tensor, "q dim"], how: str) -> Pooled:
    """The same averages, with an answer for queries out of reach: the nearest points' mean, NaN, or an error."""
    rows = (pooled.lse == NEVER).nonzero().squeeze(-1)
    if not len(rows):
        return pooled
    if how == "raise":
        raise OutsideError(_complaint(rows, len(query), sample))
    values = nearest(sample, query[rows]) if how == "nearest" else math.nan
    mean = pooled.mean.clone()
    mean[rows] = values
    return pooled._replace(mean=mean)


def _complaint(rows: Int[Tensor, " far"], queries: int, sample: Sample) -> str:
    return (
        f"no point of the data is within reach of row {int(rows[0])} ({len(rows)} of {queries} rows): the "
        f"{sample.kernel} kernel ends at one bandwidth; a wider bandwidth, a kernel without an end (gaussian, laplace) "
        "or outside='nearest' would answer"
    )


def nearest(sample: Sample, query: Float[Tensor, "q dim"]) -> Float[Tensor, "q columns"]:
    """The mean of the points that are nearest in units of the bandwidth: what a widening kernel would see first."""
    weight = torch.ones(len(sample.x), dtype=query.dtype, device=query.device)
    if sample.log_weight is not None:
        weight = sample.log_weight.exp()
    keep = weight > 0
    x, values, weight = sample.scaled(sample.x)[keep], sample.values[keep], weight[keep]
    found = [_nearest(part, x, values, weight) for part in sample.scaled(query).split(max(1, PAIRS // len(x)))]
    return torch.cat(found)


def _nearest(query: Tensor, x: Tensor, values: Tensor, weight: Tensor) -> Tensor:
    # Not the expanded form |a|^2 + |b|^2 - 2 ab: far away it could not tell the points apart.
    square = sum((a.unsqueeze(1) - b).square() for a, b in zip(query.unbind(1), x.unbind(1), strict=True))
    near = torch.where(square <= square.amin(1, keepdim=True), weight, 0.0)
    return near / near.sum(1, keepdim=True) @ values
