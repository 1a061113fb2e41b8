"""Leave-one-out at a million points by Fourier series: two transforms an evaluation, for any number of features.

With F the transform of the points and g(h) the Fourier coefficients of a Gaussian (see `kernel_sums.fourier`), the sums
at all points are one transform of F g(h). The residuals depend on h only through g, so the derivative of CV is

    d CV / d log h_a = Re sum_k conj(A_k) F_k g_k (1 - kappa_a^2),    kappa_a = 2 pi k_a h_a / P_a,

where A is one transform back of d CV / d sum at each point. Value and gradient take two transforms; one for each
derivative would be 1 + dim. F is kept while the bandwidth moves within a range.

A row whose error bound is above `tol` is computed again, from the points near it or from all (`pairwise`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from regard.engine import threads
from regard.operands import NEVER
from regard.regression.bandwidth.leave_one_out.pairwise import Pairwise
from regard.regression.bandwidth.leave_one_out.problem import Evaluation, Problem
from regard.regression.kernel_sums import nufft, radius_search
from regard.regression.kernel_sums.fourier import Series, eps_for, pack
from regard.regression.kernel_sums.radius_search import Neighbours, SortedAxis
from regard.regression.kernel_sums.sample import extent

# Factor by which a bandwidth may shrink or grow before the points are transformed anew, by number of features: modes
# that are not needed cost little in one dimension and much in three.
RANGE = {1: 2.0, 2: 1.4, 3: 1.1}
SEARCH_TOL = 1e-4  # standard deviations: largest error of a row while a bandwidth is searched
SERIES_TOL = 1e-5  # standard deviations: the series is made for this or a smaller `tol`, so that few rows are uncertain
MAX_PAIRS_WITH_GRADIENT = 2e7  # up to here all pairs are faster than a radius search in several dimensions
NO_OTHER_POINT = -1e4  # log weight of a row that knows no other: all points are within its radius
ROW_BLOCK = 2**16  # rows swept at a time: a dozen steps over them stay in the cache, and each is worth its call


class PointModes(NamedTuple):
    """Points as a Fourier series over periods that serve a range of bandwidths."""

    axes: tuple[int, ...]
    widths: list[float]  # in the middle of the range
    periods: list[float]
    modes: tuple[int, ...]
    coefficients: Complex[Tensor, "rows ..."]  # F
    to_points: Callable[[Tensor], Tensor]
    to_modes: Callable[[Tensor], Tensor]

    def serves(self, axes: tuple[int, ...], h: list[float]) -> bool:
        """True where these bandwidths are within the range."""
        factor = RANGE[len(self.axes)]
        return self.axes == axes and all(w / factor <= one <= w * factor for w, one in zip(self.widths, h, strict=True))


@dataclass(eq=False)
class Fourier:
    """Leave-one-out of a Gaussian of degree 0 with 1 to 3 features of finite bandwidth."""

    problem: Problem
    tol: float = SEARCH_TOL
    spectrum: PointModes | None = None
    radius: Radius | None = None

    def __post_init__(self) -> None:
        self.eps: float = eps_for(min(self.tol, SERIES_TOL))
        self.extent: list[float] = self.problem.extent.tolist()

    def series(self, bandwidth: Float[Tensor, " features"]) -> Series | None:
        """Series that this bandwidth needs; None where there is none."""
        problem, axes = self.problem, self.axes(bandwidth)
        h, kernel = bandwidth / problem.unit, problem.data.kernel
        if kernel != "gaussian" or problem.degree or problem.categories is not None or not 1 <= len(axes) <= 3:
            return None
        series = Series.of([float(problem.extent[a] / h[a]) for a in axes], self.eps)
        return series if series.fits else None

    def axes(self, bandwidth: Float[Tensor, " features"]) -> tuple[int, ...]:
        """Features that matter: of finite bandwidth, and not constant."""
        widths = zip(bandwidth.tolist(), self.extent, strict=False)  # lambdas are no axes
        return tuple(i for i, (h, extent) in enumerate(widths) if math.isfinite(h) and extent > 0)

    @threads.one_thread()  # the transforms have threads of their own, and the sweep has workers
    def __call__(self, bandwidth: Float[Tensor, " features"], *, gradient: bool = True) -> Evaluation:
        """CV, gradient and residuals at a bandwidth in the caller's units."""
        problem, axes = self.problem, self.axes(bandwidth)
        h = bandwidth / problem.unit
        widths = h[list(axes)].tolist()
        if self.spectrum is None or not self.spectrum.serves(axes, widths):
            self.spectrum = self._transform(axes, widths)
        spectrum = self.spectrum
        series = self._in_bandwidths(spectrum, widths)
        filtered = spectrum.coefficients * series.coefficients()
        sums = torch.view_as_real(spectrum.to_points(filtered))  # (rows, n, 2)
        off = [series.error(len(problem.data.x)) * mass for mass in self._mass]
        swept = sweep(sums, self._rows, off, self.tol, gradient=gradient)
        by_feature = torch.zeros_like(h)
        if swept.by_sum is not None:
            by_mode = (spectrum.to_modes(swept.by_sum).conj() * filtered).real.sum(0)
            for axis, kappa in zip(axes, series.frequencies(), strict=True):
                by_feature[axis] = (by_mode * (1 - kappa.square())).sum()
        if len(swept.uncertain):
            exact, part = self._exact_rows(bandwidth, axes, swept)
            swept.residuals[swept.uncertain] = exact
            by_feature[list(axes)] += part
        return problem.evaluation(swept.residuals, by_feature)

    def _exact_rows(self, bandwidth: Tensor, axes: tuple[int, ...], swept: Sweep) -> tuple[Tensor, Tensor]:
        """Residuals of the uncertain rows, and their part of the gradient."""
        problem, rows = self.problem, swept.uncertain
        if len(rows) * len(problem.data.x) <= MAX_PAIRS_WITH_GRADIENT and len(axes) > 1:
            residuals, gradient = Pairwise(problem).rows(bandwidth, rows, gradient=True)
            return residuals, gradient[list(axes)]
        if self.radius is None or self.radius.axes != axes:
            self.radius = Radius(problem, axes)
        h, log_floor = (bandwidth / problem.unit)[list(axes)], swept.least_weight.clamp_min(0.0).log()
        return self.radius.rows(h, rows, log_floor, self.tol)

    def _transform(self, axes: tuple[int, ...], widths: list[float]) -> PointModes:
        """Transform the points for a range of bandwidths around this one."""
        factor, reach = RANGE[len(axes)], math.sqrt(2 * math.log(2 / self.eps))
        periods = [self.extent[a] + reach * h * factor for a, h in zip(axes, widths, strict=True)]
        last = [
            math.ceil(reach * period * factor / (2 * math.pi * h)) for period, h in zip(periods, widths, strict=True)
        ]
        modes = tuple(2 * k + 1 for k in last)
        data, chosen = self.problem.data, list(axes)
        angle = 2 * math.pi / torch.tensor(periods, dtype=torch.float64)
        points = ((data.x[:, chosen] - ((data.low + data.high) / 2)[chosen]) * angle).T.contiguous()
        to_points, to_modes = (nufft.plan(kind, points, modes, self.eps, rows=len(self._strengths)) for kind in (2, 1))
        return PointModes(axes, widths, periods, modes, to_modes(self._strengths), to_points, to_modes)

    def _in_bandwidths(self, spectrum: PointModes, widths: list[float]) -> Series:
        """Series of the Gaussian over the periods of the spectrum, in units of this bandwidth."""
        spans = [self.extent[a] / h for a, h in zip(spectrum.axes, widths, strict=True)]
        periods = tuple(period / h for period, h in zip(spectrum.periods, widths, strict=True))
        return Series(periods, spectrum.modes, self.eps, Series.of(spans, self.eps).truncation)

    @cached_property
    def _rows(self) -> SweepRows:
        problem = self.problem
        by_residual = (-2 * problem.output_weight).tolist()
        return SweepRows(problem.data.values, torch.exp(problem.log_left_out), problem.share, by_residual)

    @cached_property
    def _strengths(self) -> Complex[Tensor, "rows n"]:
        """Weight and weighted outputs, two real rows in each complex one."""
        return pack(self.problem.data.values, self.problem.data.log_weight)

    @cached_property
    def _mass(self) -> list[float]:
        return self._strengths.abs().sum(1).tolist()


