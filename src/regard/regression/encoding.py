"""Columns of categories: which they are, and numbers for what stands in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from regard.errors import ChoiceError, DataError, ShapeError


def columns(asked: Any, X: Any) -> tuple[int, ...]:
    """Positions of the columns that `categorical` gives by position, by name, by a mask, or as "auto"."""
    names = list(getattr(X, "columns", []))
    if asked is None or not _width(X):
        return ()
    if isinstance(asked, str) and asked == "auto":
        return tuple(column for column in range(len(names)) if _is_category(X.iloc[:, column]))
    if isinstance(asked, str) or not _is_list(asked):
        msg = f"categorical must be None, 'auto', a list of columns or one of a bool for each, but it is {asked!r}"
        raise ChoiceError(msg)
    asked = list(asked)
    if asked and all(isinstance(one, bool | np.bool_) for one in asked):
        return _marked(asked, _width(X))
    return tuple(sorted({_position(one, names, _width(X)) for one in asked}))


def _is_list(asked: Any) -> bool:
    return isinstance(asked, Iterable) and getattr(asked, "ndim", 1) == 1


def _marked(mask: Sequence[bool], width: int) -> tuple[int, ...]:
    if len(mask) != width:
        msg = (
            f"categorical, where it is a mask, must have one bool for each of the {width} columns, but has {len(mask)}"
        )
        raise ShapeError(msg)
    return tuple(column for column, marked in enumerate(mask) if marked)


def _width(X: Any) -> int:
    """How many columns it has; none if it is no table."""
    shape = np.shape(X)
    return shape[1] if len(shape) == 2 else 0


def _has(X: Any, known: dict[int, np.ndarray]) -> bool:
    """Whether there are such columns. A table without them is refused for its shape, after this."""
    return all(column < _width(X) for column in known)


def _is_category(column: Any) -> bool:
    return str(column.dtype) in ("category", "object", "str", "string")


def _position(asked: Any, names: Sequence[Any], width: int) -> int:
    if isinstance(asked, bool | np.bool_):
        msg = f"categorical must be a list of columns or one of a bool for each, but {asked} stands among columns"
        raise ChoiceError(msg)
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


def grown(X: Any, known: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    """The same levels and those of X, sorted; numbers become texts where texts come that are no numbers."""
    if not _has(X, known):
        return known
    return {column: _union(levels, _values(X, column)) for column, levels in known.items()}


def moves(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The new code of each level that was there before."""
    return np.searchsorted(after, before if before.dtype.kind == after.dtype.kind else _texts(before))


def most(levels: np.ndarray) -> float:
    """The largest lambda: another category counts as much as one's own."""
    return (len(levels) - 1) / len(levels)


def encoded(X: Any, known: dict[int, np.ndarray], source: str = "X") -> Any:
    """The same table with numbers for categories; one that was not there before gets -1, which is like no other.

    `source` is what a message calls the table.
    """
    if not known or not _has(X, known):
        return X
    numbers = {column: codes(_values(X, column, source), known[column]) for column in known}
    if hasattr(X, "isetitem"):  # pandas, by position: a name may be a number, or stand twice
        frame = X.copy(deep=False)
        for column, code in numbers.items():
            frame.isetitem(column, code)
        return frame
    table = np.array(X, dtype=np.float64 if _is_numeric(X) else object)
    for column, code in numbers.items():
        table[:, column] = code
    return table


def never_seen(X: Any, known: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    """For each column of categories, the rows whose category was not there before."""
    return {column: codes(_values(X, column), levels) < 0 for column, levels in known.items()}


def codes(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The number of each value among the levels, or -1."""
    values = _alike(values, known)
    place = np.searchsorted(known, values).clip(max=len(known) - 1)
    return np.where(known[place] == values, place, -1).astype(np.float64)


def cleaned(values: np.ndarray, name: object, *, source: str = "X", first: int = 0) -> np.ndarray:
    """A column as texts, or as float64 if there is no text in it; `first` is the number of its first row."""
    numeric = values.dtype.kind in "biuf"
    missing = np.isnan(values) if numeric else np.fromiter(map(_is_missing, values), bool, len(values))
    if missing.any():
        where = f"row {first + int(missing.argmax())}, column {name}"
        raise DataError(f"{source} must hold a category in every row, but it is missing in {where}")
    texts = not numeric and any(isinstance(value, str) for value in values)
    return values.astype(str if texts else np.float64)


def _union(known: np.ndarray, values: np.ndarray) -> np.ndarray:
    found = _alike(values, known)
    if found.dtype.kind != "U" and np.isnan(found).any():
        known, found = _texts(known), values
    return np.union1d(known, found)


def _alike(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Numbers as the texts they were learned as, or the other way round: a file does not always tell them apart."""
    if known.dtype.kind == "U" and values.dtype.kind != "U":
        by_number = {_number(text): text for text in reversed(known.tolist())}
        return np.array([str(v) if str(v) in known else by_number.get(v, _text(v)) for v in values.tolist()], dtype=str)
    if known.dtype.kind != "U" and values.dtype.kind == "U":
        return np.array([_number(text) for text in values.tolist()])
    return values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _texts(numbers: np.ndarray) -> np.ndarray:
    return np.array([_text(number) for number in numbers.tolist()])


def _text(number: float) -> str:
    """3 and not 3.0: so the number stands in a file."""
    return str(int(number)) if number.is_integer() else str(number)


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)  # noqa: PLR0124  NaN
    except TypeError:  # pandas' NA does not say whether it is itself
        return True


def _is_numeric(X: Any) -> bool:
    return isinstance(X, np.ndarray) and X.dtype.kind in "biuf"


def _values(X: Any, column: int, source: str = "X") -> np.ndarray:
    name = X.columns[column] if hasattr(X, "columns") else column
    if hasattr(X, "iloc"):
        return cleaned(np.asarray(X.iloc[:, column]), name, source=source)
    return cleaned((X if _is_numeric(X) else np.asarray(X, dtype=object))[:, column], name, source=source)


Levels = Mapping[int, np.ndarray]


def renumbered(table: np.ndarray, before: Levels, after: Levels) -> np.ndarray:
    """A table of codes among the levels before, in codes among those after."""
    if not before:
        return table  # which may be large
    table = table.copy()
    for column, levels in before.items():
        table[:, column] = moves(levels, after[column])[table[:, column].astype(int)]
    return table


def widths(bandwidth: np.ndarray, before: Levels, after: Levels) -> np.ndarray:
    """Lambdas stay, as if all rows had been fitted with them; but a column that was ignored still is.

    That is lambda = (c - 1) / c, which grows with c. Of one category nothing says that it is ignored.
    """
    bandwidth = bandwidth.copy()
    for column, levels in before.items():
        if len(levels) > 1 and bandwidth[column] >= most(levels):
            bandwidth[column] = most(after[column])
    return bandwidth
