"""Model files: save a fitted estimator and load it, without pickle. docs/formats/model.md describes the bytes.

A file is safetensors with a checksum over every byte: named arrays and one JSON text. It holds numbers and names, never
code.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from regard import kernels
from regard.engine.files import atomic_file, open_regular
from regard.errors import ChoiceError, FormatError

FORMAT, VERSION = "regard-fit", "1"
BLANK_CHECKSUM = "0" * 64  # stands in its place while the checksum is computed
LARGEST_HEADER = 100_000_000  # bytes, as in safetensors: not more is read of a file that may be something else
DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1", "BOOL": "|b1"}
DTYPE_NAMES = {np.dtype(code): name for name, code in DTYPES.items()}
SAVED_AS_TEXT = ("device", "plan_")  # objects whose text is all there is to know
Model = TypeVar("Model", bound=Any)


class Persistence:
    """Mixin: `save` and `load` of a fitted estimator."""

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to a file, without pickle: the format is in docs/formats/model.md.

        The file holds the parameters and every attribute whose name ends in an underscore.

        >>> import numpy as np
        >>> from regard import NadarayaWatson
        >>> x = np.linspace(0, 5, 50)[:, None]
        >>> NadarayaWatson(bandwidth=0.5).fit(x, np.sin(x[:, 0])).save("sine.regard-fit")
        >>> NadarayaWatson.load("sine.regard-fit").predict([[1.0]]).round(2)
        array([0.76])
        """
        check_is_fitted(self)
        model: Any = self
        if model.blocks_ is not None:
            raise FormatError("save needs the data in memory, but this estimator was fitted on blocks of it")
        learned = {name: value for name, value in vars(self).items() if is_learned(name)}
        arrays = {name: a for name, a in learned.items() if isinstance(a, np.ndarray) and a.dtype != object}
        others = {name: _to_json(name, value) for name, value in learned.items() if name not in arrays}
        parameters = {name: _to_json(name, value) for name, value in model.get_params(deep=False).items()}
        text = {"class": type(self).__name__, "parameters": parameters, "learned": others}
        write(path, json.dumps(text, separators=(",", ":"), sort_keys=True, allow_nan=False), arrays)

    @classmethod
    def load(cls: type[Model], path: str | Path) -> Model:  # noqa: PYI019  jaxtyping's run-time checks do not know Self
        """Read an estimator that `save` wrote; it predicts the same bits.

        A file that is damaged, or that is something else, raises FormatError.
        """
        text, arrays = read(path)
        try:
            content = json.loads(text)
            if content["class"] != cls.__name__:
                raise FormatError(f"{path} holds a {content['class']}, and a {cls.__name__} is wanted")
            kernels.get(content["parameters"]["kernel"])  # a file holds its name alone
            model = cls(**{name: _from_json(value) for name, value in content["parameters"].items()})
            learned = {name: _from_json(value) for name, value in content["learned"].items()} | arrays
        except ChoiceError as error:
            raise FormatError(f"{path} cannot be read before its kernel is defined: {error}") from None
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError):
            raise FormatError(_not_a_fit(path)) from None
        for name, value in learned.items():
            if not is_learned(name):  # somebody made this file by hand: it must not replace a method
                raise FormatError(_not_a_fit(path))
            setattr(model, name, value)
        return model


def is_learned(name: str) -> bool:
    """Return True for the name of a learned attribute, as scikit-learn names them: `bandwidth_`."""
    return name.endswith("_") and not name.startswith("_")


