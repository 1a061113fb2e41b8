"""What every mask is: a rule that answers for single pairs and for whole blocks, and the algebra & | ~."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from regard.errors import MaskError
from regard.operands import Operand, Size, Span
from regard.term import Term

NONE, SOME, ALL = 0, 1, 2  # what a mask says of a block: nothing is visible, something, everything


def _mask(other: object) -> Mask:
    if isinstance(other, Mask):
        return other
    msg = f"a mask is joined with another of regard.masks, not with {type(other).__name__}: wrap it in allow or hide"
    raise MaskError(msg)


class Mask(Term["Mask"], abstract=True):
    """A rule for which of n x m pairs are visible. Subclasses fill in `tile` and `kinds`."""

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
    def per_key(self) -> bool:
        """Whether every query of a head sees the same keys."""
        return bool(self.parts) and all(part.per_key for part in self.parts)

    @property
    def relative(self) -> bool:
        """Whether only j - i matters: moving queries and keys together changes nothing."""
        return bool(self.parts) and all(part.relative for part in self.parts)

    def check(self, lead: tuple[int, ...], n: int, m: int) -> None:
        """Raise where sizes do not fit."""
        for part in self.parts:
            part.check(lead, n, m)

    def operands(self, lead: tuple[int, ...]) -> tuple[Operand, ...]:
        """What tiles are cut from."""
        return tuple([operand for part in self.parts for operand in part.operands(lead)])

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Tensor:
        """Visible or not, as booleans that broadcast to (..., rows, cols)."""
        raise NotImplementedError

    def block_states(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        """NONE, SOME or ALL for each block of columns between two edges; without tensors, from sizes alone."""
        del tensors, rows, size
        return [SOME] * (len(edges) - 1)

    def reach(self, rows: Span, size: Size) -> list[tuple[int, int]]:
        """Sorted ranges of columns outside of which nothing is visible to these rows, from sizes alone."""
        del rows
        return [(0, size.m)]


@dataclass(frozen=True, repr=False)
class Not(Mask):
    inner: Mask

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Tensor:
        return ~self.inner.tile(tensors, rows, cols, size)

    def block_states(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        return [ALL - kind for kind in self.inner.block_states(tensors, rows, edges, size)]

    def __repr__(self) -> str:
        if str(self.inner) == "hide(...)":  # the complement of what is hidden
            return "hide(...)"
        return f"~({self.inner})" if isinstance(self.inner, Combination) else f"~{self.inner}"


@dataclass(frozen=True, repr=False)
class Combination(Mask, abstract=True):
    """Two masks and how they combine: `join` on booleans, `pick` on NONE < SOME < ALL."""

    first: Mask
    second: Mask

    symbol = "?"

    def join(self, one: Tensor, two: Tensor) -> Tensor:
        raise NotImplementedError

    pick: ClassVar[Callable[[int, int], int]] = min

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Tensor:
        one, two = self.split_operands(tensors)
        return self.join(self.first.tile(one, rows, cols, size), self.second.tile(two, rows, cols, size))

    def block_states(self, tensors: Sequence[Tensor] | None, rows: Span, edges: Sequence[int], size: Size) -> list[int]:
        one, two = (None, None) if tensors is None else self.split_operands(tensors)
        pairs = zip(
            self.first.block_states(one, rows, edges, size),
            self.second.block_states(two, rows, edges, size),
            strict=True,
        )
        return [type(self).pick(a, b) for a, b in pairs]

    def __repr__(self) -> str:
        sides = (
            f"({s})" if isinstance(s, Combination) and s.symbol != self.symbol else str(s)
            for s in (self.first, self.second)
        )
        return f" {self.symbol} ".join(sides)


class Both(Combination):
    symbol = "&"
    pick = min

    def join(self, one: Tensor, two: Tensor) -> Tensor:
        return one & two

    def reach(self, rows: Span, size: Size) -> list[tuple[int, int]]:
        one, two = self.first.reach(rows, size), self.second.reach(rows, size)
        common = [(max(a, c), min(b, d)) for a, b in one for c, d in two]
        return sorted((low, high) for low, high in common if low < high)


class Either(Combination):
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
