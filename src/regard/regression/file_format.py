"""Named arrays and one JSON text in a file: safetensors, with a checksum over every byte. docs/formats/model.md."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from regard.engine.files import whole_file
from regard.errors import FormatError

FORMAT, VERSION = "regard-fit", "1"
UNKNOWN = "0" * 64  # stands for the checksum while it is computed
LARGEST_HEADER = 100_000_000  # as in safetensors: no file makes us read more before it is known to be ours
CODES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"}
NAMES = {np.dtype(code): name for name, code in CODES.items()}


class Content(NamedTuple):
    text: str
    arrays: dict[str, np.ndarray]


def write(path: str | Path, text: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays and a text; the same content always gives the same bytes."""
    # Wide numbers first, so that each array begins at a multiple of what its numbers take.
    names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    ordered = {name: np.asarray(arrays[name], order="C") for name in names}
    data = [array.reshape(-1).view(np.uint8) for array in ordered.values()]
    checksum = _checksum([_head(text, ordered, UNKNOWN), *data])
    with whole_file(path) as file:
        file.write(_head(text, ordered, checksum))
        for part in data:
            file.write(part.data)


def read(path: str | Path) -> Content:
    """What `write` wrote, or an error that says whether the file is damaged, too new, or something else."""
    with Path(path).open("rb") as file:
        raw = _raw_header(file, path)
        header = _header(raw, path)
        data = np.fromfile(file, dtype=np.uint8)
    about = header.pop("__metadata__")
    blank = raw.replace(f'"sha256":"{about["sha256"]}"'.encode(), f'"sha256":"{UNKNOWN}"'.encode())
    if about["sha256"] != _checksum([_prefix(raw), blank, data]):
        msg = f"{path} is damaged: its bytes are not those that were written (the checksum differs)"
        raise FormatError(msg)
    try:
        return Content(str(about["model"]), dict(_arrays(header, data)))
    except (KeyError, TypeError, ValueError):
        raise FormatError(foreign(path)) from None


def _head(text: str, arrays: Mapping[str, np.ndarray], checksum: str) -> bytes:
    about = {"format": FORMAT, "version": VERSION, "sha256": checksum, "model": text}
    header: dict[str, Any] = {"__metadata__": about}
    start = 0
    for name, array in arrays.items():
        stop = start + array.nbytes
        header[name] = {"dtype": _code(name, array), "shape": list(array.shape), "data_offsets": [start, stop]}
        start = stop
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)  # the numbers begin at a multiple of eight
    return _prefix(raw) + raw


def _prefix(raw: bytes) -> bytes:
    return len(raw).to_bytes(8, "little")


def _code(name: str, array: np.ndarray) -> str:
    if array.dtype not in NAMES:
        msg = f"{name} cannot be saved: its numbers are {array.dtype}, and files hold {', '.join(CODES)}"
        raise FormatError(msg)
    return NAMES[array.dtype]


def _checksum(parts: list[Any]) -> str:
    digest = sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _raw_header(file: BinaryIO, path: str | Path) -> bytes:
    length = int.from_bytes(file.read(8), "little")
    raw = file.read(length) if length <= LARGEST_HEADER else b""
    if not raw or len(raw) < length:
        raise FormatError(foreign(path))
    return raw


def _header(raw: bytes, path: str | Path) -> dict[str, Any]:
    try:
        header = json.loads(raw)
        about = header["__metadata__"]
        found, version = about["format"], about["version"]
        _ = about["sha256"], about["model"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FormatError(foreign(path)) from None
    if found != FORMAT:
        raise FormatError(foreign(path))
    if version != VERSION:
        msg = f"{path} has version {version} of the format {FORMAT}, this regard reads version {VERSION}"
        raise FormatError(msg)
    return header


def foreign(path: str | Path) -> str:
    return f"{path} is not a fit that regard saved, or its beginning is damaged"


def _arrays(header: Mapping[str, Any], data: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    for name, entry in header.items():
        start, stop = entry["data_offsets"]
        yield name, data[start:stop].view(CODES[entry["dtype"]]).reshape(entry["shape"])
