"""The points nearest to a query, as a state that merges: what answers where a compact kernel reaches nobody."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.regression.kernel_sums.sample import Sample

TILE = 2**20  # distances that are held at a time
ROUNDING = 2.0**-50  # of products and their sum: what differs by less is as near


class Nearest(NamedTuple):
    """How far the nearest points are, what they weigh together, and their mean."""

    square: Float[Tensor, " q"]  # in units of the bandwidth; inf before any point
    total: Float[Tensor, " q"]
    mean: Float[Tensor, "q columns"]

    @staticmethod
    def nobody(queries: int, columns: int, like: Tensor) -> Nearest:
        """What is known before any point: the identity of `merge`."""
        square = torch.full((queries,), math.inf, dtype=torch.float64, device=like.device)
        return Nearest(square, torch.zeros_like(square), square.new_zeros(queries, columns))

    @staticmethod
    def of(
        square: Float[Tensor, "q n"], weight: Float[Tensor, " n"] | None, values: Float[Tensor, "n columns"]
    ) -> Nearest:
        """Of all points at these distances; inf: the point does not count."""
        if not square.shape[1]:
            return Nearest.nobody(len(square), values.shape[1], square)
        best = square.amin(1)
        near = ((square == best.unsqueeze(1)) & (square < math.inf)).to(square.dtype)
        near = near if weight is None else near * weight
        total = near.sum(1)
        return Nearest(best, total, near @ values / torch.where(total > 0, total, 1.0).unsqueeze(1))

    def merge(self, other: Nearest) -> Nearest:
        square = torch.minimum(self.square, other.square)
        mine = torch.where(self.square == square, self.total, 0.0)
        theirs = torch.where(other.square == square, other.total, 0.0)
        total = mine + theirs
        share = (theirs / torch.where(total > 0, total, 1.0)).unsqueeze(1)
        return Nearest(square, total, self.mean + share * (other.mean - self.mean))


def nearest(sample: Sample, query: Float[Tensor, "q dim"], rows: Int[Tensor, " asked"]) -> Nearest:
    """The points of a sample that are nearest to some of the queries; the other queries learn nothing."""
    told = torch.isfinite(sample.bandwidth)
    width = sample.bandwidth[told]
    x, asked = sample.x[:, told] / width, query[rows][:, told] / width
    weight = None if sample.log_weight is None else sample.log_weight.exp()
    parts = asked.split(max(1, TILE // (len(x) + 1)))
    found = [Nearest.of(_squares(some, x, weight), weight, sample.values) for some in parts]
    known = Nearest(*(torch.cat(part) for part in zip(*found, strict=True)))
    whole = Nearest.nobody(len(query), sample.values.shape[1], query)
    return Nearest(*(part.index_copy(0, rows, better) for part, better in zip(whole, known, strict=True)))


def _squares(query: Tensor, x: Tensor, weight: Tensor | None) -> Tensor:
    # Not |a|^2 + |b|^2 - 2 ab: far away it could not tell the points apart.
    square = query.new_zeros(len(query), len(x))
    for a, b in zip(query.unbind(1), x.unbind(1), strict=True):
        square += (a.unsqueeze(1) - b).square()
    return square if weight is None else square.masked_fill(weight == 0, math.inf)


def nearest_of(
    query: Float[Tensor, "q dim"], x: Float[Tensor, "n dim"], width: Float[Tensor, " dim"]
) -> Bool[Tensor, "q n"]:
    """Which points are nearest to each query, at any distance: by differences of squares, as in `_apart`.

    Far away all squares are rounded to the same number, and the first point is as good as any to begin with. The one
    that is nearest beside it takes its place, until there is none: features that are farther are decided first.
    """
    first = _squares(query / width, x / width, None).argmin(1)
    nearer, rounded = _nearer(query, x, width, first)
    for _ in range(x.shape[1]):
        best = (nearer - rounded).argmax(1)
        better = (nearer - rounded).gather(1, best.unsqueeze(1)).squeeze(1) > 0
        if not bool(better.any()):
            break
        first = torch.where(better, best, first)
        nearer, rounded = _nearer(query, x, width, first)
    return nearer >= -rounded


def _nearer(query: Tensor, x: Tensor, width: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """By how much half the square of each distance is below that of the first point, and the rounding of that."""
    nearer, size = query.new_zeros(len(query), len(x)), query.new_zeros(len(query), len(x))
    for a, b, h in zip(query.unbind(1), x.unbind(1), width.unbind(), strict=True):
        there = b[first].unsqueeze(1)
        product = (b - there) / h * ((a.unsqueeze(1) - (b + there) / 2) / h)
        nearer += product
        size += product.abs()
    return nearer, size * ROUNDING
