"""Sums over lists of points of any length, one list for each query, without a loop over queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.regression.kernel_sums.cloud import Cloud

PAIRS = 2**18  # evaluated at once: a handful of arrays of this length stays near the cache


class Points(NamedTuple):
    """Points in some order of their own."""

    x: Float[Tensor, "dim n"]
    values: Float[Tensor, "n columns"]
    log_weight: Float[Tensor, " n"] | None

    @staticmethod
    def of(cloud: Cloud, order: Int[Tensor, " some"] | None = None) -> Points:
        if order is None:
            return Points(cloud.x, cloud.values, cloud.log_weight)
        log_weight = None if cloud.log_weight is None else cloud.log_weight[order]
        return Points(cloud.x[:, order], cloud.values[order], log_weight)


class Lists(NamedTuple):
    """Some points for each of some queries: which points, one list after another; whose they are; how many."""

    points: Int[Tensor, " pairs"]
    owner: Int[Tensor, " lists"]
    length: Int[Tensor, " lists"]  # never 0


def of_runs(owner: Int[Tensor, " runs"], start: Int[Tensor, " runs"], stop: Int[Tensor, " runs"]) -> Iterator[Lists]:
    """Lists of points that stand in a row, a bounded number of pairs at a time."""
    some = stop > start
    owner, start, stop = _in_pieces(owner[some], start[some], stop[some])
    length = stop - start
    for part in parts_of(length):
        lengths = length[part]
        ends = lengths.cumsum(0)
        shift = torch.repeat_interleave(start[part] - (ends - lengths), lengths)
        yield Lists(shift + torch.arange(len(shift)), owner[part], lengths)


def _in_pieces(owner: Tensor, start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """No run longer than what is evaluated at once."""
    pieces = torch.div(stop - start - 1, PAIRS, rounding_mode="floor") + 1
    if bool((pieces == 1).all()):
        return owner, start, stop
    owner, first, last = (torch.repeat_interleave(t, pieces) for t in (owner, start, stop))
    number = torch.arange(len(owner)) - torch.repeat_interleave(pieces.cumsum(0) - pieces, pieces)
    start = first + number * PAIRS
    return owner, start, torch.minimum(start + PAIRS, last)


def parts_of(length: Int[Tensor, " lists"]) -> Iterator[slice]:
    """Cuts lists into parts of about `PAIRS` pairs."""
    ends = length.cumsum(0)
    first, done = 0, 0
    while first < len(length):
        last = max(first + 1, int(torch.searchsorted(ends, done + PAIRS, right=True)))
        yield slice(first, last)
        first, done = last, int(ends[last - 1])


def sums(
    points: Points, at: Float[Tensor, "dim q"], floor: Float[Tensor, " q"], lists: Iterable[Lists]
) -> tuple[Float[Tensor, " q"], Float[Tensor, "q columns"]]:
    """The weight at each query, over exp(floor) so that it can be written down, and the weighted sums of the values."""
    weight = torch.zeros_like(floor)
    total = floor.new_zeros(len(floor), points.values.shape[1])
    for which, owner, length in lists:
        share = _share(points, at[:, owner], floor[owner], which, length)
        begins = (length.cumsum(0) - length).numpy()
        weight.index_add_(0, owner, _added(share, begins))
        for column in range(total.shape[1]):
            total[:, column].index_add_(0, owner, _added(share * points.values[which, column], begins))
    return weight, total


def _share(points: Points, at: Tensor, floor: Tensor, which: Tensor, length: Tensor) -> Tensor:
    """exp(log weight - |difference|^2 / 2 - floor) of every pair."""
    exponent = torch.repeat_interleave(-floor, length)
    for row, here in zip(points.x, at, strict=True):
        apart = row[which]
        apart -= torch.repeat_interleave(here, length)
        exponent.addcmul_(apart, apart, value=-0.5)
    if points.log_weight is not None:
        exponent += points.log_weight[which]
    return exponent.exp_()


def _added(numbers: Tensor, begins: np.ndarray) -> Tensor:
    return torch.from_numpy(np.add.reduceat(numbers.numpy(), begins))


def directly(cloud: Cloud, at: Float[Tensor, "dim q"]) -> tuple[Float[Tensor, " q"], Float[Tensor, "q columns"]]:
    """The log weight and the average over all points, pair by pair."""
    lse, mean = at.new_empty(at.shape[1]), at.new_empty(at.shape[1], cloud.columns)
    step = max(1, 4 * PAIRS // cloud.n)
    for first in range(0, at.shape[1], step):
        part = slice(first, first + step)
        exponent = torch.zeros(at[0, part].shape[0], cloud.n, dtype=torch.float64)
        for row, here in zip(cloud.x, at[:, part], strict=True):
            apart = row - here.unsqueeze(-1)
            exponent.addcmul_(apart, apart, value=-0.5)
        if cloud.log_weight is not None:
            exponent += cloud.log_weight
        top = exponent.amax(1, keepdim=True)
        share = exponent.sub_(top).exp_()
        weight = share.sum(1)
        lse[part] = top.squeeze(1) + weight.log()
        mean[part] = (share @ cloud.values) / weight.unsqueeze(-1)
    return lse, mean
