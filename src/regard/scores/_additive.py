"""Additive scores v . tanh(W_q q + W_k k) of Bahdanau, without a tensor of n x m x h numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import ShapeError
from regard.operands import Axis, Operand, Size, Span, broadcast_shapes
from regard.scores._base import Score
from regard.tracing import is_tracing

BLOCK_NUMBERS = 1 << 19  # numbers of an (items, rows, keys, h) block, which should stay in the cache
SEVERAL_NUMBERS = 1 << 18  # the same where a block has several items of one query, each read once
LARGE = 40.0  # beyond this e^(2a) e^(2b) overflows float32


def _chunks(
    left: Float[Tensor, "batch rows h"], right: Float[Tensor, "batch cols h"]
) -> Iterator[tuple[tuple[slice, slice], tuple[slice, slice], Float[Tensor, "items block_rows block_cols h"]]]:
    """Yield slices of (items, rows) and of (items, keys), with memory for their (items, rows, keys, h) block.

    The memory is reused each time. A block has several items of the batch where they are small, as in a decoder.
    """
    (batch, n, h), m = left.shape, right.shape[1]
    several = SEVERAL_NUMBERS if n == 1 else BLOCK_NUMBERS
    wide = max(1, min(m, BLOCK_NUMBERS // max(1, h)))
    high = max(1, min(n, BLOCK_NUMBERS // max(1, wide * h)))
    deep = max(1, min(batch, several // max(1, high * wide * h)))
    memory = left.new_empty(deep * high * wide * h)
    for item, row, key in product(range(0, batch, deep), range(0, n, high), range(0, m, wide)):
        items, rows, keys = (
            slice(a, min(a + step, b)) for a, step, b in ((item, deep, batch), (row, high, n), (key, wide, m))
        )
        shape = (items.stop - item, rows.stop - row, keys.stop - key, h)
        yield (items, rows), (items, keys), memory[: math.prod(shape)].view(shape)


def is_large(left: Float[Tensor, "... rows h"], right: Float[Tensor, "... cols h"]) -> bool:
    """True if e^2a e^2b may overflow, so that tanh itself is needed."""
    if left.shape[-2] == 1:
        return False  # see `_reciprocal_chunks`
    # Written so that NaN counts as large: tanh itself carries it to its pairs.
    return not (left.abs().amax() <= LARGE and right.abs().amax() <= LARGE)


def _tanh_chunks(
    a: Float[Tensor, "batch rows h"], b: Float[Tensor, "batch cols h"]
) -> Iterator[tuple[tuple[slice, slice], tuple[slice, slice], Float[Tensor, "items block_rows block_cols h"]]]:
    """Blocks of tanh(a + b), for any a and b."""
    for rows, keys, block in _chunks(a, b):
        yield rows, keys, torch.add(a[rows].unsqueeze(-2), b[keys].unsqueeze(-3), out=block).tanh_()


def _reciprocal_chunks(
    a: Float[Tensor, "batch rows h"], b: Float[Tensor, "batch cols h"]
) -> Iterator[tuple[tuple[slice, slice], tuple[slice, slice], Float[Tensor, "items block_rows block_cols h"]]]:
    """Blocks of r = 1 / (1 + e^2(a + b)), from which tanh(a + b) = 1 - 2 r follows: faster than tanh."""
    if a.shape[1] == 1:  # as many exponentials as there are keys, in place; where one overflows, r = 0 is right
        for rows, keys, block in _chunks(a, b):
            sums = torch.add(a[rows].unsqueeze(-2), b[keys].unsqueeze(-3), out=block)
            yield rows, keys, sums.mul_(2).exp_().add_(1).reciprocal_()
        return
    left, right, one = (2 * a).exp(), (2 * b).exp(), a.new_ones(())
    for rows, keys, block in _chunks(left, right):
        yield (
            rows,
            keys,
            torch.addcmul(one, left[rows].unsqueeze(-2), right[keys].unsqueeze(-3), out=block).reciprocal_(),
        )


class _TanhScore(torch.autograd.Function):
    """sum_h v_h tanh(a_ih + b_jh) for each item of a batch, recomputed in the backward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        a: Float[Tensor, "batch rows h"],
        b: Float[Tensor, "batch cols h"],
        v: Float[Tensor, " h"],
        large: bool,
    ) -> Float[Tensor, "batch rows cols"]:
        ctx.save_for_backward(a, b, v)
        ctx.large = large
        return tanh_score_values(a, b, v, large=large)

    @staticmethod
    def backward(ctx: Any, grad: Float[Tensor, "batch rows cols"]) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        a, b, v = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted
            needs = ctx.needs_input_grad[:3]
            wanted = [t for t, needed in zip((a, b, v), needs, strict=True) if needed]
            gradients = iter(torch.autograd.grad(_plain(a, b, v), wanted, grad, create_graph=True))
            return (*(next(gradients) if needed else None for needed in needs), None)
        return (*tanh_score_gradients(a, b, v, grad, large=ctx.large), None)


