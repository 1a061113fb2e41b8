"""A first look at one feature: points counted into bins, and leave-one-out of the bins at many widths by FFT."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression._problem import Problem

BINS, MOST_BINS = 2**11, 2**16
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
    return [_value(problem, sums, squares, spectrum, torch.exp((steps / h).square() / -2), own) for h in widths]


def _value(
    problem: Problem, sums: Tensor, squares: Tensor, spectrum: Tensor, kernel: Float[Tensor, " steps"], own: float
) -> float:
    bins = len(sums)
    around = torch.cat((kernel, kernel[1:-1].flip(0)))  # an even function on a circle of twice the bins
    pooled = torch.fft.irfft(spectrum * torch.fft.rfft(around).unsqueeze(1), 2 * bins, dim=0)[:bins]
    some = sums[:, 0] > 0
    weight = pooled[some, :1].clamp_min(own)
    fit = pooled[some, 1:] / weight
    total, mixed = sums[some, :1], sums[some, 1:]
    apart = squares[some] - 2 * fit * mixed + fit.square() * total
    others = (weight - own).clamp_min(ALONE * own)
    return float((apart.clamp_min(0.0) * (weight / others).square()).sum(0) @ problem.per_output)
