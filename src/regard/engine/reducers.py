"""Reducers: questions about the weights whose states can be merged, so that tiles, workers and machines can share them.

Every reducer has ``empty() -> step(state, block) -> merge(state, state) -> finish(state)``. `merge` is associative, and
`empty` is its identity. Nothing else is needed to divide a question between tiles, workers and machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Generic, TypeVar

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.nn.functional import pad

from regard.errors import ChoiceError
from regard.operands import NEVER, Size, Span, Tile

CHUNK_KEYS = 64  # neighbouring keys in a chunk: top-k first compares the maxima of chunks
MAX_CANDIDATES = 1 << 17  # scores of the best chunks in memory at a time, so that they stay in the cache
State = TypeVar("State")


@dataclass(eq=False)
class Block:
    """The scores (-inf where hidden) and weights of a tile, or of some of its columns, and where it lies."""

    scores: Float[Tensor, "*batch rows cols"]
    weights: Float[Tensor, "*batch rows cols"]
    rows: Span
    cols: Span
    size: Size
    gaps: tuple[tuple[int, int], ...] = ()  # ranges of columns in which a score may be -inf
    partial: bool = False  # True if the rows go on in another block
    writable: bool = False  # True if a reducer may overwrite the scores
    lead: tuple[slice, ...] = ()  # which heads

    def heads(self, tensor: Shaped[Tensor, "..."], trailing: int) -> Shaped[Tensor, "..."]:
        """The block's heads of a tensor of all heads, with `trailing` dimensions after them."""
        return Tile(self.lead, self.rows, self.cols).heads(tensor, trailing)

    def mean_score(self) -> Float[Tensor, "*batch rows"]:
        """sum_j p_j s_j, where 0 times -inf is 0. It overwrites writable scores, so it has to be the last question."""
        scores = self.scores if self.writable else self.scores.clone()
        for low, high in self.gaps:
            part = scores[..., low:high]
            part.masked_fill_(part == NEVER, 0)
        return scores.mul_(self.weights).sum(-1)

    @cached_property
    def peak(self) -> tuple[Float[Tensor, "*batch rows"], Float[Tensor, "*batch rows"]]:
        """The largest score of each row and the largest weight."""
        return self.scores.amax(-1), self.weights.amax(-1)

    @cached_property
    def column_sums(self) -> Float[Tensor, "*batch cols"]:
        """sum_i p_ij over the rows of the block."""
        return self.weights.sum(-2)

    @cached_property
    def logsumexp(self) -> Float[Tensor, "*batch rows"]:
        """log sum_j exp(s_j) over the block. For whole rows it is max s - log(max p), which needs no exp."""
        if self.partial:
            return torch.logsumexp(self.scores, -1)
        best, weight = self.peak
        return torch.where(best == NEVER, NEVER, best - weight.log())


class Reducer(Generic[State]):
    """A question about the weights, answered block by block."""

    by_row = True  # the state has one entry for each query; otherwise it belongs to the whole matrix

    def empty(self, lead: tuple[int, ...], rows: int, size: Size, dtype: torch.dtype) -> State:
        """The state before any block, for `rows` queries; the identity of `merge`."""
        raise NotImplementedError

    def step(self, state: State, block: Block) -> State:
        """The state after one more block."""
        raise NotImplementedError

    def first(self, block: Block) -> State:
        """The state after the first block of some rows, mostly the only one: `step` from `empty`, at less cost."""
        lead, rows = block.weights.shape[:-2], block.weights.shape[-2]
        return self.step(self.empty(tuple(lead), rows, block.size, block.weights.dtype), block)

    def merge(self, one: State, two: State) -> State:
        """The state of two parts of the matrix together."""
        raise NotImplementedError

    def finish(self, state: State) -> Tensor | tuple[Tensor, ...]:
        """The answer from the state of the whole matrix."""
        raise NotImplementedError


class RowSum(Reducer[Tensor]):
    """A sum over the keys of a row; subclasses define its value for one block."""

    def of(self, block: Block) -> Float[Tensor, "*batch rows"]:
        """The sum over the keys of one block."""
        raise NotImplementedError

    def empty(self, lead: tuple[int, ...], rows: int, size: Size, dtype: torch.dtype) -> Float[Tensor, "... rows"]:
        return torch.zeros((*lead, rows), dtype=dtype, device=size.device)

    def step(self, state: Float[Tensor, "... rows"], block: Block) -> Float[Tensor, "... rows"]:
        return state + self.of(block)

    def first(self, block: Block) -> Float[Tensor, "... rows"]:
        return self.of(block)

    def merge(self, one: Float[Tensor, "... rows"], two: Float[Tensor, "... rows"]) -> Float[Tensor, "... rows"]:
        return one + two

    def finish(self, state: Float[Tensor, "... rows"]) -> Float[Tensor, "... rows"]:
        return state


