"""Routes of the recordings: parameters are read from the address, and the answer is computed in a worker thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from regard.web.api import recorder
from regard.web.api.map_cache import HeadKey
from regard.web.api.params import path_integers, query_integer
from regard.web.api.query import RecordingQueries, check_pool
from regard.web.api.registry import RecordingRegistry
from regard.web.maps.arrays import ArrayResult
from regard.web.server.errors import json_response, parse_json_object
from regard.web.server.events import event_stream
from regard.web.server.workers import WorkerPools, run_in_worker

CACHE_FOREVER = "private, max-age=86400, immutable"  # an id is never given to another recording
PROFILE_WAIT = 0.8  # seconds to wait for profiles before the progress is sent instead


class RecordingRoutes:
    """Handlers of /api/recordings."""

    def __init__(self, registry: RecordingRegistry, workers: WorkerPools, *, lab: bool) -> None:
        self.registry: RecordingRegistry = registry
        self.workers: WorkerPools = workers
        self._allow = {"allow": "GET, HEAD, POST" if lab else "GET, HEAD"}  # tells the page whether it may record
        self.queries: RecordingQueries = RecordingQueries(registry, workers)

    # Whole recordings

    async def get_all(self, request: Request) -> Response:
        return json_response(await self._run(request, self.queries.list), headers=self._allow)

    async def get(self, request: Request) -> Response:
        return json_response(await self._run(request, self.queries.metadata, self._id(request)))

    async def record(self, request: Request) -> Response:
        text, model = recorder.parse_request(parse_json_object(await request.body()))
        return await event_stream(
            request, self.workers.long, lambda job: recorder.events(self.registry, text, model, job)
        )

    async def get_profiles(self, request: Request) -> Response:
        job = await self._run(request, self.queries.profile_job, request.path_params["id"])
        await job.wait(PROFILE_WAIT)
        return json_response(job.answer()) if job.ready else json_response(job.answer(), 202, {"retry-after": "1"})

    async def get_thumbnails(self, request: Request) -> Response:
        entry, batch = path_integers(request, "entry", "batch")
        key = (self._id(request), entry, batch, query_integer(request, "side", 64, 8, 256))
        return await self._cached_array(request, self.queries.thumbnails, key)

    # One head

    async def get_info(self, request: Request) -> Response:
        return json_response(await self._run(request, self.queries.info, self._head(request)))

    async def get_tile(self, request: Request) -> Response:
        head, pool = self._head(request), check_pool(request.path_params["pool"])
        key = (head, pool, *path_integers(request, "level", "row", "column"))
        return await self._cached_array(request, self.queries.tile, key)

    async def get_peaks(self, request: Request) -> Response:
        head, pool = self._head(request), check_pool(request.path_params["pool"])
        level, row = path_integers(request, "level", "row")
        return await self._array(
            request, self.queries.peaks, head, pool, level, row, query_integer(request, "skip", 0, 0, 1)
        )

    async def get_row(self, request: Request) -> Response:
        return await self._array(request, self.queries.row, self._head(request), *path_integers(request, "i"))

    async def get_column(self, request: Request) -> Response:
        return await self._array(request, self.queries.column, self._head(request), *path_integers(request, "j"))

    async def get_top(self, request: Request) -> Response:
        head, (i,) = self._head(request), path_integers(request, "i")
        k = query_integer(request, "k", 8, 1, 1000)
        return json_response(await self._run(request, self.queries.top, head, i, k))

    def _id(self, request: Request) -> str:
        return self.registry.get(request.path_params["id"]).id

    def _head(self, request: Request) -> HeadKey:
        entry, batch, head = path_integers(request, "entry", "batch", "head")
        return HeadKey(self._id(request), entry, batch, head)

    async def _cached_array(
        self, request: Request, query: Callable[..., ArrayResult], key: tuple[Any, ...]
    ) -> Response:
        """The array of `query(*key)`; one that was computed before needs no worker thread."""
        cached = self.queries.cached(key)
        return array_response(cached) if cached is not None else await self._array(request, query, *key)

    async def _array(self, request: Request, query: Callable[..., ArrayResult], *args: Any) -> Response:
        return array_response(await self._run(request, query, *args))

    async def _run(self, request: Request, query: Callable[..., Any], *args: Any) -> Any:
        return await run_in_worker(request, self.workers, lambda _: query(*args))


def array_response(result: ArrayResult) -> Response:
    """An array as float32, little-endian, row by row; its shape and whether it is exact are headers."""
    values = np.ascontiguousarray(result.values, "<f4")
    headers = {
        "regard-shape": ",".join(str(length) for length in values.shape),
        "regard-exact": "yes" if result.exact else "no",
        "cache-control": CACHE_FOREVER if result.exact else "no-store",
    }
    body: Any = values
    return Response(memoryview(body).cast("B") if values.size else b"", 200, headers, "application/octet-stream")
