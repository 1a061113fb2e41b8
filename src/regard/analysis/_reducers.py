"""Two more questions for a pass: the weight on one chosen key of each query, and on a set of keys."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.engine.reducers import Block, RowSum
from regard.operands import Size


@dataclass
class At(RowSum):
    """p at k chosen keys of every query, for targets (..., n, k) of which -1 is none: (..., n, k)."""

    targets: Tensor

    def empty(self, lead: tuple[int, ...], rows: int, size: Size, dtype: torch.dtype) -> Tensor:
        return torch.zeros((*lead, rows, self.targets.shape[-1]), dtype=dtype, device=size.device)

    def of(self, block: Block) -> Tensor:
        wanted = block.rows.take(block.heads(self.targets, 2), -2)
        if block.cols.index is None:
            place = wanted - block.cols.start
            there = (place >= 0) & (place < len(block.cols))
            place = place.clamp(0, len(block.cols) - 1)
        else:
            place = torch.searchsorted(block.cols.index, wanted).clamp_max(len(block.cols) - 1)
            there = block.cols.index[place] == wanted
        shape = (*block.weights.shape[:-1], wanted.shape[-1])
        return block.weights.gather(-1, place.expand(shape)) * there


@dataclass
class Among(RowSum):
    """sum_j p_j over marked keys, for marks (..., m, 1) of 0 and 1."""

    marks: Tensor

    def of(self, block: Block) -> Tensor:
        marks = block.cols.take(block.heads(self.marks, 2), -2)
        return (block.weights @ marks.to(block.weights.dtype)).squeeze(-1)
