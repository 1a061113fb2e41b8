"""Stepping from chunk to chunk through a file that may be damaged or still being written."""

from __future__ import annotations

import os
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
