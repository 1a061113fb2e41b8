"""Strict JSON: nothing but RFC 8259 is read, and every number that is written is finite."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def loads(text: str | bytes) -> object:
    """The value of a JSON text from an untrusted sender; bytes must be UTF-8.

    Raises ValueError with the reason: not JSON, NaN or Infinity, a key that occurs twice, nested too deeply.

    >>> loads('{"rows": [1, 2.5]}')
    {'rows': [1, 2.5]}
    """
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        return json.loads(decoded, parse_constant=_refuse_constant, object_pairs_hook=_object_with_unique_keys)
    except RecursionError:
        raise ValueError("it goes deeper than any state does") from None


def dumps(value: Any) -> bytes:
    """JSON in UTF-8 as every browser reads it: NaN and infinities become null."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:  # rare, so that most values are walked once only
        text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")  # half a surrogate pair in a token's text is no reason to fail


def plain(value: Any) -> Any:
    """A nested value as JSON holds it: tensors and arrays become lists, NaN and infinities None.

    >>> plain({"row": (1.5, float("nan"))})
    {'row': [1.5, None]}
    """
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"it has no {name}")


def _object_with_unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"it says {twice if len(twice) <= 40 else twice[:40] + '...'!r} twice")
    return unique
