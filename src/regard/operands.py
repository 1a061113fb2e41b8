"""Operands, the tensors along queries or keys from which tiles are cut, and the tiles themselves."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn import Parameter

from regard.errors import CallError

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)  # what attention is computed for
NEVER = -math.inf  # the score of a key that is hidden
TORCH_HANDLERS: tuple[Any, ...] = (Tensor.__torch_function__.__func__, torch._C._disabled_torch_function_impl)  # noqa: SLF001
# torch's classes of tensors whose memory is not what they mean, by name: importing them all takes long.
WITHOUT_NUMBERS = {
    "CausalBias": "a CausalBias, which holds no numbers: masks.causal(align) says the same",
    "MaskedTensor": "a MaskedTensor: take its get_data(), and hide keys with regard.masks",
}


def overrides_torch_function(tensor: Tensor) -> bool:
    """True for a tensor subclass with a `__torch_function__` of its own: what it means may not be its numbers."""
    if type(tensor) in (Tensor, Parameter):
        return False
    handler = type(tensor).__torch_function__
    return getattr(handler, "__func__", handler) not in TORCH_HANDLERS


def is_sharded(*tensors: object) -> bool:
    """True if one of the tensors is a DTensor. Where nobody has imported DTensor there is none."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and any(isinstance(tensor, module.DTensor) for tensor in tensors)


def tensor_obstacle(tensor: Tensor) -> str | None:
    """The reason, in words, why the numbers of a tensor cannot be computed with; None for an ordinary tensor."""
    if overrides_torch_function(tensor) and type(tensor).__name__ in WITHOUT_NUMBERS:
        return f"it is {WITHOUT_NUMBERS[type(tensor).__name__]}"
    if tensor.is_nested:
        return "it is a nested tensor: pad its sequences, and hide the padding with masks.padding(lengths)"
    if tensor.layout != torch.strided:
        return f"its layout is {tensor.layout}: make it dense with .to_dense()"
    if tensor.is_floating_point() and tensor.dtype not in FLOATS:
        known = ", ".join(str(dtype) for dtype in FLOATS)
        return f"its numbers are of {tensor.dtype}: convert it to one of {known}"
    return None


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape to which shapes broadcast, by torch's rule: from the last axis on, sizes are equal or 1.

    torch.broadcast_shapes imports sympy when it is first called, which takes longer than most calls of `attend`. Only
    a compiler needs it: there sizes may be symbols.
    """
    if torch.compiler.is_compiling():
        return tuple(torch.broadcast_shapes(*shapes))
    joined: list[int] = []
    for sizes in zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1):
        size = next((size for size in sizes if size != 1), 1)
        if any(other not in (1, size) for other in sizes):
            given = ", ".join(str(tuple(shape)) for shape in shapes)
            msg = f"sizes of one axis must be equal or 1 to broadcast, but the shapes are {given}"
            raise CallError(msg)
        joined.append(size)
    return tuple(reversed(joined))


class Axis(Enum):
    """The axes of the n x m matrix that a tensor's last two axes follow."""

    QUERY = "query"  # (..., n, features)
    KEY = "key"  # (..., m, features)
    PAIR = "pair"  # (..., n or 1, m or 1)
    HEAD = "head"  # (..., any, any): the same for every tile of a head
    FIXED = "fixed"  # any shape: the same for every tile


class Operand(NamedTuple):
    """A tensor and the axes along which a tile cuts it."""

    tensor: Tensor
    axis: Axis


