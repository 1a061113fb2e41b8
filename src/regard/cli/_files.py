"""Tables from files, and into them. A refusal names the file, and says what is wrong with it."""

from __future__ import annotations

import importlib.util
import lzma
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli import _csv
from regard.cli._pandas import pandas_or_hint
from regard.engine.files import whole_file
from regard.errors import ChoiceError, DataError, MissingExtraError, RegardError

if TYPE_CHECKING:
    from pandas import DataFrame

KINDS = (".csv", ".tsv", ".parquet")
PACKED = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd", ".zip": "zip"}
SEPARATORS = {".csv": ",", ".tsv": "\t"}
SPOILT = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)  # what unpacking may say, beside an OSError


def kind_of(path: Path) -> str:
    """.csv, .tsv or .parquet, also of a packed file such as data.csv.gz."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes.pop() if suffixes and suffixes[-1] in PACKED else None
    if not suffixes or suffixes[-1] not in KINDS:
        raise ChoiceError(f"{path}: a table is known by its ending, one of {', '.join(KINDS)}")
    if packed and suffixes[-1] == ".parquet":
        raise ChoiceError(
            f"{path}: Parquet is packed inside, and is neither read nor written as {packed}; use .parquet"
        )
    if packed == ".zst" and importlib.util.find_spec("zstandard") is None:
        raise MissingExtraError(f"{path}: a .zst file needs the package zstandard: pip install zstandard")
    return suffixes[-1]


def packing(path: Path) -> str | None:
    """How the file is packed, in the words of pandas."""
    return PACKED.get(path.suffix.lower())


def read(path: Path, texts: Sequence[str] = ()) -> DataFrame:
    """The table in a file; its columns are named by its first line. In `texts`, 01 is not 1."""
    kind, pandas = kind_of(path), pandas_or_hint()
    with _in_words(path, kind):
        if kind == ".parquet":
            return _with_index(pandas.read_parquet(path))
        return _csv.read(path, SEPARATORS[kind], packing(path), texts)


def write(frame: DataFrame, path: Path) -> None:
    """Write all of it or nothing."""
    kind, packed = kind_of(path), packing(path)
    with whole_file(path) as file:
        if kind == ".parquet":
            frame.to_parquet(file, index=False)
        else:
            options: Any = {"method": packed, "archive_name": path.stem} if packed == "zip" else packed
            frame.to_csv(file, sep=SEPARATORS[kind], index=False, compression=options)


def _with_index(frame: Any) -> DataFrame:
    """An index that has a name is a column, the last one, as it is in the file; one that only counts rows is none."""
    if isinstance(frame.index, pandas_or_hint().RangeIndex):
        return frame.reset_index(drop=True)
    columns, named = list(frame.columns), [name for name in frame.index.names if name is not None]
    return frame.reset_index(level=named).reset_index(drop=True)[[*columns, *named]]


@contextmanager
def _in_words(path: Path, kind: str) -> Iterator[None]:
    try:
        yield
    except RegardError:
        raise
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not written in UTF-8 ({error}); save it as UTF-8") from None
    except SPOILT as error:
        raise DataError(f"{path}: cannot be unpacked: {error or type(error).__name__}") from error
    except OSError as error:
        if error.filename is None:  # nobody would know of which file it speaks
            raise DataError(f"{path}: cannot be read: {error}") from error
        raise
    except ValueError as error:  # pandas' parser errors and arrow's are ValueErrors
        raise DataError(f"{path}: is no {kind[1:]} table: {' '.join(str(error).split())}") from error
