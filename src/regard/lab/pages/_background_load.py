"""Loading something slow once, in a thread of its own, so that no request has to wait for the end."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock, Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class BackgroundLoad(Generic[T]):
    """The result of `load`, which runs once, when it is first asked for.

    The thread is a daemon, so that a model half loaded does not keep Ctrl-C waiting.
    """

    def __init__(self, load: Callable[[], T], name: str) -> None:
        self._load, self._name = load, name
        self._lock = Lock()
        self._future: Future[T] | None = None

    def get(self, patience: float | None = None) -> T | None:
        """The result, or None if it takes longer than `patience` seconds; an error of `load` is raised here.

        After an error the next call tries again: the user may have installed what was missing.
        """
        with self._lock:
            future = self._future = self._future or self._start()
        with suppress(TimeoutError):
            if future.exception(patience) is not None:
                with self._lock:
                    self._future = None if self._future is future else self._future
            return future.result()
        return None

    def _start(self) -> Future[T]:
        future: Future[T] = Future()
        Thread(target=self._run, args=(future,), name=self._name, daemon=True).start()
        return future

    def _run(self, future: Future[T]) -> None:
        try:
            future.set_result(self._load())
        except BaseException as error:  # noqa: BLE001  raised again where the result is asked for
            future.set_exception(error)
