"""All pairs in single precision on the fused kernel, with a bound on what that loses for each query.

Queries lie in regions of neighbours, each measured from its own middle, points with it. Score i of a query is then
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
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.engine import threads
from regard.engine.fused import kernel
from regard.regression.kernel_sums import pruned_tiles, pruning
from regard.regression.kernel_sums.scaled import Scaled
from regard.regression.kernel_sums.state import Pooled

QUERIES = 8192  # around one centre: fewer are slower, more lose more digits
TILE = 256  # queries: fewer need fewer points, and more looking for them
WIDTH = 16  # features and values are padded to this: the kernel is fastest and most accurate there
UNIT = 2.0**-24
SUMS = 50.0  # units of error in the kernel's sums
EXP = 8.0  # units of error in the kernel's exponential
FARTHEST = 1e18  # its square fits into single precision
EXTRA = 3  # columns that ride along


def pool(problem: Scaled, tol: float) -> Pooled:
    """The average at each query and a bound of its error, which nobody promised to be small.

    At most `tol` of it comes from points that are left out; with 0, none are but those without any weight at all.
    """
    queries = min(QUERIES, math.ceil(len(problem.query) / threads.n_threads()))  # there is work for everybody
    points = pruned_tiles.POINTS if tol > 0 else len(problem.x)  # where none is left out, their order does not matter
    return pruned_tiles.by_tiles(problem, tol, points, queries, Keys.of, finish=told, tile=TILE, by_point=tol > 0)


class Keys(NamedTuple):
    """Points and the queries of a region in single precision, measured from the middle of the queries."""

    left: Float[Tensor, "1 1 q width"]
    half: Float[Tensor, " q"]  # |q|^2 / 2
    right: Float[Tensor, "1 1 n both"]  # features of the points, and beside them their values
    middle: Float[Tensor, " dim"]
    log_weight: Float[Tensor, " n"] | None
    columns: int

    @staticmethod
    def of(part: Scaled) -> Keys:
        middle = _middle(part.query)
        query, x = part.query - middle, part.x - middle
        dim, columns = x.shape[1], part.values.shape[1]
        width = WIDTH * math.ceil(max(columns + EXTRA, dim + 2) / WIDTH)
        left = torch.zeros(1, 1, len(query), width, dtype=torch.float32)
        left[..., :dim] = query
        left[..., dim : dim + 2] = 1.0
        right = _features(x, part.values, part.log_weight, width)
        return Keys(left, query.square().sum(1) / 2, right[None, None], middle, part.log_weight, columns)

    def most(self, low: Float[Tensor, "tiles dim"], high: Float[Tensor, "tiles dim"]) -> Float[Tensor, "tiles n"]:
        """The log of what each point adds at most, to a query anywhere in each box.

        With u = 2^-24, a gap along one feature is wrong by at most 4 u (gap + b), where b is how far the box reaches
        from the middle; so a squared distance g by 8 u sqrt(dim g) (sqrt(g) + b), below 16 u sqrt(dim) (g + b^2).
        """
        low, high = low - self.middle, high - self.middle
        farthest = torch.maximum(low.abs(), high.abs()).square().sum(1, keepdim=True).float()
        dim = low.shape[1]
        square = pruning.nearest(self.right[0, 0, :, :dim].T.contiguous().T, low.float(), high.float())
        loss = 16 * UNIT * math.sqrt(dim)
        most = square.mul_(1 - loss).sub_(farthest * loss).clamp_min_(0).mul_(-0.5)
        return most if self.log_weight is None else most.add_(self.log_weight.float())

    def by_tiles(self, tiles: Sequence[slice], kept: Sequence[Int[Tensor, " some"] | None]) -> Pooled:
        """A call of the fused kernel for each tile; what rides along stays in the means until `told`."""
        found = [self._attended(self.left[:, :, rows], some) for rows, some in zip(tiles, kept, strict=True)]
        mean, lse = (torch.cat(parts, 2) for parts in zip(*found, strict=True))
        return self._state(mean, lse, self.half)

    def at(self, rows: Int[Tensor, " rows"]) -> Pooled:
        return self._state(*self._attended(self.left[:, :, rows], None), self.half[rows])

    def _attended(self, left: Tensor, some: Int[Tensor, " some"] | None) -> tuple[Tensor, Tensor]:
        right = self.right if some is None or not len(some) else self.right.index_select(2, some)
        features, values = right.chunk(2, -1)
        return kernel.flash(left, features, values, scale=1.0)

    def _state(self, mean: Tensor, lse: Tensor, half: Float[Tensor, " q"]) -> Pooled:
        mean = mean[0, 0, :, : self.columns + EXTRA].double()
        return Pooled(lse[0, 0].double() - half, mean, torch.zeros_like(half))


def told(query: Float[Tensor, "q dim"], state: Pooled) -> Pooled:
    """The averages that were asked for, with the bound that the others give."""
    half = (query - _middle(query)).square().sum(1) / 2
    columns = state.mean.shape[1] - EXTRA
    return Pooled(state.lse, state.mean[:, :columns], bound(state.mean, columns, half, query.shape[1]))


def _middle(query: Float[Tensor, "q dim"]) -> Float[Tensor, " dim"]:
    low, high = torch.aminmax(query, dim=0)
    return (low + high) / 2


def _features(
    x: Float[Tensor, "n dim"], values: Float[Tensor, "n columns"], log_weight: Float[Tensor, " n"] | None, width: int
) -> Float[Tensor, "n both"]:
    """Features and values of points, in single precision, side by side: so they are taken together."""
    (count, dim), columns = x.shape, values.shape[1]
    square = x.square().sum(1)
    size = square * 0.5
    bias = -size
    if log_weight is not None:
        bias, size = bias + log_weight, size + log_weight.abs()
    # A point this far counts for nothing; infinity times nothing would be no number.
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


def bound(mean: Float[Tensor, "q width"], columns: int, half: Float[Tensor, " q"], dim: int) -> Float[Tensor, " q"]:
    """On the error of mean and total, from the averages that rode along; `half` is |q|^2 / 2."""
    values, square, size = mean[:, columns : columns + EXTRA].unbind(1)
    spread = (values - mean[:, :columns].square().sum(1)).clamp_min(0).sqrt()
    score = min(dim + 2, 2 * math.sqrt(dim + 2)) * UNIT * ((2 * half * square).sqrt() + size.sqrt()) + EXP * UNIT
    sums = SUMS * UNIT
    return torch.maximum(score * spread + sums * values.sqrt(), score + sums)
