"""Weighted least squares for local linear fits: one line (a hyperplane in several features) at each query.

With weights p_i of sum 1 around a query v, the mean m = sum_i p_i v_i and the covariance
S = sum_i p_i (v_i - m)(v_i - m)', the line at the query is

    f = E[y] + (v - m)' S^+ Cov(v, y) = sum_i l_i y_i,    l_i = p_i (1 + (v - m)' S^+ (v_i - m)).

S^+ is a pseudo-inverse. A direction in which the points vary by less than a millionth of their distance to the query
counts as flat: its slope is 0. Distances are taken feature by feature, so the units of the features do not matter.

There are three solvers, for three kinds of input:

    fit_points              the points around each query: exact, whatever the data
    Moments                 means of v, y, v y' and v v' around each query: fast, loses digits far from the origin
    gauss_jordan_inverse    normal equations of many queries: fastest, its result has to be checked against its input
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.regression.kernel_sums.sample import Sample

# All variances here are shares of the squared distance between the query and its points, feature by feature.
RANK_TOLERANCE = 1e-12  # a direction of less variance is flat: the square of a millionth, as in tests/local_line.py
FLAT_MARGIN = 16.0  # a direction is surely not flat if its variance is 16 x (RANK_TOLERANCE + its error)
QR_BELOW = 1e-3  # with less variance in a direction, S has lost 3 of 16 digits: the points are factorised instead
MOMENT_ROUNDING = 1e-2  # share of E[v^2] in the unit: 1e-2 x RANK_TOLERANCE is 45 x float64's rounding of E[v^2]
SMALLEST_UNIT = 1e-150  # its square is still a float64
SMALLEST_TOL = 1e-14  # of averages: less is the rounding of float64
FIRST_ORDER_MARGIN = 2.0  # x the first-order error: where that is small, the rest is smaller


# From the points


class PointFit(NamedTuple):
    """Local lines through points, seen from the weighted mean m of the points of each query."""

    rows: Float[Tensor, "q n"]  # l: the line is rows @ y
    level: Float[Tensor, "q outputs"]  # E[y]
    slope: Float[Tensor, "q dim outputs"]  # S^+ Cov(v, y)
    tilt: Float[Tensor, "q dim"]  # S^+ (v - m)
    mean: Float[Tensor, "q dim"]  # m, from the origin of the points
    mahalanobis: Float[Tensor, " q"]  # (v - m)' S^+ (v - m), the squared Mahalanobis distance of the query
    around: Float[Tensor, "q dim n"]  # v_i - m

    def value(self, values: Float[Tensor, "n outputs"]) -> Float[Tensor, "q outputs"]:
        """Value of the line at the query. `level` corrects rows whose sum is 1 up to rounding."""
        return self.rows @ values + self.level * (1 - self.rows.sum(1, keepdim=True))


def fit_points(
    weights: Float[Tensor, "q n"],
    points: Float[Tensor, "q dim n"],
    query: Float[Tensor, "q dim"],
    values: Float[Tensor, "n outputs"],
) -> PointFit:
    """Fit a line at each query through points that are measured from an origin near that query.

    Every v_i - m is a difference before it is squared, so S keeps its digits however little the points differ. Where
    they differ much less in one direction than in another, half of the digits would still be lost: there the points
    are factorised (QR, then SVD) and S is not formed.
    """
    level = weights @ values
    mean = (points @ weights.unsqueeze(2)).squeeze(2)
    around, away = points - mean.unsqueeze(2), query - mean
    weighted = around * weights.unsqueeze(1)
    covariance = weighted @ around.mT
    unit = (covariance.diagonal(dim1=1, dim2=2) + away.square()).sqrt().clamp_min(SMALLEST_UNIT)
    variance, direction = _eigen(covariance / unit.unsqueeze(2) / unit.unsqueeze(1))
    inverse = torch.where(variance > RANK_TOLERANCE, 1 / variance, 0.0)
    aim = (away / unit).unsqueeze(1) @ direction  # (q, 1, dim)
    tilt = (direction @ (inverse.unsqueeze(1) * aim).mT).squeeze(2) / unit
    with_y = weighted @ values - weighted.sum(2, keepdim=True) * level.unsqueeze(1)
    slope = direction @ (inverse.unsqueeze(2) * (direction.mT @ (with_y / unit.unsqueeze(2)))) / unit.unsqueeze(2)
    mahalanobis = (inverse * aim.squeeze(1).square()).sum(1)
    rows = torch.addcmul(weights, weights, (tilt.unsqueeze(1) @ around).squeeze(1))
    weak = (~(variance >= QR_BELOW).all(1)).nonzero().flatten()
    if around.shape[1] > 1 and len(weak):
        better = _by_qr(weights[weak], around[weak], away[weak], unit[weak], values, level[weak])
        for whole, part in zip((rows, slope, tilt, mahalanobis), better, strict=True):
            whole[weak] = part
    return PointFit(rows, level, slope, tilt, mean, mahalanobis, around)


def _by_qr(
    weights: Tensor, around: Tensor, away: Tensor, unit: Tensor, values: Tensor, level: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rows, slope, tilt and Mahalanobis distance from a QR factorisation of the weighted points."""
    root, size = weights.sqrt().unsqueeze(1), unit.unsqueeze(2)
    basis, triangle = torch.linalg.qr((root * around / size).mT)  # (q, n, k), (q, k, dim)
    left, deviation, right = torch.linalg.svd(triangle, full_matrices=False)
    inverse = torch.where(deviation.square() > RANK_TOLERANCE, 1 / deviation, 0.0).unsqueeze(2)
    aim = inverse * (right @ (away.unsqueeze(2) / size))  # (q, k, 1)
    rows = weights + (root.mT * (basis @ (left @ aim))).squeeze(2)
    weighted = root * basis.mT
    height = weighted @ values - weighted.sum(2, keepdim=True) * level.unsqueeze(1)
    slope = right.mT @ (inverse * (left.mT @ height)) / size
    tilt = (right.mT @ (inverse * aim) / size).squeeze(2)
    return rows, slope, tilt, aim.square().sum((1, 2))


