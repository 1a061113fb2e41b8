"""Attention in a ring: queries stay, and the keys of each rank come by, block by block.

While a block is computed with, the next one is on its way, so a rank holds two foreign blocks at most. In the backward
pass the keys come by once more, and the gradient of each block goes home.

Where every rank has all queries, the keys stay instead, and the rows of all ranks are merged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.engine.distributed.plan import Rectangle, RingPlan, Step
from regard.engine.distributed.rectangle import (
    Formula,
    Operands,
    RowGradient,
    Sums,
    TiledRectangle,
    add_sums,
    kernel_gradients,
    kernel_serves,
    kernel_serves_gradients,
    learned_tensors,
    merge_rows,
    pool_by_kernel,
    pool_by_tiles,
    pooling_gradient,
    prepared_keys,
    summed_groups,
    tile_gradients,
)
from regard.engine.distributed.transport import Message, Transport
from regard.engine.fold import Buffers
from regard.engine.inputs import upcast
from regard.errors import CallError, NotNormalisedError
from regard.masks import Whole
from regard.normalisers import NEWTON_STEPS, Hard, Normaliser, Sigmoid, Softmax, Threshold
from regard.operands import NEVER, Size, Span, Tile
from regard.spec import Spec

Visit = Callable[[Step, list[Tensor]], Sequence[Tensor] | None]
KEYS, GRADIENTS = 1, 2  # tags of messages: two ranks may exchange both at once, in different orders
EMPTY = -1.0  # the chosen key of a row that sees none


@dataclass(slots=True, eq=False)
class Job:
    """One call on one rank: what is computed, who sends which keys to whom, and by which transport."""

    formula: Formula
    plan: RingPlan
    transport: Transport
    group: int  # query heads that share one key head
    rows: int  # queries of this rank
    keys_stay: bool  # True if every rank has all queries: then rows are merged over ranks
    keys_shared: bool  # True if every rank has all keys: then their gradients are summed over ranks
    whole: Whole | None = None
    value_group: int = 0  # query heads that share one head of the values; 0: as for the keys

    def keys_and_values(self, block: Sequence[Tensor], dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """A block of keys and of values as they are computed with."""
        keys, values = block
        groups = (self.group, self.value_group or self.group)
        return tuple(prepared_keys(t, group).to(dtype) for t, group in zip((keys, values), groups, strict=True))  # pyright: ignore[reportReturnType]

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The shape of a number for each query of this rank."""
        return (*self.formula.lead, self.rows)

    def over_ranks(self, tensor: Tensor, label: str, op: Any = "sum") -> Tensor:
        """Rows of all ranks combined, if all ranks have them; otherwise the tensor itself."""
        return self.transport.all_reduce(tensor, label, op) if self.keys_stay else tensor

    def with_params(self, params: Sequence[Tensor]) -> Job:
        """The job with other tensors in place of the learned ones."""
        return self if not params else replace(self, formula=self.formula.with_params(params))

    def trip(self, tensors: Sequence[Tensor], label: str, visit: Visit, gradients: list[Tensor] | None = None) -> None:
        """Visit the keys of every rank, this rank's own first: `visit(step, block)`, with a part of each tensor.

        With `gradients`, one for each tensor, a visit returns gradients of its block, which are added where it is at
        home.
        """
        trip = _Trip(self, list(tensors), label)
        arriving = []
        for number, step in enumerate(self.plan.steps):
            own = number == 0
            block = trip.tensors if own else [message.wait() for message in arriving]
            if number + 1 < len(self.plan.steps):
                arriving = trip.post(self.plan.steps[number + 1])
            made = visit(step, block) if step.rectangles else None
            if gradients is not None and own:
                for total, part in zip(gradients, made or (), strict=False):
                    total.add_(part)
            elif gradients is not None:
                trip.send_home(step, made, gradients)
        trip.finish(gradients)


