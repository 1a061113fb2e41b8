"""Reducers for head profiles: the weight on chosen keys of each query, and on a set of keys."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.engine.reducers import Block, RowSum
from regard.operands import Size


@dataclass
class WeightAt(RowSum):
    """p_i,t for the k keys t that are chosen for query i: (..., queries, k). A target of -1 is no key and gives 0."""

    targets: Int[Tensor, "*lead queries k"]

    def empty(self, lead: tuple[int, ...], rows: int, size: Size, dtype: torch.dtype) -> Float[Tensor, "... rows k"]:
        return torch.zeros((*lead, rows, self.targets.shape[-1]), dtype=dtype, device=size.device)

    def of(self, block: Block) -> Float[Tensor, "... rows k"]:
        wanted = block.rows.take(block.heads(self.targets, 2), -2)
        if block.cols.index is None:
            place = wanted - block.cols.start
            inside = (place >= 0) & (place < len(block.cols))
            place = place.clamp(0, len(block.cols) - 1)
        else:
            place = torch.searchsorted(block.cols.index, wanted).clamp_max(len(block.cols) - 1)
            inside = block.cols.index[place] == wanted
        shape = (*block.weights.shape[:-1], wanted.shape[-1])
        return block.weights.gather(-1, place.expand(shape)) * inside


@dataclass
class WeightAmong(RowSum):
    """sum_j p_ij over the keys j that are marked: (..., queries)."""

    marks: Bool[Tensor, "*lead keys 1"]

    def of(self, block: Block) -> Float[Tensor, "... rows"]:
        marks = block.cols.take(block.heads(self.marks, 2), -2)
        return (block.weights @ marks.to(block.weights.dtype)).squeeze(-1)
