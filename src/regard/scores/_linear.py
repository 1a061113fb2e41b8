"""Scores that are inner products: dot, scaled dot, cosine, general, location, uniform."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import ShapeError
from regard.operands import Axis, Operand, Size, Span
from regard.scores._base import Features, Score, norm_product, same_width


class Linear(Score, abstract=True):
    """scale * f(q) . g(k): an inner product of projected queries and keys."""

    n_operands = 2

    def project(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> tuple[Float[Tensor, "*batch queries dim"], Float[Tensor, "*key_batch keys dim"]]:
        """f(q) and g(k), of one width."""
        raise NotImplementedError

    def scale_for(self, d_k: int) -> float:
        """The scale for keys of projected width d_k."""
        del d_k
        return 1.0

    def operands(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> tuple[Operand, ...]:
        left, right = self.project(query, key)
        return Operand(left, Axis.QUERY), Operand(right, Axis.KEY)

    def part(self, rows: Span, cols: Span, size: Size) -> Score:
        return self  # it does not depend on positions

    def tile(
        self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Float[Tensor, "... rows cols"] | None = None
    ) -> Float[Tensor, "... rows cols"]:
        del rows, cols
        left, right = tensors
        scale = self.scale_for(right.shape[-1])
        if scale != 1:  # on the tile: scaling all queries would copy them
            left = left * scale
        if out is None:
            return left @ right.mT
        if math.prod(out.shape[:-2]) == 1:  # one head: a plain product is faster than a batch of one
            flat = (t.reshape(t.shape[-2:]) for t in (left, right.mT))
            torch.mm(*flat, out=out.view(out.shape[-2:]))
            return out
        return torch.matmul(left, right.mT, out=out)

    def rowwise(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*batch queries d_k"]
    ) -> Float[Tensor, "*batch queries"]:
        left, right = self.project(query, key)
        return self.scale_for(right.shape[-1]) * (left * right).sum(-1)

    def obstacle(self, *, grad: bool) -> str | None:
        del grad
        return None

    def features(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> Features:
        return Features(*self.project(query, key), self.scale_for(key.shape[-1]))

    def magnitude(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> Float[Tensor, ""]:
        return abs(self.scale_for(key.shape[-1])) * norm_product(*self.project(query, key))


@dataclass(frozen=True, eq=False, repr=False)
class Dot(Linear):
    """q . k * scale, with scale 1 / sqrt(d_k) if None."""

    scale: float | None

    def check(self, n: int, m: int, d_q: int, d_k: int) -> None:
        same_width(self, d_q, d_k)

    def project(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> tuple[Float[Tensor, "*batch queries dim"], Float[Tensor, "*key_batch keys dim"]]:
        return query, key

    def scale_for(self, d_k: int) -> float:
        return self.scale if self.scale is not None else 1 / math.sqrt(max(d_k, 1))

    def __repr__(self) -> str:
        if self.scale is None:
            return "q·k / √d"
        return "q·k" if self.scale == 1 else f"{self.scale:g} q·k"


@dataclass(frozen=True, eq=False, repr=False)
class Cosine(Linear):
    """cos(q, k) / temperature."""

    temperature: float

    def check(self, n: int, m: int, d_q: int, d_k: int) -> None:
        same_width(self, d_q, d_k)

    def project(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> tuple[Float[Tensor, "*batch queries dim"], Float[Tensor, "*key_batch keys dim"]]:
        unit = torch.nn.functional.normalize
        return unit(query, dim=-1), unit(key, dim=-1)

    def scale_for(self, d_k: int) -> float:
        del d_k
        return 1 / self.temperature

    def __repr__(self) -> str:
        return "cos(q, k)" if self.temperature == 1 else f"cos(q, k) / {self.temperature:g}"


@dataclass(frozen=True, eq=False, repr=False)
class General(Linear):
    """q . W k."""

    w: Tensor  # (d_q, d_k)

    def check(self, n: int, m: int, d_q: int, d_k: int) -> None:
        if tuple(self.w.shape) != (d_q, d_k):
            msg = f"general(w) needs w of shape (d_q, d_k) = ({d_q}, {d_k}), but w is {tuple(self.w.shape)}"
            raise ShapeError(msg)

    def project(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> tuple[Float[Tensor, "*batch queries dim"], Float[Tensor, "*key_batch keys dim"]]:
        return query @ self.w.to(query.dtype), key

    def __repr__(self) -> str:
        return "q·Wk"


@dataclass(frozen=True, eq=False, repr=False)
class Location(Linear):
    """(W q)_j, which does not look at the key."""

    w: Tensor  # (m, d_q)

    def check(self, n: int, m: int, d_q: int, d_k: int) -> None:
        if tuple(self.w.shape) != (m, d_q):
            msg = f"location(w) needs w of shape (keys, d_q) = ({m}, {d_q}), but w is {tuple(self.w.shape)}"
            raise ShapeError(msg)

    def part(self, rows: Span, cols: Span, size: Size) -> Score:
        return Location(cols.take(self.w, 0))

    rowwise = Score.rowwise  # it needs the position of a key, which is not known here

    def project(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> tuple[Float[Tensor, "*batch queries dim"], Float[Tensor, "*key_batch keys dim"]]:
        return query, self.w.to(query.dtype).expand(*key.shape[:-2], *self.w.shape)

    def __repr__(self) -> str:
        return "(Wq)_j"


@dataclass(frozen=True, eq=False, repr=False)
class Uniform(Linear):
    """0 for every pair."""

    def project(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> tuple[Float[Tensor, "*batch queries dim"], Float[Tensor, "*key_batch keys dim"]]:
        return query.new_zeros(*query.shape[:-1], 1), key.new_zeros(*key.shape[:-1], 1)

    def __repr__(self) -> str:
        return "0"