@dataclass(slots=True, eq=False)
class _Trip:
    """The messages of one trip of the keys."""

    job: Job
    tensors: list[Tensor]
    label: str
    sent: list[Message] = field(default_factory=list)
    home: list[tuple[list[Message], tuple[Span, ...]]] = field(default_factory=list)  # gradients on their way here

    def post(self, step: Step) -> list[Message]:
        """Start to send and to receive the keys of a step; the messages that arrive."""
        self._wait_for_sent()
        transport, label = self.job.transport, f"{self.label}: keys"
        if step.outgoing:
            packed = [_packed(tensor, step.outgoing) for tensor in self.tensors]
            self.sent = [transport.send(t, step.receiver, label, KEYS) for t in packed if t.numel()]
        if not step.n_keys:
            return []
        shapes = [(*tensor.shape[:-2], step.n_keys, tensor.shape[-1]) for tensor in self.tensors]
        pairs = zip(shapes, self.tensors, strict=True)
        return [transport.receive(shape, t.dtype, t.device, step.source, label, KEYS) for shape, t in pairs]

    def send_home(self, step: Step, made: Sequence[Tensor] | None, gradients: list[Tensor]) -> None:
        """Send the gradients of a block to where it is at home, and start to receive those of this rank's own."""
        transport, label = self.job.transport, f"{self.label}: gradients of keys"
        earlier, self.home = self.home, []
        if step.n_keys:
            parts = made or [g.new_zeros(*g.shape[:-2], step.n_keys, g.shape[-1]) for g in gradients]
            self.sent += [transport.send(part, step.source, label, GRADIENTS) for part in parts]
        if step.outgoing:
            count = sum(len(span) for span in step.outgoing)
            messages = [
                transport.receive(
                    (*g.shape[:-2], count, g.shape[-1]), g.dtype, g.device, step.receiver, label, GRADIENTS
                )
                for g in gradients
            ]
            self.home.append((messages, step.outgoing))
        self._add(earlier, gradients)

    def finish(self, gradients: list[Tensor] | None) -> None:
        """Wait for all that is still on its way."""
        self._add(self.home, gradients or [])
        self._wait_for_sent()

    def _wait_for_sent(self) -> None:
        """Wait until what was sent has left, so that its memory is free."""
        for message in self.sent:
            message.wait()
        self.sent = []

    @staticmethod
    def _add(home: list[tuple[list[Message], tuple[Span, ...]]], gradients: list[Tensor]) -> None:
        """Add gradients that have come home to those of the rows that were sent."""
        for messages, spans in home:
            for message, total in zip(messages, gradients, strict=True):
                part, low = message.wait(), 0
                for span in spans:
                    span.add(total, -2, part.narrow(-2, low, len(span)))
                    low += len(span)


def _packed(tensor: Float[Tensor, "... keys dim"], spans: tuple[Span, ...]) -> Float[Tensor, "... rows dim"]:
    """Some rows of a tensor, one behind the other."""
    parts = [span.take(tensor, -2) for span in spans]
    return parts[0] if len(parts) == 1 else torch.cat(parts, -2)


# Row statistics


def row_statistic(
    job: Job, q: Float[Tensor, "... rows dim_q"], k: Float[Tensor, "... keys dim_k"], draws: Tensor | None, label: str
) -> Float[Tensor, "*batch rows"]:
    """The row statistic of whole rows: log-sum-exp, threshold, or the key that a row chooses; -inf in an empty row."""
    normaliser = job.formula.spec.normaliser
    if isinstance(normaliser, Softmax):
        return _logsumexp(job, q, k, label)
    if isinstance(normaliser, Sigmoid):
        return torch.zeros(job.row_shape, dtype=q.dtype, device=q.device)
    if isinstance(normaliser, Threshold):
        return _threshold(job, normaliser, q, k, label)
    if isinstance(normaliser, Hard):
        return _best_key(job, q, k, label) if draws is None else _drawn_key(job, q, k, draws, label)
    raise NotNormalisedError(
        f"{normaliser} cannot be computed over several processes: softmax, sigmoid, sparsemax, entmax15 and hard can"
    )


TileVisit = Callable[[TiledRectangle, Tile, list[Tensor], Float[Tensor, "... rows cols"]], None]


def visit_tiles(
    job: Job,
    q: Float[Tensor, "... rows dim_q"],
    k: Float[Tensor, "... keys dim_k"],
    label: str,
    visit: TileVisit,
    *,
    whole_rows: bool = False,
    buffers: Buffers | None = None,
) -> None:
    """Compute the scores of every visible tile in one trip of the keys: `visit(rectangle, tile, operands, scores)`.

    With `buffers` the scores are in the first of them if they can be; they are valid during the visit.
    """

    def at_block(step: Step, block: list[Tensor]) -> None:
        keys = prepared_keys(block[0], job.group).to(q.dtype)
        for at in step.rectangles:
            part = Operands.cut(at, q, keys, keys)
            rectangle = TiledRectangle.of(job.formula, job.formula.part(job.whole, at), at, part)
            for tile in rectangle.tiles(whole_rows=whole_rows):
                tensors = rectangle.cut(tile)
                out = None if buffers is None else buffers.take(tile_shape(tile))[0]
                visit(rectangle, tile, tensors, rectangle.scores(tensors, tile, out))

    job.trip([k], label, at_block)


