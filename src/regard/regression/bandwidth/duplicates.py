"""A row that comes three times and a row of weight three are the same data: both become one row with a count.

Leave-one-out needs it said: of a row that counts three times one is left out, not all three. Weights are counts where
all of them are whole numbers; any other weights say how much a row is worth, and then the whole row is left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.operands import NEVER
from regard.regression.kernel_sums.categorical import Kinds
from regard.regression.kernel_sums.sample import Sample

NEARLY = 1e-12  # a whole number comes back from its logarithm with fewer digits


class Rows(NamedTuple):
    """Rows that weigh something, and how much of its weight each loses when it is left out (None: all of it)."""

    x: Tensor
    y: Tensor
    weight: Tensor | None
    left_out: Tensor | None
    merged: bool  # fewer rows than came, in an order of their own
    kinds: Kinds | None = None

    @property
    def total(self) -> float | None:
        """How many rows there are with their copies, where weights are counts."""
        return float(self.weight.sum()) if self.weight is not None and self.left_out is not None else None


def merged(sample: Sample, kinds: Kinds | None = None) -> Rows:
    """The data of a sample without copies; where there are any, in an order that does not depend on how they came."""
    if kinds is None:
        return _merged(sample)
    dim = sample.x.shape[1]
    widths = torch.cat((sample.bandwidth, kinds.chance))
    rows = _merged(replace(sample, x=torch.cat((sample.x, kinds.codes), 1), bandwidth=widths))
    return rows._replace(x=rows.x[:, :dim], kinds=kinds._replace(codes=rows.x[:, dim:]))


def _merged(sample: Sample) -> Rows:
    if sample.log_weight is None:
        if not _may_be_alike(sample.x, sample.values):
            return Rows(sample.x, sample.values, None, None, merged=False)
        return _unique(sample.x, sample.values, torch.ones_like(sample.x[:, 0]))
    kept = sample.log_weight > NEVER
    x, y, weight = sample.x[kept], sample.values[kept], sample.log_weight[kept].exp()
    counts = as_counts(weight)
    if counts is None:
        return Rows(x, y, weight, None, merged=not bool(kept.all()))
    return _unique(x, y, counts)


def as_counts(weight: Tensor) -> Tensor | None:
    """Weights as the whole numbers they are, or None."""
    whole = weight.round()
    return whole if bool(((weight - whole).abs() <= NEARLY * weight).all()) else None


def _unique(x: Tensor, y: Tensor, counts: Tensor) -> Rows:
    columns = torch.cat([x, y], 1).numpy(force=True)
    rows, inverse = np.unique(columns, axis=0, return_inverse=True)
    total = np.bincount(inverse.reshape(-1), weights=counts.numpy(force=True))
    table = torch.from_numpy(rows).to(x.device)
    weight = torch.from_numpy(total).to(x.device)
    return Rows(table[:, : x.shape[1]], table[:, x.shape[1] :], weight, torch.ones_like(weight), merged=True)


def _may_be_alike(x: Tensor, y: Tensor) -> bool:
    """Whether any two rows may be equal: a weighted sum of each row, sorted, is much cheaper than the rows sorted."""
    columns = [*x.unbind(1), *y.unbind(1)]
    mix = torch.randn(len(columns), dtype=torch.float64, generator=torch.Generator().manual_seed(0)).tolist()
    sums = torch.zeros_like(columns[0])
    for factor, column in zip(mix, columns, strict=True):
        sums += factor * column
    sums = sums.sort().values
    return bool((sums[1:] == sums[:-1]).any())
