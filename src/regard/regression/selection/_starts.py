"""Where a search for a bandwidth begins and must end: a fixed list, so that the same data gives the same answer."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression.selection._problem import Problem
from regard.regression.selection._rules import CANONICAL
from regard.regression.selection._scan import scan

SCAN = tuple(2.0**k for k in range(3, -10, -1))  # one feature: Scott's width times these, until the lower bound
FACTORS = (1.06, 0.5, 0.25, 2.0, 4.0)  # several features: together; 1.06 is where statsmodels starts
ABROAD = 10.0  # a width in standard deviations at which a feature says little
NARROWEST = 0.05  # of the distance between neighbours in a feature, were the middle half of the points evenly spread
WIDEST = 1e3  # of a feature's whole range
LOOK = tuple(2.0 ** (k / 2) for k in range(6, -12, -1))  # the same, nearer to each other, where a look is cheap
WORTH_A_LOOK = 300  # points
PLACES, NEARLY = 2, 1.05  # of a scan from which a search begins, and how much worse than the lowest they may be
MANY = 12  # features: above, those starts that single out one feature would be too many


class Bounds(NamedTuple):
    """Widths between which a search stays, in the problem's units."""

    low: Float[Tensor, " dim"]
    high: Float[Tensor, " dim"]
    free: Tensor  # bool (dim,): features that change at all


def bounds(problem: Problem) -> Bounds:
    """Below `low` every point sees its nearest neighbours only; above `high` all alike."""
    free = problem.spread > 0
    reach = CANONICAL[problem.kernel]
    middle = _robust(problem)
    low = NARROWEST * reach * middle / len(problem.x)
    high = WIDEST * reach * problem.spread
    return Bounds(torch.where(free, low, 1.0), torch.where(free, high, 1.0), free)


def starts(problem: Problem, limits: Bounds) -> list[Float[Tensor, " dim"]]:
    """Widths in the problem's units, in a fixed order; features that never change have an infinite one."""
    dim = int(limits.free.sum())
    reach = CANONICAL[problem.kernel]
    rule = torch.where(limits.free, reach * len(problem.x) ** (-1 / (dim + 4)), math.inf)
    robust = torch.where(limits.free, rule * _robust(problem), math.inf)
    if dim == 1 and problem.kernel == "gaussian" and not problem.degree and len(problem.x) >= WORTH_A_LOOK:
        return _looked_at(problem, limits, rule)
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
    return 3.0 * CANONICAL[problem.kernel]


def _robust(problem: Problem) -> Float[Tensor, " dim"]:
    """The middle half of the points as a standard deviation, at most the true one: far points do not count."""
    x = problem.x[:: max(1, len(problem.x) // 2**16)].sort(0).values
    quarter = (x[(3 * len(x)) // 4] - x[len(x) // 4]) / 1.349
    return torch.where(quarter > 0, quarter, 1.0).clamp_max(1.0)
