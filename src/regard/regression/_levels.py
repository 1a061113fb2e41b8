"""Columns of categories: which they are, and numbers for what stands in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.errors import ChoiceError, DataError


def columns(asked: Any, X: Any) -> tuple[int, ...]:
    """Positions of the columns that `categorical` gives by position, by name, or as "auto", those of a pandas frame."""
    names = list(getattr(X, "columns", []))
    if asked is None:
        return ()
    if isinstance(asked, str):
        if asked != "auto":
            msg = f"categorical must be None, 'auto' or a list of columns, but it is {asked!r}"
            raise ChoiceError(msg)
        return tuple(i for i, name in enumerate(names) if _is_category(X[name]))
    width = len(names) or np.shape(X)[1]
    return tuple(sorted({_position(one, names, width) for one in asked}))


def _is_category(column: Any) -> bool:
    return str(column.dtype) in ("category", "object", "str", "string")


def _position(asked: Any, names: Sequence[Any], width: int) -> int:
    if asked in names:
        return list(names).index(asked)
    if isinstance(asked, int | np.integer) and -width <= asked < width:
        return int(asked) % width
    offered = ", ".join(map(str, names)) if names else f"0 to {width - 1}"
    msg = f"categorical names the column {asked!r}, but the columns are {offered}"
    raise ChoiceError(msg)


def levels(X: Any, which: Sequence[int]) -> dict[int, np.ndarray]:
    """What stands in each of these columns, sorted."""
    return {column: np.unique(_values(X, column)) for column in which}


def encoded(X: Any, known: dict[int, np.ndarray]) -> Any:
    """The same table with numbers for categories; one that was not there before gets -1, which is like no other."""
    if not known:
        return X
    codes = {column: _codes(_values(X, column), known[column]) for column in known}
    if hasattr(X, "columns"):
        return X.assign(**{X.columns[column]: code for column, code in codes.items()})
    table = np.array(X, dtype=object)
    for column, code in codes.items():
        table[:, column] = code
    return table.astype(np.float64)


def never_seen(X: Any, known: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    """For each column of categories, the rows whose category was not there before."""
    return {column: _codes(_values(X, column), levels) < 0 for column, levels in known.items()}


def _codes(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    values = _alike(values, known)
    place = np.searchsorted(known, values).clip(max=len(known) - 1)
    return np.where(known[place] == values, place, -1).astype(np.float64)


def _alike(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Numbers as the texts they were learned as, or the other way round: a file does not always tell them apart."""
    if known.dtype.kind == "U" and values.dtype.kind != "U":
        by_number = {_number(text): text for text in reversed(known.tolist())}
        return np.array([str(v) if str(v) in known else by_number.get(v, str(v)) for v in values.tolist()])
    if known.dtype.kind != "U" and values.dtype.kind == "U":
        return np.array([_number(text) for text in values.tolist()])
    return values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _values(X: Any, column: int) -> np.ndarray:
    values = np.asarray(X.iloc[:, column] if hasattr(X, "iloc") else np.asarray(X, dtype=object)[:, column])
    missing = [row for row, value in enumerate(values) if value is None or value != value]  # noqa: PLR0124  NaN
    if missing:
        name = X.columns[column] if hasattr(X, "columns") else column
        msg = f"X must hold a category in every row, but it is missing in row {missing[0]}, column {name}"
        raise DataError(msg)
    return values.astype(str) if any(isinstance(value, str) for value in values) else values.astype(np.float64)
