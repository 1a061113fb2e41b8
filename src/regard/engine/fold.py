"""The loop over tiles: a differentiable one for outputs, and one without gradients for reducers.

Both compute a tile, use it and forget it. The differentiable loop computes it again in the backward pass.
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
from jaxtyping import Shaped
from torch import Tensor

from regard.engine.costs import REDUCER_TILE_OVERHEAD
from regard.engine.reducers import Block, Reducer
from regard.engine.threads import parallel_map
from regard.engine.tiles import Problem
from regard.operands import Axis, Operand, Size, Span, Tile
from regard.tracing import is_tracing, without_autocast

MIN_WORKER_TILES = 4  # with fewer, a worker is not worth its start
Program = Callable[[Sequence[Tensor], Tile], tuple[Tensor, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """One output of a program: its axis, its number of columns, and its value for rows that are in no tile."""

    axis: Axis
    width: int
    fill: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class TileJob:
    """A program to run over tiles: it maps the tile's operands to the tile's part of each output."""

    program: Program
    operands: tuple[Operand, ...]
    outputs: tuple[Output, ...]
    tiles: tuple[Tile, ...]
    lead: tuple[int, ...]
    size: Size
    dtype: torch.dtype

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors of the operands."""
        return tuple(operand.tensor for operand in self.operands)

    def with_tensors(self, tensors: Sequence[Tensor]) -> tuple[Operand, ...]:
        """The operands with other tensors."""
        return tuple(Operand(t, o.axis) for t, o in zip(tensors, self.operands, strict=True))

    def shape(self, output: Output) -> tuple[int, ...]:
        """The shape of a whole output, (*lead, n or m, width)."""
        return (*self.lead, self.size.n if output.axis is Axis.QUERY else self.size.m, output.width)


def run_job(job: TileJob) -> tuple[Tensor, ...]:
    """All outputs of a job. They are differentiable, and no tile is kept for that."""
    needs = torch.is_grad_enabled() and any(t.requires_grad for t in job.tensors)
    if is_tracing() or not needs:
        return _assemble(job, job.tensors)
    return TileMap.apply(job, *job.tensors)  # pyright: ignore[reportReturnType]


