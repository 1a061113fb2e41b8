"""Terms that are defined outside the package: two scores, a mask, a normaliser and two kernels.

Importing this module registers them, so tests import it while they run and not while they are collected: nobody else's
list of kernels or terms then depends on which files were collected before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from regard.kernels import Kernel
from regard.masks import Mask
from regard.normalisers import Normaliser
from regard.operands import Axis, Operand, Size, Span
from regard.scores import Features, Score


@dataclass(frozen=True, eq=False, repr=False)
class Manhattan(Score):
    """-slope_h |q - k|_1, with a slope for each head: no inner product of features."""

    slopes: Tensor  # (heads,)

    n_operands = 3
    head_axes: ClassVar = {"slopes": -1}

    def operands(self, query: Tensor, key: Tensor) -> tuple[Operand, ...]:
        slopes = self.slopes.to(query.dtype)[:, None, None]
        return Operand(query, Axis.QUERY), Operand(key, Axis.KEY), Operand(slopes, Axis.PAIR)

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Tensor | None = None) -> Tensor:
        query, key, slopes = tensors
        return (query.unsqueeze(-2) - key.unsqueeze(-3)).abs().sum(-1) * -slopes

    def __repr__(self) -> str:
        return "-slope |q - k|₁"


@dataclass(frozen=True, eq=False, repr=False)
class Nearest(Score):
    """c (q.k - |k|^2 / 2): the order of distances, as an inner product that a fused kernel can run."""

    scale: float

    n_operands = 2

    def operands(self, query: Tensor, key: Tensor) -> tuple[Operand, ...]:
        return Operand(query, Axis.QUERY), Operand(key, Axis.KEY)

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Tensor | None = None) -> Tensor:
        query, key = tensors
        return self.scale * (query @ key.mT - key.square().sum(-1).unsqueeze(-2) / 2)

    def obstacle(self, *, grad: bool) -> str | None:
        return None

    def features(self, query: Tensor, key: Tensor) -> Features:
        return Features(query, key, self.scale, key_bias=self.scale * key.square().sum(-1).unsqueeze(-2) / -2)

    def __repr__(self) -> str:
        return f"{self.scale:g} (q·k - |k|² / 2)"


@dataclass(frozen=True, eq=False, repr=False)
class Dilated(Mask):
    """A query sees every stride_h-th key, counted from its own position: one stride for each head."""

    strides: Tensor  # (heads,), integers

    n_operands = 1
    head_axes: ClassVar = {"strides": -1}

    def operands(self, lead: tuple[int, ...]) -> tuple[Operand, ...]:
        return (Operand(self.strides[:, None, None], Axis.PAIR),)

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, size: Size) -> Tensor:
        (strides,) = tensors
        return (cols.positions(size.device) - rows.positions(size.device)[:, None]) % strides == 0

    def __repr__(self) -> str:
        return "dilated(strides)"


@dataclass(frozen=True, repr=False)
class Cauchy(Normaliser):
    """1 / (1 + (best score - score) / width)^2, divided by its sum over the row: tails that fall slowly."""

    width: float

    def weights(
        self, scores: Tensor, tensors: Sequence[Tensor] = (), *, gaps: bool = True, out: Tensor | None = None
    ) -> Tensor:
        empty = (scores.detach() == -torch.inf).all(-1, keepdim=True)
        finite = scores.masked_fill(empty, 0.0)
        heavy = (1 + (finite.amax(-1, keepdim=True) - finite) / self.width).reciprocal().square()
        return (heavy / heavy.sum(-1, keepdim=True)).masked_fill(empty, 0.0)

    def __repr__(self) -> str:
        return f"cauchy({self.width:g})"


QUARTIC = Kernel("quartic-tail", lambda square: -torch.log1p(square.square()), compact=False)
PARABOLA = Kernel(
    "parabola", lambda square: torch.where(square < 1, (1 - square).clamp_min(1e-300).log(), -torch.inf), compact=True
)
