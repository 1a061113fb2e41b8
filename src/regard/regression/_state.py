"""What is known of a kernel average after some of the data: it merges with what is known of the rest."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard._operands import NEVER


class Pooled(NamedTuple):
    """A weighted mean for each query, and the log of its total weight, so that two of them merge exactly."""

    lse: Float[Tensor, " q"]  # log sum_i s_i K_i; -inf where no point is in reach
    mean: Float[Tensor, "q columns"]  # 0 there
    # A bound on |mean - true mean| in units of each column's standard deviation, and on the relative error of exp(lse);
    # 0 stands for "nothing but rounding in float64".
    error: Float[Tensor, " q"]


def empty(queries: int, columns: int, like: Tensor) -> Pooled:
    """What is known before any data: the identity of `merge`."""
    lse = torch.full((queries,), NEVER, dtype=torch.float64, device=like.device)
    return Pooled(lse, lse.new_zeros(queries, columns), lse.new_zeros(queries))


def merge(one: Pooled, two: Pooled) -> Pooled:
    """What is known of two parts of the data together. Associative, and `empty` changes nothing."""
    lse = torch.logaddexp(one.lse, two.lse)
    base = torch.where(lse == NEVER, 0.0, lse)
    first, second = torch.exp(one.lse - base), torch.exp(two.lse - base)
    mean = first.unsqueeze(-1) * one.mean + second.unsqueeze(-1) * two.mean
    return Pooled(lse, mean, first * one.error + second * two.error)
