"""Reading a .regard file. Groups are located when it is opened; arrays are mapped and checked when they are used."""

from __future__ import annotations

import json
import math
import mmap
import os
import weakref
from array import array as numbers
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from regard.engine import files
from regard.errors import DamageError, RecordingFileError
from regard.recording import _format as form
from regard.recording._chunks import ChunkCursor, ChunkOrder
from regard.recording._format import Head

DTYPES = frozenset({"<f8", "<f4", "<f2", "<u2", "<i8", "<i4", "<i2", "|i1", "|u1"})
MAX_DIMENSIONS = 16  # of an array; more is damage


@dataclass(frozen=True)
class Stored:
    """Place, dtype and shape of an array in the file."""

    at: int  # offset of its chunk
    chunk: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Group:
    """Arrays that were written together, with the JSON that describes them; `broken` says why it cannot be read."""

    chunk: int  # number of the DONE chunk that describes them
    meta: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Stored] = field(default_factory=dict)
    broken: str | None = None


class Reader:
    """The groups of a file as it is when opened; `refresh` reads on in a file that is still being written."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Path = Path(path)
        try:
            self._file = files.open_regular(self.path)
        except OSError as error:
            raise RecordingFileError(f"{self.path} cannot be read: {error.strerror}") from error
        weakref.finalize(self, os.close, self._file)
        self.closed = False  # True once the writer has ended the file
        self._done = numbers("Q")  # offsets of the DONE chunks, one for a group
        self._known: dict[int, Group] = {}
        self.size = 0
        self.mark: int = self._read_head()
        self._cursor = ChunkCursor(self._file, self.mark)
        self.refresh()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path: a copy opens the file anew, and has a descriptor of its own."""
        return reopen, (self.path.absolute(), self.mark)

    def _read_head(self) -> int:
        try:
            raw = os.pread(self._file, form.FILE_HEAD.size, 0)
        except OSError as error:
            raise RecordingFileError(f"{self.path} cannot be read: {error.strerror}") from error
        if len(raw) < form.FILE_HEAD.size:
            raise RecordingFileError(f"{self.path} is no recording: it has {len(raw)} bytes")
        magic, version, _, mark, _ = form.FILE_HEAD.unpack(raw)
        if magic != form.MAGIC:
            raise RecordingFileError(f"{self.path} is no recording: it does not begin with the mark of one")
        if version > form.VERSION:
            raise RecordingFileError(
                f"{self.path} has version {version} of the format, and this regard reads {form.VERSION}"
            )
        if raw != form.file_head(mark)[: form.FILE_HEAD.size]:
            raise DamageError(f"{self.path} is damaged in its first bytes")
        return mark

    def __len__(self) -> int:
        """Number of groups."""
        return len(self._done)

    def refresh(self) -> int:
        """Read on from where the file ended before, and return the number of new groups."""
        before = len(self)
        self.size: int = os.fstat(self._file).st_size
        if not self.closed and not (before == 0 and self._from_list()):
            while not self.closed and (head := self._cursor.next(self.size)) is not None:
                if head.kind == form.DONE:
                    self._done.append(head.payload - form.ALIGN)
                self.closed = head.kind == form.ENDS
        return len(self) - before

    def _from_list(self) -> bool:
        """Read the list of groups at the end of a closed file; False if there is none."""
        at = self.size - form.END_SIZE
        head = self._cursor.head(at) if at > form.ALIGN else None
        if head is None or head.kind != form.ENDS or head.end > self.size:
            return False
        try:
            groups, where = form.END.unpack(self._text(head))
            head = self._cursor.head(where) if where < at else None
            if head is None or head.kind != form.LIST or head.length != 8 * groups or head.end > self.size:
                return False
            listed = np.frombuffer(self._text(head), "<u8")
            if (listed[1:] <= listed[:-1]).any():
                return False  # a group would be shown twice
            self._done.frombytes(listed.astype("=u8").tobytes())
        except DamageError:
            return False
        self.closed: bool = True
        return True

    # Groups

    def group(self, index: int) -> Group:
        """The group of an index, in the order in which groups were written."""
        if index not in self._known:
            self._known[index] = self._group(self._done[index])
        return self._known[index]

    def _group(self, at: int) -> Group:
        head = self._cursor.head(at) if at < self.size else None
        if head is None or head.kind != form.DONE or head.end > self.size:
            return Group(-1, broken=f"the chunk at byte {at} of {self.path} is damaged in its head")
        try:
            value = json.loads(self._text(head))
            arrays = {str(name): _stored(entry) for name, entry in value["arrays"].items()}
            return Group(head.number, dict(value["meta"]), arrays)
        except DamageError as error:
            return Group(head.number, broken=str(error))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            message = f"chunk {head.number} of {self.path} does not say what a recording says ({error!r})"
            return Group(head.number, broken=message)

    # Arrays

    def array(self, stored: Stored, axis: int | None = None, index: int = 0) -> np.ndarray:
        """An array as a view of the file, its checksums verified.

        With an axis, the slice of length 1 at `index`, and only the bytes of that slice are verified.
        """
        head = self._data(stored)
        spans = [(0, head.length)] if axis is None else list(_spans(stored, axis, index))
        data = self._mapped(head)
        piece = next(form.broken_pieces(data, head, form.touched(spans)), None)
        if piece is not None:
            raise DamageError(self._says(head, piece))
        view = np.ndarray(stored.shape, stored.dtype, data)
        if axis is None:
            return view
        return view[(*[slice(None)] * (axis % view.ndim), slice(index, index + 1))]

    def _data(self, stored: Stored) -> Head:
        head = self._cursor.head(stored.at) if stored.at < self.size else None
        if head is None or (head.kind, head.number) != (form.DATA, stored.chunk) or head.end > self.size:
            raise DamageError(f"chunk {stored.chunk} of {self.path} is damaged in its head")
        if head.length != stored.bytes:
            raise DamageError(
                f"chunk {stored.chunk} of {self.path} has {head.length} bytes, but an array {stored.shape} of "
                f"{stored.dtype} has {stored.bytes}"
            )
        return head

    # Bytes

    def _text(self, head: Head) -> bytes:
        """A short payload, verified and copied."""
        raw = os.pread(self._file, head.end - head.payload, head.payload)
        if len(raw) < head.end - head.payload or form.checksums(raw[: head.length]) != raw[head.length :]:
            raise DamageError(f"chunk {head.number} of {self.path} is damaged: its checksum is wrong")
        return raw[: head.length]

    def _mapped(self, head: Head) -> memoryview:
        """The payload of a chunk and its checksums, mapped into memory, not verified."""
        if os.fstat(self._file).st_size < head.end:  # reading what is no longer there would end the process
            raise DamageError(f"chunk {head.number} of {self.path} is gone: the file has become shorter")
        if not head.length:
            return memoryview(bytearray())
        # Copy on write: numpy and torch want memory that could be written, and nothing reaches the file. One chunk
        # each: a system may refuse to map at once more than its memory could hold if it were written.
        start = head.payload // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        mapped = mmap.mmap(self._file, head.end - start, access=mmap.ACCESS_COPY, offset=start)
        return memoryview(mapped)[head.payload - start :]

    # Damage

    def damage(self, *, every_byte: bool = False) -> list[str]:
        """A sentence for each damaged chunk: heads and texts are verified, with `every_byte` also arrays."""
        groups = [self.group(index) for index in range(len(self))]
        damaged = [(group.chunk, group.broken) for group in groups if group.broken is not None and group.chunk >= 0]
        cursor = ChunkCursor(self._file, self.mark)
        named = (
            None if group.broken else frozenset(array.chunk for array in group.arrays.values()) for group in groups
        )
        order = ChunkOrder(dict(zip(self._done, named, strict=True)))
        while (head := cursor.next(self.size)) is not None:
            faults = order.faults(head, len(cursor.lost))
            damaged += [(number, f"chunk {number} of {self.path} is damaged: {fault}") for number, fault in faults]
            if head.kind == form.LIST or (head.kind == form.DATA and every_byte):
                damaged += [(head.number, self._says(head, piece)) for piece in self._broken(head)]
        damaged += [(first, self._lost(first, last)) for first, last in cursor.lost]
        unmet = order.unmet(sum(last - first + 1 for first, last in cursor.lost))
        damaged += [(cursor.number, f"{self.path} has no chunk at byte {at}, where its list names one") for at in unmet]
        if not self.closed and cursor.offset < self.size:
            damaged.append((cursor.number, f"the last {self.size - cursor.offset} bytes are unfinished or damaged"))
        return [sentence for _, sentence in sorted(damaged)]

    def _broken(self, head: Head) -> list[int]:
        return list(form.broken_pieces(self._mapped(head), head, range(head.pieces)))

    def _says(self, head: Head, piece: int) -> str:
        return f"chunk {head.number} of {self.path} is damaged: checksum of piece {piece} is wrong"

    def _lost(self, first: int, last: int) -> str:
        which = f"chunk {first}" if first == last else f"one of the chunks {first} to {last}"
        return f"{which} of {self.path} is damaged in its head"


