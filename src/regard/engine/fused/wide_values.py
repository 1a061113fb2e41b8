"""Attention whose values are wider than its keys: the fused kernel forward, tiles of whole rows backward.

The kernel wants keys as wide as values, so they are padded. Forward that costs little. Backward, three of five products
would go through the padding; tiles of whole rows use torch's own products, which are no wider than necessary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from regard.operands import NEVER
from regard.tracing import without_autocast

MIN_RATIO = 2  # width of values to width of keys: below, the padding costs less than the tiles
MIN_KEY_WIDTH = 48  # with narrower keys the exponentials cost most, and the kernel never stores them
kernel: Callable[..., Any] = torch._scaled_dot_product_flash_attention_for_cpu  # noqa: SLF001  # pyright: ignore[reportPrivateImportUsage]
softmax_backward: Callable[..., Any] = torch.ops.aten._softmax_backward_data.out  # noqa: SLF001


def serves(
    query: Float[Tensor, "... queries dim"], key: Float[Tensor, "... keys dim"], value: Float[Tensor, "... keys dim_v"]
) -> bool:
    """True if gradients are wanted, and the values are so wide that the tiles are faster."""
    if torch.compiler.is_compiling() or value.shape[-1] < MIN_RATIO * max(MIN_KEY_WIDTH, key.shape[-1]):
        return False
    return torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)


class WideValues(torch.autograd.Function):
    """One call of the kernel on (batch, heads, rows, dim), where values may be wider than keys."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Float[Tensor, "batch heads queries dim"],
        key: Float[Tensor, "batch heads keys dim"],
        value: Float[Tensor, "batch heads keys dim_v"],
        scale: float,
        causal: bool,
        tile_scores: int,
    ) -> tuple[Float[Tensor, "batch heads queries dim_v"], Float[Tensor, "batch heads queries"]]:
        missing = (0, value.shape[-1] - key.shape[-1])
        out, lse = kernel(pad(query, missing), pad(key, missing), value, 0.0, causal, scale=scale)
        ctx.save_for_backward(query, key, value)
        ctx.scale, ctx.causal, ctx.tile_scores = scale, causal, tile_scores
        ctx.mark_non_differentiable(lse)
        return out, lse

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Float[Tensor, "batch heads queries dim_v"], _: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        inputs = ctx.saved_tensors
        q, k, v, g = (t.flatten(0, 1) for t in (*inputs, grad))
        with without_autocast():
            grads = gradients(q, k, v, g, scale=ctx.scale, causal=ctx.causal, tile_scores=ctx.tile_scores)
        return (*(part.view(t.shape) for part, t in zip(grads, inputs, strict=True)), None, None, None)


def gradients(
    query: Float[Tensor, "heads queries dim"],
    key: Float[Tensor, "heads keys dim"],
    value: Float[Tensor, "heads keys dim_v"],
    grad: Float[Tensor, "heads queries dim_v"],
    *,
    scale: float,
    causal: bool,
    tile_scores: int,
) -> tuple[Float[Tensor, "heads queries dim"], Float[Tensor, "heads keys dim"], Float[Tensor, "heads keys dim_v"]]:
    """The gradients of softmax(scale q k^T) v with respect to q, k and v, for the gradient g of the output.

    With p the weights of a row and ds the gradient of its scores:

        dv = p^T g,  dp = g v^T,  ds = p (dp - p.dp),  dq = scale ds k,  dk = scale ds^T q.
    """
    n_heads, n, m = len(query), query.shape[1], key.shape[1]
    query = query * scale
    dq, dk, dv = torch.empty_like(query), torch.zeros_like(key), torch.zeros_like(value)
    memory = query.new_empty(2, min(max(tile_scores, m), n_heads * n * m))
    for heads, rows in _tiles(n_heads, n, m, tile_scores):
        seen = slice(0, min(m, rows.stop) if causal else m)
        q, g, k, v = query[heads, rows], grad[heads, rows], key[heads, seen], value[heads, seen]
        scores, weights = (part[: math.prod(q.shape[:2]) * seen.stop].view(*q.shape[:2], -1) for part in memory)
        torch.bmm(q, k.mT, out=scores)
        if causal and rows.start < seen.stop:
            later = torch.ones(q.shape[1], seen.stop - rows.start, dtype=torch.bool, device=q.device).triu_(1)
            scores[..., rows.start :].masked_fill_(later, NEVER)
        torch.softmax(scores, -1, out=weights)
        dv[heads, seen].baddbmm_(weights.mT, g)
        torch.bmm(g, v.mT, out=scores)
        softmax_backward(scores, weights, -1, scores.dtype, grad_input=scores)
        dq[heads, rows] = scores @ k
        dk[heads, seen].baddbmm_(scores.mT, q)
    return dq.mul_(scale), dk, dv


def _tiles(n_heads: int, n: int, m: int, tile_scores: int) -> Iterator[tuple[slice, slice]]:
    """Tiles (heads, rows): several whole heads where they are small, else some rows of one head."""
    heads, rows = max(1, tile_scores // (n * m)), min(n, max(1, tile_scores // m))
    for head in range(0, n_heads, heads):
        for row in range(0, n, rows):
            yield slice(head, min(n_heads, head + heads)), slice(row, min(n, row + rows))
