"""Arrays as the API sends them, and a cache of them within a budget of bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import NamedTuple

import numpy as np

TILE = 256  # pixels of a tile's side


class ArrayResult(NamedTuple):
    """An array of float32, and False if it is an estimate from sampled rows."""

    values: np.ndarray
    exact: bool = True


class ArrayCache:
    """Least recently used cache of arrays, for many threads. An array above the whole budget is not kept.

    >>> import numpy as np
    >>> cache = ArrayCache(budget=8)
    >>> cache.put("one", np.zeros(1, "<f4")); cache.put("two", np.ones(1, "<f4"))
    >>> cache.get("one"), cache.bytes
    (array([0.], dtype=float32), 8)
    >>> cache.put("three", np.ones(1, "<f4"))
    >>> cache.get("two") is None
    True
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._arrays: OrderedDict[Hashable, np.ndarray] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    @property
    def bytes(self) -> int:
        """Bytes of all arrays in the cache."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._arrays)

    def get(self, key: Hashable) -> np.ndarray | None:
        """Return an array and mark it as the most recently used; None if it is not there."""
        with self._lock:
            array = self._arrays.get(key)
            if array is not None:
                self._arrays.move_to_end(key)
            return array

    def put(self, key: Hashable, array: np.ndarray) -> None:
        """Store an array and drop the least recently used ones until the budget is kept."""
        if array.base is not None:
            array = array.copy()  # a view would keep alive more than is counted
        with self._lock:
            self._drop(key)
            if array.nbytes > self.budget:
                return
            self._arrays[key] = array
            self._bytes += array.nbytes
            while self._bytes > self.budget:
                self._drop(next(iter(self._arrays)))

    def clear(self) -> None:
        """Drop all arrays."""
        with self._lock:
            self._arrays.clear()
            self._bytes = 0

    def _drop(self, key: Hashable) -> None:
        dropped = self._arrays.pop(key, None)
        if dropped is not None:
            self._bytes -= dropped.nbytes
