"""Local lines from the points themselves: the one exact way, whatever is asked of a line.

With p the weights around a query, m the mean of v under them and S its covariance, the line at the query is
sum_i l_i y_i with

    l_i = p_i (1 + (v - m) S^+ (v_i - m)).

Every v_i - m is a difference before it is squared, so that S keeps its digits however little the points differ. Where
they differ in one direction much less than in others, half of these digits would still be lost: there S is not formed,
and least squares goes by an orthogonal basis of the points.

A direction in which the points that matter vary by less than a millionth of how far the query is from them counts as
flat. Units are those of these distances, feature by feature, so that it does not matter how anything is measured.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard import kernels
from regard.regression.kernel_sums.relative_weights import Neighbourhood, Statistic, feature_units
from regard.regression.kernel_sums.sample import Sample

FLAT = 1e-12  # a local variance below that, over the square of the distance to the points, counts as none
FIRM = 1e-3  # from there on the covariance has digits enough
TINY = 1e-150


class Line(NamedTuple):
    """What is fitted around each query, as seen from the mean of its points."""

    rows: Float[Tensor, "q n"]  # l
    level: Float[Tensor, "q outputs"]  # the mean of y
    slope: Float[Tensor, "q dim outputs"]
    tilt: Float[Tensor, "q dim"]  # S^+ (v - m)
    mean: Float[Tensor, "q dim"]  # from the point nearest to the query
    lift: Float[Tensor, " q"]  # (v - m) S^+ (v - m)
    around: Float[Tensor, "q dim n"]  # v_i - m

    def value(self, values: Float[Tensor, "n outputs"]) -> Float[Tensor, "q outputs"]:
        """The line at the query itself; rows that sum to 1 but for rounding do not move it."""
        return self.rows @ values + self.level * (1 - self.rows.sum(1, keepdim=True))


def line(
    weights: Float[Tensor, "q n"],
    apart: Float[Tensor, "q dim n"],
    gap: Float[Tensor, "q dim"],
    values: Float[Tensor, "n outputs"],
) -> Line:
    """Through points that are `apart` from a place, near the query, from which `gap` leads to the query."""
    level = weights @ values
    mean = (apart @ weights.unsqueeze(2)).squeeze(2)
    around, away = apart - mean.unsqueeze(2), gap - mean
    weighted = around * weights.unsqueeze(1)
    spread = weighted @ around.mT
    unit = (spread.diagonal(dim1=1, dim2=2) + away.square()).sqrt().clamp_min(TINY)
    strength, direction = _directions(spread / unit.unsqueeze(2) / unit.unsqueeze(1))
    inverse = torch.where(strength > FLAT, 1 / strength, 0.0)
    aim = (away / unit).unsqueeze(1) @ direction  # (q, 1, dim)
    tilt = (direction @ (inverse.unsqueeze(1) * aim).mT).squeeze(2) / unit
    common = weighted @ values - weighted.sum(2, keepdim=True) * level.unsqueeze(1)
    slope = direction @ (inverse.unsqueeze(2) * (direction.mT @ (common / unit.unsqueeze(2)))) / unit.unsqueeze(2)
    lift = (inverse * aim.squeeze(1).square()).sum(1)
    rows = torch.addcmul(weights, weights, (tilt.unsqueeze(1) @ around).squeeze(1))
    weak = (~(strength >= FIRM).all(1)).nonzero().flatten()
    if around.shape[1] > 1 and len(weak):
        better = _by_basis(weights[weak], around[weak], away[weak], unit[weak], values, level[weak])
        for whole, part in zip((rows, slope, tilt, lift), better, strict=True):
            whole[weak] = part
    return Line(rows, level, slope, tilt, mean, lift, around)


def _directions(spread: Float[Tensor, "q dim dim"]) -> tuple[Float[Tensor, "q dim"], Float[Tensor, "q dim dim"]]:
    if spread.shape[1] < 2:
        return spread.flatten(1), torch.ones_like(spread)
    return torch.linalg.eigh(spread)


def _by_basis(
    weights: Tensor, around: Tensor, away: Tensor, unit: Tensor, values: Tensor, level: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rows, slope, tilt and lift."""
    root, size = weights.sqrt().unsqueeze(1), unit.unsqueeze(2)
    across, triangle = torch.linalg.qr((root * around / size).mT)  # (q, n, k), (q, k, dim)
    left, strength, right = torch.linalg.svd(triangle, full_matrices=False)
    inverse = torch.where(strength.square() > FLAT, 1 / strength, 0.0).unsqueeze(2)
    aim = inverse * (right @ (away.unsqueeze(2) / size))  # (q, k, 1)
    rows = weights + (root.mT * (across @ (left @ aim))).squeeze(2)
    basis = root * across.mT
    height = basis @ values - basis.sum(2, keepdim=True) * level.unsqueeze(1)
    slope = right.mT @ (inverse * (left.mT @ height)) / size
    tilt = (right.mT @ (inverse * aim) / size).squeeze(2)
    return rows, slope, tilt, aim.square().sum((1, 2))


def of(near: Neighbourhood, values: Float[Tensor, "n outputs"]) -> Line:
    """The line through the points around some queries; `values` are those of all points."""
    return line(near.weights, near.offset, near.query_offset, values[near.points])


# What is asked of a line


def value(values: Float[Tensor, "n outputs"]) -> Statistic:
    """The line at each query."""
    return lambda near: (of(near, values).value(values[near.points]),)


def rows(values: Float[Tensor, "n outputs"]) -> Statistic:
    """l, with a column for each point there is."""

    def answer(near: Neighbourhood) -> tuple[Tensor]:
        whole = values.new_zeros(len(near.queries), len(values))
        whole[:, near.points] = of(near, values[:, :0]).rows
        return (whole,)

    return answer


def lift(values: Float[Tensor, "n outputs"]) -> Statistic:
    """(v - m) S^+ (v - m)."""
    return lambda near: (of(near, values[:, :0]).lift,)


def noise(variance: Float[Tensor, "n outputs"], weight: Float[Tensor, " n"] | None) -> Statistic:
    """sum_i p_i variance_i, sum_i l_i^2 / s_i and sum_i p_i^2 / s_i."""

    def answer(near: Neighbourhood) -> tuple[Tensor, Tensor, Tensor]:
        found = of(near, variance[:, :0])
        rows = found.rows if weight is None else found.rows / weight[near.points].sqrt()
        level = near.weights if weight is None else near.weights / weight[near.points].sqrt()
        return near.weights @ variance[near.points], rows.square().sum(1), level.square().sum(1)

    return answer


def derivative(sample: Sample, values: Float[Tensor, "n outputs"]) -> Statistic:
    """df/dx.

    The line moves with its weights w: df = b.dx + sum_i l_i e_i dw_i / w_i, with b its slope and e what it misses.
    """
    told, unit = torch.isfinite(sample.bandwidth), feature_units(sample).unsqueeze(1)

    def answer(near: Neighbourhood) -> tuple[Tensor]:
        found = of(near, values)
        y = values[near.points]
        steep = kernels.get(sample.kernel).weight_derivative(near.square, near.weights, near.lse, near.log_weight)
        steep = steep * (1 + (found.tilt.unsqueeze(1) @ found.around).squeeze(1))
        toward = torch.where(told.unsqueeze(1), near.offset - near.query_offset.unsqueeze(2), 0.0)  # (q, dim, n)
        pull = steep.unsqueeze(1) * toward
        missed = pull @ y - pull.sum(2, keepdim=True) * found.level.unsqueeze(1)
        return ((found.slope + missed - (pull @ found.around.mT) @ found.slope) / unit,)

    return answer
