"""A file that is there as a whole or not at all, whatever stops the writer."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

DESCRIPTORS = Path("/proc/self/fd")


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """Write to the file that is yielded; when the block ends without an error, it takes the place of `path`.

    Until then what was there before stays there, and after an error or Ctrl-C nothing is left behind. Where the system
    can (Linux), the new file has no name while it is written, so that not even a killed process leaves one.

    >>> with whole_file("greeting.txt") as file:
    ...     _ = file.write(b"hello")
    >>> Path("greeting.txt").read_text()
    'hello'
    """
    target = Path(os.path.realpath(path))  # a link goes on pointing to what it pointed to
    if target.exists() and not target.is_file():
        with target.open("wb") as file:  # a device or a pipe: there is nothing to put in its place
            yield file
        return
    spare = target.with_name(f".{target.name}.{os.getpid()}.part")
    descriptor, named = _open(target.parent, spare)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            _keep_mode(file.fileno(), target)
            os.fsync(file.fileno())
            if not named:
                _name(file.fileno(), spare)
        spare.replace(target)
    except BaseException:
        spare.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _open(folder: Path, spare: Path) -> tuple[int, bool]:
    """A new file in `folder`, and whether it has a name."""
    if hasattr(os, "O_TMPFILE") and DESCRIPTORS.is_dir():
        with suppress(OSError):  # a file system that cannot
            return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666), False
    return os.open(spare, os.O_CREAT | os.O_TRUNC | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o666), True


def _name(descriptor: int, spare: Path) -> None:
    spare.unlink(missing_ok=True)
    folder = os.open(DESCRIPTORS, os.O_RDONLY)
    try:
        # Only with a folder does Python ask the system to follow the link that stands for an open file.
        os.link(str(descriptor), spare, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _keep_mode(descriptor: int, target: Path) -> None:
    """What only its owner may read stays so."""
    with suppress(FileNotFoundError):
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, stat.S_IMODE(target.stat().st_mode))


def _sync_folder(folder: Path) -> None:
    """The new name, too, has to reach the disk. Systems that cannot do this do not need it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
