"""What comes in: choices that are offered, and tables of finite numbers. Every refusal says where and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from functools import cache
from numbers import Real
from typing import Any, TypeVar

import numpy as np
import torch
from sklearn.utils.validation import validate_data

from regard import kernels
from regard.errors import ChoiceError, DataError, ShapeError

RULES = ("cv", "scott")
NEARLY = 1e-12
OUTSIDE = ("nearest", "nan", "raise")

T = TypeVar("T")


def choices(model: Any) -> None:
    """The parameters of an estimator that are words and numbers; its bandwidth is looked at by `bandwidth`."""
    if not isinstance(model.kernel, kernels.Kernel):
        _one_of("kernel", model.kernel, kernels.names())
    _one_of("outside", model.outside, OUTSIDE)
    if isinstance(model.degree, bool) or model.degree not in (0, 1):
        msg = f"degree must be 0 (local constant) or 1 (local linear), but it is {model.degree!r}"
        raise ChoiceError(msg)
    if not isinstance(model.tol, Real) or not 0 < float(model.tol) < math.inf:
        msg = f"tol, the error promised in standard deviations of y, must be a positive number, but it is {model.tol!r}"
        raise ChoiceError(msg)
    device(model.device)


def _one_of(name: str, value: object, offered: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in offered:
        msg = f"{name} must be one of {', '.join(map(repr, offered))}, but it is {value!r}"
        raise ChoiceError(msg)


def bandwidth(value: object, features: int, most: dict[int, float] | None = None) -> str | np.ndarray:
    """The name of a rule, or one positive width a feature (inf: the feature does not matter).

    Those of categories, of which `most` knows the largest, may be 0 and not more than that.
    """
    if isinstance(value, str):
        _one_of("bandwidth, where it is a word,", value, RULES)
        return value
    try:
        widths = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        msg = f"bandwidth must be a number, one number a feature, 'scott' or 'cv', but it is {value!r}"
        raise ChoiceError(msg) from None
    if widths.ndim > 1 or widths.size not in (1, features):
        msg = f"bandwidth must be one number or {features}, one a feature, but its shape is {widths.shape}"
        raise ShapeError(msg)
    widths = np.broadcast_to(widths.reshape(-1), (features,)).copy()
    for column, largest in (most or {}).items():
        if not 0 <= widths[column] <= largest + NEARLY:
            bounds = f"must be from 0 to {largest:.4g}, but it is {widths[column]:g}"
            msg = f"the bandwidth of the categories in column {column} {bounds}"
            raise ChoiceError(msg)
    measured = np.delete(widths, list(most or {}))
    if not (measured > 0).all():
        msg = f"a bandwidth must be positive, but it is {value!r}"
        raise ChoiceError(msg)
    return widths


def table(model: Any, X: Any, y: Any = None, *, reset: bool, **options: Any) -> Any:
    """X, or X and y, as arrays of finite float64; what scikit-learn refuses is refused in regard's name."""
    names = [str(name) for name in getattr(X, "columns", [])]
    common = {"reset": reset, "dtype": np.float64, "ensure_all_finite": False, **options}
    if reset is False and y is None:
        found: Any = _owned(lambda: validate_data(model, X, **common), X)
        finite("X", found, names)
        return found
    columns = [str(name) for name in getattr(y, "columns", [])]
    _early(y, columns)
    both: Any = _owned(lambda: validate_data(model, X, y, multi_output=True, y_numeric=True, **common), X)
    found, target = both
    finite("X", found, names)
    finite("y", target, columns)
    return _own(found, X), _own(np.ascontiguousarray(target, dtype=np.float64), y)


def _early(y: Any, columns: list[str]) -> None:
    """Find what is missing in y before scikit-learn says that something is, without saying where."""
    try:
        found = np.asarray(y)
    except ValueError:
        return  # rows of several lengths, which are refused in other words, as are:
    if found.ndim and found.dtype.kind != "c":
        finite("y", _numbers("y", found, columns), columns)


def _numbers(name: str, found: np.ndarray, columns: list[str]) -> np.ndarray:
    """As float64. Texts that could be read as numbers are texts, and times are no numbers."""
    if found.dtype.kind in "biuf":
        return found.astype(np.float64, copy=False)
    try:
        if found.dtype.kind == "O":
            return found.astype(np.float64)
    except (TypeError, ValueError):
        pass
    cell = next((place for place in np.ndindex(found.shape) if not _is_number(found[place])), None)
    where = f"'{found[cell]}' stands in {_where(cell, columns)}" if cell else f"they are {found.dtype}"
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


