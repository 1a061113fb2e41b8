"""The loop over tiles: one that is differentiable, and one that only asks questions.

Both make a tile, use it and forget it. The differentiable one makes it again in the backward pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from threading import Event
from typing import Any

import torch
from torch import Tensor

from regard.engine.reducers import Block, Reducer
from regard.engine.threads import parallel_map
from regard.engine.tiles import Problem
from regard.operands import Axis, Operand, Size, Span, Tile
from regard.tracing import is_tracing, without_autocast

FEWEST_TILES = 4  # a worker with fewer is not worth its start
SURVEY_CALL = 1 << 17  # a pass of questions makes many small steps on each tile
Program = Callable[[Sequence[Tensor], Tile], tuple[Tensor, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """One result of a program: along which axis it lies, how wide it is, and what is there where no tile was."""

    axis: Axis
    width: int
    fill: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A program to be run over tiles."""

    program: Program
    operands: tuple[Operand, ...]
    outputs: tuple[Output, ...]
    tiles: tuple[Tile, ...]
    lead: tuple[int, ...]
    size: Size
    dtype: torch.dtype

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(operand.tensor for operand in self.operands)

    def with_tensors(self, tensors: Sequence[Tensor]) -> tuple[Operand, ...]:
        return tuple(Operand(t, o.axis) for t, o in zip(tensors, self.operands, strict=True))

    def shape(self, output: Output) -> tuple[int, ...]:
        return (*self.lead, self.size.n if output.axis is Axis.QUERY else self.size.m, output.width)


def run(job: Job) -> tuple[Tensor, ...]:
    """All outputs of a job; differentiable, holding no tile."""
    needs = torch.is_grad_enabled() and any(t.requires_grad for t in job.tensors)
    if is_tracing() or not needs:
        return _assemble(job, job.tensors)
    return TileMap.apply(job, *job.tensors)  # pyright: ignore[reportReturnType]


