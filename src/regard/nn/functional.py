"""Functions that torch has too, with torch's arguments, computed by `regard.attend`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import handle_torch_function, has_torch_function_variadic

from regard import masks, scores
from regard.attention import attend
from regard.engine.fused.row_statistics import Once
from regard.errors import CallError, RegardError
from regard.masks import Mask
from regard.scores import Score
from regard.torch_compat import sdpa as inputs
from regard.torch_compat.masks import hidden_by_never
from regard.tracing import is_tracing

__all__ = ["scaled_dot_product_attention"]

# Torch's own, whatever stands in torch.nn.functional by now: this function may have been put there.
_torchs: Any = torch._C._nn.scaled_dot_product_attention  # noqa: SLF001  # pyright: ignore[reportAttributeAccessIssue]
_choice: Any = torch._fused_sdp_choice  # noqa: SLF001  # pyright: ignore[reportPrivateImportUsage]
MATH = 0  # torch's choice of the plain formula, which can be differentiated twice


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
    r"""`torch.nn.functional.scaled_dot_product_attention`, to be put in its place.

    output = dropout(softmax(scale · query keyᵀ + attn_mask)) value, with scale = 1 / √d unless given.

    Shapes: query (..., n, d), key (..., m, d), value (..., m, d_v); output (..., n, d_v). Leading dimensions broadcast;
    with `enable_gqa` the heads of key and value, on axis -3, are each repeated to those of the query.

    Arguments mean what they mean to torch: in a boolean `attn_mask` True is seen, a mask of numbers is added and may
    learn, and either broadcasts to (..., n, m); `is_causal` shows query i the keys up to i, from the top left corner;
    `dropout_p` is applied whenever it is given. What torch refuses is refused with an exception of the same type.
    Second derivatives are asked for as of torch: they exist where torch takes its plain formula (d_v != d, other than
    four dimensions, dropout), and everywhere under ``torch.nn.attention.sdpa_kernel(SDPBackend.MATH)``.

    The differences:

    - A query that sees no key gives 0, and gradients of 0, whichever way it is computed.
    - A key that is hidden, by `is_causal`, by False or by -inf, is not looked at: NaN or inf in it, or in its value,
      reaches neither the output nor a gradient. NaN that is seen shows, also where torch's kernel loses it.
    - float16 and bfloat16 are computed with in float32, and rounded once.
    - Dropout draws other numbers than torch's from the same seed.
    - A mask of one dimension, or of none, is always taken, and one of float32 is added to float64 as it stands, where
      torch 2.13 misreads its bytes. What does not fit together is always refused: torch takes keys and values of
      different lengths, and keys of no head beside any query.
    - `is_causal` hides at a scale of 0 or below too, where torch's kernel gives NaN.

    Nested and sparse tensors, and those without numbers (meta), are handed to torch.

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
    if has_torch_function_variadic(query, key, value, attn_mask):
        return _by_others(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    if _is_for_torch(query, key, value):
        return _torchs(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    inputs.check_types(query, key, value, attn_mask, is_causal, enable_gqa)
    asked = Asked(inputs.probability(dropout_p), is_causal, inputs.factor(scale))
    query, key, value, attn_mask = inputs.autocast(query, key, value, attn_mask)
    inputs.check_numbers(query, key, value, attn_mask)
    grouped = key, value
    if enable_gqa:
        key, value = inputs.ungrouped(query, key, "key"), inputs.ungrouped(query, value, "value")
    fitting, lead = inputs.lead(query, key)
    if attn_mask is not None:
        attn_mask = inputs.fitting_mask(attn_mask, (*lead, query.shape[-2], key.shape[-2]))
    way = _way(asked, query, *grouped, attn_mask, enable_gqa=enable_gqa)
    return inputs.laid_out_as(query, way(asked, fitting, key, value, attn_mask))


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of a call."""

    dropout_p: float
    is_causal: bool
    scale: float | None

    def attend(self, plan: str, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None) -> Tensor:
        scale = self.scale
        if scale is not None and not math.isfinite(scale):  # no score of regard's, but torch multiplies by it
            query, scale = query * scale, 1.0
        score, mask = _words(query, key, value, attn_mask, self.is_causal, scale)
        dropout_p = self.dropout_p if self.dropout_p < 1 else 0.0
        try:
            output = attend(query, key, value, score, mask, dropout_p=dropout_p, plan=plan).output
        except RegardError as error:
            raise CallError(str(error)) from error
        return output if self.dropout_p < 1 else output * 0.0  # with all dropped nothing is left to make up for


Way = Callable[[Asked, Tensor, Tensor, Tensor, Tensor | None], Tensor]


def _way(asked: Asked, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, *, enable_gqa: bool) -> Way:
    """How to compute it, so that whatever torch can differentiate is differentiable."""
    if is_tracing():
        return _by_plan
    learns = torch.is_grad_enabled() and inputs.any_learns(query, key, value, attn_mask)
    both = asked.is_causal and attn_mask is not None
    if not learns and not both:
        return _by_plan
    options = {"scale": asked.scale, "enable_gqa": enable_gqa}
    if _choice(query, key, value, attn_mask, asked.dropout_p, asked.is_causal, **options) != MATH:
        return _by_plan
    if both:
        msg = (
            "attn_mask and is_causal=True exclude each other wherever torch takes its plain formula: give is_causal "
            "alone, or hide in the mask what comes after each query, attn_mask & torch.ones_like(attn_mask).tril()"
        )
        raise CallError(msg)
    return _by_plan if asked.dropout_p else _twice  # with dropout there is no kernel, and tiles go twice


def _by_plan(asked: Asked, *tensors: Any) -> Tensor:
    return asked.attend("auto", *tensors)


def _twice(asked: Asked, *tensors: Any) -> Tensor:
    """By a kernel if that is best; but where a second derivative is asked for, tile by tile."""
    *learning, mask = tensors
    fixed = (mask,)
    if mask is not None and mask.requires_grad:
        learning, fixed = tensors, ()
    fast, slow = (lambda *x, plan=plan: asked.attend(plan, *x, *fixed) for plan in ("auto", "tiled"))
    return Once.apply(fast, slow, *learning)  # pyright: ignore[reportReturnType]


def _words(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool, scale: float | None
) -> tuple[Score | None, Mask | None]:
    """Torch's arguments in the words of regard."""
    score = None if scale is None else scores.scaled_dot(scale)
    visible = masks.causal("top-left") if is_causal else None
    if attn_mask is None:
        return score, visible
    if attn_mask.dtype == torch.bool:
        shown = masks.allow(attn_mask)
    else:
        score = (score or scores.scaled_dot()) + scores.bias(attn_mask)
        shown = hidden_by_never(attn_mask, query, key, value)
    if shown is None or visible is None:
        return score, visible if shown is None else shown
    return score, visible & shown


def _by_others(
    query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: Any, is_causal: Any, scale: Any, enable_gqa: Any
) -> Any:
    """What a class of tensors or a mode of torch makes of the call; of nested tensors torch knows only its own."""
    given = (query, key, value, attn_mask)
    options = {"dropout_p": dropout_p, "is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
    with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001
        nested = any(isinstance(t, Tensor) and t.is_nested for t in given)
    if nested:
        return _torchs(*given, **options)
    return handle_torch_function(scaled_dot_product_attention, given, *given, **options)


def _is_for_torch(*tensors: object) -> bool:
    """Whether there are no numbers to attend to, or none in rows."""
    return any(isinstance(t, Tensor) and (t.is_nested or t.layout != torch.strided or _is_empty(t)) for t in tensors)


def _is_empty(tensor: Tensor) -> bool:
    return tensor.is_meta or (not torch.compiler.is_compiling() and isinstance(tensor, FakeTensor))
