"""Columns of the tables of `regard fit`: numbers and categories, and what to do about a column that is neither.

An error names the file, the column and the row, and ends with options that would be accepted.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from regard.cli.console import join_names
from regard.cli.table_files import pandas_or_hint
from regard.errors import ChoiceError, DataError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

ColumnAdvice = Callable[[str], str]  # column name -> the last sentence of an error message
COUNTED = "(counted from 1 below the names)"
SEPARATORS = {";": "';'", "\t": "a tab", "|": "'|'"}
INT64_DIGITS = 19  # a longer integer may not fit pandas' integer types, and is read as a text
MAX_EXAMPLE_COLUMNS = 8  # columns that are named in an example


def feature_names(option: str | None, frame: DataFrame, path: Path, y: str) -> list[str]:
    """Return the columns named by --x "a,b"; without it all but y and pandas' unnamed index."""
    if option is None:
        return [name for name in map(str, frame.columns) if name != y and not name.startswith("Unnamed: ")]
    names = [option] if option in frame.columns else [name.strip() for name in option.split(",") if name.strip()]
    if y in names:
        raise ChoiceError(f"--x names {y!r}, the column to predict: it would predict itself")
    if len(set(names)) < len(names):
        raise ChoiceError(f"--x names a column twice: {option}")
    return check_names(names, frame, path)


def possible_names(option: str | None) -> list[str]:
    """Return the names in "a,b", and the whole text, since a name may contain a comma."""
    return [] if option is None else [option, *(name.strip() for name in option.split(","))]


def category_names(option: str | None, frame: DataFrame, path: Path, y: str) -> list[str]:
    """Return the columns named by --categorical; all must exist, and none may be y."""
    if option is None:
        return []
    names = [option] if option in frame.columns else [name for name in possible_names(option)[1:] if name]
    if y in names:
        raise ChoiceError(f"--categorical names {y!r}, the column to predict, which has to be numbers")
    if len(set(names)) < len(names):
        raise ChoiceError(f"--categorical names a column twice: {option}")
    return check_names(names, frame, path)


def check_names(names: Sequence[str], frame: DataFrame, path: Path) -> list[str]:
    """Return `names` if every one is a column; otherwise suggest the nearest name."""
    columns = [str(name) for name in frame.columns]
    for name in names:
        if name not in columns:
            raise ChoiceError(f"{path}: has no column {name!r}, it has {join_names(columns)}{_hint(name, columns)}")
    return list(names)


def _hint(name: str, columns: list[str]) -> str:
    for separator, spelled in SEPARATORS.items():
        if any(name in column.split(separator) for column in columns):
            return f"; the separator seems to be {spelled}, where a comma is read"
    nearest = difflib.get_close_matches(name, columns, 1)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""


def feature_table(
    frame: DataFrame, names: Sequence[str], categories: Sequence[str], path: Path, advice: ColumnAdvice
) -> DataFrame:
    """Return the named columns in order: `categories` as texts or numbers, the others as finite float64."""
    numeric = [name for name in names if name not in categories]
    if numeric or not names:
        features = numeric_table(frame, numeric, path, advice)
    else:
        features = numeric_table(frame.assign(_=0.0), ["_"], path, advice)[[]]  # this checks that there are rows
    texts = {name: _category_column(frame, name, path, advice) for name in categories}
    table: Any = features.assign(**texts)
    return table[list(names)]


def numeric_table(frame: DataFrame, names: Sequence[str], path: Path, advice: ColumnAdvice) -> DataFrame:
    """Return the named columns as finite float64."""
    if not len(frame):
        raise DataError(f"{path}: has no rows")
    if not names:
        raise DataError(f"{path}: has no column to predict from")
    table: Any = frame
    columns = {
        name: _numeric_column(table[name], f"{path}: column {name!r}", lambda n=name: advice(n)) for name in names
    }
    return pandas_or_hint().DataFrame(columns)


def _category_column(frame: DataFrame, name: str, path: Path, advice: ColumnAdvice) -> np.ndarray:
    """Return a column of categories: numbers if it holds only numbers, else texts."""
    series: Any = frame[name]
    _check_no_missing(series, f"{path}: column {name!r}", lambda: advice(name))
    values = _as_floats(series)
    return series.astype(str).to_numpy(dtype=object) if values is None else values


def _check_no_missing(series: Series, place: str, advice: Callable[[], str]) -> None:
    missing = series.isna().to_numpy()
    if missing.all():
        raise _data_error(f"{place} has no value in any row", advice)
    if missing.any():
        raise _data_error(f"{place} has no value in {_row_numbers(missing)}; fill it in or leave the row out", advice)


def _numeric_column(series: Series, place: str, advice: Callable[[], str]) -> np.ndarray:
    _check_no_missing(series, place, advice)
    values = _all_floats(series)
    if values is None:
        row, value = _first_text(series)
        raise _data_error(f"{place} is not all numbers: row {row} holds {value!r} {COUNTED}", advice)
    infinite = ~np.isfinite(values)
    if infinite.any():
        raise _data_error(f"{place} is infinite in {_row_numbers(infinite)}; correct it or leave the row out", advice)
    return values


def _data_error(fault: str, advice: Callable[[], str]) -> DataError:
    return DataError(f"{fault}. {advice()}".strip())


