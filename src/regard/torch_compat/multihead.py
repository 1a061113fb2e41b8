"""The steps of `torch.nn.MultiheadAttention`, from its parameters and the arguments of a call to its output."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from regard.torch_compat.masks import hidden_keys, terms, to_sdpa_mask
from regard.weights import Weights

FORWARD = inspect.signature(nn.MultiheadAttention.forward)


def call_arguments(layer: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a call of the layer, by name; those that were left out are missing."""
    return dict(FORWARD.bind(layer, *args, **options).arguments)


# Projections


def project(
    layer: Any,
    query: Float[Tensor, "*lead embed_dim"],
    key: Float[Tensor, "*key_lead kdim"],
    value: Float[Tensor, "*key_lead vdim"] | None,
) -> tuple[Float[Tensor, "... heads dim"], ...]:
    """Queries, keys and values of every head, q = W_q query + b_q and so on: (..., features) -> (..., heads, dim) each.

    Inputs that are the same tensor share one matrix product. Without a value, only queries and keys are projected.
    """
    heads, width, biases = (layer.num_heads, layer.head_dim), layer.embed_dim, layer.in_proj_bias
    packed = layer.in_proj_weight
    if packed is not None and key is value:
        if query is key:
            return linear(query, packed, biases).unflatten(-1, (3, *heads)).unbind(-3)
        sizes = (width, 2 * width)
        w_q, w_kv = packed.split(sizes)
        b_q, b_kv = (None, None) if biases is None else biases.split(sizes)
        k, v = linear(key, w_kv, b_kv).unflatten(-1, (2, *heads)).unbind(-3)
        return linear(query, w_q, b_q).unflatten(-1, heads), k, v
    matrices = (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight) if packed is None else packed.chunk(3)
    vectors = (None, None, None) if biases is None else biases.chunk(3)
    triples = zip((query, key, value), matrices, vectors, strict=True)
    return tuple(linear(x, w, b).unflatten(-1, heads) for x, w, b in triples if x is not None)


def heads_first(layer: Any, projected: Float[Tensor, "*lead heads dim"]) -> Float[Tensor, "*batch heads rows dim"]:
    """(rows, batch, heads, dim), or with the batch first, or without a batch -> (batch, heads, rows, dim)."""
    if projected.dim() == 4 and not layer.batch_first:
        return projected.permute(1, 2, 0, 3)
    return projected.transpose(-3, -2)


def append_extra_keys(
    layer: Any, rows: Float[Tensor, "*batch heads keys dim"], learned: Float[Tensor, "1 1 embed_dim"] | None
) -> Float[Tensor, "*batch heads more dim"]:
    """Keys or values with the rows that the layer adds itself: a learned one (add_bias_kv), zeros (add_zero_attn)."""
    if learned is not None:
        row = learned.view(layer.num_heads, 1, layer.head_dim)
        rows = torch.cat([rows, row.expand(*rows.shape[:-2], 1, layer.head_dim)], -2)
    return pad(rows, (0, 0, 0, 1)) if layer.add_zero_attn else rows


def query_and_key(
    layer: Any, arguments: dict[str, Any]
) -> tuple[Float[Tensor, "batch heads queries dim"], Float[Tensor, "batch heads keys dim"]]:
    """Queries and keys of every head, with the keys that the layer adds; a call without a batch is a batch of one."""
    q, k = (heads_first(layer, x) for x in project(layer, arguments["query"], arguments["key"], None))
    k = append_extra_keys(layer, k, None if layer.bias_k is None else layer.bias_k.to(k.dtype))
    return (q, k) if q.dim() == 4 else (q.unsqueeze(0), k.unsqueeze(0))


