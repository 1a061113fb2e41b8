"""Functions of `torch.nn.functional`, with torch's arguments, computed by `regard.attend`."""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import handle_torch_function, has_torch_function_variadic

from regard import masks, scores
from regard.attention import attend
from regard.engine.fused.row_statistics import SecondOrderFallback
from regard.errors import CallError, RegardError
from regard.masks import Align, Mask
from regard.scores import Score
from regard.torch_compat import sdpa
from regard.torch_compat.masks import hidden_by_infinity
from regard.torch_compat.sdpa import Arguments
from regard.tracing import is_tracing, refuse_script

__all__ = ["scaled_dot_product_attention"]

# torch's own function, also where ours has been put in its place in torch.nn.functional.
_torch_sdpa: Any = torch._C._nn.scaled_dot_product_attention  # noqa: SLF001  # pyright: ignore[reportAttributeAccessIssue]
_choose_kernel: Any = torch._fused_sdp_choice  # noqa: SLF001  # pyright: ignore[reportPrivateImportUsage]
MATH = 0  # torch's number for the plain formula, which can be differentiated twice


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    r"""Scaled dot product attention: a drop-in for `torch.nn.functional.scaled_dot_product_attention`.

    output = dropout(softmax(scale · query keyᵀ + attn_mask)) value, with scale = 1 / √d unless given.

    Shapes: query (..., n, d), key (..., m, d), value (..., m, d_v); output (..., n, d_v). Leading dimensions broadcast;
    with `enable_gqa` the heads of key and value, on axis -3, are each repeated to those of the query.

    Arguments mean what they mean to torch. In a boolean `attn_mask` True is visible; a mask of numbers is added to the
    scores and may be learned; either broadcasts to (..., n, m). `is_causal` lets query i see the keys 0 to i.
    `dropout_p` is applied whenever it is given. What torch refuses is refused with an exception of the same type.
    Second derivatives exist where they do for torch: where it takes its plain formula (d_v != d, other than four
    dimensions, dropout), and everywhere under ``torch.nn.attention.sdpa_kernel(SDPBackend.MATH)``.

    Differences from torch:

    - A query that sees no key gives 0 and gradients of 0, on every path.
    - NaN or inf in a hidden key, or in its value, reaches neither the output nor a gradient, whether the key is hidden
      by `is_causal`, by False or by -inf. NaN in a visible key always shows, also where torch's kernel loses it.
    - float16 and bfloat16 are computed in float32 and rounded once.
    - Dropout draws other numbers than torch's from the same seed.
    - A mask of one dimension or of none is always accepted, and a float32 mask is added to float64 scores as it is,
      where torch 2.13 misreads its bytes. Shapes that do not fit together are always refused: torch accepts keys and
      values of different lengths, and keys without a head beside any query.
    - Of tensor subclasses as `attn_mask`, torch's `CausalBias` is the causal mask that it says, a class without a
      `__torch_function__` of its own counts as the tensor that it is, and any other is refused.
    - `is_causal` also hides at a scale of 0 or below, where torch's kernel gives NaN.

    Nested, sparse and meta tensors are handed to torch.

    >>> import torch
    >>> from regard.nn.functional import scaled_dot_product_attention
    >>> query, key, value = torch.eye(2), torch.eye(3, 2), torch.arange(3.0)[:, None]
    >>> scaled_dot_product_attention(query, key, value, is_causal=True)
    tensor([[0.0000],
            [0.6698]])
    >>> scaled_dot_product_attention(query, key, value, torch.tensor([[True, True, True], [False, False, False]]))
    tensor([[0.7448],
            [0.0000]])
    """
    if has_torch_function_variadic(query, key, value):
        return _by_torch_function(Arguments(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa))
    if _is_for_torch(query, key, value):
        return _torch_sdpa(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    p, factor = sdpa.dropout_probability(dropout_p), sdpa.scale_factor(scale)
    call = Arguments(query, key, value, attn_mask, p, is_causal, factor, enable_gqa)
    call.check_types()
    call, align = call.with_plain_mask()
    call = call.autocast()
    call.check_tensors()
    query, key, value, attn_mask = call.tensors
    if enable_gqa:
        key, value = sdpa.repeat_heads(query, key, "key"), sdpa.repeat_heads(query, value, "value")
    expanded, lead = sdpa.expand_heads(query, key)
    if attn_mask is not None:
        attn_mask = sdpa.broadcastable_mask(attn_mask, (*lead, query.shape[-2], key.shape[-2]))
    compute = _twice_differentiable if _wants_second_derivative(call, attn_mask) else _attend
    return sdpa.torch_strides(query, compute(call, align, "auto", expanded, key, value, attn_mask))


setattr(scaled_dot_product_attention, "__prepare_scriptable__", refuse_script)  # noqa: B010  see `attend`


def _wants_second_derivative(call: Arguments, attn_mask: Shaped[Tensor, "... #queries #keys"] | None) -> bool:
    """True where torch would take its plain formula, which can be differentiated twice, and a kernel of ours cannot.

    A mask beside is_causal is refused there, as torch refuses it.
    """
    both = call.is_causal and attn_mask is not None
    if is_tracing() or not (both or call.needs_gradient):
        return False
    if _choose_kernel(call.query, call.key, call.value, attn_mask, **call.options) != MATH:
        return False
    if both:
        msg = (
            "attn_mask and is_causal=True exclude each other wherever torch takes its plain formula: give is_causal "
            "alone, or hide in the mask what comes after each query, attn_mask & torch.ones_like(attn_mask).tril()"
        )
        raise CallError(msg)
    return not call.dropout_p  # with dropout no kernel is used, and tiles are differentiable twice


def _twice_differentiable(
    call: Arguments,
    align: Align,
    plan: str,
    query: Float[Tensor, "... queries dim"],
    key: Float[Tensor, "... keys dim"],
    value: Float[Tensor, "... keys dim_v"],
    attn_mask: Shaped[Tensor, "... #queries #keys"] | None,
) -> Float[Tensor, "... queries dim_v"]:
    """Attend by the plan; where a second derivative is taken, the first is computed again in tiles."""
    variables, constants = (query, key, value), (attn_mask,)
    if attn_mask is not None and attn_mask.requires_grad:
        variables, constants = (query, key, value, attn_mask), ()
    fast, slow = (lambda *x, plan=plan: _attend(call, align, plan, *x, *constants) for plan in (plan, "tiled"))
    return SecondOrderFallback.apply(fast, slow, *variables)  # pyright: ignore[reportReturnType]


def _attend(
    call: Arguments,
    align: Align,
    plan: str,
    query: Float[Tensor, "... queries dim"],
    key: Float[Tensor, "... keys dim"],
    value: Float[Tensor, "... keys dim_v"],
    attn_mask: Shaped[Tensor, "... #queries #keys"] | None,
) -> Float[Tensor, "... queries dim_v"]:
    """`regard.attend` with the options of the call."""
    scale = call.scale
    if scale is not None and not math.isfinite(scale):  # no score of regard's, but torch multiplies by it
        query, scale = query * scale, 1.0
    score, mask = _terms(query, key, value, attn_mask, masks.causal(align) if call.is_causal else None, scale)
    dropout_p = call.dropout_p if call.dropout_p < 1 else 0.0
    try:
        output = attend(query, key, value, score, mask, dropout_p=dropout_p, plan=plan).output
    except RegardError as error:
        raise CallError(str(error)) from error
    return output if call.dropout_p < 1 else output * 0.0  # with p = 1 there is no factor 1 / (1 - p)


def _terms(
    query: Float[Tensor, "... queries dim"],
    key: Float[Tensor, "... keys dim"],
    value: Float[Tensor, "... keys dim_v"],
    attn_mask: Shaped[Tensor, "... #queries #keys"] | None,
    causal: Mask | None,
    scale: float | None,
) -> tuple[Score | None, Mask | None]:
    """Score and mask of regard for torch's arguments."""
    score = None if scale is None else scores.scaled_dot(scale)
    if attn_mask is None:
        return score, causal
    if attn_mask.dtype == torch.bool:
        visible = masks.allow(attn_mask)
    else:
        score = (score or scores.scaled_dot()) + scores.bias(attn_mask)
        visible = hidden_by_infinity(attn_mask, query, key, value)
    if visible is None or causal is None:
        return score, causal if visible is None else visible
    return score, causal & visible


def _by_torch_function(call: Arguments) -> Any:
    """The call as a tensor subclass or a torch mode handles it; nested tensors know only torch's own function."""
    with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001
        nested = any(isinstance(t, Tensor) and t.is_nested for t in call.tensors)
    if nested:
        return _torch_sdpa(*call.tensors, **call.options)
    query, key, value, _ = call.tensors  # a mask does not decide what is computed
    return handle_torch_function(scaled_dot_product_attention, (query, key, value), *call.tensors, **call.options)


def _is_for_torch(*tensors: object) -> bool:
    """True for nested, sparse, meta and fake tensors, which `attend` cannot compute with."""
    return any(isinstance(t, Tensor) and (t.is_nested or t.layout != torch.strided or _is_empty(t)) for t in tensors)


def _is_empty(tensor: Tensor) -> bool:
    return tensor.is_meta or (not torch.compiler.is_compiling() and isinstance(tensor, FakeTensor))
