"""Blocks dealt out to workers: threads in which torch uses one each, because a block takes many small steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def each(do: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """`do` for every item, results in the order of the items, which are few enough to be listed."""
    waiting = list(items)
    threads = torch.get_num_threads()
    if threads < 2 or len(waiting) < 2:
        with one_thread():
            return [do(item) for item in waiting]
    modes = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as workers:
            jobs = [workers.submit(_in_modes, modes, do, item) for item in waiting]
            try:
                return [job.result() for job in jobs]
            finally:
                for job in jobs:
                    job.cancel()  # when one fails, or the person at the keyboard has had enough
    finally:
        torch.set_num_threads(threads)  # torch would give what the workers were given to any thread that comes after


@contextmanager
def one_thread() -> Iterator[None]:
    """A block's small steps take several times as long where threads wait for each other after each of them."""
    threads = torch.get_num_threads()
    if threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _in_modes(modes: tuple[bool, bool], do: Callable[[Item], Result], item: Item) -> Result:
    inference, grad = modes  # modes belong to a thread
    with torch.inference_mode(inference), torch.set_grad_enabled(grad):
        return do(item)
