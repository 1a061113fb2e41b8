"""What is converted once and kept in the user's cache folder."""

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

    Of several processes one makes it, and the others wait. Where a system has no locks all of them make it, and the
    first to finish names the folder.
    """
    target = cache_folder() / name
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone_in(target.parent):
        if not target.is_dir():  # somebody may have made it while we waited
            atomic_folder(target, make)
    return target


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """One process at a time. The folder itself is locked, so that no lock is left behind."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network disks cannot
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