class SquaredWeight(RowSum):
    """Saturation of each row, sum_j p_j^2."""

    def of(self, block: Block) -> Float[Tensor, "*batch rows"]:
        return torch.linalg.vector_norm(block.weights, dim=-1).square()


class Entropy(RowSum):
    """Entropy of each row in nats, -sum_j p_j log p_j."""

    def of(self, block: Block) -> Float[Tensor, "*batch rows"]:
        return torch.special.entr(block.weights).sum(-1).clamp_min(0)  # a weight may round to above 1


class VisibleKeys(RowSum):
    """Number of keys that each query sees."""

    def of(self, block: Block) -> Float[Tensor, "*batch rows"]:
        return (block.scores != NEVER).sum(-1).to(block.scores.dtype)


class MeanScore(RowSum):
    """Mean score of each row, sum_j p_j s_j. Entropy is log-sum-exp minus this, and needs no log of each weight."""

    def of(self, block: Block) -> Float[Tensor, "*batch rows"]:
        return block.mean_score()


class PeakScore(RowSum):
    """Largest score of each row, max_j s_j. With its weight p, the log-sum-exp of the row is max s - log p."""

    def of(self, block: Block) -> Float[Tensor, "*batch rows"]:
        return block.peak[0]

    def empty(self, lead: tuple[int, ...], rows: int, size: Size, dtype: torch.dtype) -> Float[Tensor, "... rows"]:
        return torch.full((*lead, rows), NEVER, dtype=dtype, device=size.device)

    def step(self, state: Float[Tensor, "... rows"], block: Block) -> Float[Tensor, "... rows"]:
        return self.merge(state, self.of(block))

    def merge(self, one: Float[Tensor, "... rows"], two: Float[Tensor, "... rows"]) -> Float[Tensor, "... rows"]:
        return torch.maximum(one, two)


class LargestWeight(Reducer[tuple[Tensor, Tensor]]):
    """The largest weight of each row and its key, the first of equals; weight 0 and key 0 in an empty row."""

    def empty(
        self, lead: tuple[int, ...], rows: int, size: Size, dtype: torch.dtype
    ) -> tuple[Float[Tensor, "... rows"], Int[Tensor, "... rows"]]:
        weights = torch.zeros((*lead, rows), dtype=dtype, device=size.device)
        return weights, torch.zeros_like(weights, dtype=torch.int64)

    def step(
        self, state: tuple[Float[Tensor, "... rows"], Int[Tensor, "... rows"]], block: Block
    ) -> tuple[Float[Tensor, "... rows"], Int[Tensor, "... rows"]]:
        weights, at = block.weights.max(-1)
        keys = block.cols.positions(at.device)[at].masked_fill(weights == 0, 0)
        return self.merge(state, (weights, keys))

    def merge(
        self,
        one: tuple[Float[Tensor, "... rows"], Int[Tensor, "... rows"]],
        two: tuple[Float[Tensor, "... rows"], Int[Tensor, "... rows"]],
    ) -> tuple[Float[Tensor, "... rows"], Int[Tensor, "... rows"]]:
        first = (one[0] == two[0]) & (two[1] < one[1])  # of two parts in any order, the first key counts
        better = (two[0] > one[0]) | first | (two[0].isnan() & ~one[0].isnan())
        return torch.where(better, two[0], one[0]), torch.where(better, two[1], one[1])

    def finish(
        self, state: tuple[Float[Tensor, "... rows"], Int[Tensor, "... rows"]]
    ) -> tuple[Float[Tensor, "... rows"], Int[Tensor, "... rows"]]:
        return state


@dataclass
class MeanDistance(RowSum):
    """Mean distance of each row, sum_j p_j |i - j|, where query i stands at positions[i]."""

    positions: Float[Tensor, "... queries"]

    def of(self, block: Block) -> Float[Tensor, "*batch rows"]:
        rows = block.rows.take(block.heads(self.positions, 1), -1).unsqueeze(-1)
        gap = (rows - block.cols.positions(self.positions.device)).abs()
        return (block.weights * gap).sum(-1).to(block.weights.dtype)