def _to_json(name: str, value: Any) -> Any:
    """Convert to JSON. What JSON lacks becomes an object: {"float": "inf"}, {"names": [...]}, {"columns": [...]}..."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.ndarray):
        kind = {"O": "names", "U": "texts"}.get(value.dtype.kind, "array")
        return {kind: [_to_json(name, part) for part in value.tolist()]}
    if isinstance(value, dict):  # of columns by their numbers
        return {"columns": [[_to_json(name, key), _to_json(name, part)] for key, part in value.items()]}
    if isinstance(value, list | tuple):
        return [_to_json(name, part) for part in value]
    if isinstance(value, kernels.Kernel):
        return value.name
    if name in SAVED_AS_TEXT:
        return str(value)
    msg = f"{name} cannot be saved: it is a {type(value).__name__}, and a file holds numbers, texts and arrays"
    raise FormatError(msg)


def _from_json(value: Any) -> Any:
    match value:
        case {"float": text}:
            return float(text)
        case {"names": names}:
            return np.array(names, dtype=object)
        case {"texts": texts}:
            return np.array(texts, dtype=str)
        case {"columns": pairs}:
            return {int(key): _from_json(part) for key, part in pairs}
        case {"array": numbers}:
            return np.array([_from_json(number) for number in numbers])
        case list():
            return [_from_json(part) for part in value]
        case _:
            return value


# The file format


def write(path: str | Path, text: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays and a text; the same content always gives the same bytes."""
    # Wide dtypes first, so that each array begins at a multiple of its item size.
    names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    ordered = {name: np.asarray(arrays[name], order="C") for name in names}
    data = [array.reshape(-1).view(np.uint8) for array in ordered.values()]
    checksum = _checksum([_head(text, ordered, BLANK_CHECKSUM), *data])
    with atomic_file(path) as file:
        file.write(_head(text, ordered, checksum))
        for part in data:
            file.write(part.data)


def read(path: str | Path) -> tuple[str, dict[str, np.ndarray]]:
    """Read a file of `write`; raise FormatError that says whether it is damaged, too new, or something else."""
    with os.fdopen(open_regular(Path(path)), "rb") as file:
        raw, header = _header(file, path)
        data = np.fromfile(file, dtype=np.uint8)
    about = header.pop("__metadata__")
    blank = raw.replace(f'"sha256":"{about["sha256"]}"'.encode(), f'"sha256":"{BLANK_CHECKSUM}"'.encode())
    if about["sha256"] != _checksum([_prefix(raw), blank, data]):
        raise FormatError(f"{path} is damaged: its bytes are not those that were written (the checksum differs)")
    try:
        arrays = {}
        for name, entry in header.items():
            start, stop = entry["data_offsets"]
            arrays[name] = data[start:stop].view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
        return str(about["model"]), arrays
    except (KeyError, TypeError, ValueError):
        raise FormatError(_not_a_fit(path)) from None


def _head(text: str, arrays: Mapping[str, np.ndarray], checksum: str) -> bytes:
    about = {"format": FORMAT, "version": VERSION, "sha256": checksum, "model": text}
    header: dict[str, Any] = {"__metadata__": about}
    start = 0
    for name, array in arrays.items():
        if array.dtype not in DTYPE_NAMES:
            held = ", ".join(DTYPES)
            raise FormatError(f"{name} cannot be saved: its numbers are {array.dtype}, and files hold {held}")
        stop = start + array.nbytes
        header[name] = {"dtype": DTYPE_NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [start, stop]}
        start = stop
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)  # the numbers begin at a multiple of eight
    return _prefix(raw) + raw


def _prefix(raw: bytes) -> bytes:
    return len(raw).to_bytes(8, "little")


def _checksum(parts: list[Any]) -> str:
    digest = sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _header(file: BinaryIO, path: str | Path) -> tuple[bytes, dict[str, Any]]:
    """Bytes of the header and what they say."""
    length = int.from_bytes(file.read(8), "little")
    raw = file.read(length) if length <= LARGEST_HEADER else b""
    try:
        header = json.loads(raw if len(raw) == length else b"")
        about = header["__metadata__"]
        file_format, version = about["format"], about["version"]
        _ = about["sha256"], about["model"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FormatError(_not_a_fit(path)) from None
    if file_format != FORMAT:
        raise FormatError(_not_a_fit(path))
    if version != VERSION:
        raise FormatError(f"{path} has version {version} of the format {FORMAT}, this regard reads version {VERSION}")
    return raw, header


def _not_a_fit(path: str | Path) -> str:
    return f"{path} is not a fit that regard saved, or its beginning is damaged"
