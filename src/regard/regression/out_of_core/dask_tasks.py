"""Tasks of Dask: a call somewhere, a value that many calls share, a tree of merges."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, TypeVar

import torch

from regard.errors import DataError

FAN_IN = 8  # states merged by one task
Delayed = Any  # dask's classes are untyped
Part = TypeVar("Part")


def is_dask(x: object) -> bool:
    """Whether `x` is a collection of Dask; nobody can have one without having imported it."""
    return "dask" in sys.modules and sys.modules["dask"].is_dask_collection(x)


def task(function: Callable[..., Any], *arguments: Any) -> Delayed:
    """One call, somewhere. A new name each time: nothing is hashed, and a lost result is simply computed again."""
    from dask.delayed import delayed

    return delayed(alone, pure=False, traverse=False)(function, *arguments)


def shared(value: Any) -> Delayed:
    """A value that many tasks need: it stands once in the graph, so that no death of a worker loses it."""
    from dask.delayed import delayed

    return delayed(value, pure=False, traverse=False)


def tree(parts: Sequence[Delayed], merge: Callable[[Part, Part], Part]) -> Delayed:
    """All parts in one, `FAN_IN` at a time, always in the same order: the answer is the same to the last bit."""
    if not parts:
        raise DataError("there is no data: at least one chunk is needed")
    level = list(parts)
    while len(level) > 1:
        starts = range(0, len(level), FAN_IN)
        level = [task(_merged, merge, *level[start : start + FAN_IN]) for start in starts]
    return level[0]


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run with one thread of torch: Dask fills the cores itself."""
    with _one_thread():
        return function(*arguments)


_inside, _lock = [0, 1], threading.Lock()  # tasks that run in this process, and the threads torch had before them


@contextmanager
def _one_thread() -> Iterator[None]:
    with _lock:
        if not _inside[0]:
            _inside[1] = torch.get_num_threads()
        _inside[0] += 1
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            _inside[0] -= 1
            if not _inside[0]:
                torch.set_num_threads(_inside[1])


def _merged(merge: Callable[[Part, Part], Part], *parts: Part) -> Part:
    return reduce(merge, parts)