# From sums to residuals: one pass over the rows, block by block. Blocks go to workers, and not each step to torch's
# threads: those would go on waiting for more work on the cores that the transforms need.


class SweepRows(NamedTuple):
    """Data of each row that no bandwidth changes; outputs in standard deviations."""

    values: Float[Tensor, "n outputs"]
    left_out: Float[Tensor, " n"]  # weight that goes with the row itself
    share: Float[Tensor, " n"]  # of the row in CV
    by_residual: list[float]  # d CV / d fit of each output, for a residual and a share of 1


class Sweep(NamedTuple):
    """Residuals, the derivative of CV by each sum, and the uncertain rows."""

    residuals: Float[Tensor, "n outputs"]
    by_sum: Complex[Tensor, "rows n"] | None  # packed as the sums are; 0 in uncertain rows
    uncertain: Int[Tensor, " some"]
    least_weight: Float[Tensor, " some"]  # weight that the other points of an uncertain row certainly have


def sweep(
    sums: Float[Tensor, "rows n 2"], rows: SweepRows, off: Sequence[float], tol: float, *, gradient: bool
) -> Sweep:
    """Go once over all rows. The sums hold the weight in [0, :, 0] and one output after the other behind it.

    `off` bounds the error of each complex row of sums. A row is certain where its fit has an error of at most `tol`:
    (off_row + off_0 |fit|) / (weight - off_0) <= tol.
    """
    n = sums.shape[1]
    residuals = torch.empty_like(rows.values)
    by_sum = None
    if gradient:  # written everywhere, unless the last number of each row has no output
        by_sum = torch.empty_like(sums) if rows.values.shape[1] % 2 else torch.zeros_like(sums)
    blocks = [slice(start, min(n, start + ROW_BLOCK)) for start in range(0, n, ROW_BLOCK)]
    parts = threads.parallel_map(lambda block: _sweep_block(block, sums, rows, off, tol, residuals, by_sum), blocks)
    uncertain = torch.cat([torch.empty(0, dtype=torch.int64), *(rows for rows, _ in parts)])
    least_weight = torch.cat([rows.share[:0], *(weight for _, weight in parts)])
    return Sweep(residuals, None if by_sum is None else torch.view_as_complex(by_sum), uncertain, least_weight)


