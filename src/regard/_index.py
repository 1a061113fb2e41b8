"""Blocks of a lazy matrix by indexing, with the meaning that indexing a tensor has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard._operands import Axis, Operand, Span
from regard._tiles import Problem
from regard.errors import ChoiceError


@dataclass(frozen=True, slots=True, eq=False)
class Picked:
    """An index into (..., n, m), one entry a dimension: an int, a slice or a tensor of positions."""

    lead: tuple[Any, ...]
    rows: Any
    cols: Any
    shape: tuple[int, ...]

    def numel(self) -> int:
        """How many weights the block holds."""
        meta = torch.empty(self.shape, device="meta")
        index = (*self.lead, self.rows, self.cols)
        return meta[tuple(i.to("meta") if isinstance(i, Tensor) else i for i in index)].numel()


def full(index: Any, dims: int) -> tuple[Any, ...]:  # noqa: ANN401
    """One entry a dimension."""
    parts = index if isinstance(index, tuple) else (index,)
    if any(part is None or isinstance(part, bool) for part in parts):
        msg = "weights are indexed by ints, slices and tensors of positions; None and booleans add dimensions"
        raise ChoiceError(msg)
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    given = len(parts) - len(dots)
    if len(dots) > 1 or given > dims:
        msg = f"weights have {dims} dimensions, but the index has {given} entries and {len(dots)} ellipses"
        raise ChoiceError(msg)
    at = dots[0] if dots else len(parts)
    return (*parts[:at], *[slice(None)] * (dims - given), *parts[at + len(dots) :])


def parse(index: Any, shape: tuple[int, ...]) -> Picked:  # noqa: ANN401
    """Check an index against the shape."""
    parts = [_entry(part, length) for part, length in zip(full(index, len(shape)), shape, strict=True)]
    return Picked(tuple(parts[:-2]), parts[-2], parts[-1], shape)


def _entry(part: Any, length: int) -> Any:  # noqa: ANN401
    if isinstance(part, slice):
        return part if part.step is None or part.step > 0 else _refuse(part)
    if isinstance(part, Sequence):
        part = torch.as_tensor(part)
    if isinstance(part, Tensor):
        if part.dtype == torch.bool:
            part = part.nonzero().squeeze(-1)
        if part.numel() and (int(part.min()) < -length or int(part.max()) >= length):
            msg = f"an index between {-length} and {length - 1} was expected, but it reaches from {part.min()} to {part.max()}"
            raise IndexError(msg)
        return torch.where(part < 0, part + length, part)
    at = part.__index__() if hasattr(part, "__index__") else _refuse(part)
    if not -length <= at < length:
        msg = f"an index between {-length} and {length - 1} was expected, but it is {at}"
        raise IndexError(msg)
    return at % length


def _refuse(part: Any) -> Any:  # noqa: ANN401
    msg = f"weights are indexed by ints, slices with a positive step and tensors of positions, not {part!r}"
    raise ChoiceError(msg)


@torch.no_grad()
def block(problem: Problem, picked: Picked, cap: int) -> Tensor:
    """The block that an index picks.

    Rows are computed whole, since a weight needs its row; index tensors on several axes at once mean pairs, so
    then every row that is asked for is made once and the pairs are read off.
    """
    tensors = [part for part in (*picked.lead, picked.rows, picked.cols) if isinstance(part, Tensor)]
    if len(tensors) > 1:
        return _pairs(problem, picked, cap)
    sub = _heads(problem, picked.lead)
    rows = _span(picked.rows, problem.size.n, problem.size.device)
    found = _whole_rows(sub, rows, picked.cols, cap)
    at = (slice(None),) * len(sub.lead)
    found = found[(*at, _local(picked.rows))]
    return _move_lead(found, picked)


def _local(part: Any) -> Any:  # noqa: ANN401
    """Where the picked rows are among the computed ones."""
    if isinstance(part, int):
        return 0
    return torch.arange(part.numel(), device=part.device).reshape(part.shape) if isinstance(part, Tensor) else slice(None)


def _move_lead(found: Tensor, picked: Picked) -> Tensor:
    """An int between tensors moves dimensions in torch; one tensor alone stays in its place."""
    del picked
    return found


def _pairs(problem: Problem, picked: Picked, cap: int) -> Tensor:
    """Several index tensors: leading and row tensors are broadcast and looked up together."""
    everything = Picked(
        tuple(slice(None) for _ in picked.lead), slice(None), slice(None), picked.shape
    )
    if isinstance(picked.rows, Tensor):
        unique, inverse = picked.rows.unique(return_inverse=True)
        part = block(problem, Picked(everything.lead, unique, slice(None), picked.shape), cap)
        return part[(*picked.lead, inverse, picked.cols)]
    part = block(problem, Picked(everything.lead, picked.rows if isinstance(picked.rows, slice) else slice(picked.rows, picked.rows + 1), slice(None), picked.shape), cap)
    rows = 0 if isinstance(picked.rows, int) else slice(None)
    return part[(*picked.lead, rows, picked.cols)]


def _heads(problem: Problem, lead: tuple[Any, ...]) -> Problem:
    """The same problem for some of its heads."""
    if all(isinstance(part, slice) and part == slice(None) for part in lead):
        return problem
    operands = tuple(
        o if o.axis is Axis.FIXED else Operand(o.tensor.expand(*problem.lead, *o.tensor.shape[-2:])[lead], o.axis)
        for o in problem.operands
    )
    shape = torch.empty(problem.lead, device="meta")[tuple(i.to("meta") if isinstance(i, Tensor) else i for i in lead)]
    return Problem(problem.spec, tuple(shape.shape), problem.size, problem.dtype, problem.careful, operands)


def _span(part: Any, length: int, device: torch.device) -> Span:  # noqa: ANN401
    if isinstance(part, int):
        return Span(part, part + 1)
    if isinstance(part, slice):
        start, stop, step = part.indices(length)
        if step == 1:
            return Span(start, max(start, stop))
        part = torch.arange(start, stop, step, device=device)
    flat = part.reshape(-1)
    return Span(0, length, flat)


def _whole_rows(problem: Problem, rows: Span, cols: Any, cap: int) -> Tensor:  # noqa: ANN401
    """Rows in full, of which only the wanted columns are kept: (..., rows, *cols)."""
    like = {"dtype": problem.dtype, "device": problem.size.device}
    kept = torch.empty(problem.size.m, device="meta")[cols.to("meta") if isinstance(cols, Tensor) else cols].shape
    out = torch.zeros((*problem.lead, len(rows), *kept), **like)
    step = max(1, cap // max(1, problem.size.m * math.prod(problem.lead)))
    heads = tuple(slice(0, length) for length in problem.lead)
    for low in range(0, len(rows) if 0 not in problem.lead else 0, step):
        part = rows.part(low, min(low + step, len(rows)))
        tile = problem.tile(heads, part)
        if tile is None:
            continue
        tensors = [tile.cut(o) for o in problem.operands]
        weights = problem.weights(problem.scores(tensors, tile), tensors, tile)
        whole = torch.zeros((*problem.lead, len(part), problem.size.m), **like)
        tile.cols.add(whole, -1, weights)
        out[(*[slice(None)] * len(problem.lead), slice(low, low + len(part)))] = whole[..., cols]
    return out


def transposed_block(weights: Any, parts: tuple[Any, ...]) -> Tensor:  # noqa: ANN401
    """An index into the transposed matrix."""
    *lead, first, second = parts
    found = weights[(*lead, second, first)]
    both = not isinstance(first, int) and not isinstance(second, int)
    plain = not (isinstance(first, Tensor | Sequence) and isinstance(second, Tensor | Sequence))
    return found.mT if both and plain else found
