"""Decoding: few queries on many keys, as while a model generates. Reading the keys is what takes time.

One query is cut to the keys that it sees. Keys in half precision are widened chunk by chunk: a copy of them all would
cost more than the rest.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from regard.engine.mask_cache import remembered
from regard.engine.plan import MIN_FUSED_KEYS
from regard.engine.plan_cache import PlannedCall
from regard.masks import Allow, Mask
from regard.operands import Size, Span, Tile
from regard.scores import Dot
from regard.spec import Spec
from regard.tracing import is_tracing

CHUNK_NUMBERS = 1 << 19  # of keys that are widened at a time: they stay in the processor's cache
SPARSE_KEYS = 0.25  # of a range: fewer are copied, which takes less time than to read the others too
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
    cols, row = remembered(kind, mask, lambda: _visible_keys(mask, shape.lead, size))
    call = call._replace(
        shape=replace(shape, m=len(cols)), plan=replace(call.plan, form="whole" if row is None else "keys")
    )
    return call, replace(spec, mask=row), cols.take(key, -2), cols.take(value, -2)


def _visible_keys(mask: Mask, lead: tuple[int, ...], size: Size) -> tuple[Span, Mask | None]:
    """The range of keys that one query may see, and a mask for it; None if it sees them all."""
    operands = mask.operands(lead)
    ranges = mask.row_ranges([operand.tensor for operand in operands], size)
    if ranges is not None and ranges[0].numel() == ranges[1].numel() == 1:
        reach = [(max(0, int(ranges[0])), min(size.m, int(ranges[1])))]
    else:
        ranges, reach = None, mask.reach(Span(0, 1), size)
    low = max(0, min([*(low for low, _ in reach), size.m - MIN_FUSED_KEYS]))
    high = min(size.m, max([*(high for _, high in reach), low + MIN_FUSED_KEYS]))
    if ranges is not None and reach == [(low, high)]:
        return Span(low, high), None
    cols, count = Span(low, high), sum(high - low for low, high in reach)
    if MIN_FUSED_KEYS <= count < SPARSE_KEYS * (high - low):  # sinks and a window: what lies between is not read
        cols = Span(low, high, torch.cat([torch.arange(*one, device=size.device) for one in reach]))
    tile = Tile(tuple(slice(0, length) for length in lead), Span(0, 1), cols)
    visible = mask.tile([tile.cut(operand) for operand in operands], tile.rows, tile.cols, size)
    return tile.cols, Allow(visible.clone(), "allow")


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
