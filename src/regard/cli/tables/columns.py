"""Columns of the tables of `regard fit`: how they become features, and what to do about a column that cannot.

A column is numbers, categories or dates (`Column`). All that is decided for the table of a fit is kept in a
`Preparation`, which is saved with the model and applied to new rows in the same way. An error names the file, the
column and the row, and ends with options that would be accepted.
"""

from __future__ import annotations

import difflib
import json
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from regard.cli.console import join_names, plural
from regard.cli.tables.dates import date_parts, read_dates
from regard.cli.tables.files import pandas_or_hint
from regard.errors import ChoiceError, DataError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

ColumnAdvice = Callable[[str], str]  # column name -> the last sentence of an error message
COUNTED = "(counted from 1 below the names)"
SEPARATORS = {";": "';'", "\t": "a tab", "|": "'|'"}
INT64_DIGITS = 19  # a longer integer may not fit pandas' integer types, and is read as a text
MAX_EXAMPLE_COLUMNS = 8  # columns that are named in an example
MAX_ROWS = 5  # rows that are named in a message
MAX_LEVELS, ROWS_PER_LEVEL = 50, 10  # texts with at most so many levels become categories by themselves


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


def kind_names(option: str, value: str | None, frame: DataFrame, path: Path, y: str) -> list[str]:
    """Return the columns named by --categorical or --numeric; all must exist, and none may be y."""
    if value is None:
        return []
    names = [value] if value in frame.columns else [name for name in possible_names(value)[1:] if name]
    if y in names:
        raise ChoiceError(f"{option} names {y!r}, the column to predict, which has to be numbers")
    if len(set(names)) < len(names):
        raise ChoiceError(f"{option} names a column twice: {value}")
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


# How a column becomes features


class Column(NamedTuple):
    """A column of a table, and how it becomes a feature, or several."""

    name: str
    kind: str  # "number", "category" or "date"
    decimal: str | None = None  # decimal mark of numbers that were texts
    order: str | None = None  # of day, month and year in dates that were texts
    has_times: bool = False  # of dates
    fill: float | str | None = None  # stands for a missing value, after --missing mean

    def features(self, dates: str) -> list[str]:
        """Return the names of the features."""
        if self.kind != "date" or dates == "days":
            return [self.name]
        return [f"{self.name}.{part}" for part in date_parts(np.zeros(1), hours=self.has_times)]


class Preparation(NamedTuple):
    """How the columns of a table become the features of a fit."""

    columns: tuple[Column, ...]
    missing: str = "error"  # "error", "drop" or "mean"
    dates: str = "days"  # "days", "parts" or "error"

    def to_json(self) -> str:
        return json.dumps({**self._asdict(), "columns": [column._asdict() for column in self.columns]})

    @classmethod
    def from_json(cls, text: str) -> Preparation:
        content = json.loads(text)
        return cls(tuple(Column(**column) for column in content.pop("columns")), **content)

    def features(self) -> list[str]:
        return [name for column in self.columns for name in column.features(self.dates)]

    def categories(self) -> list[str]:
        return [column.name for column in self.columns if column.kind == "category"]

    def decimals(self) -> dict[str, str]:
        return {column.name: column.decimal for column in self.columns if column.decimal is not None}


class Features(NamedTuple):
    """Features of a table."""

    table: DataFrame  # of the rows that are complete
    target: Any  # the column to predict, of the same rows; None for new rows
    complete: np.ndarray  # (rows,) bool: False for rows that --missing drop leaves out
    preparation: Preparation  # with what stands for missing values
    notes: list[str]


def column_of(
    series: Any, place: str, dates: str, decimal: str | None = None, *, kind: str | None = None
) -> Column | None:
    """Return how a column becomes a feature; None for texts that are neither numbers, dates nor a few categories.

    `kind` is what the user says it is. Otherwise texts become categories by themselves if there are at most
    `MAX_LEVELS` levels, and one for `ROWS_PER_LEVEL` rows, and no numbers are among them: those look like a mistake.
    """
    name = str(series.name)
    if kind is not None:
        return Column(name, kind, decimal)
    present = series.dropna()
    if _all_floats(present) is not None:
        return Column(name, "number", decimal)
    read = read_dates(series, place)
    if read is not None:
        return None if dates == "error" else Column(name, "date", order=read.order, has_times=read.has_times)
    return Column(name, "category") if _has_few_levels(present, len(series)) else None


