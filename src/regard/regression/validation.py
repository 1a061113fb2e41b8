"""Input checks: parameters, tables of finite float64, and magnitudes. Every error says what is wrong and where."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from functools import cache
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from regard import kernels
from regard.errors import ChoiceError, DataError, ShapeError
from regard.regression.kernel_sums.clamp import LARGEST

BANDWIDTH_RULES = ("cv", "scott")
OUTSIDE = ("nearest", "nan", "raise")
LAMBDA_ROUNDING = 1e-12  # by which a lambda may exceed (c - 1) / c

SMALLEST = 1e-150  # float64 holds the squares of numbers between this and LARGEST
LARGEST_SPREAD = {0: 1e150, 1: 1e70}  # range of a feature in bandwidths, by degree; lines need squares of squares
ORDINARY_Y = 2.0**128  # y between this and its inverse needs no unit: products and squares of squares fit float64

# Parameters


def check_parameters(*, kernel: Any, degree: Any, tol: Any, outside: Any, device: Any) -> None:
    """Raise ChoiceError for a parameter of NadarayaWatson that is not offered; `bandwidth` is checked with the data."""
    if not isinstance(kernel, kernels.Kernel):
        _check_choice("kernel", kernel, kernels.names())
    _check_choice("outside", outside, OUTSIDE)
    if isinstance(degree, bool) or degree not in (0, 1):
        raise ChoiceError(f"degree must be 0 (local constant) or 1 (local linear), but it is {degree!r}")
    if not isinstance(tol, Real) or not 0 < float(tol) < math.inf:
        msg = f"tol, the error promised in standard deviations of y, must be a positive number, but it is {tol!r}"
        raise ChoiceError(msg)
    checked_device(device)


def _check_choice(name: str, value: object, offered: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in offered:
        raise ChoiceError(f"{name} must be one of {', '.join(map(repr, offered))}, but it is {value!r}")


def checked_bandwidth(
    value: object, n_features: int, largest_lambdas: Mapping[int, float] | None = None
) -> str | np.ndarray:
    """Return the name of a rule, or one positive width for each feature (inf: the feature does not matter).

    `largest_lambdas` gives the largest bandwidth of each categorical column; the smallest is 0.
    """
    if isinstance(value, str):
        _check_choice("bandwidth, where it is a word,", value, BANDWIDTH_RULES)
        return value
    try:
        widths = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        msg = f"bandwidth must be a number, one number a feature, 'scott' or 'cv', but it is {value!r}"
        raise ChoiceError(msg) from None
    if widths.ndim > 1 or widths.size not in (1, n_features):
        msg = f"bandwidth must be one number or {n_features}, one a feature, but its shape is {widths.shape}"
        raise ShapeError(msg)
    widths = np.broadcast_to(widths.reshape(-1), (n_features,)).copy()
    for column, largest in (largest_lambdas or {}).items():
        if not 0 <= widths[column] <= largest + LAMBDA_ROUNDING:
            bounds = f"must be from 0 to {largest:.4g}, but it is {widths[column]:g}"
            raise ChoiceError(f"the bandwidth of the categories in column {column} {bounds}")
    if not (np.delete(widths, list(largest_lambdas or {})) > 0).all():
        raise ChoiceError(f"a bandwidth must be positive, but it is {value!r}")
    return widths


def checked_device(value: object) -> torch.device:
    """Return a torch device that holds float64; None is the processor."""
    try:
        device = torch.device("cpu" if value is None else value)  # pyright: ignore[reportArgumentType]
    except (RuntimeError, TypeError) as error:
        msg = f"device must be one that torch knows, such as 'cpu' or 'cuda', but it is {value!r}"
        raise ChoiceError(msg) from error
    if device.type != "cpu":
        _try_device(device)
    return device


@cache
def _try_device(device: torch.device) -> None:
    """Put a number on the device: for a device that is not there torch raises one error or another."""
    try:
        torch.zeros((), dtype=torch.float64, device=device).item()
    except Exception as error:
        reason = str(error).split(". ", 1)[0]
        msg = (
            f"device must be one that is there and holds float64, such as 'cpu', but on '{device}' torch says: {reason}"
        )
        raise ChoiceError(msg) from error


def check_level(value: object) -> None:
    """Raise ChoiceError for a confidence level that is not between 0 and 1."""
    if not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ChoiceError(f"the level of a band must be between 0 and 1, for example 0.95, but it is {value!r}")


# Tables


def training_data(model: BaseEstimator, X: Any, y: Any, *, reset: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return X and y as finite float64 arrays that the caller does not share; `reset` sets the number of features."""
    _check_y_early(y)
    table, target = _validated(model, X, y=y, reset=reset, multi_output=True, y_numeric=True)
    finite("X", table, _names(X))
    return _copy_if_shared(table, X), _copy_if_shared(np.ascontiguousarray(target, dtype=np.float64), y)


