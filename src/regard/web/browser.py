"""Open the page in a browser without showing the token to other users of the machine.

Command lines are public: every user can list them. So the browser is given the name of a file that only its owner can
read, and the file leads to the address with the token.
"""

from __future__ import annotations

import html
import os
import shutil
import tempfile
import webbrowser
from pathlib import Path
from types import TracebackType

REDIRECT = """<!doctype html><html><head><meta charset="utf-8"><title>regard</title>
<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url={url}"></head>
<body><p><a href="{url}">regard</a></p></body></html>
"""


class RedirectFile:
    """A file that leads a browser to an address, readable by its owner alone; it is gone when the block ends."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def __enter__(self) -> RedirectFile:  # noqa: PYI034  run-time checks of types do not know Self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def open(self, url: str) -> None:
        """Write the file and let the browser open it."""
        webbrowser.open(self.write(url).as_uri())

    def write(self, url: str) -> Path:
        """Write the file into a folder of its own and return its path."""
        self._folder = Path(tempfile.mkdtemp(prefix="regard-", dir=_runtime_folder()))  # with mode 0700
        path = self._folder / "open.html"
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(REDIRECT.format(url=html.escape(url)))
        return path


def _runtime_folder() -> str | None:
    """Return the user's folder for files of running programs; None, for the system's temporary one, without it."""
    named = os.environ.get("XDG_RUNTIME_DIR")
    return named if named and Path(named).is_absolute() and os.access(named, os.W_OK) else None
