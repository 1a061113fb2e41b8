"""Arrays in memory within a budget of bytes, the one used longest ago leaving first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock

import numpy as np


class Cache:
    """Arrays by key, for many threads. One that is larger than the whole budget is not kept.

    >>> import numpy as np
    >>> cache = Cache(budget=8)
    >>> cache.put("one", np.zeros(1, "<f4")); cache.put("two", np.ones(1, "<f4"))
    >>> cache.get("one"), cache.bytes
    (array([0.], dtype=float32), 8)
    >>> cache.put("three", np.ones(1, "<f4"))
    >>> cache.get("two") is None
    True
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._kept: OrderedDict[Hashable, np.ndarray] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    @property
    def bytes(self) -> int:
        return self._bytes

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> np.ndarray | None:
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: Hashable, array: np.ndarray) -> None:
        if array.base is not None:
            array = array.copy()  # a view would keep alive more than is counted
        with self._lock:
            self._drop(key)
            if array.nbytes > self.budget:
                return
            self._kept[key] = array
            self._bytes += array.nbytes
            while self._bytes > self.budget:
                self._drop(next(iter(self._kept)))

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()
            self._bytes = 0

    def _drop(self, key: Hashable) -> None:
        gone = self._kept.pop(key, None)
        if gone is not None:
            self._bytes -= gone.nbytes
