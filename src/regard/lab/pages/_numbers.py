"""Computations and number formats that several lessons share."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.operands import Span
from regard.scores import Score


def shortest_decimals(tensor: Tensor) -> Any:
    """The numbers of a float32 tensor as nested lists, with the fewest decimals: 0.1, not 0.10000000149."""
    if tensor.dim():
        return [shortest_decimals(part) for part in tensor]
    return float(str(tensor.numpy()[()]))


def score_matrix(
    score: Score, query: Float[Tensor, "queries dim"], key: Float[Tensor, "keys key_dim"]
) -> Float[Tensor, "queries keys"]:
    """All scores before the softmax, without a mask."""
    tensors = [operand.tensor for operand in score.operands(query, key)]
    return score.tile(tensors, Span(0, query.shape[-2]), Span(0, key.shape[-2])).expand(query.shape[-2], key.shape[-2])


def leaders(weights: Float[Tensor, "queries keys"]) -> list[list[int]]:
    """For each row the keys with its largest weight, up to rounding: two or more for a tie, none for an empty row."""
    largest = weights.amax(-1, keepdim=True)
    near = (weights >= largest * (1 - 16 * torch.finfo(weights.dtype).eps)) & (largest > 0)
    return [row.nonzero().flatten().tolist() for row in near]


def literal(value: Any) -> str:
    """Python code for a number or nested lists of numbers, exact and short: 1 for 1.0."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(literal(item) for item in value)}]"
    return repr(value).removesuffix(".0")
