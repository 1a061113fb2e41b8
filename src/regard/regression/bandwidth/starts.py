"""Starts of a search for a bandwidth, and its bounds: a fixed list, so that the same data gives the same answer.

Bandwidths are in the problem's units, standard deviations, with lambdas last. With c the canonical bandwidth of the
kernel and n rows, Scott's rule of thumb is there c n^(-1 / (dim + 4)).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard import kernels
from regard.regression.bandwidth.leave_one_out.problem import Problem

# Bounds
NARROWEST = 0.05  # x the mean gap of neighbours in the middle half of a feature: each row sees its nearest alone
WIDEST = 1e3  # x the range of a feature: all weights are equal up to 1e-6
LAMBDA_MARGIN = 1e-9  # of the largest lambda: a descent stays this far from both ends, which are tried after it

# Starts. Factors are multiples of the rule of thumb. tests/regression/bandwidth compares where searches from these
# starts end with the best values known.
FACTORS_1D = tuple(2.0**k for k in range(3, -10, -1))  # one feature: a scan by octaves
FACTORS = (1.06, 0.5, 0.25, 2.0, 4.0)  # several features together; 1.06 is where statsmodels starts
WIDE_START = 10.0  # standard deviations, x c: a feature that says little
STILL_INFORMATIVE = 3.0  # standard deviations, x c: a feature that still says something
LAMBDA_STARTS = (0.0, 1e-4, 0.02, 0.2, 0.6)  # of the largest lambda, all categories together
LAMBDA_ALONE = 0.1  # of the largest lambda: one category that matters, while the others do not
MOST_SINGLED_OUT = 12  # features: with more, starts that single out one feature would be too many
LEAST_ROBUST = 0.5  # of the standard deviation: where the middle half says less, far points make the rule too wide

# Binned scan of one feature
SCAN_FACTORS = tuple(2.0 ** (k / 2) for k in range(6, -12, -1))  # half octaves: a width of the scan is cheap
SCAN_NARROWEST = 0.02  # of the rule of thumb for the middle half of the points
SCAN_FROM = 300  # rows: with fewer, all pairs are as fast
SCAN_MINIMA = 2  # starts from a scan
SCAN_SLACK = 1.05  # x the lowest value: a descent does not start from a higher minimum of a scan
BINS, MOST_BINS = 2**11, 2**16  # of a scan, at least and at most; between them two bins for the narrowest width
SCAN_BLOCK = 2**19  # bins x widths, 4 MB: convolved at a time
LEAST_OTHERS_IN_BIN = 1e-3  # of a row's own weight: the weight of the others in a bin is taken as at least that


class Bounds(NamedTuple):
    """Bandwidths between which a search stays."""

    low: Float[Tensor, " features"]
    high: Float[Tensor, " features"]
    free: Bool[Tensor, " features"]  # features that are not constant


def bounds(problem: Problem) -> Bounds:
    """Bounds of a search: below `low` a row sees its nearest points alone, above `high` all points alike."""
    free = problem.extent > 0
    canonical = kernels.get(problem.data.kernel).canonical_bandwidth
    low = NARROWEST * canonical * _robust_deviation(problem) / len(problem.data.x)
    high = WIDEST * canonical * problem.extent
    widths = Bounds(torch.where(free, low, 1.0), torch.where(free, high, 1.0), free)
    if problem.categories is None:
        return widths
    largest = problem.categories.max_smoothing
    relevant = problem.relevant_categories(torch.zeros_like(largest))
    lambdas = Bounds(LAMBDA_MARGIN * largest, (1 - LAMBDA_MARGIN) * largest, relevant)
    return Bounds(*(torch.cat(both) for both in zip(widths, lambdas, strict=True)))


def starts(problem: Problem, limits: Bounds) -> list[Float[Tensor, " features"]]:
    """Bandwidths from which a search starts, in a fixed order."""
    dim = len(problem.extent)
    widths = _width_starts(problem, Bounds(*(part[:dim] for part in limits)))
    if problem.categories is None:
        return widths
    return [torch.cat((h, lambdas)) for h in widths for lambdas in _lambda_starts(problem, limits.free[dim:])]


def _width_starts(problem: Problem, limits: Bounds) -> list[Float[Tensor, " dim"]]:
    """Starts of the numeric features; constant ones have an infinite bandwidth."""
    dim, n = int(limits.free.sum()), len(problem.data.x)
    canonical = kernels.get(problem.data.kernel).canonical_bandwidth
    rule = torch.where(limits.free, canonical * n ** (-1 / (dim + 4)), math.inf)
    robust = torch.where(limits.free, rule * _robust_deviation(problem), math.inf)
    can_scan = problem.data.kernel == "gaussian" and not problem.degree and problem.categories is None
    if dim == 1 and can_scan and n >= SCAN_FROM:
        return _scan_minima(problem, limits, rule)
    if not dim:
        return [rule]
    factors = FACTORS_1D if dim == 1 else FACTORS
    widths = [rule * factor for factor in factors]
    if bool((robust < LEAST_ROBUST * rule).any()):
        widths += [robust * factor for factor in factors]
    if 1 < dim <= MOST_SINGLED_OUT:
        for feature in limits.free.nonzero().flatten().tolist():
            alone = torch.where(limits.free, canonical * WIDE_START, math.inf)
            alone[feature] = canonical * n ** (-1 / 5)
            without = rule.clone()
            without[feature] = canonical * WIDE_START
            widths += [alone, without]
    return [torch.maximum(h, limits.low) for h in widths]


def _lambda_starts(problem: Problem, free: Bool[Tensor, " categories"]) -> list[Float[Tensor, " categories"]]:
    """Lambdas at which all categories matter much, some, and not at all; and each one alone."""
    largest = problem.irrelevant[len(problem.extent) :]
    lambdas = [torch.where(free, largest * part, largest) for part in LAMBDA_STARTS]
    which = free.nonzero().flatten().tolist()
    if 1 < len(which) <= MOST_SINGLED_OUT:
        for category in which:
            alone = largest.clone()
            alone[category] *= LAMBDA_ALONE
            lambdas.append(alone)
    return lambdas


def extrapolate(problem: Problem, bandwidth: Float[Tensor, " features"], share: float) -> Float[Tensor, " features"]:
    """Bandwidth for all rows from the best one for a share of them: h as n^(-1 / (dim + 4)), lambda as h^2."""
    dim = len(problem.extent)
    shrink = share ** (1 / (int(torch.isfinite(bandwidth[:dim]).sum()) + 4))
    result = bandwidth * shrink
    result[dim:] *= shrink
    return torch.where(bandwidth == problem.irrelevant, bandwidth, result)


def informative(problem: Problem) -> Float[Tensor, " features"]:
    """Bandwidth and lambdas at which each feature still says something."""
    width = STILL_INFORMATIVE * kernels.get(problem.data.kernel).canonical_bandwidth
    return torch.where(torch.isinf(problem.irrelevant), width, problem.irrelevant * LAMBDA_STARTS[-1])


def _robust_deviation(problem: Problem) -> Float[Tensor, " dim"]:
    """Standard deviation of a normal distribution with the quartiles of each feature, at most the true one."""
    x = problem.data.x[:: max(1, len(problem.data.x) // 2**16)].sort(0).values
    deviation = (x[(3 * len(x)) // 4] - x[len(x) // 4]) / 1.349
    return torch.where(deviation > 0, deviation, 1.0).clamp_max(1.0)


# Scan of one feature


def _scan_minima(problem: Problem, limits: Bounds, rule: Float[Tensor, " dim"]) -> list[Float[Tensor, " dim"]]:
    """One feature: the lowest local minima of a scan over many widths."""
    axis = int(limits.free.nonzero())
    first = float(rule[axis])
    narrowest = SCAN_NARROWEST * first * float(_robust_deviation(problem)[axis])
    widths = [first * factor for factor in SCAN_FACTORS]
    while widths[-1] > narrowest:  # far points make the rule too wide
        widths.append(widths[-1] / math.sqrt(2))
    values = binned_scan(problem, axis, widths)
    minima = local_minima(values)[:SCAN_MINIMA]
    good = [index for index in minima if values[index] <= values[minima[0]] * SCAN_SLACK]
    return [torch.where(limits.free, widths[index], math.inf) for index in good]


def local_minima(values: list[float]) -> list[int]:
    """Positions of the values that are not above their neighbours, the lowest first."""
    padded = [math.inf, *values, math.inf]
    return sorted((i for i, v in enumerate(values) if padded[i] >= v <= padded[i + 2]), key=values.__getitem__)


def binned_scan(problem: Problem, axis: int, widths: list[float]) -> list[float]:
    """Approximate CV of a Gaussian at each width, with all points moved to the middle of their bin, by FFT.

    Within a bin all points have the same fit f. Leaving out a point of weight s from the weight Z around it turns y - f
    into (y - f) Z / (Z - s), so the sums of s, s y and s y^2 in each bin are enough.
    """
    x, y = problem.data.x[:, axis], problem.data.values
    span = float(problem.extent[axis])
    bins = min(MOST_BINS, max(BINS, 2 ** math.ceil(math.log2(2 * span / min(widths)))))
    side = span / (bins - 1)
    bin_of = ((x - x.min()) / side).round().to(torch.int64)
    share = problem.share.unsqueeze(1)
    columns = torch.cat((torch.ones_like(y[:, :1]), y), 1)
    sums = x.new_zeros(bins, columns.shape[1]).index_add_(0, bin_of, columns * share)
    filled = (sums[:, 0] > 0).nonzero().flatten()
    total, first_moment = sums[filled, :1], sums[filled, 1:]
    squares = x.new_zeros(bins, y.shape[1]).index_add_(0, bin_of, y.square() * share)[filled]
    spectrum = torch.fft.rfft(sums, 2 * bins, dim=0)
    distance = torch.arange(bins + 1, dtype=x.dtype) * side
    own = float((problem.share * problem.share).sum())
    values: list[float] = []
    for block in torch.tensor(widths, dtype=x.dtype).split(max(1, SCAN_BLOCK // bins)):
        gaussians = torch.exp((distance / block.unsqueeze(1)).square() / -2)
        around = torch.cat((gaussians, gaussians[:, 1:-1].flip(1)), 1)  # even functions on a circle of twice the bins
        convolved = torch.fft.rfft(around).unsqueeze(2) * spectrum  # (widths, modes, columns)
        pooled = torch.fft.irfft(convolved, 2 * bins, dim=1)[:, filled]
        weight = pooled[..., :1].clamp_min(own)
        fit = pooled[..., 1:] / weight
        squared_residuals = squares - 2 * fit * first_moment + fit.square() * total
        others = (weight - own).clamp_min(LEAST_OTHERS_IN_BIN * own)
        by_output = (squared_residuals.clamp_min(0.0) * (weight / others).square()).sum(1)
        values += (by_output @ problem.output_weight).tolist()
    return values
