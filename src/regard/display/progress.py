"""Progress of long calls: one moving line in a terminal, a bar in a notebook, and nothing anywhere else.

A call that is over within a second shows nothing. What was shown is removed at the end, also after Ctrl-C.
"""

from __future__ import annotations

import html
import shutil
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, Protocol, runtime_checkable

DELAY = 1.0  # seconds that a call may take before it shows anything
REFRESH = 0.1  # seconds between two updates, at least
TICK = 1.0  # seconds between two updates, at most
BAR = 24  # characters of the bar in a terminal

_showing = threading.Lock()  # held by the call that shows its progress; calls inside it show nothing


class Advance:
    """Counts the parts of a long call that are done, for a block of `progress`; this one shows nothing."""

    shown: bool = False  # False where nobody would see the progress

    def __call__(self, text: str | None = None, total: int | None = None, *, done: int = 1) -> None:
        """Count `done` more parts; a new text, or a total that is only known by now, take the place of the old ones."""


@contextmanager
def progress(text: str, total: int | None = None) -> Iterator[Advance]:
    """Show how much of a long call is done; call what the block receives after each of its `total` parts.

    Without a total the text and the time are shown. The call may be given a new text and a new total:
    `advance("loss 2.1", 5000)`.

    Only the main thread shows progress: a server works in others, and its terminal is not the user's. A call of a
    single part shows nothing, and neither does a call inside another that shows its own.
    """
    is_long = total is None or total > 1
    display = _display() if is_long and threading.current_thread() is threading.main_thread() else None
    if display is None or not _showing.acquire(blocking=False):
        yield Advance()
        return
    line = _Line(text, total, display)
    try:
        line.start()
        yield line
    finally:
        line.close()
        _showing.release()


class _Line(Advance):
    """A text and how many parts are done, shown once `DELAY` is over."""

    shown = True

    def __init__(self, text: str, total: int | None, display: _Display) -> None:
        self._text, self._total, self._display = text, total, display
        self._done, self._started, self._updated = 0, time.monotonic(), 0.0
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._clock = threading.Thread(target=self._tick, daemon=True)  # a part may take long

    def start(self) -> None:
        self._clock.start()

    def __call__(self, text: str | None = None, total: int | None = None, *, done: int = 1) -> None:
        self._done += done
        self._text = self._text if text is None else text
        self._total = self._total if total is None else total
        now = time.monotonic()
        if now - self._started >= DELAY and now - self._updated >= REFRESH:
            self._show()

    def close(self) -> None:
        with self._lock:
            self._closed.set()
            if self._updated:
                self._display.clear()

    def _tick(self) -> None:
        wait = DELAY
        while not self._closed.wait(wait):
            self._show()
            wait = TICK

    def _show(self) -> None:
        with self._lock:
            if self._closed.is_set():
                return
            self._updated = time.monotonic()
            seconds = int(self._updated - self._started)
            clock = f"{seconds // 60}:{seconds % 60:02}"
            if self._total is None:
                self._display.show(self._text, None, clock)
            else:
                share = min(1.0, self._done / self._total)
                self._display.show(self._text, share, f"{self._done:,} of {self._total:,}, {clock}")


@runtime_checkable  # shapes and types are checked at run time in tests
class _Display(Protocol):
    """A place where progress is shown."""

    def show(self, text: str, share: float | None, count: str) -> None: ...

    def clear(self) -> None: ...


def _display() -> _Display | None:
    """The notebook or the terminal in front of the user, if there is one."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is not None:
        return _Notebook()
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    return _Terminal(sys.stderr) if is_terminal else None


class _Terminal:
    """One line of a terminal, written again and again."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._width = stream, 0

    def show(self, text: str, share: float | None, count: str) -> None:
        filled = int((share or 0) * BAR)
        bar = "" if share is None else f" [{'#' * filled}{'.' * (BAR - filled)}]"
        line = "".join(letter if letter.isprintable() else "?" for letter in f"{text}{bar} {count}")
        columns = list(accumulate(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line))
        fitting = [column for column in columns if column < shutil.get_terminal_size().columns]
        width = fitting[-1] if fitting else 0
        self._write(f"\r{line[: len(fitting)]}{' ' * (self._width - width)}")
        self._width = width

    def clear(self) -> None:
        self._write(f"\r{'':<{self._width}}\r")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class _Notebook:
    """An output of the running cell, which is updated in place."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str, share: float | None, count: str) -> None:
        value = "" if share is None else f' max="1" value="{share:.3f}"'
        bar = f"<progress{value}></progress>"
        self._put(_Output(f"{text}: {count}", f"<div>{html.escape(text)} {bar} {html.escape(count)}</div>"))

    def clear(self) -> None:
        if self._handle is not None:
            self._put(_Output("", ""))

    def _put(self, output: _Output) -> None:
        if self._handle is None:
            self._handle = sys.modules["IPython"].display.display(output, display_id=True)
        else:
            self._handle.update(output)


class _Output:
    """An output that a notebook shows as HTML, or as plain text where there is no HTML."""

    def __init__(self, text: str, markup: str) -> None:
        self._text, self._markup = text, markup

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return self._markup
