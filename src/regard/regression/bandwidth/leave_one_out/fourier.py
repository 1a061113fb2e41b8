"""Leave-one-out at a million points: two transforms an evaluation, whatever the number of features.

With F the transform of the points and g(h) the Fourier coefficients of a Gaussian (see `_fast`), the sums at all points
are one transform of F g(h). The squares of the residuals depend on h only through g, so their derivative is

    dE / d log h_a = Re sum_k conj(A_k) F_k g_k (1 - kappa_a^2),    kappa_a = 2 pi k_a h_a / P_a,

where A is one transform back of what each sum at each point does to E: value and gradient in two transforms, where a
transform for each derivative would take 1 + dim. F is kept while the bandwidth moves within a box.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.engine import threads
from regard.regression.bandwidth.leave_one_out.problem import Evaluation, Problem
from regard.regression.bandwidth.leave_one_out.radius import Near
from regard.regression.kernel_sums import nufft
from regard.regression.kernel_sums.fourier import Series, eps_for, pack

# How much narrower or wider a bandwidth may become before the points are transformed anew, by dimension: modes that
# are not needed cost little in one dimension and much in three.
ROOM = {1: 2.0, 2: 1.4, 3: 1.1}
SUREST = 1e-4  # standard deviations by which a row may be off, at worst, while a bandwidth is searched


class Box(NamedTuple):
    """The points as a Fourier series over periods that fit a range of bandwidths."""

    axes: tuple[int, ...]
    narrowest: list[float]
    widest: list[float]
    periods: list[float]
    modes: tuple[int, ...]
    spectrum: Tensor  # (rows, *modes)
    forward: Callable[[Tensor], Tensor]  # modes to points
    back: Callable[[Tensor], Tensor]  # points to modes

    def serves(self, axes: tuple[int, ...], h: list[float]) -> bool:
        return self.axes == axes and all(
            low <= one <= high for low, one, high in zip(self.narrowest, h, self.widest, strict=True)
        )


@dataclass(eq=False)
class Fast:
    """Leave-one-out of a Gaussian of degree 0 with 1 to 3 features of finite width."""

    problem: Problem
    tol: float = SUREST
    box: Box | None = None
    near: Near | None = None

    @property
    def eps(self) -> float:
        return eps_for(min(self.tol, 1e-5))

    def series(self, bandwidth: Float[Tensor, " features"]) -> Series | None:
        """The series this bandwidth needs, None where there is none."""
        problem = self.problem
        h = bandwidth / problem.unit
        axes = self.axes(bandwidth)
        if problem.kernel != "gaussian" or problem.degree or problem.kinds is not None or not 1 <= len(axes) <= 3:
            return None
        series = Series.of([float(problem.spread[a] / h[a]) for a in axes], self.eps)
        return series if series.fits else None

    def axes(self, bandwidth: Float[Tensor, " features"]) -> tuple[int, ...]:
        """The features that count: of finite width, and not the same everywhere."""
        widths = bandwidth.tolist()[: len(self._spread)]
        return tuple(i for i, h in enumerate(widths) if math.isfinite(h) and self._spread[i] > 0)

    @cached_property
    def _spread(self) -> list[float]:
        return self.problem.spread.tolist()

    def __call__(self, bandwidth: Float[Tensor, " features"], *, gradient: bool = True) -> Evaluation:
        """Value, gradient and residuals at a bandwidth, as `Pairs` gives them."""
        with threads.one_thread():  # the transforms have threads of their own, and the sweep has workers
            return self._evaluated(bandwidth, gradient=gradient)

    def _evaluated(self, bandwidth: Float[Tensor, " features"], *, gradient: bool) -> Evaluation:
        problem = self.problem
        h = bandwidth / problem.unit
        axes = self.axes(bandwidth)
        widths = h[list(axes)].tolist()
        if self.box is None or not self.box.serves(axes, widths):
            self.box = self._prepared(axes, widths)
        box = self.box
        series = self._fitted(box, widths)
        filtered = box.spectrum * series.coefficients()
        sums = torch.view_as_real(box.forward(filtered))  # (rows, n, 2)
        found = sweep(sums, self._rows, self._certain(series), gradient=gradient)
        residuals = found.residuals
        by_axis = torch.zeros(len(axes), dtype=torch.float64)
        if found.pull is not None:
            by_axis += self._gradient(box, series, filtered, found.pull)
        if len(found.poor):
            if self.near is None or self.near.axes != axes:
                self.near = Near(problem, axes)
            floor = found.least.clamp_min(0.0).log()
            residuals[found.poor], theirs = self.near.rows(h[list(axes)], found.poor, floor, self.tol)
            by_axis += theirs
        by_feature = torch.zeros_like(h)
        by_feature[list(axes)] = by_axis
        return problem.answer(residuals, by_feature)

    def _prepared(self, axes: tuple[int, ...], widths: list[float]) -> Box:
        """Room for a bandwidth to move in both directions."""
        room = ROOM[len(axes)]
        narrowest, widest = [h / room for h in widths], [h * room for h in widths]
        spread = self.problem.spread[list(axes)].tolist()
        reach = math.sqrt(2 * math.log(2 / self.eps))
        periods = [span + reach * h for span, h in zip(spread, widest, strict=True)]
        modes = tuple(
            2 * math.ceil(reach * period / (2 * math.pi * h)) + 1 for period, h in zip(periods, narrowest, strict=True)
        )
        x = self.problem.x[:, list(axes)]
        turn = 2 * math.pi / torch.tensor(periods, dtype=torch.float64)
        points = ((x - (x.amax(0) + x.amin(0)) / 2) * turn).T.contiguous()
        rows = len(self._strengths)
        forward = nufft.plan(2, points, modes, self.eps, rows=rows)
        back = nufft.plan(1, points, modes, self.eps, rows=rows)
        return Box(axes, narrowest, widest, periods, modes, back(self._strengths), forward, back)

    def _fitted(self, box: Box, widths: list[float]) -> Series:
        """The box in units of this bandwidth."""
        spans = [float(self.problem.spread[a]) / h for a, h in zip(box.axes, widths, strict=True)]
        periods = tuple(period / h for period, h in zip(box.periods, widths, strict=True))
        return Series(periods, box.modes, self.eps, Series.of(spans, self.eps).truncation)

    @cached_property
    def _values(self) -> Float[Tensor, "n outputs"]:
        return self.problem.y / self.problem.deviation

    @cached_property
    def _rows(self) -> Rows:
        problem = self.problem
        pulls = -2 * problem.per_output * problem.deviation.square()
        return Rows(self._values, torch.exp(problem.log_left_out), problem.share, problem.deviation, pulls.tolist())

    @cached_property
    def _strengths(self) -> Tensor:
        """Weight and outputs, two real rows in each complex one: s (1 + i y_1), s (y_2 + i y_3), ..."""
        return pack(self._values, self.problem.log_weight)

    @cached_property
    def _mass(self) -> list[float]:
        return self._strengths.abs().sum(1).tolist()

    def _certain(self, series: Series) -> Certain:
        bound = series.error(len(self._values))
        return Certain([bound * mass for mass in self._mass], self.tol)

    @staticmethod
    def _gradient(box: Box, series: Series, filtered: Tensor, pull: Tensor) -> Float[Tensor, " axes"]:
        product = (box.back(pull).conj() * filtered).real.sum(0)
        found = []
        for axis, (period, count) in enumerate(zip(series.periods, series.modes, strict=True)):
            others = [a for a in range(product.dim()) if a != axis]
            k = torch.arange(-(count // 2), count // 2 + 1, dtype=torch.float64)
            found.append((product.sum(others) if others else product) @ (1 - (2 * math.pi / period * k).square()))
        return torch.stack(found)


BLOCK = 2**16  # rows: fewer, and starting each step takes longer than the step; more, and memory is asked for anew


class Rows(NamedTuple):
    """What is known of each row before any bandwidth is; outputs in standard deviations."""

    values: Float[Tensor, "n outputs"]
    left_out: Float[Tensor, " n"]  # weight that goes with the row itself
    share: Float[Tensor, " n"]  # of the row in the value
    deviation: Float[Tensor, " outputs"]
    pulls: list[float]  # d value / d fit of an output, for a residual and a share of 1


class Certain(NamedTuple):
    """When an average is good enough: its error is below `tol`, each sum being off by at most its own."""

    error: Sequence[float]  # of each complex row of sums
    tol: float

    def at(self, weight: Float[Tensor, "*n"], fit: Float[Tensor, "*n"], row: int) -> Bool[Tensor, "*n"]:
        """Whether (error_row + error_0 |fit|) / (weight - error_0) <= tol. It is not where anything is NaN."""
        return self.tol * (weight - self.error[0]) >= self.error[0] * fit.abs() + self.error[row]

    def throughout(self, weight: Float[Tensor, " n"], fit: Float[Tensor, " n"], row: int) -> bool:
        """Whether it is so even for the least weight together with the largest fit: quicker, and nearly always so."""
        lowest, highest = torch.aminmax(fit)
        return bool(self.at(weight.amin(), torch.maximum(-lowest, highest), row))


class Found(NamedTuple):
    """Residuals, what each sum does to the value, and the rows that are left for others to find."""

    residuals: Float[Tensor, "n outputs"]
    pull: Tensor | None  # packed as the sums are; 0 in poor rows
    poor: Int[Tensor, " some"]
    least: Float[Tensor, " some"]  # weight of the others that is surely there, in poor rows


def sweep(sums: Float[Tensor, "rows n 2"], rows: Rows, certain: Certain, *, gradient: bool) -> Found:
    """All rows. The sums hold the weight in [0, :, 0] and one output after the other behind it."""
    n = sums.shape[1]
    residuals = torch.empty_like(rows.values)
    pull = None
    if gradient:  # written everywhere, unless the last number of each row has no output
        pull = torch.empty_like(sums) if rows.values.shape[1] % 2 else torch.zeros_like(sums)
    found = threads.parallel_map(lambda block: _block(block, sums, rows, certain, residuals, pull), _blocks(n))
    poor = torch.cat([torch.empty(0, dtype=torch.int64), *(rows for rows, _ in found)])
    least = torch.cat([rows.share[:0], *(weight for _, weight in found)])
    return Found(residuals, None if pull is None else torch.view_as_complex(pull), poor, least)


def _blocks(n: int) -> Iterator[slice]:
    for start in range(0, n, BLOCK):
        yield slice(start, min(n, start + BLOCK))


def _block(
    block: slice, sums: Tensor, rows: Rows, certain: Certain, residuals: Tensor, pull: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Write the residuals and the pulls of some rows; which of them are poor, and their least weight."""
    left_out = rows.left_out[block]
    weight = sums[0, block, 0] - left_out
    per_weight = weight.reciprocal()
    own = None
    certainly = True
    for column, (deviation, of_fit) in enumerate(zip(rows.deviation.tolist(), rows.pulls, strict=True)):
        row, part = divmod(column + 1, 2)
        value = rows.values[block, column]
        fit = torch.addcmul(sums[row, block, part], left_out, value, value=-1).mul_(per_weight)
        residual = value - fit
        torch.mul(residual, deviation, out=residuals[block, column])
        certainly = certainly and certain.throughout(weight, fit, row)
        if pull is not None:
            pulled = residual.mul_(per_weight).mul_(rows.share[block]).mul_(of_fit)
            pull[row, block, part] = pulled
            own = fit.mul_(pulled) if own is None else own.addcmul_(fit, pulled)
    if pull is not None and own is not None:
        torch.neg(own, out=pull[0, block, 0])
    if certainly:
        return left_out.new_empty(0, dtype=torch.int64), weight[:0]
    return _poor(block, weight, sums, rows, certain, pull)


def _poor(
    block: slice, weight: Tensor, sums: Tensor, rows: Rows, certain: Certain, pull: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The rows of a block that are not certain; what they pull is set to 0."""
    good = torch.ones_like(weight, dtype=torch.bool)
    for column in range(rows.values.shape[1]):
        row, part = divmod(column + 1, 2)
        fit = (sums[row, block, part] - rows.left_out[block] * rows.values[block, column]) / weight
        good &= certain.at(weight, fit, row)
    some = (~good).nonzero().flatten()
    if pull is not None:
        pull[:, block][:, some] = 0.0
    return some + block.start, weight[some] - certain.error[0]
