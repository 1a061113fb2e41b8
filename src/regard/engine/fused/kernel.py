"""Calls of torch's fused (flash) kernel, forward and backward, with any leading dimensions and a bias of the scores.

The kernel takes (batch, heads, rows, dim) with values as wide as keys, one scale, the top-left causal mask, and a bias
without a gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from regard.operands import NEVER

flash: Callable[..., Any] = torch._scaled_dot_product_flash_attention_for_cpu  # noqa: SLF001  # pyright: ignore[reportPrivateImportUsage]
flash_backward: Callable[..., Any] = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default  # noqa: SLF001


def hiding_bias(visible: Bool[Tensor, "*shape"], dtype: torch.dtype) -> Float[Tensor, "*shape"]:
    """0 where visible, -inf where hidden: 1 - 1/visible, which takes a quarter of the time of torch.where."""
    return visible.to(dtype).reciprocal_().neg_().add_(1.0)


def call_kernel(
    q: Float[Tensor, "... queries dim"],
    k: Float[Tensor, "... keys dim"],
    v: Float[Tensor, "... keys dim"],
    lead: tuple[int, ...],
    *,
    causal: bool,
    scale: float,
    bias: Float[Tensor, "... rows keys"] | None,
) -> tuple[Float[Tensor, "*batch queries dim"], Float[Tensor, "*batch queries"]]:
    """The output and the log-sum-exp of one call of the kernel; -inf where a query sees no key."""
    q, scale = rescaled(q, scale, causal=causal)
    four = None if bias is None else to_4d(bias.to(q.dtype), lead, expand=False)
    out, lse = flash(to_4d(q, lead), to_4d(k, lead), to_4d(v, lead), 0.0, causal, attn_mask=four, scale=scale)
    return from_4d(out, lse if four is None else mark_empty_rows(lse, four, causal=causal), lead)


def mark_empty_rows(
    lse: Float[Tensor, "batch heads queries"], bias: Float[Tensor, "#batch #heads rows keys"], *, causal: bool
) -> Float[Tensor, "batch heads queries"]:
    """The log-sum-exp with -inf for a row that sees no key. The kernel has 0 there, so the bias is read only then.

    Under the kernel's causal mask the bias has one row, and query i sees the keys up to i.
    """
    if lse.count_nonzero().item() == lse.numel():
        return lse
    if not causal:
        return lse.masked_fill(bias.amax(-1) == NEVER, NEVER)
    last = torch.arange(lse.shape[-1], device=lse.device).clamp_max(bias.shape[-1] - 1)
    empty = bias.squeeze(-2).cummax(-1).values.index_select(-1, last) == NEVER
    return lse.masked_fill(empty, NEVER)


def call_backward(
    scale: float,
    parts: list[Tensor],
    bias: Float[Tensor, "... rows keys"] | None,
    lead: tuple[int, ...],
    rows: list[Tensor],
    lse: Float[Tensor, "... rows"],
    *,
    causal: bool,
) -> list[Tensor]:
    """Gradients of one batch of blocks with respect to its queries, keys and values, by torch's kernel."""
    grad, out = (to_4d(t, lead) for t in rows)
    four_lse = to_4d(lse.unsqueeze(-1), lead).squeeze(-1)
    four = None if bias is None else to_4d(bias, lead, expand=False)
    grads = flash_backward(
        grad, *(to_4d(t, lead) for t in parts), out, four_lse, 0.0, causal, attn_mask=four, scale=scale
    )
    return [part.reshape(t.shape) for part, t in zip(grads, parts, strict=True)]


def rescaled(q: Float[Tensor, "*shape"], scale: float, *, causal: bool) -> tuple[Float[Tensor, "*shape"], float]:
    """Queries and scale for the kernel. It scales the -inf of hidden keys too: a tiny scale would make it NaN."""
    return (q * scale, 1.0) if causal and scale < torch.finfo(q.dtype).tiny else (q, scale)


def from_4d(
    out: Float[Tensor, "batch heads queries dim"], lse: Float[Tensor, "batch heads queries"], lead: tuple[int, ...]
) -> tuple[Float[Tensor, "... queries dim"], Float[Tensor, "... queries"]]:
    """(batch, heads, rows, dim) -> (*lead, rows, dim), and the log-sum-exp likewise."""
    if len(lead) == 2:
        return out, lse
    return out.reshape(*lead, *out.shape[-2:]), lse.reshape(*lead, lse.shape[-1])


def _with_unit_stride(tensor: Shaped[Tensor, "*shape"]) -> Shaped[Tensor, "*shape"]:
    """The tensor with the numbers of a row side by side in memory: the kernel reads wrong numbers otherwise."""
    return tensor if tensor.is_contiguous() or tensor.stride(-1) == 1 else tensor.contiguous()


def to_4d(
    tensor: Shaped[Tensor, "... rows dim"], lead: tuple[int, ...], *, expand: bool = True
) -> Shaped[Tensor, "batch heads rows dim"]:
    """(*lead, rows, dim) -> (batch, heads, rows, dim)."""
    tensor = _with_unit_stride(tensor)
    if tensor.dim() == 4 and len(lead) == 2 and (not expand or tensor.shape[:2] == lead):
        return tensor
    if expand or len(lead) > 2:
        tensor = tensor.expand(*lead, *tensor.shape[-2:])
    if len(lead) > 2:
        return tensor.reshape(math.prod(lead[:-1]), lead[-1], *tensor.shape[-2:])
    return tensor.reshape(*[1] * (4 - tensor.dim()), *tensor.shape)
