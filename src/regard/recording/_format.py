"""The bytes of a .regard file, as docs/formats/recording.md tells them: a header, then chunks one after another.

A chunk stands at a multiple of 64: its head, its payload, and a checksum for every piece of the payload, so that a
reader of one head's queries checks those bytes and no others. Nothing here knows what a tensor is.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

MAGIC = b"\x89REGARD\n"
VERSION = 1
FILE_HEAD = struct.Struct("<8sHHI")  # magic, version, 0, crc32 of the twelve bytes before
CHUNK_HEAD = struct.Struct("<4s4sQQII")  # marker, kind, payload length, number, 0, crc32 of the 28 bytes before
MARKER = b"\xf5RGC"
DATA, DONE, ENDS = b"DATA", b"DONE", b"ENDS"  # an array; what a group of arrays is; the file was closed
KINDS = (DATA, DONE, ENDS)
ALIGN = 64
PIECE = 1 << 20  # bytes that share a checksum
LONGEST_TEXT = 1 << 24  # bytes of a DONE or ENDS chunk: more is not ours


class Head(NamedTuple):
    """Where a chunk lies."""

    kind: bytes
    number: int
    payload: int  # offset of its first byte
    length: int

    @property
    def pieces(self) -> int:
        return -(-self.length // PIECE)

    @property
    def checksums(self) -> int:
        """Offset of the checksums."""
        return self.payload + self.length

    @property
    def stop(self) -> int:
        """Offset of what comes next."""
        return aligned(self.checksums + 4 * self.pieces)


def aligned(offset: int) -> int:
    return -(-offset // ALIGN) * ALIGN


def file_head() -> bytes:
    start = struct.pack("<8sHH", MAGIC, VERSION, 0)
    return (start + struct.pack("<I", zlib.crc32(start))).ljust(ALIGN, b"\0")


def chunk_head(kind: bytes, length: int, number: int) -> bytes:
    start = struct.pack("<4s4sQQI", MARKER, kind, length, number, 0)
    return (start + struct.pack("<I", zlib.crc32(start))).ljust(ALIGN, b"\0")


def checksums(payload: bytes | memoryview) -> bytes:
    view = memoryview(payload).cast("B")
    return b"".join(struct.pack("<I", zlib.crc32(view[low : low + PIECE])) for low in range(0, len(view), PIECE))


def parse_head(data: bytes | memoryview, offset: int, size: int) -> Head | None:
    """The chunk that stands at an offset of a file of `size` bytes, or None if none does, whole and sound."""
    if offset + ALIGN > size:
        return None
    raw = bytes(data[offset : offset + CHUNK_HEAD.size])
    marker, kind, length, number, zero, crc = CHUNK_HEAD.unpack(raw)
    if marker != MARKER or kind not in KINDS or zero or crc != zlib.crc32(raw[:-4]):
        return None
    head = Head(kind, number, offset + ALIGN, length)
    too_long = kind != DATA and length > LONGEST_TEXT
    return None if too_long or head.checksums + 4 * head.pieces > size else head


def broken_pieces(data: memoryview, head: Head, start: int, stop: int) -> Iterator[int]:
    """Numbers of the pieces between two offsets into the payload whose checksum is wrong."""
    for piece in range(start // PIECE, -(-stop // PIECE)):
        low = head.payload + piece * PIECE
        high = min(low + PIECE, head.checksums)
        (wanted,) = struct.unpack_from("<I", data, head.checksums + 4 * piece)
        if zlib.crc32(data[low:high]) != wanted:
            yield piece
