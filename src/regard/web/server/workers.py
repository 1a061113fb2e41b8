"""Work that takes longer than an event loop may wait: a few threads, a queue with an end, and a way to give up."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from regard.web.server.errors import Refusal
from regard.web.server.priority import TURNS

T = TypeVar("T")

WORKERS = 2
LONGEST = 60.0  # seconds for one answer


class Cancelled(Exception):  # noqa: N818  it is no error
    """Nobody waits for this any more."""


class Job(Generic[T]):
    """Something to do. It is handed to its function, which asks `job.cancelled()` now and then."""

    def __init__(self, run: Callable[[Job[T]], T]) -> None:
        self._run = run
        self._cancelled = threading.Event()
        self.future: Future[T] = Future()

    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    def check(self) -> None:
        if self.cancelled():
            raise Cancelled

    def cancel(self) -> None:
        self._cancelled.set()
        self.future.cancel()  # one that has not begun never will

    def work(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            self.future.set_result(self._run(self))
        except BaseException as error:  # noqa: BLE001  whoever waits for it decides
            self.future.set_exception(error)


class Pool:
    """Daemon threads, so that a model half loaded does not keep Ctrl-C waiting."""

    def __init__(self, name: str, workers: int, waiting: int, *, newest_first: bool = False) -> None:
        self._waiting, self._most, self._newest_first = deque[Job[Any]](), waiting, newest_first
        self._running: set[Job[Any]] = set()
        self._changed = threading.Condition()
        self._stopped = False
        for number in range(workers):
            threading.Thread(target=self._work, name=f"regard-{name}-{number}", daemon=True).start()

    def start(self, run: Callable[[Job[T]], T]) -> Job[T]:
        """Do it when a thread is free; 503 where too much waits already."""
        job = Job(run)
        with self._changed:
            self._waiting = deque(one for one in self._waiting if not one.cancelled())
            if len(self._waiting) >= self._most or self._stopped:
                raise Refusal(503, "too much is asked at once: try again in a moment", {"retry-after": "1"})
            self._waiting.append(job)
            self._changed.notify()
        return job

    @property
    def is_busy(self) -> bool:
        return bool(self._running or self._waiting)

    def stop(self) -> None:
        """Everything is cancelled, and nothing more is taken."""
        with self._changed:
            self._stopped = True
            for job in (*self._waiting, *self._running):
                job.cancel()
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    if self._stopped:
                        return
                    self._changed.wait()
                job = self._waiting.pop() if self._newest_first else self._waiting.popleft()
                self._running.add(job)
            job.work()
            with self._changed:
                self._running.discard(job)


class Workshop:
    """Quick answers have their own threads: a training that runs does not keep a tile waiting."""

    def __init__(self) -> None:
        self.quick = Pool("quick", WORKERS, waiting=128)
        self.long = Pool("long", WORKERS, waiting=4)
        self.behind = Pool("behind", WORKERS, waiting=64, newest_first=True)  # what fills in a picture that is shown

    @property
    def _pools(self) -> tuple[Pool, ...]:
        return (self.quick, self.long, self.behind)

    def warm(self) -> None:
        """Load torch while the browser loads the page, and share the cores between the threads."""
        self.long.start(_prepare)

    def stop(self) -> None:
        for pool in self._pools:
            pool.stop()

    def wait(self, seconds: float) -> bool:
        """Whether all threads have come to an end within this time."""
        end = time.monotonic() + seconds
        while any(pool.is_busy for pool in self._pools) and time.monotonic() < end:
            time.sleep(0.02)
        return not any(pool.is_busy for pool in self._pools)


def _prepare(_: Job[None]) -> None:
    import torch

    torch.set_num_threads(max(1, (os.cpu_count() or 1) // WORKERS))


async def answer(request: Any, work: Workshop, run: Callable[[Job[T]], T]) -> T:
    """The result of work in a thread, given up when the client leaves or it takes too long."""

    def run_first(job: Job[T]) -> T:
        with TURNS.first():  # long work steps back
            return run(job)

    job = work.quick.start(run_first)
    result = asyncio.wrap_future(job.future)
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({result, leaving}, timeout=LONGEST, return_when=asyncio.FIRST_COMPLETED)
        if result.done():
            return result.result()
        if leaving.done():
            raise Refusal(499, "the client has left")  # nobody reads it
        raise Refusal(503, f"this takes longer than {LONGEST:.0f} seconds", {"retry-after": "10"})
    except Cancelled:
        raise Refusal(503, "the server stops", {"retry-after": "1"}) from None
    finally:
        leaving.cancel()
        job.cancel()


async def _left(request: Any) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
