"""One rectangle of the matrix, a run of queries beside a run of keys: what it adds to outputs and to gradients.

A rectangle is a small matrix of its own, whose score and mask are those of the whole matrix where it lies. So softmax
runs on torch's fused kernel, and everything else on tiles. A gradient needs the output and the row statistic of whole
rows; with these, what each rectangle adds to it follows from the rectangle alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.engine import inputs, pooling
from regard.engine.distributed.plan import Rectangle
from regard.engine.fused import forms
from regard.engine.fused.kernel import rescaled
from regard.engine.fused.query_blocks import block_gradients, cut_blocks, pool_blocks
from regard.engine.tile_batches import TileBatch
from regard.engine.tiles import Problem
from regard.engine.versions import map_tensors
from regard.masks import Whole
from regard.normalisers import Hard, Normaliser, Softmax
from regard.operands import NEVER, Axis, Operand, Size, Span, Tile
from regard.spec import Spec

SharedRows = tuple[Float[Tensor, "... rows dim_v"], Float[Tensor, "... rows"]]


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """The computation of a call, alike on every rank: formula, whole matrix, dropout, and the size of tiles."""

    spec: Spec
    lead: tuple[int, ...]
    size: Size
    tile_scores: int
    learned: bool  # True if a tensor of the score requires a gradient
    dropout_p: float = 0.0
    seed: Int[Tensor, " 1"] | None = None  # of dropout

    def whole(self) -> Whole | None:
        """The mask on the whole matrix."""
        return None if self.spec.mask is None else Whole(self.spec.mask, self.lead, self.size)

    def with_params(self, params: Sequence[Tensor]) -> Formula:
        """The formula with other tensors in place of the learned ones, in the order of `learned_tensors`."""
        if not params:
            return self
        by_id = {id(old): new for old, new in zip(learned_tensors(self.spec), params, strict=True)}
        score = map_tensors(self.spec.score, lambda tensor: by_id.get(id(tensor), tensor))
        return replace(self, spec=Spec(score, self.spec.mask, self.spec.normaliser))

    def part(self, whole: Whole | None, at: Rectangle) -> Spec:
        """The formula on a rectangle."""
        return self.spec.part(whole if at.masked else None, at.at_rows, at.at_cols, self.size)

    def kept(self, tile: Tile, at: Rectangle) -> Float[Tensor, "... rows cols"] | float:
        """The factor of dropout for each weight of a tile: 0 or 1 / (1 - p)."""
        if not self.dropout_p or self.seed is None:
            return 1.0
        heads = pooling.head_numbers(self.lead, self.size.device)
        placed = Tile(tile.lead, at.at_rows.pick(tile.rows), at.at_cols.pick(tile.cols))
        kept = pooling.kept_by_dropout(tile.heads(heads), self.seed, placed, self.size.n, self.dropout_p)
        return kept / (1 - self.dropout_p)


def learned_tensors(spec: Spec) -> list[Tensor]:
    """The tensors of the score that require a gradient, each once."""
    return list({id(t): t for t in spec.score.all_tensors() if t.requires_grad}.values())


@dataclass(frozen=True, slots=True, eq=False)
class Operands:
    """Queries, keys and values of a rectangle, cut to it."""

    q: Float[Tensor, "... rows dim_q"]
    k: Float[Tensor, "... cols dim_k"]
    v: Float[Tensor, "... cols dim_v"]

    @classmethod
    def cut(cls, at: Rectangle, q: Tensor, k: Tensor, v: Tensor) -> Operands:
        """The rows of a rectangle from a shard of queries and a block of keys and values."""
        return cls(at.rows.take(q, -2), at.cols.take(k, -2), at.cols.take(v, -2))


# The fused kernel


def kernel_serves(formula: Formula, spec: Spec, part: Operands) -> bool:
    """True if the kernel can compute the rectangle: softmax of inner products on the CPU, without dropout or NaN."""
    if not isinstance(spec.normaliser, Softmax) or formula.dropout_p or part.q.device.type != "cpu":
        return False
    if spec.score.obstacle(grad=formula.learned) is not None:
        return False
    return not pooling.needs_nan_safety(spec, part.q, part.k, part.v)


def kernel_serves_gradients(formula: Formula, spec: Spec, part: Operands) -> bool:
    """True if the kernel's gradients of a rectangle are those of the score.

    Where features leave out a number of each row, they are centred on the keys of the rectangle, so the gradient of
    that number does not cancel over the rectangles of a row.
    """
    if not kernel_serves(formula, spec, part):
        return False
    return spec.score.features(part.q[..., :1, :], part.k[..., :1, :]).row is None


@dataclass(frozen=True, slots=True, eq=False)
class KernelCall:
    """Queries, keys and values as the kernel takes them, and its calls; `row` is missing in its log-sum-exp."""

    blocks: object
    batches: tuple[TileBatch, ...]
    tensors: tuple[Tensor, Tensor, Tensor]
    row: Float[Tensor, "... rows"] | None

    @classmethod
    def of(cls, formula: Formula, spec: Spec, part: Operands) -> KernelCall:
        """The calls for a rectangle."""
        query, key = part.q, part.k
        features = spec.score.features(query, key)
        if forms.loses_digits(features):
            features = spec.score.features(query.double(), key.double())
        q, k, bias, scale = forms.absorb_key_bias(features, query, key)
        width = forms.kernel_width(q.shape[-1], part.v.shape[-1])
        q, scale = rescaled(q, scale, causal=True)
        padded = (forms.pad_features(t.to(q.dtype), width) for t in (q, k, part.v))
        q, k, v = (t.expand(*formula.lead, *t.shape[-2:]) for t in padded)
        tile_scores = max(1, formula.tile_scores * query.element_size() // q.element_size())
        with torch.no_grad():
            blocks, batches = cut_blocks(
                spec, features.rest, q, k, None if bias is None else bias.detach(), scale, tile_scores
            )
        return cls(blocks, batches, (q, k, v), features.row)


def pool_by_kernel(formula: Formula, spec: Spec, part: Operands) -> SharedRows:
    """The output over the keys of a rectangle alone, and its log-sum-exp."""
    call = KernelCall.of(formula, spec, part)
    out, lse = pool_blocks(call.blocks, call.batches, *call.tensors)  # pyright: ignore[reportArgumentType]
    if call.row is not None:
        lse = lse + call.row
    return out[..., : part.v.shape[-1]].to(part.v.dtype), lse.to(part.v.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class RowGradient:
    """Rows as the gradients of a rectangle need them: the output, its gradient, and the statistic of whole rows."""

    grad: Float[Tensor, "... rows dim_v"]  # of the output
    out: Float[Tensor, "... rows dim_v"]
    centre: Float[Tensor, "... rows dim_v"]  # sum g v / sum g, with g of the normaliser's Jacobian
    statistic: Float[Tensor, "... rows"]

    def cut(self, rows: Span) -> RowGradient:
        """The part that belongs to some rows."""
        grad, out, centre = (rows.take(t, -2) for t in (self.grad, self.out, self.centre))
        return RowGradient(grad, out, centre, rows.take(self.statistic, -1))


def kernel_gradients(
    formula: Formula, spec: Spec, part: Operands, rows: RowGradient, wanted: Sequence[Tensor]
) -> list[Tensor | None]:
    """The part of one rectangle, by the kernel, in the gradients of `wanted`: leaves behind `part` and `spec`."""
    with torch.enable_grad():
        call = KernelCall.of(formula, spec, part)
    q, k, v = (t.detach() for t in call.tensors)
    width = v.shape[-1]
    grad, out = (forms.pad_features(t.to(q.dtype), width) for t in (rows.grad, rows.out))
    lse = rows.statistic.to(q.dtype)
    if call.row is not None:
        lse = torch.where(lse == NEVER, NEVER, lse - call.row.detach())
    grads = block_gradients(call.blocks, call.batches, (q, k, v), out, lse, grad)  # pyright: ignore[reportArgumentType]
    return _chain(call.tensors, grads, wanted)


def _chain(outputs: Sequence[Tensor], grads: Sequence[Tensor], wanted: Sequence[Tensor]) -> list[Tensor | None]:
    """The gradients of leaves, from those of what was made of them."""
    used = [(out, grad) for out, grad in zip(outputs, grads, strict=True) if out.requires_grad]
    if not used or not wanted:
        return [None] * len(wanted)
    made, given = zip(*used, strict=True)
    return list(torch.autograd.grad(made, wanted, given, allow_unused=True))


# Tiles


@dataclass(frozen=True, slots=True, eq=False)
class TiledRectangle:
    """A rectangle as a problem for the loop over tiles; numbers that are hidden may be NaN or inf."""

    formula: Formula
    at: Rectangle
    problem: Problem
    v: Float[Tensor, "... cols dim_v"]
    marks: tuple[Tensor, ...]  # where the values were NaN, inf and -inf

    @classmethod
    def of(cls, formula: Formula, spec: Spec, at: Rectangle, part: Operands) -> TiledRectangle:
        """The problem of a rectangle."""
        nan_safe = pooling.needs_nan_safety(spec, part.q, part.k, part.v)
        problem = Problem.build(spec, part.q, part.k, formula.lead, nan_safe=nan_safe, draws=())
        marks: tuple[Tensor, ...] = ()
        value = part.v
        if nan_safe:
            first, *rest = pooling.value_operands(part.v, Axis.KEY, nan_safe=True)
            value, marks = first.tensor, tuple(operand.tensor for operand in rest)
        return cls(formula, at, problem, value, marks)

    def tiles(self, *, whole_rows: bool = False) -> Iterator[Tile]:
        """Tiles that cover all that is visible; where a row is longer than a tile, it goes on in the next one."""
        most = self.formula.tile_scores
        for tile in self.problem.tiles(most):
            count = tile_heads(tile) * len(tile.rows)
            width = len(tile.cols) if whole_rows else max(1, most // max(1, count))
            yield from column_parts(tile, width)

    def scores(
        self, tensors: Sequence[Tensor], tile: Tile, out: Float[Tensor, "... rows cols"] | None = None
    ) -> Float[Tensor, "... rows cols"]:
        """The scores of a tile with all its heads, -inf where hidden; `out` may take the result."""
        scores = self.problem.scores(tensors, tile, out)
        return scores.expand(*(cut.stop - cut.start for cut in tile.lead), *scores.shape[-2:])

    def cut(self, tile: Tile) -> list[Tensor]:
        """The operands of a tile."""
        return [tile.cut(operand) for operand in self.problem.operands]

    def values(self, tile: Tile) -> Float[Tensor, "... cols dim_v"]:
        """The values of a tile."""
        return tile.cut(Operand(self.v, Axis.KEY))

    def pooled(
        self, weights: Float[Tensor, "... rows cols"], scores: Float[Tensor, "... rows cols"], tile: Tile
    ) -> Float[Tensor, "... rows dim_v"]:
        """weights @ values, with NaN and inf where a row sees such a value."""
        out = weights @ self.values(tile)
        if not self.marks:
            return out
        marks = [tile.cut(Operand(mark, Axis.KEY)) for mark in self.marks]
        return pooling.restore_non_finite(out, scores != NEVER, marks, torch.zeros_like(out[..., :1], dtype=torch.bool))

    def broken_rows(self, tensors: Sequence[Tensor], tile: Tile, scores: Float[Tensor, "... rows cols"]) -> Tensor:
        """True for rows that see a score of NaN or +inf, (..., rows)."""
        if self.problem.nan_safe:
            return self.problem.rows_with_nan(tensors, tile, scores).squeeze(-1)
        return (scores.isnan() | (scores == torch.inf)).any(-1)

    def places(self, tile: Tile) -> Span:
        """The positions of a tile's keys."""
        return self.at.at_cols.pick(tile.cols)


