"""From chunk to chunk through a file that may be damaged, or still being written."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np

from regard.recording import _format as form
from regard.recording._format import Head

BLOCK = 1 << 22  # bytes that are searched at a time for the next sound chunk


@dataclass
class Walk:
    """A place between two chunks. Heads are read, never mapped: a file that is cut meanwhile only ends early."""

    file: int
    mark: int
    offset: int = form.ALIGN
    number: int = 0
    lost: list[tuple[int, int]] = field(default_factory=list)  # first and last of chunks that had to be passed over

    def head(self, offset: int) -> Head | None:
        return form.parse_head(os.pread(self.file, form.CHUNK_HEAD.size, offset), offset, self.mark)

    def step(self, size: int) -> Head | None:
        """The next chunk of a file of `size` bytes that is there as a whole."""
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
        """The next chunk behind one whose head is not sound. There is none behind what is still being written."""
        start = self.offset + form.ALIGN
        while start < size:
            block = os.pread(self.file, min(BLOCK, size - start), start)
            lines = np.frombuffer(block, "<u4", len(block) // form.ALIGN * (form.ALIGN // 4))[:: form.ALIGN // 4]
            for line in np.flatnonzero(lines == int.from_bytes(form.SIGN, "little")).tolist():
                at = line * form.ALIGN
                head = form.parse_head(block[at : at + form.ALIGN], start + at, self.mark)
                if head is not None and head.number > self.number and head.end <= size:
                    return head
            start += max(len(block), form.ALIGN)
        return None
