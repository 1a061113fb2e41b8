"""The lab and the viewer in the browser: a small server, the maps it shows, and the built page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["serve"]


def serve(
    files: Sequence[Path] = (),
    *,
    lab: bool,
    host: str = "127.0.0.1",
    port: int | None = None,
    announce: Callable[[str], None] = print,
    open_browser: bool = False,
) -> None:
    """Serve the page until Ctrl-C; `announce` is called with the full URL as soon as the server answers.

    files: recordings to show. lab: True lets the page make new ones. port: None takes 8765, or any other if that is
    taken. open_browser: True opens the page, through a file that only this user can read.
    """
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as missing:
        raise MissingExtraError(
            "the lab and the viewer need starlette and uvicorn: pip install 'regard[web]'"
        ) from missing
    from regard.web.serve import run

    run(files, lab=lab, host=host, port=port, announce=announce, open_browser=open_browser)
