"""Bahdanau's score v . tanh(W_q q + W_k k), without ever holding n x m x h."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard._operands import Axis, Operand, Span
from regard._traced import traced
from regard.errors import ShapeError
from regard.scores._base import Score

CHUNK = 1 << 19  # elements of the (rows, keys, h) block in work: it should stay in the cache
STEEP = 40.0  # beyond this e^(2a) times e^(2b) leaves float32


def _row_chunks(left: Tensor, right: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Rows, and 1 / (1 + e^2a e^2b) over (rows, j, h), from which tanh(a + b) = 1 - 2 r follows with no tanh at all.

    The block is the same memory each time.
    """
    step = max(1, min(len(left), CHUNK // max(1, right.numel())))
    memory, one = left.new_empty(step, *right.shape), left.new_ones(())
    for low in range(0, len(left), step):
        rows = slice(low, min(low + step, len(left)))
        block = memory[: rows.stop - low]
        yield rows, torch.addcmul(one, left[rows].unsqueeze(-2), right, out=block).reciprocal_()


def _is_steep(left: Tensor, right: Tensor) -> bool:
    # Written so that NaN counts as steep: plain tanh carries it to where it belongs.
    return not (left.abs().amax() <= STEEP and right.abs().amax() <= STEEP)


class _TanhScore(torch.autograd.Function):
    """sum_h v_h tanh(a_ih + b_jh) for one head, recomputed in the backward pass."""

    @staticmethod
    def forward(a: Tensor, b: Tensor, v: Tensor) -> Tensor:
        out = a.new_empty(a.shape[0], b.shape[0])
        twice = -2 * v
        for rows, r in _row_chunks((2 * a).exp(), (2 * b).exp()):
            torch.matmul(r, twice, out=out[rows])
        return out.add_(v.sum())

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        del output
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        a, b, v = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted
            wanted = [t for t, needed in zip((a, b, v), ctx.needs_input_grad, strict=True) if needed]
            found = iter(torch.autograd.grad(_plain(a, b, v), wanted, grad, create_graph=True))
            return tuple(next(found) if needed else None for needed in ctx.needs_input_grad)
        grad_a, grad_b, tilt = torch.empty_like(a), torch.zeros_like(b), torch.zeros_like(v)
        for rows, r in _row_chunks((2 * a).exp(), (2 * b).exp()):
            pulled = grad[rows].unsqueeze(-1) * r
            tilt += pulled.flatten(0, 1).sum(0)
            pulled.addcmul_(pulled, r, value=-1)  # r - r^2 is a quarter of the derivative of tanh
            torch.sum(pulled, 1, out=grad_a[rows])
            grad_b += pulled.sum(0)
        slope = 4 * v
        return grad_a * slope, grad_b * slope, grad.sum() - 2 * tilt


def _plain(a: Tensor, b: Tensor, v: Tensor) -> Tensor:
    return torch.tanh(a.unsqueeze(-2) + b.unsqueeze(-3)) @ v


def tanh_score(a: Tensor, b: Tensor, v: Tensor) -> Tensor:
    """sum_h v_h tanh(a_ih + b_jh): (..., i, h), (..., j, h), (h,) -> (..., i, j)."""
    if traced():
        return _plain(a, b, v)
    if not a.numel() or not b.numel() or _is_steep(a.detach(), b.detach()):
        return _plain(a, b, v)
    lead = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if not lead:
        return _TanhScore.apply(a, b, v)  # pyright: ignore[reportReturnType]
    a, b = (t.expand(*lead, *t.shape[-2:]).flatten(0, len(lead) - 1) for t in (a, b))
    parts = [_TanhScore.apply(x, y, v) for x, y in zip(a.unbind(), b.unbind(), strict=True)]
    return torch.stack(parts).unflatten(0, lead)  # pyright: ignore[reportArgumentType]


class Tanh(Score):
    """v . tanh(W_q q + W_k k), whatever holds the two matrices."""

    v: Tensor

    makes = 3

    def sides(self, d_q: int) -> tuple[Tensor, Tensor]:
        """W_q (h, d_q) and W_k (h, d_k)."""
        raise NotImplementedError

    def operands(self, query: Tensor, key: Tensor) -> tuple[Operand, ...]:
        kind = query.dtype
        w_q, w_k = self.sides(query.shape[-1])
        return (
            Operand(query @ w_q.to(kind).mT, Axis.QUERY),
            Operand(key @ w_k.to(kind).mT, Axis.KEY),
            Operand(self.v.to(kind), Axis.FIXED),
        )

    def tile(self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Tensor | None = None) -> Tensor:
        del rows, cols, out
        return tanh_score(*tensors)

    def magnitude(self, query: Tensor, key: Tensor) -> Tensor:
        del query, key
        return self.v.detach().abs().sum()


@dataclass(frozen=True, eq=False, repr=False)
class Additive(Tanh):
    w_q: Tensor
    w_k: Tensor
    v: Tensor

    def check(self, n: int, m: int, d_q: int, d_k: int) -> None:
        if (self.w_q.shape[1], self.w_k.shape[1]) != (d_q, d_k):
            msg = (
                f"additive needs w_q (h, d_q) and w_k (h, d_k) with d_q = {d_q} and d_k = {d_k}, "
                f"but they are {tuple(self.w_q.shape)} and {tuple(self.w_k.shape)}"
            )
            raise ShapeError(msg)

    def sides(self, d_q: int) -> tuple[Tensor, Tensor]:
        del d_q
        return self.w_q, self.w_k

    def __repr__(self) -> str:
        return "v·tanh(W_q q + W_k k)"


@dataclass(frozen=True, eq=False, repr=False)
class Concat(Tanh):
    w: Tensor
    v: Tensor

    def check(self, n: int, m: int, d_q: int, d_k: int) -> None:
        if self.w.shape[1] != d_q + d_k:
            msg = (
                f"concat needs w (h, d_q + d_k) with d_q + d_k = {d_q} + {d_k} = {d_q + d_k}, "
                f"but w is {tuple(self.w.shape)}"
            )
            raise ShapeError(msg)

    def sides(self, d_q: int) -> tuple[Tensor, Tensor]:
        return self.w[:, :d_q], self.w[:, d_q:]

    def __repr__(self) -> str:
        return "v·tanh(W [q; k])"
