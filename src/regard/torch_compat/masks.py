"""Mask conventions of torch, translated into regard's terms.

- `torch.nn.MultiheadAttention`: in a boolean mask True hides; numbers are added to the scores, and -inf hides.
- `scaled_dot_product_attention`: in a boolean mask True is visible; numbers are the same.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor
from torch.nn import Parameter
from torch.nn.functional import pad

from regard.engine.tiles import all_finite
from regard.errors import DtypeError, LayerError, MaskError
from regard.masks import Align, Mask, causal, hide
from regard.operands import overrides_torch_function
from regard.scores import Score, bias, scaled_dot
from regard.term import type_name
from regard.tracing import is_tracing

Part = tuple[Tensor | None, Mask | None]  # a bias that is added to the scores, and what is hidden


def plain_mask(attn_mask: Tensor, n: int, m: int) -> Align | Tensor:
    """The mask of scaled_dot_product_attention as an ordinary tensor, or the alignment of the causal mask that it is.

    torch's `CausalBias` (`torch.nn.attention.bias.causal_lower_right` and `causal_upper_left`) holds no numbers: torch
    takes it for its own is_causal, which begins at the top left, unless it is aligned at the lower right with other
    lengths of queries and keys. A class with a meaning of its own that is not known here is refused.
    """
    if type(attn_mask) in (Tensor, Parameter):
        return attn_mask
    bias: Any = sys.modules.get("torch.nn.attention.bias")  # loaded by whoever made one; loading takes half a second
    if bias is not None and isinstance(attn_mask, bias.CausalBias):
        causal_bias: Any = attn_mask
        lengths = causal_bias.seq_len_q, causal_bias.seq_len_kv
        if causal_bias.variant == bias.CausalVariant.UPPER_LEFT or lengths[0] == lengths[1]:
            return "top-left"
        if lengths == (n, m):
            return "bottom-right"
        visible = torch.ones(lengths, dtype=torch.bool, device=attn_mask.device)
        return visible.tril(lengths[1] - lengths[0])  # it may broadcast, or be refused
    check_plain(attn_mask, "attn_mask")
    kind: Any = type(attn_mask)
    has_dispatch = kind.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl  # noqa: SLF001  such as DTensor
    return attn_mask if has_dispatch else attn_mask.as_subclass(Tensor)


def check_plain(mask: Tensor, name: str) -> None:
    """Refuse a mask whose class gives it a meaning of its own: its numbers alone may say something else."""
    if overrides_torch_function(mask):
        msg = (
            f"{name} is a {type(mask).__name__}, a class of tensors with a meaning of its own, which is not known "
            f"here; give an ordinary tensor, {name}.as_subclass(torch.Tensor) if its numbers are the mask"
        )
        raise MaskError(msg)


def layer_terms(
    attn_mask: Shaped[Tensor, "... queries keys"] | None,
    key_padding_mask: Shaped[Tensor, "... keys"] | None,
    inputs: tuple[Tensor, Tensor, Tensor],
    *,
    is_causal: bool,
    extra: int,
) -> tuple[Score | None, Mask | None]:
    """Score and mask for the two masks of a layer's call; None is the default score, or everything visible.

    attn_mask is (queries, keys) or (..., heads, queries, keys), key_padding_mask (..., keys). The `extra` keys at the
    end, which the layer adds itself, are always visible. inputs are query, key and value: where they hold NaN, the
    mask keeps what -inf hides from them too.
    """
    parts: list[Part] = []
    if is_causal:
        parts.append((None, causal("top-left")))
    elif attn_mask is not None:
        parts.append(_pair_terms(_with_extra(attn_mask, extra), inputs))
    if key_padding_mask is not None:
        parts.append(_split(_with_extra(key_padding_mask, extra)[..., None, None, :]))
    return _combined(parts)


def terms(masks: Iterable[Tensor], dtype: torch.dtype) -> tuple[Score | None, Mask | None]:
    """Score and mask for masks in the convention of torch's layer, all that -inf hides in the mask.

    Biases are cast to `dtype`, that of the queries.
    """
    parts = (_split(mask) for mask in masks)
    return _combined([(None if added is None else added.to(dtype), hidden) for added, hidden in parts])


def to_sdpa_mask(masks: Iterable[Tensor]) -> Shaped[Tensor, "... queries keys"] | None:
    """One `attn_mask` of scaled_dot_product_attention for masks in the convention of torch's layer."""
    total: Tensor | None = None
    for mask in masks:
        one = ~mask if mask.dtype == torch.bool else mask
        if total is None:
            total = one
        elif total.dtype == one.dtype == torch.bool:
            total = total & one
        else:
            total = _as_bias(total) + _as_bias(one)
    return total


def split_heads(
    attn_mask: Shaped[Tensor, "*batch_and_heads queries keys"], heads: int
) -> Shaped[Tensor, "... queries keys"]:
    """An attn_mask (batch * heads, queries, keys) as (batch, heads, queries, keys); one for all sequences stays."""
    if attn_mask.dim() == 2 or attn_mask.shape[0] == heads:
        return attn_mask
    return attn_mask.unflatten(0, (-1, heads))


