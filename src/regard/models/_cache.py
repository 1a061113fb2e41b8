"""What is converted once and kept in the user's cache folder."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def cache_folder() -> Path:
    """Where converted models are kept: `regard` below XDG_CACHE_HOME, or below the system's own place for caches."""
    named = os.environ.get("XDG_CACHE_HOME")
    if named and Path(named).is_absolute():  # the standard says that a relative one counts as not set
        return Path(named) / "regard"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "regard"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "regard"
    return Path.home() / ".cache" / "regard"


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """The folder `name` of the cache, which `make` fills the first time. It is there as a whole or not at all.

    Two processes that make it at once both succeed: the first to finish names the folder, the other drops its own.
    """
    target = cache_folder() / name
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    spare = Path(tempfile.mkdtemp(prefix=f".{name}.", suffix=".part", dir=target.parent))
    try:
        make(spare)
        for path in spare.iterdir():
            _reach_disk(path)
        with suppress(OSError):  # somebody was faster: theirs is as good
            spare.rename(target)
        if not target.is_dir():
            spare.rename(target)  # it was something else, then: say what
    finally:
        shutil.rmtree(spare, ignore_errors=True)
    return target


def _reach_disk(path: Path) -> None:
    """Before the folder has its name: a crash must not leave a named folder with empty files."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
