"""Summary of out-of-core data in one pass: number of rows, and weighted moments and ranges of X and y."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression.out_of_core.source import Chunk, Source

TINY = torch.finfo(torch.float64).tiny


class ColumnMoments(NamedTuple):
    """Total weight, mean, sum of squared deviations and range of each column; merged by Chan's formula."""

    total: Float[Tensor, ""]
    mean: Float[Tensor, " columns"]
    squares: Float[Tensor, " columns"]
    low: Float[Tensor, " columns"]
    high: Float[Tensor, " columns"]

    @staticmethod
    def of(columns: Float[Tensor, "rows columns"], weight: Float[Tensor, " rows"] | None = None) -> ColumnMoments:
        """Compute the moments; rows of weight 0 do not count, not even for the range."""
        if weight is not None:
            columns, weight = columns[weight > 0], weight[weight > 0]
        w = columns.new_ones(len(columns)) if weight is None else weight
        total = w.sum()
        mean = (w @ columns) / total.clamp_min(TINY)
        ends = torch.cat((columns, columns.new_full((1, columns.shape[1]), math.inf)))
        low = ends.amin(0)
        ends[-1] = -math.inf
        return ColumnMoments(total, mean, w @ (columns - mean).square(), low, ends.amax(0))

    def merge(self, other: ColumnMoments) -> ColumnMoments:
        total = self.total + other.total
        share = other.total / total.clamp_min(TINY)
        gap = other.mean - self.mean
        squares = self.squares + other.squares + gap.square() * self.total * share
        low, high = torch.minimum(self.low, other.low), torch.maximum(self.high, other.high)
        return ColumnMoments(total, self.mean + gap * share, squares, low, high)

    def deviation(self) -> Float[Tensor, " columns"]:
        """Standard deviation of each column."""
        return (self.squares / self.total.clamp_min(TINY)).sqrt()


class Summary(NamedTuple):
    """Counts and moments of the data. Errors are promised in standard deviations of the unweighted y."""

    rows: int
    weight_squares: Float[Tensor, ""]
    positive_rows: int  # rows of a weight above 0
    x: ColumnMoments
    y: ColumnMoments
    unweighted_y: ColumnMoments

    def y_scale(self) -> Float[Tensor, " outputs"]:
        """Standard deviation of each unweighted output, or 1 where it is constant."""
        deviation = self.unweighted_y.deviation()
        return torch.where(deviation > 0, deviation, 1.0)

    def y_range(self) -> float:
        """Largest difference of two values of one output, in units of `y_scale`."""
        return float(((self.unweighted_y.high - self.unweighted_y.low) / self.y_scale()).max())

    def effective_rows(self) -> float:
        """Kish's effective sample size (sum s)^2 / sum s^2: the number of rows if all weights are equal."""
        return float(self.x.total.square() / self.weight_squares.clamp_min(TINY))


def summarise(source: Source) -> Summary:
    """Summarise a source in one pass; raise DataError at the first number that is not finite."""
    return source.fold(_summarise_chunk, _merge, source.feature_names or source.column_labels)


def _summarise_chunk(names: tuple[str, ...], chunk: Chunk) -> Summary:
    x, y, weight, *_ = chunk.checked(names)
    squares = torch.tensor(float(len(x)), dtype=torch.float64) if weight is None else weight.square().sum()
    positive_rows = len(x) if weight is None else int((weight > 0).sum())
    moments = ColumnMoments.of(x, weight), ColumnMoments.of(y, weight), ColumnMoments.of(y)
    return Summary(len(x), squares, positive_rows, *moments)


def _merge(one: Summary, two: Summary) -> Summary:
    return Summary(
        one.rows + two.rows,
        one.weight_squares + two.weight_squares,
        one.positive_rows + two.positive_rows,
        one.x.merge(two.x),
        one.y.merge(two.y),
        one.unweighted_y.merge(two.unweighted_y),
    )
