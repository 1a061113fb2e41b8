"""Categories that come with later rows: levels of their own, and what was fitted before in their terms."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from regard.regression import encoding

Levels = Mapping[int, np.ndarray]


def renumbered(table: np.ndarray, before: Levels, after: Levels) -> np.ndarray:
    """A table of codes among the levels before, in codes among those after."""
    if not before:
        return table  # which may be large
    table = table.copy()
    for column, levels in before.items():
        table[:, column] = encoding.moves(levels, after[column])[table[:, column].astype(int)]
    return table


def widths(bandwidth: np.ndarray, before: Levels, after: Levels) -> np.ndarray:
    """Lambdas stay, as if all rows had been fitted with them; but a column that was ignored still is.

    That is lambda = (c - 1) / c, which grows with c. Of one category nothing says that it is ignored.
    """
    bandwidth = bandwidth.copy()
    for column, levels in before.items():
        if len(levels) > 1 and bandwidth[column] >= encoding.most(levels):
            bandwidth[column] = encoding.most(after[column])
    return bandwidth
