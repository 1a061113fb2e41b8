"""Which keys a query may see: the second of the four words score -> mask -> normalise -> pool.

The name of the constructor carries the polarity: `allow` says what is seen, `hide` what is not, and a bare
boolean tensor is refused by `attend`. Masks combine with ``&``, ``|`` and ``~``.

>>> from regard import masks
>>> masks.causal() & ~masks.prefix(2)
causal & ~prefix(2)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from regard._operands import Axis, Operand, Size, Span
from regard.errors import ChoiceError, MaskError, ShapeError

__all__ = ["Mask", "allow", "causal", "hide", "padding", "prefix", "segments", "window"]

Align = Literal["top-left", "bottom-right"]
NONE, SOME, ALL = 0, 1, 2  # what a mask says of a block: nothing is visible, something, everything


class Mask:
    """A rule for which of n x m pairs are visible. Subclasses fill in `tile` and `kinds`."""

    def __and__(self, other: Mask) -> Mask:
        return Both(self, other) if isinstance(other, Mask) else NotImplemented

    def __or__(self, other: Mask) -> Mask:
        return Either(self, other) if isinstance(other, Mask) else NotImplemented

    def __invert__(self) -> Mask:
        return Not(self)

    @property
    def signature(self) -> Hashable:
        """All that a plan may depend on: never the numbers in tensors."""
        shapes = tuple((name, tuple(t.shape)) for name, t in self.tensors().items())
        return (type(self).__name__, shapes)

    @property
    def arity(self) -> int:
        """How many operands this mask makes."""
        return 0

    @property
    def per_key(self) -> bool:
        """Whether every query of a head sees the same keys."""
        return False

    def tensors(self) -> Mapping[str, Tensor]:
        """The tensors that belong to the caller, by name."""
        return {}

    def check(self, lead: tuple[int, ...], n: int, m: int) -> None:
        """Raise where sizes do not fit."""

    def operands(self, lead: tuple[int, ...]) -> tuple[Operand, ...]:
        del lead
        return ()

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Tensor:
        """Visible or not, as booleans that broadcast to (..., rows, cols)."""
        raise NotImplementedError

    def kinds(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        """NONE, SOME or ALL for each block of columns between two edges; without tensors, from sizes alone."""
        del tensors, rows, size
        return [SOME] * (len(edges) - 1)

    def reach(self, rows: Span, size: Size) -> list[tuple[int, int]]:
        """Sorted ranges of columns outside of which nothing is visible to these rows, from sizes alone."""
        del rows
        return [(0, size.m)]


@dataclass(frozen=True)
class Band(Mask):
    """-left <= j - i <= right, where None is no limit."""

    left: int | None
    right: int | None
    align: Align | None
    name: str

    @property
    def signature(self) -> Hashable:
        return (self.left, self.right, self.align)

    def check(self, lead: tuple[int, ...], n: int, m: int) -> None:
        if n != m and self.align is None:
            msg = (
                f"{self.name} with {n} queries and {m} keys needs align='top-left' (query 0 beside key 0) or "
                f"align='bottom-right' (the last query beside the last key)"
            )
            raise MaskError(msg)

    def offset(self, size: Size) -> int:
        return size.m - size.n if self.align == "bottom-right" else 0

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Tensor:
        del tensors
        gap = cols.positions(size.device) - (rows.positions(size.device)[:, None] + self.offset(size))
        if self.left is None or self.right is None:
            return gap >= -self.left if self.left is not None else gap <= (self.right or 0)
        return (gap >= -self.left) & (gap <= self.right)

    def kinds(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        del tensors
        first, last = rows.start + self.offset(size), rows.stop - 1 + self.offset(size)
        low = -self.left if self.left is not None else -(1 << 62)
        high = self.right if self.right is not None else 1 << 62
        found: list[int] = []
        for start, stop in zip(edges[:-1], edges[1:], strict=True):
            nearest, farthest = start - last, stop - 1 - first
            outside = farthest < low or nearest > high
            found.append(NONE if outside else ALL if nearest >= low and farthest <= high else SOME)
        return found

    def reach(self, rows: Span, size: Size) -> list[tuple[int, int]]:
        first, last = rows.start + self.offset(size), rows.stop - 1 + self.offset(size)
        low = 0 if self.left is None else max(0, first - self.left)
        high = size.m if self.right is None else min(size.m, last + self.right + 1)
        return [(low, high)] if low < high else []

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Prefix(Mask):
    length: int

    @property
    def signature(self) -> Hashable:
        return ("Prefix", self.length)

    @property
    def per_key(self) -> bool:
        return True

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Tensor:
        del tensors, rows
        return (cols.positions(size.device) < self.length)[None, :]

    def kinds(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        del tensors, rows, size
        return _below(edges, self.length, self.length)

    def reach(self, rows: Span, size: Size) -> list[tuple[int, int]]:
        del rows
        return [(0, min(self.length, size.m))] if self.length and size.m else []

    def __repr__(self) -> str:
        return f"prefix({self.length})"


def _below(edges: Sequence[int], shortest: int, longest: int) -> list[int]:
    pairs = zip(edges[:-1], edges[1:], strict=True)
    return [ALL if stop <= shortest else NONE if start >= longest else SOME for start, stop in pairs]


@dataclass(frozen=True, eq=False, repr=False)
class Padding(Mask):
    lengths: Tensor

    @property
    def arity(self) -> int:
        return 1

    @property
    def per_key(self) -> bool:
        return True

    def tensors(self) -> Mapping[str, Tensor]:
        return {"lengths of padding": self.lengths}

    def check(self, lead: tuple[int, ...], n: int, m: int) -> None:
        _check_left(self.lengths.shape, lead, "lengths of padding")

    def operands(self, lead: tuple[int, ...]) -> tuple[Operand, ...]:
        return (Operand(_from_left(self.lengths, len(lead), 0)[..., None, None], Axis.PAIR),)

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Tensor:
        del rows, size
        (lengths,) = tensors
        return cols.positions(lengths.device) < lengths

    def kinds(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        del rows, size
        if tensors is None or not tensors[0].numel():
            return [SOME] * (len(edges) - 1)
        (lengths,) = tensors
        return _below(edges, int(lengths.min()), int(lengths.max()))

    def __repr__(self) -> str:
        return "padding(lengths)"


@dataclass(frozen=True, eq=False, repr=False)
class Segments(Mask):
    q_ids: Tensor
    k_ids: Tensor

    @property
    def arity(self) -> int:
        return 2

    def tensors(self) -> Mapping[str, Tensor]:
        return {"q_ids of segments": self.q_ids, "k_ids of segments": self.k_ids}

    def check(self, lead: tuple[int, ...], n: int, m: int) -> None:
        for name, ids, length in (("q_ids", self.q_ids, n), ("k_ids", self.k_ids, m)):
            if ids.shape[-1] != length:
                what = "queries" if name == "q_ids" else "keys"
                msg = f"{name} of segments needs one id for each of {length} {what}, but its shape is {tuple(ids.shape)}"
                raise ShapeError(msg)
            _check_left(ids.shape[:-1], lead, f"{name} of segments")

    def operands(self, lead: tuple[int, ...]) -> tuple[Operand, ...]:
        return (
            Operand(_from_left(self.q_ids, len(lead), 1)[..., None], Axis.QUERY),
            Operand(_from_left(self.k_ids, len(lead), 1)[..., None], Axis.KEY),
        )

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Tensor:
        del rows, cols, size
        queries, keys = tensors
        return queries == keys.mT

    def kinds(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        del size
        if tensors is None or not tensors[0].numel():
            return [SOME] * (len(edges) - 1)
        queries, keys = rows.take(tensors[0], -2), tensors[1]
        low, high = int(queries.min()), int(queries.max())
        flat = keys.reshape(-1, keys.shape[-2])
        bounds = torch.stack([flat.amin(0), flat.amax(0)]).tolist()
        pairs = zip(edges[:-1], edges[1:], strict=True)
        blocks = [(min(bounds[0][a:b]), max(bounds[1][a:b])) for a, b in pairs]
        return [NONE if x > high or y < low else ALL if x == y == low == high else SOME for x, y in blocks]

    def __repr__(self) -> str:
        return "segments(q_ids, k_ids)"


@dataclass(frozen=True, eq=False, repr=False)
class Allow(Mask):
    visible: Tensor
    name: str

    @property
    def arity(self) -> int:
        return 1

    @property
    def per_key(self) -> bool:
        return self.visible.dim() < 2 or self.visible.shape[-2] == 1  # noqa: PLR2004

    def tensors(self) -> Mapping[str, Tensor]:
        return {f"the tensor of {self.name}": self.visible}

    def check(self, lead: tuple[int, ...], n: int, m: int) -> None:
        full = (*lead, n, m)
        if not _broadcasts(self.visible.shape, full):
            msg = f"{self.name}(...) must broadcast to (..., queries, keys) = {full}, but it is {tuple(self.visible.shape)}"
            raise ShapeError(msg)

    def operands(self, lead: tuple[int, ...]) -> tuple[Operand, ...]:
        del lead
        return (Operand(self.visible if self.visible.dim() > 1 else self.visible.reshape(1, -1), Axis.PAIR),)

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Tensor:
        del rows, cols, size
        return tensors[0]

    def kinds(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        if tensors is None or tensors[0].shape[-1] != size.m or not tensors[0].numel():
            return [SOME] * (len(edges) - 1)
        (visible,) = tensors
        if visible.shape[-2] != 1:
            visible = rows.take(visible, -2)
        flat = visible.reshape(-1, size.m)
        per_column = torch.stack([flat.any(0), flat.all(0)]).tolist()
        pairs = zip(edges[:-1], edges[1:], strict=True)
        return [ALL if all(per_column[1][a:b]) else SOME if any(per_column[0][a:b]) else NONE for a, b in pairs]

    def __repr__(self) -> str:
        return f"{self.name}(...)"


@dataclass(frozen=True, repr=False)
class Not(Mask):
    inner: Mask

    @property
    def signature(self) -> Hashable:
        return ("Not", self.inner.signature)

    @property
    def arity(self) -> int:
        return self.inner.arity

    @property
    def per_key(self) -> bool:
        return self.inner.per_key

    def tensors(self) -> Mapping[str, Tensor]:
        return self.inner.tensors()

    def check(self, lead: tuple[int, ...], n: int, m: int) -> None:
        self.inner.check(lead, n, m)

    def operands(self, lead: tuple[int, ...]) -> tuple[Operand, ...]:
        return self.inner.operands(lead)

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Tensor:
        return ~self.inner.tile(tensors, rows, cols, size)

    def kinds(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        return [ALL - kind for kind in self.inner.kinds(tensors, rows, edges, size)]

    def __repr__(self) -> str:
        if isinstance(self.inner, Allow):
            return "hide(...)"
        return f"~({self.inner})" if isinstance(self.inner, Pair) else f"~{self.inner}"


@dataclass(frozen=True, repr=False)
class Pair(Mask):
    """Two masks and how they combine: `join` on booleans, `pick` on NONE < SOME < ALL."""

    first: Mask
    second: Mask

    symbol = "?"

    def join(self, one: Tensor, two: Tensor) -> Tensor:
        raise NotImplementedError

    pick: Callable[[int, int], int] = min

    @property
    def signature(self) -> Hashable:
        return (self.symbol, self.first.signature, self.second.signature)

    @property
    def arity(self) -> int:
        return self.first.arity + self.second.arity

    @property
    def per_key(self) -> bool:
        return self.first.per_key and self.second.per_key

    def tensors(self) -> Mapping[str, Tensor]:
        return {**self.first.tensors(), **self.second.tensors()}

    def check(self, lead: tuple[int, ...], n: int, m: int) -> None:
        self.first.check(lead, n, m)
        self.second.check(lead, n, m)

    def operands(self, lead: tuple[int, ...]) -> tuple[Operand, ...]:
        return self.first.operands(lead) + self.second.operands(lead)

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Tensor:
        split = self.first.arity
        one = self.first.tile(tensors[:split], rows, cols, size)
        return self.join(one, self.second.tile(tensors[split:], rows, cols, size))

    def kinds(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        split = self.first.arity
        one = self.first.kinds(None if tensors is None else tensors[:split], rows, edges, size)
        two = self.second.kinds(None if tensors is None else tensors[split:], rows, edges, size)
        return [type(self).pick(a, b) for a, b in zip(one, two, strict=True)]

    def __repr__(self) -> str:
        sides = (f"({s})" if isinstance(s, Pair) and s.symbol != self.symbol else str(s) for s in (self.first, self.second))
        return f" {self.symbol} ".join(sides)


class Both(Pair):
    symbol = "&"
    pick = min

    def join(self, one: Tensor, two: Tensor) -> Tensor:
        return one & two

    def reach(self, rows: Span, size: Size) -> list[tuple[int, int]]:
        one, two = self.first.reach(rows, size), self.second.reach(rows, size)
        common = [(max(a, c), min(b, d)) for a, b in one for c, d in two]
        return sorted((low, high) for low, high in common if low < high)


class Either(Pair):
    symbol = "|"
    pick = max

    def join(self, one: Tensor, two: Tensor) -> Tensor:
        return one | two

    def reach(self, rows: Span, size: Size) -> list[tuple[int, int]]:
        merged: list[tuple[int, int]] = []
        for low, high in sorted(self.first.reach(rows, size) + self.second.reach(rows, size)):
            if merged and low <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        return merged


def causal(align: Align | None = None) -> Mask:
    """A query sees its own position and what came before: j <= i."""
    return Band(None, 0, _align(align), "causal" if align is None else f"causal({align!r})")


def window(left: int, right: int, align: Align | None = None) -> Mask:
    """A query sees `left` keys before its position, its own, and `right` after: -left <= j - i <= right."""
    if left < 0 or right < 0:
        msg = f"window(left, right) counts keys before and after a query, so neither is negative: left={left}, right={right}"
        raise ChoiceError(msg)
    return Band(left, right, _align(align), f"window({left}, {right}{'' if align is None else f', {align!r}'})")


def prefix(n: int) -> Mask:
    """Every query sees the first n keys."""
    if n < 0:
        msg = f"prefix(n) shows the first n keys, so n is not negative: n={n}"
        raise ChoiceError(msg)
    return Prefix(n)


def padding(lengths: Tensor) -> Mask:
    """Every query sees the first lengths[b] keys; lengths follow the leading dimensions from the left."""
    return Padding(_integers(lengths, "lengths of padding"))


def segments(q_ids: Tensor, k_ids: Tensor | None = None) -> Mask:
    """A query sees the keys of its own segment; ids are (..., n) and (..., m), the same if only one is given."""
    q_ids = _integers(q_ids, "q_ids of segments")
    return Segments(q_ids, q_ids if k_ids is None else _integers(k_ids, "k_ids of segments"))


def allow(visible: Tensor) -> Mask:
    """True is seen: booleans that broadcast to (..., n, m)."""
    return Allow(_booleans(visible, "allow"), "allow")


def hide(hidden: Tensor) -> Mask:
    """True is hidden: booleans that broadcast to (..., n, m)."""
    return Not(Allow(_booleans(hidden, "hide"), "hide"))


def _align(align: Align | None) -> Align | None:
    if align not in (None, "top-left", "bottom-right"):
        msg = f"align is 'top-left' or 'bottom-right', not {align!r}"
        raise ChoiceError(msg)
    return align


def _integers(value: object, name: str) -> Tensor:
    if not isinstance(value, Tensor) or value.is_floating_point() or value.is_complex() or value.dtype == torch.bool:
        came = f"a tensor of {value.dtype}" if isinstance(value, Tensor) else type(value).__name__
        msg = f"{name} must be a tensor of integers, but it is {came}"
        raise MaskError(msg)
    return value


def _booleans(value: object, name: str) -> Tensor:
    if not isinstance(value, Tensor) or value.dtype != torch.bool:
        came = f"a tensor of {value.dtype}" if isinstance(value, Tensor) else type(value).__name__
        msg = f"{name}(...) takes a tensor of torch.bool, but it is {came} (numbers to add to the scores go to scores.bias)"
        raise MaskError(msg)
    return value


def _broadcasts(shape: Sequence[int], full: tuple[int, ...]) -> bool:
    if len(shape) > len(full):
        return False
    return all(a in (1, b) for a, b in zip(reversed(shape), reversed(full), strict=False))


def _check_left(shape: Sequence[int], lead: tuple[int, ...], name: str) -> None:
    if len(shape) > len(lead) or any(a not in (1, b) for a, b in zip(shape, lead, strict=False)):
        msg = f"{name} must follow the leading dimensions {lead} from the left, but its leading shape is {tuple(shape)}"
        raise ShapeError(msg)


def _from_left(tensor: Tensor, lead: int, own: int) -> Tensor:
    """Put the missing leading dimensions after the ones that are there."""
    have = tensor.dim() - own
    return tensor.reshape(*tensor.shape[:have], *[1] * (lead - have), *tensor.shape[have:])
