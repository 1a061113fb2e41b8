"""What is worth knowing of data before anything is averaged, in one pass over its blocks."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression.out_of_core.source import Block, Blocks, Progress

TINY = torch.finfo(torch.float64).tiny


class Moments(NamedTuple):
    """Total weight, mean, sum of squared deviations and range of columns; of two parts together by Chan's formula."""

    total: Float[Tensor, ""]
    mean: Float[Tensor, " columns"]
    squares: Float[Tensor, " columns"]
    low: Float[Tensor, " columns"]
    high: Float[Tensor, " columns"]

    @staticmethod
    def of(columns: Float[Tensor, "rows columns"], weight: Float[Tensor, " rows"] | None = None) -> Moments:
        if weight is not None:
            columns, weight = columns[weight > 0], weight[weight > 0]
        w = columns.new_ones(len(columns)) if weight is None else weight
        total = w.sum()
        mean = (w @ columns) / total.clamp_min(TINY)
        ends = torch.cat((columns, columns.new_full((1, columns.shape[1]), math.inf)))
        low = ends.amin(0)
        ends[-1] = -math.inf
        return Moments(total, mean, w @ (columns - mean).square(), low, ends.amax(0))

    def merge(self, other: Moments) -> Moments:
        total = self.total + other.total
        share = other.total / total.clamp_min(TINY)
        gap = other.mean - self.mean
        squares = self.squares + other.squares + gap.square() * self.total * share
        low, high = torch.minimum(self.low, other.low), torch.maximum(self.high, other.high)
        return Moments(total, self.mean + gap * share, squares, low, high)

    def deviation(self) -> Float[Tensor, " columns"]:
        return (self.squares / self.total.clamp_min(TINY)).sqrt()


class Summary(NamedTuple):
    """Rows, and moments: x and y with their weights, and y without, in whose deviation errors are promised."""

    rows: int
    weight_squares: Float[Tensor, ""]
    weighing: int  # rows of a weight above 0
    x: Moments
    y: Moments
    plain_y: Moments

    def scale(self) -> Float[Tensor, " outputs"]:
        """`scale_of` the whole y."""
        deviation = self.plain_y.deviation()
        return torch.where(deviation > 0, deviation, 1.0)

    def span(self) -> float:
        """How far apart two values of y can be, in units of `scale`."""
        return float(((self.plain_y.high - self.plain_y.low) / self.scale()).max())

    def effective_rows(self) -> float:
        """(sum s)^2 / sum s^2: the number of rows, if they all weigh the same."""
        return float(self.x.total.square() / self.weight_squares.clamp_min(TINY))


def summarise(blocks: Blocks, progress: Progress | None = None) -> Summary:
    """The summary of data in blocks; refuses what is not finite, saying where."""
    return blocks.fold(_of_block, _merge, blocks.names or blocks.labels, progress)


def _of_block(names: tuple[str, ...], block: Block) -> Summary:
    x, y, weight, _, _ = block.checked(names)
    squares = torch.tensor(float(len(x)), dtype=torch.float64) if weight is None else weight.square().sum()
    weighing = len(x) if weight is None else int((weight > 0).sum())
    return Summary(len(x), squares, weighing, Moments.of(x, weight), Moments.of(y, weight), Moments.of(y))


def _merge(one: Summary, two: Summary) -> Summary:
    return Summary(
        one.rows + two.rows,
        one.weight_squares + two.weight_squares,
        one.weighing + two.weighing,
        one.x.merge(two.x),
        one.y.merge(two.y),
        one.plain_y.merge(two.plain_y),
    )