def projected_rows(
    layer: Any,
    weights: Float[Tensor, "heads rows keys"],
    batch: int,
    value: Float[Tensor, "*key_lead vdim"],
    features: slice,
) -> tuple[Float[Tensor, "rows some"], Float[Tensor, "rows 1"]]:
    """Some features of a layer's output for rows with these weights, and the size of these rows.

    By linearity, sum_j p_ij (W_v x_j + b_v) = W_v (sum_j p_ij x_j) + b_v sum_j p_ij: only pooled rows are projected.
    Every feature depends on all heads, so that a few are enough for a comparison.
    """
    values = of_sequence(layer, value, batch)
    dtype, heads, m = weights.dtype, layer.num_heads, values.shape[0]
    packed = layer.in_proj_weight
    matrix = layer.v_proj_weight if packed is None else packed[2 * layer.embed_dim :]
    own = weights[..., :m]
    pooled = (own @ values.to(dtype)) @ matrix.to(dtype).unflatten(0, (heads, -1)).mT  # (heads, rows, dim)
    if layer.in_proj_bias is not None:
        bias = layer.in_proj_bias[2 * layer.embed_dim :].to(dtype).view(heads, 1, -1)
        pooled = pooled + own.sum(-1, keepdim=True) * bias
    if layer.bias_v is not None:
        pooled = pooled + weights[..., m : m + 1] * layer.bias_v.to(dtype).view(heads, 1, -1)
    joined = pooled.transpose(0, 1).flatten(1)
    matrix, bias = layer.out_proj.weight[features], layer.out_proj.bias
    computed = linear(joined, matrix.to(dtype), None if bias is None else bias[features].to(dtype))
    size = torch.maximum(joined.abs().amax(-1, keepdim=True), computed.abs().amax(-1, keepdim=True))
    return computed, size.clamp_min(torch.finfo(dtype).tiny)


def of_sequence(layer: Any, tensor: Float[Tensor, "*lead dim"], batch: int) -> Float[Tensor, "rows dim"]:
    """The part of an input or output of a layer that belongs to one sequence of its batch."""
    if tensor.dim() == 2:
        return tensor
    return tensor[batch] if layer.batch_first else tensor[:, batch]


# Masks and weights of one call


def broadcast_masks(layer: Any, arguments: dict[str, Any]) -> list[Tensor]:
    """The masks of a call as they broadcast to (batch, heads, queries, keys); True hides, numbers are added."""
    pairs, padding = arguments.get("attn_mask"), arguments.get("key_padding_mask")
    masks: list[Tensor] = []
    if pairs is not None:
        masks.append(pairs if pairs.dim() == 2 else pairs.unflatten(0, (-1, layer.num_heads)))
    if padding is not None:
        masks.append(torch.atleast_2d(padding)[:, None, None])
    return masks


def sdpa_mask(layer: Any, arguments: dict[str, Any], keys: int) -> Shaped[Tensor, "... queries keys"] | None:
    """The masks of a call as one `attn_mask` of scaled_dot_product_attention, for all `keys`, also those it adds."""
    return to_sdpa_mask(_padded(broadcast_masks(layer, arguments), keys))


def call_weights(
    layer: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Weights, Bool[Tensor, "batch 1 queries"] | None]:
    """Weights (batch, heads, queries, keys) of a call, and which queries are no padding, if that is known.

    It is known in self-attention with a key_padding_mask, where queries and keys are the same tokens.
    """
    arguments = call_arguments(layer, args, options)
    q, k = query_and_key(layer, arguments)
    score, mask = terms(_padded(broadcast_masks(layer, arguments), k.shape[-2]), q.dtype)
    padding = arguments.get("key_padding_mask")
    real = None
    if padding is not None and arguments["query"] is arguments["key"]:
        real = ~hidden_keys(torch.atleast_2d(padding))[:, None]
    return Weights(q, k, score, mask), real


def _padded(masks: list[Tensor], keys: int) -> list[Tensor]:
    """Masks that reach over the keys that the layer adds, which every query sees."""
    return [pad(mask, (0, keys - mask.shape[-1])) for mask in masks]


# torch's fast path, which computes an encoder layer in one kernel and calls no attention module


def disable_fast_path(layer: nn.MultiheadAttention) -> None:
    """Make one layer fail the conditions of torch's fast path, so that `nn.TransformerEncoderLayer` calls it.

    The encoder layer reads this attribute to learn whether query, key and value share one projection. Beside it, only
    `nn.MultiheadAttention` itself reads it, to learn which of the parameters it has.
    """
    layer._qkv_same_embed_dim = False  # noqa: SLF001


def enable_fast_path(layer: nn.MultiheadAttention) -> None:
    """Undo `disable_fast_path`."""
    layer._qkv_same_embed_dim = layer.in_proj_weight is not None  # noqa: SLF001


@contextmanager
def no_fast_path() -> Iterator[None]:
    """Switch torch's fast path off for every layer, for a while."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