def kind_notes(preparation: Preparation, frame: DataFrame, named: Collection[str], path: Path) -> Iterator[str]:
    """Yield a note for each kind that was recognised, and not `named` by the user."""
    found = [column for column in preparation.columns if column.name not in named]
    categories: Any = [column.name for column in found if column.kind == "category"]
    if categories:
        table: Any = frame
        levels = [f"{name} ({table[name].nunique()} levels)" for name in categories]
        yield f"{path}: taken as categories: {join_names(levels)}; --numeric or --x decides otherwise"
    dates = [column.name for column in found if column.kind == "date"]
    if dates:
        form = "days since 1970-01-01" if preparation.dates == "days" else "their parts"
        yield f"{path}: taken as dates, by {form}: {join_names(dates)}; --dates or --categorical decides otherwise"


def _has_few_levels(present: Series, rows: int) -> bool:
    if pandas_or_hint().api.types.is_datetime64_any_dtype(present.dtype):
        return False
    levels = list(map(str, present.unique()))
    numbers = [level for level in levels if _is_number(level)]
    return 0 < len(levels) <= min(MAX_LEVELS, rows / ROWS_PER_LEVEL) and len(numbers) in (0, len(levels))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def prepare(
    frame: DataFrame,
    preparation: Preparation,
    path: Path,
    advice: ColumnAdvice,
    *,
    target: str | None = None,
    missing_advice: str = "",
) -> Features:
    """Return the features of a table: categories as texts or numbers, everything else as finite float64.

    `target` is the column to predict, if this is the table of a fit: a row without it is never filled in.
    """
    if not len(frame):
        raise DataError(f"{path}: has no rows")
    if not preparation.columns:
        raise DataError(f"{path}: has no column to predict from")
    table: Any = frame
    columns = [*preparation.columns, *([Column(target, "number")] if target else [])]
    values = {one.name: _values(table[one.name], one, f"{path}: column {one.name!r}", advice) for one in columns}
    missing = {name: _is_missing(column) for name, column in values.items()}
    for name, mask in missing.items():
        if mask.all() and (target is not None or preparation.missing != "mean"):
            raise _data_error(f"{path}: column {name!r} has no value in any row", lambda n=name: advice(n))
    missing = {name: mask for name, mask in missing.items() if mask.any()}
    if missing and preparation.missing == "error":
        raise _missing_error(missing, path, advice, missing_advice)
    dropped = [mask for name, mask in missing.items() if preparation.missing == "drop" or name == target]
    complete = ~np.logical_or.reduce(dropped) if dropped else np.ones(len(frame), dtype=bool)
    if not complete.any():
        raise DataError(f"{path}: has no row with a value in each of {join_names(list(missing))}")
    notes = [] if complete.all() else [_dropped_note(missing, complete, path)]
    preparation, filled = _filled(preparation, values, missing, complete, path)
    features: dict[str, np.ndarray] = {}
    for column in preparation.columns:
        kept = values[column.name][complete]
        parts = date_parts(kept, hours=column.has_times) if column.kind == "date" else {}
        names = column.features(preparation.dates)
        features |= zip(names, [kept] if len(names) == 1 else parts.values(), strict=True)
    pandas = pandas_or_hint()
    y = None if target is None else pandas.Series(values[target][complete], name=target)
    return Features(pandas.DataFrame(features), y, complete, preparation, notes + filled)


