"""Tables of `regard fit`, read from .csv, .tsv and .parquet files and written to them.

An error names the file and says what is wrong with it.
"""

from __future__ import annotations

import codecs
import importlib.util
import io
import lzma
import re
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from regard.cli.console import join_names
from regard.cli.tables import number_notation, text_encoding
from regard.engine.files import atomic_file
from regard.errors import ChoiceError, DataError, MissingExtraError, RegardError

if TYPE_CHECKING:
    from pandas import DataFrame

FORMATS = (".csv", ".tsv", ".parquet")
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd", ".zip": "zip"}
SEPARATORS = {".csv": ",", ".tsv": "\t"}
OTHER_SEPARATORS = (",", ";", "\t")  # recognised in the first line
ROW_TOO_LONG = re.compile(r"Expected \d+ fields in line (\d+), saw (\d+)")  # pandas' words
Result = TypeVar("Result")
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


class TableFile(NamedTuple):
    """A table as it was read."""

    frame: DataFrame
    decimals: dict[str, str]  # decimal mark of each column of numbers that pandas alone does not read
    notes: list[str]  # what was recognised, for the user


class ReadOptions(NamedTuple):
    """How to read a text file, where the file itself does not say it."""

    encoding: str | None = None
    decimal: str | None = None  # "." or ",", where both are possible
    decimals: Mapping[str, str] = {}  # the same for single columns, as in the table of the fit
    texts: Sequence[str] = ()  # columns that stay texts: 01 is not 1


def read_table(path: Path, options: ReadOptions = ReadOptions()) -> TableFile:  # noqa: B008  immutable
    """Read a table; its first line names the columns."""
    format_, pandas = table_format(path), pandas_or_hint()
    with _readable_errors(path, format_):
        if format_ == ".parquet":
            return TableFile(_named_index_as_column(pandas.read_parquet(path)), {}, [])
        return _read_csv(path, SEPARATORS[format_], options)


def column_names(path: Path, options: ReadOptions = ReadOptions()) -> list[str]:  # noqa: B008  immutable
    """Return the names of the columns; of a text file only the first line is read."""
    format_ = table_format(path)
    if format_ == ".parquet":
        return [str(name) for name in read_table(path).frame.columns]
    with _readable_errors(path, format_):
        return [
            name for name in _with_encoding(path, options, lambda text: text.first_line(SEPARATORS[format_])[1]) if name
        ]


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
    except UnicodeError as error:
        raise DataError(f"{path}: is not written in that encoding ({error}); --encoding names another") from None
    except DECOMPRESSION_ERRORS as error:
        raise DataError(f"{path}: cannot be unpacked: {error or type(error).__name__}") from error
    except OSError as error:
        if error.filename is None:  # the message alone does not say which file it means
            raise DataError(f"{path}: cannot be read: {error}") from error
        raise
    except ValueError as error:  # pandas' parser errors and arrow's are ValueErrors
        raise DataError(f"{path}: is no {format_[1:]} table: {' '.join(str(error).split())}") from error


def _read_csv(path: Path, separator: str, options: ReadOptions) -> TableFile:
    """Read a table of text. Semicolons or tabs, which programs in many countries write, are recognised."""
    notes: list[str] = []

    def read(text: TextFile) -> TableFile:
        return _read_text(text, separator, options)

    table = _with_encoding(path, options, read, notes)
    return table._replace(notes=notes + table.notes)


def _with_encoding(
    path: Path, options: ReadOptions, read: Callable[[TextFile], Result], notes: list[str] | None = None
) -> Result:
    """Read a file in the given encoding, or in the one that its bytes show."""
    content = None if path.is_file() else path.read_bytes()  # a pipe can be read only once

    def text_in(encoding: str) -> TextFile:
        return TextFile(path, content, encoding)

    if options.encoding is not None:
        return read(text_in(_known_encoding(options.encoding)))
    encoding = text_encoding.from_head(text_in("utf-8").first_bytes(text_encoding.HEAD_BYTES))
    try:
        return read(text_in(encoding))
    except UnicodeDecodeError as error:
        if not text_encoding.is_chinese(text_in(encoding).first_bytes(-1)):
            raise DataError(
                f"{path}: is written neither in UTF-8 ({error}) nor, as it seems, in GB18030 (GBK) or UTF-16; name its "
                "encoding, such as --encoding cp1252 for Western Europe, big5 or shift_jis"
            ) from None
    result = read(text_in("gb18030"))
    if notes is not None:
        notes.append(f"{path}: is read as GB18030 (GBK), since it is not UTF-8; --encoding names another")
    return result


def _known_encoding(name: str) -> str:
    try:
        known = codecs.lookup(name).name
        "".encode(known)  # a codec such as rot13 is no encoding
    except LookupError:
        raise ChoiceError(f"--encoding {name}: is not known; such as utf-8, gb18030, utf-16, cp1252, big5") from None
    return "utf-8-sig" if known == "utf-8" else known


