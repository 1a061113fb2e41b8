"""Writing a .regard file. A group that has been acknowledged survives a kill of the process at any time."""

from __future__ import annotations

import json
import os
from array import array as numbers
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from regard.engine import files
from regard.errors import RecordingFileError, RegardError, StorageError
from regard.recording import _format as form


class Writer:
    """Appends groups of arrays to a new file. When `append` returns, the group is on the disk.

    With durable=False that is certain only when `close` has returned. file: the descriptor of an empty file to write
    to, which its owner closes; `path` then only names it.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, durable: bool = True, mark: int | None = None, file: int | None = None
    ) -> None:
        self.path = Path(path)
        self.mark = int.from_bytes(os.urandom(4), "little") if mark is None else mark  # in every chunk of this file
        self._durable = durable
        self._size = self._number = 0
        self._done = numbers("Q")  # offsets of the DONE chunks, one for a group
        self._stopped = self._closed = False
        self._owned = file is None
        try:
            self._file = files.create_file(self.path) if file is None else file
        except FileExistsError:
            raise RecordingFileError(f"{self.path} exists already: a recording begins a file of its own") from None
        except OSError as error:
            raise StorageError(f"{self.path} cannot be written: {error.strerror}") from error
        self._begin()

    def _begin(self) -> None:
        try:
            self._put(form.file_head(self.mark))
            self._sync()
            if self._owned:
                files.sync_folder(self.path.parent)
        except OSError as error:
            if self._owned:
                os.close(self._file)
                self.path.unlink(missing_ok=True)
            raise StorageError(f"{self.path} cannot be written: {error.strerror}") from error

    def append(self, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Write the arrays, wait for the disk, write the chunk that describes them, and wait again."""
        if self._stopped or self._closed:
            raise StorageError(f"{self.path} takes no more: it {'was closed' if self._closed else 'failed before'}")
        before = self._size, self._number
        done = form.Head(form.DONE, 0, 0, 0)
        try:
            listed = {name: self._array(array) for name, array in arrays.items()}
            self._sync()
            text = _text({"meta": meta, "arrays": listed})
            done = form.Head(form.DONE, self._number, self._size + form.ALIGN, len(text))
            self._chunk(form.DONE, text)
            self._sync()
            self._add(done)
        except OSError as error:
            self._truncate(*before)
            self._stopped = True
            raise StorageError(f"{self.path} cannot be written any further: {error.strerror}") from error
        except BaseException:  # an impatient Ctrl-C
            if 0 < done.stop <= os.fstat(self._file).st_size:
                self._add(done)  # it is all there, and whoever reads along may have seen it
            else:
                self._truncate(*before)  # the next group begins where this one did
            raise

    def _add(self, done: form.Head) -> None:
        self._size, self._number = done.stop, done.number + 1
        at = done.payload - form.ALIGN
        if not self._done or self._done[-1] != at:
            self._done.append(at)

    def close(self) -> None:
        """Write the list of groups and the chunk that ends the file."""
        if self._closed:
            return
        self._closed = True
        before = self._size, self._number
        try:
            self._chunk(form.LIST, memoryview(np.asarray(self._done, "<u8").tobytes()))
            self._chunk(form.ENDS, memoryview(form.END.pack(len(self._done), before[0])))
            os.fsync(self._file)
        except OSError as error:
            self._truncate(*before)
            if not self._stopped:  # else whoever writes knows already
                raise StorageError(f"{self.path} could not be closed properly ({error.strerror})") from error
        finally:
            if self._owned:
                os.close(self._file)

    def _array(self, array: np.ndarray) -> dict[str, Any]:
        array = np.asarray(array, array.dtype.newbyteorder("<"), order="C")
        entry = {"at": self._size, "chunk": self._number, "dtype": array.dtype.str, "shape": list(array.shape)}
        self._chunk(form.DATA, array.reshape(-1).view(np.uint8).data)
        return entry

    def _chunk(self, kind: bytes, payload: memoryview) -> None:
        tail = form.checksums(payload)
        rest = -(len(payload) + len(tail)) % form.ALIGN
        self._put(form.chunk_head(kind, len(payload), self._number, self.mark))
        self._put(payload)
        self._put(tail + b"\0" * rest)
        self._number += 1

    def _put(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        while view:
            done = os.pwrite(self._file, view, self._size)
            self._size += done
            view = view[done:]

    def _sync(self) -> None:
        if self._durable:
            os.fsync(self._file)

    def _truncate(self, size: int, number: int) -> None:
        """Cut off what is half-written; a reader would ignore it, but it takes space."""
        self._size, self._number = size, number
        try:
            os.ftruncate(self._file, size)
        except OSError:
            self._stopped = True


def _text(value: Mapping[str, Any]) -> memoryview:
    try:
        text = json.dumps(value, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordingFileError(f"a recording cannot hold this: {error}") from error
    if len(text) > form.LONGEST_TEXT:
        raise RecordingFileError(
            f"a recording describes a call in {form.LONGEST_TEXT:,} bytes at most, but this one takes {len(text):,}"
        )
    return memoryview(text)


@contextmanager
def replacing(path: Path) -> Iterator[Writer]:
    """A writer of a new file that replaces `path`, or what it links to, once all of it is on the disk."""
    if path.exists() and not path.is_file():
        raise StorageError(f"{path} cannot be written: it is no regular file, and a recording can replace only those")
    try:
        with files.atomic_file(path) as file:
            writer = Writer(path, durable=False, file=file.fileno())
            yield writer
            writer.close()
    except RegardError:
        raise
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from error
