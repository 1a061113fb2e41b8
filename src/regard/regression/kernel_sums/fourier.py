"""Gaussian averages at a million queries over a million points by a Fourier series, each query with an error bound.

With u in units of the bandwidth and a period P a little longer than the data,

    exp(-|u|^2 / 2) = sum_k g_k exp(2 pi i k.u / P) + (a small error),

so a sum over all pairs is one transform from points to modes, a product with g, and one transform to the queries. The
error is absolute, so a query with few points near it has a large relative one: `engine` computes it again, exactly.
The bound is derived in docs/en/regression-bound.md.

Sums of the Gaussian times coordinates come from the same modes, each times a number. With u = x_i - q, measured from
each query itself, and kappa_a the angular frequency of a mode along axis a,

    K: 1,    u_a K: i kappa_a,    u_a^2 K: 1 - kappa_a^2,    u_a u_b K: -kappa_a kappa_b.

Their order is the number of factors u.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from regard.regression.kernel_sums import nufft
from regard.regression.kernel_sums.sample import UNIT_ROUNDOFF, Standardised, extent
from regard.regression.kernel_sums.state import Pooled, empty

EPS_SHARE = 1e-7  # eps as a share of tol: certain where a few points of 10^6 are near
MIN_EPS, MAX_EPS = 1e-13, 1e-7  # what a transform in float64 can reach, and what costs no more to ask for
BLOCK = 2**16  # queries that are divided at a time: a dozen small steps over a million would each wait for memory
MAX_CELLS = {1: 2**24, 2: 2**25, 3: 2**27}  # dimension -> cells of the fine grid, 16 bytes each


class Series(NamedTuple):
    """The Gaussian as a Fourier series on a box, in units of the bandwidth: a period and an odd count for each axis."""

    periods: tuple[float, ...]
    modes: tuple[int, ...]
    eps: float
    truncation: float  # error of the series at most: the neighbouring periods and the modes left out

    @staticmethod
    def of(spans: Sequence[float], eps: float) -> Series:
        """The shortest series whose error is about `eps` for differences of up to `spans`."""
        reach = math.sqrt(2 * math.log(2 / eps))
        periods = tuple(span + reach for span in spans)
        last = [math.ceil(reach * period / (2 * math.pi)) for period in periods]
        copies = [_sum_over_copies(span, period, 0) for span, period in zip(spans, periods, strict=True)]
        tails = [math.erfc(math.sqrt(2) * math.pi * k / period) for k, period in zip(last, periods, strict=True)]
        truncation = math.expm1(sum(math.log1p(a + b) for a, b in zip(copies, tails, strict=True)))
        return Series(periods, tuple(2 * k + 1 for k in last), eps, truncation)

    @property
    def cells(self) -> int:
        """Cells of the transform's grid, which is twice as fine as the modes need."""
        return math.prod(2 * count for count in self.modes)

    @property
    def fits(self) -> bool:
        """True where the grid is small enough."""
        return self.cells <= MAX_CELLS[len(self.modes)]

    def frequencies(self) -> list[Float[Tensor, "*modes"]]:
        """kappa = 2 pi k / P along each axis, shaped to multiply the modes: (N_1, 1, 1), (N_2, 1) and (N_3,)."""
        kappa = []
        for axis, (period, count) in enumerate(zip(self.periods, self.modes, strict=True)):
            k = torch.arange(-(count // 2), count // 2 + 1, dtype=torch.float64)
            kappa.append((k * (2 * math.pi / period)).view(-1, *[1] * (len(self.modes) - 1 - axis)))
        return kappa

    def coefficients(self) -> Float[Tensor, "*modes"]:
        """g_k, the product of one Gaussian for each axis."""
        product = torch.ones((), dtype=torch.float64)
        for period, kappa in zip(self.periods, self.frequencies(), strict=True):
            product = product * (math.sqrt(2 * math.pi) / period * torch.exp(kappa.square() / -2))
        return product

    def radians(self, points: Float[Tensor, "n dim"]) -> Float[Tensor, "dim n"]:
        """Points as angles, a row for each axis: a period is a full turn."""
        return points.T * (2 * math.pi / torch.tensor(self.periods, dtype=torch.float64).unsqueeze(-1))

    def error(self, points: int, order: int = 0) -> float:
        """Bound on the error of sum_j c_j u^order K(x - x_j) at any query in the box, as a share of sum_j |c_j|.

        |u| K is at most 0.61 and u^2 K at most 0.74, so what is argued for the product of Gaussians holds with one
        factor exchanged, or two. The modes weigh |kappa| g and |1 - kappa^2| g instead of g, of sums below 1: a
        transform may be off by as much. Both functions change by at most 1 where a coordinate changes by 1.
        """
        truncation = self.truncation
        if order:
            sides = list(zip(self.periods, self.modes, strict=True))
            exchanged = max(_truncation(*side, self.eps, 1) for side in sides)
            if order > 1:
                exchanged = max((1 + exchanged) ** 2 - 1, *(_truncation(*side, self.eps, 2) for side in sides))
            truncation = (1 + exchanged) * (1 + truncation) - 1
        transforms = 2 * nufft.error_bound(self.eps, points, len(self.modes))
        coordinates = (8 if order else 5) * UNIT_ROUNDOFF * sum(self.periods)  # where a point lies is rounded too
        return (1 + truncation) * transforms + truncation + coordinates


def _sum_over_copies(span: float, period: float, order: int) -> float:
    """|u|^order K summed over a point's copies in other periods, as seen by a query at most `span` away from it."""
    copies = range(1, 4)  # the later ones are below 1e-100
    ends = [end for m in copies for end in (m * period - span, m * period)]
    return sum(end**order * math.exp(-(end**2) / 2) for end in ends)


def _truncation(period: float, count: int, eps: float, order: int) -> float:
    """Neighbouring periods and modes left out along one axis, with |u|^order K and |kappa|^order g."""
    last = 2 * math.pi * (count // 2) / period
    span = period - math.sqrt(2 * math.log(2 / eps))
    tail = math.sqrt(2 / math.pi) * last ** (order - 1) * math.exp(-(last**2) / 2)
    return _sum_over_copies(span, period, order) + tail + (math.erfc(last / math.sqrt(2)) if order > 1 else 0.0)


def eps_for(tol: float) -> float:
    """The accuracy of the transforms for an error of `tol`."""
    return min(max(EPS_SHARE * tol, MIN_EPS), MAX_EPS)


def widest_series(spans: Sequence[float], tol: float) -> Series:
    """The series for data of these spans in bandwidths, with all queries outside them that may be certain."""
    eps = eps_for(tol)
    return Series.of([span + 2 * _margin(tol, eps) for span in spans], eps)


def _margin(tol: float, error: float) -> float:
    """No average is certain further than this from all data: even all points together weigh too little there."""
    return math.sqrt(2 * math.log(max(tol / error, 1.0)))


def series_in_box(data: Standardised, tol: float) -> tuple[Series, Standardised, Int[Tensor, " inside"]] | None:
    """The series on a box around the data and the queries near it, the data with those queries, and their rows.

    None where its grid would be too large, or no query could be certain.
    """
    eps, query = eps_for(tol), data.query
    margin = _margin(tol, eps)
    low, high = extent(query) if len(query) else (data.low, data.high)
    inside, near = torch.arange(len(query)), data
    if bool((low < data.low - margin).any() | (high > data.high + margin).any()):
        is_near = ((data.low - margin).unsqueeze(-1) <= query.T) & ((data.high + margin).unsqueeze(-1) >= query.T)
        inside = is_near.all(0).nonzero().squeeze(-1)
        near = data.at(inside)
    low = torch.maximum(torch.minimum(low, data.low), data.low - margin)
    high = torch.minimum(torch.maximum(high, data.high), data.high + margin)
    series = Series.of((high - low).tolist(), eps)
    return (series, near, inside) if series.fits and len(data.x) else None


class FourierSums(NamedTuple):
    """States of all queries, and by how much their weight may be off; error inf: nothing is known."""

    state: Pooled
    weight_error: float
    log_unit: float  # of the weight error

    def log_floor(self, rows: Int[Tensor, " rows"]) -> Float[Tensor, " rows"]:
        """The log of a weight that these queries have for certain, or -inf."""
        weight = (self.state.lse[rows] - self.log_unit).exp()
        return torch.log((weight - self.weight_error).clamp_min(0.0)) + self.log_unit


def pool(data: Standardised, tol: float) -> FourierSums:
    """The average at each query of a Gaussian with 1 to 3 features, with a bound that may be above `tol`."""
    box = series_in_box(data, tol) if tol >= MIN_EPS else None
    if box is not None and len(box[2]) == len(data.query):
        return _pool_inside(data, box[0])
    state = empty(len(data.query), data.values.shape[1], data.query)
    state.error.fill_(math.inf)
    if box is None:
        return FourierSums(state, 0.0, 0.0)
    series, near, inside = box
    sums = _pool_inside(near, series)
    state.put(inside, sums.state)
    return sums._replace(state=state)


def _pool_inside(data: Standardised, series: Series) -> FourierSums:
    """States of queries that are all in the box."""
    modes, mass, log_unit = spectrum(data, series)
    off = [series.error(len(data.x)) * one for one in mass]
    queries, columns = len(data.query), data.values.shape[1]
    sums = unpack(nufft.type2(series.radians(data.query), modes, series.eps), columns)
    new = data.query.new_empty
    state = Pooled(new(queries), new(queries, columns), new(queries))
    for start in range(0, queries, BLOCK):
        rows = slice(start, start + BLOCK)
        _average([one[rows] for one in sums], off, Pooled(*(part[rows] for part in state)))
    if log_unit:
        state.lse.add_(log_unit)
    return FourierSums(state, off[0], log_unit)


def _average(sums: Sequence[Float[Tensor, " q"]], off: Sequence[float], out: Pooled) -> None:
    """Averages of a block of queries, and their bounds: (off_column + off_0 |mean|) / (weight - off_0)."""
    weight = sums[0].contiguous()
    least = weight - off[0]
    worst = torch.reciprocal(least, out=out.error).mul_(off[0])
    for column, (total, off_column) in enumerate(zip(sums[1:], off[1:], strict=True)):
        mean = total / weight
        out.mean[:, column] = mean
        torch.maximum(worst, mean.abs_().mul_(off[0]).add_(off_column).div_(least), out=worst)
    worst.masked_fill_(~(least > 0), math.inf)
    torch.log(weight.clamp_min_(1e-300), out=out.lse)


class Spectrum(NamedTuple):
    """F_k g_k of the weight and the columns, the sum of |c| of each of these, and the log of the weights' unit."""

    modes: nufft.Coefficients
    mass: list[float]
    log_unit: float


def spectrum(data: Standardised, series: Series) -> Spectrum:
    """The modes of all points, times those of the Gaussian: what a transform to any query starts from."""
    log_unit = 0.0 if data.log_weight is None else float(data.log_weight.max())
    strengths = pack(data.values, data.log_weight, log_unit)
    real, imaginary = torch.view_as_real(strengths).unbind(-1)
    mass = torch.addcmul(real.square(), imaginary, imaginary).sqrt_().sum(1).repeat_interleave(2).tolist()
    modes = nufft.type1(series.radians(data.x), strengths, series.modes, series.eps)
    modes *= series.coefficients()
    return Spectrum(modes, mass[: 1 + data.values.shape[1]], log_unit)


def pack(
    values: Float[Tensor, "n columns"], log_weight: Float[Tensor, " n"] | None, log_unit: float = 0.0
) -> Complex[Tensor, "rows n"]:
    """Weight and columns, two real rows in each complex one: s (1 + i v_1), s (v_2 + i v_3), ..."""
    n, columns = values.shape
    packed = torch.zeros((columns + 2) // 2, n, 2, dtype=torch.float64)
    packed[0, :, 0] = 1
    for column in range(columns):
        row, part = divmod(column + 1, 2)
        packed[row, :, part] = values[:, column]
    if log_weight is not None:
        packed *= torch.exp(log_weight - log_unit).unsqueeze(-1)
    return torch.view_as_complex(packed)


def unpack(packed: Complex[Tensor, "rows q"], columns: int) -> list[Float[Tensor, " q"]]:
    """Weight and columns, from complex rows as `pack` makes them."""
    return [part for row in torch.view_as_real(packed) for part in row.unbind(-1)][: 1 + columns]