def tile_heads(tile: Tile) -> int:
    """The number of heads of a tile."""
    count = 1
    for cut in tile.lead:
        count *= cut.stop - cut.start
    return count


def column_parts(tile: Tile, width: int) -> Iterator[Tile]:
    """The tile cut into parts of at most `width` columns."""
    for low in range(0, len(tile.cols), width):
        high = min(low + width, len(tile.cols))
        overlaps = ((max(a, low) - low, min(b, high) - low) for a, b in tile.masked)
        yield Tile(tile.lead, tile.rows, tile.cols.part(low, high), tuple((a, b) for a, b in overlaps if a < b))


def weights_of(
    normaliser: Normaliser,
    scores: Float[Tensor, "... rows cols"],
    statistic: Float[Tensor, "... rows"],
    cols: Span,
    out: Float[Tensor, "... rows cols"] | None = None,
) -> Float[Tensor, "... rows cols"]:
    """The weights of a block from its scores, the statistic of whole rows, and the positions of its keys.

    Of a row that chooses, the statistic is the position of its key; -1 for none, NaN for a row with NaN. `out` may take
    the result.
    """
    if isinstance(normaliser, Hard):
        weights = (cols.positions(scores.device) == statistic.unsqueeze(-1)).to(scores.dtype)
        return _marked_nan(weights, scores, statistic)
    weights = normaliser.from_statistic(scores, statistic.to(scores.dtype), cols, out)
    return _marked_nan(weights, scores, statistic)


