"""The user's cache folder, and files that are converted once and kept there."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from regard.engine.files import atomic_folder

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


def cache_folder() -> Path:
    """The folder for converted models: `regard` below XDG_CACHE_HOME, or below the system's cache folder."""
    named = os.environ.get("XDG_CACHE_HOME")
    if named and Path(named).is_absolute():  # by the XDG standard a relative path is ignored
        return Path(named) / "regard"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "regard"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "regard"
    return Path.home() / ".cache" / "regard"


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """The folder `name` of the cache, which `make` fills the first time; it exists complete or not at all.

    If several processes ask at once, one makes it and the others wait. On a system without file locks all of them make
    it, and the first one to finish is kept.
    """
    target = cache_folder() / name
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _exclusive_lock(target.parent):
        if not target.is_dir():  # another process may have made it meanwhile
            atomic_folder(target, make)
    return target


@contextmanager
def _exclusive_lock(folder: Path) -> Iterator[None]:
    """One process at a time. The folder itself is locked, so that no lock file remains."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network disks have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