def tile_shape(tile: Tile) -> tuple[int, ...]:
    """The shape of the scores of a tile."""
    return (*(cut.stop - cut.start for cut in tile.lead), len(tile.rows), len(tile.cols))


def rows_of(tensor: Tensor, rectangle: TiledRectangle, tile: Tile, trailing: int = 1) -> Tensor:
    """The rows and heads of a tile in a tensor with all queries of this rank, as a view."""
    return rectangle.at.rows.pick(tile.rows).take(tile.heads(tensor, trailing), -trailing)


def _logsumexp(job: Job, q: Tensor, k: Tensor, label: str) -> Float[Tensor, "*batch rows"]:
    """log sum_j exp(s_j) of whole rows."""
    lse = q.new_full(job.row_shape, NEVER)

    def visit(rectangle: TiledRectangle, tile: Tile, tensors: list[Tensor], scores: Tensor) -> None:
        part = torch.logsumexp(scores, -1).masked_fill(rectangle.broken_rows(tensors, tile, scores), math.nan)
        rows = rows_of(lse, rectangle, tile)
        rows.copy_(torch.logaddexp(rows, part))

    visit_tiles(job, q, k, label, visit)
    return merged_lse(job, lse, label)


def merged_lse(job: Job, lse: Float[Tensor, "*batch rows"], label: str) -> Float[Tensor, "*batch rows"]:
    """The log-sum-exp of all ranks, where all have the rows."""
    if not job.keys_stay:
        return lse
    parts = job.transport.all_gather(lse, [lse.shape] * job.transport.world, label)
    return torch.logsumexp(torch.stack(parts), 0)


def _threshold(job: Job, normaliser: Threshold, q: Tensor, k: Tensor, label: str) -> Float[Tensor, "*batch rows"]:
    """The threshold of whole rows, by Newton's method: one trip of the keys for each step, until none moves.

    It starts at the maximum less 1, where the sum is at least 1, and stays below the root.
    """
    best = q.new_full(job.row_shape, NEVER)

    def find_best(rectangle: TiledRectangle, tile: Tile, tensors: list[Tensor], scores: Tensor) -> None:
        part = scores.amax(-1).masked_fill(rectangle.broken_rows(tensors, tile, scores), math.nan)
        rows = rows_of(best, rectangle, tile)
        rows.copy_(torch.maximum(rows, part))

    visit_tiles(job, q, k, label, find_best)
    best = job.over_ranks(best, label, "max")
    tau = best * normaliser.slope - 1
    for _ in range(NEWTON_STEPS):
        step = _newton_step(job, normaliser, q, k, tau, label)
        tau = torch.where(best == NEVER, NEVER, tau + step.clamp_min(0))
        moves = bool((step > 4 * torch.finfo(q.dtype).eps * tau.abs()).any())
        if not int(job.transport.all_reduce(torch.tensor([int(moves)], device=q.device), label, "max")):
            break
    return tau


def _newton_step(
    job: Job, normaliser: Threshold, q: Tensor, k: Tensor, tau: Float[Tensor, "*batch rows"], label: str
) -> Float[Tensor, "*batch rows"]:
    """How far the threshold moves: (sum of weights - 1) / -(the derivative of that sum)."""
    total, slope = torch.zeros_like(tau), torch.zeros_like(tau)

    def visit(rectangle: TiledRectangle, tile: Tile, tensors: list[Tensor], scores: Tensor) -> None:
        del tensors
        excess = (normaliser.slope * scores - rows_of(tau, rectangle, tile).unsqueeze(-1)).clamp_min(0)
        excess = excess.masked_fill(scores == NEVER, 0)
        rows_of(total, rectangle, tile).add_(excess.pow(normaliser.power).sum(-1))
        rows_of(slope, rectangle, tile).add_((excess if normaliser.power == 2 else (excess > 0).to(q.dtype)).sum(-1))

    visit_tiles(job, q, k, label, visit)
    total, slope = (job.over_ranks(t, label) for t in (total, slope))
    return torch.where(tau == NEVER, 0.0, (total - 1) / (normaliser.power * slope))


