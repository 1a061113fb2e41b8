"""The bytes of a .regard file, as docs/formats/recording.md defines them: a head, then chunks one after another.

A chunk begins at a multiple of 64 bytes: a head, the payload, and a checksum for every piece of the payload, so that
a reader of one attention head verifies its bytes and no others. Nothing in this file knows about tensors.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

MAGIC = b"\x89REGARD\n"
VERSION = 1
FILE_HEAD = struct.Struct("<8sHHII")  # magic, version, 0, the file's mark, crc32 of the sixteen bytes before
CHUNK_HEAD = struct.Struct("<4s4sQQII")  # SIGN, kind, payload length, number, the file's mark, crc32 of the rest
SIGN = b"\xf5RGC"
DATA = b"DATA"  # an array
DONE = b"DONE"  # JSON about the arrays before it: it completes a group
LIST = b"LIST"  # offsets of the DONE chunks
ENDS = b"ENDS"  # end of the file, with the offset of the LIST chunk
KINDS = (DATA, DONE, LIST, ENDS)
ALIGN = 64  # bytes: every head and every payload begins at a multiple of this, a cache line
PIECE = 1 << 16  # bytes that share a checksum
LONGEST_TEXT = 1 << 20  # bytes of a DONE chunk; more is damage
END = struct.Struct("<QQ")  # payload of an ENDS chunk: how many groups, offset of the LIST chunk
END_SIZE = 2 * ALIGN  # of a whole ENDS chunk, so that it is found from the end of the file


class Head(NamedTuple):
    """Kind, number and place of a chunk."""

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
    def end(self) -> int:
        """Offset behind the checksums."""
        return self.checksums + 4 * self.pieces

    @property
    def stop(self) -> int:
        """Offset of the next chunk."""
        return aligned(self.end)


def aligned(offset: int) -> int:
    """The offset rounded up to a multiple of 64."""
    return -(-offset // ALIGN) * ALIGN


def file_head(mark: int) -> bytes:
    """The first 64 bytes of a file."""
    start = struct.pack("<8sHHI", MAGIC, VERSION, 0, mark)
    return (start + struct.pack("<I", zlib.crc32(start))).ljust(ALIGN, b"\0")


def chunk_head(kind: bytes, length: int, number: int, mark: int) -> bytes:
    """The first 64 bytes of a chunk."""
    start = struct.pack("<4s4sQQI", SIGN, kind, length, number, mark)
    return (start + struct.pack("<I", zlib.crc32(start))).ljust(ALIGN, b"\0")


def checksums(payload: bytes | memoryview) -> bytes:
    """CRC-32 of every piece of a payload, 4 bytes each."""
    view = memoryview(payload)
    return b"".join(struct.pack("<I", zlib.crc32(view[low : low + PIECE])) for low in range(0, len(view), PIECE))


def parse_head(raw: bytes, offset: int, mark: int) -> Head | None:
    """The chunk at an offset, given its first bytes; None if they are not the head of a chunk of this file."""
    if len(raw) < CHUNK_HEAD.size:
        return None
    sign, kind, length, number, file_mark, crc = CHUNK_HEAD.unpack_from(raw)
    if sign != SIGN or kind not in KINDS or file_mark != mark or crc != zlib.crc32(raw[: CHUNK_HEAD.size - 4]):
        return None
    too_long = (kind == DONE and length > LONGEST_TEXT) or (kind == ENDS and length != END.size)
    return None if too_long else Head(kind, number, offset + ALIGN, length)


def touched(spans: Iterable[tuple[int, int]]) -> list[int]:
    """Numbers of the pieces that hold these byte ranges of a payload, sorted, each once."""
    return sorted({piece for start, stop in spans for piece in range(start // PIECE, -(-stop // PIECE))})


def broken_pieces(data: memoryview, head: Head, pieces: Iterable[int]) -> Iterator[int]:
    """Numbers of the pieces whose checksum is wrong; `data` is the payload and the checksums behind it."""
    for piece in pieces:
        low = piece * PIECE
        (wanted,) = struct.unpack_from("<I", data, head.length + 4 * piece)
        if zlib.crc32(data[low : min(low + PIECE, head.length)]) != wanted:
            yield piece
