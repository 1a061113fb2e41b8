"""All pairs in single precision on the fused kernel, with a bound on what that loses for each query.

Queries lie in tiles of neighbours, each measured from its own middle, points with it. Score i of a query is then
q.x_i - |x_i|^2 / 2 + log s_i, a sum of k = dim + 2 products. Every partial sum is at most |q| |x_i| + b_i, and is
rounded with a variance of at most u^2 / 3 of its square: with u = 2^-24 the error e_i has a deviation below
u sqrt(k / 3) (|q| |x_i| + b_i). We take three and a half of these, or the worst case where that is less:

    E_i = min(k, 2 sqrt(k)) u (|q| |x_i| + b_i),    b_i = |x_i|^2 / 2 + |log s_i|.

A wrong weight p_i exp(e_i) moves the mean by cov_p(exp e, v) / E_p exp e, so by at most sqrt(E_p E^2) sd_p(v) to first
order (Cauchy and Schwarz), and the log of the total by at most sqrt(E_p E^2). Both averages come out of the same pass:
|x|^2, b^2 and |v|^2 ride along as columns of values, which the kernel pads anyway. Added to it are the errors of the
exponential and of the sums. The kernel adds 512 products at a time. If all roundings conspired, such a sum would be
wrong by 512 u of the sum S of the sizes; as they do not (Higham and Mary 2019), rounding j, of a partial sum of about
S j / 512, has variance (u S j / 512)^2 / 3, together (7.5 u S)^2: six deviations are 45 u. Up to 32 such sums are
merged, with two roundings each: six deviations are 16 u. SUMS covers both.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from regard import _fused
from regard.regression.sums import _cells
from regard.regression.sums._scaled import Scaled
from regard.regression.sums._state import Pooled

QUERIES = 2048  # around one centre: fewer are slower, more lose more digits
POINTS = 64  # in a tile
MANY_POINTS = 256  # in a tile, where there are many
MANY = 10**5
WIDTH = 16  # features and values are padded to this: the kernel is fastest and most accurate there
UNIT = 2.0**-24
SUMS = 50.0  # units of error in the kernel's sums
EXP = 8.0  # units of error in the kernel's exponential
FARTHEST = 1e18  # its square fits into single precision
EXTRA = 3  # columns that ride along
KEPT = _fused.Bias(None, None)


def pool(problem: Scaled, tol: float) -> Pooled:
    """The average at each query and a bound of its error, which nobody promised to be small.

    At most `tol` of it comes from points that are left out; with 0, none are but those without any weight at all.
    """
    points = MANY_POINTS if len(problem.x) > MANY else POINTS
    return _cells.by_tiles(problem, tol, points, QUERIES, block)


def block(problem: Scaled) -> Pooled:
    """One tile of queries."""
    query, x = problem.query, problem.x
    middle = (query.amin(0) + query.amax(0)) / 2
    query, x = query - middle, x - middle
    dim, columns = x.shape[1], problem.values.shape[1]
    width = WIDTH * math.ceil(max(columns + EXTRA, dim + 2) / WIDTH)
    left = torch.zeros(len(query), width, dtype=torch.float32)
    left[:, :dim] = query
    left[:, dim : dim + 2] = 1.0
    right, values = _keys(x, problem.values, problem.log_weight, width)
    mean, lse = _fused.whole(left, right, values, (), causal=False, scale=1.0, bias=KEPT)
    half = query.square().sum(1) / 2
    mean = mean[:, : columns + EXTRA].double()
    return Pooled(lse.double() - half, mean[:, :columns], bound(mean, columns, half, dim))


def _keys(
    x: Float[Tensor, "n dim"], values: Float[Tensor, "n columns"], log_weight: Float[Tensor, " n"] | None, width: int
) -> tuple[Tensor, Tensor]:
    """Features and values of points, in single precision."""
    (count, dim), columns = x.shape, values.shape[1]
    square = x.square().sum(1)
    size = square * 0.5
    bias = -size
    if log_weight is not None:
        bias, size = bias + log_weight, size + log_weight.abs()
    # A point this far counts for nothing; infinity times nothing would be no number.
    bias.clamp_min_(-FARTHEST)
    right = torch.zeros(count, width, dtype=torch.float32)
    right[:, :dim] = x
    right[:, dim] = bias
    right[:, dim + 1] = bias - right[:, dim]  # what single precision left of it
    wide = torch.zeros(count, width, dtype=torch.float32)
    wide[:, :columns] = values
    wide[:, columns] = values.square().sum(1)
    wide[:, columns + 1] = square.clamp_max_(FARTHEST)
    wide[:, columns + 2] = size.clamp_max_(FARTHEST).square_()
    return right, wide


def bound(mean: Float[Tensor, "q width"], columns: int, half: Float[Tensor, " q"], dim: int) -> Float[Tensor, " q"]:
    """On the error of mean and total, from the averages that rode along; `half` is |q|^2 / 2."""
    values, square, size = mean[:, columns : columns + EXTRA].unbind(1)
    spread = (values - mean[:, :columns].square().sum(1)).clamp_min(0).sqrt()
    score = min(dim + 2, 2 * math.sqrt(dim + 2)) * UNIT * ((2 * half * square).sqrt() + size.sqrt()) + EXP * UNIT
    sums = SUMS * UNIT
    return torch.maximum(score * spread + sums * values.sqrt(), score + sums)
