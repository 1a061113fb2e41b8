"""Recordings over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from regard.errors import ChoiceError
from regard.web import _recorder
from regard.web._atlas import Atlas, Place
from regard.web._events import stream
from regard.web._numbers import below, in_path, in_query
from regard.web._profiles import Profiles
from regard.web._refusal import Refusal, as_json, read_json
from regard.web._shelf import Shelf, lead
from regard.web._work import Job, Workshop, answer

KEPT = "private, max-age=86400, immutable"  # an id is never given to another recording
AT_ONCE = 0.8  # seconds for which an answer that takes longer is waited for


class Recordings:
    def __init__(self, shelf: Shelf, work: Workshop) -> None:
        self.shelf, self.work = shelf, work
        self.atlas = Atlas(shelf, work)
        self._profiles: dict[str, Profiles] = {}

    # Whole recordings

    async def all(self, request: Request) -> Response:
        return as_json(await answer(request, self.work, lambda _: [one.line() for one in self.shelf]))

    async def one(self, request: Request) -> Response:
        shelved = self.shelf.get(request.path_params["id"])
        return as_json(await answer(request, self.work, lambda _: shelved.whole()))

    async def record(self, request: Request) -> Response:
        text, model = _recorder.check(read_json(await request.body()))
        return await stream(request, self.work.long, lambda job: _recorder.events(self.shelf, text, model, job))

    async def profiles(self, request: Request) -> Response:
        shelved = self.shelf.get(request.path_params["id"])

        def run(_: Job[Any]) -> Profiles:
            known = self._profiles.get(shelved.id)
            found = known or self._profiles.setdefault(shelved.id, Profiles(shelved, self.work))
            found.go_on()
            return found

        found = await answer(request, self.work, run)
        await found.wait(AT_ONCE)
        if not found.ready:
            return as_json({"progress": found.progress}, 202, {"retry-after": "1"})
        return as_json({"progress": 1.0, "rows": found.rows()})

    async def thumbs(self, request: Request) -> Response:
        shelved = self.shelf.get(request.path_params["id"])
        number, batch = in_path(request, "entry", "batch")
        side = in_query(request, "side", 64, 8, 256)
        entry = shelved.entry(number)
        below(batch, lead(entry.shape)[0], "batch")

        key = (shelved.id, number, batch, side)
        kept = self.atlas.tiles.get(key)
        if kept is not None:
            return _numbers(kept, exact=True)

        def run(_: Job[Any]) -> Any:
            from regard.web._thumbs import thumbs

            return thumbs(entry, batch, side)

        values, exact = await answer(request, self.work, run)
        if exact:
            self.atlas.tiles.put(key, values)
        return _numbers(values, exact=exact)

    # One head

    async def info(self, request: Request) -> Response:
        place = self._place(request)
        return as_json(await answer(request, self.work, lambda _: self.atlas.info(place)))

    async def tile(self, request: Request) -> Response:
        place, pool = self._place(request), request.path_params["pool"]
        level, row, column = in_path(request, "level", "row", "column")
        if pool not in ("mean", "max"):
            raise Refusal(404, f"tiles are pooled by mean or max, not by {pool[:40]!r}")
        key = (place, pool, level, row, column)
        kept = self.atlas.tiles.get(key)
        if kept is not None:
            return _numbers(kept, exact=True)

        def run(_: Job[Any]) -> Any:
            return self.atlas.map(place).tile(pool, level, row, column)

        values, exact = await self._ask(request, run)
        if exact:
            self.atlas.tiles.put(key, values)
        return _numbers(values, exact=exact)

    async def row(self, request: Request) -> Response:
        place, (i,) = self._place(request), in_path(request, "i")
        return _numbers(await self._ask(request, lambda _: self.atlas.map(place).row(i)), exact=True)

    async def column(self, request: Request) -> Response:
        place, (j,) = self._place(request), in_path(request, "j")
        return _numbers(await self._ask(request, lambda _: self.atlas.map(place).column(j)), exact=True)

    async def top(self, request: Request) -> Response:
        place, (i,) = self._place(request), in_path(request, "i")
        k = in_query(request, "k", 8, 1, 1000)

        def run(_: Job[Any]) -> dict[str, Any]:
            found = self.atlas.map(place)
            keys, weights = found.top(i, max(1, min(k, found.m)))
            return {"keys": keys, "weights": weights}

        return as_json(await self._ask(request, run))

    def _place(self, request: Request) -> Place:
        entry, batch, head = in_path(request, "entry", "batch", "head")
        return Place(self.shelf.get(request.path_params["id"]).id, entry, batch, head)

    async def _ask(self, request: Request, run: Callable[[Job[Any]], Any]) -> Any:
        try:
            return await answer(request, self.work, run)
        except ChoiceError as error:  # a level, row or column beyond the map
            raise Refusal(404, str(error)) from error


def _numbers(values: np.ndarray, *, exact: bool) -> Response:
    """float32, lowest byte first, row by row."""
    plain = np.ascontiguousarray(values, "<f4")
    headers = {
        "regard-shape": ",".join(str(length) for length in plain.shape),
        "regard-exact": "yes" if exact else "no",
        "cache-control": KEPT if exact else "no-store",
    }
    body: Any = plain
    return Response(memoryview(body).cast("B") if plain.size else b"", 200, headers, "application/octet-stream")
