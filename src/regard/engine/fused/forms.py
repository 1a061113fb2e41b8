"""How a call is adapted to torch's fused kernel, for every score that is an inner product of features.

Values are padded to the width of keys, a learned bias of the keys becomes one more feature, a mask of a small matrix or
one that the caller gave as a tensor becomes a bias, what depends on j - i alone becomes a view of one vector, and any
other mask runs block by block of queries, each on the keys that it sees.
"""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from regard.engine.costs import SMALL_SCORES, TILE_OVERHEAD
from regard.engine.fused import wide_values
from regard.engine.fused.kernel import call_kernel, from_4d, hiding_bias, rescaled, to_4d
from regard.engine.fused.query_blocks import pool_by_blocks
from regard.engine.fused.relative_bias import is_relative, pool_relative
from regard.engine.plan import Form, max_bias_numbers
from regard.masks import ALL, Allow, Band, Mask
from regard.operands import NEVER, Size, Span, broadcast_shapes
from regard.scores import Bias, Features, Score
from regard.spec import Spec

FLOAT64_FROM_SQUARE = 64.0  # half squares of features above this leave fewer than five digits of a score in float32
MIN_KERNEL_WIDTH = 16  # features: fewer are padded, because the kernel is faster and more accurate then


def is_causal(mask: Mask | None, n: int, m: int) -> bool:
    """True if a mask is the causal one that the kernel implements."""
    return isinstance(mask, Band) and mask.left is None and mask.right == 0 and (n == m or mask.align == "top-left")


def form(spec: Spec, lead: tuple[int, ...], n: int, m: int, tile_scores: int) -> Form:
    """How the kernel has to be called: a function of sizes and terms, never of numbers in tensors."""
    if not spec.score.is_pairwise:
        if spec.mask is None or _hides_nothing(spec.mask, n, m):
            return "whole"
        if is_causal(spec.mask, n, m):
            return "causal"
        if spec.mask.per_key or n == 1:
            scores = (lead[-1] if lead else 1) * n * m  # of one sequence, which may need a call of its own
            return "blocks" if spec.mask.has_ranges and scores >= TILE_OVERHEAD else "keys"
    if spec.score.is_pairwise and is_relative(spec, lead):
        return "relative"
    return "pairs" if _fits_a_bias(spec, lead, n, m, tile_scores) else "blocks"


def _hides_nothing(mask: Mask, n: int, m: int) -> bool:
    """True if every query sees all keys, as a new token does under the causal mask."""
    return mask.block_states(None, Span(0, n), (0, m), Size(n, m, torch.device("cpu"))) == [ALL]


def _fits_a_bias(spec: Spec, lead: tuple[int, ...], n: int, m: int, tile_scores: int) -> bool:
    """True if all that varies by query and key can be one bias: it is small, or in tensors that the caller gave."""
    if len(lead) > 2:
        return False
    if math.prod(lead) * n * m <= min(SMALL_SCORES, tile_scores):
        return True
    added = [leaf for leaf in spec.score.leaves() if leaf.is_pairwise]
    hiding = [] if spec.mask is None else list(spec.mask.leaves())
    given = all(isinstance(leaf, Allow) for leaf in hiding) and all(isinstance(leaf, Bias) for leaf in added)
    leads = [tensor.shape[:-2] for leaf in (*added, *hiding) for tensor in leaf.tensors().values()]
    return given and math.prod(broadcast_shapes(*leads)) * n * m <= max_bias_numbers(tile_scores)


