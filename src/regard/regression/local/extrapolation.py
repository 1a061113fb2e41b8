"""Queries that no point reaches: a compact kernel ends at one bandwidth, and the caller chooses what then.

"nearest" answers with the mean of the points that are nearest in bandwidths, which a widening kernel would reach first.
"nan" answers NaN. "raise" is an error that names the row.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import OutsideError
from regard.operands import NEVER
from regard.regression.kernel_sums.radius_search import is_nearest
from regard.regression.local.data import Data, Noise

DISTANCE_BLOCK = 2**20  # distances, 8 MB: computed this many at a time


def answer(
    data: Data, query: Float[Tensor, "q features"], lse: Float[Tensor, " q"], inside: Float[Tensor, "q outputs"]
) -> Float[Tensor, "q outputs"]:
    """Predictions, with an answer for queries out of reach."""
    rows = _out_of_reach(data, lse)
    if not len(rows):
        return inside
    result = inside.clone()
    result[rows] = nearest(data, query[rows], data.sample.values)[0] if data.outside == "nearest" else math.nan
    return result


def noise(
    data: Data,
    query: Float[Tensor, "q features"],
    lse: Float[Tensor, " q"],
    variance: Float[Tensor, "n outputs"],
    inside: Noise,
) -> Noise:
    """Noise of predictions, with an answer for queries out of reach: a mean of the nearest points has their noise."""
    rows = _out_of_reach(data, lse)
    if not len(rows):
        return inside
    result = Noise(*(part.clone() for part in inside))
    if data.outside == "nearest":
        result.variance[rows], total = nearest(data, query[rows], variance)
        result.kept[rows], result.rows[rows] = 1 / total, total
    else:
        for part in result:
            part[rows] = math.nan
    return result


def slope(
    data: Data, lse: Float[Tensor, " q"], inside: Float[Tensor, "q dim outputs"]
) -> Float[Tensor, "q dim outputs"]:
    """Derivatives, with an answer for queries out of reach: a mean of the nearest points is flat."""
    rows = _out_of_reach(data, lse)
    if not len(rows):
        return inside
    result = inside.clone()
    result[rows] = 0.0 if data.outside == "nearest" else math.nan
    return result


def _out_of_reach(data: Data, lse: Float[Tensor, " q"]) -> Int[Tensor, " far"]:
    """Rows whose log total weight says that they are out of reach; an error where the caller wants one."""
    rows = (lse == NEVER).nonzero().squeeze(-1)
    if len(rows) and data.outside == "raise":
        msg = (
            f"no point of the data is within reach of row {int(rows[0])} ({len(rows)} of {len(lse)} rows): the "
            f"{data.sample.kernel} kernel ends at one bandwidth; a wider bandwidth, a kernel without an end (gaussian, "
            "laplace) or outside='nearest' would answer"
        )
        raise OutsideError(msg)
    return rows


def nearest(
    data: Data, query: Float[Tensor, "q features"], values: Float[Tensor, "n columns"]
) -> tuple[Float[Tensor, "q columns"], Float[Tensor, " q"]]:
    """Mean of the values of the nearest points, and the sum of their weights."""
    sample = data.sample
    weight = torch.ones_like(values[:, 0]) if sample.log_weight is None else sample.log_weight.exp()
    keep = weight > 0
    x, values, weight = sample.x[keep], values[keep], weight[keep]
    parts = []
    for block in data.numeric(query).split(max(1, DISTANCE_BLOCK // len(x))):
        near = torch.where(is_nearest(block, x, sample.bandwidth), weight, 0.0)
        total = near.sum(1)
        parts.append((near @ values / total.unsqueeze(1), total))
    mean, total = zip(*parts, strict=True)
    return torch.cat(mean), torch.cat(total)
