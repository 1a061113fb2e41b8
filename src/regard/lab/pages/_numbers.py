"""From tensors to JSON."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.operands import Span
from regard.scores import Score


def short(tensor: Tensor) -> Any:
    """Data in float32 as it was written down: 0.1, not 0.10000000149."""
    if tensor.dim():
        return [short(part) for part in tensor]
    return float(str(tensor.numpy()[()]))


def score_matrix(score: Score, query: Tensor, key: Tensor) -> Tensor:
    """The scores themselves, (n, m), as they go into the softmax; hidden keys are not looked for."""
    tensors = [operand.tensor for operand in score.operands(query, key)]
    return score.tile(tensors, Span(0, query.shape[-2]), Span(0, key.shape[-2])).expand(query.shape[-2], key.shape[-2])


def leaders(weights: Tensor) -> list[list[int]]:
    """For each row the keys that have its largest weight, up to rounding: several are a tie, none is an empty row."""
    largest = weights.amax(-1, keepdim=True)
    near = (weights >= largest * (1 - 16 * torch.finfo(weights.dtype).eps)) & (largest > 0)
    return [row.nonzero().flatten().tolist() for row in near]


def literal(rows: Any) -> str:
    """Numbers as Python reads them back exactly, written short: 1 for 1.0."""
    if isinstance(rows, list | tuple):
        return f"[{', '.join(literal(row) for row in rows)}]"
    return repr(rows).removesuffix(".0")
