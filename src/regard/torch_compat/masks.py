"""Masks as torch.nn writes them, in regard's words: booleans where True hides, and numbers that are added."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.engine.tiles import all_finite
from regard.errors import DtypeError, LayerError
from regard.masks import Mask, causal, hide
from regard.scores import Score, bias, scaled_dot
from regard.term import type_name
from regard.tracing import is_tracing


def translate(
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    inputs: tuple[Tensor, Tensor, Tensor],
    *,
    is_causal: bool,
    extra: int,
) -> tuple[Score | None, Mask | None]:
    """The score and the mask that two masks of torch's ask for; `extra` keys at the end are always seen.

    attn_mask (..., n, m) as `by_head` has it. inputs: query, key and value, which may hold NaN that is to stay hidden.
    """
    found: list[tuple[Tensor | None, Mask | None]] = []
    if is_causal:
        found.append((None, causal("top-left")))
    elif attn_mask is not None:
        found.append(_of_pairs(_longer(attn_mask, extra), inputs))
    if key_padding_mask is not None:
        found.append(_of_keys(_longer(key_padding_mask, extra)))
    score, mask = None, None
    for added, hidden in found:
        if added is not None:
            score = (score or scaled_dot()) + bias(added)
        if hidden is not None:
            mask = hidden if mask is None else mask & hidden
    return score, mask


def by_head(attn_mask: Tensor, heads: int) -> Tensor:
    """(n, m) as it is; (B * heads, n, m) -> (B, heads, n, m)."""
    if attn_mask.dim() == 2 or attn_mask.shape[0] == heads:
        return attn_mask
    return attn_mask.unflatten(0, (-1, heads))


def _longer(mask: Tensor, extra: int) -> Tensor:
    return pad(mask, (0, extra)) if extra else mask


def _of_pairs(attn_mask: Tensor, inputs: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor | None, Mask | None]:
    if _is_causal(attn_mask):
        return None, causal("top-left")
    if attn_mask.is_floating_point():
        return attn_mask, hidden_by_never(attn_mask, *inputs)
    return None, None if _says_nothing(attn_mask) else hide(attn_mask)


def hidden_by_never(added: Tensor, *inputs: Tensor) -> Mask | None:
    """A mask of what -inf hides, where it is needed: what is hidden may be NaN, which no sum takes away."""
    if not is_tracing() and all_finite(*inputs):
        return None
    return hide(added.detach() == -math.inf)


def _is_causal(attn_mask: Tensor) -> bool:
    """Whether it is the causal mask written out, where one may look: a kernel that knows it is twice as fast."""
    n = attn_mask.shape[0]
    if attn_mask.shape != (n, n) or n < 2 or is_tracing() or attn_mask.requires_grad:
        return False
    never = -math.inf if attn_mask.is_floating_point() else True
    if attn_mask[0, -1].item() != never or attn_mask[-1, 0].item() == never:  # most that are not end here
        return False
    return torch.equal(attn_mask, torch.full_like(attn_mask, never).triu_(1))


def _of_keys(padding: Tensor) -> tuple[Tensor | None, Mask | None]:
    """nn.TransformerEncoder turns booleans into 0 and -inf before it calls a layer: here they are turned back.

    A key that is hidden by a mask does no harm even if it is NaN; one that is hidden by adding -inf does.
    """
    padding = padding[..., None, None, :]  # (B, heads, queries, keys)
    if not padding.is_floating_point():
        return None, None if _says_nothing(padding) else hide(padding)
    hidden = padding == -math.inf
    rest = padding.masked_fill(hidden, 0.0)
    return None if _says_nothing(rest) else rest, None if _says_nothing(hidden) else hide(hidden)


def _says_nothing(mask: Tensor) -> bool:
    """Whether a mask changes no score, where one may look."""
    return not is_tracing() and not mask.requires_grad and not bool(mask.any())


def check(
    attn_mask: Tensor | None, key_padding_mask: Tensor | None, *, lead: tuple[int, ...], heads: int, n: int, m: int
) -> None:
    """Refuse what torch refuses; `lead` is (B,), or () for input without a batch."""
    for name, mask in (("attn_mask", attn_mask), ("key_padding_mask", key_padding_mask)):
        if mask is not None and not isinstance(mask, Tensor):
            msg = (
                f"{name} must be a torch tensor or None, but it is {type_name(mask)} (masks of regard.masks are for "
                f"regard.attend and regard.nn.SelfAttention)"
            )
            raise DtypeError(msg)
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
