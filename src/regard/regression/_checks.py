"""What comes in: choices that are offered, and tables of finite numbers. Every refusal says where and why."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, TypeVar

import numpy as np
import torch
from sklearn.utils.validation import validate_data

from regard.errors import ChoiceError, DataError, ShapeError
from regard.scores._distance import LOG_KERNELS

KERNELS = ("gaussian", *sorted(LOG_KERNELS))
RULES = ("cv", "scott")
NEARLY = 1e-12
OUTSIDE = ("nearest", "nan", "raise")

T = TypeVar("T")


def choices(model: Any) -> None:
    """The parameters of an estimator that are words and numbers; its bandwidth is looked at by `bandwidth`."""
    _one_of("kernel", model.kernel, KERNELS)
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
        found: Any = _owned(lambda: validate_data(model, X, **common))
        finite("X", found, names)
        return found
    columns = [str(name) for name in getattr(y, "columns", [])]
    _early(y, columns)
    both: Any = _owned(lambda: validate_data(model, X, y, multi_output=True, y_numeric=True, **common))
    found, target = both
    finite("X", found, names)
    finite("y", target, columns)
    return _own(found, X), _own(np.ascontiguousarray(target, dtype=np.float64), y)


def _early(y: Any, columns: list[str]) -> None:
    """Find what is missing in y before scikit-learn says that something is, without saying where."""
    if y is None:
        return
    try:
        numbers = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        return  # not numbers at all, which is said in other words
    finite("y", numbers, columns)


def device(value: object) -> torch.device:
    try:
        return torch.device("cpu" if value is None else value)  # pyright: ignore[reportArgumentType]
    except (RuntimeError, TypeError) as error:
        msg = f"device must be one that torch knows, such as 'cpu' or 'cuda', but it is {value!r}"
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
    row, *column = places[0].tolist()
    where = f"row {row}" + "".join(f", column {columns[c] if columns else c}" for c in column)
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


def weight(value: Any, rows: int) -> np.ndarray | None:
    """One non-negative number a row, not all zero."""
    if value is None:
        return None
    found = np.asarray(value, dtype=np.float64)
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
    if not found.any():
        msg = "sample_weight must be positive for at least one row, but all are zero"
        raise DataError(msg)
    return found


def _owned(check: Callable[[], T]) -> T:
    try:
        return check()
    except ValueError as error:
        raise DataError(str(error)) from error