def _assemble(job: Job, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    operands = job.with_tensors(tensors)
    whole = _whole(job)
    if whole is not None:  # nothing to put together, which function transforms could not follow
        parts = job.program([whole.cut(o) for o in operands], whole)
        return tuple(p.expand(job.shape(out)) for p, out in zip(parts, job.outputs, strict=True))
    results = [torch.full(job.shape(out), out.fill, dtype=job.dtype, device=job.size.device) for out in job.outputs]
    if is_tracing() and not torch.compiler.is_compiling():
        for tile in job.tiles:
            parts = job.program([tile.cut(o) for o in operands], tile)
            pairs = zip(results, parts, job.outputs, strict=True)
            results = [_placed(result, part, out, tile) for result, part, out in pairs]
        return tuple(results)
    for tile in job.tiles:
        parts = job.program([tile.cut(o) for o in operands], tile)
        for result, part, out in zip(results, parts, job.outputs, strict=True):
            if out.axis is Axis.QUERY:
                tile.rows.take(tile.heads(result), -2).copy_(part)
            else:
                tile.cols.add(tile.heads(result), -2, part)
    return tuple(results)


def _placed(result: Tensor, part: Tensor, output: Output, tile: Tile) -> Tensor:
    """A tile's part put into the whole without writing over anything, which function transforms do not allow."""
    span = tile.rows if output.axis is Axis.QUERY else tile.cols
    shape = (*(cut.stop - cut.start for cut in tile.lead), len(span), output.width)
    if span.index is not None:
        empty = torch.zeros((*shape[:-2], result.shape[-2], output.width), dtype=part.dtype, device=part.device)
        part, span, shape = empty.index_add(-2, span.index, part.expand(shape)), Span(0, result.shape[-2]), empty.shape
    bounds = [(cut.start, cut.stop) for cut in tile.lead] + [(span.start, span.stop)]
    edges = [(low, length - high) for (low, high), length in zip(bounds, result.shape[:-1], strict=True)]
    widths = [width for edge in reversed([*edges, (0, 0)]) for width in edge]
    here = torch.nn.functional.pad(torch.ones(shape, dtype=torch.bool, device=part.device), widths)
    moved = torch.nn.functional.pad(part.expand(shape), widths)
    return torch.where(here, moved, result) if output.axis is Axis.QUERY else result + moved


def _whole(job: Job) -> Tile | None:
    """The one tile that is all of the matrix, if that is how the job is cut."""
    if len(job.tiles) != 1:
        return None
    (tile,) = job.tiles
    everywhere = len(tile.rows) == job.size.n and all(
        cut.stop - cut.start == length for cut, length in zip(tile.lead, job.lead, strict=True)
    )
    keyed = all(out.axis is Axis.QUERY for out in job.outputs) or len(tile.cols) == job.size.m
    return tile if everywhere and keyed else None


class TileMap(torch.autograd.Function):
    """A job whose tiles are made again in the backward pass."""

    @staticmethod
    def forward(ctx: Any, job: Job, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.job = job
        ctx.save_for_backward(*tensors)
        return _assemble(job, tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        job: Job = ctx.job
        tensors = ctx.saved_tensors
        wanted = [i for i, needed in enumerate(ctx.needs_input_grad[1:]) if needed]
        found: list[Tensor | None] = [None] * len(tensors)
        if torch.is_grad_enabled():  # a second derivative is wanted: the tiles have to stay
            used = [(r, g) for r, g in zip(_assemble(job, tensors), grads, strict=True) if r.requires_grad]
            if not used:  # no query sees a key
                return (None, *found)
            results, asked = zip(*used, strict=True)
            parts = torch.autograd.grad(
                results, [tensors[i] for i in wanted], asked, create_graph=True, allow_unused=True
            )
        else:
            with without_autocast():
                parts = _tilewise_gradient(job, tensors, grads, wanted)
        for i, part in zip(wanted, parts, strict=True):
            found[i] = part
        return (None, *found)


def _tilewise_gradient(
    job: Job, tensors: Sequence[Tensor], grads: Sequence[Tensor], wanted: Sequence[int]
) -> list[Tensor]:
    operands = job.with_tensors(tensors)
    totals = {
        i: Operand(torch.zeros_like(tensors[i], memory_format=torch.contiguous_format), job.operands[i].axis)
        for i in wanted
    }
    for tile in job.tiles:
        leaves = [tile.cut(o).detach() for o in operands]
        for i in wanted:
            leaves[i].requires_grad_()
        with torch.enable_grad():
            parts = job.program(leaves, tile)
        used = [
            (p, _grad_of(tile, out, g, p))
            for p, out, g in zip(parts, job.outputs, grads, strict=True)
            if p.requires_grad
        ]
        if not used:
            continue
        found = torch.autograd.grad(
            [p for p, _ in used], [leaves[i] for i in wanted], [g for _, g in used], allow_unused=True
        )
        for i, part in zip(wanted, found, strict=True):
            if part is not None:
                tile.add(totals[i], part)
    return [totals[i].tensor for i in wanted]


def _grad_of(tile: Tile, output: Output, grad: Tensor, part: Tensor) -> Tensor:
    span = tile.rows if output.axis is Axis.QUERY else tile.cols
    return span.take(tile.heads(grad), -2).sum_to_size(part.shape)


def survey(problem: Problem, reducers: Sequence[Reducer[Any]], cap: int) -> list[Any]:
    """Ask several questions in one pass over the tiles, shared among as many workers as torch has threads.

    A worker is a thread in which torch uses one: a tile takes many small steps, and to split each of them between
    threads costs more than it gains. What workers learn of the same columns is merged at the end.
    """
    count = torch.get_num_threads() if problem.size.device.type == "cpu" and not is_tracing() else 1
    tiles = list(problem.tiles(max(1, cap // count), call=SURVEY_CALL, workers=count))
    wholes = [r.empty(problem.lead, problem.size.n, problem.size, problem.dtype) for r in reducers]
    count = min(count, len(tiles) // FEWEST_TILES)
    if count < 2:
        states = survey_tiles(problem, reducers, tiles, cap, wholes, _largest(tiles, cap))
    else:
        found = _by_workers(problem, reducers, _shares(tiles, count), cap // count, wholes)
        states = [_together(r, parts) for r, *parts in zip(reducers, *found, strict=True)]
    return [r.finish(state) for r, state in zip(reducers, states, strict=True)]


def _shares(tiles: Sequence[Tile], count: int) -> list[list[Tile]]:
    """Tiles for each worker: heads of its own where they can be dealt out evenly."""
    heads = list(dict.fromkeys(_first_head(tile) for tile in tiles))
    if len(heads) % count:
        return [list(tiles[i::count]) for i in range(count)]
    return [[tile for tile in tiles if heads.index(_first_head(tile)) % count == i] for i in range(count)]


def _first_head(tile: Tile) -> tuple[int, ...]:
    return tuple(cut.start for cut in tile.lead)


def _together(reducer: Reducer[Any], parts: Sequence[Any]) -> Any:
    """What the workers know. Those that wrote into the same state have nothing to merge."""
    return parts[0] if all(part is parts[0] for part in parts) else reduce(reducer.merge, parts)


def _by_workers(
    problem: Problem, reducers: Sequence[Reducer[Any]], shares: Sequence[Sequence[Tile]], cap: int, wholes: list[Any]
) -> list[list[Any]]:
    stop = Event()
    owners = [{_first_head(tile) for tile in share} for share in shares]
    alone = all(one.isdisjoint(two) for one, two in combinations(owners, 2))
    twins = [wholes if alone else _twin(reducers, wholes) for _ in shares]

    def work(part: tuple[Sequence[Tile], list[Any]]) -> list[Any]:
        share, states = part
        return survey_tiles(problem, reducers, _stoppable(share, stop), cap, states, _largest(share, cap))

    return parallel_map(work, zip(shares, twins, strict=True), stop)


def _twin(reducers: Sequence[Reducer[Any]], wholes: Sequence[Any]) -> list[Any]:
    """States for one worker among several on the same heads: a row is written by one only, columns by all."""
    return [whole if r.by_row else whole.clone() for r, whole in zip(reducers, wholes, strict=True)]


def _stoppable(tiles: Sequence[Tile], stop: Event) -> Iterable[Tile]:
    for tile in tiles:
        if stop.is_set():
            return
        yield tile


def _largest(tiles: Iterable[Tile], cap: int) -> int:
    """Scores of the largest tile, which is cut where it is above the cap."""
    sizes = (math.prod(_lead(tile)) * len(tile.rows) * len(tile.cols) for tile in tiles)
    return min(cap, max(sizes, default=0))


def _lead(tile: Tile) -> tuple[int, ...]:
    return tuple(cut.stop - cut.start for cut in tile.lead)


@torch.no_grad()
def survey_tiles(
    problem: Problem,
    reducers: Sequence[Reducer[Any]],
    tiles: Iterable[Tile],
    cap: int,
    wholes: list[Any],
    room: int = 0,
) -> list[Any]:
    """What is learned of some tiles, written into states of the whole matrix. `room`: scores of the largest tile."""
    buffers = Buffers(problem, room)
    for tile in tiles:
        lead = _lead(tile)
        states: list[Any] = [None if r.by_row else _heads_of(w, tile) for r, w in zip(reducers, wholes, strict=True)]
        for block in _blocks(problem, tile, lead, cap, buffers):
            states = [_seen(r, state, block) for r, state in zip(reducers, states, strict=True)]
        for r, whole, state in zip(reducers, wholes, states, strict=True):
            if r.by_row:
                _store(whole, state, tile)
    return wholes


def _seen(reducer: Reducer[Any], state: Any, block: Block) -> Any:
    if state is not None:
        return reducer.step(state, block)
    return reducer.first(block)


class Buffers:
    """Two blocks of memory that every tile uses again: fresh memory would cost more than the arithmetic.

    With room for as many scores from the start, the last tile's need not be kept while a larger one's are made.
    """

    def __init__(self, problem: Problem, room: int = 0) -> None:
        self.problem = problem
        self.room = room
        self.memory = torch.empty(2, 0)

    def take(self, shape: tuple[int, ...]) -> list[Tensor]:
        count = math.prod(shape)
        if self.memory.shape[1] < count:
            room, device = max(count, self.room), self.problem.size.device
            self.memory = torch.empty(2, room, dtype=self.problem.dtype, device=device)
        return [part[:count].view(shape) for part in self.memory]


def _blocks(problem: Problem, tile: Tile, lead: tuple[int, ...], cap: int, buffers: Buffers) -> Iterable[Block]:
    """A tile as blocks: one, unless a single row is longer than the cap allows."""
    count, width = math.prod(lead) * len(tile.rows), len(tile.cols)
    if count * width <= cap or not problem.spec.normaliser.mergeable:
        yield _block(problem, tile, lead, buffers)
        return
    parts = list(_column_parts(tile, max(1, cap // count)))
    statistic = None
    for part in parts:
        scores = problem.scores([part.cut(o) for o in problem.operands], part)
        found = problem.spec.normaliser.statistic(scores, part.cols)
        statistic = found if statistic is None else torch.logaddexp(statistic, found)
    for part in parts:
        scores = problem.scores([part.cut(o) for o in problem.operands], part)
        weights = problem.spec.normaliser.from_statistic(scores, statistic, part.cols)  # pyright: ignore[reportArgumentType]
        yield Block(
            scores, weights, part.rows, part.cols, problem.size, gaps=problem.gaps(part), partial=True, lead=tile.lead
        )


def _column_parts(tile: Tile, width: int) -> Iterable[Tile]:
    for low in range(0, len(tile.cols), width):
        high = min(low + width, len(tile.cols))
        overlaps = ((max(a, low) - low, min(b, high) - low) for a, b in tile.masked)
        yield Tile(tile.lead, tile.rows, tile.cols.part(low, high), tuple((a, b) for a, b in overlaps if a < b))


def whole_rows(problem: Problem, tile: Tile, buffers: Buffers | None = None) -> Block:
    """A tile as questions see it, until the next one is made in the same memory."""
    lead = _lead(tile)
    return _block(problem, tile, lead, Buffers(problem) if buffers is None else buffers)


def _block(problem: Problem, tile: Tile, lead: tuple[int, ...], buffers: Buffers) -> Block:
    tensors = [tile.cut(o) for o in problem.operands]
    shape = (*lead, len(tile.rows), len(tile.cols))
    first, second = buffers.take(shape)
    scores = problem.scores(tensors, tile, out=first)
    weights = problem.weights(scores, tensors, tile, out=second if scores.shape == shape else None)
    own = scores.data_ptr() == first.data_ptr()
    if scores.shape != shape:  # a score of positions alone has no heads
        scores, weights = scores.expand(shape), weights.expand(shape)
    return Block(
        scores, weights, tile.rows, tile.cols, problem.size, gaps=problem.gaps(tile), spendable=own, lead=tile.lead
    )


def _heads_of(state: Any, tile: Tile) -> Any:
    if isinstance(state, tuple):
        return tuple(_heads_of(part, tile) for part in state)
    return tile.heads(state, trailing=state.dim() - len(tile.lead))


def _store(whole: Any, state: Any, tile: Tile) -> None:
    """Write what is known of a tile's rows to its place."""
    for one, two in zip(whole, state, strict=True) if isinstance(whole, tuple) else ((whole, state),):
        one[(*tile.lead, tile.rows.place)] = two
