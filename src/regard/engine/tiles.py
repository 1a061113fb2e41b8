"""Tiles of the n x m matrix: how it is cut, and how the scores and weights of one tile are computed.

A tile holds whole rows: all keys that any of its queries may see. So the softmax of a row needs one tile, and keys that
a mask hides from a whole block of queries are never computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from regard.engine.costs import TILE_OVERHEAD
from regard.engine.tile_cuts import Cut, bounding_span, find_cuts, remembered
from regard.masks import ALL, NONE, SOME
from regard.operands import NEVER, Operand, Size, Span, Tile
from regard.spec import Spec
from regard.tracing import is_tracing

MASK_BLOCKS = 32  # blocks of columns for which a mask says whether it hides all, some or none of them
MIN_BLOCK_COLUMNS = 64  # columns of such a block


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
        cuts = find_cuts(self.spec.mask, self.size, lead, tile_scores, overhead, workers)
        mask = self.spec.mask
        if mask is not None and mask.arity:  # its tensors say what is visible
            return self._tiles_of(cuts, tile_scores)
        signature = None if mask is None else mask.signature
        kind = ("tiles", signature, self.size, lead, tile_scores, overhead, workers)
        return iter(remembered(kind, lambda: tuple(self._tiles_of(cuts, tile_scores)), _count))

    def _tiles_of(self, cuts: Sequence[Cut], tile_scores: int) -> Iterator[Tile]:
        """The tiles of some cuts, each of at most `tile_scores` scores if it can be split."""
        for heads, rows in cuts:
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
            self._mask_tensors(heads), bounding_span(rows, self.size.n), (cols.start, cols.stop), self.size
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
        span = bounding_span(rows, self.size.n)
        blocks: list[tuple[int, int, int]] = []
        for low, high in mask.reach(span, self.size):
            width = max(MIN_BLOCK_COLUMNS, -(-(high - low) // MASK_BLOCKS))
            edges = [*range(low, high, width), high]
            states = mask.block_states(tensors, span, edges, self.size)
            blocks += [b for b in zip(edges[:-1], edges[1:], states, strict=True) if b[2] != NONE]
        return blocks


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


def _count(tiles: tuple[Tile, ...]) -> int:
    """The number of tiles, or of the positions that they hold."""
    return sum([1 if tile.cols.index is None else len(tile.cols) for tile in tiles])


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
