"""Numbers that a model added to its scores: a table of distances if that is what they are, else kept as they came."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from regard import scores
from regard.capture._mask_form import Visible, recognise
from regard.scores import Score

ROWS = 256  # of a bias that are looked at a time


@dataclass(frozen=True, eq=False)
class Bias:
    """Either `table` with the distance j - i of its first number, or `pairs`."""

    table: Tensor | None = None  # (batch or 1, heads or 1, distances)
    first: int = 0
    pairs: Tensor | None = None  # (batch or 1, heads or 1, n or 1, m)

    def score(self) -> Score:
        if self.table is not None:
            return scores.relative(self.table, self.first)
        assert self.pairs is not None  # noqa: S101  one of the two is always there
        return scores.bias(self.pairs)

    def dense(self, n: int, m: int) -> Tensor:
        """(batch or 1, heads or 1, n or 1, m)."""
        if self.table is None:
            assert self.pairs is not None  # noqa: S101
            return self.pairs
        rows, cols = (torch.arange(length, device=self.table.device) for length in (n, m))
        return self.table[..., cols - rows[:, None] - self.first]

    def describe(self) -> str:
        if self.table is not None:
            return "bias by distance"
        assert self.pairs is not None  # noqa: S101
        return f"a bias of its own, {self.pairs.numel() * self.pairs.element_size():,} bytes"


def read_mask(mask: Tensor | None, *, causal: bool, n: int, m: int) -> tuple[Visible, Bias | None]:
    """A mask as torch and Hugging Face models give it, any shape that broadcasts to (batch, heads, n, m).

    True keeps. Numbers are added to scores; -inf hides, and so does what is as good as -inf: the most negative number
    of the type, with or without something added to it.
    """
    seen = Visible(right=0) if causal else Visible()
    if mask is None:
        return seen, None
    mask = mask.detach()[(None,) * (4 - mask.dim())].expand(-1, -1, n, m)
    if mask.dtype == torch.bool:
        visible, bias = mask, None
    else:
        visible = mask > torch.finfo(mask.dtype).min / 2
        bias = read_bias(mask, visible)
    if causal:
        visible = visible & seen.dense(n, m, mask.device)
    return recognise(visible), bias


def read_bias(numbers: Tensor, visible: Tensor) -> Bias | None:
    """What visible numbers add, or None if that is nothing."""
    for dim in (0, 1, 2):
        if numbers.stride(dim) == 0:
            numbers = numbers.narrow(dim, 0, 1)
    if not bool((numbers.masked_fill(~visible, 0.0) != 0).any()):
        return None
    if numbers.shape[-2] == 1:
        return Bias(pairs=numbers.masked_fill(~visible.any(-2, keepdim=True), 0.0))
    table = _table(numbers, visible)
    if table is not None:
        return Bias(table=table, first=1 - numbers.shape[-2])
    return Bias(pairs=numbers.masked_fill(~visible, 0.0))


def _table(numbers: Tensor, visible: Tensor) -> Tensor | None:
    """The number of each distance 1 - n to m - 1, if all that is visible at one distance is the same; 0 if unseen."""
    n, m = numbers.shape[-2:]
    lead = numbers.shape[:2]
    low = numbers.new_full((*lead, n + m - 1), math.inf)
    high = numbers.new_full((*lead, n + m - 1), -math.inf)
    for first in range(0, n, ROWS):
        part = numbers[..., first : first + ROWS, :]
        seen = visible[..., first : first + ROWS, :].expand_as(part)
        rows = torch.arange(first, first + part.shape[-2], device=numbers.device)
        at = (torch.arange(m, device=numbers.device) - rows[:, None] + n - 1).expand_as(part).flatten(2)
        low.scatter_reduce_(-1, at, part.masked_fill(~seen, math.inf).flatten(2), "amin")
        high.scatter_reduce_(-1, at, part.masked_fill(~seen, -math.inf).flatten(2), "amax")
        if bool((low < high).any()):
            return None
    return torch.where(low == math.inf, 0.0, low)