class Size(NamedTuple):
    """The size of the matrix, n queries by m keys, and its device."""

    n: int
    m: int
    device: torch.device


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Rows or columns of the matrix: the range from `start` to `stop`, or the positions in `index` if it is given."""

    start: int
    stop: int
    index: Tensor | None = None

    def __len__(self) -> int:
        return self.stop - self.start if self.index is None else self.index.shape[0]

    def positions(self, device: torch.device) -> Int[Tensor, " positions"]:
        """All positions, one by one."""
        return torch.arange(self.start, self.stop, device=device) if self.index is None else self.index

    def take(self, tensor: Tensor, dim: int) -> Tensor:
        """The part of a tensor at these positions along `dim`; a view if they are a range."""
        if self.index is not None:
            return tensor.index_select(dim, self.index)
        if self.stop - self.start == tensor.shape[dim]:
            return tensor
        return tensor.narrow(dim, self.start, self.stop - self.start)

    def add(self, tensor: Tensor, dim: int, part: Tensor) -> None:
        """Add `part` to a tensor at these positions along `dim`, in place."""
        if self.index is not None:
            tensor.index_add_(dim, self.index, part)
        else:
            tensor.narrow(dim, self.start, self.stop - self.start).add_(part)

    @property
    def place(self) -> slice | Int[Tensor, " positions"]:
        """The positions as an index of a tensor."""
        return slice(self.start, self.stop) if self.index is None else self.index

    def pick(self, inner: Span) -> Span:
        """The span of the positions that `inner` picks out of this one by their numbers."""
        if self.index is None and inner.index is None:
            return Span(self.start + inner.start, self.start + inner.stop)
        if self.index is None:
            return Span(0, 0, inner.positions(inner.index.device) + self.start)  # pyright: ignore[reportOptionalMemberAccess]
        return Span(0, 0, inner.take(self.index, 0))

    def part(self, low: int, high: int) -> Span:
        """The span of the positions numbered low to high - 1 in this one."""
        if self.index is not None:
            return Span(self.start, self.stop, self.index[low:high])
        return Span(self.start + low, self.start + high)


@dataclass(frozen=True, slots=True, eq=False)
class Tile:
    """A block of the matrix: slices of the leading axes, rows, and columns."""

    lead: tuple[slice, ...]  # of the leading axes of the weights, such as batch and heads
    rows: Span
    cols: Span
    masked: tuple[tuple[int, int], ...] = ()  # ranges of columns, within the tile, where the mask must be computed

    def heads(self, tensor: Tensor, trailing: int = 2) -> Tensor:
        """The part of a tensor for the heads of this tile, as a view; axes before the last `trailing` broadcast."""
        leading = tensor.dim() - trailing
        for dim in range(min(leading, len(self.lead))):
            size, part = tensor.shape[leading - 1 - dim], self.lead[len(self.lead) - 1 - dim]
            if size != 1 and part.stop - part.start != size:
                tensor = tensor.narrow(leading - 1 - dim, part.start, part.stop - part.start)
        return tensor

    def cut(self, operand: Operand) -> Tensor:
        """The part of an operand that belongs to this tile; a view where rows and columns are ranges."""
        tensor, axis = operand
        if axis is Axis.FIXED:
            return tensor
        tensor = self.heads(tensor)
        if axis is Axis.HEAD:
            return tensor
        if axis is Axis.QUERY:
            return self.rows.take(tensor, -2)
        if axis is Axis.KEY:
            return self.cols.take(tensor, -2)
        if tensor.shape[-2] != 1:
            tensor = self.rows.take(tensor, -2)
        return self.cols.take(tensor, -1) if tensor.shape[-1] != 1 else tensor

    def add(self, buffer: Operand, part: Tensor) -> None:
        """Add a tile's part to the whole operand, in place: the transpose of `cut`, for gradients."""
        tensor, axis = buffer
        if axis is not Axis.FIXED:
            tensor = self.heads(tensor)
        if axis is Axis.QUERY:
            self.rows.add(tensor, -2, part)
        elif axis is Axis.KEY:
            self.cols.add(tensor, -2, part)
        elif axis is Axis.PAIR and tensor.shape[-2] != 1 and tensor.shape[-1] != 1:
            rows = self.rows.positions(tensor.device)
            tensor[..., rows[:, None], self.cols.positions(tensor.device)] += part
        elif axis is Axis.PAIR and tensor.shape[-2] != 1:
            self.rows.add(tensor, -2, part)
        elif axis is Axis.PAIR and tensor.shape[-1] != 1:
            self.cols.add(tensor, -1, part)
        else:
            tensor += part
