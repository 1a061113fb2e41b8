"""Everything that can be asked, as one table."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from regard.errors import RegardError
from regard.web.api.lessons import Lessons
from regard.web.api.recordings import Recordings
from regard.web.api.registry import Shelf
from regard.web.server.errors import Refusal, as_json
from regard.web.server.guard import Door, Guard
from regard.web.server.page import Page
from regard.web.server.workers import Workshop

Handler = Callable[[Request], Awaitable[Response]]
MAP = "/api/recordings/{id}/maps/{entry}/{batch}/{head}"


class Row(NamedTuple):
    """One line of the table. HEAD goes wherever GET does."""

    method: str
    path: str
    handler: Handler


def table(page: Page, shelf: Shelf, work: Workshop, *, lab: bool) -> list[Row]:
    lessons, recordings = Lessons(work), Recordings(shelf, work, lab=lab)
    rows = [
        Row("GET", "/", page.show),
        Row("GET", "/assets/{name}", page.asset),
        Row("GET", "/api/health", health),
        Row("GET", "/api/lessons", lessons.all),
        Row("POST", "/api/lessons/{name}", lessons.show),
        Row("GET", "/api/lessons/{name}/train", lessons.train),
        Row("GET", "/api/recordings", recordings.all),
        Row("POST", "/api/recordings", recordings.record),
        Row("GET", "/api/recordings/{id}", recordings.one),
        Row("GET", "/api/recordings/{id}/profiles", recordings.profiles),
        Row("GET", "/api/recordings/{id}/thumbs/{entry}/{batch}", recordings.thumbs),
        Row("GET", MAP, recordings.info),
        Row("GET", MAP + "/tiles/{pool}/{level}/{row}/{column}", recordings.tile),
        Row("GET", MAP + "/peaks/{pool}/{level}/{row}", recordings.peaks),
        Row("GET", MAP + "/rows/{i}", recordings.row),
        Row("GET", MAP + "/columns/{j}", recordings.column),
        Row("GET", MAP + "/top/{i}", recordings.top),
    ]
    return rows if lab else [row for row in rows if row.handler != recordings.record]


def build(door: Door, page: Page, shelf: Shelf, work: Workshop, *, lab: bool) -> ASGIApp:
    """The application behind its guard."""
    found: dict[str, dict[str, Handler]] = {}
    for row in table(page, shelf, work, lab=lab):
        found.setdefault(row.path, {})[row.method] = row.handler
    routes = [Route(path, _by_method(handlers), methods=list(handlers)) for path, handlers in found.items()]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _http, Exception: _failed})
    app.router.redirect_slashes = False
    return Guard(app, door)


def _by_method(handlers: dict[str, Handler]) -> Handler:
    async def handle(request: Request) -> Response:
        handler = handlers["GET" if request.method == "HEAD" else request.method]
        try:
            return await handler(request)
        except Refusal as refusal:
            return refusal.response()
        except RegardError as error:  # a damaged file, an extra that is not installed
            return as_json({"error": str(error)}, 500)

    return handle


async def health(_: Request) -> Response:
    return as_json({"ok": True})


async def _http(request: Request, error: Exception) -> Response:
    """What starlette itself refuses: no such path, no such method."""
    assert isinstance(error, HTTPException)  # noqa: S101  registered for nothing else
    if error.status_code == 405:
        allowed = sorted((error.headers or {}).get("Allow", "").replace(",", " ").split())
        return as_json({"error": f"{request.method} is not offered here"}, 405, {"allow": ", ".join(allowed)})
    return as_json({"error": "there is nothing here"}, error.status_code, error.headers)


async def _failed(request: Request, error: Exception) -> Response:
    logging.getLogger("regard.web").error("%s failed", request.url.path, exc_info=error)
    return as_json({"error": "this failed inside regard; the terminal says how"}, 500)
