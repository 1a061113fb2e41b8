"""Where the heads are in the tensors of words: for weights (batch, heads, n, m)."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from torch import Tensor

from regard.spec import Spec
from regard.term import Word

# Counted from the right: these tensors broadcast.
FROM_RIGHT = {
    ("Bias", "t"): -3,
    ("Alibi", "slopes"): -1,
    ("Relative", "table"): -2,
    ("Allow", "visible"): -3,
    ("Tapered", "centres"): -2,
}
# These follow (batch, heads) from the left; how many dimensions of their own they have behind.
FROM_LEFT = {
    ("Padding", "lengths"): 0,
    ("QueryLengths", "lengths"): 1,
    ("Ranges", "start"): 1,
    ("Ranges", "stop"): 1,
    ("Near", "centres"): 1,
    ("Segments", "q_ids"): 1,
    ("Segments", "k_ids"): 1,
}


def head_axis(word: str, field: str, shape: tuple[int, ...]) -> int | None:
    """The axis along which a word's tensor differs from head to head; None if all heads share it."""
    axis = FROM_RIGHT.get((word, field))
    own = FROM_LEFT.get((word, field))
    if own is not None and len(shape) - own >= 2:
        axis = 1 - len(shape)
    if axis is None or len(shape) < -axis or shape[axis] == 1:
        return None
    return len(shape) + axis


def of_head(words: Any, head: int) -> Any:
    """A spec or a word for one head alone."""
    if not isinstance(words, Spec | Word):
        return words
    changed: dict[str, Any] = {}
    for field in (f.name for f in fields(words) if f.init):  # pyright: ignore[reportArgumentType]
        value = getattr(words, field)
        if isinstance(value, Tensor):
            axis = head_axis(type(words).__name__, field, tuple(value.shape))
            value = value if axis is None else value.narrow(axis, head, 1)
        changed[field] = of_head(value, head)
    return replace(words, **changed)  # pyright: ignore[reportArgumentType]