def _all_floats(series: Any) -> np.ndarray | None:
    """Return a column without missing values as float64, or None if one of its values is not a number."""
    values = _as_floats(series)
    return _long_integers(series) if values is None else values


def _as_floats(series: Series) -> np.ndarray | None:
    types = pandas_or_hint().api.types
    if types.is_numeric_dtype(series.dtype) and not types.is_complex_dtype(series.dtype):  # also true and false
        return series.to_numpy(dtype=np.float64)
    if series.dtype == object and all(isinstance(value, int | float | Decimal) for value in series):
        return _convert(series)
    return None


def _long_integers(series: Series) -> np.ndarray | None:
    """Convert a column of integers that pandas read as texts, because one of them does not fit int64."""
    if not all(isinstance(value, str) for value in series.head(1)):
        return None
    texts = series.astype(str).str
    return _convert(series) if texts.len().max() >= INT64_DIGITS and texts.fullmatch(r"[+-]?\d+").all() else None


def _convert(series: Series) -> np.ndarray | None:
    try:
        return np.array([float(value) for value in series], dtype=np.float64)
    except (OverflowError, ValueError):  # more than 10^308; a signalling NaN
        return None


def _first_text(series: Series) -> tuple[int, Any]:
    """Return the first row that is not a number, counted from 1, and its value."""
    values: Any = pandas_or_hint().to_numeric(series.astype(str), errors="coerce")
    row = int(np.argmax(values.isna().to_numpy()))  # a column of dates has no number at all: the first row
    return row + 1, series.iloc[row]


def _row_numbers(marked: np.ndarray) -> str:
    """Name the first marked row, and count the others."""
    first, count = int(np.argmax(marked)) + 1, int(marked.sum())
    more = "" if count == 1 else f" and {count - 1:,} more"
    return f"row {first}{more} {COUNTED}"


def unseen_categories(model: Any, X: Any, path: Path) -> Iterator[str]:
    """Yield a note for each column that holds a category which the fit has never seen."""
    from regard.regression import encoding

    for column, unseen in encoding.unknown_rows(X, model.categories_).items():
        if unseen.any():
            series = X.iloc[:, column] if hasattr(X, "iloc") else X[:, column]
            name = X.columns[column] if hasattr(X, "columns") else column
            category = np.asarray(series, dtype=object)[int(np.argmax(unseen))]
            yield (
                f"{path}: column {name!r} holds {category!r}, which the fit has never seen, in {_row_numbers(unseen)}: "
                "predicted as if that column were not there"
            )


class FeatureAdvice(NamedTuple):
    """Advice about a column that cannot be used: options of `regard fit` that this table would accept.

    `features` are the columns from which y is to be predicted; `categories` are those of them that are categories.
    """

    frame: DataFrame
    y: str
    features: Sequence[str]
    categories: Sequence[str]

    def __call__(self, column: str) -> str:
        sentences = [self._as_categories()] if column in self._texts() else []
        return " ".join(sentence for sentence in (*sentences, self._other_columns()) if sentence)

    def _as_categories(self) -> str:
        """Suggest --categorical with all columns of texts, and leave out columns that cannot be used at all."""
        texts, complete = self._texts(), self._complete_categories()
        numeric = [name for name in self._numbers() if name in self.features]
        if len(numeric) + len(texts) + len(complete) == len(self.features):
            return f"As categories it is taken by --categorical{_example([*complete, *texts])}."
        columns = _example(numeric or [*complete, *texts])
        if not columns:
            return ""
        return f"As categories it is taken by --x{columns} --categorical{_example([*complete, *texts])}."

    def _other_columns(self) -> str:
        numeric, complete = self._numbers(), self._complete_categories()
        columns = _example(numeric or complete)
        if not numeric and not complete:
            return ""
        if not columns:
            return "Other columns can be chosen with --x"
        without = " and no --categorical" if self.categories else ""
        categorical = f" --categorical{_example(complete)}" if complete else without
        return f"Other columns can be chosen with --x, such as --x{columns}{categorical}"

    def _numbers(self) -> list[str]:
        """Return all columns of finite numbers, also those that --x leaves out."""
        names = feature_names(None, self.frame, Path(), self.y)
        return [name for name in names if name not in self.categories and _is_finite(self.frame[name])]

    def _texts(self) -> list[str]:
        """Return the features that hold texts and could be categories."""
        names = [name for name in self.features if name not in self.categories and _is_complete(self.frame[name])]
        return [name for name in names if _all_floats(self.frame[name]) is None]

    def _complete_categories(self) -> list[str]:
        return [name for name in self.categories if _is_complete(self.frame[name])]


def _example(names: Sequence[str]) -> str:
    """Write names as behind an option; return "" if there are many, or if one of them contains a comma."""
    if not 0 < len(names) <= MAX_EXAMPLE_COLUMNS or any("," in name for name in names):
        return ""
    return f" {shlex.quote(','.join(names))}"


def _is_complete(series: Any) -> bool:
    return not series.isna().any()


def _is_finite(series: Any) -> bool:
    values = _all_floats(series) if _is_complete(series) else None
    return values is not None and bool(np.isfinite(values).all())