def _marked_nan(
    weights: Float[Tensor, "... rows cols"], scores: Float[Tensor, "... rows cols"], statistic: Tensor
) -> Float[Tensor, "... rows cols"]:
    """The weights with NaN at the visible keys of rows with NaN, and 0 at those that are hidden."""
    broken = statistic.isnan()
    if not bool(broken.any()):
        return weights
    weights = weights.masked_fill(broken.unsqueeze(-1), torch.nan)
    return weights.masked_fill(scores == NEVER, 0)


def pool_by_tiles(formula: Formula, spec: Spec, at: Rectangle, part: Operands) -> SharedRows:
    """Softmax over the keys of a rectangle alone, pooled by tiles, and its log-sum-exp."""
    rectangle = TiledRectangle.of(formula, spec, at, part)
    shape = (*formula.lead, len(at.rows))
    out = part.q.new_zeros(*shape, part.v.shape[-1])
    lse = part.q.new_full(shape, NEVER)
    for tile in rectangle.tiles():
        tensors = rectangle.cut(tile)
        scores = rectangle.scores(tensors, tile)
        tile_lse = torch.logsumexp(scores, -1).masked_fill(rectangle.broken_rows(tensors, tile, scores), torch.nan)
        weights = weights_of(spec.normaliser, scores, tile_lse, tile.cols) * formula.kept(tile, at)
        merge_rows(rows_in(out, tile), rows_in(lse, tile, 1), rectangle.pooled(weights, scores, tile), tile_lse)
    return out, lse


