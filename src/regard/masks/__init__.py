"""Masks say which keys a query may see: the second of the four steps score -> mask -> normalise -> pool.

The name of the constructor carries the polarity: `allow` says what is seen, `hide` what is not, and a bare
boolean tensor is refused by `attend`. Masks combine with ``&``, ``|`` and ``~``.

>>> from regard import masks
>>> masks.causal() & ~masks.prefix(2)
causal & ~prefix(2)
"""

from __future__ import annotations

from numbers import Integral

import torch
from jaxtyping import Bool, Integer
from torch import Tensor

from regard.errors import ChoiceError, MaskError
from regard.masks._base import ALL, NONE, SOME, Both, Mask, Not, Whole  # noqa: F401  the rest of the package takes them here
from regard.masks._rules import (  # noqa: F401  the same
    Align,
    Allow,
    Band,
    Near,
    Padding,
    Prefix,
    QueryLengths,
    Ranges,
    Segments,
)
from regard.term import check_ordinary, type_name

__all__ = [
    "ALL", "NONE", "SOME", "Band", "Mask", "allow", "causal", "hide", "padding", "prefix", "ranges", "segments",
    "window",
]  # fmt: skip


INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)  # torch compares no other unsigned ones
MOST_KEYS = 1 << 62  # a window or a prefix beyond it would overflow positions
_causal: dict[Align | None, Band] = {}  # built once for each alignment: small models ask for one in every call


def causal(align: Align | None = None) -> Mask:
    """A query sees its own position and what came before: j <= i."""
    mask = _causal.get(align)
    if mask is None:
        mask = _causal[align] = Band(None, 0, _align(align), "causal" if align is None else f"causal({align!r})")
    return mask


def window(left: int, right: int, align: Align | None = None) -> Mask:
    """A query sees `left` keys before its position, its own key, and `right` keys after it: -left <= j - i <= right."""
    if not (_is_count(left) and _is_count(right)):
        msg = (
            f"window(left, right) counts keys before and after a query, 0 or more, 2**62 at most: left={left!r:.40}, "
            f"right={right!r:.40}"
        )
        raise ChoiceError(msg)
    return Band(left, right, _align(align), f"window({left}, {right}{'' if align is None else f', {align!r}'})")


def prefix(n: int) -> Mask:
    """Every query sees the first n keys."""
    if not _is_count(n):
        msg = f"prefix(n) shows the first n keys, so n is a whole number from 0 to 2**62: n={n!r:.40}"
        raise ChoiceError(msg)
    return Prefix(n)


def padding(lengths: Integer[Tensor, "*lead"]) -> Mask:
    """Every query sees the first `lengths` keys; lengths (B,) or (B, H) follow the leading axes from the left."""
    return Padding(_integers(lengths, "lengths of padding"))


def ranges(start: Integer[Tensor, "... queries"], stop: Integer[Tensor, "... queries"]) -> Mask:
    """Query i sees keys start_i <= j < stop_i: integers (..., n) that follow the leading axes from the left."""
    return Ranges(_integers(start, "start of ranges"), _integers(stop, "stop of ranges"))


def segments(q_ids: Integer[Tensor, "... queries"], k_ids: Integer[Tensor, "... keys"] | None = None) -> Mask:
    """A query sees the keys of its own segment; ids are (..., n) and (..., m), the same if only one is given."""
    q_ids = _integers(q_ids, "q_ids of segments")
    return Segments(q_ids, q_ids if k_ids is None else _integers(k_ids, "k_ids of segments"))


def allow(visible: Bool[Tensor, "..."]) -> Mask:
    """True is seen: booleans that broadcast to (..., n, m)."""
    return Allow(_booleans(visible, "allow"), "allow")


def hide(hidden: Bool[Tensor, "..."]) -> Mask:
    """True is hidden: booleans that broadcast to (..., n, m)."""
    return Not(Allow(_booleans(hidden, "hide"), "hide"))


def _is_count(value: object) -> bool:
    """True for a whole number of keys that can be added to positions without overflow, also while it is traced."""
    return isinstance(value, Integral | torch.SymInt) and bool(0 <= value <= MOST_KEYS)  # pyright: ignore[reportOperatorIssue]


def _align(align: Align | None) -> Align | None:
    if align not in (None, "top-left", "bottom-right"):
        msg = f"align is 'top-left' or 'bottom-right', not {align!r}"
        raise ChoiceError(msg)
    return align


def _integers(value: object, name: str) -> Integer[Tensor, "..."]:
    if not isinstance(value, Tensor) or value.dtype not in INTEGERS:
        known = ", ".join(str(dtype) for dtype in INTEGERS)
        msg = f"{name} must be a tensor of integers ({known}), but it is {type_name(value)}"
        raise MaskError(msg)
    check_ordinary(value, name)
    return value


def _booleans(value: object, name: str) -> Bool[Tensor, "..."]:
    if not isinstance(value, Tensor) or value.dtype != torch.bool:
        msg = (
            f"{name}(...) takes a tensor of torch.bool, but it is {type_name(value)} "
            f"(numbers to add to scores go to scores.bias)"
        )
        raise MaskError(msg)
    check_ordinary(value, f"the tensor of {name}")
    return value
