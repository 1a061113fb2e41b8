"""The lessons over HTTP: what they compute is in `regard.lab.pages`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from regard.errors import RegardError
from regard.web.server.errors import Refusal, as_json, read_json
from regard.web.server.events import stream
from regard.web.server.priority import TURNS
from regard.web.server.workers import Job, Workshop, answer


class Lessons:
    def __init__(self, work: Workshop) -> None:
        self.work = work

    async def all(self, request: Request) -> Response:
        def run(_: Job[Any]) -> list[dict[str, Any]]:
            return [{"name": page.name, "state": page.default} for page in _pages().values()]

        return as_json(await answer(request, self.work, run))

    async def show(self, request: Request) -> Response:
        given = read_json(await request.body())

        def run(_: Job[Any]) -> dict[str, Any]:
            page = _page(request)
            state = page.read(given)
            return {"state": page.write(state), "shown": page.show(state), "code": page.code(state)}

        return as_json(await _sensible(request, self.work, run))

    async def train(self, request: Request) -> Response:
        asked = request.query_params.getlist("state")
        if len(asked) > 1:
            raise Refusal(400, f"one state is asked for, and {len(asked)} came")
        given = read_json(asked[0].encode("utf-8", "replace")) if asked else {}

        def read(_: Job[Any]) -> Any:
            page = _page(request)
            if page.train is None:
                raise Refusal(404, f"nothing is trained in the lesson {page.name}")
            return page.train, page.read(given)

        train, state = await _sensible(request, self.work, read)

        def events(_: Job[None]) -> Iterator[dict[str, Any]]:
            for event in train(state):
                yield event
                TURNS.give_way()

        return await stream(request, self.work.long, events)


async def _sensible(request: Request, work: Workshop, run: Any) -> Any:
    try:
        return await answer(request, work, run)
    except RegardError as error:  # well said, and yet not possible
        raise Refusal(422, str(error)) from error


def _pages() -> dict[str, Any]:
    from regard.lab.pages import PAGES  # late: with torch

    return dict(PAGES)


def _page(request: Request) -> Any:
    pages, name = _pages(), request.path_params["name"]
    if name not in pages:
        raise Refusal(404, f"there is no lesson {name[:40]!r}; there are {', '.join(pages)}")
    return pages[name]
