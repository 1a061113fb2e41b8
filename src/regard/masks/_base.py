"""The base class of masks: a rule for single pairs and for whole blocks, and the algebra & | ~."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.errors import MaskError
from regard.operands import Operand, Size, Span, Tile
from regard.term import Term

RowRanges = tuple[Int[Tensor, "*#lead #queries"], Int[Tensor, "*#lead #queries"]]
NONE, SOME, ALL = 0, 1, 2  # states of a block: no pair in it is visible, some may be, all are


def _mask(other: object) -> Mask:
    if isinstance(other, Mask):
        return other
    msg = f"a mask is joined with another of regard.masks, not with {type(other).__name__}: wrap it in allow or hide"
    raise MaskError(msg)


class Mask(Term["Mask"], abstract=True):
    """A rule that says which pairs (query i, key j) are visible.

    A subclass must have `tile`, and `operands` if it holds tensors. `block_states` and `reach` save work: blocks
    without a visible pair are skipped, and blocks that are visible throughout need no mask.
    """

    def __and__(self, other: Mask) -> Mask:
        return Both(self, _mask(other))

    def __or__(self, other: Mask) -> Mask:
        return Either(self, _mask(other))

    def __bool__(self) -> bool:
        msg = "a mask is neither true nor false: join masks with &, | and ~, not with `and`, `or` and `not`"
        raise MaskError(msg)

    def __invert__(self) -> Mask:
        return Not(self)

    @property
    def has_ranges(self) -> bool:
        """True if `row_ranges` has an answer for most tensors: this mask and all its parts define it."""
        return type(self).row_ranges is not Mask.row_ranges and all(part.has_ranges for part in self.parts)

    @property
    def per_key(self) -> bool:
        """True if all queries of a head see the same keys."""
        return bool(self.parts) and all(part.per_key for part in self.parts)

    @property
    def relative(self) -> bool:
        """True if the mask depends on j - i alone."""
        return bool(self.parts) and all(part.relative for part in self.parts)

    def check(self, lead: tuple[int, ...], n: int, m: int) -> None:
        """Raise an error where the tensors do not fit weights of shape (*lead, n, m)."""
        for part in self.parts:
            part.check(lead, n, m)

    def operands(self, lead: tuple[int, ...]) -> tuple[Operand, ...]:
        """Tensors from which tiles are cut, as many as `arity` says; `lead` is the leading shape of the weights."""
        return tuple([operand for part in self.parts for operand in part.operands(lead)])

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Bool[Tensor, "..."]:
        """True where a pair of these rows and columns is visible; `tensors` are the operands, cut to the tile.

        The result broadcasts to (..., rows, cols).
        """
        raise NotImplementedError

    def block_states(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        """NONE, SOME or ALL for each block of columns between two edges.

        `tensors` are the operands, cut to the heads but not to the rows; with None the answer follows from sizes alone.
        SOME is always right, and costs time only.
        """
        del tensors, rows, size
        return [SOME] * (len(edges) - 1)

    def reach(self, rows: Span, size: Size) -> list[tuple[int, int]]:
        """Sorted ranges of columns outside of which these rows see nothing, from sizes alone."""
        del rows
        return [(0, size.m)]

    def part(self, whole: Whole, rows: Span, cols: Span) -> Mask:
        """The mask of the rectangle of these rows and columns as a mask of its own, counted from 0.

        `whole` is this mask on the whole matrix.
        """
        return Part(self, whole, rows, cols)

    def row_ranges(self, tensors: Sequence[Tensor], size: Size) -> RowRanges | None:
        """The first key of each row and one behind its last, if it sees all keys between; None if that is not so.

        `tensors` are the operands. Both are (..., n or 1), and may reach beyond the keys.
        """
        del tensors, size
        return None


@dataclass(frozen=True, repr=False)
class Not(Mask):
    """~mask: what the inner mask hides is visible."""

    inner: Mask

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Bool[Tensor, "..."]:
        return ~self.inner.tile(tensors, rows, cols, size)

    def block_states(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        return [ALL - state for state in self.inner.block_states(tensors, rows, edges, size)]

    def __repr__(self) -> str:
        if str(self.inner) == "hide(...)":  # the complement of what is hidden
            return "hide(...)"
        return f"~({self.inner})" if isinstance(self.inner, Combination) else f"~{self.inner}"


@dataclass(frozen=True, repr=False)
class Combination(Mask, abstract=True):
    """Two masks, combined by `join` for booleans and by `pick` for the states NONE < SOME < ALL of a block."""

    first: Mask
    second: Mask

    symbol = "?"

    def join(self, one: Bool[Tensor, "..."], two: Bool[Tensor, "..."]) -> Bool[Tensor, "..."]:
        """Combine two tiles of booleans."""
        raise NotImplementedError

    pick: ClassVar[Callable[[int, int], int]] = min

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Bool[Tensor, "..."]:
        one, two = self.split_operands(tensors)
        return self.join(self.first.tile(one, rows, cols, size), self.second.tile(two, rows, cols, size))

    def block_states(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        one, two = (None, None) if tensors is None else self.split_operands(tensors)
        first = self.first.block_states(one, rows, edges, size)
        second = self.second.block_states(two, rows, edges, size)
        return [type(self).pick(a, b) for a, b in zip(first, second, strict=True)]

    def __repr__(self) -> str:
        sides = (
            f"({s})" if isinstance(s, Combination) and s.symbol != self.symbol else str(s)
            for s in (self.first, self.second)
        )
        return f" {self.symbol} ".join(sides)


class Both(Combination):
    """first & second: a pair is visible if both masks show it."""

    symbol = "&"
    pick = min

    def join(self, one: Bool[Tensor, "..."], two: Bool[Tensor, "..."]) -> Bool[Tensor, "..."]:
        return one & two

    def reach(self, rows: Span, size: Size) -> list[tuple[int, int]]:
        one, two = self.first.reach(rows, size), self.second.reach(rows, size)
        common = [(max(a, c), min(b, d)) for a, b in one for c, d in two]
        return sorted((low, high) for low, high in common if low < high)

    def row_ranges(self, tensors: Sequence[Tensor], size: Size) -> RowRanges | None:
        one, two = self.split_operands(tensors)
        first, second = self.first.row_ranges(one, size), self.second.row_ranges(two, size)
        if first is None or second is None:
            return None
        return torch.maximum(first[0], second[0]), torch.minimum(first[1], second[1])


class Either(Combination):
    """first | second: a pair is visible if one of the masks shows it."""

    symbol = "|"
    pick = max

    def join(self, one: Bool[Tensor, "..."], two: Bool[Tensor, "..."]) -> Bool[Tensor, "..."]:
        return one | two

    def reach(self, rows: Span, size: Size) -> list[tuple[int, int]]:
        merged: list[tuple[int, int]] = []
        for low, high in sorted(self.first.reach(rows, size) + self.second.reach(rows, size)):
            if merged and low <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        return merged


@dataclass(eq=False)
class Whole:
    """A mask on the whole matrix, and what all its rectangles share: operands and row ranges, computed once."""

    mask: Mask
    lead: tuple[int, ...]
    size: Size

    @cached_property
    def operands(self) -> tuple[Operand, ...]:
        """The operands of the mask."""
        return self.mask.operands(self.lead)

    @cached_property
    def row_ranges(self) -> RowRanges | None:
        """The range of keys that each row sees, if they are ranges."""
        return self.mask.row_ranges([operand.tensor for operand in self.operands], self.size)

    def states(self, rows: Span, edges: Sequence[int]) -> list[int]:
        """NONE, SOME or ALL for each block of columns between two edges, for all heads together."""
        return self.mask.block_states([operand.tensor for operand in self.operands], rows, edges, self.size)


@dataclass(frozen=True, eq=False, repr=False)
class Part(Mask, abstract=True):
    """A rectangle of another mask: its rows and columns are counted from 0, and the rule applies where they lie."""

    inner: Mask
    whole: Whole
    rows: Span
    cols: Span

    @property
    def signature(self) -> Hashable:
        if self.rows.index is not None or self.cols.index is not None:
            return object()  # positions that are listed are not compared
        edges = (self.rows.start, self.rows.stop, self.cols.start, self.cols.stop)
        return (Part, self.inner.signature, self.whole.size, edges)

    @property
    def relative(self) -> bool:
        return self.inner.relative and self.rows.index is None and self.cols.index is None

    def operands(self, lead: tuple[int, ...]) -> tuple[Operand, ...]:
        del lead
        rectangle = Tile((), self.rows, self.cols)
        return tuple([Operand(rectangle.cut(operand), operand.axis) for operand in self.whole.operands])

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Bool[Tensor, "..."]:
        del size
        return self.inner.tile(tensors, self.rows.pick(rows), self.cols.pick(cols), self.whole.size)

    def block_states(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        if tensors is None or self.rows.index is not None or self.cols.index is not None:
            return super().block_states(tensors, rows, edges, size)
        return self.whole.states(self.rows.pick(rows), [self.cols.start + edge for edge in edges])

    def reach(self, rows: Span, size: Size) -> list[tuple[int, int]]:
        if self.rows.index is not None or self.cols.index is not None:
            return [(0, size.m)]
        low, high = self.cols.start, self.cols.stop
        ranges = self.inner.reach(self.rows.pick(rows), self.whole.size)
        return [(max(a, low) - low, min(b, high) - low) for a, b in ranges if max(a, low) < min(b, high)]

    def row_ranges(self, tensors: Sequence[Tensor], size: Size) -> RowRanges | None:
        del tensors, size
        ranges = self.whole.row_ranges
        if ranges is None or self.cols.index is not None:
            return None
        start, stop = (edge if edge.shape[-1] == 1 else self.rows.take(edge, -1) for edge in ranges)
        return start - self.cols.start, stop - self.cols.start

    def __repr__(self) -> str:
        return repr(self.inner)
