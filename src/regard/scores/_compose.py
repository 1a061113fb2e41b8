"""Scores made of positions and of other scores: bias, alibi and softcap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard._operands import Axis, Operand, Span
from regard.errors import ShapeError
from regard.scores._base import Features, Score


@dataclass(frozen=True, eq=False, repr=False)
class Bias(Score):
    t: Tensor

    makes = 1

    @property
    def positional(self) -> bool:
        return True

    @property
    def compact(self) -> bool:
        return True  # people hide keys with -inf in a bias

    @property
    def paired(self) -> bool:
        return self.t.dim() > 1 and self.t.shape[-2] != 1

    def check(self, n: int, m: int, d_q: int, d_k: int) -> None:
        shape = (1, 1, *self.t.shape)[-2:]
        if shape[0] not in (1, n) or shape[1] not in (1, m):
            msg = (
                f"bias(t) is added to scores of shape (..., queries, keys) = (..., {n}, {m}), "
                f"but t is {tuple(self.t.shape)}"
            )
            raise ShapeError(msg)

    def leads(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return (("t of bias", tuple(self.t.shape[:-2])),)

    def _pair(self, like: Tensor) -> Tensor:
        t = self.t.to(like.dtype)
        return t if t.dim() > 1 else t.reshape(1, -1)

    def operands(self, query: Tensor, key: Tensor) -> tuple[Operand, ...]:
        return (Operand(self._pair(query), Axis.PAIR),)

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Tensor | None = None) -> Tensor:
        del out
        (t,) = tensors
        return t.expand(*t.shape[:-2], len(rows), len(cols))

    def obstacle(self, *, grad: bool) -> str | None:
        if not (self.paired and grad and self.t.requires_grad):
            return None
        return "the fused kernel has no gradient for a bias that varies by query and key"

    def features(self, query: Tensor, key: Tensor) -> Features:
        if self.paired:
            return Features(rest=(self,))
        pair = self._pair(query)
        return Features(key_bias=pair.expand(*pair.shape[:-1], key.shape[-2]))

    def magnitude(self, query: Tensor, key: Tensor) -> Tensor:
        finite = self.t.detach().nan_to_num(0.0, 0.0, 0.0)
        return finite.abs().amax() if finite.numel() else query.new_zeros(())

    def __repr__(self) -> str:
        return "t"


@dataclass(frozen=True, eq=False, repr=False)
class Alibi(Score):
    slopes: Tensor

    makes = 1

    @property
    def positional(self) -> bool:
        return True

    @property
    def paired(self) -> bool:
        return True

    def leads(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return (("slopes of alibi", tuple(self.slopes.shape)),)

    def operands(self, query: Tensor, key: Tensor) -> tuple[Operand, ...]:
        return (Operand(self.slopes.to(query.dtype)[:, None, None], Axis.PAIR),)

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Tensor | None = None) -> Tensor:
        del out
        (slopes,) = tensors
        gap = rows.positions(slopes.device)[:, None] - cols.positions(slopes.device)
        return gap.abs() * -slopes

    def obstacle(self, *, grad: bool) -> str | None:
        if not (grad and self.slopes.requires_grad):
            return None
        return "the fused kernel has no gradient for learned slopes"

    def features(self, query: Tensor, key: Tensor) -> Features:
        return Features(rest=(self,))

    def __repr__(self) -> str:
        return "-slope |i - j|"


@dataclass(frozen=True, eq=False, repr=False)
class Softcap(Score):
    inner: Score
    cap: float

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Tensor | None = None) -> Tensor:
        del out
        return self.cap * torch.tanh(self.inner.tile(tensors, rows, cols) / self.cap)

    def __repr__(self) -> str:
        return f"{self.cap:g} tanh(({self.inner}) / {self.cap:g})"
