"""Answers to all questions about recordings, for a browser (HTTP) and for a notebook (widget messages).

Every method runs in a worker thread. Its arguments are numbers from a request that have been parsed, but not yet
compared with the recording.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from regard.errors import ChoiceError
from regard.web.api.map_cache import HeadKey, MapCache
from regard.web.api.params import check_below
from regard.web.api.profiles import ProfileJob
from regard.web.api.registry import RecordingRegistry, batch_and_heads
from regard.web.maps.arrays import TILE, ArrayResult
from regard.web.server.errors import ApiError
from regard.web.server.workers import WorkerPools

POOLS = ("mean", "max")


class RecordingQueries:
    """Answers to every question about the recordings of a registry."""

    def __init__(self, registry: RecordingRegistry, workers: WorkerPools) -> None:
        self.registry: RecordingRegistry = registry
        self.workers: WorkerPools = workers
        self.maps: MapCache = MapCache(registry, workers)
        self._profiles: dict[str, ProfileJob] = {}

    # Whole recordings

    def list(self) -> list[dict[str, Any]]:
        return [registered.summary() for registered in self.registry]

    def metadata(self, id: str) -> dict[str, Any]:  # noqa: A002  as the wire calls it
        return self.registry.get(id).metadata()

    def profiles(self, id: str) -> dict[str, Any]:  # noqa: A002
        """The head statistics, or how much of them is computed."""
        return self.profile_job(id).answer()

    def profile_job(self, id: str) -> ProfileJob:  # noqa: A002
        """The computation of a recording's head statistics, started or resumed."""
        registered = self.registry.get(id)
        job = self._profiles.get(id) or self._profiles.setdefault(id, ProfileJob(registered, self.workers))
        job.resume()
        return job

    def thumbnails(self, id: str, entry: int, batch: int, side: int) -> ArrayResult:  # noqa: A002
        """A small picture of every head of one call, (heads, side, side)."""
        from regard.web.maps.thumbnails import thumbnails

        call = self.registry.get(id).entry(entry)
        check_below(batch, batch_and_heads(call.shape)[0], "batch")
        return self._compute_or_cached((id, entry, batch, side), lambda: thumbnails(call, batch, side))

    # One head

    def info(self, head: HeadKey) -> dict[str, Any]:
        return self.maps.info(head)

    def tile(self, head: HeadKey, pool: str, level: int, row: int, column: int) -> ArrayResult:
        """A tile of a pyramid level, up to (256, 256) pixels."""
        key = (head, pool, level, row, column)
        return self._compute_or_cached(key, lambda: _or_404(self.maps.map(head).tile, pool, level, row, column))

    def peaks(self, head: HeadKey, pool: str, level: int, row: int, skip: int = 0) -> ArrayResult:
        """The largest pixel in each line of a row of tiles, up to (256,), without the first `skip` pixels of it."""
        columns = max(1, -(-self.maps.map(head).m // (TILE << min(level, 32))))
        tiles = [self.tile(head, pool, level, row, column) for column in range(columns)]
        lines = [tile.values[:, 0 if column else skip :] for column, tile in enumerate(tiles)]
        peaks = np.stack([np.fmax.reduce(line, axis=1, initial=0.0) for line in lines]).max(0)
        return ArrayResult(peaks.astype("<f4"), all(tile.exact for tile in tiles))

    def row(self, head: HeadKey, i: int) -> ArrayResult:
        return ArrayResult(_or_404(self.maps.map(head).row, i))

    def column(self, head: HeadKey, j: int) -> ArrayResult:
        return ArrayResult(_or_404(self.maps.map(head).column, j))

    def top(self, head: HeadKey, i: int, k: int) -> dict[str, Any]:
        """The k keys with the largest weights of query i."""
        attention_map = self.maps.map(head)
        keys, weights = _or_404(attention_map.top, i, max(1, min(k, attention_map.m)))
        return {"keys": keys, "weights": weights}

    # Cached arrays

    def cached(self, key: tuple[Any, ...]) -> ArrayResult | None:
        """An exact array that was computed before; reading it needs no worker thread."""
        values = self.maps.tiles.get(key)
        return None if values is None else ArrayResult(values)

    def _compute_or_cached(self, key: tuple[Any, ...], compute: Callable[[], ArrayResult]) -> ArrayResult:
        result = self.cached(key) or compute()
        if result.exact:
            self.maps.tiles.put(key, result.values)
        return result


def check_pool(pool: str) -> str:
    """The pooling itself, "mean" or "max"; 404 for any other."""
    if pool not in POOLS:
        raise ApiError(404, f"tiles are pooled by mean or max, not by {pool[:40]!r}")
    return pool


def _or_404(query: Callable[..., Any], *args: Any) -> Any:
    try:
        return query(*args)
    except ChoiceError as error:  # a level, row or column beyond the map
        raise ApiError(404, str(error)) from error