def hidden_keys(mask: Shaped[Tensor, "*shape"]) -> Bool[Tensor, "*shape"]:
    """True where a mask in the convention of torch's layer hides."""
    return mask if mask.dtype == torch.bool else mask == -math.inf


def hidden_by_infinity(added: Float[Tensor, "..."], *inputs: Tensor) -> Mask | None:
    """A mask of what a bias of -inf hides, or None where the bias alone is enough.

    It is not enough where an input holds NaN or inf, which no sum takes away.
    """
    if not is_tracing() and all_finite(*inputs):
        return None
    return hide(added.detach() == -math.inf)


def _combined(parts: list[Part]) -> tuple[Score | None, Mask | None]:
    score, mask = None, None
    for added, hidden in parts:
        if added is not None:
            score = (score or scaled_dot()) + bias(added)
        if hidden is not None:
            mask = hidden if mask is None else mask & hidden
    return score, mask


def _with_extra(mask: Shaped[Tensor, "*lead keys"], extra: int) -> Shaped[Tensor, "*lead more"]:
    return pad(mask, (0, extra)) if extra else mask


def _pair_terms(attn_mask: Shaped[Tensor, "... queries keys"], inputs: tuple[Tensor, Tensor, Tensor]) -> Part:
    """An attn_mask of numbers stays one bias, -inf included: it may be learned, and is not copied."""
    if _is_causal(attn_mask):
        return None, causal("top-left")
    if attn_mask.is_floating_point():
        return attn_mask, hidden_by_infinity(attn_mask, *inputs)
    return _split(attn_mask)


def _split(mask: Tensor) -> Part:
    """A mask as a finite bias and what is hidden.

    `nn.TransformerEncoder` turns booleans into 0 and -inf before it calls a layer. A key that a mask hides does no harm
    even if it is NaN; one that is hidden by adding -inf does.
    """
    if not mask.is_floating_point():
        return None, None if _is_neutral(mask) else hide(mask)
    hidden = mask == -math.inf
    rest = mask.masked_fill(hidden, 0.0)
    return None if _is_neutral(rest) else rest, None if _is_neutral(hidden) else hide(hidden)


def _is_causal(attn_mask: Shaped[Tensor, "... queries keys"]) -> bool:
    """True if this is the causal mask written out: a kernel that knows it is twice as fast. False under a trace."""
    n = attn_mask.shape[0]
    if attn_mask.shape != (n, n) or n < 2 or is_tracing() or attn_mask.requires_grad:
        return False
    hidden = -math.inf if attn_mask.is_floating_point() else True
    if attn_mask[0, -1].item() != hidden or attn_mask[-1, 0].item() == hidden:  # most other masks are told here
        return False
    return torch.equal(attn_mask, torch.full_like(attn_mask, hidden).triu_(1))


def _is_neutral(mask: Tensor) -> bool:
    """True if a mask changes no score. False under a trace, where nobody can look, and for one that is learned."""
    return not is_tracing() and not mask.requires_grad and not bool(mask.any())


def _as_bias(mask: Shaped[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """A mask of scaled_dot_product_attention as numbers that are added."""
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=torch.float32).masked_fill(~mask, -torch.inf)


def check(
    attn_mask: Tensor | None, key_padding_mask: Tensor | None, *, lead: tuple[int, ...], heads: int, n: int, m: int
) -> None:
    """Refuse masks that torch's layer refuses; `lead` is (batch,), or () for input without a batch."""
    for name, mask in (("attn_mask", attn_mask), ("key_padding_mask", key_padding_mask)):
        if mask is not None and not isinstance(mask, Tensor):
            msg = (
                f"{name} must be a torch tensor or None, but it is {type_name(mask)} (masks of regard.masks are for "
                f"regard.attend and regard.nn.SelfAttention)"
            )
            raise DtypeError(msg)
        if mask is not None:
            check_plain(mask, name)
        if mask is not None and not (mask.is_floating_point() or mask.dtype == torch.bool):
            msg = f"{name} holds booleans (True hides) or floating point numbers (which are added), not {mask.dtype}"
            raise LayerError(msg)
    if key_padding_mask is not None and key_padding_mask.shape != (*lead, m):
        msg = (
            f"key_padding_mask needs one mark for each key, {'(batch, keys)' if lead else '(keys,)'} = {(*lead, m)}, "
            f"but it is {tuple(key_padding_mask.shape)}"
        )
        raise LayerError(msg)
    rows = math.prod(lead) * heads
    if attn_mask is not None and attn_mask.shape not in ((n, m), (rows, n, m)):
        msg = (
            f"attn_mask is (queries, keys) = {(n, m)} or ({'batch * ' if lead else ''}heads, queries, keys) = "
            f"{(rows, n, m)}, but it is {tuple(attn_mask.shape)}"
        )
        raise LayerError(msg)
