"""Additive attention in one step: score, softmax and pooling together, with a backward pass of its own.

A decoder asks for one query of each sentence of a batch at a time. The general path computes a tile three times for a
gradient and takes many small steps around it. Here the weights of the one tile are kept, and the numbers inside the
tanh, of which there are `hidden` times as many, are computed again in the backward pass.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.engine.plan import Plan
from regard.normalisers import Softmax
from regard.operands import NEVER, Size, Span
from regard.scores import Tanh, is_large, tanh_score_gradients, tanh_score_values
from regard.spec import Spec
from regard.tracing import is_tracing


def serves(spec: Spec, query: Tensor, key: Tensor, value: Tensor, lead: tuple[int, ...], plan: Plan) -> bool:
    """True for one tile of additive scores with softmax, where all inputs have the same single leading dimension."""
    return (
        isinstance(spec.score, Tanh)
        and plan.executor == "dense"
        and isinstance(spec.normaliser, Softmax)
        and len(lead) == 1
        and query.dim() == key.dim() == value.dim() == 3
        and query.shape[0] == key.shape[0] == value.shape[0]
        and 0 not in (*query.shape, *key.shape, *value.shape)
        and not is_tracing()
    )


def pool(
    spec: Spec,
    query: Float[Tensor, "batch queries dim_q"],
    key: Float[Tensor, "batch keys dim_k"],
    value: Float[Tensor, "batch keys dim_v"],
) -> Float[Tensor, "batch queries dim_v"]:
    """softmax(v . tanh(W_q q + W_k k)) @ value; hidden numbers must be finite."""
    a, b, v = (operand.tensor for operand in spec.score.operands(query, key))
    visible = None
    if spec.mask is not None:
        n, m = query.shape[1], key.shape[1]
        operands = [operand.tensor for operand in spec.mask.operands((query.shape[0],))]
        visible = spec.mask.tile(operands, Span(0, n), Span(0, m), Size(n, m, query.device))
    return _AdditivePool.apply(a, b, v, value, visible)  # pyright: ignore[reportReturnType]


class _AdditivePool(torch.autograd.Function):
    """Weights @ value, for weights = softmax_j(sum_h v_h tanh(a_ih + b_jh) where visible)."""

    @staticmethod
    def forward(
        ctx: Any,
        a: Float[Tensor, "batch rows h"],
        b: Float[Tensor, "batch cols h"],
        v: Float[Tensor, " h"],
        value: Float[Tensor, "batch cols dim_v"],
        visible: Bool[Tensor, "... cols"] | None,
    ) -> Float[Tensor, "batch rows dim_v"]:
        large = is_large(a, b)
        weights = _normalised(tanh_score_values(a, b, v, large=large), visible)
        ctx.save_for_backward(a, b, v, value, weights)
        ctx.large, ctx.visible = large, visible
        return weights @ value

    @staticmethod
    def backward(ctx: Any, grad: Float[Tensor, "batch rows dim_v"]) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        a, b, v, value, weights = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted
            return _differentiable_gradients(ctx, grad)
        grad_weights = grad @ value.mT
        grad_scores = weights * (grad_weights - (grad_weights * weights).sum(-1, keepdim=True))
        grad_value = weights.mT @ grad if ctx.needs_input_grad[3] else None
        return (*tanh_score_gradients(a, b, v, grad_scores, large=ctx.large), grad_value, None)


def _normalised(
    scores: Float[Tensor, "batch rows cols"], visible: Bool[Tensor, "... cols"] | None
) -> Float[Tensor, "batch rows cols"]:
    """Softmax over the visible keys; a row that sees none is 0."""
    if visible is None:
        return torch.softmax(scores, -1)
    return Softmax().weights(torch.where(visible, scores, NEVER))


def _differentiable_gradients(ctx: Any, grad: Float[Tensor, "batch rows dim_v"]) -> tuple[Tensor | None, ...]:
    """Gradients with a graph of their own, from the formula as it is written."""
    tensors, needs = ctx.saved_tensors[:4], ctx.needs_input_grad[:4]
    a, b, v, value = tensors
    out = _normalised(torch.tanh(a.unsqueeze(-2) + b.unsqueeze(-3)) @ v, ctx.visible) @ value
    wanted = [t for t, needed in zip(tensors, needs, strict=True) if needed]
    gradients = iter(torch.autograd.grad(out, wanted, grad, create_graph=True))
    return (*(next(gradients) if needed else None for needed in needs), None)
