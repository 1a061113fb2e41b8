"""The built page: its files are read once, when the server starts, and no other file is served."""

from __future__ import annotations

import mimetypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from regard.web.server.errors import ApiError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

STATIC_FOLDER = Path(__file__).parents[1] / "static"  # built from frontend/
MEDIA_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".html": "text/html",
}
NOT_BUILT = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>regard</title>
<h1>The page is not built</h1>
<p>The server runs, but src/regard/web/static holds no page. Build it:
cd frontend &amp;&amp; npm ci &amp;&amp; npm run build</p>
"""


@dataclass(frozen=True)
class StaticFile:
    body: bytes
    media_type: str


class StaticPage:
    """The index and the assets of a folder, as they were when this object was made."""

    def __init__(self, folder: Path = STATIC_FOLDER) -> None:
        self.index: StaticFile | None = _read(folder / "index.html") if (folder / "index.html").is_file() else None
        assets = folder / "assets"
        paths = sorted(path for path in assets.iterdir() if path.is_file()) if assets.is_dir() else []
        self.assets: dict[str, StaticFile] = {path.name: _read(path) for path in paths}

    async def get_index(self, _: Request) -> Response:
        from starlette.responses import Response

        body, status = (NOT_BUILT, 503) if self.index is None else (self.index.body, 200)
        return Response(body, status, {"cache-control": "no-store"}, "text/html; charset=utf-8")

    async def get_asset(self, request: Request) -> Response:
        from starlette.responses import Response

        file = self.assets.get(request.path_params["name"])
        if file is None:
            raise ApiError(404, "the page has no such file")
        # A file's name carries a hash of its content, so a browser may keep it for ever.
        headers = {"cache-control": "private, max-age=31536000, immutable"}
        return Response(file.body, headers=headers, media_type=file.media_type)


def _read(path: Path) -> StaticFile:
    media_type = MEDIA_TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    charset = "; charset=utf-8" if media_type.startswith("text/") else ""
    return StaticFile(path.read_bytes(), media_type + charset)
