"""Queries that no point reaches: a compact kernel ends at one bandwidth, and the caller chooses what then.

"nearest" answers with the mean of the points that are nearest in bandwidths, which a widening kernel would reach first.
"nan" answers NaN. "raise" is an error that names the row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import OutsideError
from regard.operands import NEVER
from regard.regression.kernel_sums.radius_search import is_nearest
from regard.regression.kernel_sums.sample import BLOCK_PAIRS, relevant
from regard.regression.local.data import Data, Noise


def answer(
    data: Data, query: Float[Tensor, "q features"], lse: Float[Tensor, " q"], inside: Float[Tensor, "q outputs"]
) -> Float[Tensor, "q outputs"]:
    """Predictions, with an answer for queries out of reach."""
    return _answered(data, lse, (inside,), lambda rows: nearest(data, query[rows], data.sample.values)[:1])[0]


def noise(
    data: Data,
    query: Float[Tensor, "q features"],
    lse: Float[Tensor, " q"],
    variance: Float[Tensor, "n outputs"],
    inside: Noise,
) -> Noise:
    """Noise of predictions, with an answer for queries out of reach: a mean of the nearest points has their noise."""

    def by_nearest(rows: Int[Tensor, " far"]) -> Noise:
        mean, total = nearest(data, query[rows], variance)
        return Noise(mean, 1 / total, total)

    return Noise(*_answered(data, lse, inside, by_nearest))


def slope(
    data: Data, lse: Float[Tensor, " q"], inside: Float[Tensor, "q dim outputs"]
) -> Float[Tensor, "q dim outputs"]:
    """Derivatives, with an answer for queries out of reach: a mean of the nearest points is flat."""
    return _answered(data, lse, (inside,), lambda rows: (torch.zeros_like(inside[rows]),))[0]


def _answered(
    data: Data, lse: Float[Tensor, " q"], inside: tuple[Tensor, ...], by_nearest: Callable[[Tensor], tuple[Tensor, ...]]
) -> tuple[Tensor, ...]:
    """Results in which rows out of reach have the answer of the nearest points, or NaN."""
    rows = rows_out_of_reach(lse, data.sample.kernel, data.outside)
    if not len(rows):
        return inside
    outside = (
        by_nearest(rows) if data.outside == "nearest" else [torch.full_like(one[rows], math.nan) for one in inside]
    )
    return tuple(whole.index_copy(0, rows, part) for whole, part in zip(inside, outside, strict=True))


def rows_out_of_reach(lse: Float[Tensor, " q"], kernel: str, outside: str) -> Int[Tensor, " far"]:
    """Rows whose log total weight says that no point reaches them; OutsideError if `outside` is "raise"."""
    rows = (lse == NEVER).nonzero().squeeze(-1)
    if len(rows) and outside == "raise":
        msg = (
            f"no point of the data is within reach of row {int(rows[0])} ({len(rows)} of {len(lse)} rows): the "
            f"{kernel} kernel ends at one bandwidth; a wider bandwidth, a kernel without an end (gaussian, "
            "laplace) or outside='nearest' would answer"
        )
        raise OutsideError(msg)
    return rows


def nearest(
    data: Data, query: Float[Tensor, "q features"], values: Float[Tensor, "n columns"]
) -> tuple[Float[Tensor, "q columns"], Float[Tensor, " q"]]:
    """Mean of the values of the nearest points, and the sum of their weights."""
    sample, at = relevant(replace(data.sample, values=values), data.numeric(query))
    weight, parts = sample.log_weights.exp(), []
    for block in at.split(max(1, BLOCK_PAIRS // len(sample.x))):
        near = torch.where(is_nearest(block, sample.x, sample.bandwidth), weight, 0.0)
        total = near.sum(1)
        parts.append((near @ sample.values / total.unsqueeze(1), total))
    mean, total = zip(*parts, strict=True)
    return torch.cat(mean), torch.cat(total)
