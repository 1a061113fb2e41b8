"""Files of named arrays and one text: safetensors with a checksum over every byte.

docs/formats/model.md describes the bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from regard.engine.files import atomic_file, open_regular
from regard.errors import FormatError

BLANK_CHECKSUM = "0" * 64  # stands in its place while the checksum is computed
LARGEST_HEADER = 100_000_000  # bytes, as in safetensors: not more is read of a file that may be something else
DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"}
DTYPE_NAMES = {np.dtype(code): name for name, code in DTYPES.items()}


class ArrayFile(NamedTuple):
    """One kind of such files: the name and version of its format, and what a file holds, for error messages."""

    name: str
    version: str
    holds: str

    def write(self, path: str | Path, text: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Write named arrays and a text; the same content always gives the same bytes."""
        # Wide dtypes first, so that each array begins at a multiple of its item size.
        names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
        ordered = {name: np.asarray(arrays[name], order="C") for name in names}
        data = [array.reshape(-1).view(np.uint8) for array in ordered.values()]
        checksum = _checksum([self._head(text, ordered, BLANK_CHECKSUM), *data])
        with atomic_file(path) as file:
            file.write(self._head(text, ordered, checksum))
            for part in data:
                file.write(part.data)

    def read(self, path: str | Path) -> tuple[str, dict[str, np.ndarray]]:
        """Read a file of `write`; raise FormatError that says whether it is damaged, too new, or something else."""
        with os.fdopen(open_regular(Path(path)), "rb") as file:
            raw, header = self._header(file, path)
            data = np.fromfile(file, dtype=np.uint8)
        about = header.pop("__metadata__")
        blank = raw.replace(f'"sha256":"{about["sha256"]}"'.encode(), f'"sha256":"{BLANK_CHECKSUM}"'.encode())
        if about["sha256"] != _checksum([_prefix(raw), blank, data]):
            raise FormatError(f"{path} is damaged: its bytes are not those that were written (the checksum differs)")
        try:
            return str(about["model"]), {name: _array(entry, data) for name, entry in header.items()}
        except (KeyError, TypeError, ValueError):
            raise FormatError(self.not_ours(path)) from None

    def not_ours(self, path: str | Path) -> str:
        """Message about a file that is something else."""
        return f"{path} is not {self.holds} that regard saved, or its beginning is damaged"

    def _head(self, text: str, arrays: Mapping[str, np.ndarray], checksum: str) -> bytes:
        """Bytes before the numbers: the length of the header, and the header as JSON."""
        about = {"format": self.name, "version": self.version, "sha256": checksum, "model": text}
        header: dict[str, Any] = {"__metadata__": about}
        start = 0
        for name, array in arrays.items():
            if array.dtype not in DTYPE_NAMES:
                held = ", ".join(DTYPES)
                raise FormatError(f"{name} cannot be saved: its numbers are {array.dtype}, and files hold {held}")
            dtype, stop = DTYPE_NAMES[array.dtype], start + array.nbytes
            header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [start, stop]}
            start = stop
        raw = json.dumps(header, separators=(",", ":")).encode()
        raw += b" " * (-len(raw) % 8)  # the numbers begin at a multiple of eight
        return _prefix(raw) + raw

    def _header(self, file: BinaryIO, path: str | Path) -> tuple[bytes, dict[str, Any]]:
        """Bytes of the header and what they say."""
        length = int.from_bytes(file.read(8), "little")
        raw = file.read(length) if length <= LARGEST_HEADER else b""
        try:
            header = json.loads(raw if len(raw) == length else b"")
            about = header["__metadata__"]
            name, version = about["format"], about["version"]
            _ = about["sha256"], about["model"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise FormatError(self.not_ours(path)) from None
        if name != self.name:
            raise FormatError(self.not_ours(path))
        if version != self.version:
            known = f"the format {name}, this regard reads version {self.version}"
            raise FormatError(f"{path} has version {version} of {known}")
        return raw, header


def _prefix(raw: bytes) -> bytes:
    """Length of the header, in eight bytes."""
    return len(raw).to_bytes(8, "little")


def _checksum(parts: list[Any]) -> str:
    """SHA-256 of the parts, one after the other."""
    digest = sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _array(entry: Mapping[str, Any], data: np.ndarray) -> np.ndarray:
    """Array that an entry of the header describes, as a view of the numbers."""
    start, stop = entry["data_offsets"]
    return data[start:stop].view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
