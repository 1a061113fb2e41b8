"""A cache of attention maps and of their tiles, each within a budget of bytes."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

from regard.web.api.params import check_below
from regard.web.api.registry import RecordingRegistry, batch_and_heads
from regard.web.maps.arrays import ArrayCache
from regard.web.server.errors import ApiError
from regard.web.server.workers import Job, WorkerPools

if TYPE_CHECKING:
    from regard.web.maps.pyramid import AttentionMap

MAP_BYTES = 512 * 2**20  # memory of all open maps; the map that was used longest ago is dropped first
TILE_BYTES = 256 * 2**20  # memory of the cached tiles of all maps
IDLE_SECONDS = 20.0  # without a request, after which background work for a map or a recording stops


class HeadKey(NamedTuple):
    """One head of one sequence of one recorded call."""

    id: str
    entry: int
    batch: int
    head: int


class CachedMap:
    """A map, the time of its last request, and the job that makes it exact."""

    def __init__(self, attention_map: AttentionMap) -> None:
        self.map: AttentionMap = attention_map
        self.last_used: float = time.monotonic()
        self.refining: Job[None] | None = None


class MapCache:
    """Maps by head, least recently used first to go; `tiles` are the exact arrays that were computed."""

    def __init__(self, registry: RecordingRegistry, workers: WorkerPools) -> None:
        self.tiles: ArrayCache = ArrayCache(TILE_BYTES)
        self._registry, self._workers = registry, workers
        self._maps: OrderedDict[HeadKey, CachedMap] = OrderedDict()
        self._map_locks: dict[HeadKey, threading.Lock] = {}
        self._lock = threading.Lock()

    def map(self, key: HeadKey) -> AttentionMap:
        """The map of a head. Call it in a worker thread: it may read the head's tensors from a file."""
        return self._get(key).map

    def info(self, key: HeadKey) -> dict[str, Any]:
        """Size and progress of a map. A map that is asked for is made exact in the background."""
        cached = self._get(key)
        with self._lock:
            if not cached.map.exact and cached.refining is None:
                cached.refining = self._start_refining(cached)
        return cached.map.info()

    def _get(self, key: HeadKey) -> CachedMap:
        with self._lock:
            map_lock = self._map_locks.setdefault(key, threading.Lock())
        with map_lock:  # two requests for the same head at once build it once
            cached = self._maps.get(key)
            if cached is None:
                cached = CachedMap(self._build(key))
            with self._lock:
                self._maps[key] = cached
                self._maps.move_to_end(key)
                self._evict()
        cached.last_used = time.monotonic()
        return cached

    def _build(self, key: HeadKey) -> AttentionMap:
        from regard.web.maps.pyramid import AttentionMap  # late: it imports torch

        entry = self._registry.get(key.id).entry(key.entry)
        batch, heads = batch_and_heads(entry.shape)
        return AttentionMap.of_entry(
            entry, check_below(key.batch, batch, "batch"), check_below(key.head, heads, "head")
        )

    def _evict(self) -> None:
        total = sum(cached.map.bytes for cached in self._maps.values())
        while total > MAP_BYTES and len(self._maps) > 1:
            key, oldest = self._maps.popitem(last=False)
            self._map_locks.pop(key, None)
            total -= oldest.map.bytes
            oldest.last_used = 0.0

    def _start_refining(self, cached: CachedMap) -> Job[None] | None:
        def run(job: Job[None]) -> None:
            def cancelled() -> bool:
                return job.cancelled() or time.monotonic() - cached.last_used > IDLE_SECONDS

            try:
                for _ in cached.map.refine(cancelled):
                    pass
            finally:
                cached.refining = None

        try:
            return self._workers.background.submit(run)
        except ApiError:  # the queue is full; the next request tries again
            return None
