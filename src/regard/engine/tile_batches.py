"""Neighbouring tiles of equal shape and mask, batched into one call of the fused kernel.

Under a sliding window every tile but those at the ends has the same shape and the same mask, shifted by its number of
rows. For the kernel, such tiles are more heads of the same small matrix. One call for several of them keeps all threads
busy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from jaxtyping import Shaped
from torch import Tensor

from regard.operands import Axis, Operand, Tile


@dataclass(frozen=True, slots=True, eq=False)
class TileBatch:
    """Tiles with one step between them. What is cut for several has one more dimension: (*batch, tiles, rows, dim)."""

    tiles: tuple[Tile, ...]

    @property
    def first(self) -> Tile:
        """The first tile, from which the others follow by shifting."""
        return self.tiles[0]

    @property
    def n_rows(self) -> int:
        """The number of rows of all tiles, counted for each head."""
        return sum(math.prod(cut.stop - cut.start for cut in tile.lead) * len(tile.rows) for tile in self.tiles)

    def is_one_tile_of(self, rows: tuple[int, ...]) -> bool:
        """True if it is one tile with all rows (*batch, queries)."""
        return len(self.tiles) == 1 and self.n_rows == math.prod(rows)

    def cut(self, tensor: Shaped[Tensor, "... rows dim"], axis: Axis) -> Shaped[Tensor, "... tile_rows dim"]:
        """The tiles' parts of a tensor along the queries or the keys, a view; the columns of tiles may overlap."""
        if len(self.tiles) == 1:
            return self.first.cut(Operand(tensor, axis))
        if axis is Axis.QUERY:
            return self.rows(tensor)
        step, width = len(self.first.rows), len(self.first.cols)
        seen = self.first.heads(tensor).narrow(-2, self.first.cols.start, step * (len(self.tiles) - 1) + width)
        return seen.unfold(-2, width, step).mT

    def rows(self, tensor: Shaped[Tensor, "..."], trailing: int = 2) -> Shaped[Tensor, "..."]:
        """The tiles' rows of a tensor that has `trailing` dimensions after its heads; a view."""
        rows, part = self.first.rows, self.first.heads(tensor, trailing)
        if len(self.tiles) == 1:
            return rows.take(part, -trailing)
        count = len(self.tiles)
        return part.narrow(-trailing, rows.start, count * len(rows)).unflatten(-trailing, (count, len(rows)))

    def add(self, total: Shaped[Tensor, "... rows dim"], axis: Axis, part: Shaped[Tensor, "... tile_rows dim"]) -> None:
        """Add the tiles' parts to the whole, in place; the reverse of `cut`."""
        if len(self.tiles) == 1:
            self.first.add(Operand(total, axis), part)
        elif axis is Axis.QUERY:
            self.rows(total).add_(part)
        else:
            for tile, tile_part in zip(self.tiles, part.unbind(-3), strict=True):
                tile.add(Operand(total, axis), tile_part)


def batch_tiles(tiles: Iterable[Tile], width: int, max_numbers: int) -> tuple[TileBatch, ...]:
    """Tiles in batches. The queries, keys and values of a batch, `width` wide, have at most `max_numbers` numbers."""
    batches: list[list[Tile]] = []
    for tile in tiles:
        numbers = math.prod(cut.stop - cut.start for cut in tile.lead) * width * (len(tile.rows) + 2 * len(tile.cols))
        if batches and _follows(batches[-1][-1], tile) and (len(batches[-1]) + 1) * numbers <= max_numbers:
            batches[-1].append(tile)
        else:
            batches.append([tile])
    return tuple(TileBatch(tuple(batch)) for batch in batches)


def _follows(one: Tile, two: Tile) -> bool:
    """True if tile two is tile one moved down and to the right by its number of rows."""
    step = len(one.rows)
    moved = two.rows.start - one.rows.start == step == two.cols.start - one.cols.start
    alike = step == len(two.rows) and len(one.cols) == len(two.cols) and one.masked == two.masked
    ranges = one.cols.index is None and two.cols.index is None
    return moved and alike and ranges and one.lead == two.lead
