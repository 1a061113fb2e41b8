"""Calls, token ids and texts as JSON with named arrays, and back: the layer between tensors and the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import RecordError, RecordingFileError, RegardError
from regard.recording._call import Call, key_head_index
from regard.recording._reader import Group, Stored
from regard.recording._term_codec import SPEC, decode, encode
from regard.spec import Spec
from regard.term import Term

Fetch = Callable[..., np.ndarray]  # Reader.array
PLAIN = {
    torch.float64: "<f8", torch.float32: "<f4", torch.float16: "<f2", torch.int64: "<i8", torch.int32: "<i4",
    torch.int16: "<i2", torch.int8: "|i1", torch.uint8: "|u1",
}  # fmt: skip
Packed = tuple[dict[str, Any], dict[str, np.ndarray]]  # JSON and named arrays


def pack(name: str, tensor: Tensor) -> tuple[dict[str, Any], np.ndarray]:
    """A tensor as a JSON entry and an array: booleans as bits along the last axis, bfloat16 as its bytes."""
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bool:
        flat = tensor if tensor.dim() else tensor.reshape(1)
        return {"array": name, "bits": list(tensor.shape)}, np.packbits(flat.numpy(), axis=-1)
    if tensor.dtype == torch.bfloat16:
        return {"array": name, "as": "bfloat16"}, tensor.contiguous().view(torch.int16).numpy().view(np.uint16)
    if tensor.dtype not in PLAIN:
        raise RecordError(f"{name} has numbers of {tensor.dtype}, which a recording cannot keep")
    return {"array": name}, tensor.numpy()


def unpack(entry: Mapping[str, Any], array: np.ndarray, axis: int | None = None) -> Tensor:
    """The tensor of an array, without a copy where numpy knows its dtype.

    axis: the axis along which the array is a slice of length 1, if it is one.
    """
    with torch.inference_mode(False):  # else torch would not count changes, and weights would copy it
        return _unpack(entry, array, axis)


def _unpack(entry: Mapping[str, Any], array: np.ndarray, axis: int | None) -> Tensor:
    if "bits" not in entry:
        tensor = torch.from_numpy(array.view(np.int16) if entry.get("as") == "bfloat16" else array)
        return tensor.view(torch.bfloat16) if entry.get("as") == "bfloat16" else tensor
    shape = list(entry["bits"])
    if axis is not None:
        shape[axis] = 1
    flat = np.unpackbits(np.ascontiguousarray(array), axis=-1, count=shape[-1] if shape else 1)
    return torch.from_numpy(flat.view(np.bool_)).reshape(shape)


# A call


def pack_call(call: Call) -> Packed:
    """A call as JSON and arrays."""
    arrays: dict[str, np.ndarray] = {}

    def put(name: str, tensor: Tensor) -> dict[str, Any]:
        entry, arrays[name] = pack(name, tensor)
        return entry

    tensors = {"query": call.query, "key": call.key, "lse": call.lse, "chosen": call.chosen}
    terms = {name: getattr(call.spec, name) for name in SPEC}
    meta = {
        "what": "call",
        "name": call.name,
        "step": call.step,
        "cross": call.cross,
        "heads": None if call.heads is None else list(call.heads),
        "sees": call.mask,
        **({"check": call.check} if call.check else {}),
        **{name: encode(tensor, name, put) for name, tensor in tensors.items()},
        **{name: encode(term, name, put) for name, term in terms.items()},
    }
    return meta, arrays


class StoredCall:
    """A call in a file: its name, step and shape are known, its tensors are read by `load`."""

    def __init__(self, group: Group, fetch: Fetch) -> None:
        self.group, self._fetch = group, fetch
        meta = group.meta
        self.name = _typed(meta, "name", str)
        self.step = _typed(meta, "step", int)
        self.cross = _typed(meta, "cross", bool)
        self.mask = _typed(meta, "sees", str)
        self.check = _typed(meta, "check", str) if "check" in meta else ""
        heads = meta.get("heads")
        self.heads = None if heads is None else tuple(int(head) for head in heads)
        self.query, self.key = (self._shape(meta[name]) for name in ("query", "key"))
        if min(len(self.query), len(self.key)) < 2:
            raise RecordingFileError(f"query {self.query} and key {self.key} of {self.name!r} are no matrices")
        self.shape = (*self.query[:-1], self.key[-2])
        self.bytes = sum(stored.bytes for stored in group.arrays.values())

    def load(self, head: int | None = None) -> Call:
        """The call with its tensors, as views of the file; with a head, only the bytes of that head are read."""
        key_head = None if head is None else key_head_index(self.name, self.query, self.key, head)
        meta = self.group.meta
        one = None if head is None else 1

        def get(term: type[Term[Any]] | None, field: str, entry: dict[str, Any]) -> Tensor:
            axis = None if head is None or term is None else term.head_axis(field, self._shape(entry))
            return self._tensor(entry, axis, head)

        try:
            query = self._tensor(meta["query"], one, head)
            key = self._tensor(meta["key"], one, key_head)
            lse, chosen = (
                None if meta[name] is None else self._tensor(meta[name], one, head) for name in ("lse", "chosen")
            )
            terms = {name: decode(meta[name], wanted, name, get) for name, wanted in SPEC.items()}
        except RegardError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
            raise RecordingFileError(f"chunk {self.group.chunk} does not say what a call is ({error!r})") from error
        if lse is not None and (lse.shape != query.shape[:-1] or not lse.dtype.is_floating_point):
            raise RecordingFileError(f"chunk {self.group.chunk} has a row statistic that is none of its query's")
        heads = self.heads if head is None else ((self.heads or range(self.shape[1]))[head],)
        return Call(self.name, self.step, query, key, Spec(**terms), lse, self.cross, heads, chosen, self.check)

    def _stored(self, entry: Mapping[str, Any]) -> Stored:
        return self.group.arrays[entry["array"]]

    def _shape(self, entry: Mapping[str, Any]) -> tuple[int, ...]:
        """Shape of the tensor; that of the array is shorter where it holds bits."""
        stored = self._stored(entry)
        if "bits" not in entry:
            return stored.shape
        shape = tuple(entry["bits"])
        if stored.dtype != np.uint8 or stored.shape != (*shape[:-1], -(-shape[-1] // 8) if shape else 1):
            raise RecordingFileError(f"{stored.shape} bytes do not hold the bits of {shape}")
        return shape

    def _tensor(self, entry: Mapping[str, Any], axis: int | None, index: int | None) -> Tensor:
        self._shape(entry)
        stored = self._stored(entry)
        if axis is None or index is None:
            return unpack(entry, self._fetch(stored))
        return unpack(entry, self._fetch(stored, axis, index), axis)


def _typed(meta: Mapping[str, Any], name: str, kind: type) -> Any:
    value = meta.get(name)
    if type(value) is not kind:
        raise RecordingFileError(f"{name} should be {kind.__name__}, but it says {str(value)[:80]}")
    return value


# Inputs of the model


def pack_inputs(step: int, ids: Mapping[str, Tensor], texts: Mapping[str, list[list[str]]]) -> Packed:
    """Token ids of a step as arrays, and their texts as one run of UTF-8 bytes with the length of each text."""
    arrays: dict[str, np.ndarray] = {}
    entry: dict[str, Any] = {}
    for name, tensor in ids.items():
        entry[name], arrays[name] = pack(name, tensor)
    for name, rows in texts.items():
        raw = [text.encode("utf-8", "surrogatepass") for row in rows for text in row]
        arrays[f"{name}.text"] = np.frombuffer(b"".join(raw), np.uint8)
        arrays[f"{name}.lengths"] = np.array([len(text) for text in raw], "<i4")
    return {"what": "inputs", "step": step, "ids": entry, "texts": list(texts)}, arrays


def unpack_ids(group: Group, fetch: Fetch) -> dict[str, Tensor]:
    """Token ids (batch, tokens) by the name of the input."""
    return {name: unpack(entry, fetch(group.arrays[entry["array"]])) for name, entry in group.meta["ids"].items()}


def unpack_texts(group: Group, fetch: Fetch) -> dict[str, list[list[str]]]:
    """Texts of the tokens, by the name of the input, then by sequence."""
    inputs: dict[str, list[list[str]]] = {}
    for name in group.meta["texts"]:
        rows, columns = group.arrays[name].shape
        raw = fetch(group.arrays[f"{name}.text"]).tobytes()
        stops = np.cumsum(fetch(group.arrays[f"{name}.lengths"]), dtype=np.int64).tolist()
        texts = [raw[a:b].decode("utf-8", "surrogatepass") for a, b in zip([0, *stops], stops, strict=False)]
        inputs[name] = [texts[row * columns : (row + 1) * columns] for row in range(rows)]
    return inputs


# What is missing, and notes about the recording


def pack_missing(name: str, reason: str) -> Packed:
    """A layer that ran but was left out, and why, as JSON."""
    return {"what": "missing", "name": name, "reason": reason}, {}


def unpack_missing(group: Group) -> tuple[str, str]:
    """Name of a layer that was left out, and the reason."""
    return _typed(group.meta, "name", str), _typed(group.meta, "reason", str)


def pack_about(says: Mapping[str, str]) -> Packed:
    """Notes such as {"model": "BertModel"} as JSON."""
    return {"what": "about", "says": dict(says)}, {}


def unpack_about(group: Group) -> dict[str, str]:
    says = _typed(group.meta, "says", dict)
    return {str(name): _typed(says, name, str) for name in says}