def _assemble(job: TileJob, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """All outputs, put together from the tiles' parts."""
    operands = job.with_tensors(tensors)
    single = _single_tile(job)
    if single is not None:
        parts = job.program([single.cut(o) for o in operands], single)
        return tuple(p.expand(job.shape(out)) for p, out in zip(parts, job.outputs, strict=True))
    results = [torch.full(job.shape(out), out.fill, dtype=job.dtype, device=job.size.device) for out in job.outputs]
    if is_tracing() and not torch.compiler.is_compiling():
        for tile in job.tiles:
            parts = job.program([tile.cut(o) for o in operands], tile)
            pairs = zip(results, parts, job.outputs, strict=True)
            results = [_with_part(result, part, out, tile) for result, part, out in pairs]
        return tuple(results)
    for tile in job.tiles:
        parts = job.program([tile.cut(o) for o in operands], tile)
        for result, part, out in zip(results, parts, job.outputs, strict=True):
            if out.axis is Axis.QUERY:
                tile.rows.take(tile.heads(result), -2).copy_(part)
            else:
                tile.cols.add(tile.heads(result), -2, part)
    return tuple(results)


def _with_part(
    result: Shaped[Tensor, "*batch rows width"], part: Shaped[Tensor, "..."], output: Output, tile: Tile
) -> Shaped[Tensor, "*batch rows width"]:
    """A new output with a tile's part in it: function transforms do not allow writing in place."""
    span = tile.rows if output.axis is Axis.QUERY else tile.cols
    shape = (*(cut.stop - cut.start for cut in tile.lead), len(span), output.width)
    if span.index is not None:
        empty = torch.zeros((*shape[:-2], result.shape[-2], output.width), dtype=part.dtype, device=part.device)
        part, span, shape = empty.index_add(-2, span.index, part.expand(shape)), Span(0, result.shape[-2]), empty.shape
    bounds = [(cut.start, cut.stop) for cut in tile.lead] + [(span.start, span.stop)]
    edges = [(low, length - high) for (low, high), length in zip(bounds, result.shape[:-1], strict=True)]
    widths = [width for edge in reversed([*edges, (0, 0)]) for width in edge]
    inside = torch.nn.functional.pad(torch.ones(shape, dtype=torch.bool, device=part.device), widths)
    moved = torch.nn.functional.pad(part.expand(shape), widths)
    return torch.where(inside, moved, result) if output.axis is Axis.QUERY else result + moved


def _single_tile(job: TileJob) -> Tile | None:
    """The only tile of a job if it covers the whole matrix, else None."""
    if len(job.tiles) != 1:
        return None
    (tile,) = job.tiles
    all_rows = len(tile.rows) == job.size.n and all(
        cut.stop - cut.start == length for cut, length in zip(tile.lead, job.lead, strict=True)
    )
    all_keys = all(out.axis is Axis.QUERY for out in job.outputs) or len(tile.cols) == job.size.m
    return tile if all_rows and all_keys else None


class TileMap(torch.autograd.Function):
    """A job whose tiles are computed again in the backward pass."""

    @staticmethod
    def forward(ctx: Any, job: TileJob, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.job = job
        ctx.save_for_backward(*tensors)
        return _assemble(job, tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        job: TileJob = ctx.job
        tensors = ctx.saved_tensors
        wanted = [i for i, needed in enumerate(ctx.needs_input_grad[1:]) if needed]
        result: list[Tensor | None] = [None] * len(tensors)
        if torch.is_grad_enabled():  # a second derivative is wanted: the tiles have to stay
            used = [(r, g) for r, g in zip(_assemble(job, tensors), grads, strict=True) if r.requires_grad]
            if not used:  # no query sees a key
                return (None, *result)
            outputs, output_grads = zip(*used, strict=True)
            parts = torch.autograd.grad(
                outputs, [tensors[i] for i in wanted], output_grads, create_graph=True, allow_unused=True
            )
        else:
            with without_autocast():
                parts = _tilewise_gradient(job, tensors, grads, wanted)
        for i, part in zip(wanted, parts, strict=True):
            result[i] = part
        return (None, *result)


def _tilewise_gradient(
    job: TileJob, tensors: Sequence[Tensor], grads: Sequence[Tensor], wanted: Sequence[int]
) -> list[Tensor]:
    """The gradients of the wanted operands, summed tile by tile."""
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
            (p, _gradient_of_part(tile, out, g, p))
            for p, out, g in zip(parts, job.outputs, grads, strict=True)
            if p.requires_grad
        ]
        if not used:
            continue
        part_grads = torch.autograd.grad(
            [p for p, _ in used], [leaves[i] for i in wanted], [g for _, g in used], allow_unused=True
        )
        for i, part in zip(wanted, part_grads, strict=True):
            if part is not None:
                tile.add(totals[i], part)
    return [totals[i].tensor for i in wanted]


def _gradient_of_part(
    tile: Tile, output: Output, grad: Shaped[Tensor, "... rows width"], part: Shaped[Tensor, "*shape"]
) -> Shaped[Tensor, "*shape"]:
    """The gradient of a tile's part, from that of the whole output."""
    span = tile.rows if output.axis is Axis.QUERY else tile.cols
    return span.take(tile.heads(grad), -2).sum_to_size(part.shape)


def fold(problem: Problem, reducers: Sequence[Reducer[Any]], tile_scores: int) -> list[Any]:
    """The answers of several reducers from one pass over the tiles, divided between workers.

    `tile_scores` is the number of scores in memory at a time, in all workers together. There are as many workers as
    torch has threads, and inside a worker torch uses one: a tile takes many small steps, and splitting each of them
    costs more than it gains. The states of workers that saw the same columns are merged at the end.
    """
    count = torch.get_num_threads() if problem.size.device.type == "cpu" and not is_tracing() else 1
    tiles = list(problem.tiles(max(1, tile_scores // count), overhead=REDUCER_TILE_OVERHEAD, workers=count))
    wholes = [r.empty(problem.lead, problem.size.n, problem.size, problem.dtype) for r in reducers]
    count = min(count, len(tiles) // MIN_WORKER_TILES)
    if count < 2:
        states = fold_tiles(problem, reducers, tiles, tile_scores, wholes, _largest_tile(tiles, tile_scores))
    else:
        states_of_workers = _fold_in_workers(
            problem, reducers, _divide_tiles(tiles, count), tile_scores // count, wholes
        )
        states = [_merge_states(r, parts) for r, *parts in zip(reducers, *states_of_workers, strict=True)]
    return [r.finish(state) for r, state in zip(reducers, states, strict=True)]


def _divide_tiles(tiles: Sequence[Tile], count: int) -> list[list[Tile]]:
    """The tiles of each worker: heads of its own where they can be divided evenly."""
    heads = list(dict.fromkeys(_first_head(tile) for tile in tiles))
    if len(heads) % count:
        return [list(tiles[i::count]) for i in range(count)]
    return [[tile for tile in tiles if heads.index(_first_head(tile)) % count == i] for i in range(count)]


def _first_head(tile: Tile) -> tuple[int, ...]:
    """The index of the first head of a tile, which tells workers on different heads apart."""
    return tuple(cut.start for cut in tile.lead)


def _merge_states(reducer: Reducer[Any], parts: Sequence[Any]) -> Any:
    """The merged state of all workers. Workers that wrote into one shared state have nothing to merge."""
    return parts[0] if all(part is parts[0] for part in parts) else reduce(reducer.merge, parts)


def _fold_in_workers(
    problem: Problem,
    reducers: Sequence[Reducer[Any]],
    shares: Sequence[Sequence[Tile]],
    tile_scores: int,
    wholes: list[Any],
) -> list[list[Any]]:
    """The states of each worker after its share of the tiles."""
    stop = Event()
    owners = [{_first_head(tile) for tile in share} for share in shares]
    disjoint = all(one.isdisjoint(two) for one, two in combinations(owners, 2))
    states_of_workers = [wholes if disjoint else _worker_states(reducers, wholes) for _ in shares]

    def work(part: tuple[Sequence[Tile], list[Any]]) -> list[Any]:
        share, states = part
        return fold_tiles(
            problem, reducers, _stoppable(share, stop), tile_scores, states, _largest_tile(share, tile_scores)
        )

    return parallel_map(work, zip(shares, states_of_workers, strict=True), stop)


def _worker_states(reducers: Sequence[Reducer[Any]], wholes: Sequence[Any]) -> list[Any]:
    """States for one of several workers on the same heads. A row has one writer; states of columns are copied."""
    return [whole if r.by_row else whole.clone() for r, whole in zip(reducers, wholes, strict=True)]


def _stoppable(tiles: Sequence[Tile], stop: Event) -> Iterable[Tile]:
    """The tiles until `stop` is set."""
    for tile in tiles:
        if stop.is_set():
            return
        yield tile


def _largest_tile(tiles: Iterable[Tile], tile_scores: int) -> int:
    """The number of scores in the largest tile, at most `tile_scores`: a larger one is cut."""
    sizes = (math.prod(_tile_lead(tile)) * len(tile.rows) * len(tile.cols) for tile in tiles)
    return min(tile_scores, max(sizes, default=0))


def _tile_lead(tile: Tile) -> tuple[int, ...]:
    """The leading shape of a tile."""
    return tuple(cut.stop - cut.start for cut in tile.lead)


@torch.no_grad()
def fold_tiles(
    problem: Problem,
    reducers: Sequence[Reducer[Any]],
    tiles: Iterable[Tile],
    tile_scores: int,
    wholes: list[Any],
    capacity: int = 0,
) -> list[Any]:
    """The states `wholes` of the whole matrix, after an update with some tiles, in place.

    `capacity` is the number of scores in the largest tile, if that is known.
    """
    buffers = Buffers(problem, capacity)
    for tile in tiles:
        lead = _tile_lead(tile)
        states: list[Any] = [
            None if r.by_row else _state_of_heads(w, tile) for r, w in zip(reducers, wholes, strict=True)
        ]
        for block in _blocks(problem, tile, lead, tile_scores, buffers):
            states = [_update(r, state, block) for r, state in zip(reducers, states, strict=True)]
        for r, whole, state in zip(reducers, wholes, states, strict=True):
            if r.by_row:
                _write_rows(whole, state, tile)
    return wholes


def _update(reducer: Reducer[Any], state: Any, block: Block) -> Any:
    """The state of a reducer after one more block; None stands for the state before the first."""
    if state is not None:
        return reducer.step(state, block)
    return reducer.first(block)


class Buffers:
    """Two blocks of memory that all tiles share: allocating new ones would cost more than the arithmetic.

    `capacity` is the number of scores in the largest tile: if it is known, the memory is allocated once.
    """

    def __init__(self, problem: Problem, capacity: int = 0) -> None:
        self.problem = problem
        self.capacity = capacity
        self.memory = torch.empty(2, 0)

    def take(self, shape: tuple[int, ...]) -> list[Tensor]:
        """Two tensors of this shape, valid until the next call."""
        count = math.prod(shape)
        if self.memory.shape[1] < count:
            capacity, device = max(count, self.capacity), self.problem.size.device
            self.memory: Tensor = torch.empty(2, capacity, dtype=self.problem.dtype, device=device)
        return [part[:count].view(shape) for part in self.memory]


def _blocks(problem: Problem, tile: Tile, lead: tuple[int, ...], tile_scores: int, buffers: Buffers) -> Iterable[Block]:
    """The blocks of a tile: one, unless its rows are too long for `tile_scores` scores."""
    count, width = math.prod(lead) * len(tile.rows), len(tile.cols)
    if count * width <= tile_scores or not problem.spec.normaliser.mergeable:
        yield _block(problem, tile, lead, buffers)
        return
    parts = list(_column_parts(tile, max(1, tile_scores // count)))
    statistic = None
    for part in parts:
        scores = problem.scores([part.cut(o) for o in problem.operands], part)
        part_statistic = problem.spec.normaliser.statistic(scores, part.cols)
        statistic = part_statistic if statistic is None else torch.logaddexp(statistic, part_statistic)
    for part in parts:
        scores = problem.scores([part.cut(o) for o in problem.operands], part)
        weights = problem.spec.normaliser.from_statistic(scores, statistic, part.cols)  # pyright: ignore[reportArgumentType]
        yield Block(
            scores, weights, part.rows, part.cols, problem.size, gaps=problem.gaps(part), partial=True, lead=tile.lead
        )


def _column_parts(tile: Tile, width: int) -> Iterable[Tile]:
    """The tile cut into parts of at most `width` columns."""
    for low in range(0, len(tile.cols), width):
        high = min(low + width, len(tile.cols))
        overlaps = ((max(a, low) - low, min(b, high) - low) for a, b in tile.masked)
        yield Tile(tile.lead, tile.rows, tile.cols.part(low, high), tuple((a, b) for a, b in overlaps if a < b))


def tile_block(problem: Problem, tile: Tile, buffers: Buffers | None = None) -> Block:
    """The scores and weights of a tile, valid until the buffers are used again."""
    return _block(problem, tile, _tile_lead(tile), Buffers(problem) if buffers is None else buffers)


def _block(problem: Problem, tile: Tile, lead: tuple[int, ...], buffers: Buffers) -> Block:
    """The scores and weights of a tile, computed in `buffers`."""
    tensors = [tile.cut(o) for o in problem.operands]
    shape = (*lead, len(tile.rows), len(tile.cols))
    first, second = buffers.take(shape)
    scores = problem.scores(tensors, tile, out=first)
    weights = problem.weights(scores, tensors, tile, out=second if scores.shape == shape else None)
    own = scores.data_ptr() == first.data_ptr()
    if scores.shape != shape:  # a score of positions alone has no heads
        scores, weights = scores.expand(shape), weights.expand(shape)
    return Block(
        scores, weights, tile.rows, tile.cols, problem.size, gaps=problem.gaps(tile), writable=own, lead=tile.lead
    )


def _state_of_heads(state: Any, tile: Tile) -> Any:
    """The part of a state that belongs to the tile's heads; a view."""
    if isinstance(state, tuple):
        return tuple(_state_of_heads(part, tile) for part in state)
    return tile.heads(state, trailing=state.dim() - len(tile.lead))


def _write_rows(whole: Any, state: Any, tile: Tile) -> None:
    """Write the state of a tile's rows into the whole state."""
    for one, two in zip(whole, state, strict=True) if isinstance(whole, tuple) else ((whole, state),):
        one[(*tile.lead, tile.rows.place)] = two
