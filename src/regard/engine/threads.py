"""Worker threads: one torch thread in each worker, and the number of threads that torch had is restored after.

A step that takes microseconds takes milliseconds where a second thread has to be woken for it, or where the threads of
two libraries wait for each other on the same cores. So work of many small steps is divided between workers in which
torch uses one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Thread
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

WORTH_THREADS = 2**15  # points: with fewer, waking a second thread takes longer than the work
_n_workers: ContextVar[int] = ContextVar("workers allowed inside `one_thread`", default=1)


def n_threads() -> int:
    """The number of threads that may work: those of torch now, or before `one_thread` was entered."""
    return max(_n_workers.get(), torch.get_num_threads())


def parallel_map(function: Callable[[Item], Result], items: Iterable[Item], stop: Event | None = None) -> list[Result]:
    """[function(item) for item in items], divided between workers of one torch thread each.

    Inference mode and grad mode are those of the caller. When a call fails or the caller is interrupted, calls that
    have not begun are cancelled, and `stop` is set for those that are running.
    """
    listed = list(items)
    count = n_threads()
    if count < 2 or len(listed) < 2:
        with one_thread():
            return [function(item) for item in listed]
    inference, grad = torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    def call(item: Item) -> Result:
        with torch.inference_mode(inference), torch.set_grad_enabled(grad):  # modes belong to a thread
            return function(item)

    with (
        _restored_thread_number(),
        ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,)) as workers,
    ):
        jobs = [workers.submit(call, item) for item in listed]
        try:
            return [job.result() for job in jobs]
        finally:
            for job in jobs:
                job.cancel()
            if stop is not None:
                stop.set()


@contextmanager
def daemon_workers(work: Callable[[], None], count: int) -> Iterator[list[Thread]]:
    """Run `work` in `count` threads of one torch thread each while the block runs; at its end, wait for them.

    They do not keep the process alive. `work` has to notice by itself that the block is over.
    """

    def single() -> None:
        torch.set_num_threads(1)
        work()

    threads = [Thread(target=single, daemon=True) for _ in range(count)]
    with _restored_thread_number():
        for thread in threads:
            thread.start()
        try:
            yield threads
        finally:
            for thread in threads:
                thread.join()


@contextmanager
def one_thread(*, workers: bool = True) -> Iterator[None]:
    """Let torch use one thread in this block, for small steps. `parallel_map` still has workers if `workers`."""
    before, token = torch.get_num_threads(), _n_workers.set(n_threads() if workers else 1)
    if before != 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        _n_workers.reset(token)
        if before != 1:
            torch.set_num_threads(before)


@contextmanager
def _restored_thread_number() -> Iterator[None]:
    """Restore the number after workers have set theirs: torch gives the last number set to every later thread."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