def pool(
    spec: Spec,
    query: Float[Tensor, "... queries dim_q"],
    key: Float[Tensor, "... keys dim_k"],
    value: Float[Tensor, "... keys dim_v"],
    lead: tuple[int, ...],
    form: Form,
    tile_scores: int,
) -> tuple[Float[Tensor, "*batch queries dim_v"], Float[Tensor, "*batch queries"]]:
    """The output softmax(scores) @ value and the log-sum-exp of each row, which has no gradient.

    `form` is that of the function `form`; `lead` are the leading dimensions of the weights.
    """
    features = spec.score.features(query, key)
    n, m = query.shape[-2], key.shape[-2]
    if loses_digits(features):
        features = spec.score.features(query.double(), key.double())
    q, k, bias, scale = absorb_key_bias(features, query, key)
    dtype = q.dtype
    tile_scores = max(1, tile_scores * query.element_size() // q.element_size())  # float64 numbers take twice the bytes
    wide = form in ("whole", "causal") and bias is None and wide_values.serves(q, k, value)
    width = q.shape[-1] if wide else kernel_width(q.shape[-1], value.shape[-1])
    q, k, v = pad_features(q, width), pad_features(k.to(dtype), width), pad_features(value.to(dtype), width)
    if wide:
        out, lse = _wide_values(q, k, v, lead, causal=form == "causal", scale=scale, tile_scores=tile_scores)
    elif form == "blocks":
        out, lse = pool_by_blocks(spec, features.rest, (q, k, v), bias, scale, lead, tile_scores)
    elif form == "relative":
        out, lse = pool_relative(spec, features.rest, (q, k, v), scale, lead)
    else:
        if form == "pairs":
            bias = _pair_bias(features.rest, query, key, bias, dtype)
        if form in ("keys", "pairs") and spec.mask is not None:
            bias = mask_bias(spec.mask, Size(n, m, query.device), lead, bias, dtype)
        out, lse = call_kernel(q, k, v, lead, causal=form == "causal", scale=scale, bias=bias)
    if features.row is not None:
        lse = lse + features.row.detach()
    return out[..., : value.shape[-1]].to(value.dtype), lse.to(value.dtype)


def _wide_values(
    q: Float[Tensor, "... queries dim"],
    k: Float[Tensor, "... keys dim"],
    v: Float[Tensor, "... keys dim_v"],
    lead: tuple[int, ...],
    *,
    causal: bool,
    scale: float,
    tile_scores: int,
) -> tuple[Float[Tensor, "*batch queries dim_v"], Float[Tensor, "*batch queries"]]:
    """One call of the kernel with the backward pass of `wide_values`."""
    q, scale = rescaled(q, scale, causal=causal)
    apply: Any = wide_values.WideValues.apply
    out, lse = apply(to_4d(q, lead), to_4d(k, lead), to_4d(v, lead), scale, causal, tile_scores)
    return from_4d(out, lse, lead)


def absorb_key_bias(
    features: Features, query: Float[Tensor, "... queries dim_q"], key: Float[Tensor, "... keys dim_k"]
) -> tuple[
    Float[Tensor, "... queries dim"],
    Float[Tensor, "... keys dim"],
    Float[Tensor, "... 1 keys"] | None,
    float,
]:
    """Features of queries and keys, the bias of the keys, and the scale. A learned bias becomes one more feature."""
    q = query.new_zeros(*query.shape[:-1], 1) if features.query is None else features.query
    k = key.new_zeros(*key.shape[:-1], 1) if features.key is None else features.key
    bias = features.key_bias
    if bias is None or not (features.row is not None or (bias.requires_grad and torch.is_grad_enabled())):
        return q, k, bias, features.scale
    lead = broadcast_shapes(k.shape[:-2], bias.shape[:-2])
    column = bias.mT.expand(*lead, k.shape[-2], 1)
    # The scale goes onto the queries: the bias cannot be divided by one that is 0, or next to it.
    scaled = q if features.scale == 1 else q * features.scale
    return (
        torch.cat([scaled, torch.ones_like(q[..., :1])], -1),
        torch.cat([k.expand(*lead, *k.shape[-2:]), column], -1),
        None,
        1.0,
    )


def loses_digits(features: Features) -> bool:
    """True if squares of features are so large that their differences would lack digits in float32."""
    row, bias = features.row, features.key_bias
    if row is None or bias is None or row.dtype != torch.float32 or not row.numel() or not bias.numel():
        return False
    reach = torch.maximum(bias.detach().abs().amax(), row.detach().abs().amax())
    return not reach.item() < FLOAT64_FROM_SQUARE


def kernel_width(features: int, values: int) -> int:
    """The width to which queries, keys and values are padded for the kernel."""
    return max(MIN_KERNEL_WIDTH, features, values)


def pad_features(tensor: Float[Tensor, "*rows dim"], width: int) -> Float[Tensor, "*rows width"]:
    """The tensor with zeros appended to each row up to `width`; inner products stay the same."""
    return tensor if tensor.shape[-1] >= width else pad(tensor, (0, width - tensor.shape[-1]))


def _pair_bias(
    rest: tuple[Score, ...],
    query: Float[Tensor, "... queries dim_q"],
    key: Float[Tensor, "... keys dim_k"],
    key_bias: Float[Tensor, "... 1 keys"] | None,
    dtype: torch.dtype,
) -> Float[Tensor, "... rows keys"] | None:
    """The sum of the scores that depend on the positions of query and key alone, and of the bias of the keys."""
    n, m = query.shape[-2], key.shape[-2]
    tiles = [
        leaf.tile([operand.tensor for operand in leaf.operands(query, key)], Span(0, n), Span(0, m)) for leaf in rest
    ]
    added = [tile.to(dtype).expand(*tile.shape[:-1], m) for tile in tiles]
    if len(added) == 1 and key_bias is None and torch.is_grad_enabled():
        return added[0].detach().clone()  # the backward pass needs it as it is now, and the caller may change his own
    return reduce(add, added if key_bias is None else [*added, key_bias]) if added else key_bias


def mask_bias(
    mask: Mask,
    size: Size,
    lead: tuple[int, ...],
    bias: Float[Tensor, "... rows keys"] | None,
    dtype: torch.dtype,
) -> Float[Tensor, "... masked_rows keys"]:
    """The bias with -inf where a mask hides; one row if the mask hides the same keys from every query."""
    operands = [o.tensor for o in mask.operands(lead)]
    rows = 1 if mask.per_key else size.n
    visible = mask.tile(operands, Span(0, rows), Span(0, size.m), size)
    visible = visible.expand(*visible.shape[:-2], rows, size.m)
    if bias is None:
        return hiding_bias(visible, dtype)
    return torch.where(visible, bias, NEVER)
