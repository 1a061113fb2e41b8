"""The state of a kernel average over part of the data: states of two parts merge into that of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.operands import NEVER


class Pooled(NamedTuple):
    """A weighted mean for each query and the log of its total weight, so that two of them merge exactly."""

    lse: Float[Tensor, " q"]  # log sum_i s_i K_i; -inf where no point is in reach
    mean: Float[Tensor, "q columns"]  # 0 there
    # A bound on |mean - true mean| in units of each column's standard deviation, and on the relative error of exp(lse);
    # 0 stands for "nothing but rounding in float64".
    error: Float[Tensor, " q"]

    @staticmethod
    def of(log_weights: Float[Tensor, "q n"], values: Float[Tensor, "n columns"]) -> Pooled:
        """The exact state from the log weight of every pair of query and point, shifted by the largest of a row."""
        top = log_weights.amax(1, keepdim=True) if len(values) else log_weights.new_full((len(log_weights), 1), NEVER)
        weights = torch.exp(log_weights - torch.where(top == NEVER, 0.0, top))
        total = weights.sum(1, keepdim=True)
        lse = (top + total.log()).squeeze(1)
        return Pooled(lse, weights @ values / torch.where(total > 0, total, 1.0), torch.zeros_like(lse))

    def put(self, rows: Int[Tensor, " rows"], part: Pooled) -> None:
        """Overwrite the state of some queries, in place."""
        for whole, new in zip(self, part, strict=True):
            whole[rows] = new


def empty(queries: int, columns: int, like: Tensor) -> Pooled:
    """The state before any data: the identity of `merge`."""
    lse = torch.full((queries,), NEVER, dtype=torch.float64, device=like.device)
    return Pooled(lse, lse.new_zeros(queries, columns), lse.new_zeros(queries))


def concatenate(parts: Sequence[Pooled], columns: int, like: Tensor) -> Pooled:
    """States of successive queries as one state."""
    return Pooled(*(torch.cat(part) for part in zip(*parts, strict=True))) if parts else empty(0, columns, like)


def merge(one: Pooled, two: Pooled, scale: Float[Tensor, " columns"] | None = None) -> Pooled:
    """The state of two parts of the data together. Associative, and `empty` changes nothing.

    `scale` is the unit of each column; without it the error leaves out what an error of the weights does to the mean
    of two parts that disagree, which is nothing where both are exact.
    """
    base = torch.maximum(one.lse, two.lse)
    base = torch.where(base == NEVER, 0.0, base)
    first, second = torch.exp(one.lse - base), torch.exp(two.lse - base)
    total = first + second
    lse = base + total.log()
    # Shares that sum to 1 to the last bit. From `lse`, whose rounding grows with the distance, they would not, and a
    # covariance, which is a difference of averages, would far away be made of what they lack.
    share = torch.where(total > 0, total, 1.0)
    first, second = first / share, second / share
    mean = first.unsqueeze(-1) * one.mean + second.unsqueeze(-1) * two.mean
    error = first * one.error + second * two.error
    if scale is not None:
        error = error + _error_of_shares(one, two, scale) * first * second
    return Pooled(lse, mean, error)


def _error_of_shares(one: Pooled, two: Pooled, scale: Float[Tensor, " columns"]) -> Float[Tensor, " q"]:
    """The error that totals A = a (1 + s) and B = b (1 + t) instead of a and b add, over P Q, their shares of A + B.

    The true share of the first is P + P Q (t - s) / (P (1 + t) + Q (1 + s)), and what moves with it is the gap between
    the two means, and between their errors.
    """
    gap = ((one.mean - two.mean).abs() / scale).amax(-1) if one.mean.shape[-1] else torch.zeros_like(one.lse)
    both = one.error + two.error
    return (gap + both) * both / (1 - torch.maximum(one.error, two.error)).clamp_min(0.5)
