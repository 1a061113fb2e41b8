"""Numbers so large or small that float64 has no squares of them: refused, and y in a unit in which products fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from regard.errors import DataError
from regard.regression import fitting

LARGEST, SMALLEST = 1e150, 1e-150  # squares of larger and smaller numbers are infinite and 0
MOST_WIDTHS = {0: 1e150, 1: 1e70}  # degree -> by how many bandwidths data may differ; lines take squares of squares
USUAL = 2.0**128  # y up to here, and down to one over it, stays as it is


def check(model: Any, X: np.ndarray, y: np.ndarray, bandwidth: str | np.ndarray) -> None:
    """Refuse what has no squares, in X, in y and in the bandwidths between rows of X."""
    y = y.reshape(len(y), -1)
    _check(model, (X.min(0), X.max(0)), (y.min(0), y.max(0)), bandwidth)


def check_blocks(model: Any) -> None:
    """The same for an estimator that was fitted on blocks, and is not any more if it is refused."""
    moments = model.summary_.x, model.summary_.plain_y
    x, y = ((part.low.numpy(force=True), part.high.numpy(force=True)) for part in moments)
    try:
        _check(model, x, y, model.bandwidth_)
    except DataError:
        fitting.forget(model)
        raise


Ends = tuple[np.ndarray, np.ndarray]


def _check(model: Any, x: Ends, y: Ends, bandwidth: str | np.ndarray) -> None:
    names = getattr(model, "feature_names_in_", range(len(x[0])))
    _sizes("X", *x, names)
    _sizes("y", *y, model.target_names_ or range(len(y[0])))
    if isinstance(bandwidth, np.ndarray):
        measured = [column for column in range(len(bandwidth)) if column not in model.categories_]
        for column in measured:
            _width(float(bandwidth[column]), float(x[1][column] - x[0][column]), model.degree, names[column])


def _sizes(what: str, low: np.ndarray, high: np.ndarray, names: Iterable[Any]) -> None:
    for least, most, name in zip(low.tolist(), high.tolist(), names, strict=True):
        if max(-least, most) > LARGEST or 0 < most - least < SMALLEST:
            msg = (
                f"{what} must hold numbers of a size up to {LARGEST:g} that differ by {SMALLEST:g} or more if at all: "
                f"float64 has no squares of others. Column {name} goes from {least:g} to {most:g}; multiply it by a "
                "power of ten first"
            )
            raise DataError(msg)


def _width(width: float, spread: float, degree: int, name: object) -> None:
    most = MOST_WIDTHS[degree]
    if width < SMALLEST or spread / width > most:
        msg = (
            f"with degree {degree} the numbers of a column may differ by up to {most:g} bandwidths of at least "
            f"{SMALLEST:g}: float64 has no squares of more. Column {name} has the bandwidth {width:g}, and its numbers "
            f"differ by {spread:g}; choose a wider bandwidth"
        )
        raise DataError(msg)


def unit(y: np.ndarray) -> np.ndarray:
    """For each output a power of two, (outputs,), in which products and squares of squares of y fit: mostly 1."""
    size = np.abs(y.reshape(len(y), -1)).max(0)
    usual = (size <= USUAL) & (size >= 1 / USUAL) | (size == 0)
    return np.where(usual, 1.0, np.ldexp(1.0, np.frexp(size)[1]))
