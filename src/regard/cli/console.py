"""The terminal: progress lines, texts from the user, texts that are safe to print, and checks of output files."""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from regard.errors import ChoiceError, DataError

FILE_NAME = re.compile(r"\S+\.(?:txt|md|rst|html?|json|csv|py)")  # a text like this is meant as a file
MAX_NAMES = 20  # names that an error message lists


class ProgressLine:
    """One moving line: a description, and how much of the work is done."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def describe(self, text: str) -> None:
        self._progress.update(self._task, description=text)

    @property
    def shown(self) -> bool:
        return not self._progress.disable

    def advance(self, done: int) -> None:
        self._progress.update(self._task, advance=done)


@contextmanager
def progress(text: str, total: int | None = None) -> Iterator[ProgressLine]:
    """Show `text` while the block runs, with a bar if `total` is known.

    The line goes to the error output, and only if that is a terminal.
    """
    console = Console(stderr=True)
    columns = [SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()]
    if total is not None:
        columns.insert(2, BarColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield ProgressLine(bar, bar.add_task(text, total=total))


def read_text(argument: str) -> str:
    """Return the argument itself, the content of the file with that name, or standard input for "-"."""
    if argument == "-":
        return sys.stdin.read()
    try:
        if Path(argument).is_file():
            return Path(argument).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{argument}: is not written in UTF-8 ({error}); save it as UTF-8") from None
    except (OSError, ValueError):  # longer than any file name, or with characters that no file name has
        return argument
    if FILE_NAME.fullmatch(argument):
        raise DataError(f"{argument}: there is no such file")
    return argument


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
