"""Worker threads behind the event loop: bounded queues, and jobs that can be cancelled."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from regard.web.server.errors import ApiError
from regard.web.server.priority import GATE

T = TypeVar("T")

WORKERS = 2  # threads of a pool
ANSWER_SECONDS = 60.0  # a request that takes longer is answered with 503


class JobCancelled(Exception):  # noqa: N818  it is no error
    """A job ended because nobody waits for its result any more."""


class Job(Generic[T]):
    """A function to run in a worker thread. It is called with its job, and asks `job.cancelled()` now and then."""

    def __init__(self, function: Callable[[Job[T]], T]) -> None:
        self._function = function
        self._cancelled = threading.Event()
        self.future: Future[T] = Future()

    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    def check(self) -> None:
        """Raise JobCancelled if the job was cancelled."""
        if self.cancelled():
            raise JobCancelled

    def cancel(self) -> None:
        self._cancelled.set()
        self.future.cancel()  # a job that has not begun never will

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            self.future.set_result(self._function(self))
        except BaseException as error:  # noqa: BLE001  raised again where the result is awaited
            self.future.set_exception(error)


class WorkerPool:
    """Daemon threads with a bounded queue. Daemons, so that a model half loaded does not keep Ctrl-C waiting."""

    def __init__(self, name: str, workers: int, max_queued: int, *, newest_first: bool = False) -> None:
        self._queue, self._max_queued, self._newest_first = deque[Job[Any]](), max_queued, newest_first
        self._running: set[Job[Any]] = set()
        self._changed = threading.Condition()
        self._stopped = False
        for number in range(workers):
            threading.Thread(target=self._work, name=f"regard-{name}-{number}", daemon=True).start()

    def submit(self, function: Callable[[Job[T]], T]) -> Job[T]:
        """Run a function when a thread is free; 503 if the queue is full."""
        job = Job(function)
        with self._changed:
            self._queue = deque(queued for queued in self._queue if not queued.cancelled())
            if len(self._queue) >= self._max_queued or self._stopped:
                raise ApiError(503, "too much is asked at once: try again in a moment", {"retry-after": "1"})
            self._queue.append(job)
            self._changed.notify()
        return job

    @property
    def is_busy(self) -> bool:
        return bool(self._running or self._queue)

    def stop(self) -> None:
        """Cancel all jobs and accept no more."""
        with self._changed:
            self._stopped = True
            for job in (*self._queue, *self._running):
                job.cancel()
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._queue:
                    if self._stopped:
                        return
                    self._changed.wait()
                job = self._queue.pop() if self._newest_first else self._queue.popleft()
                self._running.add(job)
            job.run()
            with self._changed:
                self._running.discard(job)


class WorkerPools:
    """Three pools, so that a training that runs for a minute does not keep a tile waiting."""

    def __init__(self) -> None:
        self.quick: WorkerPool = WorkerPool("quick", WORKERS, max_queued=128)
        self.long: WorkerPool = WorkerPool("long", WORKERS, max_queued=4)
        self.background: WorkerPool = WorkerPool("background", WORKERS, max_queued=64, newest_first=True)

    @property
    def _all(self) -> tuple[WorkerPool, ...]:
        return (self.quick, self.long, self.background)

    def load_torch(self) -> None:
        """Import torch while the browser loads the page, and divide the cores between the workers."""
        self.long.submit(_load_torch)

    def stop(self) -> None:
        for pool in self._all:
            pool.stop()

    def wait_until_idle(self, seconds: float) -> bool:
        """True if all jobs ended within this time."""
        end = time.monotonic() + seconds
        while any(pool.is_busy for pool in self._all) and time.monotonic() < end:
            time.sleep(0.02)
        return not any(pool.is_busy for pool in self._all)


def _load_torch(_: Job[None]) -> None:
    import torch

    torch.set_num_threads(max(1, (os.cpu_count() or 1) // WORKERS))


async def run_in_worker(request: Any, workers: WorkerPools, function: Callable[[Job[T]], T]) -> T:
    """The result of `function` in a worker thread. It is cancelled when the client disconnects or time is up."""

    def run_in_foreground(job: Job[T]) -> T:
        with GATE.foreground():
            return function(job)

    job = workers.quick.submit(run_in_foreground)
    result = asyncio.wrap_future(job.future)
    disconnected = asyncio.ensure_future(_wait_for_disconnect(request))
    try:
        await asyncio.wait({result, disconnected}, timeout=ANSWER_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if result.done():
            return result.result()
        if disconnected.done():
            raise ApiError(499, "the client has left")  # nobody reads it
        raise ApiError(503, f"this takes longer than {ANSWER_SECONDS:.0f} seconds", {"retry-after": "10"})
    except JobCancelled:
        raise ApiError(503, "the server stops", {"retry-after": "1"}) from None
    finally:
        disconnected.cancel()
        job.cancel()


async def _wait_for_disconnect(request: Any) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