def reopen(path: Path, mark: int) -> Reader:
    """The reader of a file that was open before; another file in its place is refused."""
    reader = Reader(path)
    if reader.mark != mark:
        raise RecordingFileError(f"{path} is another recording than the one that was copied: it has been replaced")
    return reader


def _stored(entry: dict[str, Any]) -> Stored:
    dtype, shape = entry["dtype"], tuple(entry["shape"])
    if dtype not in DTYPES:
        raise ValueError(f"numbers of type {dtype!r} are not known")
    whole = (*shape, entry["at"], entry["chunk"])
    if any(type(number) is not int or not 0 <= number < 1 << 62 for number in whole):
        raise ValueError(f"an array {shape} at {entry['at']!r} is none")
    if len(shape) > MAX_DIMENSIONS or math.prod(max(length, 1) for length in shape) >= 1 << 59:
        raise ValueError(f"an array {shape} is too large")
    return Stored(entry["at"], entry["chunk"], np.dtype(dtype), shape)


def _spans(stored: Stored, axis: int, index: int) -> Iterator[tuple[int, int]]:
    """Byte ranges of one slice along an axis, start and stop within the payload."""
    axis %= len(stored.shape)
    slab = math.prod(stored.shape[axis + 1 :]) * stored.dtype.itemsize
    for outer in range(math.prod(stored.shape[:axis]) if slab else 0):
        start = (outer * stored.shape[axis] + index) * slab
        yield start, start + slab
