"""The keys that each row of a mask sees, where they are one range: padding, packed documents, windows, and their pairs.

From the ranges follow the columns of a tile, and which of them need a mask, without a look at the mask's tensors for
each tile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from regard.engine.mask_cache import remembered
from regard.masks import ALL, SOME, Mask
from regard.operands import Size, Span


@dataclass(frozen=True, slots=True, eq=False)
class KeyRanges:
    """Row i sees the keys start_i <= j < stop_i, both (*lead, n) with leading axes of length 1 where all are alike.

    A row without keys has start m and stop 0.
    """

    start: Int[np.ndarray, "*lead queries"]
    stop: Int[np.ndarray, "*lead queries"]

    def widths(self, low: int, steps: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Numbers of rows from row `low` on, and how many columns these rows need, in all heads.

        The numbers are `steps`, and where the document of row `low` ends.
        """
        heads, rows = tuple(range(self.start.ndim - 1)), (..., slice(low, low + steps[-1]))
        start, stop = self.start[rows].min(heads), self.stop[rows].max(heads)
        end = np.flatnonzero(start[1:] >= stop[:-1])[:1] + 1
        first, last = np.minimum.accumulate(start), np.maximum.accumulate(stop)
        for step in sorted({*steps, *end.tolist()}):
            at = min(step, len(first)) - 1
            yield step, max(0, int(last[at] - first[at]))

    def blocks(self, heads: tuple[slice, ...], rows: Span) -> list[tuple[int, int, int]]:
        """Ranges of columns (start, stop, state) that these rows of these heads see."""
        cut = (*(part if size != 1 else slice(None) for part, size in zip(heads, self.start.shape, strict=False)), ...)
        start, stop = (edge[cut][..., rows.start : rows.stop] for edge in (self.start, self.stop))
        if not start.size:
            return []
        first, all_from, all_to, last = int(start.min()), int(start.max()), int(stop.min()), int(stop.max())
        if all_from >= all_to:
            return [(first, last, SOME)] if first < last else []
        found = [(first, all_from, SOME), (all_from, all_to, ALL), (all_to, last, SOME)]
        return [block for block in found if block[0] < block[1]]


def key_ranges(mask: Mask, lead: tuple[int, ...], size: Size) -> KeyRanges | None:
    """The range of each row, or None if some row sees keys with a hidden one between; found once for equal masks."""
    if not mask.has_ranges:
        return None
    tensors = [operand.tensor for operand in mask.operands(lead)]
    return remembered(
        ("ranges", mask.signature, lead, size), mask, lambda: ranges_from_tensors(mask, tensors, lead, size)
    )


def ranges_from_tensors(mask: Mask, tensors: list[Tensor], lead: tuple[int, ...], size: Size) -> KeyRanges | None:
    """The range of each row, from the tensors of the mask's operands, which may be those of some heads alone."""
    ranges = mask.row_ranges(tensors, size)
    if ranges is None:
        return None
    start, stop = (edge.long().clamp(0, size.m) for edge in ranges)
    empty = start >= stop
    edges = torch.where(empty, size.m, start), torch.where(empty, 0, stop)
    own = (1,) * (len(lead) + 1 - empty.dim()) + tuple(empty.shape[:-1])
    return KeyRanges(*(edge.expand(*own, size.n).numpy(force=True) for edge in edges))
