"""Duplicate rows as counts: a row that occurs three times and a row of weight three are the same data.

Leave-one-out needs to know: of a row that counts three times one is left out, not all three. Weights are counts where
all of them are whole numbers. Any other weights say how much a row is worth, and then the whole row is left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.operands import NEVER
from regard.regression.kernel_sums.categorical import Categories
from regard.regression.kernel_sums.sample import Sample

COUNT_ROUNDING = 1e-12  # relative: a whole number that went through its logarithm has lost some digits


class Rows(NamedTuple):
    """Rows of positive weight, and how much of its weight each loses when it is left out."""

    x: Float[Tensor, "n dim"]
    y: Float[Tensor, "n outputs"]
    weight: Float[Tensor, " n"] | None
    left_out: Float[Tensor, " n"] | None  # None: all of it
    merged: bool  # fewer rows than the sample has, in an order of their own
    categories: Categories | None = None

    @property
    def total(self) -> float | None:
        """Number of rows with their duplicates, where weights are counts."""
        return float(self.weight.sum()) if self.weight is not None and self.left_out is not None else None


def merge_duplicates(sample: Sample, categories: Categories | None = None) -> Rows:
    """Rows of a sample without duplicates; if there were any, in an order that does not depend on the given one."""
    if categories is None:
        return _merge(sample)
    dim = sample.x.shape[1]
    widths = torch.cat((sample.bandwidth, categories.smoothing))
    rows = _merge(replace(sample, x=torch.cat((sample.x, categories.codes), 1), bandwidth=widths))
    return rows._replace(x=rows.x[:, :dim], categories=categories._replace(codes=rows.x[:, dim:]))


def _merge(sample: Sample) -> Rows:
    if sample.log_weight is None:
        if not _may_have_duplicates(sample.x, sample.values):
            return Rows(sample.x, sample.values, None, None, merged=False)
        return _unique(sample.x, sample.values, torch.ones_like(sample.x[:, 0]))
    kept = sample.log_weight > NEVER
    x, y, weight = sample.x[kept], sample.values[kept], sample.log_weight[kept].exp()
    counts = as_counts(weight)
    if counts is None:
        return Rows(x, y, weight, None, merged=not bool(kept.all()))
    return _unique(x, y, counts)


def as_counts(weight: Float[Tensor, " n"]) -> Float[Tensor, " n"] | None:
    """Weights rounded to whole numbers, or None if they are none."""
    whole = weight.round()
    return whole if bool(((weight - whole).abs() <= COUNT_ROUNDING * weight).all()) else None


def _unique(x: Tensor, y: Tensor, counts: Tensor) -> Rows:
    columns = torch.cat([x, y], 1).numpy(force=True)
    rows, inverse = np.unique(columns, axis=0, return_inverse=True)
    total = np.bincount(inverse.reshape(-1), weights=counts.numpy(force=True))
    table = torch.from_numpy(rows).to(x.device)
    weight = torch.from_numpy(total).to(x.device)
    return Rows(table[:, : x.shape[1]], table[:, x.shape[1] :], weight, torch.ones_like(weight), merged=True)


def _may_have_duplicates(x: Float[Tensor, "n dim"], y: Float[Tensor, "n outputs"]) -> bool:
    """True if two rows may be equal: one random projection of the rows is much cheaper to sort than the rows."""
    columns = [*x.unbind(1), *y.unbind(1)]
    factors = torch.randn(len(columns), dtype=torch.float64, generator=torch.Generator().manual_seed(0)).tolist()
    projection = torch.zeros_like(columns[0])
    for factor, column in zip(factors, columns, strict=True):
        projection += factor * column
    projection = projection.sort().values
    return bool((projection[1:] == projection[:-1]).any())