class TextFile(NamedTuple):
    """A text file that may be compressed, and its encoding."""

    path: Path
    content: bytes | None  # of a pipe
    encoding: str

    def options(self) -> dict[str, Any]:
        return {"encoding": self.encoding, "compression": _compression(self.path)}

    def source(self) -> Path | io.BytesIO:
        return self.path if self.content is None else io.BytesIO(self.content)

    def first_bytes(self, count: int) -> bytes:
        """Return the first bytes, unpacked; all for -1."""
        from pandas.io.common import get_handle  # it opens every compression that read_csv does

        options: Any = {"mode": "rb", "is_text": False, "compression": _compression(self.path)}
        with get_handle(self.source(), **options) as file:
            return file.handle.read(count)

    def first_line(self, usual: str) -> tuple[str, list[str]]:
        """Return the separator, and the column names exactly as the file has them."""
        separator = _separator(self._split_first_line(usual), usual)
        return separator, self._split_first_line(separator)

    def _split_first_line(self, separator: str) -> list[str]:
        plain = {"header": None, "nrows": 1, "dtype": str, "keep_default_na": False}
        line: Any = pandas_or_hint().read_csv(self.source(), sep=separator, **plain, **self.options())
        return line.iloc[0].tolist()


def _read_text(text: TextFile, usual: str, options: ReadOptions) -> TableFile:
    separator, line = text.first_line(usual)
    _check_unique([name for name in line if name], text.path)
    names = [name or f"Unnamed: {place}" for place, name in enumerate(line)]  # pandas' names for them
    as_texts = dict.fromkeys(options.texts, str)
    frame: Any = _read_rows(text, names, sep=separator, dtype=as_texts)

    def read_as_texts(columns: list[str]) -> DataFrame:
        return _read_rows(text, names, sep=separator, dtype=str, usecols=columns)

    while names and not line[len(names) - 1] and frame[names[-1]].isna().all():
        frame = frame.drop(columns=names.pop())  # commas at the ends of lines
    return _with_number_notation(frame, text.path, separator, options, read_as_texts)


def _check_unique(names: Sequence[str], path: Path) -> None:
    """Refuse a name that two columns have: it would be unclear which is meant, and one would predict the other."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        listed = ", ".join(map(repr, repeated))
        raise DataError(f"{path}: has more than one column {listed}; give each column a name of its own")


def _separator(line: list[str], usual: str) -> str:
    """Return the usual separator; if it is not in the first line and exactly one other is, return that one."""
    present = [other for other in OTHER_SEPARATORS if other != usual and other in line[0]]
    return present[0] if len(line) == 1 and len(present) == 1 else usual


def _read_rows(text: TextFile, names: list[str], **options: Any) -> DataFrame:
    """Read the rows below the names. Non-empty values beyond the last name are refused: they have no column."""
    pandas = pandas_or_hint()
    named = f"the first line has {len(names)} name{'s' * (len(names) > 1)}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)  # pandas warns that it drops values
            return pandas.read_csv(text.source(), header=0, names=names, index_col=False, **options, **text.options())
    except pandas.errors.ParserWarning:
        raise DataError(f"{text.path}: {named}, and there are rows with more values than that") from None
    except pandas.errors.ParserError as error:
        match = ROW_TOO_LONG.search(str(error))
        if match is None:
            raise
        raise DataError(f"{text.path}: {named}, and line {match[1]} has {match[2]} values") from None


def _with_number_notation(
    frame: DataFrame, path: Path, separator: str, options: ReadOptions, read_as_texts: Callable[[list[str]], Any]
) -> TableFile:
    """Read decimal commas and thousands separators, which pandas leaves as texts or takes for decimal points."""
    table: Any = frame
    kinds = {name: table[name].dtype.kind for name in frame.columns if name not in options.texts}
    columns = {name: _present_texts(table[name]) for name, kind in kinds.items() if kind == "O"}
    preferred = dict.fromkeys(kinds, options.decimal) if options.decimal else dict(options.decimals)
    by_column = number_notation.interpret(columns, preferred, separator)
    floats = [name for name, kind in kinds.items() if kind == "f"]
    if floats and "," in {*preferred.values(), *(reading.decimal for reading in by_column.values())}:
        texts = read_as_texts(floats)  # in a file with decimal commas 1.234 may be a thousand
        columns |= {name: _present_texts(texts[name]) for name in floats}
        by_column = number_notation.interpret(columns, preferred, separator)
        by_column = {name: one for name, one in by_column.items() if name not in floats or one.decimal == ","}
    for name, reading in by_column.items():
        values = np.full(len(frame), np.nan)
        values[table[name].notna().to_numpy()] = reading.numbers
        table[name] = values
    decimals = {name: reading.decimal for name, reading in by_column.items()}
    return TableFile(table, decimals, list(_notation_notes(by_column, path)))


def _present_texts(column: Any) -> list[str]:
    return column.dropna().astype(str).tolist()


def _notation_notes(readings: Mapping[str, number_notation.Reading], path: Path) -> Iterator[str]:
    for decimal, mark in ((",", "comma"), (".", "point")):
        certain = {name: one for name, one in readings.items() if one.decimal == decimal and one.other is None}
        if certain:
            example = _example(next(iter(certain.values())))
            yield f"{path}: {example}, with a decimal {mark}, in {join_names([*certain])}"
    for name, one in readings.items():
        if one.other is not None:
            other = number_notation.OTHER[one.decimal]
            yield f"{path}: column {name!r}: {_example(one)}; --decimal {other} reads {one.other:.15g}"


def _example(reading: number_notation.Reading) -> str:
    return f"{reading.example.strip()} is read as {reading.example_number:.15g}"
