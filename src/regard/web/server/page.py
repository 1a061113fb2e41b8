"""The built page: its files are read once, when the server starts, and nothing else can be asked for."""

from __future__ import annotations

import mimetypes
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from regard.web.server.errors import Refusal
from regard.web.server.static_files import STATIC

TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".html": "text/html",
}
MISSING = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>regard</title>
<h1>The page is not built</h1>
<p>The server runs, but src/regard/web/static holds no page. Build it:
cd frontend &amp;&amp; npm ci &amp;&amp; npm run build</p>
"""


@dataclass(frozen=True)
class File:
    body: bytes
    kind: str


class Page:
    """What is in the folder now, by its names there."""

    def __init__(self, folder: Path = STATIC) -> None:
        self.index = _read(folder / "index.html") if (folder / "index.html").is_file() else None
        assets = folder / "assets"
        paths = sorted(path for path in assets.iterdir() if path.is_file()) if assets.is_dir() else []
        self.assets = {path.name: _read(path) for path in paths}

    async def show(self, request: Request) -> Response:
        if self.index is None:
            return Response(MISSING, 503, {"cache-control": "no-store"}, "text/html; charset=utf-8")
        return Response(self.index.body, headers={"cache-control": "no-store"}, media_type="text/html; charset=utf-8")

    async def asset(self, request: Request) -> Response:
        file = self.assets.get(request.path_params["name"])
        if file is None:
            raise Refusal(404, "the page has no such file")
        # Their names carry a hash of what is in them.
        return Response(
            file.body, headers={"cache-control": "private, max-age=31536000, immutable"}, media_type=file.kind
        )


def _read(path: Path) -> File:
    kind = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return File(path.read_bytes(), f"{kind}; charset=utf-8" if kind.startswith("text/") else kind)
