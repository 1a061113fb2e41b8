"""Atomic files and folders: a path holds the whole new content or what it held before, whatever stops the writer."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

DESCRIPTORS = Path("/proc/self/fd")  # where Linux shows the open files of a process


@contextmanager
def atomic_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a new file for writing, which replaces `path` when the block ends without an error.

    Until then `path` keeps its old content, and an error or Ctrl-C leaves nothing behind. On Linux the new file has no
    name while it is written, so a killed process leaves nothing either; what it leaves elsewhere, the next one removes.

    >>> with atomic_file("greeting.txt") as file:
    ...     _ = file.write(b"hello")
    >>> Path("greeting.txt").read_text()
    'hello'
    """
    target = Path(os.path.realpath(path))  # a link goes on pointing to what it pointed to
    if target.exists() and not target.is_file():
        with target.open("wb") as file:  # a device or a pipe cannot be replaced
            yield file
        return
    spare = spare_path(target)
    descriptor, named = _open_new_file(spare)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            _copy_mode(file.fileno(), target)
            os.fsync(file.fileno())
            if not named:
                _give_name(file.fileno(), spare)
        spare.replace(target)
    except BaseException:
        spare.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # some file systems cannot
        sync_folder(target.parent)


def atomic_folder(target: Path, fill: Callable[[Path], None]) -> None:
    """Make the folder `target` with the files that `fill` writes: all of them are on the disk before it has its name.

    If another process makes the folder at the same time, the first one wins.
    """
    _remove_abandoned(target)
    spare = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    lock = None if fcntl is None else os.open(spare, os.O_RDONLY)
    try:
        if lock is not None:
            hold_lock(lock)
        fill(spare)
        for path in spare.iterdir():
            with path.open("rb+") as file:
                os.fsync(file.fileno())
        with suppress(OSError):  # another process was faster
            spare.rename(target)
        if not target.is_dir():
            spare.rename(target)  # it failed for another reason: raise that
    finally:
        shutil.rmtree(spare, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def spare_path(target: Path) -> Path:
    """A hidden path beside `target`, for content that will replace it; what killed processes left there is removed."""
    _remove_abandoned(target)
    return target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")


def put_in_place(spare: Path, target: Path) -> None:
    """Rename a finished file to `target`, and wait until the new name is on the disk."""
    spare.replace(target)
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the names of the files in a folder are on the disk. Windows does so by itself."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create_file(path: Path) -> int:
    """The descriptor of a new file, for reading and writing, that is locked until it is closed or its process ends."""
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    while True:
        descriptor = os.open(path, flags, 0o666)
        hold_lock(descriptor)
        with suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        os.close(descriptor)  # it was removed as abandoned before it was locked


def open_regular(path: Path) -> int:
    """The descriptor of an existing file for reading. A folder, a pipe or a device is an OSError, not a long wait."""
    nonblocking = getattr(os, "O_NONBLOCK", 0)  # else a pipe that nobody writes to is waited for
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | nonblocking)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return descriptor


def hold_lock(descriptor: int) -> bool:
    """Lock an open file or folder; False if another process has. The lock ends with the process, even if killed."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # locked, or on a network disk without locks
        return False
    return True


def _remove_abandoned(target: Path) -> None:
    """Remove the hidden files and folders beside `target` that killed processes left: nobody locks them."""
    for path in target.parent.glob(f".{escape(target.name)}.????????.part"):
        with suppress(OSError):  # another process removes it too, or it is somebody else's
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
            try:
                if hold_lock(descriptor):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            finally:
                os.close(descriptor)


def _open_new_file(spare: Path) -> tuple[int, bool]:
    """A descriptor of a new file in the folder of `spare`, and True if the file already has that name."""
    if hasattr(os, "O_TMPFILE") and DESCRIPTORS.is_dir():
        with suppress(OSError):  # a file system that cannot
            descriptor = os.open(spare.parent, os.O_TMPFILE | os.O_RDWR, 0o666)
            hold_lock(descriptor)  # it will have the name of a spare file for an instant
            return descriptor, False
    return create_file(spare), True


def _give_name(descriptor: int, spare: Path) -> None:
    """Link an open file without a name to the path `spare`."""
    spare.unlink(missing_ok=True)
    folder = os.open(DESCRIPTORS, os.O_RDONLY)
    try:
        # Only with a folder does Python ask the system to follow the link that stands for an open file.
        os.link(str(descriptor), spare, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _copy_mode(descriptor: int, target: Path) -> None:
    """Give the new file the permissions of the one that it replaces."""
    with suppress(FileNotFoundError):
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, stat.S_IMODE(target.stat().st_mode))
