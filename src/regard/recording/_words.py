"""Words of a formula as plain JSON: {"word": its name, a field: its value}, tensors by the name of their array.

Only words that are listed here are read, and only with fields of the types that they declare: a file cannot name code.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor

from regard import masks, normalisers, scores
from regard.errors import RecordError, RecordingFileError
from regard.masks import _base as mask_base
from regard.masks import _rules as mask_rules
from regard.scores import _additive, _compose, _distance, _linear
from regard.scores import _base as score_base
from regard.term import Word

KNOWN: dict[str, type[Word[Any]]] = {
    kind.__name__: kind
    for kind in (
        _linear.Dot, _linear.Cosine, _linear.General, _linear.Location, _linear.Uniform,
        _additive.Additive, _additive.Concat, _distance.Gaussian, _distance.Kernel,
        _compose.Bias, _compose.Alibi, _compose.Relative, _compose.Softcap, score_base.Sum,
        mask_rules.Band, mask_rules.Prefix, mask_rules.Padding, mask_rules.QueryLengths, mask_rules.Ranges,
        mask_rules.Near, mask_rules.Segments, mask_rules.Allow, mask_base.Not, mask_base.Both, mask_base.Either,
        normalisers.Softmax, normalisers.Sparsemax, normalisers.Entmax15, normalisers.Sigmoid, normalisers.Tapered,
        normalisers.Hard,
    )
}  # fmt: skip
ODD = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}  # numbers that JSON does not have

Put = Callable[[str, Tensor], dict[str, Any]]  # name of an array, tensor -> what the tree says of it
Get = Callable[[str, str, dict[str, Any]], Tensor]  # word, field, what the tree says -> tensor


def encode(value: Any, name: str, put: Put) -> Any:
    """A word, or a value of a field, as JSON. `name` is where we are."""
    if isinstance(value, Tensor):
        return put(name, value)
    if isinstance(value, Word):
        kind = type(value).__name__
        if KNOWN.get(kind) is not type(value):
            raise RecordError(f"{kind} is no word that a recording can keep; it knows {', '.join(KNOWN)}")
        inside = {field: encode(getattr(value, field), f"{name}.{field}", put) for field in _types(kind)}
        return {"word": kind, **inside}
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else {"number": str(float(value))}
    if isinstance(value, torch.Generator):  # what it drew is kept, and it draws no more
        return None
    raise RecordError(f"{name} is {type(value).__name__}, which a recording cannot keep")


def decode(tree: Any, wanted: Any, name: str, get: Get, word: str = "") -> Any:
    """The value that a tree says, if it is of a wanted type."""
    value = tree
    if isinstance(tree, dict):
        if "word" in tree:
            value = _word(tree, name, get)
        elif "array" in tree and _fits(Tensor, wanted):
            value = get(word, name.rsplit(".", 1)[-1], tree)
        elif tree.get("number") in ODD:
            value = ODD[tree["number"]]
    if isinstance(value, dict | list) or not _is(value, wanted):
        raise RecordingFileError(f"{name} should be {_called(wanted)}, but it says {str(tree)[:80]}")
    return value


def _word(tree: dict[str, Any], name: str, get: Get) -> Word[Any]:
    kind = tree["word"]
    if not isinstance(kind, str) or kind not in KNOWN:
        raise RecordingFileError(f"{name} is the word {str(kind)[:40]!r}, which this regard does not know")
    declared = _types(kind)
    if set(tree) - {"word"} != set(declared):
        found = ", ".join(sorted(set(tree) - {"word"}))[:80]
        raise RecordingFileError(f"{kind} has the fields {', '.join(declared) or 'none'}, but {name} says {found}")
    inside = {field: decode(tree[field], wanted, f"{name}.{field}", get, kind) for field, wanted in declared.items()}
    return KNOWN[kind](**inside)


@cache
def _types(kind: str) -> dict[str, Any]:
    cls: Any = KNOWN[kind]
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in fields(cls)}


def _options(wanted: Any) -> tuple[Any, ...]:
    if isinstance(wanted, types.UnionType) or typing.get_origin(wanted) is typing.Union:
        return tuple(option for part in typing.get_args(wanted) for option in _options(part))
    return (wanted,)


def _fits(kind: type, wanted: Any) -> bool:
    return kind in _options(wanted)


def _is(value: Any, wanted: Any) -> bool:
    return any(_is_one(value, option) for option in _options(wanted))


def _is_one(value: Any, wanted: Any) -> bool:
    if wanted is None or wanted is type(None):
        return value is None
    if typing.get_origin(wanted) is typing.Literal:
        return value in typing.get_args(wanted)
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, wanted)


def _called(wanted: Any) -> str:
    return " or ".join(getattr(option, "__name__", str(option)) for option in _options(wanted))


SPEC = {"score": scores.Score, "mask": masks.Mask | None, "normaliser": normalisers.Normaliser}
