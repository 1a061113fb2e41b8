"""Writing a .regard file: what has been acknowledged stays, whenever the process ends."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import RecordingFileError, StorageError
from regard.recording import _format as form


class Writer:
    """Appends groups of arrays. When `append` returns, the group is on the disk."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            raise RecordingFileError(f"{self.path} exists already: a recording begins a file of its own") from None
        except OSError as error:
            raise StorageError(f"{self.path} cannot be written: {error.strerror}") from error
        self._size = self._number = self._groups = 0
        self._ended = False
        self._put(form.file_head())
        self._sync()
        _sync_folder(self.path)

    def append(self, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Write the arrays, wait for the disk, then say that they are there, and wait again."""
        before = self._size, self._number
        try:
            listed = {name: self._array(array) for name, array in arrays.items()}
            self._sync()
            self._text(form.DONE, {"meta": meta, "arrays": listed})
            self._sync()
        except OSError as error:
            self._size, self._number = before
            self._give_back()
            raise StorageError(
                f"{self.path} could not take the next call ({error.strerror}); the {self._groups} before it are safe"
            ) from error
        self._groups += 1

    def close(self) -> None:
        """Say that nothing more comes."""
        if self._ended:
            return
        self._ended = True
        try:
            self._text(form.ENDS, {"groups": self._groups})
            self._sync()
        except OSError as error:
            self._give_back()
            raise StorageError(f"{self.path} could not be closed properly ({error.strerror})") from error
        finally:
            os.close(self._file)

    def _array(self, array: np.ndarray) -> dict[str, Any]:
        array = np.asarray(array, order="C")
        number = self._number
        self._chunk(form.DATA, memoryview(array.reshape(-1).view(np.uint8)))
        return {"chunk": number, "dtype": array.dtype.str, "shape": list(array.shape)}

    def _text(self, kind: bytes, value: Mapping[str, Any]) -> None:
        self._chunk(kind, memoryview(json.dumps(value, ensure_ascii=False, allow_nan=False).encode()))

    def _chunk(self, kind: bytes, payload: memoryview) -> None:
        start = self._size
        self._put(form.chunk_head(kind, len(payload), self._number))
        self._put(payload)
        self._put(form.checksums(payload))
        self._put(b"\0" * (form.aligned(self._size - start) - (self._size - start)))
        self._number += 1

    def _put(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        while view:
            done = os.pwrite(self._file, view, self._size)
            self._size += done
            view = view[done:]

    def _sync(self) -> None:
        os.fsync(self._file)

    def _give_back(self) -> None:
        """Leave nothing half-written behind; a reader would ignore it, but it takes room."""
        try:
            os.ftruncate(self._file, self._size)
        except OSError:
            return


def _sync_folder(path: Path) -> None:
    """A new name is safe when its folder is."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
