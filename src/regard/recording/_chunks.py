"""Stepping from chunk to chunk through a file that may be damaged, and the order that chunks have in a sound one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from regard.recording import _format as form
from regard.recording._format import Head

SEARCH_BLOCK = 1 << 22  # bytes that are read at a time while looking for the next sound chunk


@dataclass
class ChunkCursor:
    """A place between two chunks. Heads are read, not mapped, so that a file that is cut meanwhile only ends early."""

    file: int
    mark: int
    offset: int = form.ALIGN
    number: int = 0
    lost: list[tuple[int, int]] = field(default_factory=list)  # first and last number of chunks that were skipped

    def head(self, offset: int) -> Head | None:
        """The head of the chunk at an offset, or None if there is no sound one."""
        return form.parse_head(os.pread(self.file, form.CHUNK_HEAD.size, offset), offset, self.mark)

    def next(self, size: int) -> Head | None:
        """Move past the next complete chunk of a file of `size` bytes, and return its head; None at the end."""
        head = self.head(self.offset)
        if head is not None and head.number == self.number:
            if head.end > size:
                return None  # the file ends in the middle of it: nothing can stand behind
        else:
            head = self._next_sound(size)
        if head is None:
            return None
        if head.number > self.number:
            self.lost.append((self.number, head.number - 1))
        self.number, self.offset = head.number + 1, head.stop
        return head

    def _next_sound(self, size: int) -> Head | None:
        """The next complete chunk behind a damaged head. Behind a chunk that is still being written there is none."""
        start = self.offset + form.ALIGN
        while start < size:
            block = os.pread(self.file, min(SEARCH_BLOCK, size - start), start)
            lines = np.frombuffer(block, "<u4", len(block) // form.ALIGN * (form.ALIGN // 4))[:: form.ALIGN // 4]
            for line in np.flatnonzero(lines == int.from_bytes(form.SIGN, "little")).tolist():
                at = line * form.ALIGN
                head = form.parse_head(block[at : at + form.ALIGN], start + at, self.mark)
                if head is not None and head.number > self.number and head.end <= size:
                    return head
            start += max(len(block), form.ALIGN)
        return None


@dataclass
class ChunkOrder:
    """The order of chunks in a sound file: arrays, the DONE chunk that names them, and so on; LIST and ENDS at the end.

    A chunk that was rewritten together with its checksum is noticed by what the others say about it.
    """

    groups: Mapping[int, frozenset[int] | None]  # offset of a DONE chunk: the chunks it names, if it is readable
    met: set[int] = field(default_factory=set)  # offsets of the chunks that were met
    _arrays: list[int] = field(default_factory=list)  # DATA chunks since the last DONE chunk
    _gaps: int = 0
    _ended: bool = False

    def faults(self, head: Head, gaps: int) -> Iterator[tuple[int, str]]:
        """Number and fault of each chunk that is not what others say, now that `head` was met.

        gaps: how many runs of chunks were lost so far.
        """
        at = head.payload - form.ALIGN
        self.met.add(at)
        if gaps > self._gaps:  # the chunk that names these arrays may be one of the lost ones
            self._arrays.clear()
            self._gaps = gaps
        if self._ended:
            yield head.number, "it stands behind the end of the file"
        if head.kind != form.DONE and at in self.groups:
            yield head.number, "the list of groups says that it completes a group, and it does not"
        if head.kind == form.DONE and at not in self.groups:
            yield head.number, "it completes a group that the list of groups does not name"
        if head.kind == form.DATA:
            self._arrays.append(head.number)
            return
        named = self.groups.get(at) if head.kind == form.DONE else frozenset[int]()
        if named is not None:
            yield from ((number, "no group names its array") for number in self._arrays if number not in named)
        self._arrays.clear()
        self._ended = head.kind == form.ENDS

    def unmet(self, lost: int) -> list[int]:
        """Offsets that the list of groups names and at which there is no chunk, if lost chunks do not explain them."""
        offsets = sorted(set(self.groups) - self.met)
        return offsets if len(offsets) > lost else []
