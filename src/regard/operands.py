"""What a tile is cut from: tensors that lie along the queries, the keys, both, or neither."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import torch
from torch import Tensor

NEVER = -math.inf  # the score of a key that is hidden


class Axis(Enum):
    """Which side of the n x m matrix a tensor's last two dimensions follow."""

    QUERY = "query"  # (..., n, features)
    KEY = "key"  # (..., m, features)
    PAIR = "pair"  # (..., n or 1, m or 1)
    HEAD = "head"  # (..., anything, anything): the same for every tile of a head
    FIXED = "fixed"  # the same for every tile


class Operand(NamedTuple):
    """A tensor and the axis along which tiles cut it."""

    tensor: Tensor
    axis: Axis


class Size(NamedTuple):
    """The matrix: n queries by m keys, and where its numbers live."""

    n: int
    m: int
    device: torch.device


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Rows or columns of the matrix: a range, or positions picked one by one (then `index` holds them)."""

    start: int
    stop: int
    index: Tensor | None = None

    def __len__(self) -> int:
        return self.stop - self.start if self.index is None else self.index.shape[0]

    def positions(self, device: torch.device) -> Tensor:
        return torch.arange(self.start, self.stop, device=device) if self.index is None else self.index

    def take(self, tensor: Tensor, dim: int) -> Tensor:
        if self.index is not None:
            return tensor.index_select(dim, self.index)
        if self.stop - self.start == tensor.shape[dim]:
            return tensor
        return tensor.narrow(dim, self.start, self.stop - self.start)

    def add(self, tensor: Tensor, dim: int, part: Tensor) -> None:
        """tensor[these positions] += part, in place."""
        if self.index is not None:
            tensor.index_add_(dim, self.index, part)
        else:
            tensor.narrow(dim, self.start, self.stop - self.start).add_(part)

    @property
    def place(self) -> slice | Tensor:
        """These positions as an index."""
        return slice(self.start, self.stop) if self.index is None else self.index

    def part(self, low: int, high: int) -> Span:
        """The positions number low to high of this span."""
        if self.index is not None:
            return Span(self.start, self.stop, self.index[low:high])
        return Span(self.start + low, self.start + high)


@dataclass(frozen=True, slots=True, eq=False)
class Tile:
    """A block of the matrix: some heads, some queries, and all the keys that any of them may see."""

    lead: tuple[slice, ...]
    rows: Span
    cols: Span
    masked: tuple[tuple[int, int], ...] = ()  # ranges of the columns in which the mask must be looked at

    def heads(self, tensor: Tensor, trailing: int = 2) -> Tensor:
        """The tile's heads of a tensor whose leading dimensions broadcast; a view."""
        leading = tensor.dim() - trailing
        for dim in range(min(leading, len(self.lead))):
            size, cut = tensor.shape[leading - 1 - dim], self.lead[len(self.lead) - 1 - dim]
            if size != 1 and cut.stop - cut.start != size:
                tensor = tensor.narrow(leading - 1 - dim, cut.start, cut.stop - cut.start)
        return tensor

    def cut(self, operand: Operand) -> Tensor:
        """The part of an operand that this tile needs."""
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
        """The reverse of `cut`: add a tile's part into the whole, in place."""
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
