"""Progress of long calls: one moving line in a terminal, a bar in a notebook, and nothing anywhere else.

A call that is over within a second shows nothing. What was shown is removed at the end, also after Ctrl-C.
"""

from __future__ import annotations

import html
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

DELAY = 1.0  # seconds that a call may take before it shows anything
REFRESH = 0.1  # seconds between two updates
BAR = 24  # characters of the bar in a terminal

_showing = threading.Lock()  # held by the call that shows its progress; calls inside it show nothing


@contextmanager
def progress(text: str, total: int) -> Iterator[Callable[..., None]]:
    """Show how much of a long call is done; call what the block receives after each of its `total` parts.

    The call may be given a new text, and a new total where that is only known by then: `advance("loss 2.1", 5000)`.

    Only the main thread shows progress: a server works in others, and its terminal is not the user's. A call of a
    single part shows nothing, and neither does a call inside another that shows its own.
    """
    display = _display() if total > 1 and threading.current_thread() is threading.main_thread() else None
    if display is None or not _showing.acquire(blocking=False):
        yield lambda *_: None
        return
    line = _Line(text, total, display)
    try:
        line.start()
        yield line.advance
    finally:
        line.close()
        _showing.release()


class _Line:
    """A text and how many parts are done, shown once `DELAY` is over."""

    def __init__(self, text: str, total: int, display: _Display) -> None:
        self._text, self._total, self._display = text, total, display
        self._done, self._started, self._updated = 0, time.monotonic(), 0.0
        self._closed = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(DELAY, self._show)  # the first part may take long
        self._timer.daemon = True

    def start(self) -> None:
        self._timer.start()

    def advance(self, text: str | None = None, total: int | None = None) -> None:
        self._done += 1
        self._text = self._text if text is None else text
        self._total = self._total if total is None else total
        now = time.monotonic()
        if now - self._started >= DELAY and now - self._updated >= REFRESH:
            self._show()

    def close(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._updated:
                self._display.clear()

    def _show(self) -> None:
        with self._lock:
            if not self._closed:
                self._updated = time.monotonic()
                seconds = int(self._updated - self._started)
                count = f"{self._done} of {self._total}, {seconds // 60}:{seconds % 60:02}"
                self._display.show(self._text, min(1.0, self._done / self._total), count)


@runtime_checkable  # shapes and types are checked at run time in tests
class _Display(Protocol):
    """A place where progress is shown."""

    def show(self, text: str, share: float, count: str) -> None: ...

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

    def show(self, text: str, share: float, count: str) -> None:
        filled = int(share * BAR)
        line = f"{text} [{'#' * filled}{'.' * (BAR - filled)}] {count}"
        line = line[: shutil.get_terminal_size().columns - 1]
        self._write(f"\r{line:<{self._width}}")
        self._width = len(line)

    def clear(self) -> None:
        self._write(f"\r{'':<{self._width}}\r")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class _Notebook:
    """An output of the running cell, which is updated in place."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str, share: float, count: str) -> None:
        bar = f'<progress max="1" value="{share:.3f}"></progress>'
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
