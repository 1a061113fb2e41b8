"""Sums of the Gaussian times what it was multiplied by: the same modes, each times a number, and what that may lose.

With u = x_i - q, measured from each query itself, and kappa_a the frequency of a mode along axis a,

    K: 1,    u_a K: i kappa_a,    u_a^2 K: 1 - kappa_a^2,    u_a u_b K: -kappa_a kappa_b.

Their order is the number of factors u; docs/en/regression-bound.md argues the bounds.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from regard.regression.kernel_sums import nufft
from regard.regression.kernel_sums.fourier import Series


def frequencies(series: Series) -> list[Tensor]:
    """kappa_a of every mode, shaped to multiply all of them: one for each axis."""
    found = []
    for axis, (period, count) in enumerate(zip(series.periods, series.modes, strict=True)):
        k = torch.arange(-(count // 2), count // 2 + 1, dtype=torch.float64) * (2 * math.pi / period)
        found.append(k.view(-1, *[1] * (len(series.modes) - 1 - axis)))
    return found


def error_of(series: Series, points: int, order: int) -> float:
    """The bound of `Series.error` for a sum of this order, 1 or 2, along any axes.

    |u| K is at most 0.61 and u^2 K at most 0.74, so what is argued for the product of Gaussians holds with one factor
    exchanged, or two. The modes weigh |kappa| g and |1 - kappa^2| g instead of g, of sums below 1: a transform may be
    off by as much. Both functions change by at most 1 where a place changes by 1.
    """
    sides = list(zip(series.periods, series.modes, strict=True))
    exchanged = max(_rest_of_one(*side, series.eps) for side in sides)
    if order > 1:
        exchanged = max((1 + exchanged) ** 2 - 1, *(_rest_of_two(*side, series.eps) for side in sides))
    rest = (1 + exchanged) * (1 + series.rest) - 1
    transforms = 2 * nufft.promise(series.eps, points, len(series.modes))
    return (1 + rest) * transforms + rest + 8 * nufft.ROUNDING * sum(series.periods)


def _rest_of_one(period: float, count: int, eps: float) -> float:
    """Neighbouring periods and modes left out, as for the Gaussian, with |u| K and |kappa| g."""
    last = _last(period, count)
    return _copies(period, eps, 1) + math.sqrt(2 / math.pi) * math.exp(-(last**2) / 2)


def _rest_of_two(period: float, count: int, eps: float) -> float:
    """The same with u^2 K and kappa^2 g."""
    last = _last(period, count)
    beyond = math.sqrt(2 / math.pi) * last * math.exp(-(last**2) / 2) + math.erfc(last / math.sqrt(2))
    return _copies(period, eps, 2) + beyond


def _copies(period: float, eps: float, order: int) -> float:
    span = period - math.sqrt(2 * math.log(2 / eps))
    ends = [end for m in range(1, 4) for end in (m * period - span, m * period)]
    return sum(end**order * math.exp(-(end**2) / 2) for end in ends)


def _last(period: float, count: int) -> float:
    return 2 * math.pi * (count // 2) / period