def tanh_score_values(
    a: Float[Tensor, "batch rows h"], b: Float[Tensor, "batch cols h"], v: Float[Tensor, " h"], *, large: bool
) -> Float[Tensor, "batch rows cols"]:
    """sum_h v_h tanh(a_ih + b_jh), without gradients; `large` is the answer of `is_large`."""
    out = a.new_empty(*a.shape[:2], b.shape[1])
    factor = v if large else -2 * v
    for (items, rows), (_, keys), block in (_tanh_chunks if large else _reciprocal_chunks)(a, b):
        out[items, rows, keys] = block @ factor
    return out if large else out.add_(v.sum())


def tanh_score_gradients(
    a: Float[Tensor, "batch rows h"],
    b: Float[Tensor, "batch cols h"],
    v: Float[Tensor, " h"],
    grad: Float[Tensor, "batch rows cols"],
    *,
    large: bool,
) -> tuple[Float[Tensor, "batch rows h"], Float[Tensor, "batch cols h"], Float[Tensor, " h"]]:
    """Gradients of a, b and v from that of their scores; the values inside the tanh are computed again."""
    return (_tanh_gradient if large else _reciprocal_gradient)(a, b, v, grad)


def _tanh_gradient(
    a: Float[Tensor, "batch rows h"],
    b: Float[Tensor, "batch cols h"],
    v: Float[Tensor, " h"],
    grad: Float[Tensor, "batch rows cols"],
) -> tuple[Float[Tensor, "batch rows h"], Float[Tensor, "batch cols h"], Float[Tensor, " h"]]:
    grads = grad_a, grad_b, grad_v = torch.zeros_like(a), torch.zeros_like(b), torch.zeros_like(v)
    for rows, keys, tanh in _tanh_chunks(a, b):
        part = grad[(*rows, keys[1])].unsqueeze(-1)
        grad_v += (part * tanh).flatten(0, -2).sum(0)
        pulled = (1 - tanh.square_()).mul_(v).mul_(part)
        grad_a[rows] += pulled.sum(2)
        grad_b[keys] += pulled.sum(1)
    return grads


def _reciprocal_gradient(
    a: Float[Tensor, "batch rows h"],
    b: Float[Tensor, "batch cols h"],
    v: Float[Tensor, " h"],
    grad: Float[Tensor, "batch rows cols"],
) -> tuple[Float[Tensor, "batch rows h"], Float[Tensor, "batch cols h"], Float[Tensor, " h"]]:
    grad_a, grad_b, tilt = torch.zeros_like(a), torch.zeros_like(b), torch.zeros_like(v)
    for rows, keys, r in _reciprocal_chunks(a, b):
        part = grad[(*rows, keys[1])]
        tilt += part.reshape(-1) @ r.flatten(0, -2)
        r.addcmul_(r, r, value=-1)  # r - r^2 is a quarter of the derivative of tanh
        if a.shape[1] == 1:
            grad_a[rows] += part @ r.squeeze(1)
            torch.mul(r.squeeze(1), part.mT, out=grad_b[keys])
        else:
            pulled = part.unsqueeze(-1) * r
            grad_a[rows] += pulled.sum(2)
            grad_b[keys] += pulled.sum(1)
    slope = 4 * v
    return grad_a * slope, grad_b * slope, grad.sum() - 2 * tilt


def _plain(
    a: Float[Tensor, "*batch rows h"], b: Float[Tensor, "*key_batch cols h"], v: Float[Tensor, " h"]
) -> Float[Tensor, "... rows cols"]:
    return torch.tanh(a.unsqueeze(-2) + b.unsqueeze(-3)) @ v


