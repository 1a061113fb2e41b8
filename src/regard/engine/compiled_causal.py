"""Causal attention as an operator of torch, `torch.ops.regard.causal`, for torch.compile.

A compiled graph cannot branch on whether a number is NaN. Inside an operator, which the compiler does not look into,
ordinary pooling can.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.engine import pooling
from regard.engine.plan import Plan
from regard.masks import causal as causal_mask
from regard.normalisers import softmax
from regard.scores import Dot
from regard.spec import Spec

with ThreadPoolExecutor(1) as _new_thread:  # a new thread has the dispatcher's state of ordinary code
    ORDINARY_EXCLUDED_KEYS = _new_thread.submit(torch._C._dispatch_tls_local_exclude_set).result()  # noqa: SLF001


def _pool(
    query: Float[Tensor, "... queries dim"],
    key: Float[Tensor, "... keys dim"],
    value: Float[Tensor, "... keys dim_v"],
    scale: float,
    tile_scores: int,
) -> tuple[Float[Tensor, "... queries dim_v"], Float[Tensor, "... queries"] | None]:
    """Output and log-sum-exp of causal attention, by tiles or torch's kernel; None if the log-sum-exp is not known."""
    spec = Spec(Dot(scale), causal_mask("top-left"), softmax())
    plan = Plan("fused", tile_scores, "compiled", form="causal")
    return pooling.pool(spec, query, key, value, tuple(query.shape[:-2]), plan)


# torch reads the annotations of the following functions, so they name no shapes: (*batch, rows, dim) throughout.
@torch.library.custom_op("regard::causal", mutates_args=())
def causal(query: Tensor, key: Tensor, value: Tensor, scale: float, tile_scores: int) -> tuple[Tensor, Tensor]:
    """softmax(scale q k^T where causal) @ v and the log-sum-exp of each row, 0 where that is not known."""
    out, lse = _pool(query, key, value, scale, tile_scores)
    return out.contiguous(), query.new_zeros(query.shape[:-1]) if lse is None else lse.contiguous()


@causal.register_fake
def _(query: Tensor, key: Tensor, value: Tensor, scale: float, tile_scores: int) -> tuple[Tensor, Tensor]:
    del key, scale, tile_scores
    return query.new_empty(*query.shape[:-1], value.shape[-1]), query.new_empty(query.shape[:-1])


@torch.library.custom_op("regard::causal_backward", mutates_args=())
def causal_backward(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, scale: float, tile_scores: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients with respect to query, key and value, from the same computation with a graph."""
    leaves = [t.detach().requires_grad_() for t in (query, key, value)]
    included = torch._C._dispatch_tls_local_include_set()  # noqa: SLF001
    # Inside an operator torch records no graph; the dispatcher's ordinary state brings recording back.
    with torch._C._ForceDispatchKeyGuard(included, ORDINARY_EXCLUDED_KEYS), torch.enable_grad():  # noqa: SLF001
        out, _ = _pool(leaves[0], leaves[1], leaves[2], scale, tile_scores)
        grads = torch.autograd.grad(out, leaves, grad)
    return tuple(part.contiguous() for part in grads)  # pyright: ignore[reportReturnType]


@causal_backward.register_fake
def _(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, scale: float, tile_scores: int
) -> tuple[Tensor, Tensor, Tensor]:
    del grad, scale, tile_scores
    return tuple(t.new_empty(t.shape) for t in (query, key, value))  # pyright: ignore[reportReturnType]


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Save the inputs of `causal` for its backward pass."""
    del output
    ctx.save_for_backward(*inputs[:3])
    ctx.scale, ctx.tile_scores = inputs[3:]


def _gradient(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    """The backward pass of `causal`; no gradient flows through the log-sum-exp."""
    return (*causal_backward(grad.contiguous(), *ctx.saved_tensors, ctx.scale, ctx.tile_scores), None, None)


causal.register_autograd(_gradient, setup_context=_save)