def rows_in(tensor: Tensor, tile: Tile, trailing: int = 2) -> Tensor:
    """The rows and heads of a tile in a tensor of a rectangle, as a view."""
    return tile.rows.take(tile.heads(tensor, trailing), -trailing)


def merge_rows(
    out: Float[Tensor, "... rows dim_v"],
    lse: Float[Tensor, "... rows"],
    part: Float[Tensor, "... rows dim_v"],
    part_lse: Float[Tensor, "... rows"],
) -> None:
    """Merge softmax over more keys into an output and its log-sum-exp, in place.

    NaN and inf of values stay, also where the weight of their part rounds to 0.
    """
    total = torch.logaddexp(lse, part_lse)
    base = torch.where(total == NEVER, 0.0, total)
    first, second = (torch.exp(t - base).unsqueeze(-1) for t in (lse, part_lse))
    vanishing = ((first.squeeze(-1) == 0) & (lse != NEVER)) | ((second.squeeze(-1) == 0) & (part_lse != NEVER))
    if bool(vanishing.any()):
        first, second = (
            torch.where(t.isfinite() | share.isnan(), share, 1.0) for t, share in ((out, first), (part, second))
        )
    out.mul_(first).addcmul_(part, second)
    lse.copy_(total)


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sums over the keys of each row: of weights x values, and of Jacobian x values and the Jacobian itself."""

    out: Float[Tensor, "... rows dim_v"]
    centre: Float[Tensor, "... rows dim_v"]
    total: Float[Tensor, "... rows 1"]

    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """The three sums."""
        return self.out, self.centre, self.total


def add_sums(
    formula: Formula, spec: Spec, at: Rectangle, part: Operands, statistic: Float[Tensor, "... rows"], sums: Sums
) -> None:
    """Add what a rectangle adds to the sums of its rows, whose statistic is known; `sums` are cut to them."""
    rectangle = TiledRectangle.of(formula, spec, at, part)
    for tile in rectangle.tiles():
        scores = rectangle.scores(rectangle.cut(tile), tile)
        weights = weights_of(spec.normaliser, scores, rows_in(statistic, tile, 1), rectangle.places(tile))
        kept, jacobian = formula.kept(tile, at), spec.normaliser.jacobian_diagonal(weights)
        parts = (
            rectangle.pooled(weights * kept, scores, tile),
            (jacobian * kept) @ rectangle.values(tile),
            jacobian.sum(-1, keepdim=True),
        )
        for total, added in zip(sums.tensors(), parts, strict=True):
            rows_in(total, tile).add_(added)


# (rectangle, tile, scores) -> the gradient of the scores, and that of the values if there is one
TileGradient = Callable[[TiledRectangle, Tile, Tensor], tuple[Tensor, Tensor | None]]


def tile_gradients(
    formula: Formula, spec: Spec, at: Rectangle, part: Operands, gradient: TileGradient, wanted: Sequence[Tensor]
) -> list[Tensor | None]:
    """The part of one rectangle, by tiles, in the gradients of `wanted`: leaves behind `part` and `spec`."""
    with torch.enable_grad():
        rectangle = TiledRectangle.of(formula, spec, at, part)
    operands = rectangle.problem.operands
    needed = [i for i, operand in enumerate(operands) if operand.tensor.requires_grad]
    totals = {i: torch.zeros_like(operands[i].tensor, memory_format=torch.contiguous_format) for i in needed}
    value_total = torch.zeros_like(rectangle.v, memory_format=torch.contiguous_format)
    for tile in rectangle.tiles():
        leaves = [tensor.detach() for tensor in rectangle.cut(tile)]
        for i in needed:
            leaves[i].requires_grad_()
        with torch.enable_grad():
            scores = rectangle.scores(leaves, tile)
        ds, dv = gradient(rectangle, tile, scores.detach())
        if dv is not None:
            tile.add(Operand(value_total, Axis.KEY), dv.sum_to_size(rectangle.values(tile).shape))
        if scores.requires_grad:
            grads = torch.autograd.grad(scores, [leaves[i] for i in needed], ds, allow_unused=True)
            for i, grad in zip(needed, grads, strict=True):
                if grad is not None:
                    tile.add(Operand(totals[i], operands[i].axis), grad)
    outputs = [operands[i].tensor for i in needed] + [rectangle.v]
    return _chain(outputs, [*totals.values(), value_total], wanted)


def pooling_gradient(rows: RowGradient) -> TileGradient:
    """The gradient of weights @ values: with g of the Jacobian and dp = grad . v, that of a score is g (dp - mean).

    The mean of dp, weighted by g, is grad . centre; rows that do not sum to 1 have none.
    """

    def gradient(rectangle: TiledRectangle, tile: Tile, scores: Tensor) -> tuple[Tensor, Tensor]:
        formula, normaliser = rectangle.formula, rectangle.problem.spec.normaliser
        grad, centre = (rows_in(t, tile) for t in (rows.grad, rows.centre))
        weights = weights_of(normaliser, scores, rows_in(rows.statistic, tile, 1), rectangle.places(tile))
        kept = formula.kept(tile, rectangle.at)
        change = (grad @ rectangle.values(tile).detach().mT) * kept
        if normaliser.normalised:
            change = change - (grad * centre).sum(-1, keepdim=True)
        ds = (normaliser.jacobian_diagonal(weights) * change).masked_fill(scores == NEVER, 0)
        return ds, (weights * kept).mT @ grad

    return gradient


def prepared_keys(tensor: Float[Tensor, "... keys dim"], group: int) -> Float[Tensor, "... keys dim"]:
    """Keys or values as they are computed with: float32 at least, one head for each query head."""
    return inputs.repeat_key_heads(inputs.upcast(tensor), group)


def summed_groups(grad: Float[Tensor, "... keys dim"], group: int) -> Float[Tensor, "... keys dim"]:
    """The gradient of keys that `group` query heads share."""
    return grad if group == 1 else grad.unflatten(-3, (-1, group)).sum(-3)
