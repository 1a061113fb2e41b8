"""The terminal: what it can show, texts from the user, and checks of output files."""

import codecs
import errno
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path

from regard.errors import ChoiceError, DataError

# A text like one of these is meant as a file: my story.txt, ./story, C:\\story.
FILE_NAME = re.compile(
    r"[^\n|?!]+\.(?:txt|text|md|rst|html?|json|csv|tsv|py|pdf|docx?)|(?:~|\.{0,2}|[A-Za-z]:)[/\\]\S+"
)
MAX_NAMES = 20  # names that an error message lists
# What the command draws with, for terminals without it. A letter becomes ?, since a similar one would be another name.
SUBSTITUTES = {
    **dict.fromkeys("█▉▊▋▌▐", "#"), **dict.fromkeys("▍▎▏▕", " "), **dict.fromkeys("━─╸╺", "-"), "│": "|",
    **dict.fromkeys("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "*"), "²": "2", "·": ".", "…": "...", "–": "-", "—": "-", "×": "x",
}  # fmt: skip


def replace_unprintable() -> None:
    """Let both outputs replace characters that their encoding does not have, instead of raising UnicodeEncodeError."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # None without a terminal; a notebook puts its own objects there
            stream.reconfigure(errors="regard.substitute")


def substitute(text: str) -> str:
    r"""Replace characters that a terminal cannot show: lines and bars by similar ones, all others by a question mark.

    >>> substitute("██²…"), substitute("旷课"), substitute("\udcff")
    ('##2...', '??', '\\xff')
    """
    return "".join(SUBSTITUTES.get(letter) or _placeholder(letter) for letter in text)


def _placeholder(letter: str) -> str:
    is_byte = "\udc80" <= letter <= "\udcff"  # of a file name that is not UTF-8
    return f"\\x{ord(letter) - 0xDC00:02x}" if is_byte else "?"


def _substitute_error(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return substitute(error.object[error.start : error.end]), error.end


codecs.register_error("regard.substitute", _substitute_error)


def read_text(argument: str) -> str:
    """Return the argument itself, the content of the text file with that name, or standard input for "-".

    A folder, a file that holds no text, and the name of a file that is not there are refused: a name is hardly ever the
    text that was meant.
    """
    if argument == "-":
        return _decode(sys.stdin.buffer.read(), "standard input", sys.stdin.encoding)
    if _exists(argument):
        if Path(argument).is_dir():
            raise DataError(f"{argument}: is a folder; name a text file in it")
        return _decode(Path(argument).read_bytes(), argument)
    if FILE_NAME.fullmatch(argument):
        raise DataError(f"{argument}: there is no such file; if this is the text itself, pipe it in and give -")
    return plain_text(argument)


def plain_text(argument: str) -> str:
    """Return an argument as text: where the locale is not UTF-8, Python hands over bytes as halves of characters."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        return _decode(os.fsencode(argument), "the text")
    return argument


def _exists(argument: str) -> bool:
    try:
        os.lstat(argument)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: no file name has a NUL
        return False
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise  # a folder that may not be searched: the name would be taken for the text
    return True


def _decode(content: bytes, name: str, *other_encodings: str) -> str:
    """Decode UTF-8, or else one of the other encodings; refuse bytes that are no text."""
    if 0 in content and not content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{name}: is no text, since byte {content.index(0):,} of it is 0; name a text file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        for encoding in other_encodings:
            with suppress(UnicodeDecodeError):
                return content.decode(encoding)
        raise DataError(f"{name}: is not written in UTF-8 ({error}); save it as UTF-8") from None


def printable(text: str) -> str:
    r"""Spell out control characters, so that text from a file cannot command the terminal.

    >>> print(printable("旷 \x1b[31m"))
    旷 \x1b[31m
    """
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def plural(number: int, noun: str) -> str:
    """Return the number with its noun.

    >>> plural(1, "layer"), plural(1200, "token")
    ('1 layer', '1,200 tokens')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def join_names(names: Sequence[object]) -> str:
    """List the first names, and say how many more there are."""
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(map(str, names[:MAX_NAMES])) + more


def check_folder(path: Path) -> None:
    """Refuse an output file whose folder does not exist."""
    if not path.absolute().parent.is_dir():
        raise ChoiceError(f"{path}: there is no folder {path.parent}")


def check_outputs(inputs: Mapping[str, Path | None], outputs: Mapping[str, Path | None]) -> None:
    """Refuse an output that cannot be written, or that would replace another file of the same command."""
    taken = {name: path for name, path in inputs.items() if path is not None}
    for name, path in outputs.items():
        if path is None:
            continue
        check_folder(path)
        if path.is_dir():
            raise ChoiceError(f"{name} {path}: is a folder; name a file in it")
        for other_name, other_path in taken.items():
            if _is_same_file(path, other_path):
                raise ChoiceError(f"{name} {path}: is also {other_name}, and would take its place; choose another name")
        taken[name] = path


def _is_same_file(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)