def _best_key(job: Job, q: Tensor, k: Tensor, label: str) -> Float[Tensor, "*batch rows"]:
    """The position of the best key of each row, the first of equals; -1 in an empty row, NaN in one with NaN."""
    best = torch.full(job.row_shape, NEVER, dtype=q.dtype, device=q.device)
    key = torch.full(job.row_shape, job.formula.size.m, dtype=torch.int64, device=q.device)

    def visit(rectangle: TiledRectangle, tile: Tile, tensors: list[Tensor], scores: Tensor) -> None:
        part, at = scores.max(-1)
        first = (scores == part.unsqueeze(-1)).to(torch.uint8).argmax(-1)
        place = rectangle.places(tile).positions(q.device)[first]
        part = part.masked_fill(rectangle.broken_rows(tensors, tile, scores), math.nan)
        rows, keys = rows_of(best, rectangle, tile), rows_of(key, rectangle, tile)
        better = (part > rows) | ((part == rows) & (place < keys)) | part.isnan()
        keys.copy_(torch.where(better, place, keys))
        rows.copy_(torch.where(better, part, rows))
        del at

    visit_tiles(job, q, k, label, visit)
    if job.keys_stay:
        top = job.over_ranks(best, label, "max")
        key = -job.over_ranks(torch.where(best == top, -key, -job.formula.size.m), label, "max")
        best = top
    chosen = torch.where(best == NEVER, torch.full_like(key, -1), key).to(torch.float64)
    return chosen.masked_fill(best.isnan(), math.nan)


def _drawn_key(
    job: Job, q: Tensor, k: Tensor, draws: Float[Tensor, "*batch rows"], label: str
) -> Float[Tensor, "*batch rows"]:
    """The position of the key that each row draws from its softmax: where the sum of weights passes its number.

    The first trip finds the weight of each run of keys, and so the run in which a row's key lies; the second the key.
    """
    if job.keys_stay:
        raise NotNormalisedError(
            f"{job.formula.spec.normaliser} draws from whole rows: shard the queries too, not the keys alone"
        )
    runs = sorted({at.at_cols.start for step in job.plan.steps for at in step.rectangles})
    number = {start: i for i, start in enumerate(runs)}
    masses = q.new_full((*job.row_shape, max(1, len(runs))), NEVER)

    def weigh(rectangle: TiledRectangle, tile: Tile, tensors: list[Tensor], scores: Tensor) -> None:
        part = torch.logsumexp(scores, -1).masked_fill(rectangle.broken_rows(tensors, tile, scores), math.nan)
        rows = rows_of(masses, rectangle, tile, 2)[..., number[rectangle.at.at_cols.start]]
        rows.copy_(torch.logaddexp(rows, part))

    visit_tiles(job, q, k, label, weigh)
    total = torch.logsumexp(masses, -1)
    empty = total == NEVER
    base = torch.where(empty, 0.0, total)
    upto = torch.exp(masses - base.unsqueeze(-1)).cumsum(-1)
    target = draws * upto[..., -1]
    run = (upto <= target.unsqueeze(-1)).sum(-1).clamp_max(max(0, len(runs) - 1))
    before = torch.nn.functional.pad(upto, (1, 0)).gather(-1, run.unsqueeze(-1)).squeeze(-1)
    key = torch.full(job.row_shape, -1, dtype=torch.int64, device=q.device)
    passed = before.clone()

    def find(rectangle: TiledRectangle, tile: Tile, tensors: list[Tensor], scores: Tensor) -> None:
        del tensors
        here = rows_of(run, rectangle, tile) == number[rectangle.at.at_cols.start]
        sums = rows_of(passed, rectangle, tile)
        below = sums.unsqueeze(-1) + torch.exp(scores - rows_of(base, rectangle, tile).unsqueeze(-1)).cumsum(-1)
        keys, wanted = rows_of(key, rectangle, tile), rows_of(target, rectangle, tile)
        at = (below <= wanted.unsqueeze(-1)).sum(-1)
        seen = scores != NEVER
        last = (seen * torch.arange(1, seen.shape[-1] + 1, device=q.device)).argmax(-1)
        places = rectangle.places(tile).positions(q.device)
        inside = at < scores.shape[-1]
        found = torch.where(inside, places[at.clamp_max(len(places) - 1)], places[last])
        # Rounding may leave the number just behind the last key of the run: then that key it is.
        open_row = here & seen.any(-1) & (sums <= wanted)
        keys.copy_(torch.where(open_row, found, keys))
        sums.copy_(torch.where(here & inside, math.inf, below[..., -1]).where(here, sums))

    visit_tiles(job, q, k, label, find, whole_rows=True)
    chosen = torch.where(empty, torch.full_like(key, -1), key).to(torch.float64)
    return chosen.masked_fill(total.isnan(), math.nan)


