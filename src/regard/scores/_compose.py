"""Scores by position (bias, alibi, relative), and softcap, which bends another score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import ShapeError
from regard.operands import Axis, Operand, Size, Span, Tile
from regard.scores._base import Features, Score

COPIED_AT_ONCE = (
    1 << 17
)  # numbers of a large tensor that are copied at a time, so that no copy is as large as the matrix


def _pieces(tensor: Tensor) -> Iterator[Tensor]:
    """Yield views of a tensor with at most COPIED_AT_ONCE numbers each."""
    if tensor.numel() <= COPIED_AT_ONCE:
        yield tensor
        return
    for half in tensor.tensor_split(2, max(range(tensor.dim()), key=lambda dim: tensor.shape[dim])):
        yield from _pieces(half)


@dataclass(frozen=True, eq=False, repr=False)
class Bias(Score):
    """t itself."""

    t: Tensor  # broadcasts to (..., n, m)

    n_operands = 2
    head_axes: ClassVar[Mapping[str, int]] = {"t": -3}

    @property
    def positional(self) -> bool:
        return True

    @property
    def hides_keys(self) -> bool:
        return True  # people hide keys with -inf in a bias

    @property
    def is_pairwise(self) -> bool:
        return self.t.dim() > 1 and self.t.shape[-2] != 1

    def check(self, n: int, m: int, d_q: int, d_k: int) -> None:
        shape = (1, 1, *self.t.shape)[-2:]
        if shape[0] not in (1, n) or shape[1] not in (1, m):
            msg = (
                f"bias(t) is added to scores of shape (..., queries, keys) = (..., {n}, {m}), "
                f"but t is {tuple(self.t.shape)}"
            )
            raise ShapeError(msg)

    def leading_shapes(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return (("t of bias", tuple(self.t.shape[:-2])),)

    def part(self, rows: Span, cols: Span, size: Size) -> Score:
        return Bias(Tile((), rows, cols).cut(Operand(self._pair(), Axis.PAIR)))

    def _pair(self) -> Float[Tensor, "... #queries #keys"]:
        return self.t if self.t.dim() > 1 else self.t.reshape(1, -1)

    def operands(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> tuple[Operand, ...]:
        t = self._pair()
        if t.requires_grad and torch.is_grad_enabled():
            t = t.to(query.dtype)  # so that its gradient is summed over tiles in the better dtype
        # Otherwise every tile casts its own part: the whole is as large as the matrix.
        return Operand(t, Axis.PAIR), Operand(query.new_zeros(()), Axis.FIXED)

    def tile(
        self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Float[Tensor, "... rows cols"] | None = None
    ) -> Float[Tensor, "... rows cols"]:
        del out
        t, like = tensors
        return t.to(like.dtype).expand(*t.shape[:-2], len(rows), len(cols))

    def obstacle(self, *, grad: bool) -> str | None:
        if not (self.is_pairwise and grad and self.t.requires_grad):
            return None
        return "the fused kernel has no gradient for a bias that varies by query and key"

    def features(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> Features:
        if self.is_pairwise:
            return Features(rest=(self,))
        pair = self._pair().to(query.dtype)
        return Features(key_bias=pair.expand(*pair.shape[:-1], key.shape[-2]))

    def magnitude(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> Float[Tensor, ""]:
        if not self.t.numel():
            return query.new_zeros(())
        largest = [part.nan_to_num(0.0, 0.0, 0.0).abs().amax() for part in _pieces(self.t.detach())]
        return torch.stack(largest).amax()

    def __repr__(self) -> str:
        return "t"


@dataclass(frozen=True, eq=False, repr=False)
class Alibi(Score):
    """-slope |i - j|, one slope for each head."""

    slopes: Tensor  # (heads,), or () for one head alone

    n_operands = 1
    head_axes: ClassVar[Mapping[str, int]] = {"slopes": -1}

    @property
    def positional(self) -> bool:
        return True

    @property
    def relative(self) -> bool:
        return True

    @property
    def is_pairwise(self) -> bool:
        return True

    def leading_shapes(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return (("slopes of alibi", tuple(self.slopes.shape)),)

    def part(self, rows: Span, cols: Span, size: Size) -> Score:
        if rows.index is not None or cols.index is not None:
            return super().part(rows, cols, size)
        first = cols.start - (rows.stop - 1)  # the distance j - i at the lower left corner
        distances = torch.arange(first, cols.stop - rows.start, device=self.slopes.device)
        table = distances.abs() * -self.slopes[..., None]
        return Relative(table, first - (cols.start - rows.start))

    def operands(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> tuple[Operand, ...]:
        return (Operand(self.slopes.to(query.dtype)[..., None, None], Axis.PAIR),)

    def tile(
        self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Float[Tensor, "... rows cols"] | None = None
    ) -> Float[Tensor, "... rows cols"]:
        del out
        (slopes,) = tensors
        gap = rows.positions(slopes.device)[:, None] - cols.positions(slopes.device)
        return gap.abs() * -slopes

    def obstacle(self, *, grad: bool) -> str | None:
        if not (grad and self.slopes.requires_grad):
            return None
        return "the fused kernel has no gradient for learned slopes"

    def features(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> Features:
        return Features(rest=(self,))

    def magnitude(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> Float[Tensor, ""]:
        if not self.slopes.numel():
            return query.new_zeros(())
        return self.slopes.detach().abs().amax() * max(query.shape[-2], key.shape[-2])

    def __repr__(self) -> str:
        return "-slope |i - j|"


@dataclass(frozen=True, eq=False, repr=False)
class Relative(Score):
    """table[..., j - i - first], a number for each distance j - i."""

    table: Tensor  # (..., distances)
    first: int  # the distance of table[..., 0]

    n_operands = 1
    head_axes: ClassVar[Mapping[str, int]] = {"table": -2}

    @property
    def positional(self) -> bool:
        return True

    @property
    def relative(self) -> bool:
        return True

    @property
    def is_pairwise(self) -> bool:
        return True

    def check(self, n: int, m: int, d_q: int, d_k: int) -> None:
        last = self.first + self.table.shape[-1] - 1
        if n and m and (self.first > 1 - n or last < m - 1):
            msg = (
                f"relative(table, first) needs a number for every distance j - i, from {1 - n} to {m - 1}, "
                f"but its table goes from {self.first} to {last}"
            )
            raise ShapeError(msg)

    def leading_shapes(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return (("table of relative", tuple(self.table.shape[:-1])),)

    def part(self, rows: Span, cols: Span, size: Size) -> Score:
        if rows.index is not None or cols.index is not None:
            return super().part(rows, cols, size)
        return Relative(self.table, self.first - (cols.start - rows.start))

    def operands(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> tuple[Operand, ...]:
        # Along neither side: a tile picks what lies between its first and its last distance.
        return (Operand(self.table.to(query.dtype).unsqueeze(-2), Axis.HEAD),)

    def tile(
        self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Float[Tensor, "... rows cols"] | None = None
    ) -> Float[Tensor, "... rows cols"]:
        del out
        (table,) = tensors
        at = cols.positions(table.device) - rows.positions(table.device)[:, None] - self.first
        return table.squeeze(-2)[..., at]

    def obstacle(self, *, grad: bool) -> str | None:
        if not (grad and self.table.requires_grad):
            return None
        return "the fused kernel has no gradient for a learned table of distances"

    def features(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> Features:
        return Features(rest=(self,))

    def magnitude(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> Float[Tensor, ""]:
        return self.table.detach().nan_to_num(0.0, 0.0, 0.0).abs().amax() if self.table.numel() else query.new_zeros(())

    def __repr__(self) -> str:
        return "t(j - i)"


@dataclass(frozen=True, eq=False, repr=False)
class Softcap(Score):
    """cap * tanh(inner / cap)."""

    inner: Score
    cap: float

    def tile(
        self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Float[Tensor, "... rows cols"] | None = None
    ) -> Float[Tensor, "... rows cols"]:
        del out
        return self.cap * torch.tanh(self.inner.tile(tensors, rows, cols) / self.cap)

    def part(self, rows: Span, cols: Span, size: Size) -> Score:
        return Softcap(self.inner.part(rows, cols, size), self.cap)

    def __repr__(self) -> str:
        return f"{self.cap:g} tanh(({self.inner}) / {self.cap:g})"