class LogSumExp(Reducer[Tensor]):
    """log sum_j exp(s_j) of each row, the row statistic of softmax."""

    def empty(self, lead: tuple[int, ...], rows: int, size: Size, dtype: torch.dtype) -> Float[Tensor, "... rows"]:
        return torch.full((*lead, rows), NEVER, dtype=dtype, device=size.device)

    def step(self, state: Float[Tensor, "... rows"], block: Block) -> Float[Tensor, "... rows"]:
        return self.merge(state, block.logsumexp)

    def first(self, block: Block) -> Float[Tensor, "... rows"]:
        return block.logsumexp

    def merge(self, one: Float[Tensor, "... rows"], two: Float[Tensor, "... rows"]) -> Float[Tensor, "... rows"]:
        return torch.logaddexp(one, two)

    def finish(self, state: Float[Tensor, "... rows"]) -> Float[Tensor, "... rows"]:
        return state


class Pool(Reducer[tuple[Tensor, Tensor]]):
    """Softmax attention sum_j p_j v_j for rows that are seen in parts. The state is (log-sum-exp, output so far)."""

    def __init__(self, values: Float[Tensor, "... keys dim"]) -> None:
        self.values = values

    def empty(
        self, lead: tuple[int, ...], rows: int, size: Size, dtype: torch.dtype
    ) -> tuple[Float[Tensor, "... rows"], Float[Tensor, "... rows dim"]]:
        lse = torch.full((*lead, rows), NEVER, dtype=dtype, device=size.device)
        return lse, torch.zeros((*lead, rows, self.values.shape[-1]), dtype=dtype, device=size.device)

    def step(
        self, state: tuple[Float[Tensor, "... rows"], Float[Tensor, "... rows dim"]], block: Block
    ) -> tuple[Float[Tensor, "... rows"], Float[Tensor, "... rows dim"]]:
        lse = block.logsumexp
        weights = block.weights
        if block.partial:  # its weights are normalised over the whole row, and here they must be over the block
            weights = torch.exp(block.scores - torch.where(lse == NEVER, 0.0, lse).unsqueeze(-1))
        return self.merge(state, (lse, weights @ block.cols.take(block.heads(self.values, 2), -2)))

    def merge(
        self,
        one: tuple[Float[Tensor, "... rows"], Float[Tensor, "... rows dim"]],
        two: tuple[Float[Tensor, "... rows"], Float[Tensor, "... rows dim"]],
    ) -> tuple[Float[Tensor, "... rows"], Float[Tensor, "... rows dim"]]:
        lse = torch.logaddexp(one[0], two[0])
        base = torch.where(lse == NEVER, 0.0, lse)
        first, second = (torch.exp(part - base).unsqueeze(-1) for part in (one[0], two[0]))
        return lse, first * one[1] + second * two[1]

    def finish(
        self, state: tuple[Float[Tensor, "... rows"], Float[Tensor, "... rows dim"]]
    ) -> Float[Tensor, "... rows dim"]:
        return state[1]


# Scores, weights and keys of the best pairs of each row, the best first.
Ranked = tuple[Float[Tensor, "... rows k"], Float[Tensor, "... rows k"], Int[Tensor, "... rows k"]]


