"""Leave-one-out for a block of rows against all points: their own weight never enters, so nothing is subtracted."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard._operands import NEVER
from regard.regression.selection._problem import Problem
from regard.regression.selection._unlike import Unlike
from regard.scores._distance import LOG_KERNELS, squared_distance

FLAT = 1e-12  # in units of the distance to the points: a direction in which they differ less has no slope
FIRM = 1e-5  # where they differ less than this, the row is its own origin
ROUNDED = 1e-2  # of a second moment from the origin: times FLAT this is well above rounding
TINY = 1e-150


def _of_root(slope: Callable[[Tensor], Tensor], at_zero: float = 0.0) -> Callable[[Tensor], Tensor]:
    def of_square(square: Tensor) -> Tensor:
        root = torch.where(square > 0, square, 1.0).sqrt()
        return torch.where(square > 0, slope(root), at_zero)

    return of_square


# -2 dK / d(u^2) inside the support, of u^2. (The last number is the value at 0, where the distance multiplies it away.)
SLOPES: dict[str, Callable[[Tensor], Tensor]] = {
    "laplace": _of_root(lambda u: torch.exp(-u) / u),
    "boxcar": torch.zeros_like,
    "epanechnikov": lambda square: torch.full_like(square, 2.0),
    "biweight": lambda square: 4 * (1 - square),
    "triweight": lambda square: 6 * (1 - square) ** 2,
    "triangular": _of_root(lambda u: 1 / u),
    "tricube": _of_root(lambda u: 9 * u * (1 - u**3) ** 2),
    "cosine": _of_root(lambda u: math.pi / 2 * torch.sin(math.pi / 2 * u) / u),
}


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
    steep = _steepness(kernel, square, scores, total, log_weight) if slopes else weights
    lonely = alone.squeeze(1)
    if not lonely.any():
        return Kernels(weights, steep, None)
    weights[lonely] = _nearest(square[lonely], rows[lonely], problem.log_weight)
    return Kernels(weights, steep, lonely)


def _leave_out(scores: Tensor, rows: Tensor, log_kept: Tensor | None) -> None:
    own = torch.arange(len(rows), device=rows.device), rows
    scores[own] = NEVER if log_kept is None else scores[own] + log_kept[rows]


def _steepness(kernel: str, square: Tensor, scores: Tensor, total: Tensor, log_weight: Tensor | None) -> Tensor:
    if kernel == "laplace":
        # Through the scores: far from everything the kernel itself is 0 in float64.
        return _of_root(lambda u: 1 / u)(square) * torch.exp(scores - total)
    steep = SLOPES[kernel](square.clamp_max(1.0)) * torch.exp(-total.where(total > NEVER, 0.0))
    if log_weight is not None:
        steep = steep * torch.exp(log_weight)
    return torch.where(scores > NEVER, steep, 0.0)


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
    """Local lines in z by weighted least squares, from the moments of the weights."""
    found = lines_of_moments(at, *split_moments(weights @ moments(z, y), z.shape[1], y.shape[1]))
    weak = (found.firm < FIRM).nonzero().flatten()
    for rows in weak.split(max(1, 2**16 // len(z))):
        for old, new in zip(found, _lines_from_rows(weights[rows], z, at[rows], y), strict=True):
            old[rows] = new
    return found


def _lines_from_rows(weights: Tensor, z: Tensor, at: Tensor, y: Tensor) -> Lines:
    """The same with each row as its own origin: where points hardly differ, moments from elsewhere round it away."""
    away = z - at.unsqueeze(1)  # (rows, n, dim)
    columns = moments(away.flatten(0, 1), y.repeat(len(at), 1)).unflatten(0, away.shape[:2])
    mean = (weights.unsqueeze(1) @ columns).squeeze(1)
    found = lines_of_moments(torch.zeros_like(at), *split_moments(mean, z.shape[1], y.shape[1]))
    return found._replace(a=found.a - (found.b * at).sum(1))


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
