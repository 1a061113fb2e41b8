"""Attention by torch's fused (flash) kernel, for every score that is an inner product of features.

The kernel takes (batch, heads, rows, dim) with values as wide as keys, one scale, the top-left causal mask, and a bias
without a gradient. Other calls are adapted: values are padded, a learned bias of the keys becomes one more feature, a
small mask that the caller gave as a tensor becomes a bias, and any other mask runs block by block of queries, each on
the keys that it sees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor
from torch.nn.functional import pad

from regard.engine.fused import wide_values
from regard.engine.plan import BUFFERS, TILE_SCORES, Form
from regard.engine.tile_batches import TileBatch, batch_tiles
from regard.engine.tiles import Problem
from regard.engine.versions import GRADIENT, Versions, check_unchanged, versions_of
from regard.masks import Allow, Band, Mask
from regard.normalisers import softmax
from regard.operands import NEVER, Axis, Operand, Size, Span, Tile
from regard.scores import Bias as BiasScore
from regard.scores import Features, Score, uniform
from regard.spec import Spec

FLOAT64_FROM_SQUARE = 64.0  # half squares of features above this leave fewer than five digits of a score in float32
MAX_PAIR_BIAS = 1 << 22  # numbers of a bias that is made in one piece; a larger one is made block by block
MIN_KERNEL_WIDTH = 16  # features: fewer are padded, because the kernel is faster and more accurate then
flash: Callable[..., Any] = torch._scaled_dot_product_flash_attention_for_cpu  # noqa: SLF001  # pyright: ignore[reportPrivateImportUsage]
flash_backward: Callable[..., Any] = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default  # noqa: SLF001


def is_causal(mask: Mask | None, n: int, m: int) -> bool:
    """True if a mask is the causal one that the kernel implements."""
    return isinstance(mask, Band) and mask.left is None and mask.right == 0 and (n == m or mask.align == "top-left")


def form(spec: Spec, lead: tuple[int, ...], n: int, m: int, tile_scores: int) -> Form:
    """How the kernel has to be called: a function of sizes and terms, never of numbers in tensors."""
    if not spec.score.is_pairwise:
        if spec.mask is None:
            return "whole"
        if is_causal(spec.mask, n, m):
            return "causal"
        if spec.mask.per_key:
            return "keys"
    max_numbers = MAX_PAIR_BIAS if tile_scores >= TILE_SCORES else tile_scores
    return "pairs" if _fits_a_bias(spec, lead, n * m, max_numbers) else "blocks"


def _fits_a_bias(spec: Spec, lead: tuple[int, ...], pairs: int, max_numbers: int) -> bool:
    """True if what varies by query and key is in the caller's tensors, and is one bias of at most `max_numbers`."""
    scores = [leaf for leaf in spec.score.leaves() if leaf.is_pairwise]
    hiding = [] if spec.mask is None else list(spec.mask.leaves())
    if len(lead) > 2 or pairs > max_numbers:
        return False
    if not all(isinstance(leaf, BiasScore) for leaf in scores) or not all(isinstance(leaf, Allow) for leaf in hiding):
        return False
    leads = [tensor.shape[:-2] for leaf in (*scores, *hiding) for tensor in leaf.tensors().values()]
    return math.prod(torch.broadcast_shapes(*leads)) * pairs <= max_numbers


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
    if _loses_digits(features):
        features = spec.score.features(query.double(), key.double())
    q, k, bias, scale = absorb_key_bias(features, query, key)
    dtype = q.dtype
    tile_scores = max(1, tile_scores * query.element_size() // q.element_size())  # float64 numbers take twice the bytes
    wide = form in ("whole", "causal") and bias is None and wide_values.serves(q, k, value)
    width = q.shape[-1] if wide else _kernel_width(q.shape[-1], value.shape[-1])
    q, k, v = _pad_features(q, width), _pad_features(k.to(dtype), width), _pad_features(value.to(dtype), width)
    if wide:
        out, lse = _wide_values(q, k, v, lead, causal=form == "causal", scale=scale, tile_scores=tile_scores)
    elif form == "blocks":
        out, lse = _by_blocks(spec, features.rest, (q, k, v), bias, scale, lead, tile_scores)
    else:
        if form == "pairs":
            bias = _pair_bias(features.rest, m, bias, dtype)
        if form in ("keys", "pairs") and spec.mask is not None:
            bias = _masked(spec.mask, Size(n, m, query.device), lead, bias, dtype)
        rows = n if form == "causal" else None
        out, lse = call_kernel(q, k, v, lead, causal=rows is not None, scale=scale, bias=Bias.of(bias, rows))
    if features.row is not None:
        lse = lse + features.row.detach()
    return out[..., : value.shape[-1]].to(value.dtype), lse.to(value.dtype)


def call_kernel(
    q: Float[Tensor, "... queries dim"],
    k: Float[Tensor, "... keys dim"],
    v: Float[Tensor, "... keys dim"],
    lead: tuple[int, ...],
    *,
    causal: bool,
    scale: float,
    bias: Bias,
) -> tuple[Float[Tensor, "*batch queries dim"], Float[Tensor, "*batch queries"]]:
    """The output and the log-sum-exp of one call of the kernel; -inf where a query sees no key."""
    q, scale = _rescaled(q, scale, causal=causal)
    four = None if bias.added is None else _to_4d(bias.added.to(q.dtype), lead, expand=False)
    out, lse = flash(_to_4d(q, lead), _to_4d(k, lead), _to_4d(v, lead), 0.0, causal, attn_mask=four, scale=scale)
    if bias.empty is not None:
        lse = lse.masked_fill(_to_4d(bias.empty, lead, expand=False).squeeze(-1), NEVER)
    return _from_4d(out, lse, lead)


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
    q, scale = _rescaled(q, scale, causal=causal)
    apply: Any = wide_values.WideValues.apply
    out, lse = apply(_to_4d(q, lead), _to_4d(k, lead), _to_4d(v, lead), scale, causal, tile_scores)
    return _from_4d(out, lse, lead)


def _rescaled(q: Float[Tensor, "*shape"], scale: float, *, causal: bool) -> tuple[Float[Tensor, "*shape"], float]:
    """Queries and scale for the kernel. It scales the -inf of hidden keys too: a tiny scale would make it NaN."""
    return (q * scale, 1.0) if causal and scale < torch.finfo(q.dtype).tiny else (q, scale)


def _from_4d(
    out: Float[Tensor, "batch heads queries dim"], lse: Float[Tensor, "batch heads queries"], lead: tuple[int, ...]
) -> tuple[Float[Tensor, "... queries dim"], Float[Tensor, "... queries"]]:
    """(batch, heads, rows, dim) -> (*lead, rows, dim), and the log-sum-exp likewise."""
    if len(lead) == 2:
        return out, lse
    return out.reshape(*lead, *out.shape[-2:]), lse.reshape(*lead, lse.shape[-1])


def _with_unit_stride(tensor: Shaped[Tensor, "*shape"]) -> Shaped[Tensor, "*shape"]:
    """The tensor with the numbers of a row side by side in memory: the kernel reads wrong numbers otherwise."""
    return tensor if tensor.is_contiguous() or tensor.stride(-1) == 1 else tensor.contiguous()


def _to_4d(
    tensor: Shaped[Tensor, "... rows dim"], lead: tuple[int, ...], *, expand: bool = True
) -> Shaped[Tensor, "batch heads rows dim"]:
    """(*lead, rows, dim) -> (batch, heads, rows, dim)."""
    tensor = _with_unit_stride(tensor)
    if tensor.dim() == 4 and len(lead) == 2 and (not expand or tensor.shape[:2] == lead):
        return tensor
    if expand or len(lead) > 2:
        tensor = tensor.expand(*lead, *tensor.shape[-2:])
    if len(lead) > 2:
        return tensor.reshape(math.prod(lead[:-1]), lead[-1], *tensor.shape[-2:])
    return tensor.reshape(*[1] * (4 - tensor.dim()), *tensor.shape)


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
    lead = torch.broadcast_shapes(k.shape[:-2], bias.shape[:-2])
    column = bias.mT.expand(*lead, k.shape[-2], 1)
    # The scale goes onto the queries: the bias cannot be divided by one that is 0, or next to it.
    scaled = q if features.scale == 1 else q * features.scale
    return (
        torch.cat([scaled, torch.ones_like(q[..., :1])], -1),
        torch.cat([k.expand(*lead, *k.shape[-2:]), column], -1),
        None,
        1.0,
    )


def _loses_digits(features: Features) -> bool:
    """True if squares of features are so large that their differences would lack digits in float32."""
    row, bias = features.row, features.key_bias
    if row is None or bias is None or row.dtype != torch.float32 or not row.numel() or not bias.numel():
        return False
    reach = torch.maximum(bias.detach().abs().amax(), row.detach().abs().amax())
    return not reach.item() < FLOAT64_FROM_SQUARE


def _kernel_width(features: int, values: int) -> int:
    return max(MIN_KERNEL_WIDTH, features, values)


def _pad_features(tensor: Float[Tensor, "*rows dim"], width: int) -> Float[Tensor, "*rows width"]:
    return tensor if tensor.shape[-1] >= width else pad(tensor, (0, width - tensor.shape[-1]))


def _pair_bias(
    rest: tuple[Score, ...], m: int, key_bias: Float[Tensor, "... 1 keys"] | None, dtype: torch.dtype
) -> Float[Tensor, "... rows keys"] | None:
    """The sum of the biases that the caller gave as tensors, those of pairs and that of the keys."""
    added = [leaf.t.to(dtype).expand(*leaf.t.shape[:-1], m) for leaf in rest if isinstance(leaf, BiasScore)]
    if len(added) == 1 and key_bias is None and torch.is_grad_enabled():
        return added[0].detach().clone()  # the backward pass needs it as it is now, and the caller may change his own
    return reduce(add, added if key_bias is None else [*added, key_bias]) if added else key_bias


def _masked(
    mask: Mask,
    size: Size,
    lead: tuple[int, ...],
    bias: Float[Tensor, "... rows keys"] | None,
    dtype: torch.dtype,
) -> Float[Tensor, "... masked_rows keys"]:
    """The bias with -inf where a mask hides; one row if the mask hides the same keys from every query."""
    operands = [o.tensor for o in mask.operands(lead)]
    visible = mask.tile(operands, Span(0, 1 if mask.per_key else size.n), Span(0, size.m), size)
    visible = visible.expand(*visible.shape[:-1], size.m)
    if bias is None:
        return torch.zeros(visible.shape, dtype=dtype, device=size.device).masked_fill_(~visible, NEVER)
    return torch.where(visible, bias, NEVER)


class Bias(NamedTuple):
    """A bias to add to a block of scores, and the rows that see no key: the kernel's log-sum-exp is 0 there."""

    added: Float[Tensor, "... rows keys"] | None
    empty: Bool[Tensor, "... queries 1"] | None

    @classmethod
    def of(cls, added: Float[Tensor, "... rows keys"] | None, causal_rows: int | None = None) -> Bias:
        """The bias and its empty rows. With `causal_rows` it is a bias of the keys, and row i sees the keys up to i."""
        if added is None:
            return cls(None, None)
        if causal_rows is None:
            empty = added.amax(-1, keepdim=True) == NEVER
        else:
            last = torch.arange(causal_rows, device=added.device).clamp_max(added.shape[-1] - 1)
            empty = (added.cummax(-1).values == NEVER).mT.index_select(-2, last)
        return cls(added, empty if bool(empty.any()) else None)


@dataclass(frozen=True, slots=True, eq=False)
class QueryBlocks:
    """Blocks of queries, each with the keys that it may see and the bias of their scores."""

    problem: Problem  # its scores are the bias: position scores, and -inf where hidden
    bias: Tensor | None
    scale: float
    rest: bool  # True if there are position scores
    versions: Versions  # of the caller's tensors behind the bias: autograd does not watch them
    cache: dict[Hashable, Bias] = field(default_factory=dict)

    def batches(self, tile_scores: int, width: int) -> tuple[TileBatch, ...]:
        """All tiles; neighbours with one bias are a batch, as large as the budget allows."""
        return batch_tiles(self.problem.tiles(tile_scores), width, BUFFERS * tile_scores if self._is_relative else 0)

    def bias_of(self, tile: Tile, dtype: torch.dtype) -> Bias:
        """The bias of a tile; for a sliding window all blocks of queries but those at the ends share one."""
        if not self._is_relative or tile.cols.index is not None:
            return Bias.of(self._make(tile, dtype))
        place = (len(tile.rows), len(tile.cols), tile.cols.start - tile.rows.start, tile.masked)
        if place not in self.cache:
            self.cache.clear()
            self.cache[place] = Bias.of(self._make(tile, dtype))
        return self.cache[place]

    @property
    def _is_relative(self) -> bool:
        """True if the bias is nothing but a mask that depends on j - i alone."""
        mask = self.problem.spec.mask
        return mask is not None and mask.relative and self.bias is None and not self.rest

    def _make(self, tile: Tile, dtype: torch.dtype) -> Float[Tensor, "... rows cols"] | None:
        bias = None if self.bias is None else tile.cut(Operand(self.bias, Axis.PAIR)).to(dtype)
        if tile.masked or self.rest:
            block = self.problem.scores([tile.cut(o) for o in self.problem.operands], tile).to(dtype)
            bias = block if bias is None else bias + block
        return bias


def _by_blocks(
    spec: Spec,
    rest: tuple[Score, ...],
    inputs: tuple[Tensor, Tensor, Tensor],
    bias: Float[Tensor, "... 1 keys"] | None,
    scale: float,
    lead: tuple[int, ...],
    tile_scores: int,
) -> tuple[Float[Tensor, "*batch queries dim"], Float[Tensor, "*batch queries"]]:
    """The output and the log-sum-exp, block by block of queries. `inputs` are queries, keys and values of one width."""
    q, k, v = (t.expand(*lead, *t.shape[-2:]) for t in inputs)
    score = reduce(add, rest) if rest else uniform()
    with torch.no_grad():
        problem = Problem.build(
            Spec(score, spec.mask, softmax()), q.new_zeros(q.shape[-2], 1), k.new_zeros(k.shape[-2], 1), lead
        )
    held = [operand.tensor for operand in problem.operands] + ([] if bias is None else [bias])
    blocks = QueryBlocks(problem, bias, scale, bool(rest), _versions(spec, held))
    return FlashBlocks.apply(blocks, blocks.batches(tile_scores, q.shape[-1]), q, k, v)  # pyright: ignore[reportReturnType]


def _versions(spec: Spec, held: list[Tensor]) -> Versions:
    """Versions of the caller's tensors whose memory is held; a tensor that was copied may change."""
    memory = {t.untyped_storage().data_ptr() for t in held}
    return versions_of({name: t for name, t in spec.tensors().items() if t.untyped_storage().data_ptr() in memory})


class FlashBlocks(torch.autograd.Function):
    """The kernel on one batch of query blocks after another."""

    @staticmethod
    def forward(
        ctx: Any,
        blocks: QueryBlocks,
        batches: tuple[TileBatch, ...],
        q: Float[Tensor, "*batch queries dim"],
        k: Float[Tensor, "... keys dim"],
        v: Float[Tensor, "... keys dim_v"],
    ) -> tuple[Float[Tensor, "*batch queries dim_v"], Float[Tensor, "*batch queries"]]:
        out = q.new_zeros(*q.shape[:-1], v.shape[-1])
        lse = q.new_full(q.shape[:-1], NEVER)
        for batch in batches:
            parts, bias, lead = _cut(blocks, batch, q, k, v)
            part, part_lse = call_kernel(
                parts[0], parts[1], parts[2], lead, causal=False, scale=blocks.scale, bias=bias
            )
            batch.rows(out).copy_(part)
            batch.rows(lse, trailing=1).copy_(part_lse)
        ctx.blocks, ctx.batches = blocks, batches
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.mark_non_differentiable(lse)
        return out, lse

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Float[Tensor, "*batch queries dim_v"], _: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        q, k, v, out, lse = ctx.saved_tensors
        check_unchanged(ctx.blocks.versions, GRADIENT)
        lse = torch.where(lse == NEVER, 0.0, lse)  # as the kernel has it where nothing is seen
        grads = [torch.zeros_like(t, memory_format=torch.contiguous_format) for t in (q, k, v)]
        for batch in ctx.batches:
            parts, bias, lead = _cut(ctx.blocks, batch, q, k, v)
            rows, row_lse = [batch.rows(t) for t in (grad, out)], batch.rows(lse, trailing=1)
            parts_grad = _block_backward(ctx.blocks.scale, parts, bias, lead, rows, row_lse)
            for total, part, axis in zip(grads, parts_grad, (Axis.QUERY, Axis.KEY, Axis.KEY), strict=True):
                batch.add(total, axis, part)
        return (None, None, *grads)


def _cut(
    blocks: QueryBlocks,
    batch: TileBatch,
    q: Float[Tensor, "*batch queries dim"],
    k: Float[Tensor, "... keys dim"],
    v: Float[Tensor, "... keys dim_v"],
) -> tuple[list[Tensor], Bias, tuple[int, ...]]:
    """A batch's queries, keys and values, its bias, and its leading dimensions."""
    parts = [batch.cut(t, axis) for t, axis in ((q, Axis.QUERY), (k, Axis.KEY), (v, Axis.KEY))]
    return parts, blocks.bias_of(batch.first, q.dtype), tuple(parts[0].shape[:-2])


def _block_backward(
    scale: float,
    parts: list[Tensor],
    bias: Bias,
    lead: tuple[int, ...],
    rows: list[Tensor],
    lse: Float[Tensor, "... rows"],
) -> list[Tensor]:
    grad, out = (_to_4d(t, lead) for t in rows)
    four_lse = _to_4d(lse.unsqueeze(-1), lead).squeeze(-1)
    four = None if bias.added is None else _to_4d(bias.added, lead, expand=False)
    grads = flash_backward(
        grad, *(_to_4d(t, lead) for t in parts), out, four_lse, 0.0, False, attn_mask=four, scale=scale
    )
    return [part.reshape(t.shape) for part, t in zip(grads, parts, strict=True)]