# Output and gradients


@dataclass(slots=True, eq=False)
class Pooled:
    """The output, the row statistic, and sum g v / sum g with g of the normaliser's Jacobian, for gradients."""

    out: Float[Tensor, "*batch rows dim_v"]
    statistic: Float[Tensor, "*batch rows"]
    centre: Float[Tensor, "*batch rows dim_v"]


@torch.no_grad()
def pool(
    job: Job,
    q: Float[Tensor, "... rows dim_q"],
    k: Float[Tensor, "... keys dim_k"],
    v: Float[Tensor, "... keys dim_v"],
    draws: Float[Tensor, "*batch rows"] | None,
    statistic: Float[Tensor, "*batch rows"] | None = None,
) -> Pooled:
    """weights @ v for the queries of this rank. A row statistic that is known saves the trips to find it."""
    q = upcast(q)
    if isinstance(job.formula.spec.normaliser, Softmax):
        return _pool_softmax(job, q, k, v)
    if statistic is None:
        statistic = row_statistic(job, q, k, draws, "attend: row statistic")
    wide = q.new_zeros(*job.row_shape, v.shape[-1])
    sums = Sums(wide, torch.zeros_like(wide), q.new_zeros(*job.row_shape, 1))

    def visit(step: Step, block: list[Tensor]) -> None:
        keys, values = job.keys_and_values(block, q.dtype)
        for at in step.rectangles:
            rows = Sums(*(at.rows.take(t, -2) for t in sums.tensors()))
            spec, part = job.formula.part(job.whole, at), Operands.cut(at, q, keys, values)
            add_sums(job.formula, spec, at, part, at.rows.take(statistic, -1), rows)

    job.trip([k, v], "attend", visit)
    out, centre, total = (job.over_ranks(t, "attend: rows") for t in sums.tensors())
    return Pooled(out, statistic, torch.where(total == 0, 0.0, centre / total))


def _pool_softmax(job: Job, q: Tensor, k: Tensor, v: Tensor) -> Pooled:
    """Softmax attention, merged block by block by the log-sum-exp: one trip of the keys."""
    out = q.new_zeros(*job.row_shape, v.shape[-1])
    lse = q.new_full(job.row_shape, NEVER)
    begun: set[int] = set()  # runs of queries that have a block already: the first needs no merge

    def visit(step: Step, block: list[Tensor]) -> None:
        keys, values = job.keys_and_values(block, q.dtype)
        for at in step.rectangles:
            spec, part = job.formula.part(job.whole, at), Operands.cut(at, q, keys, values)
            if kernel_serves(job.formula, spec, part):
                part_out, part_lse = pool_by_kernel(job.formula, spec, part)
            else:
                part_out, part_lse = pool_by_tiles(job.formula, spec, at, part)
            rows, row_lse = at.rows.take(out, -2), at.rows.take(lse, -1)
            if at.rows.start in begun:
                merge_rows(rows, row_lse, part_out, part_lse)
            else:
                rows.copy_(part_out)
                row_lse.copy_(part_lse)
                begun.add(at.rows.start)

    job.trip([k, v], "attend", visit)
    if job.keys_stay:
        total = merged_lse(job, lse, "attend: rows")
        share = torch.exp(lse - torch.where(total == NEVER, 0.0, total)).unsqueeze(-1)
        part = torch.where(out.isfinite() | share.isnan(), out * share, out)
        out, lse = job.transport.all_reduce(part, "attend: rows"), total
    return Pooled(out, lse, out)


# (formula, its part, rectangle, operands, leaves) -> what the rectangle adds to the gradients of the leaves
RectangleGradient = Callable[[Formula, Spec, Rectangle, Operands, Sequence[Tensor]], list[Tensor | None]]


