"""Columns of tables, and numbers from them. A refusal names the file, the column and the row."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.cli._pandas import pandas_or_hint
from regard.errors import ChoiceError, DataError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

Advice = Callable[[str], str]  # what to do about a column, at the end of a refusal
COUNTED = "(counted from 1 below the names)"
SEPARATORS = {";": "';'", "\t": "a tab", "|": "'|'"}
LONG = 19  # digits: from here on an integer may be more than pandas has a type for, and comes as a text


def chosen(text: str | None, frame: DataFrame, path: Path, y: str) -> list[str]:
    """The columns to predict from: those named in "a,b", or all but y (and but an index without a name)."""
    if text is None:
        return [name for name in map(str, frame.columns) if name != y and not name.startswith("Unnamed: ")]
    names = [text] if text in frame.columns else [name.strip() for name in text.split(",") if name.strip()]
    if y in names:
        raise ChoiceError(f"--x names {y!r}, the column to predict: it would predict itself")
    if len(set(names)) < len(names):
        raise ChoiceError(f"--x names a column twice: {text}")
    return known(names, frame, path)


def known(names: Sequence[str], frame: DataFrame, path: Path) -> list[str]:
    """The same names, all of which are columns."""
    there = [str(name) for name in frame.columns]
    for name in names:
        if name not in there:
            raise ChoiceError(f"{path}: has no column {name!r}, it has {_listed(there)}{_hint(name, there)}")
    return list(names)


def _hint(name: str, there: list[str]) -> str:
    for separator, word in SEPARATORS.items():
        if any(name in column.split(separator) for column in there):
            return f"; the separator seems to be {word}, where a comma is read"
    near = difflib.get_close_matches(name, there, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def numbers(frame: DataFrame, names: Sequence[str], path: Path, advice: Advice) -> DataFrame:
    """The named columns as finite float64."""
    if not len(frame):
        raise DataError(f"{path}: has no rows")
    if not names:
        raise DataError(f"{path}: has no column to predict from")
    found: Any = frame
    columns = {name: _column(found[name], f"{path}: column {name!r}", lambda n=name: advice(n)) for name in names}
    return pandas_or_hint().DataFrame(columns)


def texts(frame: DataFrame, name: str, path: Path, advice: Advice) -> np.ndarray:
    """A column of categories: numbers where it holds them, else texts."""
    series: Any = frame[name]
    _present(series, f"{path}: column {name!r}", lambda: advice(name))
    values = _as_floats(series)
    return series.astype(str).to_numpy(dtype=object) if values is None else values


def _present(series: Series, place: str, advice: Callable[[], str]) -> None:
    missing = series.isna().to_numpy()
    if missing.all():
        raise _refusal(f"{place} has no value in any row", advice)
    if missing.any():
        raise _refusal(f"{place} has no value in {rows(missing)}; fill it in or leave the row out", advice)


def _column(series: Series, place: str, advice: Callable[[], str]) -> np.ndarray:
    _present(series, place, advice)
    values = floats(series)
    if values is None:
        row, value = _first_text(series)
        raise _refusal(f"{place} is not all numbers: row {row} holds {value!r} {COUNTED}", advice)
    wild = ~np.isfinite(values)
    if wild.any():
        raise _refusal(f"{place} is infinite in {rows(wild)}; correct it or leave the row out", advice)
    return values


def _refusal(fault: str, advice: Callable[[], str]) -> DataError:
    return DataError(f"{fault}. {advice()}".strip())


def floats(series: Any) -> np.ndarray | None:
    """A column without holes as float64, or nothing if not all of it is numbers."""
    values = _as_floats(series)
    return _long_integers(series) if values is None else values


def _as_floats(series: Series) -> np.ndarray | None:
    types = pandas_or_hint().api.types
    if types.is_numeric_dtype(series.dtype) and not types.is_complex_dtype(series.dtype):  # also true and false
        return series.to_numpy(dtype=np.float64)
    if series.dtype == object and all(isinstance(value, int | float | Decimal) for value in series):
        return _converted(series)
    return None


def _long_integers(series: Series) -> np.ndarray | None:
    """Texts that are integers, some of them too long for int64: a table of text holds them so, among shorter ones."""
    if not all(isinstance(value, str) for value in series.head(1)):
        return None
    found = series.astype(str).str
    return _converted(series) if found.len().max() >= LONG and found.fullmatch(r"[+-]?\d+").all() else None


def _converted(series: Series) -> np.ndarray | None:
    try:
        return np.array([float(value) for value in series], dtype=np.float64)
    except (OverflowError, ValueError):  # more than 10^308; a signalling NaN
        return None


def _first_text(series: Series) -> tuple[int, Any]:
    """The first row that is no number, counted from 1, and what it holds."""
    values: Any = pandas_or_hint().to_numeric(series.astype(str), errors="coerce")
    row = int(np.argmax(values.isna().to_numpy()))  # dates and the like are no numbers anywhere: the first row
    return row + 1, series.iloc[row]


def rows(found: np.ndarray) -> str:
    """Where the first is, and how many more there are."""
    first, count = int(np.argmax(found)) + 1, int(found.sum())
    more = "" if count == 1 else f" and {count - 1:,} more"
    return f"row {first}{more} {COUNTED}"


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
