"""Categorical columns: which columns they are, the categories in them, and a number (code) for each category.

Codes are positions in the sorted categories of a column. A category that `fit` has not seen gets the code -1, which
equals no other. Categories are texts or float64; a file does not always keep 3 and "3" apart, so they are matched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from regard.errors import ChoiceError, DataError, ShapeError

Categories = Mapping[int, np.ndarray]  # position of a categorical column -> its sorted categories
CATEGORY_DTYPES = ("category", "object", "str", "string")  # of pandas, for categorical="auto"

# Which columns


def categorical_columns(categorical: Any, X: Any) -> tuple[int, ...]:
    """Positions of the columns that the parameter `categorical` selects: by position, name, mask, or "auto"."""
    names = list(getattr(X, "columns", []))
    if categorical is None or not _width(X):
        return ()
    if isinstance(categorical, str) and categorical == "auto":
        return tuple(column for column in range(len(names)) if str(X.iloc[:, column].dtype) in CATEGORY_DTYPES)
    is_list = isinstance(categorical, Iterable) and getattr(categorical, "ndim", 1) == 1
    if isinstance(categorical, str) or not is_list:
        raise ChoiceError(
            f"categorical must be None, 'auto', a list of columns or one of a bool for each, but it is {categorical!r}"
        )
    chosen = list(categorical)
    if chosen and all(isinstance(one, bool | np.bool_) for one in chosen):
        if len(chosen) != _width(X):
            has = f"each of the {_width(X)} columns, but has {len(chosen)}"
            raise ShapeError(f"categorical, where it is a mask, must have one bool for {has}")
        return tuple(np.flatnonzero(chosen).tolist())
    return tuple(sorted({_position(one, names, _width(X)) for one in chosen}))


def _width(X: Any) -> int:
    """Number of columns; 0 for what is no table."""
    shape = np.shape(X)
    return shape[1] if len(shape) == 2 else 0


def _has_columns(X: Any, categories: Categories) -> bool:
    """Return False for a table that is too narrow: it is refused for its shape later."""
    return all(column < _width(X) for column in categories)


def _position(column: Any, names: Sequence[Any], width: int) -> int:
    if isinstance(column, bool | np.bool_):
        msg = f"categorical must be a list of columns or one of a bool for each, but {column} stands among columns"
        raise ChoiceError(msg)
    if column in names:
        return list(names).index(column)
    if isinstance(column, int | np.integer) and -width <= column < width:
        return int(column) % width
    offered = ", ".join(map(str, names)) if names else f"0 to {width - 1}"
    raise ChoiceError(f"categorical names the column {column!r}, but the columns are {offered}")


# Categories and their codes


def categories_in(X: Any, columns: Sequence[int]) -> dict[int, np.ndarray]:
    """Sorted categories of each of these columns."""
    return {column: np.unique(_column_values(X, column)) for column in columns}


def largest_lambda(categories: np.ndarray) -> float:
    """Largest bandwidth (c - 1) / c of a column of c categories: all categories then count alike."""
    return (len(categories) - 1) / len(categories)


def encode(X: Any, categories: Categories, table_name: str = "X") -> Any:
    """Return the table with codes in place of categories; `table_name` is used in error messages."""
    if not categories or not _has_columns(X, categories):
        return X
    encoded = {column: codes(_column_values(X, column, table_name), known) for column, known in categories.items()}
    if hasattr(X, "isetitem"):  # pandas, by position: a name may be a number, or occur twice
        frame = X.copy(deep=False)
        for column, code in encoded.items():
            frame.isetitem(column, code)
        return frame
    table = np.array(X, dtype=np.float64 if _is_numeric(X) else object)
    for column, code in encoded.items():
        table[:, column] = code
    return table


def unknown_rows(X: Any, categories: Categories) -> dict[int, np.ndarray]:
    """For each categorical column, a mask of the rows whose category is not among `categories`."""
    return {column: codes(_column_values(X, column), known) < 0 for column, known in categories.items()}


def codes(values: np.ndarray, categories: np.ndarray) -> np.ndarray:
    """Position of each value in the sorted categories, as float64; -1 for a value that is not there."""
    values = _matched(values, categories)
    position = np.searchsorted(categories, values).clip(max=len(categories) - 1)
    return np.where(categories[position] == values, position, -1).astype(np.float64)


def category_values(values: np.ndarray, name: object, *, table_name: str = "X", first_row: int = 0) -> np.ndarray:
    """Return a column as texts, or as float64 if it holds no text; raise DataError where a value is missing."""
    numeric = values.dtype.kind in "biuf"
    missing = np.isnan(values) if numeric else np.fromiter(map(_is_missing, values), bool, len(values))
    if missing.any():
        where = f"row {first_row + int(missing.argmax())}, column {name}"
        raise DataError(f"{table_name} must hold a category in every row, but it is missing in {where}")
    has_text = not numeric and any(isinstance(value, str) for value in values)
    return values.astype(str if has_text else np.float64)


def _column_values(X: Any, column: int, table_name: str = "X") -> np.ndarray:
    name = X.columns[column] if hasattr(X, "columns") else column
    if hasattr(X, "iloc"):
        return category_values(np.asarray(X.iloc[:, column]), name, table_name=table_name)
    table = X if _is_numeric(X) else np.asarray(X, dtype=object)
    return category_values(table[:, column], name, table_name=table_name)


def _is_numeric(X: Any) -> bool:
    return isinstance(X, np.ndarray) and X.dtype.kind in "biuf"


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)  # noqa: PLR0124  NaN
    except TypeError:  # a comparison with pandas' NA has no truth value
        return True


def _matched(values: np.ndarray, categories: np.ndarray) -> np.ndarray:
    """Numbers as the texts that `fit` has seen, or texts as numbers: 3 and "3" are one category."""
    if categories.dtype.kind == "U" and values.dtype.kind != "U":
        by_number = {_number(text): text for text in reversed(categories.tolist())}
        texts = [str(v) if str(v) in categories else by_number.get(v, _text(v)) for v in values.tolist()]
        return np.array(texts, dtype=str)
    if categories.dtype.kind != "U" and values.dtype.kind == "U":
        return np.array([_number(text) for text in values.tolist()])
    return values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _text(number: float) -> str:
    """Write 3 and not 3.0, as files do."""
    return str(int(number)) if number.is_integer() else str(number)


# New categories in later rows (partial_fit)


def extended_categories(X: Any, categories: Categories) -> Categories:
    """Categories known and those in X, sorted. Numbers become texts where X brings texts that are no numbers."""
    if not _has_columns(X, categories):
        return categories
    return {column: _union(known, _column_values(X, column)) for column, known in categories.items()}


def _union(known: np.ndarray, values: np.ndarray) -> np.ndarray:
    matched = _matched(values, known)
    if matched.dtype.kind != "U" and np.isnan(matched).any():
        known, matched = _texts(known), values
    return np.union1d(known, matched)


def _texts(numbers: np.ndarray) -> np.ndarray:
    return np.array([_text(number) for number in numbers.tolist()])


def recode(table: np.ndarray, before: Categories, after: Categories) -> np.ndarray:
    """Replace codes of the categories `before` by codes of the categories `after`."""
    if not before:
        return table  # no copy: it may be large
    table = table.copy()
    for column, known in before.items():
        known_as = known if known.dtype.kind == after[column].dtype.kind else _texts(known)
        table[:, column] = np.searchsorted(after[column], known_as)[table[:, column].astype(int)]
    return table


def extended_bandwidth(bandwidth: np.ndarray, before: Categories, after: Categories) -> np.ndarray:
    """Bandwidth for more categories. Lambdas stay, except that an ignored column, lambda = (c - 1) / c, stays ignored.

    A column of one category has lambda 0 = (c - 1) / c, which does not mean that it is ignored.
    """
    bandwidth = bandwidth.copy()
    for column, known in before.items():
        if len(known) > 1 and bandwidth[column] >= largest_lambda(known):
            bandwidth[column] = largest_lambda(after[column])
    return bandwidth