def backward_trip(
    job: Job,
    q: Float[Tensor, "... rows dim_q"],
    keys: Sequence[Float[Tensor, "... keys dim"]],
    params: Sequence[Tensor],
    gradient: RectangleGradient,
) -> list[Tensor]:
    """The gradients of queries, of keys (and values, if given), and of the learned tensors, these summed over ranks."""
    q = q.detach()
    leaves = [param.detach().requires_grad_() for param in params]
    with torch.enable_grad():
        formula = job.with_params(leaves).formula
    grad_q = torch.zeros_like(q, memory_format=torch.contiguous_format)
    grad_params = [torch.zeros_like(leaf) for leaf in leaves]
    home = [torch.zeros(t.shape, dtype=q.dtype, device=t.device) for t in keys]
    groups = (job.group, job.value_group or job.group)[: len(keys)]

    def visit(step: Step, block: list[Tensor]) -> list[Tensor]:
        prepared = job.keys_and_values([block[0], block[-1]], q.dtype)
        made = [torch.zeros_like(t, memory_format=torch.contiguous_format) for t in prepared[: len(keys)]]
        for at in step.rectangles:
            cut = Operands.cut(at, q, *prepared)
            tensors = [t.detach().requires_grad_() for t in (cut.q, cut.k, cut.v)]
            with torch.enable_grad():
                spec = formula.part(job.whole, at)
            wanted = [*tensors[: 1 + len(keys)], *leaves]
            grads = gradient(formula, spec, at, Operands(*tensors), wanted)
            totals = [at.rows.take(grad_q, -2), *(at.cols.take(t, -2) for t in made), *grad_params]
            for total, grad in zip(totals, grads, strict=True):
                if grad is not None:
                    total.add_(grad)
        return [summed_groups(t, group) for t, group in zip(made, groups, strict=True)]

    job.trip(keys, "backward", visit, home)
    transport = job.transport
    grad_params = [transport.all_reduce(g, "backward: learned tensors") for g in grad_params]
    if job.keys_stay:
        grad_q = transport.all_reduce(grad_q, "backward: queries")
    if job.keys_shared:
        home = [transport.all_reduce(g, "backward: keys") for g in home]
    return [grad_q, *home, *grad_params]


def _pooling_gradients(rows: RowGradient) -> RectangleGradient:
    """The part of a rectangle in the gradients of weights @ values: by the kernel if it can, else by tiles."""

    def gradient(
        formula: Formula, spec: Spec, at: Rectangle, part: Operands, wanted: Sequence[Tensor]
    ) -> list[Tensor | None]:
        own = rows.cut(at.rows)
        if kernel_serves_gradients(formula, spec, part):
            return kernel_gradients(formula, spec, part, own, wanted)
        return tile_gradients(formula, spec, at, part, pooling_gradient(own), wanted)

    return gradient


class RingAttention(torch.autograd.Function):
    """weights @ values over a ring. Every rank runs the same steps, forward and backward."""

    @staticmethod
    def forward(
        ctx: Any, job: Job, draws: Tensor | None, q: Tensor, k: Tensor, v: Tensor, *params: Tensor
    ) -> tuple[Tensor, Tensor]:
        pooled = pool(job, q, k, v, draws)
        ctx.job = job
        ctx.save_for_backward(q, k, v, pooled.out, pooled.centre, pooled.statistic, *params)
        ctx.mark_non_differentiable(pooled.statistic)
        return pooled.out, pooled.statistic

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        refuse_second_derivative()
        q, k, v, out, centre, statistic, *params = ctx.saved_tensors
        rows = RowGradient(grad.contiguous(), out, centre, statistic)
        grads = backward_trip(ctx.job, upcast(q), [k, v], params, _pooling_gradients(rows))
        needs = ctx.needs_input_grad[2:]
        inputs = (q, k, v, *params)
        return (
            None,
            None,
            *(g.to(t.dtype) if needed else None for g, t, needed in zip(grads, inputs, needs, strict=True)),
        )


def refuse_second_derivative() -> None:
    """Raise CallError in a backward pass that is itself recorded."""
    if torch.is_grad_enabled():
        raise CallError(
            "attention over several processes can be differentiated once, not twice: "
            "call backward without create_graph, or gather the tensors first"
        )


def attend(
    job: Job, q: Tensor, k: Tensor, v: Tensor, draws: Float[Tensor, "*batch rows"] | None
) -> tuple[Float[Tensor, "*batch rows dim_v"], Float[Tensor, "*batch rows"]]:
    """The output for the queries of this rank, in their dtype, and the row statistic. Differentiable once."""
    params = learned_tensors(job.formula.spec) if job.formula.learned else []
    out, statistic = RingAttention.apply(job, draws, q, k, v, *params)  # pyright: ignore[reportGeneralTypeIssues]
    return out.to(q.dtype), statistic


def row_draws(
    normaliser: Normaliser, lead: tuple[int, ...], size: Size, like: Tensor
) -> Int[Tensor, "*batch queries 1"] | None:
    """The random numbers of all rows, the same on every rank whose generator is in the same state."""
    operands = normaliser.operands(lead, size.n, like)
    return operands[0].tensor if operands else None
