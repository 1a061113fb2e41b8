"""All pairs in single precision on the fused kernel, with a bound on what that loses for each query.

Queries lie in blocks of neighbours, each measured from its own middle, points with it. Score i of a query is then
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
from regard.regression._scaled import Scaled
from regard.regression._state import Pooled, empty, merge
from regard.regression._tiles import tiles

BLOCK = 512  # queries around one centre
BLOCKS = 8  # at once, as heads of one call
KEYS = 1 << 14  # points at once: features of all blocks take 8 MiB
WIDTH = 16  # features and values are padded to this: the kernel is fastest and most accurate there
UNIT = 2.0**-24
SUMS = 50.0  # units of error in the kernel's sums
EXP = 8.0  # units of error in the kernel's exponential
FARTHEST = 1e18  # its square fits into single precision
EXTRA = 3  # columns that ride along
KEPT = _fused.Bias(None, None)


def pool(problem: Scaled) -> Pooled:
    """The average at each query and a bound of its error, which nobody promised to be small."""
    columns, count = problem.values.shape[1], len(problem.query)
    asked = tiles(problem.query, BLOCK)
    query = problem.query[asked.order]
    found = empty(count, columns, query)
    values = _with_sizes(problem.values)
    for low in range(0, len(asked), BLOCKS):
        cuts = [asked.cut(tile) for tile in range(low, min(low + BLOCKS, len(asked)))]
        state = _blocks(problem, query, values, cuts)
        rows = slice(cuts[0].start, cuts[-1].stop)
        for whole, part in zip(found, state, strict=True):
            whole[rows] = part
    return Pooled(*(asked.back(part) for part in found))


def _with_sizes(values: Float[Tensor, "n columns"]) -> Float[Tensor, "n width"]:
    """Values in single precision, their squares summed, and room for the two that depend on the block."""
    count, columns = values.shape
    wide = torch.zeros(count, _width(columns + EXTRA), dtype=torch.float32)
    wide[:, :columns] = values
    wide[:, columns] = values.square().sum(1)
    return wide


def _width(needed: int) -> int:
    return WIDTH * math.ceil(needed / WIDTH)


def _blocks(
    problem: Scaled, query: Float[Tensor, "q dim"], values: Float[Tensor, "n width"], cuts: list[slice]
) -> Pooled:
    """Several blocks of queries against all points."""
    longest = max(cut.stop - cut.start for cut in cuts)
    dim = query.shape[1]
    width = max(values.shape[1], _width(dim + 2))
    left = torch.zeros(len(cuts), longest, width, dtype=torch.float32)
    middles = query.new_empty(len(cuts), dim)
    half = query.new_empty(cuts[-1].stop - cuts[0].start)
    for block, cut in enumerate(cuts):
        part = query[cut]
        middles[block] = (part.amin(0) + part.amax(0)) / 2
        moved = part - middles[block]
        left[block, : len(part), :dim] = moved
        left[block, : len(part), dim : dim + 2] = 1.0
        half[cut.start - cuts[0].start : cut.stop - cuts[0].start] = moved.square().sum(1) / 2
    columns = problem.values.shape[1]
    state = empty(len(half), columns, query)
    for low in range(0, len(problem.x), KEYS):
        keys = slice(low, low + KEYS)
        right, wide = _keys(problem, values, keys, middles, width)
        mean, lse = _fused.whole(left, right, wide, (len(cuts),), causal=False, scale=1.0, bias=KEPT)
        rows = [slice(0, cut.stop - cut.start) for cut in cuts]
        mean = torch.cat([mean[block, row] for block, row in enumerate(rows)]).double()
        lse = torch.cat([lse[block, row] for block, row in enumerate(rows)]).double() - half
        state = merge(state, Pooled(lse, mean[:, :columns], bound(mean, columns, half, dim)))
    return state


def _keys(
    problem: Scaled, values: Float[Tensor, "n width"], keys: slice, middles: Float[Tensor, "blocks dim"], width: int
) -> tuple[Tensor, Tensor]:
    """Features and values of some points as each block sees them."""
    dim, columns = problem.x.shape[1], problem.values.shape[1]
    x = problem.x[keys] - middles.unsqueeze(1)  # (blocks, n, dim)
    square = x.square().sum(-1)
    bias = square * -0.5
    size = square * 0.5
    if problem.log_weight is not None:
        weight = problem.log_weight[keys]
        bias, size = bias + weight, size + weight.abs()
    # A point this far counts for nothing; infinity times nothing would be no number.
    bias, size, square = bias.clamp_min(-FARTHEST), size.clamp_max(FARTHEST), square.clamp_max(FARTHEST)
    right = torch.zeros(*x.shape[:2], width, dtype=torch.float32)
    right[..., :dim] = x
    right[..., dim] = bias
    right[..., dim + 1] = bias - right[..., dim]  # what single precision left of it
    wide = torch.zeros(*x.shape[:2], width, dtype=torch.float32)
    wide[..., : values.shape[1]] = values[keys]
    wide[..., columns + 1] = square
    wide[..., columns + 2] = size.square()
    return right, wide


def bound(mean: Float[Tensor, "q width"], columns: int, half: Float[Tensor, " q"], dim: int) -> Float[Tensor, " q"]:
    """On the error of mean and total, from the averages that rode along; `half` is |q|^2 / 2."""
    values, square, size = mean[:, columns : columns + EXTRA].unbind(1)
    spread = (values - mean[:, :columns].square().sum(1)).clamp_min(0).sqrt()
    score = min(dim + 2, 2 * math.sqrt(dim + 2)) * UNIT * ((2 * half * square).sqrt() + size.sqrt()) + EXP * UNIT
    sums = SUMS * UNIT
    return torch.maximum(score * spread + sums * values.sqrt(), score + sums)
