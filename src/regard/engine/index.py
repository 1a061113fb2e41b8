"""Blocks of a lazy matrix by indexing, with the meaning that indexing a tensor has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import torch
from torch import Tensor

from regard.engine.tiles import Problem, head_slices
from regard.errors import ChoiceError, PositionError
from regard.operands import Axis, Operand, Span, Tile

Entry = int | slice | Tensor
NARROW = 4  # a block has few columns if it has less than one in so many: exp(s - lse) costs more than a softmax


@dataclass(frozen=True, slots=True, eq=False)
class Picked:
    """An index into a matrix of the given shape, one entry a dimension."""

    entries: tuple[Entry, ...]
    shape: tuple[int, ...]

    def numel(self) -> int:
        """How many weights the block holds."""
        meta = torch.empty(self.shape, device="meta")
        return meta[tuple(e.to("meta") if isinstance(e, Tensor) else e for e in self.entries)].numel()


def full(picked: Any, dims: int) -> tuple[Any, ...]:
    """One entry a dimension."""
    parts = picked if isinstance(picked, tuple) else (picked,)
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


def parse(picked: Any, shape: tuple[int, ...], device: torch.device) -> Picked:
    """An index, checked against the shape."""
    parts = zip(full(picked, len(shape)), shape, strict=True)
    return Picked(tuple(_entry(part, length, device) for part, length in parts), shape)


def _entry(part: Any, length: int, device: torch.device) -> Entry:
    if isinstance(part, slice):
        start, stop, step = part.indices(length)
        if step < 1:
            msg = f"weights are sliced with a positive step, as tensors are, not with {step}"
            raise ChoiceError(msg)
        return slice(start, max(start, stop), step)
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
        at = index(part)  # pyright: ignore[reportArgumentType]
    except TypeError:
        msg = f"weights are indexed by ints, slices and tensors of positions, not by {part!r}"
        raise ChoiceError(msg) from None
    if not -length <= at < length:
        msg = f"an index from {-length} to {length - 1} was expected, but it is {at}"
        raise PositionError(msg)
    return at % length


def _positions(part: Tensor, length: int) -> Tensor:
    """A tensor of whole numbers; of booleans, the places of those that are true."""
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
def block(problem: Problem, picked: Picked, cap: int, *, turned: bool = False, known: bool = False) -> Tensor:
    """The block that an index picks, from rows that are computed whole, since a weight needs its row.

    `known` says that the problem's last operand is the row statistic: then a weight needs its own score alone, and of
    long rows only the wanted columns are made. `turned` says that the index is one into the transposed matrix.
    """
    *lead, rows, cols = picked.entries
    rows, cols = (cols, rows) if turned else (rows, cols)
    if any(isinstance(e, Tensor) for e in lead) and sum(isinstance(e, Tensor) for e in picked.entries) > 1:
        return _points(problem, picked, cap, turned=turned)
    if isinstance(rows, Tensor) and isinstance(cols, Tensor):
        return _pairs(some_heads(problem, lead), rows, cols, cap)[tuple(_again(e) for e in lead)]
    # The smallest box that holds the block; the entries, made relative to it, then pick as they do from a tensor.
    some, span = some_heads(problem, lead), _span(rows, problem.size.device)
    columns = _span(cols, problem.size.device)
    if known and len(columns) <= problem.size.m // NARROW:
        box = _cells(some, span, columns, cap)
    else:
        box = _rows(some, span, cols if not isinstance(cols, Tensor) else cols.unique(), cap)
    return (box.mT if turned else box)[tuple(_again(e) for e in picked.entries)]


def _again(entry: Entry) -> Entry:
    """The same entry, relative to the box of what it picks."""
    if isinstance(entry, int):
        return 0
    return slice(None) if isinstance(entry, slice) else entry.unique(return_inverse=True)[1]


def _span(entry: Entry, device: torch.device) -> Span:
    if isinstance(entry, int):
        return Span(entry, entry + 1)
    if isinstance(entry, slice):
        if entry.step == 1:
            return Span(entry.start, entry.stop)
        entry = torch.arange(entry.start, entry.stop, entry.step, device=device)
    return Span(0, 0, entry.unique())


def some_heads(problem: Problem, lead: Sequence[Entry]) -> Problem:
    """The same problem for some of its heads."""
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
    some = tuple(len(span) for span in spans)
    return Problem(problem.spec, some, problem.size, problem.dtype, problem.careful, operands)


def _points(problem: Problem, picked: Picked, cap: int, *, turned: bool) -> Tensor:
    """Index tensors for heads and for something else, which go together: head after head, the points that are in it."""
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
        here = (head == number).nonzero().squeeze(-1)
        entries = list(picked.entries)
        for dim in dims:
            entries[dim] = int(points[dim][here[0]]) if dim in leading else points[dim][here]
        part = block(problem, Picked(tuple(entries), picked.shape), cap, turned=turned)
        if len(dims) > len(leading):
            part = part.movedim(_place(entries), 0)
        out[here] = part
    at = _place(picked.entries)
    out = out.movedim(0, at)
    return out.reshape(*out.shape[:at], *tensors[0].shape, *out.shape[at + 1 :])


def _place(entries: Sequence[Entry]) -> int:
    """The dimension of an indexed tensor at which index tensors leave theirs: in front, unless they stand together."""
    kept = [isinstance(entry, Tensor) for entry in entries if not isinstance(entry, int)]
    first, last = kept.index(True), len(kept) - kept[::-1].index(True)
    return first if all(kept[first:last]) else 0


def _pairs(problem: Problem, rows: Tensor, cols: Tensor, cap: int) -> Tensor:
    """Weights at (rows[p], cols[p]): (..., *shape of the two broadcast)."""
    rows, cols = torch.broadcast_tensors(rows, cols)
    unique, number = rows.reshape(-1).unique(return_inverse=True)  # each row is made once, however many pairs it is in
    order = number.argsort()
    number, at = number[order], cols.reshape(-1)[order]
    out = torch.zeros((*problem.lead, at.numel()), dtype=problem.dtype, device=problem.size.device)
    for heads, low, part, whole in _row_blocks(problem, Span(0, 0, unique), cap):
        first, last = torch.searchsorted(number, torch.tensor([low, low + len(part)], device=number.device)).tolist()
        out[(*heads, order[first:last])] = whole[..., number[first:last] - low, at[first:last]]
    return out.reshape(*problem.lead, *rows.shape)


def _rows(problem: Problem, rows: Span, cols: Entry, cap: int) -> Tensor:
    """Rows of which only the wanted columns are kept: (..., rows, cols)."""
    pick = slice(cols, cols + 1) if isinstance(cols, int) else cols
    width = len(range(pick.start, pick.stop, pick.step or 1)) if isinstance(pick, slice) else pick.numel()
    out = torch.zeros((*problem.lead, len(rows), width), dtype=problem.dtype, device=problem.size.device)
    for heads, low, part, whole in _row_blocks(problem, rows, cap):
        out[(*heads, slice(low, low + len(part)))] = whole[..., pick]
    return out


def _cells(problem: Problem, rows: Span, cols: Span, cap: int) -> Tensor:
    """The weights of rows and columns, from their scores and the row statistic: (..., rows, cols)."""
    out = torch.zeros((*problem.lead, len(rows), len(cols)), dtype=problem.dtype, device=problem.size.device)
    if not out.numel():
        return out
    masked = () if problem.spec.mask is None else ((0, len(cols)),)
    step = max(1, min(len(rows), cap // len(cols)))
    for heads in head_slices(problem.lead, max(1, cap // (step * len(cols)))):
        for low in range(0, len(rows), step):
            part = rows.part(low, min(low + step, len(rows)))
            tile = Tile(heads, part, cols, masked)
            tensors = [tile.cut(o) for o in problem.operands]
            scores = problem.scores(tensors, tile)
            out[(*heads, slice(low, low + len(part)))] = problem.spec.normaliser.from_statistic(
                scores, tensors[-1].squeeze(-1), cols
            )
    return out


def _row_blocks(problem: Problem, rows: Span, cap: int) -> Iterator[tuple[tuple[slice, ...], int, Span, Tensor]]:
    """(heads, number of the first row, rows, their weights in full) for block after block of at most `cap` scores."""
    m = problem.size.m
    if 0 in problem.lead or not m:
        return
    cap = cap * 4 // problem.dtype.itemsize  # a cap counts scores of four bytes
    step = max(1, min(len(rows), cap // m))
    for heads in head_slices(problem.lead, max(1, cap // (step * m))):
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
