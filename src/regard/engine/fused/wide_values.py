"""Values wider than keys: the kernel there, whole rows of weights back.

The kernel wants keys as wide as values, so they are padded. There that costs little; back, three products of five would
go through the padding. Whole rows of weights, a tile at a time, are made of torch's own products and no wider than they
have to be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.operands import NEVER
from regard.tracing import without_autocast

WIDER = 2  # than keys: below, the padding costs less than the tiles
NARROWEST = 48  # keys: with narrower ones it is exponentials that cost, and the kernel makes them as they are needed
kernel = torch._scaled_dot_product_flash_attention_for_cpu  # noqa: SLF001  # pyright: ignore[reportPrivateImportUsage]
softmax_backward = torch.ops.aten._softmax_backward_data.out  # noqa: SLF001


def serves(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether gradients are wanted, of values so wide that it is worth it."""
    if torch.compiler.is_compiling() or value.shape[-1] < WIDER * max(NARROWEST, key.shape[-1]):
        return False
    return torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)


class WideValues(torch.autograd.Function):
    """One call of the kernel on (batch, heads, rows, dim), each of its own width; a tile holds `cap` scores."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, scale: float, causal: bool, cap: int
    ) -> tuple[Tensor, Tensor]:
        missing = (0, value.shape[-1] - key.shape[-1])
        out, lse = kernel(pad(query, missing), pad(key, missing), value, 0.0, causal, scale=scale)
        ctx.save_for_backward(query, key, value)
        ctx.scale, ctx.causal, ctx.cap = scale, causal, cap
        ctx.mark_non_differentiable(lse)
        return out, lse

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        inputs = ctx.saved_tensors
        q, k, v, g = (t.flatten(0, 1) for t in (*inputs, grad))
        with without_autocast():
            found = gradients(q, k, v, g, scale=ctx.scale, causal=ctx.causal, cap=ctx.cap)
        return (*(part.view(t.shape) for part, t in zip(found, inputs, strict=True)), None, None, None)


def gradients(
    query: Tensor, key: Tensor, value: Tensor, grad: Tensor, *, scale: float, causal: bool, cap: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Of queries, keys and values, (heads, rows, dim) each. With p the weights of a row and ds those of its scores:

    dv = p^T g,  dp = g v^T,  ds = p (dp - p.dp),  dq = scale ds k,  dk = scale ds^T q.
    """
    heads, n, m = len(query), query.shape[1], key.shape[1]
    query = query * scale
    dq, dk, dv = torch.empty_like(query), torch.zeros_like(key), torch.zeros_like(value)
    memory = query.new_empty(2, min(max(cap, m), heads * n * m))
    for some, rows in _tiles(heads, n, m, cap):
        seen = slice(0, min(m, rows.stop) if causal else m)
        q, g, k, v = query[some, rows], grad[some, rows], key[some, seen], value[some, seen]
        scores, weights = (part[: math.prod(q.shape[:2]) * seen.stop].view(*q.shape[:2], -1) for part in memory)
        torch.bmm(q, k.mT, out=scores)
        if causal and rows.start < seen.stop:
            later = torch.ones(q.shape[1], seen.stop - rows.start, dtype=torch.bool, device=q.device).triu_(1)
            scores[..., rows.start :].masked_fill_(later, NEVER)
        torch.softmax(scores, -1, out=weights)
        dv[some, seen].baddbmm_(weights.mT, g)
        torch.bmm(g, v.mT, out=scores)
        softmax_backward(scores, weights, -1, scores.dtype, grad_input=scores)
        dq[some, rows] = scores @ k
        dk[some, seen].baddbmm_(scores.mT, q)
    return dq.mul_(scale), dk, dv


def _tiles(heads: int, n: int, m: int, cap: int) -> Iterator[tuple[slice, slice]]:
    """Whole heads, several at a time where they are small; else some rows of one."""
    together, rows = max(1, cap // (n * m)), min(n, max(1, cap // m))
    for head in range(0, heads, together):
        for row in range(0, n, rows):
            yield slice(head, min(heads, head + together)), slice(row, min(n, row + rows))
