"""Tables of text: names in the first line, as many values in every other."""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli._pandas import pandas_or_hint
from regard.errors import DataError

if TYPE_CHECKING:
    from pandas import DataFrame

OTHERS = (",", ";", "\t")
DECIMAL_COMMA = r"\s*[+-]?\d+(,\d+)?([eE][+-]?\d+)?\s*"
TOO_LONG = re.compile(r"Expected \d+ fields in line (\d+), saw (\d+)")


def read(path: Path, separator: str, packed: str | None, texts: Sequence[str]) -> DataFrame:
    """The table; semicolons or tabs, as programs in many countries write them, are seen in the first line."""
    source = path if path.is_file() else io.BytesIO(path.read_bytes())  # a pipe can be read but once
    options = {"encoding": "utf-8-sig", "compression": packed}
    line = _first_line(source, separator, options)
    separator = _separator(line, separator)
    line = _first_line(source, separator, options)
    _refuse_doubles([name for name in line if name], path)
    names = [name or f"Unnamed: {place}" for place, name in enumerate(line)]  # so pandas calls them
    frame: Any = _rows(source, names, path, sep=separator, dtype=dict.fromkeys(texts, str), **options)
    while names and not line[len(names) - 1] and frame[names[-1]].isna().all():
        frame = frame.drop(columns=names.pop())  # the commas at the ends of lines
    return _with_decimal_commas(frame, texts) if separator == ";" else frame


def _refuse_doubles(names: Sequence[str], path: Path) -> None:
    """A name that stands twice: nobody could say which of the two is meant, and one would predict the other."""
    doubled = [name for name, times in Counter(names).items() if times > 1]
    if doubled:
        listed = ", ".join(map(repr, doubled))
        raise DataError(f"{path}: has more than one column {listed}; give each column a name of its own")


def _first_line(source: Path | io.BytesIO, separator: str, options: dict[str, Any]) -> list[str]:
    """The names as they stand there."""
    plain = {"header": None, "nrows": 1, "dtype": str, "keep_default_na": False}
    found: Any = pandas_or_hint().read_csv(source, sep=separator, **plain, **options)
    if isinstance(source, io.BytesIO):
        source.seek(0)
    return found.iloc[0].tolist()


def _separator(line: list[str], usual: str) -> str:
    """The usual one, or where it does not stand in the first line and just one other does, that."""
    there = [other for other in OTHERS if other != usual and other in line[0]]
    return there[0] if len(line) == 1 and len(there) == 1 else usual


def _rows(source: Path | io.BytesIO, names: list[str], path: Path, **options: Any) -> DataFrame:
    """Everything below the names. Values beyond them are refused, unless they are empty: whose would they be?"""
    pandas = pandas_or_hint()
    named = f"the first line has {len(names)} name{'s' * (len(names) > 1)}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)  # that values are lost
            return pandas.read_csv(source, header=0, names=names, index_col=False, **options)
    except pandas.errors.ParserWarning:
        raise DataError(f"{path}: {named}, and there are rows with more values than that") from None
    except pandas.errors.ParserError as error:
        found = TOO_LONG.search(str(error))
        if found is None:
            raise
        raise DataError(f"{path}: {named}, and line {found[1]} has {found[2]} values") from None


def _with_decimal_commas(frame: DataFrame, texts: Sequence[str]) -> DataFrame:
    """Where semicolons are between the values, 1,5 may be one and a half."""
    pandas = pandas_or_hint()
    for name in frame.columns:
        column: Any = frame[name]
        if name in texts or pandas.api.types.is_numeric_dtype(column.dtype):
            continue
        if column.dropna().astype(str).str.fullmatch(DECIMAL_COMMA).all():
            frame[name] = pandas.to_numeric(column.astype(str).str.replace(",", "."), errors="coerce")
    return frame
