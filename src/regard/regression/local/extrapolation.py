"""Queries that no point reaches: a compact kernel ends, and what then is the caller's choice.

"nearest" answers with the mean of the points that are nearest in units of the bandwidth, which is what a widening
kernel would see first; "nan" says that there is no answer; "raise" names the row.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.errors import OutsideError
from regard.operands import NEVER
from regard.regression.kernel_sums.radius_search import is_nearest
from regard.regression.kernel_sums.state import Pooled
from regard.regression.local.data import Data
from regard.regression.local.squared_weights import Noise

PAIRS = 2**20  # distances that are held at a time


def answer(data: Data, query: Float[Tensor, "q dim"], pooled: Pooled) -> Pooled:
    """The same averages, with an answer for queries out of reach."""
    rows = _rows(data, pooled.lse == NEVER)
    if not len(rows):
        return pooled
    mean = pooled.mean.clone()
    mean[rows] = nearest(data, query[rows], data.sample.values)[0] if data.outside == "nearest" else math.nan
    return pooled._replace(mean=mean)


def noise(
    data: Data, query: Float[Tensor, "q dim"], variance: Float[Tensor, "n outputs"], pooled: Pooled, found: Noise
) -> Noise:
    """The same for noise: a mean of the nearest points keeps the noise of these."""
    rows = _rows(data, pooled.lse == NEVER)
    if not len(rows):
        return found
    found = Noise(*(part.clone() for part in found))
    if data.outside == "nearest":
        found.variance[rows], total = nearest(data, query[rows], variance)
        found.kept[rows], found.rows[rows] = 1 / total, total
    else:
        for part in found:
            part[rows] = math.nan
    return found


def slope(data: Data, far: Bool[Tensor, " q"], found: Float[Tensor, "q dim outputs"]) -> Float[Tensor, "q dim outputs"]:
    """The same for derivatives: where the nearest points answer, the answer is flat."""
    rows = _rows(data, far)
    if len(rows):
        found = found.clone()
        found[rows] = 0.0 if data.outside == "nearest" else math.nan
    return found


def _rows(data: Data, far: Bool[Tensor, " q"]) -> Int[Tensor, " far"]:
    rows = far.nonzero().squeeze(-1)
    if len(rows) and data.outside == "raise":
        msg = (
            f"no point of the data is within reach of row {int(rows[0])} ({len(rows)} of {len(far)} rows): the "
            f"{data.sample.kernel} kernel ends at one bandwidth; a wider bandwidth, a kernel without an end (gaussian, "
            "laplace) or outside='nearest' would answer"
        )
        raise OutsideError(msg)
    return rows


def nearest(
    data: Data, query: Float[Tensor, "q dim"], values: Float[Tensor, "n columns"]
) -> tuple[Float[Tensor, "q columns"], Float[Tensor, " q"]]:
    """The mean of the values of the nearest points, and what these weigh together."""
    sample = data.sample
    weight = torch.ones_like(values[:, 0]) if sample.log_weight is None else sample.log_weight.exp()
    keep = weight > 0
    x, values, weight = sample.x[keep], values[keep], weight[keep]
    parts = [
        _mean(is_nearest(part, x, sample.bandwidth), values, weight)
        for part in data.points(query).split(max(1, PAIRS // len(x)))
    ]
    mean, total = zip(*parts, strict=True)
    return torch.cat(mean), torch.cat(total)


def _mean(near: Tensor, values: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    near = torch.where(near, weight, 0.0)
    total = near.sum(1)
    return near @ values / total.unsqueeze(1), total
