"""Priority between threads: background work pauses while a person waits for an answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

MAX_PAUSE = 0.25  # seconds after which background work goes on although somebody still waits: it must end too


class PriorityGate:
    """A count of foreground requests in progress. Background work calls `pause` between its steps."""

    def __init__(self) -> None:
        self._idle = Condition()
        self._foreground = 0

    @contextmanager
    def foreground(self) -> Iterator[None]:
        """Mark the body as work that somebody waits for."""
        with self._idle:
            self._foreground += 1
        try:
            yield
        finally:
            with self._idle:
                self._foreground -= 1
                if not self._foreground:
                    self._idle.notify_all()

    def pause(self) -> None:
        """Wait until no foreground work is in progress, for at most MAX_PAUSE seconds."""
        with self._idle:
            self._idle.wait_for(lambda: not self._foreground, MAX_PAUSE)


GATE = PriorityGate()  # one for the process: all work shares the same cores