def tanh_score(
    a: Float[Tensor, "*batch rows h"], b: Float[Tensor, "*key_batch cols h"], v: Float[Tensor, " h"]
) -> Float[Tensor, "... rows cols"]:
    """sum_h v_h tanh(a_ih + b_jh)."""
    if is_tracing():
        return _plain(a, b, v)
    if not a.numel() or not b.numel():
        return _plain(a, b, v)
    large = is_large(a.detach(), b.detach())
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (t.expand(*lead, *t.shape[-2:]).reshape(-1, *t.shape[-2:]) for t in (a, b))
    return _TanhScore.apply(a, b, v, large).reshape(*lead, a.shape[1], b.shape[1])  # pyright: ignore[reportAttributeAccessIssue]


class Tanh(Score, abstract=True):
    """v . tanh(W_q q + W_k k); subclasses say where the two matrices are."""

    v: Tensor

    n_operands = 3

    def sides(self, d_q: int) -> tuple[Float[Tensor, "h d_q"], Float[Tensor, "h d_k"] | None]:
        """W_q (h, d_q) and W_k (h, d_k), or None in place of W_k if the keys are projected already."""
        raise NotImplementedError

    def operands(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> tuple[Operand, ...]:
        dtype = query.dtype
        w_q, w_k = self.sides(query.shape[-1])
        return (
            Operand(query @ w_q.to(dtype).mT, Axis.QUERY),
            Operand(key if w_k is None else key @ w_k.to(dtype).mT, Axis.KEY),
            Operand(self.v.to(dtype), Axis.FIXED),
        )

    def tile(
        self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Float[Tensor, "... rows cols"] | None = None
    ) -> Float[Tensor, "... rows cols"]:
        del rows, cols, out
        return tanh_score(*tensors)

    def part(self, rows: Span, cols: Span, size: Size) -> Score:
        return self  # it does not depend on positions

    def rowwise(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*batch queries d_k"]
    ) -> Float[Tensor, "*batch queries"]:
        left, right, v = (operand.tensor for operand in self.operands(query, key))
        return torch.tanh(left + right) @ v

    def magnitude(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*key_batch keys d_k"]
    ) -> Float[Tensor, ""]:
        del query, key
        return self.v.detach().abs().sum()


@dataclass(frozen=True, eq=False, repr=False)
class Additive(Tanh):
    """v . tanh(W_q q + W_k k), or v . tanh(W_q q + k) for keys that are projected already."""

    w_q: Tensor  # (h, d_q)
    w_k: Tensor | None  # (h, d_k)
    v: Tensor  # (h,)

    def check(self, n: int, m: int, d_q: int, d_k: int) -> None:
        w_k = tuple(self.v.shape * 2 if self.w_k is None else self.w_k.shape)
        if (self.w_q.shape[1], w_k[1]) != (d_q, d_k):
            keys = f"no w_k, for projected keys of width {w_k[1]}" if self.w_k is None else f"{w_k}"
            msg = (
                f"additive needs w_q (h, d_q) and w_k (h, d_k) with d_q = {d_q} and d_k = {d_k}, "
                f"but they are {tuple(self.w_q.shape)} and {keys}"
            )
            raise ShapeError(msg)

    def sides(self, d_q: int) -> tuple[Float[Tensor, "h d_q"], Float[Tensor, "h d_k"] | None]:
        del d_q
        return self.w_q, self.w_k

    def __repr__(self) -> str:
        return "v·tanh(W_q q + k)" if self.w_k is None else "v·tanh(W_q q + W_k k)"


@dataclass(frozen=True, eq=False, repr=False)
class Concat(Tanh):
    """v . tanh(W [q; k])."""

    w: Tensor  # (h, d_q + d_k)
    v: Tensor  # (h,)

    def check(self, n: int, m: int, d_q: int, d_k: int) -> None:
        if self.w.shape[1] != d_q + d_k:
            msg = (
                f"concat needs w (h, d_q + d_k) with d_q + d_k = {d_q} + {d_k} = {d_q + d_k}, "
                f"but w is {tuple(self.w.shape)}"
            )
            raise ShapeError(msg)

    def sides(self, d_q: int) -> tuple[Float[Tensor, "h d_q"], Float[Tensor, "h d_k"]]:
        return self.w[:, :d_q], self.w[:, d_q:]

    def __repr__(self) -> str:
        return "v·tanh(W [q; k])"
