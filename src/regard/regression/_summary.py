"""What is worth knowing of data before anything is averaged, in one pass over its blocks."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression._blocks import Block, Blocks, Progress


class Moments(NamedTuple):
    """Total weight, mean and sum of squared deviations of columns: of two parts together by Chan's formula."""

    total: Float[Tensor, ""]
    mean: Float[Tensor, " columns"]
    squares: Float[Tensor, " columns"]

    @staticmethod
    def of(columns: Float[Tensor, "rows columns"], weight: Float[Tensor, " rows"] | None = None) -> Moments:
        w = columns.new_ones(len(columns)) if weight is None else weight
        total = w.sum()
        mean = (w @ columns) / total.clamp_min(_TINY)
        return Moments(total, mean, w @ (columns - mean).square())

    def merge(self, other: Moments) -> Moments:
        total = self.total + other.total
        share = other.total / total.clamp_min(_TINY)
        gap = other.mean - self.mean
        squares = self.squares + other.squares + gap.square() * self.total * share
        return Moments(total, self.mean + gap * share, squares)

    def deviation(self) -> Float[Tensor, " columns"]:
        return (self.squares / self.total.clamp_min(_TINY)).sqrt()


_TINY = torch.finfo(torch.float64).tiny


class Summary(NamedTuple):
    """Rows, and moments: x and y with their weights, and y without, in whose deviation errors are promised."""

    rows: int
    weight_squares: Float[Tensor, ""]
    x: Moments
    y: Moments
    plain_y: Moments

    def scale(self) -> Float[Tensor, " outputs"]:
        """`scale_of` the whole y."""
        deviation = self.plain_y.deviation()
        return torch.where(deviation > 0, deviation, 1.0)

    def effective_rows(self) -> float:
        """(sum s)^2 / sum s^2: the number of rows, if they all weigh the same."""
        return float(self.x.total.square() / self.weight_squares.clamp_min(_TINY))


def summarise(blocks: Blocks, progress: Progress | None = None) -> Summary:
    """The summary of data in blocks; refuses what is not finite, saying where."""
    return blocks.fold(_of_block, _merge, blocks.names, progress)


def _of_block(names: tuple[str, ...] | None, block: Block) -> Summary:
    x, y, weight, _, _ = block.checked(names)
    squares = torch.tensor(float(len(x)), dtype=torch.float64) if weight is None else weight.square().sum()
    return Summary(len(x), squares, Moments.of(x, weight), Moments.of(y, weight), Moments.of(y))


def _merge(one: Summary, two: Summary) -> Summary:
    return Summary(
        one.rows + two.rows,
        one.weight_squares + two.weight_squares,
        one.x.merge(two.x),
        one.y.merge(two.y),
        one.plain_y.merge(two.plain_y),
    )
