"""Biases that a model added to its scores: a table by distance where they are one, else the numbers themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard import scores
from regard.capture._mask_form import COMPARED_ROWS, MaskForm, of_sequence_and_heads, recognise
from regard.scores import Score


@dataclass(frozen=True, eq=False)
class ScoreBias:
    """Either a `table` by the distance j - i, which begins at distance `first`, or `pairs`."""

    # The dimensions batch, heads and queries are 1 where all share one bias.
    table: Float[Tensor, "batch heads distances"] | None = None
    first: int = 0
    pairs: Float[Tensor, "batch heads queries keys"] | None = None

    def score(self) -> Score:
        """The term of `regard.scores` that adds the bias."""
        if self.table is not None:
            return scores.relative(self.table, self.first)
        assert self.pairs is not None  # noqa: S101  one of the two is always there
        return scores.bias(self.pairs)

    def map(self, change: Callable[[Tensor | None], Tensor | None]) -> ScoreBias:
        """The bias with each of its tensors changed."""
        return ScoreBias(change(self.table), self.first, change(self.pairs))

    def rows(self, batch: int, heads: slice, rows: slice, m: int) -> Float[Tensor, "#heads #rows keys"]:
        """Some rows of the bias, of one sequence and some heads."""
        if self.table is not None:
            table = of_sequence_and_heads(self.table, batch, heads)
            at = torch.arange(rows.start, rows.stop, rows.step, device=table.device)
            return table[..., torch.arange(m, device=at.device) - at[:, None] - self.first]
        assert self.pairs is not None  # noqa: S101
        pairs = of_sequence_and_heads(self.pairs, batch, heads)
        return pairs if pairs.shape[-2] == 1 else pairs[..., rows, :]

    def dense(self, n: int, m: int) -> Float[Tensor, "batch heads queries keys"]:
        """The bias of every pair; one row if all queries share it."""
        if self.table is None:
            assert self.pairs is not None  # noqa: S101
            return self.pairs
        rows, cols = (torch.arange(length, device=self.table.device) for length in (n, m))
        return self.table[..., cols - rows[:, None] - self.first]


def read_mask(mask: Tensor | None, *, causal: bool, n: int, m: int) -> tuple[MaskForm, ScoreBias | None]:
    """Form and bias of a mask as torch and Hugging Face models write it; it broadcasts to (batch, heads, n, m).

    True is visible. Numbers are added to scores; -inf hides, and so does the most negative number of the dtype, with or
    without something added to it.
    """
    causal_form = MaskForm(right=0) if causal else MaskForm()
    if mask is None:
        return causal_form, None
    mask = mask.detach()[(None,) * (4 - mask.dim())].expand(-1, -1, n, m)
    if mask.dtype == torch.bool:
        visible, bias = mask, None
    else:
        visible = mask > torch.finfo(mask.dtype).min / 2
        bias = read_bias(mask, visible)
    if causal:
        visible = visible & causal_form.dense(n, m, mask.device)
    return recognise(visible), bias


def read_bias(
    numbers: Float[Tensor, "#batch #heads queries keys"], visible: Bool[Tensor, "#batch #heads queries keys"]
) -> ScoreBias | None:
    """The bias of visible pairs, or None if it is 0 everywhere."""
    for dim in (0, 1, 2):
        if numbers.stride(dim) == 0:
            numbers = numbers.narrow(dim, 0, 1)
    if not bool((numbers.masked_fill(~visible, 0.0) != 0).any()):
        return None
    if numbers.shape[-2] == 1:
        return ScoreBias(pairs=numbers.masked_fill(~visible.any(-2, keepdim=True), 0.0))
    table = _table(numbers, visible)
    if table is not None:
        return ScoreBias(table=table, first=1 - numbers.shape[-2])
    return ScoreBias(pairs=numbers.masked_fill(~visible, 0.0))


def _table(
    numbers: Float[Tensor, "batch heads queries keys"], visible: Bool[Tensor, "#batch #heads queries keys"]
) -> Float[Tensor, "batch heads distances"] | None:
    """The bias by distance, from 1 - n to m - 1, if visible pairs of a distance share one; 0 where none is visible."""
    n, m = numbers.shape[-2:]
    lead = numbers.shape[:2]
    low = numbers.new_full((*lead, n + m - 1), math.inf)
    high = numbers.new_full((*lead, n + m - 1), -math.inf)
    for first in range(0, n, COMPARED_ROWS):
        part = numbers[..., first : first + COMPARED_ROWS, :]
        visible_part = visible[..., first : first + COMPARED_ROWS, :].expand_as(part)
        rows = torch.arange(first, first + part.shape[-2], device=numbers.device)
        at = (torch.arange(m, device=numbers.device) - rows[:, None] + n - 1).expand_as(part).flatten(2)
        low.scatter_reduce_(-1, at, part.masked_fill(~visible_part, math.inf).flatten(2), "amin")
        high.scatter_reduce_(-1, at, part.masked_fill(~visible_part, -math.inf).flatten(2), "amax")
        if bool((low < high).any()):
            return None
    return torch.where(low == math.inf, 0.0, low)
