"""The ASGI application: one table of all routes, behind the access guard."""

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
from regard.web.api.lessons import LessonRoutes
from regard.web.api.recordings import RecordingRoutes
from regard.web.api.registry import RecordingRegistry
from regard.web.server.errors import ApiError, json_response
from regard.web.server.guard import AccessGuard, ServerAddress
from regard.web.server.page import StaticPage
from regard.web.server.refusals import refusal
from regard.web.server.workers import WorkerPools

Handler = Callable[[Request], Awaitable[Response]]
MAP = "/api/recordings/{id}/maps/{entry}/{batch}/{head}"


class TableRow(NamedTuple):
    """One row of the route table. A GET route also answers HEAD."""

    method: str
    path: str
    handler: Handler


def table(page: StaticPage, registry: RecordingRegistry, workers: WorkerPools, *, lab: bool) -> list[TableRow]:
    """All routes, in the order of docs/formats/wire.md; without `lab` nothing can be recorded."""
    lessons, recordings = LessonRoutes(workers), RecordingRoutes(registry, workers, lab=lab)
    rows = [
        TableRow("GET", "/", page.get_index),
        TableRow("GET", "/assets/{name}", page.get_asset),
        TableRow("GET", "/api/health", health),
        TableRow("GET", "/api/lessons", lessons.get_all),
        TableRow("POST", "/api/lessons/{name}", lessons.show),
        TableRow("GET", "/api/lessons/{name}/train", lessons.train),
        TableRow("GET", "/api/recordings", recordings.get_all),
        TableRow("POST", "/api/recordings", recordings.record),
        TableRow("GET", "/api/recordings/{id}", recordings.get),
        TableRow("GET", "/api/recordings/{id}/profiles", recordings.get_profiles),
        TableRow("GET", "/api/recordings/{id}/thumbs/{entry}/{batch}", recordings.get_thumbnails),
        TableRow("GET", MAP, recordings.get_info),
        TableRow("GET", MAP + "/tiles/{pool}/{level}/{row}/{column}", recordings.get_tile),
        TableRow("GET", MAP + "/peaks/{pool}/{level}/{row}", recordings.get_peaks),
        TableRow("GET", MAP + "/rows/{i}", recordings.get_row),
        TableRow("GET", MAP + "/columns/{j}", recordings.get_column),
        TableRow("GET", MAP + "/top/{i}", recordings.get_top),
    ]
    return rows if lab else [row for row in rows if row.handler != recordings.record]


def build(
    address: ServerAddress, page: StaticPage, registry: RecordingRegistry, workers: WorkerPools, *, lab: bool
) -> ASGIApp:
    """The application behind its access guard."""
    by_path: dict[str, dict[str, Handler]] = {}
    for row in table(page, registry, workers, lab=lab):
        by_path.setdefault(row.path, {})[row.method] = row.handler
    routes = [Route(path, _dispatch(handlers), methods=list(handlers)) for path, handlers in by_path.items()]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _http_error, Exception: _internal_error})
    app.router.redirect_slashes = False
    return AccessGuard(app, address)


def _dispatch(handlers: dict[str, Handler]) -> Handler:
    """One handler for all methods of a path; errors become JSON."""

    async def handle(request: Request) -> Response:
        handler = handlers["GET" if request.method == "HEAD" else request.method]
        try:
            return await handler(request)
        except ApiError as error:
            return error.response()
        except RegardError as error:  # a damaged file, an extra that is not installed
            return json_response({"error": str(error)}, 500)

    return handle


async def health(_: Request) -> Response:
    return json_response({"ok": True})


async def _http_error(request: Request, error: Exception) -> Response:
    """The response where starlette finds no such path or no such method."""
    assert isinstance(error, HTTPException)  # noqa: S101  registered for nothing else
    if error.status_code == 405:
        allowed = sorted((error.headers or {}).get("Allow", "").replace(",", " ").split())
        return json_response({"error": f"{request.method} is not offered here"}, 405, {"allow": ", ".join(allowed)})
    return refusal(request.scope, ApiError(error.status_code, "there is nothing here", error.headers))


async def _internal_error(request: Request, error: Exception) -> Response:
    logging.getLogger("regard.web").error("%s failed", request.url.path, exc_info=error)
    return json_response({"error": "this failed inside regard; the terminal says how"}, 500)
