"""Gaussian averages of a million points at a million queries: a Fourier series, and a bound for each query.

With u in units of the bandwidth and a period P a little longer than the data,

    exp(-|u|^2 / 2) = sum_k g_k exp(2 pi i k.u / P) + (something tiny),

so a sum over all pairs is one transform from points to modes, a product with g, and one transform to the queries. The
error is absolute; where few points are near, the average is not certain enough, and `_nearby` gives it exactly.
What is tiny and how tiny is argued in docs/en/regression-bound.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from regard.errors import PlanError
from regard.regression.kernel_sums import nufft, radius_sums
from regard.regression.kernel_sums.cloud import Cloud, extent
from regard.regression.kernel_sums.sample import Sample
from regard.regression.kernel_sums.state import Pooled, empty

SHARE = 1e-7  # eps as a share of tol: an average is certain where the weight of a few points of 10^6 is near
FINEST, COARSEST = 1e-13, 1e-7
BLOCK = 2**16  # queries that are divided at a time: a dozen small steps over a million would each wait for memory
# Cells of the fine grid, 16 bytes each, that a transform may use, by dimension.
CELLS = {1: 2**24, 2: 2**25, 3: 2**27}


class Series(NamedTuple):
    """The Gaussian as a Fourier series on a box, in units of the bandwidth: a period and an odd count for each axis."""

    periods: tuple[float, ...]
    modes: tuple[int, ...]
    eps: float
    rest: float  # what the series is off by at most: the neighbouring periods and the modes left out

    @staticmethod
    def of(spans: Sequence[float], eps: float) -> Series:
        reach = math.sqrt(2 * math.log(2 / eps))
        periods = tuple(span + reach for span in spans)
        last = [math.ceil(reach * period / (2 * math.pi)) for period in periods]
        near = [_neighbours(span, period) for span, period in zip(spans, periods, strict=True)]
        cut = [math.erfc(math.sqrt(2) * math.pi * count / period) for count, period in zip(last, periods, strict=True)]
        rest = math.expm1(sum(math.log1p(a + b) for a, b in zip(near, cut, strict=True)))
        return Series(periods, tuple(2 * count + 1 for count in last), eps, rest)

    @property
    def cells(self) -> int:
        return math.prod(2 * count for count in self.modes)

    @property
    def fits(self) -> bool:
        return self.cells <= CELLS[len(self.modes)]

    def coefficients(self) -> Float[Tensor, "*modes"]:
        """g_k, the product of one Gaussian for each axis."""
        product = torch.ones((), dtype=torch.float64)
        for period, count in zip(self.periods, self.modes, strict=True):
            k = torch.arange(-(count // 2), count // 2 + 1, dtype=torch.float64)
            one = math.sqrt(2 * math.pi) / period * torch.exp((2 * math.pi / period * k).square() / -2)
            product = product.unsqueeze(-1) * one
        return product

    def error(self, points: int) -> float:
        """A bound on the error of sum_j c_j K(x - x_j) at any query in the box, as a share of sum_j |c_j|."""
        transforms = 2 * nufft.promise(self.eps, points, len(self.modes))
        places = 5 * nufft.ROUNDING * sum(self.periods)  # where a point lies is rounded too
        return (1 + self.rest) * transforms + self.rest + places


def _neighbours(span: float, period: float) -> float:
    """The copies of a point in the other periods, as seen by a query at most `span` away from it."""
    copies = range(1, 4)  # the later ones are below 1e-100
    return sum(math.exp(-((m * period - span) ** 2) / 2) + math.exp(-((m * period) ** 2) / 2) for m in copies)


def eps_for(tol: float) -> float:
    return min(max(SHARE * tol, FINEST), COARSEST)


def offered(kernel: str, spans: Sequence[float], tol: float) -> bool:
    """Whether the fast sum serves: a Gaussian, 1 to 3 features, data not too wide for a grid.

    `spans` holds max - min of each feature that counts (finite bandwidth), in bandwidths. Heavy tails make it long.
    """
    return kernel == "gaussian" and 1 <= len(spans) <= 3 and Series.of(_widened(spans, tol), eps_for(tol)).fits


def cost(n: int, queries: int, spans: Sequence[float], columns: int, tol: float) -> float:
    """Seconds that the fast sum takes on one core, roughly, without the queries that must be redone."""
    series = Series.of(_widened(spans, tol), eps_for(tol))
    width = math.ceil(-math.log10(series.eps)) + 1
    rows = (columns + 2) // 2
    touched = (n + queries) * width ** len(spans)
    nanoseconds = (0.9, 7.0)[not nufft.has_finufft()]
    transforms = rows * (touched * nanoseconds + 60 * series.cells)
    return 1e-9 * (transforms + 60 * len(spans) * (n + queries))


def _widened(spans: Sequence[float], tol: float) -> list[float]:
    """With what queries outside the data may add."""
    return [span + 2 * _margin(tol, eps_for(tol)) for span in spans]


def _margin(tol: float, error: float) -> float:
    """No average is certain further than this from all data: even all points together weigh too little there."""
    return math.sqrt(2 * math.log(max(tol / error, 1.0)))


def pool(sample: Sample, query: Float[Tensor, "q dim"], tol: float) -> Pooled:
    """The average at each query by one transform there and one back; each query with a bound on its own error."""
    counts = torch.isfinite(sample.bandwidth)
    if sample.kernel != "gaussian" or not 1 <= int(counts.sum()) <= 3:
        raise PlanError(
            f"plan='fast' is for the gaussian kernel and 1 to 3 features that count; this is {sample.kernel!r} with "
            f"{int(counts.sum())}; plan='auto' chooses a way that serves"
        )
    cloud, at = Cloud.of(sample, query, counts)
    if cloud.n == 0:
        return empty(len(query), sample.values.shape[1], query)
    return cloud.restored(_pool(cloud, at, tol), query.device)


def _pool(cloud: Cloud, at: Float[Tensor, "dim q"], tol: float) -> Pooled:
    series, inside = box(cloud, at, tol)
    if not series.fits or tol < FINEST:  # no query would be certain
        return radius_sums.pool(cloud, at, tol)
    if inside is None:
        found, off = _summed(cloud, at, series)
    else:
        some, off = _summed(cloud, at[:, inside], series)
        found = empty(at.shape[1], cloud.columns, at)
        found.error.fill_(math.inf)
        for whole, part in zip(found, some, strict=True):
            whole[inside] = part
    redo = torch.nonzero(~(found.error <= tol)).squeeze(-1)
    if len(redo):
        floor = torch.log((found.lse[redo].exp() - off).clamp_min(0.0))  # a weight surely there, or -inf
        exact = radius_sums.pool(cloud, at[:, redo], tol, floor)
        for whole, part in zip(found, exact, strict=True):
            whole[redo] = part
    return found


def box(cloud: Cloud, at: Float[Tensor, "dim q"], tol: float) -> tuple[Series, Tensor | None]:
    """A box around the data and the queries not too far from it; which those are, None for all."""
    eps = eps_for(tol)
    margin = _margin(tol, eps)
    low, high = extent(at) if at.shape[1] else (cloud.low, cloud.high)
    inside = None
    if bool((low < cloud.low - margin).any() | (high > cloud.high + margin).any()):
        near = (at >= (cloud.low - margin).unsqueeze(-1)) & (at <= (cloud.high + margin).unsqueeze(-1))
        inside = near.all(0)
    low = torch.maximum(torch.minimum(low, cloud.low), cloud.low - margin)
    high = torch.minimum(torch.maximum(high, cloud.high), cloud.high + margin)
    return Series.of((high - low).tolist(), eps), inside


def _summed(cloud: Cloud, at: Float[Tensor, "dim q"], series: Series) -> tuple[Pooled, float]:
    """The average and its bound at queries in the box, and how far its weight may be off at all of them."""
    strengths = packed(cloud)
    off = [series.error(cloud.n) * mass for mass in masses(strengths)]  # of each row
    turn = 2 * math.pi / torch.tensor(series.periods, dtype=torch.float64).unsqueeze(-1)
    modes = nufft.type1(cloud.x * turn, strengths, series.modes, series.eps)
    del strengths
    modes *= series.coefficients()
    sums = torch.view_as_real(nufft.type2(at * turn, modes, series.eps))  # (rows, q, 2)
    queries = at.shape[1]
    found = Pooled(at.new_empty(queries), at.new_empty(queries, cloud.columns), at.new_empty(queries))
    for start in range(0, queries, BLOCK):
        some = slice(start, start + BLOCK)
        _average(sums[:, some], off, Pooled(*(part[some] for part in found)))
    return found, off[0]


def _average(sums: Float[Tensor, "rows q 2"], off: Sequence[float], into: Pooled) -> None:
    """Averages of some queries, and their bounds: (off_row + off_0 |mean|) / (weight - off_0)."""
    weight = sums[0, :, 0].contiguous()
    least = weight - off[0]
    worst = torch.reciprocal(least, out=into.error).mul_(off[0])
    for column in range(into.mean.shape[1]):
        row, part = divmod(column + 1, 2)
        mean = sums[row, :, part] / weight
        into.mean[:, column] = mean
        torch.maximum(worst, mean.abs_().mul_(off[0]).add_(off[row]).div_(least), out=worst)
    worst.masked_fill_(~(least > 0), math.inf)
    torch.log(weight.clamp_min_(1e-300), out=into.lse)


def masses(strengths: Complex[Tensor, "rows n"]) -> list[float]:
    """The sum of |c| of each row."""
    real, imaginary = torch.view_as_real(strengths).unbind(-1)
    return torch.addcmul(real.square(), imaginary, imaginary).sqrt_().sum(1).tolist()


def packed(cloud: Cloud) -> Tensor:
    """Weight and columns, two real rows in each complex one: s (1 + i v_1), s (v_2 + i v_3), ..."""
    rows = (cloud.columns + 2) // 2
    packed = torch.zeros(rows, cloud.n, 2, dtype=torch.float64)
    packed[0, :, 0] = 1
    for column in range(cloud.columns):
        row, part = divmod(column + 1, 2)
        packed[row, :, part] = cloud.values[:, column]
    if cloud.log_weight is not None:
        packed *= torch.exp(cloud.log_weight).unsqueeze(-1)
    return torch.view_as_complex(packed)
