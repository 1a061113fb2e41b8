"""Tiles of the n x m matrix: how it is cut, and how the scores and weights of one tile are computed.

A tile holds whole rows: all keys that any of its queries may see. So the softmax of a row needs one tile, and keys that
a mask hides from a whole block of queries are never computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from regard.engine.costs import KEY_READ_COST, TILE_OVERHEAD
from regard.masks import ALL, NONE, SOME
from regard.operands import NEVER, Operand, Size, Span, Tile
from regard.spec import Spec
from regard.tracing import is_tracing

MASK_BLOCKS = 32  # blocks of columns for which a mask says whether it hides all, some or none of them
MIN_BLOCK_COLUMNS = 64  # columns of such a block
MAX_TILE_HEADS = 64  # in a tile
ROW_STEPS = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)  # rows that a tile may have


def all_finite(*tensors: Shaped[Tensor, "..."]) -> bool:
    """True if the tensors hold no NaN and no inf. Their sum shows it; an overflow is a harmless false alarm."""
    recording = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)  # noqa: SLF001  as torch.no_grad() does, which would take longer than a small sum
    try:
        return math.isfinite(sum([t.sum().item() for t in tensors]))
    finally:
        torch._C._set_grad_enabled(recording)  # noqa: SLF001


@dataclass(frozen=True, eq=False)
class Problem:
    """Queries, keys and a spec as operands, from which any tile of scores and weights is computed."""

    spec: Spec
    lead: tuple[int, ...]
    size: Size
    dtype: torch.dtype
    nan_safe: bool  # hidden numbers may be NaN or inf, and are kept out of outputs and gradients
    operands: tuple[Operand, ...]

    @classmethod
    def build(
        cls,
        spec: Spec,
        query: Float[Tensor, "... queries dim_q"],
        key: Float[Tensor, "... keys dim_k"],
        lead: tuple[int, ...],
        *,
        nan_safe: bool = False,
        draws: tuple[Operand, ...] | None = None,
    ) -> Problem:
        """The operands of all terms, for weights of shape (*lead, n, m).

        `draws` are the random operands of the normaliser, if they were drawn before.
        """
        size = Size(query.shape[-2], key.shape[-2], query.device)
        score = spec.score.operands
        if nan_safe:
            with torch.no_grad():
                raw = score(query, key)
            operands = score(zero_non_finite(query), zero_non_finite(key)) + raw
        else:
            operands = score(query, key)
        if spec.mask is not None:
            operands += spec.mask.operands(lead)
        operands += spec.normaliser.operands(lead, size.n, query) if draws is None else draws
        return cls(spec, lead, size, query.dtype, nan_safe, operands)

    @property
    def _operand_ends(self) -> tuple[int, int, int]:
        """Where the operands of the score, of the raw score (if NaN-safe) and of the mask end."""
        score = self.spec.score.arity
        first = score * (2 if self.nan_safe else 1)
        return score, first, first + (0 if self.spec.mask is None else self.spec.mask.arity)

    def scores(
        self, tensors: Sequence[Tensor], tile: Tile, out: Float[Tensor, "*batch rows cols"] | None = None
    ) -> Float[Tensor, "... rows cols"]:
        """The scores of a tile, -inf where hidden. `tensors` are the tile's operands; `out` is used if possible."""
        score = self._operand_ends[0]
        scores = self.spec.score.tile(tensors[:score], tile.rows, tile.cols, out).to(self.dtype)
        if self.nan_safe:
            scores = torch.where(self._raw_scores(tensors, tile) == NEVER, NEVER, scores)
        if not tile.masked:
            return scores
        if out is not None and scores.data_ptr() == out.data_ptr():
            for low, high in tile.masked:
                scores[..., low:high].masked_fill_(~self.visible(tensors, tile, low, high), NEVER)
            return scores
        low, high = tile.masked[0][0], tile.masked[-1][1]
        hidden = torch.where(self.visible(tensors, tile, low, high), scores[..., low:high], NEVER)
        if high - low == scores.shape[-1]:
            return hidden
        whole = scores.expand(*hidden.shape[:-1], scores.shape[-1])
        return torch.cat([whole[..., :low], hidden, whole[..., high:]], -1)

    def rows_with_nan(
        self, tensors: Sequence[Tensor], tile: Tile, scores: Float[Tensor, "... rows cols"]
    ) -> Bool[Tensor, "... rows 1"]:
        """The rows that see a score of NaN or +inf. A NaN-safe problem computes with 0 in place of such inputs."""
        raw = self._raw_scores(tensors, tile)
        return ((raw.isnan() | (raw == math.inf)) & (scores.detach() != NEVER)).any(-1, keepdim=True)

    def _raw_scores(self, tensors: Sequence[Tensor], tile: Tile) -> Float[Tensor, "... rows cols"]:
        """The scores of the inputs as they are, with NaN and inf, and without a graph."""
        score, masked, _ = self._operand_ends
        return self.spec.score.tile(tensors[score:masked], tile.rows, tile.cols).detach().to(self.dtype)

    def visible(self, tensors: Sequence[Tensor], tile: Tile, low: int, high: int) -> Bool[Tensor, "... rows cols"]:
        """The mask on columns number low to high of a tile, True where a key is seen."""
        mask: Any = self.spec.mask
        _, first, last = self._operand_ends
        cut = Tile((), Span(0, len(tile.rows)), Span(low, high))
        masks = [
            cut.cut(Operand(t, o.axis)) for t, o in zip(tensors[first:last], self.operands[first:last], strict=True)
        ]
        return mask.tile(masks, tile.rows, tile.cols.part(low, high), self.size)

    def gaps(self, tile: Tile) -> tuple[tuple[int, int], ...]:
        """The ranges of a tile's columns in which a score may be -inf."""
        return ((0, len(tile.cols)),) if self.spec.score.hides_keys else tile.masked

    def weights(
        self,
        scores: Float[Tensor, "... rows cols"],
        tensors: Sequence[Tensor],
        tile: Tile,
        out: Float[Tensor, "*batch rows cols"] | None = None,
    ) -> Float[Tensor, "... rows cols"]:
        """The weights of a tile, from its scores and its operands."""
        return self.spec.normaliser.weights(
            scores, tensors[self._operand_ends[2] :], gaps=bool(self.gaps(tile)), out=out
        )

    def tiles(
        self, tile_scores: int, *, lead: tuple[int, ...] | None = None, overhead: int = TILE_OVERHEAD, workers: int = 1
    ) -> Iterator[Tile]:
        """Tiles of at most `tile_scores` scores (but at least one row of one head) that cover all rows that see a key.

        `overhead` is the fixed cost of a tile, in scores. Where possible, each of `workers` gets equally many groups of
        heads.
        """
        lead = self.lead if lead is None else lead
        max_heads = min(math.prod(lead), MAX_TILE_HEADS) or 1
        cuts: dict[int, list[Span]] = {}  # for each number of heads in a tile
        for heads in head_slices(lead, self._heads_in_tile(max_heads, tile_scores, overhead, workers)):
            count = math.prod([cut.stop - cut.start for cut in heads])
            if count not in cuts:
                cuts[count] = list(self._row_cuts(tile_scores // count, overhead / count))
            for rows in cuts[count]:
                yield from self._split_to_fit(heads, rows, tile_scores)

    def _split_to_fit(self, heads: tuple[slice, ...], rows: Span, tile_scores: int) -> Iterator[Tile]:
        """The tile of these heads and rows, cut in halves along the heads while it has too many scores."""
        tile = self.tile(heads, rows)
        count = math.prod([cut.stop - cut.start for cut in heads])
        if tile is None:
            return
        if count == 1 or count * len(rows) * len(tile.cols) <= tile_scores:
            yield tile
            return
        for half in _halves(heads):
            yield from self._split_to_fit(half, rows, tile_scores)

    def tile(self, heads: tuple[slice, ...], rows: Span) -> Tile | None:
        """The tile of these rows with the columns that they may see, or None if they see no key."""
        if not len(rows) or not self.size.m:
            return None
        if self.spec.mask is None:
            return Tile(heads, rows, Span(0, self.size.m))
        return _visible_tile(heads, rows, self._visible_blocks(heads, rows), self.size.device)

    def box(self, heads: tuple[slice, ...], rows: Span, cols: Span) -> Tile | None:
        """A tile of a range of columns, or None if none of it is visible.

        It does not hold whole rows: its weights need the statistic of each row.
        """
        if not len(rows) or not len(cols):
            return None
        if self.spec.mask is None:
            return Tile(heads, rows, cols)
        states = self.spec.mask.block_states(
            self._mask_tensors(heads), _bounding_span(rows, self.size.n), (cols.start, cols.stop), self.size
        )
        if states[0] == NONE:
            return None
        return Tile(heads, rows, cols, () if states[0] == ALL else ((0, len(cols)),))

    def _mask_tensors(self, heads: tuple[slice, ...]) -> list[Tensor] | None:
        """The mask's operands for these heads, or None while tracing, when values cannot be read."""
        _, first, last = self._operand_ends
        within = Tile(heads, Span(0, 0), Span(0, 0))
        return None if is_tracing() else [within.heads(o.tensor) for o in self.operands[first:last]]

    def _visible_blocks(self, heads: tuple[slice, ...], rows: Span) -> list[tuple[int, int, int]]:
        """The blocks of columns (start, stop, state) that these rows may see."""
        mask: Any = self.spec.mask
        tensors = self._mask_tensors(heads)
        span = _bounding_span(rows, self.size.n)
        blocks: list[tuple[int, int, int]] = []
        for low, high in mask.reach(span, self.size):
            width = max(MIN_BLOCK_COLUMNS, -(-(high - low) // MASK_BLOCKS))
            edges = [*range(low, high, width), high]
            states = mask.block_states(tensors, span, edges, self.size)
            blocks += [b for b in zip(edges[:-1], edges[1:], states, strict=True) if b[2] != NONE]
        return blocks

    def _width(self, rows: Span) -> int:
        """The number of columns that a block of rows may see, from sizes alone."""
        if self.spec.mask is None:
            return self.size.m
        return sum(high - low for low, high in self.spec.mask.reach(_bounding_span(rows, self.size.n), self.size))

    def _heads_in_tile(self, max_heads: int, tile_scores: int, overhead: float, workers: int) -> int:
        """The cheapest number of heads in a tile, judged at the middle row: many rows of few heads beat the reverse."""
        middle = self.size.n // 2
        row = max(1, self._width(Span(middle, middle + 1)))
        share = workers if workers <= max_heads else 1
        even = sorted({-(-max_heads // g) for g in range(1, max_heads + 1) if g % share == 0 or g == max_heads})
        counts = [count for count in even if count * row <= tile_scores] or [1]
        costs = [min(self._costs(middle, tile_scores // count, overhead / count)) for count in counts]
        return counts[costs.index(min(costs))]

    def _row_cuts(self, tile_scores: int, overhead: float) -> Iterator[Span]:
        """The rows of each tile: many, to spread the overhead; few, to follow the mask's edge."""
        low = 0
        while low < self.size.n:
            costs = self._costs(low, tile_scores, overhead)
            step = ROW_STEPS[costs.index(min(costs))]
            yield Span(low, min(low + step, self.size.n))
            low += step

    def _costs(self, low: int, tile_scores: int, overhead: float) -> list[float]:
        """The cost of a row, in scores, for each number of rows in ROW_STEPS that a tile from row `low` on may have."""
        costs: list[float] = []
        for step in ROW_STEPS:
            rows = Span(low, min(low + step, self.size.n))
            width = self._width(rows)
            taken = min(step, self.size.n) or 1
            cost = width * (1 + KEY_READ_COST / taken) + overhead / taken
            if costs and (step * width > tile_scores or cost > costs[-1]):
                break
            costs.append(cost)
        return costs


def zero_non_finite(tensor: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The tensor with 0 in place of NaN and inf, and no gradient there."""
    return torch.where(tensor.detach().isfinite(), tensor, 0.0)


class ReplaceValues(torch.autograd.Function):
    """A tensor with some numbers replaced. The gradient there is NaN, or 0 where the gradient of the output is 0."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        tensor: Float[Tensor, "*shape"], where: Bool[Tensor, "..."], value: Float[Tensor, "..."]
    ) -> Float[Tensor, "*shape"]:
        return torch.where(where, value, tensor)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        del output
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, grad: Float[Tensor, "*shape"]) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (where,) = ctx.saved_tensors
        return torch.where(where, torch.where(grad == 0, 0.0, math.nan), grad), None, None


class ReplaceValuesEagerly(ReplaceValues):
    """ReplaceValues with a forward derivative, which torch.compile does not support."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ReplaceValues.setup_context(ctx, inputs, output)
        ctx.save_for_forward(inputs[1])

    @staticmethod
    def jvp(ctx: Any, tangent: Float[Tensor, "*shape"], *_: Any) -> Float[Tensor, "*shape"]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (where,) = ctx.saved_tensors
        return torch.where(where, math.nan, tangent)


def replace_values(
    tensor: Float[Tensor, "*shape"], where: Bool[Tensor, "..."], value: Float[Tensor, "..."]
) -> Float[Tensor, "*shape"]:
    """The tensor with `value` where `where` is True; for its gradient see `ReplaceValues`."""
    replace = ReplaceValues if torch.compiler.is_compiling() else ReplaceValuesEagerly
    return replace.apply(tensor, where, value)  # pyright: ignore[reportReturnType]


def _bounding_span(rows: Span, n: int) -> Span:
    """The smallest range that holds all these rows."""
    if rows.index is None:
        return rows
    if is_tracing():
        return Span(0, n)
    return Span(int(rows.index.min()), int(rows.index.max()) + 1)


def _visible_tile(
    heads: tuple[slice, ...], rows: Span, blocks: list[tuple[int, int, int]], device: torch.device
) -> Tile | None:
    """The tile of the visible blocks, or None. If there are gaps between them, its columns are picked by index."""
    runs: list[list[int]] = []
    masked: list[list[int]] = []
    at = 0
    for start, stop, kind in blocks:
        if runs and runs[-1][1] == start:
            runs[-1][1] = stop
        else:
            runs.append([start, stop])
        if kind == SOME and masked and masked[-1][1] == at:
            masked[-1][1] = at + stop - start
        elif kind != ALL:
            masked.append([at, at + stop - start])
        at += stop - start
    if not runs:
        return None
    index = None if len(runs) == 1 else torch.cat([torch.arange(a, b, device=device) for a, b in runs])
    return Tile(heads, rows, Span(runs[0][0], runs[-1][1], index), tuple((a, b) for a, b in masked))


def _halves(heads: tuple[slice, ...]) -> Iterator[tuple[slice, ...]]:
    """Two halves of the heads, along the first dimension that has more than one."""
    dim = next(dim for dim, cut in enumerate(heads) if cut.stop - cut.start > 1)
    low, high = heads[dim].start, heads[dim].stop
    for part in (slice(low, (low + high) // 2), slice((low + high) // 2, high)):
        yield (*heads[:dim], part, *heads[dim + 1 :])


def head_slices(lead: tuple[int, ...], max_heads: int) -> Iterator[tuple[slice, ...]]:
    """Blocks of at most `max_heads` heads that cover the leading dimensions, whole dimensions from the right first."""
    steps: list[int] = []
    for length in reversed(lead):
        step = max(1, min(length, max_heads))
        steps.insert(0, step)
        max_heads = max_heads // length if length and step == length else 1
    cuts = [
        [slice(a, min(a + step, length)) for a in range(0, length, step)]
        for step, length in zip(steps, lead, strict=True)
    ]
    yield from product(*cuts)