def _values(series: Series, column: Column, place: str, advice: ColumnAdvice) -> np.ndarray:
    """Return a column as float64 with NaN where a value is missing; texts as objects with None."""
    name, present = column.name, series.notna().to_numpy()
    if column.kind == "date":
        dates = read_dates(series, place, column.order)
        if dates is None and present.any():
            raise _data_error(f"{place} is not all dates: {_first_odd(series)}", lambda: advice(name))
        return np.full(len(series), np.nan) if dates is None else dates.days
    known: Any = series[present]
    floats = _as_floats(known)
    if column.kind == "number" and floats is None:
        floats = _convert(known)
    if floats is None and column.kind == "number":
        raise _data_error(f"{place} is not all numbers: {_first_odd(series)}", lambda: advice(name))
    values = np.full(len(series), np.nan) if floats is not None else np.full(len(series), None, dtype=object)
    values[present] = known.astype(str).to_numpy(dtype=object) if floats is None else floats
    infinite = np.isinf(values) if floats is not None else np.zeros(1, dtype=bool)
    if infinite.any():
        fault = f"{place} is infinite in {_row_numbers(infinite)}; correct it or leave the row out"
        raise _data_error(fault, lambda: advice(name))
    return values


def _is_missing(values: np.ndarray) -> np.ndarray:
    return np.isnan(values) if values.dtype != object else np.array([value is None for value in values], dtype=bool)


def _missing_error(
    missing: Mapping[str, np.ndarray], path: Path, advice: ColumnAdvice, missing_advice: str
) -> DataError:
    columns = [f"column {name!r} has no value in {_row_numbers(mask, counted='')}" for name, mask in missing.items()]
    rows = plural(int(np.logical_or.reduce(list(missing.values())).sum()), "row")
    remedy = missing_advice or (
        f"--missing drop leaves out {rows}, --missing mean fills in the mean of a column, or its most frequent category"
    )
    return _data_error(f"{path}: {join_names(columns)} {COUNTED}. {remedy}", lambda: advice(next(iter(missing))))


def _dropped_note(missing: Mapping[str, np.ndarray], complete: np.ndarray, path: Path) -> str:
    """Name the columns for which rows are left out."""
    names = [name for name, mask in missing.items() if mask[~complete].any()]
    count = int((~complete).sum())
    return f"{path}: {count:,} of {plural(len(complete), 'row')} left out, without a value in {join_names(names)}"


def _filled(
    preparation: Preparation,
    values: dict[str, np.ndarray],
    missing: Mapping[str, np.ndarray],
    complete: np.ndarray,
    path: Path,
) -> tuple[Preparation, list[str]]:
    """Fill in missing values, in place: the mean of numbers and dates, the most frequent category."""
    if preparation.missing != "mean":
        return preparation, []
    columns = []
    for column in preparation.columns:
        known = values[column.name][complete & ~_is_missing(values[column.name])]
        fill = column.fill if column.fill is not None else _typical(known, column.kind)
        columns.append(column._replace(fill=fill))
    by_name = {column.name: column for column in columns}
    notes = []
    for name in missing:
        mask = missing[name] & complete
        if name in by_name and mask.any():
            values[name][mask] = by_name[name].fill
            notes.append(
                f"{path}: column {name!r}: {_fill_text(by_name[name])} filled in in {plural(int(mask.sum()), 'row')}"
            )
    return preparation._replace(columns=tuple(columns)), notes


def _typical(known: np.ndarray, kind: str) -> Any:
    if kind != "category":
        return float(known.mean())
    counts = Counter(known.tolist())
    return min(counts, key=lambda level: (-counts[level], str(level)))


def _fill_text(column: Column) -> str:
    if column.kind == "category":
        return f"the most frequent, {column.fill},"
    if column.kind == "date":
        return f"the mean, {np.datetime64(int(np.floor(float(column.fill or 0))), 'D')},"
    return f"the mean, {column.fill:.4g},"


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
    if series.dtype == object and len(series) and all(isinstance(value, int | float | Decimal) for value in series):
        return _convert(series)
    return None


def _long_integers(series: Series) -> np.ndarray | None:
    """Convert a column of integers that pandas read as texts, because one of them does not fit int64."""
    if not len(series) or not all(isinstance(value, str) for value in series.head(1)):
        return None
    texts = series.astype(str).str
    return _convert(series) if texts.len().max() >= INT64_DIGITS and texts.fullmatch(r"[+-]?\d+").all() else None