def _sweep_block(
    block: slice,
    sums: Tensor,
    rows: SweepRows,
    off: Sequence[float],
    tol: float,
    residuals: Tensor,
    by_sum: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Write residuals and derivatives of a block; return its uncertain rows and their least weight."""
    left_out = rows.left_out[block]
    weight = sums[0, block, 0] - left_out
    per_weight = weight.reciprocal()
    by_weight = torch.zeros_like(weight)
    certain = torch.ones_like(weight, dtype=torch.bool)
    for column, by_residual in enumerate(rows.by_residual):
        row, part = divmod(column + 1, 2)
        value = rows.values[block, column]
        fit = torch.addcmul(sums[row, block, part], left_out, value, value=-1).mul_(per_weight)
        residual = value - fit
        residuals[block, column] = residual
        certain &= tol * (weight - off[0]) >= off[0] * fit.abs() + off[row]  # False where anything is NaN
        if by_sum is not None:
            by_output = residual.mul_(per_weight).mul_(rows.share[block]).mul_(by_residual)
            by_sum[row, block, part] = by_output
            by_weight.addcmul_(fit, by_output, value=-1)
    uncertain = (~certain).nonzero().flatten()
    if by_sum is not None:
        by_sum[0, block, 0] = by_weight
        by_sum[:, block][:, uncertain] = 0.0
    return uncertain + block.start, weight[uncertain] - off[0]


# Uncertain rows, one by one. The radius is that of `kernel_sums.radius_search`: the points beyond it move a fit by less
# than a share of `tol`.


@dataclass(eq=False)
class Radius:
    """Leave-one-out of a Gaussian of degree 0 over some features, from a search that serves all bandwidths."""

    problem: Problem
    axes: tuple[int, ...]  # features of finite bandwidth

    def __post_init__(self) -> None:
        self.x: Float[Tensor, "n axes"] = self.problem.data.x[:, list(self.axes)].contiguous()
        self.log_weight: Float[Tensor, " n"] = self.problem.data.log_weights
        self.log_influence: float = radius_search.log_influence(self.problem.data)

    @cached_property
    def index(self) -> SortedAxis | radius_search.KdTree:
        return radius_search.search_index(self.x)

    def rows(
        self, h: Float[Tensor, " axes"], rows: Int[Tensor, " some"], log_floor: Float[Tensor, " some"], tol: float
    ) -> tuple[Float[Tensor, "some outputs"], Float[Tensor, " axes"]]:
        """Residuals of these rows and their part of the gradient; h is in the problem's units.

        `log_floor` is the log of a weight that the other points certainly have, or -inf.
        """
        problem = self.problem
        unknown = (log_floor == NEVER).nonzero().flatten()
        if len(unknown):
            log_floor = log_floor.clone()
            log_floor[unknown] = self._weight_of_neighbour(h, rows[unknown])
        radius = radius_search.radius_for(self.log_influence, tol, log_floor)
        y = problem.data.values
        total = self.x.new_zeros(len(rows), (1 + len(self.axes)) * (1 + y.shape[1]))
        for near in self._neighbours(h, rows, radius):
            self._add(h, rows, log_floor, near, total)
        sums = total.unflatten(1, (1 + len(self.axes), -1))  # (rows, 1 + axes, 1 + outputs)
        weight = sums[:, :1, :1]
        fit = sums[:, 0, 1:] / weight[:, 0]
        residuals = y[rows] - fit
        by_log_h = (sums[:, 1:, 1:] - fit.unsqueeze(1) * sums[:, 1:, :1]) / weight  # d fit / d log h
        by_fit = -2 * residuals * problem.output_weight * problem.share[rows].unsqueeze(1)
        return residuals, torch.einsum("ro,rao->a", by_fit, by_log_h)

    def _weight_of_neighbour(self, h: Tensor, rows: Int[Tensor, " some"]) -> Float[Tensor, " some"]:
        """Log weight of one other point at each row; the nearest of one bandwidth is near at any."""
        if isinstance(self.index, SortedAxis):
            place = torch.searchsorted(self.index.sorted, self.x[rows, 0]).unsqueeze(1) + torch.arange(-1, 2)
            nearest = self.index.order[place.clamp(0, len(self.x) - 1)]
        else:
            nearest = torch.from_numpy(self.index.tree.query(self.x[rows].numpy(), k=min(3, len(self.x)))[1])
        best = torch.full((len(rows),), NEVER, dtype=torch.float64)
        if self.problem.log_kept is not None:
            best = self.log_weight[rows] + self.problem.log_kept[rows]
        for other in nearest.unbind(1):
            square = ((self.x[other] - self.x[rows]) / h).square().sum(1)
            best = torch.where(other != rows, torch.maximum(best, self.log_weight[other] - square / 2), best)
        return torch.where(best == NEVER, NO_OTHER_POINT, best)  # only weights of 0 around it

    def _neighbours(self, h: Tensor, rows: Tensor, radius: Float[Tensor, " some"]) -> Iterator[Neighbours]:
        """Points within the radius of each row, as lists whose queries are places in `rows`."""
        everyone = torch.arange(len(rows))
        in_cells = (radius <= radius_search.MAX_CELL_RADIUS) & (
            len(self.axes) > 1
        )  # one feature is sorted once for all bandwidths
        near_rows, far_rows = everyone[in_cells], everyone[~in_cells]
        if len(near_rows):
            x = (self.x.T / h.unsqueeze(1)).T
            order, blocks = radius_search.cell_list(x, *extent(x), x.T[:, rows[near_rows]].T, radius[near_rows])
            for near in blocks:
                yield near._replace(points=order[near.points], query=near_rows[near.query])
        if len(far_rows):
            order, in_widest = self.index.order, radius[far_rows] * h.max()
            for near in self.index.within(self.x[rows[far_rows]], in_widest):
                points = near.points if order is None else order[near.points]
                yield near._replace(points=points, query=far_rows[near.query])

    def _add(self, h: Tensor, rows: Tensor, log_floor: Tensor, near: Neighbours, total: Tensor) -> None:
        """Add the weighted sums of [1, y], and of [1, y] ((x_i - x_j) / h)^2 of each axis, to each row."""
        query, kept = torch.repeat_interleave(near.query, near.length), self.problem.log_kept
        square = ((self.x[near.points] - self.x[rows[query]]) / h).square()
        log_weight = self.log_weight[near.points] - square.sum(1) / 2 - log_floor[query]
        own = (near.points == rows[query]).nonzero().flatten()
        log_weight[own] = NEVER if kept is None else log_weight[own] + kept[near.points[own]]
        weight = torch.exp(log_weight).unsqueeze(1)
        ones_and_y = torch.cat((weight, weight * self.problem.data.values[near.points]), 1)
        columns = torch.cat([ones_and_y, *(ones_and_y * one.unsqueeze(1) for one in square.unbind(1))], 1)
        total.index_add_(0, near.query, near.sums(columns))