def device(value: object) -> torch.device:
    """A device that holds numbers, as float64."""
    try:
        found = torch.device("cpu" if value is None else value)  # pyright: ignore[reportArgumentType]
    except (RuntimeError, TypeError) as error:
        msg = f"device must be one that torch knows, such as 'cpu' or 'cuda', but it is {value!r}"
        raise ChoiceError(msg) from error
    if found.type != "cpu":
        _tried(found)
    return found


@cache
def _tried(device: torch.device) -> None:
    """Torch raises now one error and now another for a device that is not there, and knows some that hold nothing."""
    try:
        torch.zeros((), dtype=torch.float64, device=device).item()
    except Exception as error:
        said = str(error).split(". ", 1)[0]
        msg = f"device must be one that is there and holds float64, such as 'cpu', but on '{device}' torch says: {said}"
        raise ChoiceError(msg) from error


def _own(array: np.ndarray, *given: object) -> np.ndarray:
    """A copy of what the caller may change later: the data is needed as long as there are predictions."""
    return array.copy() if array.base is not None or any(array is one for one in given) else array


def finite(name: str, array: np.ndarray, columns: list[str]) -> None:
    """Refuse NaN and infinity, and say where the first one is."""
    # One sum is much cheaper than a test of each number, and is finite whenever all are (but for overflow).
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum()):
            return
    places = np.argwhere(~np.isfinite(array))
    if not len(places):
        return
    where = _where(places[0].tolist(), columns)
    what = "NaN" if np.isnan(array[tuple(places[0])]) else "infinity"
    msg = (
        f"{name} must hold finite numbers, but {what} stands in {where} "
        f"({len(places)} of {array.size} numbers are NaN or infinite); drop or fill them first"
    )
    raise DataError(msg)


def level(value: object) -> None:
    if not isinstance(value, Real) or not 0 < float(value) < 1:
        msg = f"the level of a band must be between 0 and 1, for example 0.95, but it is {value!r}"
        raise ChoiceError(msg)


def weight(value: Any, rows: int, *, more: bool = False) -> np.ndarray | None:
    """One non-negative number a row, not all zero unless they are `more` of rows that count."""
    if value is None:
        return None
    found = _numbers("sample_weight", np.asarray(value), [])
    if found.ndim == 0:
        found = np.full(rows, float(found))
    if found.shape != (rows,):
        msg = f"sample_weight must be one number a row, ({rows},), but its shape is {found.shape}"
        raise ShapeError(msg)
    finite("sample_weight", found, [])
    if (found < 0).any():
        row = int(np.argmax(found < 0))
        msg = f"sample_weight must not be negative, but it is {found[row]:g} in row {row}"
        raise DataError(msg)
    if not found.any() and not more:
        msg = "sample_weight must be positive for at least one row, but all are zero"
        raise DataError(msg)
    return found


def _owned(check: Callable[[], T], X: Any) -> T:
    try:
        return check()
    except (TypeError, ValueError) as error:
        told = _text_in(X)
        if isinstance(error, TypeError) and told is None:
            raise
        raise DataError(told or str(error)) from error


def _text_in(X: Any) -> str | None:
    """The first text or date in X, and what to do about a text."""
    names, cells = list(getattr(X, "columns", [])), np.asarray(X, dtype=object)
    for row, column in np.ndindex(cells.shape if cells.ndim == 2 else (0, 0)):
        cell = cells[row, column]
        if isinstance(cell, str | date) and not _is_float(cell):
            name = names[column] if names else column
            instead = f"; a column of categories is named by categorical=[{name!r}]" if isinstance(cell, str) else ""
            return f"X must hold numbers, but '{cell}' stands in row {row}, column {name}{instead}"
    return None


LARGEST, SMALLEST = 1e150, 1e-150  # squares of larger and smaller numbers are infinite and 0
MOST_WIDTHS = {0: 1e150, 1: 1e70}  # degree -> by how many bandwidths data may differ; lines take squares of squares
USUAL = 2.0**128  # y up to here, and down to one over it, stays as it is


def check(model: Any, X: np.ndarray, y: np.ndarray, bandwidth: str | np.ndarray) -> None:
    """Refuse what has no squares, in X, in y and in the bandwidths between rows of X."""
    y = y.reshape(len(y), -1)
    _check(model, (X.min(0), X.max(0)), (y.min(0), y.max(0)), bandwidth)


def check_blocks(model: Any) -> None:
    """The same for an estimator that was fitted on blocks."""
    moments = model.summary_.x, model.summary_.plain_y
    x, y = ((part.low.numpy(force=True), part.high.numpy(force=True)) for part in moments)
    _check(model, x, y, model.bandwidth_)


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
