"""Neighbouring tiles that look alike, taken as one: for the kernel they are more heads of the same small matrix.

Under a window every tile but those at the ends has the same shape and the same mask, each some rows and as many
columns after the one before. One call for several of them keeps all threads busy, where a call for each would let
them wait for one another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor

from regard.operands import Axis, Operand, Tile


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Tiles with one step between them; the parts cut for several have one more dimension: (..., tiles, rows, d)."""

    tiles: tuple[Tile, ...]

    @property
    def first(self) -> Tile:
        return self.tiles[0]

    def cut(self, tensor: Tensor, axis: Axis) -> Tensor:
        """What the tiles need of a tensor along the queries or the keys; columns overlap, yet nothing is copied."""
        if len(self.tiles) == 1:
            return self.first.cut(Operand(tensor, axis))
        if axis is Axis.QUERY:
            return self.rows(tensor)
        step, width = len(self.first.rows), len(self.first.cols)
        seen = self.first.heads(tensor).narrow(-2, self.first.cols.start, step * (len(self.tiles) - 1) + width)
        return seen.unfold(-2, width, step).mT

    def rows(self, tensor: Tensor, trailing: int = 2) -> Tensor:
        """The tiles' rows of a tensor that has `trailing` dimensions after its heads; a view."""
        rows, part = self.first.rows, self.first.heads(tensor, trailing)
        if len(self.tiles) == 1:
            return rows.take(part, -trailing)
        count = len(self.tiles)
        return part.narrow(-trailing, rows.start, count * len(rows)).unflatten(-trailing, (count, len(rows)))

    def add(self, total: Tensor, axis: Axis, part: Tensor) -> None:
        """The reverse of `cut`: add what was found into the whole, in place."""
        if len(self.tiles) == 1:
            self.first.add(Operand(total, axis), part)
        elif axis is Axis.QUERY:
            self.rows(total).add_(part)
        else:
            for tile, found in zip(self.tiles, part.unbind(-3), strict=True):
                tile.add(Operand(total, axis), found)


def runs(tiles: Iterable[Tile], width: int, most: int) -> tuple[Run, ...]:
    """Tiles in runs, each of at most `most` numbers in what is found for its queries, keys and values."""
    found: list[list[Tile]] = []
    for tile in tiles:
        numbers = math.prod(cut.stop - cut.start for cut in tile.lead) * width * (len(tile.rows) + 2 * len(tile.cols))
        if found and _follows(found[-1][-1], tile) and (len(found[-1]) + 1) * numbers <= most:
            found[-1].append(tile)
        else:
            found.append([tile])
    return tuple(Run(tuple(run)) for run in found)


def _follows(one: Tile, two: Tile) -> bool:
    """Whether a tile is another one moved down and to the right by its own rows."""
    step = len(one.rows)
    moved = two.rows.start - one.rows.start == step == two.cols.start - one.cols.start
    alike = step == len(two.rows) and len(one.cols) == len(two.cols) and one.masked == two.masked
    ranges = one.cols.index is None and two.cols.index is None
    return moved and alike and ranges and one.lead == two.lead
