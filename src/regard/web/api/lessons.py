"""Routes of the lessons; what a lesson computes is in `regard.lab.pages`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from regard.errors import RegardError
from regard.web.server.errors import ApiError, json_response, parse_json_object
from regard.web.server.events import event_stream
from regard.web.server.priority import GATE
from regard.web.server.workers import Job, WorkerPools, run_in_worker

T = TypeVar("T")


class LessonRoutes:
    """Handlers of /api/lessons."""

    def __init__(self, workers: WorkerPools) -> None:
        self.workers = workers

    async def get_all(self, request: Request) -> Response:
        def run(_: Job[Any]) -> list[dict[str, Any]]:
            return [{"name": page.name, "state": page.default} for page in _pages().values()]

        return json_response(await run_in_worker(request, self.workers, run))

    async def show(self, request: Request) -> Response:
        body = parse_json_object(await request.body())

        def run(_: Job[Any]) -> dict[str, Any]:
            page = _page(request)
            state = page.read(body)
            return {"state": page.write(state), "shown": page.show(state), "code": page.code(state)}

        return json_response(await self._run(request, run))

    async def train(self, request: Request) -> Response:
        states = request.query_params.getlist("state")
        if len(states) > 1:
            raise ApiError(400, f"one state is asked for, and {len(states)} came")
        body = parse_json_object(states[0].encode("utf-8", "replace")) if states else {}

        def read(_: Job[Any]) -> Any:
            page = _page(request)
            if page.train is None:
                raise ApiError(404, f"nothing is trained in the lesson {page.name}")
            return page.train, page.read(body)

        train, state = await self._run(request, read)

        def events(_: Job[None]) -> Iterator[dict[str, Any]]:
            for event in train(state):
                yield event
                GATE.pause()

        return await event_stream(request, self.workers.long, events)

    async def _run(self, request: Request, function: Callable[[Job[T]], T]) -> T:
        """The result of `function` in a worker thread; 422 for a state that is well-formed but not possible."""
        try:
            return await run_in_worker(request, self.workers, function)
        except RegardError as error:
            raise ApiError(422, str(error), kind=type(error).__name__) from error


def _pages() -> dict[str, Any]:
    from regard.lab.pages import PAGES  # late: it imports torch

    return dict(PAGES)


def _page(request: Request) -> Any:
    pages, name = _pages(), request.path_params["name"]
    if name not in pages:
        raise ApiError(404, f"there is no lesson {name[:40]!r}; there are {', '.join(pages)}")
    return pages[name]
