"""A row that comes three times and a row of weight three are the same data: both become rows with counts.

Leave-one-out needs it said: of a point of weight 3 that stands for three rows, one row is left out, not all three.
Weights are counts where all of them are whole multiples of the smallest; any other weights say how much a row is
worth, and then the whole row is left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NEARLY = 1e-9


class Rows(NamedTuple):
    """Different rows, how much each weighs, and how much of it is left out when it is left out."""

    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    left_out: np.ndarray | None
    place: np.ndarray | None = None  # of each row given, in these; -1 for a row of weight 0


def of(x: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> Rows:
    """The rows in an order that does not depend on how they came, where any of them are alike."""
    if weight is None and not _alike(x, y):
        return Rows(x, y, None, None)
    kept = np.arange(len(x)) if weight is None else np.flatnonzero(weight)
    known = np.ones(len(kept)) if weight is None else weight[kept]
    unit = known.min()
    counts = known / unit
    if (np.abs(counts - counts.round()) > NEARLY * counts).any():
        return Rows(x, y, weight, weight)
    columns = np.column_stack([x[kept], y[kept].reshape(len(kept), -1)])
    rows, inverse = np.unique(columns, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    total = np.bincount(inverse, weights=counts.round())
    place = np.full(len(x), -1)
    place[kept] = inverse
    width = x.shape[1]
    return Rows(rows[:, :width], rows[:, width:].reshape(-1, *y.shape[1:]), total, np.ones(len(rows)), place)


def _alike(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether any two rows may be equal: a weighted sum of each row, sorted, is much cheaper than the rows sorted."""
    columns = [*x.T, *y.reshape(len(y), -1).T]
    mix = np.random.default_rng(0).standard_normal(len(columns))
    sums = np.sort(sum(c * column for c, column in zip(mix, columns, strict=True)))
    return bool((sums[1:] == sums[:-1]).any())