# From moments


@dataclass(frozen=True, eq=False)
class Frame:
    """Origin and units in which moments lose few digits: v = (x - centre) / unit, and y - level.

    A covariance from moments is E[v y] - E[v] E[y], a difference of averages. It is accurate where v is about 1.
    """

    centre: Float[Tensor, " dim"]
    unit: Float[Tensor, " dim"]
    level: Float[Tensor, " outputs"]

    @classmethod
    def of(cls, sample: Sample) -> Frame:
        x, share = sample.x, sample.share()
        centre = share @ x
        deviation = (share @ (x - centre).square()).sqrt()
        return cls.around(centre, deviation, sample.bandwidth, share @ sample.values)

    @classmethod
    def around(
        cls,
        centre: Float[Tensor, " dim"],
        deviation: Float[Tensor, " dim"],
        bandwidth: Float[Tensor, " dim"],
        level: Float[Tensor, " outputs"],
    ) -> Frame:
        """Build a frame from the means of x and y; the unit is the bandwidth or, if smaller, the deviation of x."""
        # A feature of infinite bandwidth does not change the weights, but the line has a slope along it.
        unit = torch.minimum(bandwidth, deviation)
        return cls(centre, torch.where(unit > 0, unit, 1.0), level)

    def place(self, points: Float[Tensor, "q dim"]) -> Float[Tensor, "q dim"]:
        """Points in the coordinates of the frame, v."""
        return (points - self.centre) / self.unit

    def columns(self, x: Float[Tensor, "n dim"], y: Float[Tensor, "n outputs"]) -> Float[Tensor, "n columns"]:
        """Columns whose averages around a query are the moments of its line."""
        return moment_columns(self.place(x), y - self.level)


def tol_of_averages(tol: float, v: Float[Tensor, "n dim"], order: int) -> float:
    """Error that averages may have so that a covariance of order 1 (v with y) or 2 (v with v) has an error of `tol`."""
    farthest = float(v.abs().amax()) if v.numel() else 0.0
    return max(tol / (4 * (1 + farthest**order)), SMALLEST_TOL)


def moment_columns(v: Float[Tensor, "n dim"], y: Float[Tensor, "n outputs"]) -> Float[Tensor, "n columns"]:
    """Columns v, y, v y' and the upper triangle of v v'. Their weighted means are the moments of a line."""
    rows, cols = torch.triu_indices(v.shape[1], v.shape[1], device=v.device)
    return torch.cat([v, y, products(v, y), v[:, rows] * v[:, cols]], 1)


