"""Recordings over HTTP."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from regard.web._refusal import Refusal, as_json
from regard.web._shelf import Shelf
from regard.web._work import Workshop, answer


class Recordings:
    def __init__(self, shelf: Shelf, work: Workshop) -> None:
        self.shelf, self.work = shelf, work

    async def all(self, request: Request) -> Response:
        return as_json(await answer(request, self.work.quick, lambda _: [one.line() for one in self.shelf]))

    async def one(self, request: Request) -> Response:
        shelved = self.shelf.get(request.path_params["id"])
        return as_json(await answer(request, self.work.quick, lambda _: shelved.whole()))

    async def record(self, request: Request) -> Response:
        raise Refusal(503, "not yet")

    profiles = thumbs = info = tile = row = column = top = record