def query_table(model: BaseEstimator, X: Any) -> np.ndarray:
    """Return queries as a finite float64 array with the features of the fit."""
    table = _validated(model, X, reset=False)
    finite("X", table, _names(X))
    return table


def checked_weight(value: Any, rows: int, *, may_be_zero: bool = False) -> np.ndarray | None:
    """Return one non-negative number for each row; all zero only if `may_be_zero`, where other rows count."""
    if value is None:
        return None
    weight = _numbers("sample_weight", np.asarray(value), [])
    if weight.ndim == 0:
        weight = np.full(rows, float(weight))
    if weight.shape != (rows,):
        raise ShapeError(f"sample_weight must be one number a row, ({rows},), but its shape is {weight.shape}")
    finite("sample_weight", weight, [])
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise DataError(f"sample_weight must not be negative, but it is {weight[row]:g} in row {row}")
    if not weight.any() and not may_be_zero:
        raise DataError("sample_weight must be positive for at least one row, but all are zero")
    return weight


def finite(name: str, array: np.ndarray, columns: list[str]) -> None:
    """Raise DataError where a number is NaN or infinite, and say where the first one is."""
    # One sum is much cheaper than a test of each number, and is finite whenever all are (but for overflow).
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum()):
            return
    cells = np.argwhere(~np.isfinite(array))
    if not len(cells):
        return
    where = _where(cells[0].tolist(), columns)
    what = "NaN" if np.isnan(array[tuple(cells[0])]) else "infinity"
    raise DataError(
        f"{name} must hold finite numbers, but {what} stands in {where} "
        f"({len(cells)} of {array.size} numbers are NaN or infinite); drop or fill them first"
    )


def _names(table: Any) -> list[str]:
    return [str(name) for name in getattr(table, "columns", [])]


def _check_y_early(y: Any) -> None:
    """Find a missing number in y before scikit-learn does, which would not say where it is."""
    try:
        array = np.asarray(y)
    except ValueError:
        return  # rows of several lengths, which scikit-learn refuses
    if array.ndim and array.dtype.kind != "c":
        finite("y", _numbers("y", array, _names(y)), _names(y))


def _numbers(name: str, array: np.ndarray, columns: list[str]) -> np.ndarray:
    """Return the array as float64. Texts are refused even if they could be read as numbers, and so are times."""
    if array.dtype.kind in "biuf":
        return array.astype(np.float64, copy=False)
    try:
        if array.dtype.kind == "O":
            return array.astype(np.float64)
    except (TypeError, ValueError):
        pass
    cell = next((cell for cell in np.ndindex(array.shape) if not _is_number(array[cell])), None)
    where = f"'{array[cell]}' stands in {_where(cell, columns)}" if cell else f"they are {array.dtype}"
    raise DataError(f"{name} must hold numbers, but {where}")


def _is_number(cell: Any) -> bool:
    return not isinstance(cell, str | bytes | np.datetime64 | np.timedelta64) and _is_float(cell)