class Top(Reducer[tuple[Tensor, Tensor, Tensor]]):
    """The k largest scores of each row, their weights and their keys; key -1 where the row sees fewer keys."""

    def __init__(self, k: int, *, by_weight: bool = False) -> None:
        self.k = k
        self.by_weight = by_weight  # with random draws the largest score need not have the largest weight

    def empty(self, lead: tuple[int, ...], rows: int, size: Size, dtype: torch.dtype) -> Ranked:
        shape = (*lead, rows, self.k)
        scores = torch.full(shape, NEVER, dtype=dtype, device=size.device)
        # int32 is enough for a position, and of all answers this is the largest.
        dtype_of_keys = torch.int32 if size.m < 1 << 31 else torch.int64
        return scores, torch.zeros_like(scores), torch.full(shape, -1, dtype=dtype_of_keys, device=size.device)

    def step(self, state: Ranked, block: Block) -> Ranked:
        return self.merge(state, self._of(block))

    def first(self, block: Block) -> Ranked:
        state = self._of(block)
        scores, weights, _ = state
        if not (self.by_weight or block.partial):
            block.peak = scores[..., 0], weights[..., 0]  # the next reducer may need it
        if scores.shape[-1] == self.k:
            return state
        return self.merge(self.empty(tuple(scores.shape[:-2]), scores.shape[-2], block.size, scores.dtype), state)

    def _of(self, block: Block) -> Ranked:
        """The k largest scores of one block, their weights and keys."""
        ranks = block.weights.masked_fill(block.scores == NEVER, NEVER) if self.by_weight else block.scores
        scores, at = top_k(ranks, min(self.k, block.scores.shape[-1]))
        weights = block.weights.gather(-1, at)
        where = at if block.cols.index is None else block.cols.index[at]
        if block.cols.index is None and block.cols.start:
            where = where + block.cols.start
        if block.gaps:
            hidden = scores == NEVER
            weights, where = weights.masked_fill(hidden, 0), where.masked_fill(hidden, -1)
        return scores, weights, where

    def merge(self, one: Ranked, two: tuple[Tensor, Tensor, Tensor]) -> Ranked:
        scores, weights, where = (torch.cat(pair, -1) for pair in zip(one, two, strict=True))
        # Among equals the first key wins, whatever the order of the parts.
        order = where.where(where >= 0, torch.iinfo(where.dtype).max).sort(stable=True).indices
        best = scores.gather(-1, order).sort(stable=True, descending=True).indices[..., : self.k]
        order = order.gather(-1, best)
        return scores.gather(-1, order), weights.gather(-1, order), where.gather(-1, order)

    def finish(self, state: Ranked) -> tuple[Float[Tensor, "... rows k"], Int[Tensor, "... rows k"]]:
        scores = state[0]
        # Where a row sees fewer keys than k, the rest is -inf: any order is right there.
        tied = ((scores[..., 1:] == scores[..., :-1]) & (scores[..., 1:] != NEVER)).any(-1)
        if bool(tied.any()):
            one, two, three = (part[tied] for part in state)
            _, weights, where = self.merge((one, two, three), (one[:, :0], two[:, :0], three[:, :0]))
            return state[1].index_put((tied,), weights), state[2].index_put((tied,), where)
        return state[1], state[2]


