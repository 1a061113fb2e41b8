"""Gaussian averages over pairs in single precision on the fused kernel, each query with a bound on its rounding error.

Queries lie in regions of neighbours, each measured from its own middle, points with it. Score i of a query is then
q.x_i - |x_i|^2 / 2 + log s_i, a sum of k = dim + 2 products. Every partial sum is at most |q| |x_i| + b_i, and is
rounded with a variance of at most u^2 / 3 of its square: with u = 2^-24 the error e_i has a deviation below
u sqrt(k / 3) (|q| |x_i| + b_i). We take three and a half of these, or the worst case where that is less:

    E_i = min(k, 2 sqrt(k)) u (|q| |x_i| + b_i),    b_i = |x_i|^2 / 2 + |log s_i|.

A wrong weight p_i exp(e_i) moves the mean by cov_p(exp e, v) / E_p exp e, so by at most sqrt(E_p E^2) sd_p(v) to first
order (Cauchy and Schwarz), and the log of the total by at most sqrt(E_p E^2). Both averages come out of the same pass:
|v|^2, |x|^2 and b^2 are extra columns of values, which the kernel pads anyway. Added to it are the errors of the
exponential and of the sums. The kernel adds 512 products at a time. If all roundings conspired, such a sum would be
wrong by 512 u of the sum S of the sizes; as they do not (Higham and Mary 2019), rounding j, of a partial sum of about
S j / 512, has variance (u S j / 512)^2 / 3, together (7.5 u S)^2: six deviations are 45 u. Up to 32 such sums are
merged, with two roundings each: six deviations are 16 u. SUM_ERROR covers both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.engine import threads
from regard.engine.fused import kernel
from regard.regression.kernel_sums import pruned_sum
from regard.regression.kernel_sums.sample import Standardised
from regard.regression.kernel_sums.state import Pooled

REGION_QUERIES = 8192  # of a region around one centre: fewer are slower, more lose more digits
WIDTH = 16  # features and values are padded to a multiple of this: the kernel is fastest and most accurate there
FLOAT32_ROUNDOFF = 2.0**-24  # the relative error of one operation in float32: the unit of the errors below
SUM_ERROR = 50.0  # of the kernel's sums, in units of roundoff
EXP_ERROR = 8.0  # of the kernel's exponential, in units of roundoff
FARTHEST = 1e18  # its square fits into single precision
ERROR_COLUMNS = 3  # of values, whose averages give the bound: |v|^2, |x|^2, b^2


def pool(data: Standardised, tol: float) -> Pooled:
    """The average at each query and a bound on its error, which may be large.

    At most `tol` of it comes from points that are pruned; with 0, only points without any weight are.
    """
    queries = min(REGION_QUERIES, math.ceil(len(data.query) / threads.n_threads()))  # every thread has work
    return pruned_sum.pool(data, tol, queries, SinglePoints.of, finish=with_rounding_error, by_point=tol > 0)


class SinglePoints(NamedTuple):
    """Points and the queries of a region in single precision, measured from the middle of the queries."""

    left: Float[Tensor, "1 1 q width"]
    half_square: Float[Tensor, " q"]  # |q|^2 / 2
    right: Float[Tensor, "1 1 n both"]  # features of the points, and beside them their values
    centre: Float[Tensor, " dim"]
    log_weight: Float[Tensor, " n"] | None
    columns: int

    @staticmethod
    def of(data: Standardised) -> SinglePoints:
        """Points and queries in single precision."""
        centre = _centre(data.query)
        query, x = data.query - centre, data.x - centre
        dim, columns = x.shape[1], data.values.shape[1]
        width = WIDTH * math.ceil(max(columns + ERROR_COLUMNS, dim + 2) / WIDTH)
        left = torch.zeros(1, 1, len(query), width, dtype=torch.float32)
        left[..., :dim] = query
        left[..., dim : dim + 2] = 1.0
        right = _features(x, data.values, data.log_weight, width)
        return SinglePoints(left, query.square().sum(1) / 2, right[None, None], centre, data.log_weight, columns)

    def log_contribution_bound(
        self, low: Float[Tensor, "tiles dim"], high: Float[Tensor, "tiles dim"]
    ) -> Float[Tensor, "tiles n"]:
        """Upper bound on log(s_j K) of each point, for any query in each box.

        With u = 2^-24, a gap along one feature is wrong by at most 4 u (gap + b), where b is how far the box reaches
        from the centre; so a squared distance g by 8 u sqrt(dim g) (sqrt(g) + b), below 16 u sqrt(dim) (g + b^2).
        """
        low, high = low - self.centre, high - self.centre
        farthest = torch.maximum(low.abs(), high.abs()).square().sum(1, keepdim=True).float()
        dim = low.shape[1]
        x = self.right[0, 0, :, :dim].T.contiguous().T
        square = pruned_sum.squared_distance_to_boxes(x, low.float(), high.float())
        loss = 16 * FLOAT32_ROUNDOFF * math.sqrt(dim)
        bound = square.mul_(1 - loss).sub_(farthest * loss).clamp_min_(0).mul_(-0.5)
        return bound if self.log_weight is None else bound.add_(self.log_weight.float())

    def pool_tiles(self, tiles: Sequence[pruned_sum.Rows], kept: Sequence[Int[Tensor, " _"] | None]) -> Pooled:
        """A call of the fused kernel for each tile; the error columns stay until `with_rounding_error`."""
        parts = []
        for rows, points in zip(tiles, kept, strict=True):
            right = self.right if points is None or not len(points) else self.right.index_select(2, points)
            features, values = right.chunk(2, -1)
            mean, lse = kernel.flash(self.left[:, :, rows], features, values, scale=1.0)
            parts.append((mean[0, 0, :, : self.columns + ERROR_COLUMNS], lse[0, 0], self.half_square[rows]))
        mean, lse, half_square = (torch.cat(part) for part in zip(*parts, strict=True))
        return Pooled(lse.double() - half_square, mean.double(), torch.zeros_like(half_square))


def with_rounding_error(query: Float[Tensor, "q dim"], state: Pooled) -> Pooled:
    """The state without the error columns, with the bound that their averages give."""
    half_square = (query - _centre(query)).square().sum(1) / 2
    mean, (values, square, size) = state.mean[:, :-ERROR_COLUMNS], state.mean[:, -ERROR_COLUMNS:].unbind(1)
    spread = (values - mean.square().sum(1)).clamp_min(0).sqrt()
    products = query.shape[1] + 2
    score = min(products, 2 * math.sqrt(products)) * ((2 * half_square * square).sqrt() + size.sqrt()) + EXP_ERROR
    score, sums = FLOAT32_ROUNDOFF * score, FLOAT32_ROUNDOFF * SUM_ERROR
    return Pooled(state.lse, mean, torch.maximum(score * spread + sums * values.sqrt(), score + sums))


def _centre(query: Float[Tensor, "q dim"]) -> Float[Tensor, " dim"]:
    low, high = torch.aminmax(query, dim=0)
    return (low + high) / 2


def _features(
    x: Float[Tensor, "n dim"], values: Float[Tensor, "n columns"], log_weight: Float[Tensor, " n"] | None, width: int
) -> Float[Tensor, "n both"]:
    """Features and values of points in single precision, side by side, so that one gather takes both."""
    (count, dim), columns = x.shape, values.shape[1]
    square = x.square().sum(1)
    size = square * 0.5
    bias = -size
    if log_weight is not None:
        bias, size = bias + log_weight, size + log_weight.abs()
    # A point this far has no weight; infinity times 0 would be NaN.
    bias.clamp_min_(-FARTHEST)
    both = torch.zeros(count, 2 * width, dtype=torch.float32)
    right, wide = both[:, :width], both[:, width:]
    right[:, :dim] = x
    right[:, dim] = bias
    right[:, dim + 1] = bias - right[:, dim]  # what single precision left of it
    wide[:, :columns] = values
    wide[:, columns] = values.square().sum(1)
    wide[:, columns + 1] = square.clamp_max_(FARTHEST)
    wide[:, columns + 2] = size.clamp_max_(FARTHEST).square_()
    return both
