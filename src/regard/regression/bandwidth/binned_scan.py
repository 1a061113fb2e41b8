"""A first look at one feature: points counted into bins, and leave-one-out of the bins at many widths by FFT."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression.bandwidth.problem import Problem

BINS, MOST_BINS = 2**11, 2**16
AT_ONCE = 2**19  # bins times widths
ALONE = 1e-3  # of a point's own weight: with less than that around it, it counts as alone


def scan(problem: Problem, axis: int, widths: list[float]) -> list[float]:
    """About the leave-one-out value of a Gaussian at each width, all points moved to the middle of their bin.

    Within a bin all points have the same fit f, and leaving out one of weight s from the weight Z around it turns
    y - f into (y - f) Z / (Z - s), so sums of s, s y and s y^2 for each bin are enough. A width below a bin is no use.
    """
    x, y = problem.x[:, axis], problem.y
    span = float(problem.spread[axis])
    bins = min(MOST_BINS, max(BINS, 2 ** math.ceil(math.log2(2 * span / min(widths)))))
    side = span / (bins - 1)
    place = ((x - x.min()) / side).round().to(torch.int64)
    columns = torch.cat((torch.ones_like(y[:, :1]), y), 1)
    sums = x.new_zeros(bins, columns.shape[1]).index_add_(0, place, columns * problem.share.unsqueeze(1))
    squares = x.new_zeros(bins, y.shape[1]).index_add_(0, place, y.square() * problem.share.unsqueeze(1))
    spectrum = torch.fft.rfft(sums, 2 * bins, dim=0)
    steps = torch.arange(bins + 1, dtype=x.dtype) * side
    own = float((problem.share * problem.share).sum())
    values: list[float] = []
    for some in torch.tensor(widths, dtype=x.dtype).split(max(1, AT_ONCE // bins)):
        kernels = torch.exp((steps / some.unsqueeze(1)).square() / -2)
        values += _values(problem, sums, squares, spectrum, kernels, own)
    return values


def _values(
    problem: Problem,
    sums: Tensor,
    squares: Tensor,
    spectrum: Tensor,
    kernels: Float[Tensor, "widths steps"],
    own: float,
) -> list[float]:
    bins = len(sums)
    around = torch.cat((kernels, kernels[:, 1:-1].flip(1)), 1)  # even functions on a circle of twice the bins
    turned = torch.fft.rfft(around).unsqueeze(2) * spectrum  # (widths, modes, columns)
    some = (sums[:, 0] > 0).nonzero().flatten()
    pooled = torch.fft.irfft(turned, 2 * bins, dim=1)[:, some]
    weight = pooled[..., :1].clamp_min(own)
    fit = pooled[..., 1:] / weight
    total, mixed = sums[some, :1], sums[some, 1:]
    apart = squares[some] - 2 * fit * mixed + fit.square() * total
    others = (weight - own).clamp_min(ALONE * own)
    return ((apart.clamp_min(0.0) * (weight / others).square()).sum(1) @ problem.per_output).tolist()