def _is_float(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def _where(cell: Sequence[int], columns: list[str]) -> str:
    row, *column = cell
    return f"row {row}" + "".join(f", column {columns[c] if columns else c}" for c in column)


def _copy_if_shared(array: np.ndarray, given: object) -> np.ndarray:
    """Copy what the caller may change later: the data is needed as long as there are predictions."""
    return array.copy() if array.base is not None or array is given else array


def _validated(model: BaseEstimator, X: Any, **options: Any) -> Any:
    """Arrays that scikit-learn has checked; its errors become DataError, and name the text in X that is the cause."""
    try:
        return validate_data(model, X, dtype=np.float64, ensure_all_finite=False, **options)
    except (TypeError, ValueError) as error:
        message = _first_text(X)
        if isinstance(error, TypeError) and message is None:
            raise
        raise DataError(message or str(error)) from error


def _first_text(X: Any) -> str | None:
    """Error message about the first text or date in X, with a hint for a text; None if there is none."""
    names, cells = list(getattr(X, "columns", [])), np.asarray(X, dtype=object)
    for row, column in np.ndindex(cells.shape if cells.ndim == 2 else (0, 0)):
        cell = cells[row, column]
        if isinstance(cell, str | date) and not _is_float(cell):
            name = names[column] if names else column
            hint = f"; a column of categories is named by categorical=[{name!r}]" if isinstance(cell, str) else ""
            return f"X must hold numbers, but '{cell}' stands in row {row}, column {name}{hint}"
    return None


# Magnitudes


class Range(NamedTuple):
    """Smallest and largest number of each column, (columns,) each."""

    low: np.ndarray
    high: np.ndarray

    @staticmethod
    def of(table: np.ndarray) -> Range:
        columns = table.reshape(len(table), -1)
        return Range(columns.min(0), columns.max(0))


def check_magnitudes(what: str, columns: Range, names: Sequence[Any] | np.ndarray | None) -> None:
    """Raise DataError for a column whose numbers or differences have no square in float64."""
    labels = range(len(columns.low)) if names is None else names
    for low, high, name in zip(columns.low.tolist(), columns.high.tolist(), labels, strict=True):
        if max(-low, high) > LARGEST or 0 < high - low < SMALLEST:
            raise DataError(
                f"{what} must hold numbers of a size up to {LARGEST:g} that differ by {SMALLEST:g} or more if at all: "
                f"float64 has no squares of others. Column {name} goes from {low:g} to {high:g}; multiply it by a "
                "power of ten first"
            )


def check_widths(
    bandwidth: np.ndarray,
    x: Range,
    degree: int,
    names: Sequence[Any] | np.ndarray | None,
    categorical: Collection[int] = (),
) -> None:
    """Raise DataError where the numbers of a feature differ by so many bandwidths that float64 has no square."""
    largest = LARGEST_SPREAD[degree]
    for column, width in enumerate(bandwidth.tolist()):
        spread = float(x.high[column] - x.low[column])
        if column not in categorical and (width < SMALLEST or spread / width > largest):
            name = column if names is None else names[column]
            raise DataError(
                f"with degree {degree} the numbers of a column may differ by up to {largest:g} bandwidths of at least "
                f"{SMALLEST:g}: float64 has no squares of more. Column {name} has the bandwidth {width:g}, and its "
                f"numbers differ by {spread:g}; choose a wider bandwidth"
            )


def y_unit(y: Range) -> np.ndarray | None:
    """Power of two for each output in which products of y fit float64; None if all outputs are of ordinary size."""
    size = np.maximum(np.abs(y.low), np.abs(y.high))
    ordinary = (size <= ORDINARY_Y) & (size >= 1 / ORDINARY_Y) | (size == 0)
    return None if ordinary.all() else np.where(ordinary, 1.0, np.ldexp(1.0, np.frexp(size)[1]))
