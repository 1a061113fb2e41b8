"""The fused kernel on one block of queries after another, each on the keys that it sees."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from regard.engine.fused.kernel import call_backward, call_kernel, hiding_bias
from regard.engine.fused.row_runs import row_runs
from regard.engine.mask_cache import remembered
from regard.engine.plan import BUFFERS, MIN_FUSED_KEYS, max_bias_numbers
from regard.engine.tile_batches import TileBatch, batch_tiles
from regard.engine.tiles import Problem, all_finite
from regard.engine.versions import GRADIENT, Versions, check_unchanged, versions_of
from regard.masks import Mask
from regard.normalisers import softmax
from regard.operands import NEVER, Axis, Operand, Size, Span, Tile, broadcast_shapes
from regard.scores import Score, uniform
from regard.spec import Spec


def pool_by_blocks(
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
    blocks, batches = cut_blocks(spec, rest, q, k, bias, scale, tile_scores)
    return FlashBlocks.apply(blocks, batches, q, k, v)  # pyright: ignore[reportReturnType]


def cut_blocks(
    spec: Spec,
    rest: tuple[Score, ...],
    q: Float[Tensor, "*batch queries dim"],
    k: Float[Tensor, "*batch keys dim"],
    bias: Float[Tensor, "... 1 keys"] | None,
    scale: float,
    tile_scores: int,
) -> tuple[QueryBlocks | RowRuns, tuple[TileBatch, ...]]:
    """The blocks of queries, each on the keys that it sees, and their batches, each one call of the kernel."""
    lead, size = tuple(q.shape[:-2]), Size(q.shape[-2], k.shape[-2], q.device)
    if spec.mask is None and not rest:
        everything = Tile(tuple(slice(0, length) for length in lead), Span(0, size.n), Span(0, size.m))
        runs = RowRuns(bias, scale, _versions(spec, [] if bias is None else [bias]))
        return runs, (TileBatch((everything,)),)
    if spec.mask is not None and not rest and scale >= torch.finfo(q.dtype).tiny:
        tiles = _row_runs(spec.mask, lead, size)
        if tiles is not None:
            batches = batch_tiles(tiles, q.shape[-1], 0 if bias is not None else BUFFERS * tile_scores)
            runs = RowRuns(bias, scale, _versions(spec, [] if bias is None else [bias]))
            return runs, batches
    score = reduce(add, rest) if rest else uniform()
    with torch.no_grad():
        problem = Problem.build(Spec(score, spec.mask, softmax()), q.new_zeros(size.n, 1), k.new_zeros(size.m, 1), lead)
    held = [operand.tensor for operand in problem.operands] + ([] if bias is None else [bias])
    blocks = QueryBlocks(problem, bias, scale, bool(rest), _versions(spec, held))
    return blocks, blocks.batches(tile_scores, q.shape[-1])


def _row_runs(mask: Mask, lead: tuple[int, ...], size: Size) -> tuple[Tile, ...] | None:
    """The runs of rows of a mask, found once for the layers that share it."""
    kind = ("runs", mask.signature, lead, size)
    return remembered(kind, mask, lambda: row_runs(mask, lead, size))


def _key_bias(
    bias: Float[Tensor, "... 1 keys"] | None, tile: Tile, dtype: torch.dtype
) -> Float[Tensor, "... 1 cols"] | None:
    """The part of a bias of the keys that belongs to a tile."""
    return None if bias is None else tile.cut(Operand(bias, Axis.PAIR)).to(dtype)


@dataclass(frozen=True, slots=True, eq=False)
class RowRuns:
    """Tiles that are runs of rows: those that are masked are causal, and the others see all their keys."""

    bias: Tensor | None
    scale: float
    versions: Versions  # of the caller's tensors behind the bias: autograd does not watch them

    def is_causal(self, tile: Tile) -> bool:
        """True for a tile whose mask is the causal one of the kernel."""
        return bool(tile.masked)

    def bias_of(self, tile: Tile, dtype: torch.dtype) -> Float[Tensor, "... 1 cols"] | None:
        """The bias of a tile's keys."""
        return _key_bias(self.bias, tile, dtype)


