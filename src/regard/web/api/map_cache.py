"""The maps that somebody looks at, and their tiles, within budgets of bytes."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import Any, NamedTuple

from regard.web.api.params import below
from regard.web.api.registry import Shelf, lead
from regard.web.maps.cache import Cache
from regard.web.server.errors import Refusal
from regard.web.server.workers import Job, Workshop

MAPS = 512 * 2**20
TILES = 256 * 2**20
LOOKED_AWAY = 20.0  # seconds without a question, after which a map is not made exact any further


class Place(NamedTuple):
    """One head of one sequence of one call."""

    id: str
    entry: int
    batch: int
    head: int


class Opened:
    """A map, when it was last asked, and whether somebody makes it exact."""

    def __init__(self, found: Any) -> None:
        self.map, self.asked = found, time.monotonic()
        self.refining: Job[None] | None = None


class Atlas:
    def __init__(self, shelf: Shelf, work: Workshop) -> None:
        self.tiles = Cache(TILES)
        self._shelf, self._work = shelf, work
        self._opened: OrderedDict[Place, Opened] = OrderedDict()
        self._locks: dict[Place, threading.Lock] = {}
        self._lock = threading.Lock()

    def map(self, place: Place) -> Any:
        """Called in a thread: the head's tensors are read and its rows tried."""
        return self._open(place).map

    def info(self, place: Place) -> dict[str, Any]:
        """What is known of a map. Whoever asks looks at it, so it is made exact."""
        opened = self._open(place)
        with self._lock:
            if not opened.map.exact and opened.refining is None:
                opened.refining = self._begin(opened)
        return opened.map.info()

    def _open(self, place: Place) -> Opened:
        with self._lock:
            own = self._locks.setdefault(place, threading.Lock())
        with own:  # two who ask for the same head at once make it once
            opened = self._opened.get(place)
            if opened is None:
                opened = Opened(self._make(place))
            with self._lock:
                self._opened[place] = opened
                self._opened.move_to_end(place)
                self._make_room()
        opened.asked = time.monotonic()
        return opened

    def _make(self, place: Place) -> Any:
        from regard.web.maps.pyramid import Map

        entry = self._shelf.get(place.id).entry(place.entry)
        batch, heads = lead(entry.shape)
        return Map.of_entry(entry, below(place.batch, batch, "batch"), below(place.head, heads, "head"))

    def _make_room(self) -> None:
        total = sum(opened.map.bytes for opened in self._opened.values())
        while total > MAPS and len(self._opened) > 1:
            place, old = self._opened.popitem(last=False)
            self._locks.pop(place, None)
            total -= old.map.bytes
            old.asked = 0.0

    def _begin(self, opened: Opened) -> Job[None] | None:
        def run(job: Job[None]) -> None:
            def unwanted() -> bool:
                return job.cancelled() or time.monotonic() - opened.asked > LOOKED_AWAY

            try:
                for _ in opened.map.refine(unwanted):
                    pass
            finally:
                opened.refining = None

        try:
            return self._work.behind.start(run)
        except Refusal:  # asked again, it tries again
            return None
