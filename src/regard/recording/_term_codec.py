"""Terms of a formula as JSON: {"word": name of the term, field: value}, with tensors as names of arrays in the file.

Only terms that are defined in this process are read, and only with the fields and types that they declare: a file
cannot name code.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor

from regard.errors import RecordError, RecordingFileError, RegardError
from regard.masks import Mask
from regard.normalisers import Normaliser
from regard.scores import Score
from regard.term import TERMS, Term

SPEC = {"score": Score, "mask": Mask | None, "normaliser": Normaliser}  # the fields of a Spec, and their types
NON_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}  # numbers that JSON does not have

Put = Callable[[str, Tensor], dict[str, Any]]  # name for the array, tensor -> JSON that refers to the array
Get = Callable[[type[Term[Any]] | None, str, dict[str, Any]], Tensor]  # term, field, JSON -> tensor


def encode(value: Any, path: str, put: Put) -> Any:
    """JSON for a term or for the value of a field. `path` says where it stands: "score.inner.w"."""
    if isinstance(value, Tensor):
        return put(path, value)
    if isinstance(value, Term):
        inside = {field: encode(getattr(value, field), f"{path}.{field}", put) for field in value.stored_fields()}
        return {"word": value.term_name, **inside}
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else {"number": str(float(value))}
    if isinstance(value, torch.Generator):  # what it drew is kept, and it draws no more
        return None
    raise RecordError(f"{path} is {type(value).__name__}, which a recording cannot keep")


def decode(tree: Any, wanted: Any, path: str, get: Get, term: type[Term[Any]] | None = None) -> Any:
    """The value that JSON says, if it has the wanted type; `term` is the term whose field it is."""
    value = tree
    if isinstance(tree, dict):
        if "word" in tree:
            value = _decode_term(tree, path, get)
        elif "array" in tree and any(_without_shape(option) is Tensor for option in _options(wanted)):
            value = get(term, path.rsplit(".", 1)[-1], tree)
        elif tree.get("number") in NON_FINITE:
            value = NON_FINITE[tree["number"]]
    if isinstance(value, dict | list) or not any(_has_type(value, option) for option in _options(wanted)):
        raise RecordingFileError(f"{path} should be {_describe_type(wanted)}, but it says {str(tree)[:80]}")
    return value


def _decode_term(tree: dict[str, Any], path: str, get: Get) -> Term[Any]:
    name = tree["word"]
    if not isinstance(name, str) or name not in TERMS:
        raise RecordingFileError(
            f"{path} is the word {str(name)[:40]!r}, which this regard does not know: "
            "a term from outside the package must be defined before its recording is read"
        )
    term = TERMS[name]
    declared = term.stored_fields()
    if set(tree) - {"word"} != set(declared):
        stored = ", ".join(sorted(set(tree) - {"word"}))[:80]
        raise RecordingFileError(f"{name} has the fields {', '.join(declared) or 'none'}, but {path} says {stored}")
    inside = {field: decode(tree[field], wanted, f"{path}.{field}", get, term) for field, wanted in declared.items()}
    try:
        return term(**inside)
    except RegardError as error:  # such as a kernel that is not defined in this process
        raise RecordingFileError(f"{path} cannot be read: {error}") from error


def _options(wanted: Any) -> tuple[Any, ...]:
    if isinstance(wanted, types.UnionType) or typing.get_origin(wanted) is typing.Union:
        return tuple(option for part in typing.get_args(wanted) for option in _options(part))
    return (wanted,)


def _without_shape(option: Any) -> Any:
    """Tensor for jaxtyping's Float[Tensor, "..."], and any other type as it is."""
    return getattr(option, "array_type", option)


def _has_type(value: Any, wanted: Any) -> bool:
    if wanted is None or wanted is type(None):
        return value is None
    if typing.get_origin(wanted) is typing.Literal:
        return value in typing.get_args(wanted)
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, _without_shape(wanted))


def _describe_type(wanted: Any) -> str:
    options = [_without_shape(option) for option in _options(wanted)]
    return " or ".join(getattr(option, "__name__", str(option)) for option in options)