@dataclass(frozen=True, slots=True, eq=False)
class QueryBlocks:
    """Blocks of queries, each with the keys that it may see and the bias of their scores."""

    problem: Problem  # its scores are the bias: position scores, and -inf where hidden
    bias: Tensor | None
    scale: float
    rest: bool  # True if there are position scores
    versions: Versions  # of the caller's tensors behind the bias: autograd does not watch them
    cache: dict[Hashable, Tensor | None] = field(default_factory=dict)

    def batches(self, tile_scores: int, width: int) -> tuple[TileBatch, ...]:
        """All tiles; neighbours with one bias are a batch, as large as the budget allows."""
        numbers = tile_scores if self._is_relative else max_bias_numbers(tile_scores)
        tiles = self.problem.tiles(numbers * self._heads_per_bias)
        return batch_tiles(tiles, width, BUFFERS * tile_scores if self._is_relative else 0)

    @property
    def _heads_per_bias(self) -> int:
        """The number of heads that share a bias, which is all that a block keeps in memory."""
        tensors = [operand.tensor for operand in self.problem.operands if operand.axis is not Axis.FIXED]
        leads = [t.shape[:-2] for t in (*tensors, *(() if self.bias is None else (self.bias,)))]
        return math.prod(self.problem.lead) // math.prod(broadcast_shapes(*leads))

    def is_causal(self, tile: Tile) -> bool:
        """False: the causal mask of the kernel begins at the first key of the first query."""
        del tile
        return False

    def bias_of(self, tile: Tile, dtype: torch.dtype) -> Float[Tensor, "... rows cols"] | None:
        """The bias of a tile; for a sliding window all blocks of queries but those at the ends share one."""
        if not self._is_relative or tile.cols.index is not None:
            return self._make(tile, dtype)
        place = (len(tile.rows), len(tile.cols), tile.cols.start - tile.rows.start, tile.masked)
        if place not in self.cache:
            self.cache.clear()
            self.cache[place] = self._make(tile, dtype)
        return self.cache[place]

    @property
    def _is_relative(self) -> bool:
        """True if the bias is nothing but a mask that depends on j - i alone."""
        mask = self.problem.spec.mask
        return mask is not None and mask.relative and self.bias is None and not self.rest

    def _make(self, tile: Tile, dtype: torch.dtype) -> Float[Tensor, "... rows cols"] | None:
        """The additive bias of a tile: the caller's, the remaining scores, -inf where hidden; None if there is none."""
        bias = _key_bias(self.bias, tile, dtype)
        if not tile.masked and not self.rest:
            return bias
        tensors = [tile.cut(operand) for operand in self.problem.operands]
        if self.rest:
            block = self.problem.scores(tensors, tile).to(dtype)
        else:
            low, high = tile.masked[0][0], tile.masked[-1][1]
            hidden = hiding_bias(self.problem.visible(tensors, tile, low, high), dtype)
            block = hidden.expand(*hidden.shape[:-1], high - low)
            if high - low < len(tile.cols):
                block = pad(block, (low, len(tile.cols) - high))
        return block if bias is None else bias + block


class FlashBlocks(torch.autograd.Function):
    """The kernel on one batch of query blocks after another."""

    @staticmethod
    def forward(
        ctx: Any,
        blocks: QueryBlocks | RowRuns,
        batches: tuple[TileBatch, ...],
        q: Float[Tensor, "*batch queries dim"],
        k: Float[Tensor, "... keys dim"],
        v: Float[Tensor, "... keys dim_v"],
    ) -> tuple[Float[Tensor, "*batch queries dim_v"], Float[Tensor, "*batch queries"]]:
        out, lse = pool_blocks(blocks, batches, q, k, v)
        ctx.blocks, ctx.batches = blocks, batches
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.mark_non_differentiable(lse)
        return out, lse

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Float[Tensor, "*batch queries dim_v"], _: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        q, k, v, out, lse = ctx.saved_tensors
        return (None, None, *block_gradients(ctx.blocks, ctx.batches, (q, k, v), out, lse, grad))


