"""Reading a .regard file: chunk heads at once, arrays when they are asked for, no byte believed unchecked."""

from __future__ import annotations

import json
import math
import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import DamageError, RecordingFileError
from regard.recording import _format as form
from regard.recording._format import Head

DTYPES = frozenset({"<f8", "<f4", "<f2", "<u2", "<i8", "<i4", "<i2", "|i1", "|u1"})


@dataclass(frozen=True)
class Stored:
    """An array in the file."""

    head: Head
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Group:
    """Arrays that were written together, and what they are. `broken` says why they cannot be read."""

    number: int  # of the chunk that speaks of them
    meta: dict[str, Any]
    arrays: dict[str, Stored]
    broken: str | None = None


class Reader:
    """What a file holds at the moment when it is opened. `refresh` looks whether more has come."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.groups: list[Group] = []
        self.damage: list[str] = []  # in words, one for each chunk that is not as it was written
        self.closed = False  # whether the writer has said that nothing more comes
        self._heads: dict[int, Head] = {}
        self._offset = form.ALIGN
        self._number = 0
        self._map()
        self.refresh()

    def _map(self) -> None:
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < form.ALIGN:
                    raise RecordingFileError(f"{self.path} is no recording: it has {size} bytes")
                # Copy on write: numpy and torch want memory that could be written, and nothing reaches the file.
                self._bytes = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
        except OSError as error:
            raise RecordingFileError(f"{self.path} cannot be read: {error.strerror}") from error
        self.size = size
        self._check_head()

    def _check_head(self) -> None:
        head = form.file_head()
        found = self._bytes[: form.FILE_HEAD.size]
        if found == head[: form.FILE_HEAD.size]:
            return
        magic, version, _, _ = form.FILE_HEAD.unpack(found)
        if magic != form.MAGIC:
            raise RecordingFileError(f"{self.path} is no recording: it does not begin with the mark of one")
        if version > form.VERSION:
            raise RecordingFileError(f"{self.path} has version {version} of the format, and this regard reads 1")
        raise DamageError(f"{self.path} is damaged in its first bytes")

    def refresh(self) -> int:
        """Read on from where the file ended before; returns how many groups are new."""
        before = len(self.groups)
        if self.path.stat().st_size != self.size:
            self._map()
        while self._offset < self.size and not self.closed:
            head = form.parse_head(memoryview(self._bytes), self._offset, self.size)
            if head is None:
                head = self._next_sound()
                if head is None:
                    break
            for lost in range(self._number, head.number):
                self.damage.append(f"chunk {lost} is damaged in its head")
            self._heads[head.number] = head
            self._number, self._offset = head.number + 1, head.stop
            if head.kind != form.DATA:
                self._take(head)
        return len(self.groups) - before

    def _next_sound(self) -> Head | None:
        """The next chunk behind one whose head is not sound. There is none behind what is still being written."""
        at = self._bytes.find(form.MARKER, self._offset + form.ALIGN)
        while at >= 0:
            head = form.parse_head(memoryview(self._bytes), at, self.size) if at % form.ALIGN == 0 else None
            if head is not None and head.number > self._number:
                return head
            at = self._bytes.find(form.MARKER, at + 1)
        return None

    def _take(self, head: Head) -> None:
        try:
            value = json.loads(bytes(self._checked(head, 0, head.length)))
            if head.kind == form.ENDS:
                self._end(int(value["groups"]))
                return
            arrays = {name: self._stored(entry) for name, entry in value["arrays"].items()}
            self.groups.append(Group(head.number, dict(value["meta"]), arrays))
        except DamageError as error:
            self.damage.append(str(error))
            self.groups.append(Group(head.number, {}, {}, str(error)))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            message = f"chunk {head.number} of {self.path} does not say what a recording says ({error})"
            self.damage.append(message)
            self.groups.append(Group(head.number, {}, {}, message))

    def _end(self, groups: int) -> None:
        self.closed = True
        if groups != len(self.groups):
            self.damage.append(f"{groups} calls were written and {len(self.groups)} are there")

    def _stored(self, entry: dict[str, Any]) -> Stored:
        head = self._heads.get(int(entry["chunk"]))
        if head is None or head.kind != form.DATA:
            raise DamageError(f"chunk {entry['chunk']} of {self.path} is damaged or missing")
        if entry["dtype"] not in DTYPES:
            raise ValueError(f"numbers of type {entry['dtype']!r} are not known")
        dtype, shape = np.dtype(entry["dtype"]), tuple(int(length) for length in entry["shape"])
        if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != head.length:
            raise ValueError(f"an array {shape} of {dtype} does not have {head.length} bytes")
        return Stored(head, dtype, shape)

    def array(self, stored: Stored, first: int = 0, stop: int | None = None) -> np.ndarray:
        """Rows `first` to `stop` along the first dimension, or all; a view of the file, checked."""
        rows = stored.shape[0] if stored.shape else 1
        row = stored.head.length // max(rows, 1)
        stop = rows if stop is None else stop
        part = self._checked(stored.head, first * row, stop * row)
        shape = (stop - first, *stored.shape[1:]) if stored.shape else ()
        return np.frombuffer(part, stored.dtype).reshape(shape)

    def _checked(self, head: Head, start: int, stop: int) -> memoryview:
        data = memoryview(self._bytes)
        piece = next(form.broken_pieces(data, head, start, stop), None)
        if piece is not None:
            raise DamageError(f"chunk {head.number} of {self.path} is damaged: checksum of piece {piece} is wrong")
        return data[head.payload + start : head.payload + stop]
