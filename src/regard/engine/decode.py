"""Decoding: few queries on many keys, as while a model generates. Reading the keys is what takes time.

One query is cut to the keys that it sees. Keys in half precision are widened chunk by chunk: a copy of them all would
cost more than the rest.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.engine.costs import SPARSE_KEYS
from regard.engine.mask_cache import remembered
from regard.engine.plan import MIN_FUSED_KEYS
from regard.engine.plan_cache import PlannedCall
from regard.masks import Allow, Mask
from regard.operands import Size, Span, Tile
from regard.scores import Dot
from regard.spec import Spec
from regard.tracing import is_tracing

CHUNK_NUMBERS = 1 << 19  # of keys that are widened at a time: they stay in the processor's cache
MAX_CHUNKED_ROWS = 32  # of a head: with more, widening all keys is cheap beside the products


def serves_one_query(call: PlannedCall, spec: Spec) -> bool:
    """True for one query of plain attention with a mask, whose numbers can be read."""
    return (
        call.shape.n == 1 and call.plan.form in ("keys", "blocks") and isinstance(spec.score, Dot) and not is_tracing()
    )


def cut_to_visible(
    call: PlannedCall, spec: Spec, key: Float[Tensor, "... keys dim_k"], value: Float[Tensor, "... keys dim_v"]
) -> tuple[PlannedCall, Spec, Float[Tensor, "... seen dim_k"], Float[Tensor, "... seen dim_v"]]:
    """A call of one query on the keys that its mask may show, with one row of the mask for all of a group."""
    mask, shape, size = spec.mask, call.shape, Size(1, call.shape.m, key.device)
    assert mask is not None  # noqa: S101  else the form would be "whole"
    kind = ("one query", mask.signature, shape.lead, size)
    cols, row = remembered(kind, mask, lambda: visible_keys(mask, shape.lead, size))
    call = call._replace(
        shape=replace(shape, m=len(cols)), plan=replace(call.plan, form="whole" if row is None else "keys")
    )
    return call, replace(spec, mask=row), cols.take(key, -2), cols.take(value, -2)


def visible_keys(mask: Mask, lead: tuple[int, ...], size: Size) -> tuple[Span, Allow | None]:
    """The smallest range of keys that holds all that one query sees, or the keys themselves if they are few of it."""
    reach = mask.reach(Span(0, 1), size) or [(0, 0)]
    cols = Span(*reach[0])
    if len(reach) > 1:
        cols = Span(reach[0][0], reach[-1][1], torch.cat([torch.arange(*one, device=size.device) for one in reach]))
    seen = cols.positions(size.device)[_visible(mask, lead, size, cols).flatten(0, -2).any(0)]
    low, high = (int(seen[0]), int(seen[-1]) + 1) if len(seen) else (0, 0)
    low = max(0, min(low, size.m - MIN_FUSED_KEYS))
    cols = Span(low, max(high, min(size.m, low + MIN_FUSED_KEYS)))
    if MIN_FUSED_KEYS <= len(seen) < SPARSE_KEYS * len(cols):  # sinks and a window: what lies between is not read
        cols = Span(cols.start, cols.stop, seen)
    visible = _visible(mask, lead, size, cols)
    return cols, None if bool(visible.all()) else Allow(visible.clone(), "allow")


def _visible(mask: Mask, lead: tuple[int, ...], size: Size, cols: Span) -> Bool[Tensor, "... 1 cols"]:
    """True where the query sees a key of `cols`."""
    tile = Tile(tuple(slice(0, length) for length in lead), Span(0, 1), cols)
    visible = mask.tile([tile.cut(operand) for operand in mask.operands(lead)], tile.rows, cols, size)
    return visible.expand(*visible.shape[:-2], 1, len(cols))


def is_same_for_heads(mask: Mask, lead: tuple[int, ...]) -> bool:
    """True if a mask hides the same from all heads, so that those that share keys can be rows of one head."""
    return all(operand.tensor.shape[-3:-2] in ((), (1,)) for operand in mask.operands(lead))


def serves_chunks(query: Tensor, key: Tensor, value: Tensor, spec: Spec) -> bool:
    """True for few rows of plain attention in half precision, on leading dimensions that are the same for all."""
    if key.element_size() > 2 or query.shape[-2] > MAX_CHUNKED_ROWS or not isinstance(spec.score, Dot):
        return False
    if torch.compiler.is_compiling() or not query.shape[:-2] == key.shape[:-2] == value.shape[:-2]:
        return False
    return not (torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value)))


def pool_chunks(
    query: Float[Tensor, "*batch queries dim"],
    key: Float[Tensor, "*batch keys dim"],
    value: Float[Tensor, "*batch keys dim_v"],
    spec: Spec,
) -> tuple[Float[Tensor, "*batch queries dim_v"], Float[Tensor, "*batch queries"]]:
    """Output and log-sum-exp, computed in float32 from one chunk of keys and values after another."""
    assert isinstance(spec.score, Dot)  # noqa: S101  `serves_chunks` has seen it
    q = query.float() * spec.score.scale_for(key.shape[-1])
    heads = key.shape[:-2].numel()
    size = max(1, CHUNK_NUMBERS // (heads * max(key.shape[-1], value.shape[-1])))
    scores = torch.cat([q @ chunk.float().mT for chunk in key.split(size, -2)], -1)
    lse = scores.logsumexp(-1)
    parts = zip(scores.softmax(-1).split(size, -1), value.split(size, -2), strict=True)
    out = q.new_zeros(*q.shape[:-1], value.shape[-1])
    for weights, chunk in parts:
        out += weights @ chunk.float()
    return out, lse
