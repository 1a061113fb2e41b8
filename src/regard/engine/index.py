"""Indexing: blocks of a lazy matrix, with the meaning that the same index has for a tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import index as as_int
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from regard.engine.tile_cuts import head_slices
from regard.engine.tiles import Problem
from regard.errors import ChoiceError, PositionError
from regard.operands import Axis, Operand, Span, Tile, broadcast_shapes

Entry = int | slice | Tensor
NARROW_SHARE = 4  # below 1/4 of the columns, exp(s - lse) of a block costs less than the softmax of whole rows


@dataclass(frozen=True, slots=True, eq=False)
class ParsedIndex:
    """An index into a matrix of the given shape, with one checked entry for each dimension."""

    entries: tuple[Entry, ...]
    shape: tuple[int, ...]

    def numel(self) -> int:
        """The number of weights that the index picks."""
        pairs = zip(self.entries, self.shape, strict=True)
        slices = (len(range(*entry.indices(length))) for entry, length in pairs if isinstance(entry, slice))
        tensors = (tuple(e.shape) for e in self.entries if isinstance(e, Tensor))  # they broadcast with each other
        return math.prod(slices) * math.prod(broadcast_shapes(*tensors))


def full(index: Any, dims: int) -> tuple[Any, ...]:
    """The index with one entry for each dimension, without an ellipsis."""
    parts = index if isinstance(index, tuple) else (index,)
    if any(part is None or isinstance(part, bool) for part in parts):
        msg = "weights are indexed by ints, slices and tensors of positions, not by None or a single bool"
        raise ChoiceError(msg)
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    given = len(parts) - len(dots)
    if len(dots) > 1 or given > dims:
        msg = f"weights have {dims} dimensions, but the index has {given} entries and {len(dots)} ellipses"
        raise ChoiceError(msg)
    at = dots[0] if dots else len(parts)
    return (*parts[:at], *[slice(None)] * (dims - given), *parts[at + len(dots) :])


def parse(index: Any, shape: tuple[int, ...], device: torch.device) -> ParsedIndex:
    """An index, checked against the shape of a matrix."""
    parts = zip(full(index, len(shape)), shape, strict=True)
    return ParsedIndex(tuple(_entry(part, length, device) for part, length in parts), shape)


def _entry(part: Any, length: int, device: torch.device) -> Entry:
    """One part of an index, checked: an int, a slice or a tensor of positions, all within 0 to `length`."""
    if isinstance(part, slice):
        if part.step == 0:
            msg = "weights are sliced with a positive step, as tensors are, not with 0"
            raise ChoiceError(msg)
        start, stop, step = part.indices(length)
        if step < 1:
            msg = f"weights are sliced with a positive step, as tensors are, not with {step}"
            raise ChoiceError(msg)
        return slice(start, max(start, stop), min(step, max(1, length)))
    if isinstance(part, Sequence) and not isinstance(part, str):
        part = torch.as_tensor(part, device=device) if len(part) else torch.empty(0, dtype=torch.int64, device=device)
    if isinstance(part, Tensor):
        part = _positions(part, length)
    if isinstance(part, Tensor) and part.dim():
        if part.numel() and not -length <= int(part.min()) <= int(part.max()) < length:
            msg = f"an index from {-length} to {length - 1} was expected, but it goes from {part.min()} to {part.max()}"
            raise PositionError(msg)
        return torch.where(part < 0, part + length, part).to(device)
    try:
        at = as_int(part)  # pyright: ignore[reportArgumentType]
    except TypeError:
        msg = f"weights are indexed by ints, slices and tensors of positions, not by {part!r}"
        raise ChoiceError(msg) from None
    if not -length <= at < length:
        msg = f"an index from {-length} to {length - 1} was expected, but it is {at}"
        raise PositionError(msg)
    return at % length


def _positions(part: Shaped[Tensor, "..."], length: int) -> Int[Tensor, "..."]:
    """A tensor of positions; for a boolean tensor, the positions that are True."""
    if part.is_floating_point() or part.is_complex():
        msg = f"weights are indexed by ints, slices and tensors of positions, not by a tensor of {part.dtype}"
        raise ChoiceError(msg)
    if part.dtype != torch.bool:
        return part
    if tuple(part.shape) != (length,):
        msg = f"a boolean index needs one entry for each of {length} positions, but its shape is {tuple(part.shape)}"
        raise PositionError(msg)
    return part.nonzero().squeeze(-1)


@torch.no_grad()
def block(
    problem: Problem, picked: ParsedIndex, tile_scores: int, *, transposed: bool = False, has_statistic: bool = False
) -> Float[Tensor, "..."]:
    """The weights that an index picks, from whole rows, because a weight needs its row.

    With `has_statistic` the last operand of the problem is the row statistic: then a weight needs its own score alone,
    and of long rows only the wanted columns are computed. `transposed`: the index is one into the transposed matrix.
    """
    *lead, rows, cols = picked.entries
    rows, cols = (cols, rows) if transposed else (rows, cols)
    if any(isinstance(e, Tensor) for e in lead) and sum(isinstance(e, Tensor) for e in picked.entries) > 1:
        return _points(problem, picked, tile_scores, transposed=transposed)
    if isinstance(rows, Tensor) and isinstance(cols, Tensor):
        return _pairs(select_heads(problem, lead), rows, cols, tile_scores)[tuple(_relative(e) for e in lead)]
    # The smallest box that holds the block; the entries, made relative to it, then pick as they do from a tensor.
    heads, span = select_heads(problem, lead), _span(rows, problem.size.device)
    columns = _span(cols, problem.size.device)
    if has_statistic and len(columns) <= problem.size.m // NARROW_SHARE:
        box = _cells(heads, span, columns, tile_scores)
    else:
        box = _rows(heads, span, cols if not isinstance(cols, Tensor) else cols.unique(), tile_scores)
    return (box.mT if transposed else box)[tuple(_relative(e) for e in picked.entries)]


def _relative(entry: Entry) -> Entry:
    """The entry of an index, relative to the box of what it picks."""
    if isinstance(entry, int):
        return 0
    return slice(None) if isinstance(entry, slice) else entry.unique(return_inverse=True)[1]


def _span(entry: Entry, device: torch.device) -> Span:
    """The positions of an entry, each once and in order."""
    if isinstance(entry, int):
        return Span(entry, entry + 1)
    if isinstance(entry, slice):
        if entry.step == 1:
            return Span(entry.start, entry.stop)
        entry = torch.arange(entry.start, entry.stop, entry.step, device=device)
    return Span(0, 0, entry.unique())


def select_heads(problem: Problem, lead: Sequence[Entry]) -> Problem:
    """The problem of some heads, picked by one entry for each leading dimension."""
    spans = [_span(entry, problem.size.device) for entry in lead]
    if [len(span) for span in spans] == list(problem.lead):
        return problem

    def pick(operand: Operand) -> Operand:
        if operand.axis is Axis.FIXED:
            return operand
        tensor = operand.tensor.expand(*problem.lead, *operand.tensor.shape[-2:])
        for dim, span in enumerate(spans):
            tensor = span.take(tensor, dim)
        return Operand(tensor, operand.axis)

    operands = tuple(pick(operand) for operand in problem.operands)
    selected = tuple(len(span) for span in spans)
    return Problem(problem.spec, selected, problem.size, problem.dtype, problem.nan_safe, operands)


def _points(problem: Problem, picked: ParsedIndex, tile_scores: int, *, transposed: bool) -> Float[Tensor, "..."]:
    """The weights for index tensors on heads and on other dimensions, which go together: computed head by head."""
    dims = [dim for dim, entry in enumerate(picked.entries) if isinstance(entry, Tensor)]
    tensors = torch.broadcast_tensors(*(picked.entries[dim] for dim in dims))  # pyright: ignore[reportArgumentType]
    points = {dim: tensor.reshape(-1) for dim, tensor in zip(dims, tensors, strict=True)}
    leading = [dim for dim in dims if dim < len(problem.lead)]
    head = torch.zeros_like(points[dims[0]])
    for dim in leading:
        head = head * problem.lead[dim] + points[dim]
    plain = [len(range(e.start, e.stop, e.step)) for e in picked.entries if isinstance(e, slice)]
    out = torch.zeros((len(head), *plain), dtype=problem.dtype, device=problem.size.device)
    for number in head.unique().tolist():
        in_head = (head == number).nonzero().squeeze(-1)
        entries = list(picked.entries)
        for dim in dims:
            entries[dim] = int(points[dim][in_head[0]]) if dim in leading else points[dim][in_head]
        part = block(problem, ParsedIndex(tuple(entries), picked.shape), tile_scores, transposed=transposed)
        if len(dims) > len(leading):
            part = part.movedim(_index_dim(entries), 0)
        out[in_head] = part
    at = _index_dim(picked.entries)
    out = out.movedim(0, at)
    return out.reshape(*out.shape[:at], *tensors[0].shape, *out.shape[at + 1 :])


def _index_dim(entries: Sequence[Entry]) -> int:
    """The dimension of the result that belongs to the index tensors: the first, unless they are adjacent."""
    kept = [isinstance(entry, Tensor) for entry in entries if not isinstance(entry, int)]
    first, last = kept.index(True), len(kept) - kept[::-1].index(True)
    return first if all(kept[first:last]) else 0


def _pairs(
    problem: Problem, rows: Int[Tensor, "..."], cols: Int[Tensor, "..."], tile_scores: int
) -> Float[Tensor, "..."]:
    """The weights at the pairs (rows, cols), of shape (*lead, *broadcast shape of rows and cols)."""
    rows, cols = torch.broadcast_tensors(rows, cols)
    unique, number = rows.reshape(-1).unique(return_inverse=True)  # each row is computed once
    order = number.argsort()
    number, at = number[order], cols.reshape(-1)[order]
    out = torch.zeros((*problem.lead, at.numel()), dtype=problem.dtype, device=problem.size.device)
    for heads, low, part, whole in _row_blocks(problem, Span(0, 0, unique), tile_scores):
        first, last = torch.searchsorted(number, torch.tensor([low, low + len(part)], device=number.device)).tolist()
        out[(*heads, order[first:last])] = whole[..., number[first:last] - low, at[first:last]]
    return out.reshape(*problem.lead, *rows.shape)


def _rows(problem: Problem, rows: Span, cols: Entry, tile_scores: int) -> Float[Tensor, "*batch rows cols"]:
    """Some columns of rows, which are computed whole."""
    pick = slice(cols, cols + 1) if isinstance(cols, int) else cols
    width = len(range(pick.start, pick.stop, pick.step or 1)) if isinstance(pick, slice) else pick.numel()
    out = torch.zeros((*problem.lead, len(rows), width), dtype=problem.dtype, device=problem.size.device)
    for heads, low, part, whole in _row_blocks(problem, rows, tile_scores):
        out[(*heads, slice(low, low + len(part)))] = whole[..., pick]
    return out


def _cells(problem: Problem, rows: Span, cols: Span, tile_scores: int) -> Float[Tensor, "*batch rows cols"]:
    """Some columns of rows, from their scores and the row statistic alone."""
    out = torch.zeros((*problem.lead, len(rows), len(cols)), dtype=problem.dtype, device=problem.size.device)
    if not out.numel():
        return out
    masked = () if problem.spec.mask is None else ((0, len(cols)),)
    step = max(1, min(len(rows), tile_scores // len(cols)))
    for heads in head_slices(problem.lead, max(1, tile_scores // (step * len(cols)))):
        for low in range(0, len(rows), step):
            part = rows.part(low, min(low + step, len(rows)))
            tile = Tile(heads, part, cols, masked)
            tensors = [tile.cut(o) for o in problem.operands]
            scores = problem.scores(tensors, tile)
            out[(*heads, slice(low, low + len(part)))] = problem.spec.normaliser.from_statistic(
                scores, tensors[-1].squeeze(-1), cols
            )
    return out


def _row_blocks(
    problem: Problem, rows: Span, tile_scores: int
) -> Iterator[tuple[tuple[slice, ...], int, Span, Float[Tensor, "... rows keys"]]]:
    """(heads, number of the first row, rows, weights of the whole rows) for blocks of at most `tile_scores` scores."""
    m = problem.size.m
    if 0 in problem.lead or not m:
        return
    tile_scores = tile_scores * 4 // problem.dtype.itemsize  # so many scores of four bytes
    step = max(1, min(len(rows), tile_scores // m))
    for heads in head_slices(problem.lead, max(1, tile_scores // (step * m))):
        lead = [cut.stop - cut.start for cut in heads]
        for low in range(0, len(rows), step):
            part = rows.part(low, min(low + step, len(rows)))
            whole = torch.zeros((*lead, len(part), m), dtype=problem.dtype, device=problem.size.device)
            tile = problem.tile(heads, part)
            if tile is not None:
                tensors = [tile.cut(o) for o in problem.operands]
                weights = problem.weights(problem.scores(tensors, tile), tensors, tile)
                tile.cols.add(whole, -1, weights.expand(*whole.shape[:-1], len(tile.cols)))
            yield heads, low, part, whole
