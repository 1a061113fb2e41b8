"""Leave-one-out for a block of rows against all points: their own weight never enters, so nothing is subtracted."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.operands import NEVER
from regard.regression.bandwidth.leave_one_out.categorical import Unlike
from regard.regression.bandwidth.problem import Problem
from regard.regression.kernel_sums.kernel_derivatives import steepness
from regard.regression.local.linear_exact import FLAT, TINY
from regard.regression.local.linear_exact import line as exact_line
from regard.scores._distance import LOG_KERNELS, squared_distance

FIRM = 1e-5  # in units of the distance to the points: where they differ less than this, these are asked themselves
ROUNDED = 1e-2  # of a second moment from the origin: times FLAT this is well above rounding


class Room(NamedTuple):
    """Where a block is computed, used again by the next: fresh memory costs more than what is written into it."""

    scores: Tensor
    weights: Tensor

    @classmethod
    def of(cls, pairs: int) -> Room:
        return cls(*torch.empty(2, pairs, dtype=torch.float64))


class Kernels(NamedTuple):
    """Weights of all points for some rows, and how they answer to the bandwidth."""

    weights: Float[Tensor, "rows n"]  # sum to 1 over the others; the row's own is 0
    slopes: Float[Tensor, "rows n"]  # d weights (their sum held) / d log h_k = slopes * ((x_i - x_j)_k / h_k)^2
    alone: Tensor | None  # bool (rows,): those that see no other point, and are predicted by the nearest


def kernels(
    problem: Problem,
    x: Float[Tensor, "n dim"],
    rows: Tensor,
    room: Room,
    unlike: Unlike | None = None,
    *,
    slopes: bool,
) -> Kernels:
    """Weights of the points `x`, in units of the bandwidth, for the rows of these indices, themselves left out."""
    kernel, log_weight = problem.kernel, problem.log_weight
    if kernel == "gaussian":
        # |x_i|^2 is the same for a whole row and need not be subtracted.
        bias = x.square().sum(1) * -0.5
        scores, weights = (place[: len(rows) * len(x)].view(len(rows), len(x)) for place in room)
        torch.addmm(bias if log_weight is None else bias + log_weight, x[rows], x.mT, out=scores)
        if unlike is not None:
            scores += unlike.weights()
        _leave_out(scores, rows, problem.log_kept)
        if unlike is not None:
            unlike.limit(scores)
        torch.softmax(scores, 1, out=weights)
        return Kernels(weights, weights, None)
    square = squared_distance(x[rows], x) if x.shape[1] else x.new_zeros(len(rows), len(x))
    scores = LOG_KERNELS[kernel](square)
    if unlike is not None:
        log_weight = unlike.weights() if log_weight is None else unlike.weights() + log_weight
    if log_weight is not None:
        scores = scores + log_weight
    _leave_out(scores, rows, problem.log_kept)
    if unlike is not None:
        unlike.limit(scores)
    total = torch.logsumexp(scores, 1, keepdim=True)
    alone = total == NEVER
    weights = torch.exp(scores - total.where(~alone, 0.0))
    steep = steepness(kernel, square, weights, total.squeeze(1), log_weight) if slopes else weights
    lonely = alone.squeeze(1)
    if not lonely.any():
        return Kernels(weights, steep, None)
    weights[lonely] = _nearest(square[lonely], rows[lonely], problem.log_weight)
    return Kernels(weights, steep, lonely)


def _leave_out(scores: Tensor, rows: Tensor, log_kept: Tensor | None) -> None:
    own = torch.arange(len(rows), device=rows.device), rows
    scores[own] = NEVER if log_kept is None else scores[own] + log_kept[rows]


def _nearest(square: Tensor, rows: Tensor, log_weight: Tensor | None) -> Tensor:
    """A point that sees no other is predicted by the nearest ones, as the estimator predicts out of reach."""
    _leave_out(scores := -square, rows, None)  # what is kept of a point would have been seen
    if log_weight is not None:
        scores = scores.masked_fill(log_weight == NEVER, NEVER)
    best = scores.amax(1, keepdim=True)
    share = ((scores >= best) & (best > NEVER)).to(square.dtype)
    if log_weight is not None:
        share = share * torch.exp(log_weight - log_weight.max())
    return share / share.sum(1, keepdim=True)  # 0 / 0 where there is no other point at all: NaN, as it should be


class Lines(NamedTuple):
    """What is fitted around each row: `fit` there, slopes, and by what the fit multiplies a weight, a + b . z_j."""

    fit: Float[Tensor, "rows outputs"]
    slope: Float[Tensor, "rows dim outputs"]
    a: Float[Tensor, " rows"]
    b: Float[Tensor, "rows dim"]
    firm: Float[Tensor, " rows"]  # how much the points differ where they differ least; 1 is a lot


def lines(
    weights: Float[Tensor, "rows n"],
    z: Float[Tensor, "n dim"],
    at: Float[Tensor, "rows dim"],
    y: Float[Tensor, "n out"],
) -> Lines:
    """Local lines in z by weighted least squares: from the moments of the weights, or from the points where weak."""
    found = lines_of_moments(at, *split_moments(weights @ moments(z, y), z.shape[1], y.shape[1]))
    weak = (~(found.firm >= FIRM)).nonzero().flatten()
    for rows in weak.split(max(1, 2**16 // len(z))):
        for old, new in zip(found, _from_points(weights[rows], z, at[rows], y), strict=False):
            old[rows] = new
    return found


def _from_points(weights: Tensor, z: Tensor, at: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The same from differences: where points hardly differ, moments from elsewhere round it away."""
    weights = weights.nan_to_num()  # a row with no other point: its fit is told apart from lines
    line = exact_line(weights, (z - at.unsqueeze(1)).mT, torch.zeros_like(at), y)
    a = 1 - (line.tilt * (at + line.mean)).sum(1)
    return line.value(y), line.slope, a, line.tilt


