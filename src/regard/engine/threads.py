"""How many threads work: blocks dealt out to workers of one thread each, and one alone where steps are small.

A step that takes microseconds takes milliseconds where a second thread has to be woken for it, or where the threads of
two libraries wait for each other's turn on the same processors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

WORTH_THREADS = 2**15  # points: below, waking a second thread takes longer than the work
_before: ContextVar[int] = ContextVar("threads that torch had before `one_thread`", default=1)


def threads() -> int:
    """How many may work: those that torch has, or had before `one_thread`."""
    return max(_before.get(), torch.get_num_threads())


def each(do: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """`do` for every item, results in the order of the items, which are few enough to be listed."""
    waiting = list(items)
    count, now = threads(), torch.get_num_threads()
    if count < 2 or len(waiting) < 2:
        with one_thread():
            return [do(item) for item in waiting]
    modes = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
    try:
        with ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,)) as workers:
            jobs = [workers.submit(_in_modes, modes, do, item) for item in waiting]
            try:
                return [job.result() for job in jobs]
            finally:
                for job in jobs:
                    job.cancel()  # when one fails, or the person at the keyboard has had enough
    finally:
        torch.set_num_threads(now)  # torch would give what the workers were given to any thread that comes after


@contextmanager
def one_thread() -> Iterator[None]:
    """For small steps, which take several times as long where threads wait for each other after each of them."""
    before, token = torch.get_num_threads(), _before.set(threads())
    if before != 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        _before.reset(token)
        if before != 1:
            torch.set_num_threads(before)


def _in_modes(modes: tuple[bool, bool], do: Callable[[Item], Result], item: Item) -> Result:
    inference, grad = modes  # modes belong to a thread
    with torch.inference_mode(inference), torch.set_grad_enabled(grad):
        return do(item)