def pool_blocks(
    blocks: QueryBlocks | RowRuns,
    batches: tuple[TileBatch, ...],
    q: Float[Tensor, "*batch queries dim"],
    k: Float[Tensor, "... keys dim"],
    v: Float[Tensor, "... keys dim_v"],
) -> tuple[Float[Tensor, "*batch queries dim_v"], Float[Tensor, "*batch queries"]]:
    """The output and the log-sum-exp of each row, without a graph."""
    if len(batches) == 1 and batches[0].is_one_tile_of(q.shape[:-1]):
        return _attend(blocks, batches[0], q, k, v)
    out, lse = q.new_empty(*q.shape[:-1], v.shape[-1]), q.new_empty(q.shape[:-1])
    if sum(batch.n_rows for batch in batches) < lse.numel():  # rows that see nothing
        out.zero_()
        lse.fill_(NEVER)
    for batch in batches:
        part, part_lse = _attend(blocks, batch, q, k, v)
        batch.rows(out).copy_(part)
        batch.rows(lse, trailing=1).copy_(part_lse)
    return out, lse


def block_gradients(
    blocks: QueryBlocks | RowRuns,
    batches: tuple[TileBatch, ...],
    inputs: tuple[Tensor, Tensor, Tensor],
    out: Float[Tensor, "*batch queries dim_v"],
    lse: Float[Tensor, "*batch queries"],
    grad: Float[Tensor, "*batch queries dim_v"],
) -> list[Tensor]:
    """The gradients of queries, keys and values.

    Output and log-sum-exp may be those of rows that go on in other keys: then these are the parts that these keys add.
    """
    check_unchanged(blocks.versions, GRADIENT)
    lse = torch.where(lse == NEVER, 0.0, lse)  # as the kernel has it where nothing is seen
    grads = [torch.zeros_like(t, memory_format=torch.contiguous_format) for t in inputs]
    for batch in batches:
        parts, bias, lead = _cut(blocks, batch, *inputs)
        rows, row_lse = [batch.rows(t) for t in (grad, out)], batch.rows(lse, trailing=1)
        causal = blocks.is_causal(batch.first)
        parts_grad = call_backward(blocks.scale, parts, bias, lead, rows, row_lse, causal=causal)
        for total, part, axis in zip(grads, parts_grad, (Axis.QUERY, Axis.KEY, Axis.KEY), strict=True):
            batch.add(total, axis, part)
    return grads


def _attend(
    blocks: QueryBlocks | RowRuns,
    batch: TileBatch,
    q: Float[Tensor, "*batch queries dim"],
    k: Float[Tensor, "... keys dim"],
    v: Float[Tensor, "... keys dim_v"],
) -> tuple[Float[Tensor, "... rows dim_v"], Float[Tensor, "... rows"]]:
    """The output and the log-sum-exp of one batch."""
    parts, bias, lead = _cut(blocks, batch, q, k, v)
    causal = blocks.is_causal(batch.first)
    part, lse = call_kernel(parts[0], parts[1], parts[2], lead, causal=causal, scale=blocks.scale, bias=bias)
    # With few keys the kernel turns NaN into numbers; then NaN in the output shows it.
    hides_nan = len(batch.first.cols) < MIN_FUSED_KEYS and not all_finite(*parts)
    return (part.fill_(math.nan) if hides_nan else part), lse


def _cut(
    blocks: QueryBlocks | RowRuns,
    batch: TileBatch,
    q: Float[Tensor, "*batch queries dim"],
    k: Float[Tensor, "... keys dim"],
    v: Float[Tensor, "... keys dim_v"],
) -> tuple[list[Tensor], Tensor | None, tuple[int, ...]]:
    """A batch's queries, keys and values, its bias, and its leading dimensions."""
    parts = [batch.cut(t, axis) for t, axis in ((q, Axis.QUERY), (k, Axis.KEY), (v, Axis.KEY))]
    return parts, blocks.bias_of(batch.first, q.dtype), tuple(parts[0].shape[:-2])


def _versions(spec: Spec, held: list[Tensor]) -> Versions:
    """Versions of the caller's tensors whose memory is held; a tensor that was copied may change."""
    memory = {t.untyped_storage().data_ptr() for t in held}
    return versions_of({name: t for name, t in spec.tensors().items() if t.untyped_storage().data_ptr() in memory})
