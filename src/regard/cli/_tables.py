"""Tables from files, and numbers from tables. A refusal names the file, the column and the row."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard._whole_file import whole_file
from regard.errors import ChoiceError, DataError, MissingExtraError

if TYPE_CHECKING:
    from pandas import DataFrame, Series

KINDS = (".csv", ".tsv", ".parquet")
COUNTED = "(counted from 1 below the names)"
FEW = 8  # columns that are named in an example
PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")


def kind_of(path: Path) -> str:
    """.csv, .tsv or .parquet, also of a packed file such as data.csv.gz."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    if not suffixes or suffixes[-1] not in KINDS:
        raise ChoiceError(f"{path}: a table is known by its ending, one of {', '.join(KINDS)}")
    return suffixes[-1]


def read(path: Path, texts: Sequence[str] = ()) -> DataFrame:
    """The table in a file; its columns are named by its first line. In `texts`, 01 is not 1."""
    pandas, kind = _pandas(), kind_of(path)
    try:
        if kind == ".parquet":
            return pandas.read_parquet(path).reset_index(drop=True)
        separator = "\t" if kind == ".tsv" else ","
        return pandas.read_csv(path, sep=separator, encoding="utf-8-sig", dtype=dict.fromkeys(texts, str))
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not written in UTF-8 ({error}); save it as UTF-8") from None
    except (ValueError, pandas.errors.EmptyDataError) as error:  # pandas' parser errors and arrow's are ValueErrors
        raise DataError(f"{path}: is no {kind[1:]} table: {' '.join(str(error).split())}") from error


def write(frame: DataFrame, path: Path) -> None:
    """Write all of it or nothing."""
    kind = kind_of(path)
    with whole_file(path) as file:
        if kind == ".parquet":
            frame.to_parquet(file, index=False)
        else:
            frame.to_csv(file, sep="\t" if kind == ".tsv" else ",", index=False)


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
            near = difflib.get_close_matches(name, there, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ChoiceError(f"{path}: has no column {name!r}, it has {_listed(there)}{hint}")
    return list(names)


def numbers(frame: DataFrame, names: Sequence[str], path: Path, advice: str) -> DataFrame:
    """The named columns as finite float64; `advice` ends a refusal."""
    if not len(frame):
        raise DataError(f"{path}: has no rows")
    if not names:
        raise DataError(f"{path}: has no column to predict from")
    found: Any = frame  # two columns of one name would be a frame; neither pandas' reader nor Parquet's makes them
    columns = {name: _column(found[name], f"{path}: column {name!r}", advice) for name in names}
    return _pandas().DataFrame(columns)


def texts(series: Series, place: str, advice: str) -> np.ndarray:
    """A column of categories: numbers where it holds them, else texts."""
    _present(series, place, advice)
    values = _as_floats(series)
    return series.astype(str).to_numpy(dtype=object) if values is None else values


def _present(series: Series, place: str, advice: str) -> None:
    missing = series.isna().to_numpy()
    if missing.any():
        raise DataError(f"{place} has no value in {rows(missing)}; fill it in or leave the row out. {advice}")


def _column(series: Series, place: str, advice: str) -> np.ndarray:
    _present(series, place, advice)
    values = _as_floats(series)
    if values is None:
        row, value = _first_text(series)
        raise DataError(f"{place} is not all numbers: row {row} holds {value!r} {COUNTED}. {advice}")
    wild = ~np.isfinite(values)
    if wild.any():
        raise DataError(f"{place} is infinite in {rows(wild)}. {advice}")
    return values


def is_numeric(series: Any) -> bool:
    return _as_floats(series.iloc[:0]) is not None


def _as_floats(series: Series) -> np.ndarray | None:
    types = _pandas().api.types
    if types.is_numeric_dtype(series.dtype) and not types.is_complex_dtype(series.dtype):  # also true and false
        return series.to_numpy(dtype=np.float64)
    return None


def _first_text(series: Series) -> tuple[int, Any]:
    """The first row that is no number, counted from 1, and what it holds."""
    values: Any = _pandas().to_numeric(series.astype(str), errors="coerce")
    row = int(np.argmax(values.isna().to_numpy()))  # dates and the like are no numbers anywhere: the first row
    return row + 1, series.iloc[row]


def suggestion(frame: DataFrame, y: str) -> str:
    """How to choose other columns, with an example that works where there is one."""
    names = [name for name in chosen(None, frame, Path(), y) if is_numeric(frame[name])]
    example = f", such as --x {','.join(names)}" if 0 < len(names) <= FEW else ""
    return f"Other columns can be chosen with --x{example}"


def rows(found: np.ndarray) -> str:
    """Where the first is, and how many more there are."""
    first, count = int(np.argmax(found)) + 1, int(found.sum())
    more = "" if count == 1 else f" and {count - 1:,} more"
    return f"row {first}{more} {COUNTED}"


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError as missing:
        raise MissingExtraError("tables are read with pandas and pyarrow: pip install 'regard[tables]'") from missing
    return pd