def _convert(series: Any) -> np.ndarray | None:
    try:
        return np.array([float(value) for value in series], dtype=np.float64)
    except (OverflowError, TypeError, ValueError):  # more than 10^308; a signalling NaN; a text
        return None


def _first_odd(series: Any) -> str:
    """Name the first row that is neither a number nor missing."""
    values: Any = pandas_or_hint().to_numeric(series.astype(str), errors="coerce")
    odd = values.isna().to_numpy() & series.notna().to_numpy()
    row = int(np.argmax(odd))  # a column of dates has no number at all: the first row
    return f"row {row + 1} holds {_shown(series.iloc[row])} {COUNTED}"


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) else str(value)


def _row_numbers(marked: np.ndarray, counted: str = f" {COUNTED}") -> str:
    """Name the first marked rows, and count the others."""
    rows = (np.flatnonzero(marked) + 1).tolist()
    more = f" and {len(rows) - MAX_ROWS:,} more" if len(rows) > MAX_ROWS else ""
    return f"row{'s' * (len(rows) > 1)} {', '.join(map(str, rows[:MAX_ROWS]))}{more}{counted}"


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


class FeatureAdvice:
    """Advice about a column that cannot be used: options of `regard fit` that this table would accept.

    `features` are the columns from which y is to be predicted; `categorical` are those that the user calls categories.
    """

    def __init__(
        self, frame: DataFrame, y: str, features: Sequence[str], categorical: Sequence[str], dates: str
    ) -> None:
        self._frame, self._y, self._dates = frame, y, dates
        self._features, self._categorical = features, categorical

    def __call__(self, column: str) -> str:
        sentences = [self._as_dates(column), self._as_categories(column), self._other_columns(column)]
        return " ".join(sentence for sentence in sentences if sentence)

    def _as_dates(self, column: str) -> str:
        is_refused = self._dates == "error" and column != self._y and column_of(self._frame[column], column, "days")
        return "As dates it is taken by --dates days or parts." if is_refused and is_refused.kind == "date" else ""

    def _as_categories(self, column: str) -> str:
        """Suggest --categorical with all columns of many texts, if everything else can be used."""
        texts = [name for name in self._features if name not in self._categorical and self._is_unclear(name)]
        usable = [name for name in self._features if self._is_usable(name)]
        if column not in texts or any(name not in (*texts, *usable) for name in self._features):
            return ""
        columns = _example([*self._categorical, *texts])
        return f"As categories it is taken by --categorical{columns}." if columns else ""

    def _other_columns(self, column: str) -> str:
        names = feature_names(None, self._frame, Path(), self._y)
        names = [name for name in names if name != column and self._is_usable(name)]
        if not names:
            return ""
        columns = _example(names)
        if not columns:
            return "Other columns can be chosen with --x"
        categorical = [name for name in names if name in self._categorical]
        without = " and no --categorical" if self._categorical else ""
        given = f" --categorical{_example(categorical)}" if categorical else without
        return f"Other columns can be chosen with --x, such as --x{columns}{given}"

    def _is_usable(self, name: str) -> bool:
        """True for a complete column that is accepted as it is."""
        series: Any = self._frame[name]
        if series.isna().any():
            return False
        floats = _all_floats(series)
        return (
            bool(np.isfinite(floats).all())
            if floats is not None
            else name in self._categorical or self._kind(name) is not None
        )

    def _is_unclear(self, name: str) -> bool:
        series: Any = self._frame[name]
        return not series.isna().any() and _all_floats(series) is None and self._kind(name) is None

    def _kind(self, name: str) -> Column | None:
        try:
            return column_of(self._frame[name], name, self._dates)
        except DataError:
            return None


def _example(names: Sequence[str]) -> str:
    """Write names as behind an option; return "" if there are many, or if one of them contains a comma."""
    if not 0 < len(names) <= MAX_EXAMPLE_COLUMNS or any("," in name for name in names):
        return ""
    return f" {shlex.quote(','.join(names))}"
