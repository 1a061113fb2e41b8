"""Recordings over HTTP: what was asked is read from the address, and answered in a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from regard.web.api import recorder
from regard.web.api.map_cache import Place
from regard.web.api.params import in_path, in_query
from regard.web.api.query import Answers, Numbers, pooled
from regard.web.api.registry import Shelf
from regard.web.server.errors import as_json, read_json
from regard.web.server.events import stream
from regard.web.server.workers import Workshop, answer

KEPT = "private, max-age=86400, immutable"  # an id is never given to another recording
AT_ONCE = 0.8  # seconds for which an answer that takes longer is waited for


class Recordings:
    def __init__(self, shelf: Shelf, work: Workshop, *, lab: bool) -> None:
        self.shelf, self.work = shelf, work
        self._allow = {"allow": "GET, HEAD, POST" if lab else "GET, HEAD"}  # whether a page may offer to record
        self.answers = Answers(shelf, work)

    # Whole recordings

    async def all(self, request: Request) -> Response:
        return as_json(await self._ask(request, self.answers.list), headers=self._allow)

    async def one(self, request: Request) -> Response:
        self.shelf.get(request.path_params["id"])
        return as_json(await self._ask(request, self.answers.meta, request.path_params["id"]))

    async def record(self, request: Request) -> Response:
        text, model = recorder.check(read_json(await request.body()))
        return await stream(request, self.work.long, lambda job: recorder.events(self.shelf, text, model, job))

    async def profiles(self, request: Request) -> Response:
        found = await self._ask(request, self.answers.measuring, request.path_params["id"])
        await found.wait(AT_ONCE)
        return as_json(found.answer()) if found.ready else as_json(found.answer(), 202, {"retry-after": "1"})

    async def thumbs(self, request: Request) -> Response:
        entry, batch = in_path(request, "entry", "batch")
        self.shelf.get(request.path_params["id"])
        asked = (request.path_params["id"], entry, batch, in_query(request, "side", 64, 8, 256))
        kept = self.answers.kept(asked)
        return _numbers(kept) if kept is not None else await self._numbers(request, self.answers.thumbs, *asked)

    # One head

    async def info(self, request: Request) -> Response:
        return as_json(await self._ask(request, self.answers.info, self._place(request)))

    async def tile(self, request: Request) -> Response:
        place, pool = self._place(request), pooled(request.path_params["pool"])
        asked = (place, pool, *in_path(request, "level", "row", "column"))
        kept = self.answers.kept(asked)
        return _numbers(kept) if kept is not None else await self._numbers(request, self.answers.tile, *asked)

    async def peaks(self, request: Request) -> Response:
        place, pool = self._place(request), pooled(request.path_params["pool"])
        return await self._numbers(request, self.answers.peaks, place, pool, *in_path(request, "level", "row"))

    async def row(self, request: Request) -> Response:
        return await self._numbers(request, self.answers.row, self._place(request), *in_path(request, "i"))

    async def column(self, request: Request) -> Response:
        return await self._numbers(request, self.answers.column, self._place(request), *in_path(request, "j"))

    async def top(self, request: Request) -> Response:
        place, (i,) = self._place(request), in_path(request, "i")
        return as_json(await self._ask(request, self.answers.top, place, i, in_query(request, "k", 8, 1, 1000)))

    def _place(self, request: Request) -> Place:
        entry, batch, head = in_path(request, "entry", "batch", "head")
        return Place(self.shelf.get(request.path_params["id"]).id, entry, batch, head)

    async def _numbers(self, request: Request, ask: Callable[..., Numbers], *given: Any) -> Response:
        return _numbers(await self._ask(request, ask, *given))

    async def _ask(self, request: Request, ask: Callable[..., Any], *given: Any) -> Any:
        return await answer(request, self.work, lambda _: ask(*given))


def _numbers(found: Numbers) -> Response:
    """float32, lowest byte first, row by row."""
    plain = np.ascontiguousarray(found.values, "<f4")
    headers = {
        "regard-shape": ",".join(str(length) for length in plain.shape),
        "regard-exact": "yes" if found.exact else "no",
        "cache-control": KEPT if found.exact else "no-store",
    }
    body: Any = plain
    return Response(memoryview(body).cast("B") if plain.size else b"", 200, headers, "application/octet-stream")