def moments(z: Float[Tensor, "n dim"], y: Float[Tensor, "n outputs"]) -> Float[Tensor, "n columns"]:
    """The columns whose weighted means give a local line: z, y, z z' and z y'."""
    return torch.cat((z, y, _products(z, z), _products(z, y)), 1)


def split_moments(mean: Float[Tensor, "rows columns"], dim: int, outputs: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Means of `moments`, each in its own shape."""
    z, y, zz, zy = mean.split((dim, outputs, dim * dim, dim * outputs), 1)
    return z, y, zz.unflatten(1, (dim, dim)), zy.unflatten(1, (dim, outputs))


def lines_of_moments(at: Tensor, z: Tensor, y: Tensor, zz: Tensor, zy: Tensor) -> Lines:
    """Local lines at the points `at` from weighted means of z, y, z z' and z y', all from the same origin.

    A direction in which the weighted points hardly differ has no slope: with too few points in reach the line is the
    flattest of those that fit best.
    """
    spread = zz - z.unsqueeze(2) * z.unsqueeze(1)
    common = zy - z.unsqueeze(2) * y.unsqueeze(1)
    away = at - z
    seconds = zz.diagonal(dim1=1, dim2=2)
    # In units of how far the points are from the row, feature by feature; what is rounded is a moment from the origin.
    unit = (spread.diagonal(dim1=1, dim2=2) + away.square() + ROUNDED * seconds).sqrt().clamp_min(TINY).unsqueeze(2)
    inverse, firm = _pseudo_inverse(spread / unit / unit.mT)
    inverse = inverse / unit / unit.mT
    slope = inverse @ common
    b = (inverse @ away.unsqueeze(2)).squeeze(2)
    fit = y + (away.unsqueeze(1) @ slope).squeeze(1)
    return Lines(fit, slope, 1 - (b * z).sum(1), b, firm)


def _pseudo_inverse(spread: Float[Tensor, "rows dim dim"]) -> tuple[Tensor, Float[Tensor, " rows"]]:
    if not spread.shape[-1]:  # all features are categories: there is no line to be weak
        return spread, spread.new_full((len(spread),), torch.inf)
    if spread.shape[-1] == 1:
        return torch.where(spread > FLAT, 1 / spread, 0.0), spread.flatten()
    # NaN, a row with no other point, would be an error instead of an answer.
    strength, direction = torch.linalg.eigh(spread.nan_to_num())
    inverse = torch.where(strength > FLAT, 1 / strength, 0.0).unsqueeze(1)
    return (direction * inverse) @ direction.mT, strength[:, 0]


def _products(left: Tensor, right: Tensor) -> Tensor:
    return (left.unsqueeze(2) * right.unsqueeze(1)).flatten(1)
