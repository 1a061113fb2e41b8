"""A moving line for long work, on the error output of a terminal and nowhere else."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


class Step:
    """One line: what is being done, and how much of it is done."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def say(self, text: str) -> None:
        self._progress.update(self._task, description=text)

    @property
    def shown(self) -> bool:
        return not self._progress.disable

    def advance(self, done: int) -> None:
        self._progress.update(self._task, advance=done)


@contextmanager
def step(text: str, total: int | None = None) -> Iterator[Step]:
    """Show `text` while the block runs, and a bar where the `total` of the work is known."""
    console = Console(stderr=True)
    columns = [SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()]
    if total is not None:
        columns.insert(2, BarColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield Step(progress, progress.add_task(text, total=total))
