"""Where a search for a bandwidth begins and must end: a fixed list, so that the same data gives the same answer."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard import kernels
from regard.regression.bandwidth.leave_one_out.problem import Problem

SCAN = tuple(2.0**k for k in range(3, -10, -1))  # one feature: Scott's width times these, until the lower bound
FACTORS = (1.06, 0.5, 0.25, 2.0, 4.0)  # several features: together; 1.06 is where statsmodels starts
ABROAD = 10.0  # a width in standard deviations at which a feature says little
NARROWEST = 0.05  # of the distance between neighbours in a feature, were the middle half of the points evenly spread
WIDEST = 1e3  # of a feature's whole range
LOOK = tuple(2.0 ** (k / 2) for k in range(6, -12, -1))  # the same, nearer to each other, where a look is cheap
WORTH_A_LOOK = 300  # points
PLACES, NEARLY = 2, 1.05  # of a scan from which a search begins, and how much worse than the lowest they may be
PARTS, MATTERS = (0.0, 1e-4, 0.02, 0.2, 0.6), 0.1  # of the largest lambda: all categories together, and one alone
SMALLEST = 1e-9  # of the largest lambda: a descent stays so far from both ends, which are tried after it
MANY = 12  # features: above, those starts that single out one feature would be too many


class Bounds(NamedTuple):
    """Widths between which a search stays, in the problem's units."""

    low: Float[Tensor, " features"]
    high: Float[Tensor, " features"]
    free: Tensor  # bool (features,): those that change at all


def bounds(problem: Problem) -> Bounds:
    """Below `low` every point sees its nearest neighbours only; above `high` all alike."""
    free = problem.spread > 0
    reach = kernels.get(problem.kernel).canonical_bandwidth
    middle = _robust(problem)
    low = NARROWEST * reach * middle / len(problem.x)
    high = WIDEST * reach * problem.spread
    widths = Bounds(torch.where(free, low, 1.0), torch.where(free, high, 1.0), free)
    if problem.kinds is None:
        return widths
    most = problem.kinds.most
    lambdas = Bounds(SMALLEST * most, (1 - SMALLEST) * most, problem.matters(torch.zeros_like(most)))
    return Bounds(*(torch.cat(both) for both in zip(widths, lambdas, strict=True)))


def starts(problem: Problem, limits: Bounds) -> list[Float[Tensor, " features"]]:
    """Bandwidths in the problem's units, in a fixed order."""
    dim = problem.x.shape[1]
    widths = _widths(problem, Bounds(*(part[:dim] for part in limits)))
    if problem.kinds is None:
        return widths
    return [torch.cat((h, chance)) for h in widths for chance in _lambdas(problem, limits.free[dim:])]


def _lambdas(problem: Problem, free: Tensor) -> list[Float[Tensor, " kinds"]]:
    """Categories that matter much, some, and not at all; and each one alone."""
    most = problem.no_help[problem.x.shape[1] :]
    found = [torch.where(free, most * part, most) for part in PARTS]
    which = free.nonzero().flatten().tolist()
    if 1 < len(which) <= MANY:
        for kind in which:
            alone = most.clone()
            alone[kind] *= MATTERS
            found.append(alone)
    return found


def carried(problem: Problem, bandwidth: Float[Tensor, " features"], share: float) -> Float[Tensor, " features"]:
    """What was the best with this share of the points, for all: widths go as n^(-1 / (dim + 4)), lambdas squared."""
    dim = problem.x.shape[1]
    finite = torch.isfinite(bandwidth[:dim])
    shrink = share ** (1 / (int(finite.sum()) + 4))
    found = torch.where(torch.isfinite(bandwidth), bandwidth * shrink, math.inf)
    given_up = bandwidth == problem.no_help
    found[dim:] *= shrink
    return torch.where(given_up, bandwidth, found)


def _widths(problem: Problem, limits: Bounds) -> list[Float[Tensor, " dim"]]:
    """Widths in the problem's units; features that never change have an infinite one."""
    dim = int(limits.free.sum())
    reach = kernels.get(problem.kernel).canonical_bandwidth
    rule = torch.where(limits.free, reach * len(problem.x) ** (-1 / (dim + 4)), math.inf)
    robust = torch.where(limits.free, rule * _robust(problem), math.inf)
    simple = problem.kernel == "gaussian" and not problem.degree and problem.kinds is None
    if dim == 1 and simple and len(problem.x) >= WORTH_A_LOOK:
        return _looked_at(problem, limits, rule)
    if not dim:
        return [rule]
    factors = SCAN if dim == 1 else FACTORS
    found = [rule * factor for factor in factors]
    if bool((robust < 0.5 * rule).any()):
        found += [robust * factor for factor in factors]
    if 1 < dim <= MANY:
        for feature in limits.free.nonzero().flatten().tolist():
            alone = torch.where(limits.free, reach * ABROAD, math.inf)
            alone[feature] = reach * len(problem.x) ** (-1 / 5)
            without = rule.clone()
            without[feature] = reach * ABROAD
            found += [alone, without]
    return [torch.maximum(h, limits.low) for h in found]


def _looked_at(problem: Problem, limits: Bounds, rule: Tensor) -> list[Float[Tensor, " dim"]]:
    """One feature: the lowest places of a scan over many widths."""
    axis = int(limits.free.nonzero())
    first = float(rule[axis])
    least = 0.02 * first * float(_robust(problem)[axis])
    widths = [first * factor for factor in LOOK]
    while widths[-1] > least:  # far points make the rule too wide
        widths.append(widths[-1] / math.sqrt(2))
    values = scan(problem, axis, widths)
    edge = [math.inf, *values, math.inf]
    lowest = sorted((v, i) for i, v in enumerate(values) if edge[i] >= v <= edge[i + 2])[:PLACES]
    worth = [index for value, index in lowest if value <= lowest[0][0] * NEARLY]
    return [torch.where(limits.free, widths[index], math.inf) for index in worth]


def wide(problem: Problem) -> float:
    """A width at which a feature still says something."""
    return 3.0 * kernels.get(problem.kernel).canonical_bandwidth


def another_chance(problem: Problem) -> Float[Tensor, " features"]:
    """A bandwidth at which each feature still says something."""
    dim = problem.x.shape[1]
    return torch.cat((torch.full_like(problem.no_help[:dim], wide(problem)), problem.no_help[dim:] * PARTS[-1]))


def _robust(problem: Problem) -> Float[Tensor, " dim"]:
    """The middle half of the points as a standard deviation, at most the true one: far points do not count."""
    x = problem.x[:: max(1, len(problem.x) // 2**16)].sort(0).values
    quarter = (x[(3 * len(x)) // 4] - x[len(x) // 4]) / 1.349
    return torch.where(quarter > 0, quarter, 1.0).clamp_max(1.0)


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
