"""Tables of `regard fit`, read from .csv, .tsv and .parquet files and written to them.

An error names the file and says what is wrong with it.
"""

from __future__ import annotations

import importlib.util
import io
import lzma
import re
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.engine.files import atomic_file
from regard.errors import ChoiceError, DataError, MissingExtraError, RegardError

if TYPE_CHECKING:
    from pandas import DataFrame

FORMATS = (".csv", ".tsv", ".parquet")
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd", ".zip": "zip"}
SEPARATORS = {".csv": ",", ".tsv": "\t"}
OTHER_SEPARATORS = (",", ";", "\t")  # recognised in the first line
DECIMAL_COMMA = r"\s*[+-]?\d+(,\d+)?([eE][+-]?\d+)?\s*"
ROW_TOO_LONG = re.compile(r"Expected \d+ fields in line (\d+), saw (\d+)")  # pandas' words
DECOMPRESSION_ERRORS = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)  # beside OSError


def pandas_or_hint() -> Any:
    """Return the package pandas, or raise an error that says how to get it."""
    try:
        import pandas as pd
    except ImportError as missing:
        raise MissingExtraError("tables are read with pandas and pyarrow: pip install 'regard[tables]'") from missing
    return pd


def table_format(path: Path) -> str:
    """Return .csv, .tsv or .parquet, also for a compressed file such as data.csv.gz."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else None
    if not suffixes or suffixes[-1] not in FORMATS:
        raise ChoiceError(f"{path}: a table is known by its ending, one of {', '.join(FORMATS)}")
    if packed and suffixes[-1] == ".parquet":
        raise ChoiceError(
            f"{path}: Parquet is packed inside, and is neither read nor written as {packed}; use .parquet"
        )
    if packed == ".zst" and importlib.util.find_spec("zstandard") is None:
        raise MissingExtraError(f"{path}: a .zst file needs the package zstandard: pip install zstandard")
    return suffixes[-1]


def read_table(path: Path, texts: Sequence[str] = ()) -> DataFrame:
    """Read a table; its first line names the columns. Columns in `texts` stay texts: 01 is not 1."""
    format_, pandas = table_format(path), pandas_or_hint()
    with _readable_errors(path, format_):
        if format_ == ".parquet":
            return _named_index_as_column(pandas.read_parquet(path))
        return _read_csv(path, SEPARATORS[format_], _compression(path), texts)


def write_table(frame: DataFrame, path: Path) -> None:
    """Write the whole table, or leave the old file as it is."""
    format_, compression = table_format(path), _compression(path)
    with atomic_file(path) as file:
        if format_ == ".parquet":
            frame.to_parquet(file, index=False)
        else:
            zipped: Any = {"method": compression, "archive_name": path.stem} if compression == "zip" else compression
            frame.to_csv(file, sep=SEPARATORS[format_], index=False, compression=zipped)


def _compression(path: Path) -> str | None:
    """Return pandas' name for the compression of a file."""
    return COMPRESSIONS.get(path.suffix.lower())


def _named_index_as_column(frame: Any) -> DataFrame:
    """Make a named index the last column, as it is in the file; drop an index that only counts rows."""
    if isinstance(frame.index, pandas_or_hint().RangeIndex):
        return frame.reset_index(drop=True)
    columns, named = list(frame.columns), [name for name in frame.index.names if name is not None]
    return frame.reset_index(level=named).reset_index(drop=True)[[*columns, *named]]


@contextmanager
def _readable_errors(path: Path, format_: str) -> Iterator[None]:
    try:
        yield
    except RegardError:
        raise
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not written in UTF-8 ({error}); save it as UTF-8") from None
    except DECOMPRESSION_ERRORS as error:
        raise DataError(f"{path}: cannot be unpacked: {error or type(error).__name__}") from error
    except OSError as error:
        if error.filename is None:  # the message alone does not say which file it means
            raise DataError(f"{path}: cannot be read: {error}") from error
        raise
    except ValueError as error:  # pandas' parser errors and arrow's are ValueErrors
        raise DataError(f"{path}: is no {format_[1:]} table: {' '.join(str(error).split())}") from error


def _read_csv(path: Path, separator: str, compression: str | None, texts: Sequence[str]) -> DataFrame:
    """Read a table of text. Semicolons or tabs, which programs in many countries write, are recognised."""
    source = path if path.is_file() else io.BytesIO(path.read_bytes())  # a pipe can be read only once
    options = {"encoding": "utf-8-sig", "compression": compression}
    separator = _separator(_first_line(source, separator, options), separator)
    line = _first_line(source, separator, options)
    _check_unique([name for name in line if name], path)
    names = [name or f"Unnamed: {place}" for place, name in enumerate(line)]  # pandas' names for them
    frame: Any = _read_rows(source, names, path, sep=separator, dtype=dict.fromkeys(texts, str), **options)
    while names and not line[len(names) - 1] and frame[names[-1]].isna().all():
        frame = frame.drop(columns=names.pop())  # commas at the ends of lines
    return _with_decimal_commas(frame, texts) if separator == ";" else frame


def _check_unique(names: Sequence[str], path: Path) -> None:
    """Refuse a name that two columns have: it would be unclear which is meant, and one would predict the other."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        listed = ", ".join(map(repr, repeated))
        raise DataError(f"{path}: has more than one column {listed}; give each column a name of its own")


def _first_line(source: Path | io.BytesIO, separator: str, options: dict[str, Any]) -> list[str]:
    """Return the column names exactly as the file has them."""
    plain = {"header": None, "nrows": 1, "dtype": str, "keep_default_na": False}
    line: Any = pandas_or_hint().read_csv(source, sep=separator, **plain, **options)
    if isinstance(source, io.BytesIO):
        source.seek(0)
    return line.iloc[0].tolist()


def _separator(line: list[str], usual: str) -> str:
    """Return the usual separator; if it is not in the first line and exactly one other is, return that one."""
    present = [other for other in OTHER_SEPARATORS if other != usual and other in line[0]]
    return present[0] if len(line) == 1 and len(present) == 1 else usual


def _read_rows(source: Path | io.BytesIO, names: list[str], path: Path, **options: Any) -> DataFrame:
    """Read the rows below the names. Non-empty values beyond the last name are refused: they have no column."""
    pandas = pandas_or_hint()
    named = f"the first line has {len(names)} name{'s' * (len(names) > 1)}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)  # pandas warns that it drops values
            return pandas.read_csv(source, header=0, names=names, index_col=False, **options)
    except pandas.errors.ParserWarning:
        raise DataError(f"{path}: {named}, and there are rows with more values than that") from None
    except pandas.errors.ParserError as error:
        match = ROW_TOO_LONG.search(str(error))
        if match is None:
            raise
        raise DataError(f"{path}: {named}, and line {match[1]} has {match[2]} values") from None


def _with_decimal_commas(frame: DataFrame, texts: Sequence[str]) -> DataFrame:
    """Read 1,5 as one and a half: in a file with semicolons a comma may be the decimal point."""
    pandas = pandas_or_hint()
    for name in frame.columns:
        column: Any = frame[name]
        if name in texts or pandas.api.types.is_numeric_dtype(column.dtype):
            continue
        if column.dropna().astype(str).str.fullmatch(DECIMAL_COMMA).all():
            frame[name] = pandas.to_numeric(column.astype(str).str.replace(",", "."), errors="coerce")
    return frame