def split_columns(columns: Float[Tensor, "q columns"], dim: int, outputs: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Parts of `moment_columns`, each in its shape: (q, dim), (q, outputs), (q, dim, outputs), (q, dim, dim)."""
    rows, cols = torch.triu_indices(dim, dim, device=columns.device)
    v, y, vy, upper = columns.split([dim, outputs, dim * outputs, len(rows)], 1)
    vv = columns.new_zeros(len(columns), dim, dim)
    vv[:, rows, cols] = upper
    vv[:, cols, rows] = upper
    return v, y, vy.unflatten(1, (dim, outputs)), vv


def products(v: Float[Tensor, "n dim"], y: Float[Tensor, "n outputs"]) -> Float[Tensor, "n products"]:
    """Product of each column of v with each column of y."""
    return (v.unsqueeze(2) * y.unsqueeze(1)).flatten(1)


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted means and covariances of v and y around each query."""

    v: Float[Tensor, "q dim"]  # m
    away: Float[Tensor, "q dim"]  # from m to the query
    vv: Float[Tensor, "q dim dim"]  # S
    y: Float[Tensor, "q outputs"]  # E[y]
    vy: Float[Tensor, "q dim outputs"]  # Cov(v, y)

    @classmethod
    def of(cls, query: Float[Tensor, "q dim"], mean: Float[Tensor, "q columns"], outputs: int) -> Moments:
        """Moments from the weighted means of `moment_columns`; the queries are in the coordinates of v."""
        v, y, vy, vv = split_columns(mean, query.shape[1], outputs)
        vv = vv - v.unsqueeze(2) * v.unsqueeze(1)
        return cls(v, query - v, vv, y, vy - v.unsqueeze(2) * y.unsqueeze(1))

    @cached_property
    def inverse(self) -> Float[Tensor, "q dim dim"]:
        """S^+, as `fit_points` has it."""
        return self.pseudo_inverse()[0]

    def pseudo_inverse(self, *, minimum_norm: bool = True) -> tuple[Float[Tensor, "q dim dim"], Float[Tensor, " q"]]:
        """S^+, and the smallest variance of a direction.

        Where a direction is flat, the smallest slope depends on the units of the features. With `minimum_norm` they are
        the distances to the points, as in `fit_points`; callers that fit the points instead do not need that.
        """
        variance = self.vv.diagonal(dim1=1, dim2=2)
        near, rounding = variance + self.away.square(), MOMENT_ROUNDING * (variance + self.v.square())
        unit = _unit(near + rounding)
        strength, direction = _eigen((self.vv / unit / unit.mT).nan_to_num())  # NaN would be an error of `eigh`
        kept = strength > RANK_TOLERANCE
        inverse = _compose(direction, torch.where(kept, 1 / strength, 0.0)) / unit / unit.mT
        some = (kept.any(1) & ~kept.all(1)).nonzero().squeeze(1) if minimum_norm else []
        if len(some):
            known = _compose(direction[some], torch.where(kept, strength, 0.0)[some]) * unit[some] * unit[some].mT
            inverse[some] = _minimum_norm_inverse(
                known, _unit(torch.maximum(near, RANK_TOLERANCE * rounding)[some]), kept[some].sum(1)
            )
        least = strength[:, 0] if strength.shape[1] else strength.new_full((len(strength),), torch.inf)
        return inverse, least

    def solve(self, right: Float[Tensor, "q dim columns"]) -> Float[Tensor, "q dim columns"]:
        """S^+ right, with one step of iterative refinement."""
        solution = self.inverse @ right
        return solution + self.inverse @ (right - self.vv @ solution)

    def value(self, slope: Float[Tensor, "q dim outputs"]) -> Float[Tensor, "q outputs"]:
        """Value of the line at the query."""
        return self.y + (self.away.unsqueeze(1) @ slope).squeeze(1)

    def tilt(self, errors: MomentErrors) -> tuple[Float[Tensor, "q dim"], Float[Tensor, "q dim"]]:
        """S^+ (v - m), and a bound on its error."""
        tilt = self.solve(self.away.unsqueeze(2))
        error = self.inverse.abs() @ (errors.v.unsqueeze(2) + errors.vv @ tilt.abs())
        return tilt.squeeze(2), FIRST_ORDER_MARGIN * error.squeeze(2)

    def line(self, errors: MomentErrors) -> tuple[Float[Tensor, "q outputs"], Float[Tensor, "q outputs"]]:
        """Value of the line at the query, and its error: dE[y] + b.dm + tilt.(dCov - dS b) with b the slope."""
        slope, tilt = self.solve(self.vy), self.solve(self.away.unsqueeze(2))
        by_covariance = tilt.abs().mT @ (errors.vy + errors.vv @ slope.abs())
        error = errors.y + (errors.v.unsqueeze(1) @ slope.abs() + by_covariance).squeeze(1)
        return self.value(slope), FIRST_ORDER_MARGIN * error

    def maybe_flat(self, errors: MomentErrors) -> Bool[Tensor, " q"]:
        """Queries where a direction may be flat, within the errors."""
        if not self.v.shape[1]:
            return torch.zeros(len(self.v), dtype=torch.bool, device=self.v.device)
        variance = self.vv.diagonal(dim1=1, dim2=2).clamp_min(0)
        unit = (variance + self.away.square()).sqrt().clamp_min(SMALLEST_UNIT).unsqueeze(2)
        least = torch.linalg.eigvalsh(self.vv / unit / unit.mT)[:, 0]
        error = (errors.vv / unit / unit.mT).sum(2).amax(1)
        return ~(least > FLAT_MARGIN * (RANK_TOLERANCE + error))


class MomentErrors(NamedTuple):
    """Bounds on the errors of `Moments`, part by part."""

    v: Float[Tensor, "q dim"]
    y: Float[Tensor, "q outputs"]
    vy: Float[Tensor, "q dim outputs"]
    vv: Float[Tensor, "q dim dim"]

    @classmethod
    def of(cls, moments: Moments, columns: Float[Tensor, "q columns"], mean: Float[Tensor, "q dim"]) -> MomentErrors:
        """Bounds from the errors of the averaged columns; `mean` is m from where these columns are measured."""
        v, y, vy, vv = split_columns(columns, moments.v.shape[1], moments.y.shape[1])
        mean, error = mean.abs().unsqueeze(2), v.unsqueeze(2)
        vv = vv + mean * error.mT + error * mean.mT
        return cls(v, y, vy + mean * y.unsqueeze(1) + error * moments.y.abs().unsqueeze(1), vv)


def _unit(square: Float[Tensor, "q dim"]) -> Float[Tensor, "q dim 1"]:
    return square.clamp_min(SMALLEST_UNIT).sqrt().unsqueeze(2)


def _eigen(matrix: Float[Tensor, "q dim dim"]) -> tuple[Float[Tensor, "q dim"], Float[Tensor, "q dim dim"]]:
    """Eigenvalues in ascending order, and eigenvectors."""
    if matrix.shape[1] < 2:
        return matrix.flatten(1), torch.ones_like(matrix)
    return torch.linalg.eigh(matrix)


def _compose(direction: Float[Tensor, "q dim dim"], strength: Float[Tensor, "q dim"]) -> Float[Tensor, "q dim dim"]:
    return (direction * strength.unsqueeze(1)) @ direction.mT


def _minimum_norm_inverse(
    covariance: Float[Tensor, "q dim dim"], unit: Float[Tensor, "q dim 1"], rank: Int[Tensor, " q"]
) -> Float[Tensor, "q dim dim"]:
    """Pseudo-inverse of a covariance of known rank: of all lines that fit, the flattest in these units."""
    strength, direction = _eigen(covariance / unit / unit.mT)
    kept = torch.arange(covariance.shape[1], device=rank.device) >= covariance.shape[1] - rank.unsqueeze(1)
    return _compose(direction, torch.where(kept, 1 / strength, 0.0)) / unit / unit.mT


# From normal equations


def gauss_jordan_inverse(matrix: Float[Tensor, "k k q"]) -> Float[Tensor, "k k q"]:
    """Inverses of many small matrices side by side, without pivoting.

    Nothing is promised: a caller bounds the error by multiplying the result with `matrix`.
    """
    work = matrix.clone()
    for pivot in range(len(work)):
        column, one = work[:, pivot].clone(), 1 / work[pivot, pivot]
        column[pivot] = 0.0
        row = work[pivot] * one
        row[pivot] = one
        work[:, pivot] = 0.0
        work[pivot] = 0.0
        work -= column.unsqueeze(1) * row.unsqueeze(0)
        work[pivot] = row
    return work
