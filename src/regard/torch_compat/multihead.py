"""The weights of torch's multi-head attention, from its parameters and the arguments of a call, as torch reads them."""

import inspect
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from regard import masks, scores
from regard.masks import Mask
from regard.scores import Score
from regard.weights import Weights

ARGUMENTS = inspect.signature(nn.MultiheadAttention.forward)


def is_multihead(module: nn.Module) -> bool:
    return isinstance(module, nn.MultiheadAttention)


def arguments(module: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """What a call was given, by name."""
    return dict(ARGUMENTS.bind(module, *args, **options).arguments)


def of_call(module: Any, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Weights, Tensor | None]:
    """The weights (batch, heads, queries, keys), and which queries are no padding, (batch, 1, queries), where known."""
    given = arguments(module, args, options)
    q, k = projected(module, given)
    score, mask = _words(torch_masks(module, given), k.shape[-2], q.dtype)
    padded = _as_batch(given.get("key_padding_mask"), 1)
    real = None
    if padded is not None and given["query"] is given["key"]:
        real = ~_hidden(padded)[:, None]
    return Weights(q, k, score, mask), real


def torch_masks(module: Any, given: dict[str, Any]) -> list[Tensor | None]:
    """The two masks of a call as they broadcast to (batch, heads, queries, keys); True hides in both."""
    padded = _as_batch(given.get("key_padding_mask"), 1)
    return [
        _per_head(given.get("attn_mask"), module.num_heads),
        padded if padded is None else padded[:, None, None],
    ]


def kept(module: Any, given: dict[str, Any], keys: int) -> Tensor | None:
    """Both masks as one, in the other convention of torch's: True keeps, and numbers are added to scores."""
    found: Tensor | None = None
    for tensor in torch_masks(module, given):
        if tensor is None:
            continue
        whole = pad(tensor, (0, keys - tensor.shape[-1]))
        whole = ~whole if whole.dtype == torch.bool else whole
        if found is None:
            found = whole
        elif found.dtype == whole.dtype == torch.bool:
            found = found & whole
        else:
            found = _numbers(found) + _numbers(whole)
    return found


def _numbers(mask: Tensor) -> Tensor:
    return (
        torch.zeros_like(mask, dtype=torch.float32).masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else mask
    )


def _batch_first(module: Any, x: Tensor) -> Tensor:
    """(batch, length, features), whichever of torch's three layouts it came in."""
    if x.dim() == 2:
        return x.unsqueeze(0)
    return x if module.batch_first else x.transpose(0, 1)


def projected(module: Any, given: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """q and k of every head, (batch, heads, length, dim), with the keys that the layer adds by itself."""
    query, key = (_batch_first(module, given[name]) for name in ("query", "key"))
    if module.in_proj_weight is not None:
        w_q, w_k, _ = module.in_proj_weight.chunk(3)
    else:
        w_q, w_k = module.q_proj_weight, module.k_proj_weight
    b_q, b_k, _ = (None, None, None) if module.in_proj_bias is None else module.in_proj_bias.chunk(3)
    q, k = linear(query, w_q, b_q), linear(key, w_k, b_k)
    if module.bias_k is not None:
        k = torch.cat([k, module.bias_k.expand(len(k), -1, -1).to(k.dtype)], 1)
    if module.add_zero_attn:
        k = pad(k, (0, 0, 0, 1))
    q, k = (x.unflatten(-1, (module.num_heads, -1)).transpose(1, 2) for x in (q, k))
    return q, k


def _as_batch(mask: Tensor | None, dims: int) -> Tensor | None:
    return mask.unsqueeze(0) if mask is not None and mask.dim() == dims else mask


def _per_head(mask: Tensor | None, heads: int) -> Tensor | None:
    """(queries, keys) for all, or (batch * heads, queries, keys), a batch's heads beside each other."""
    return mask if mask is None or mask.dim() == 2 else mask.unflatten(0, (-1, heads))


def _words(given: list[Tensor | None], keys: int, dtype: torch.dtype) -> tuple[Score, Mask | None]:
    """In torch's masks True hides; numbers are added to the scores, and -inf hides."""
    score, mask = scores.scaled_dot(), None
    for tensor in given:
        if tensor is None:
            continue
        whole = pad(tensor, (0, keys - tensor.shape[-1]))  # keys that the layer adds are seen by all
        hidden = _hidden(whole)
        mask = masks.hide(hidden) if mask is None else mask & masks.hide(hidden)
        if whole.is_floating_point() and bool((whole.masked_fill(hidden, 0) != 0).any()):
            score = score + scores.bias(whole.masked_fill(hidden, 0).to(dtype))
    return score, mask


def _hidden(mask: Tensor) -> Tensor:
    return mask if mask.dtype == torch.bool else mask == -torch.inf
