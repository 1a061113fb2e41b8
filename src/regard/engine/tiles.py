"""How the n x m matrix is cut into tiles, and how one tile of scores and weights is made.

A tile holds whole rows: all the keys that any of its queries may see. So a softmax over a tile is final, and
what a mask hides from a whole block of queries is never computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

from regard.masks import ALL, NONE, SOME
from regard.operands import NEVER, Operand, Size, Span, Tile
from regard.spec import Spec
from regard.tracing import is_tracing

BLOCKS = 32  # how finely a range of columns is asked for none / some / all
NARROWEST = 64  # columns of such a block, at least
CALL = 1 << 16  # the fixed cost of a tile, in scores
REREAD = 8  # fetching the keys once more costs as much as so many rows of scores
MOST_HEADS = 64
STEPS = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)  # rows that a tile may have


def all_finite(*tensors: Tensor) -> bool:
    """Whether there is no NaN and no inf. A sum of everything tells: an overflow is a harmless false alarm."""
    recording = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)  # noqa: SLF001  as torch.no_grad() does, which would take longer than a small sum
    try:
        return math.isfinite(sum([t.sum().item() for t in tensors]))
    finally:
        torch._C._set_grad_enabled(recording)  # noqa: SLF001


@dataclass(frozen=True, eq=False)
class Problem:
    """Queries, keys and a spec, as operands from which any tile of weights can be made."""

    spec: Spec
    lead: tuple[int, ...]
    size: Size
    dtype: torch.dtype
    careful: bool  # something hidden may be NaN or inf: keep it out of gradients too
    operands: tuple[Operand, ...]

    @classmethod
    def build(
        cls,
        spec: Spec,
        query: Tensor,
        key: Tensor,
        lead: tuple[int, ...],
        *,
        careful: bool = False,
        draws: tuple[Operand, ...] | None = None,
    ) -> Problem:
        """`draws` are the normaliser's operands if they have been drawn before."""
        size = Size(query.shape[-2], key.shape[-2], query.device)
        score = spec.score.operands
        if careful:
            with torch.no_grad():
                raw = score(query, key)
            operands = score(zero_filled(query), zero_filled(key)) + raw
        else:
            operands = score(query, key)
        if spec.mask is not None:
            operands += spec.mask.operands(lead)
        operands += spec.normaliser.operands(lead, size.n, query) if draws is None else draws
        return cls(spec, lead, size, query.dtype, careful, operands)

    @property
    def _counts(self) -> tuple[int, int, int]:
        score = self.spec.score.arity
        first = score * (2 if self.careful else 1)
        return score, first, first + (0 if self.spec.mask is None else self.spec.mask.arity)

    def scores(self, tensors: Sequence[Tensor], tile: Tile, out: Tensor | None = None) -> Tensor:
        """The tile's scores, -inf where hidden; written over `out` if that is possible."""
        score = self._counts[0]
        scores = self.spec.score.tile(tensors[:score], tile.rows, tile.cols, out).to(self.dtype)
        if self.careful:
            scores = torch.where(self._raw(tensors, tile) == NEVER, NEVER, scores)
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

    def broken(self, tensors: Sequence[Tensor], tile: Tile, scores: Tensor) -> Tensor:
        """Rows (..., rows, 1) that see a score that is NaN or +inf. A careful problem computes as if it were not."""
        raw = self._raw(tensors, tile)
        return ((raw.isnan() | (raw == math.inf)) & (scores.detach() != NEVER)).any(-1, keepdim=True)

    def _raw(self, tensors: Sequence[Tensor], tile: Tile) -> Tensor:
        score, masked, _ = self._counts
        return self.spec.score.tile(tensors[score:masked], tile.rows, tile.cols).detach().to(self.dtype)

    def visible(self, tensors: Sequence[Tensor], tile: Tile, low: int, high: int) -> Tensor:
        """The mask on columns number low to high of a tile."""
        mask: Any = self.spec.mask
        _, first, last = self._counts
        cut = Tile((), Span(0, len(tile.rows)), Span(low, high))
        masks = [
            cut.cut(Operand(t, o.axis)) for t, o in zip(tensors[first:last], self.operands[first:last], strict=True)
        ]
        return mask.tile(masks, tile.rows, tile.cols.part(low, high), self.size)

    def gaps(self, tile: Tile) -> tuple[tuple[int, int], ...]:
        """Ranges of the tile's columns in which a score may be -inf."""
        return ((0, len(tile.cols)),) if self.spec.score.hides_keys else tile.masked

    def weights(self, scores: Tensor, tensors: Sequence[Tensor], tile: Tile, out: Tensor | None = None) -> Tensor:
        """The weights of a tile of scores."""
        return self.spec.normaliser.weights(scores, tensors[self._counts[2] :], gaps=bool(self.gaps(tile)), out=out)

    def tiles(
        self, cap: int, *, lead: tuple[int, ...] | None = None, call: int = CALL, workers: int = 1
    ) -> Iterator[Tile]:
        """All tiles of at most `cap` scores (but one row of one head at least). Rows that see nothing are in no tile.

        `call` is the fixed cost of a tile, in scores. Heads are grouped so that `workers` get as many groups each,
        where that is possible.
        """
        lead = self.lead if lead is None else lead
        most = min(math.prod(lead), MOST_HEADS) or 1
        cuts: dict[int, list[Span]] = {}  # for each number of heads in a tile
        for heads in head_slices(lead, self._heads_in_tile(most, cap, call, workers)):
            count = math.prod([cut.stop - cut.start for cut in heads])
            if count not in cuts:
                cuts[count] = list(self._row_cuts(cap // count, call / count))
            for rows in cuts[count]:
                yield from self._fitting(heads, rows, cap)

    def _fitting(self, heads: tuple[slice, ...], rows: Span, cap: int) -> Iterator[Tile]:
        """The tile of these heads and rows, the heads halved while a single row of all of them is too much."""
        tile = self.tile(heads, rows)
        count = math.prod([cut.stop - cut.start for cut in heads])
        if tile is None:
            return
        if count == 1 or count * len(rows) * len(tile.cols) <= cap:
            yield tile
            return
        for half in _halves(heads):
            yield from self._fitting(half, rows, cap)

    def tile(self, heads: tuple[slice, ...], rows: Span) -> Tile | None:
        """The tile of these rows with the columns they may see, or None if they see nothing."""
        if not len(rows) or not self.size.m:
            return None
        if self.spec.mask is None:
            return Tile(heads, rows, Span(0, self.size.m))
        return _visible_tile(heads, rows, self._blocks(heads, rows), self.size.device)

    def box(self, heads: tuple[slice, ...], rows: Span, cols: Span) -> Tile | None:
        """These rows and a range of columns, or None if nothing of it is visible.

        A row goes on outside: its weights follow from its statistic alone.
        """
        if not len(rows) or not len(cols):
            return None
        if self.spec.mask is None:
            return Tile(heads, rows, cols)
        kinds = self.spec.mask.block_states(
            self._mask_tensors(heads), _hull(rows, self.size.n), (cols.start, cols.stop), self.size
        )
        if kinds[0] == NONE:
            return None
        return Tile(heads, rows, cols, () if kinds[0] == ALL else ((0, len(cols)),))

    def _mask_tensors(self, heads: tuple[slice, ...]) -> list[Tensor] | None:
        """What the mask is made of, or None where nobody may look at it."""
        _, first, last = self._counts
        within = Tile(heads, Span(0, 0), Span(0, 0))
        return None if is_tracing() else [within.heads(o.tensor) for o in self.operands[first:last]]

    def _blocks(self, heads: tuple[slice, ...], rows: Span) -> list[tuple[int, int, int]]:
        """The blocks of columns (start, stop, kind) that these rows may see."""
        mask: Any = self.spec.mask
        tensors = self._mask_tensors(heads)
        span = _hull(rows, self.size.n)
        blocks: list[tuple[int, int, int]] = []
        for low, high in mask.reach(span, self.size):
            width = max(NARROWEST, -(-(high - low) // BLOCKS))
            edges = [*range(low, high, width), high]
            kinds = mask.block_states(tensors, span, edges, self.size)
            blocks += [b for b in zip(edges[:-1], edges[1:], kinds, strict=True) if b[2] != NONE]
        return blocks

    def _width(self, rows: Span) -> int:
        """How many columns a block of rows may see, from sizes alone."""
        if self.spec.mask is None:
            return self.size.m
        return sum(high - low for low, high in self.spec.mask.reach(_hull(rows, self.size.n), self.size))

    def _heads_in_tile(self, most: int, cap: int, call: float, workers: int) -> int:
        """How many heads a tile should have, judged in the middle: long blocks of one before short blocks of many."""
        middle = self.size.n // 2
        row = max(1, self._width(Span(middle, middle + 1)))
        share = workers if workers <= most else 1
        even = sorted({-(-most // groups) for groups in range(1, most + 1) if groups % share == 0 or groups == most})
        counts = [count for count in even if count * row <= cap] or [1]
        costs = [min(self._costs(middle, cap // count, call / count)) for count in counts]
        return counts[costs.index(min(costs))]

    def _row_cuts(self, cap: int, call: float) -> Iterator[Span]:
        """The rows of each tile: many, to spread the cost of a call; few, to follow the mask's edge."""
        low = 0
        while low < self.size.n:
            costs = self._costs(low, cap, call)
            step = STEPS[costs.index(min(costs))]
            yield Span(low, min(low + step, self.size.n))
            low += step

    def _costs(self, low: int, cap: int, call: float) -> list[float]:
        """Scores made for each row, the cost of a call among them, by how many rows from `low` on are in a tile."""
        costs: list[float] = []
        for step in STEPS:
            rows = Span(low, min(low + step, self.size.n))
            width = self._width(rows)
            taken = min(step, self.size.n) or 1
            cost = width * (1 + REREAD / taken) + call / taken
            if costs and (step * width > cap or cost > costs[-1]):
                break
            costs.append(cost)
        return costs


def zero_filled(tensor: Tensor) -> Tensor:
    """The same with 0 for NaN and inf, and no gradient there."""
    return torch.where(tensor.detach().isfinite(), tensor, 0.0)


class Replace(torch.autograd.Function):
    """Numbers put in place of others. What is asked of them goes back as NaN, and nothing if nothing is asked."""

    generate_vmap_rule = True

    @staticmethod
    def forward(tensor: Tensor, where: Tensor, value: Tensor) -> Tensor:
        return torch.where(where, value, tensor)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        del output
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (where,) = ctx.saved_tensors
        return torch.where(where, torch.where(grad == 0, 0.0, math.nan), grad), None, None


class ReplaceEagerly(Replace):
    """The same with a forward derivative, which torch.compile does not take."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        Replace.setup_context(ctx, inputs, output)
        ctx.save_for_forward(inputs[1])

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: Any) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        (where,) = ctx.saved_tensors
        return torch.where(where, math.nan, tangent)


def replaced(tensor: Tensor, where: Tensor, value: Tensor) -> Tensor:
    """The tensor with other numbers in some places; see `Replace`."""
    replace = Replace if torch.compiler.is_compiling() else ReplaceEagerly
    return replace.apply(tensor, where, value)  # pyright: ignore[reportReturnType]


def _hull(rows: Span, n: int) -> Span:
    if rows.index is None:
        return rows
    if is_tracing():
        return Span(0, n)
    return Span(int(rows.index.min()), int(rows.index.max()) + 1)


def _visible_tile(
    heads: tuple[slice, ...], rows: Span, blocks: list[tuple[int, int, int]], device: torch.device
) -> Tile | None:
    """Lay the visible blocks side by side. Where there are gaps between them the columns are picked by index."""
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
    """The heads in two parts, along the first dimension that has more than one."""
    dim = next(dim for dim, cut in enumerate(heads) if cut.stop - cut.start > 1)
    low, high = heads[dim].start, heads[dim].stop
    for part in (slice(low, (low + high) // 2), slice((low + high) // 2, high)):
        yield (*heads[:dim], part, *heads[dim + 1 :])


def head_slices(lead: tuple[int, ...], most: int) -> Iterator[tuple[slice, ...]]:
    """Cut the leading dimensions into blocks of at most `most` heads, whole dimensions from the right first."""
    steps: list[int] = []
    for length in reversed(lead):
        step = max(1, min(length, most))
        steps.insert(0, step)
        most = most // length if length and step == length else 1
    cuts = [
        [slice(a, min(a + step, length)) for a in range(0, length, step)]
        for step, length in zip(steps, lead, strict=True)
    ]
    yield from product(*cuts)