def top_k(scores: Float[Tensor, "*rows cols"], k: int) -> tuple[Float[Tensor, "*rows {k}"], Int[Tensor, "*rows {k}"]]:
    """torch.topk over the last dimension. Long rows are cut into chunks: the k largest lie in the k best chunks."""
    if scores.shape[-1] // CHUNK_KEYS < 2 * k:
        return torch.topk(scores, k)
    parts = [
        _top_k_by_chunks(rows, k) for rows in scores.flatten(0, -2).split(max(1, MAX_CANDIDATES // (k * CHUNK_KEYS)))
    ]
    best, at = parts[0] if len(parts) == 1 else (torch.cat(part) for part in zip(*parts, strict=True))
    return best.unflatten(0, scores.shape[:-1]), at.unflatten(0, scores.shape[:-1])


def _top_k_by_chunks(
    flat: Float[Tensor, "rows cols"], k: int
) -> tuple[Float[Tensor, "rows {k}"], Int[Tensor, "rows {k}"]]:
    """The k largest of each row, found in the k chunks with the largest maxima."""
    chunks = flat.shape[-1] // CHUNK_KEYS
    cut = chunks * CHUNK_KEYS
    body = flat[:, :cut].unflatten(-1, (chunks, CHUNK_KEYS))
    picked = body.amax(-1).topk(k, sorted=False).indices  # (rows, k)
    if cut == flat.shape[-1]:
        firsts = torch.arange(0, len(flat) * chunks, chunks, device=flat.device).unsqueeze(-1)
        few = body.flatten(0, 1).index_select(0, (picked + firsts).flatten()).view(len(flat), -1)
    else:  # what is left over at the end counts as one chunk more
        few = body[torch.arange(len(flat), device=flat.device).unsqueeze(-1), picked].flatten(-2)
        few = torch.cat([few, flat[:, cut:]], -1)
        picked = pad(picked, (0, 1), value=chunks)
    best, at = few.topk(k)
    return best, picked.gather(-1, at // CHUNK_KEYS) * CHUNK_KEYS + at % CHUNK_KEYS


class Received(Reducer[Tensor]):
    """Weight that each key receives from all queries, sum_i p_ij."""

    by_row = False

    def empty(self, lead: tuple[int, ...], rows: int, size: Size, dtype: torch.dtype) -> Float[Tensor, "... keys"]:
        del rows
        return torch.zeros((*lead, size.m), dtype=dtype, device=size.device)

    def step(self, state: Float[Tensor, "... keys"], block: Block) -> Float[Tensor, "... keys"]:
        block.cols.add(state, -1, block.column_sums)
        return state

    def merge(self, one: Float[Tensor, "... keys"], two: Float[Tensor, "... keys"]) -> Float[Tensor, "... keys"]:
        return one + two

    def finish(self, state: Float[Tensor, "... keys"]) -> Float[Tensor, "... keys"]:
        return state


class Heatmap(Reducer[Tensor]):
    """The matrix pooled into bins x bins cells: bin b holds the rows floor(b n / bins) to floor((b + 1) n / bins)."""

    by_row = False

    def __init__(self, bins: int, pool: str, size: Size) -> None:
        if pool not in ("mean", "max", "sum"):
            msg = f"heatmap pools cells by 'mean', 'max' or 'sum', not {pool!r}"
            raise ChoiceError(msg)
        self.bins: int = bins
        self.pool = pool
        self.size: Size = size
        self.row_bins: Int[Tensor, " n"] = self._bins_of(size.n)
        self.col_bins: Int[Tensor, " m"] = self._bins_of(size.m)

    def edges(self, length: int) -> Int[Tensor, " edges"]:
        """The first position of each bin, and the end of the last."""
        bins = min(self.bins, length)
        return torch.arange(bins + 1) * length // max(bins, 1)

    def _bins_of(self, length: int) -> Int[Tensor, " {length}"]:
        """The bin of every position."""
        counts = self.edges(length).diff()
        return torch.repeat_interleave(torch.arange(len(counts)), counts).to(self.size.device)

    def empty(
        self, lead: tuple[int, ...], rows: int, size: Size, dtype: torch.dtype
    ) -> Float[Tensor, "... row_bins col_bins"]:
        del rows
        shape = (*lead, min(self.bins, size.n), min(self.bins, size.m))
        return torch.zeros(shape, dtype=dtype, device=size.device)

    def step(
        self, state: Float[Tensor, "... row_bins col_bins"], block: Block
    ) -> Float[Tensor, "... row_bins col_bins"]:
        first, strips = self._strips(block)
        target = state.narrow(-2, first, strips.shape[-2])
        if self.pool != "max":
            block.column_sums = strips.sum(-2)  # the next reducer may need it
        bins = _whole_bins(block.cols, self.size.m, self.bins)
        if bins is not None:
            low, high, side = bins
            cells = self._pooled(strips.unflatten(-1, (high - low, side)), -1)
            part = target.narrow(-1, low, high - low)
            part.copy_(torch.maximum(part, cells)) if self.pool == "max" else part.add_(cells)
            return state
        cols = block.cols.take(self.col_bins, 0)
        if self.pool == "max":
            target.scatter_reduce_(-1, cols.expand(strips.shape), strips, "amax")
        else:
            target.index_add_(-1, cols, strips)
        return state

    def _strips(self, block: Block) -> tuple[int, Float[Tensor, "*batch strips cols"]]:
        """The first bin into which the block's rows fall, and the rows pooled into bins."""
        bins = _whole_bins(block.rows, self.size.n, self.bins)
        if bins is not None:
            low, high, side = bins
            strips = block.weights.unflatten(-2, (high - low, side))
            if self.pool == "max":
                return low, strips.amax(-2)
            return low, (strips.new_ones(1, side) @ strips).squeeze(-2)  # a sum down columns, faster than torch's own
        rows = block.rows.take(self.row_bins, 0)
        first, last = int(rows[0]), int(rows[-1]) + 1
        edges = torch.searchsorted(rows, torch.arange(first, last + 1, device=rows.device)).tolist()
        parts = [self._pooled(block.weights[..., low:high, :], -2) for low, high in pairwise(edges)]
        return first, torch.stack(parts, -2)

    def _pooled(self, weights: Tensor, dim: int) -> Tensor:
        """Weights pooled over one dimension."""
        return weights.amax(dim) if self.pool == "max" else weights.sum(dim)

    def merge(
        self, one: Float[Tensor, "... row_bins col_bins"], two: Float[Tensor, "... row_bins col_bins"]
    ) -> Float[Tensor, "... row_bins col_bins"]:
        return torch.maximum(one, two) if self.pool == "max" else one + two

    def finish(self, state: Float[Tensor, "... row_bins col_bins"]) -> Float[Tensor, "... row_bins col_bins"]:
        if self.pool != "mean":
            return state
        cells = self.edges(self.size.n).diff()[:, None] * self.edges(self.size.m).diff()
        return state / cells.to(state)


def _whole_bins(span: Span, length: int, bins: int) -> tuple[int, int, int] | None:
    """(first, last + 1, size) of the bins that a span fills exactly; None if it does not, or if bins differ in size."""
    bins = min(bins, length)
    side = length // bins
    if span.index is not None or length % bins or span.start % side or span.stop % side:
        return None
    return span.start // side, span.stop // side, side
