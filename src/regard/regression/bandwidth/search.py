"""Search for the bandwidth that predicts each row best from the others: leave-one-out CV over log bandwidths.

CV has many local minima, is flat where a feature does not help, and jumps at a lambda of 0. So:

    search(rows, tight):
        evaluate the bandwidth at which no feature matters               # the value to beat
        if an evaluation is slow:                                        # coarse to fine
            h = search(every fourth row, loose)
            h = h x (share of the rows)^(1 / (dim + 4))                  # the rate of the best bandwidth
            if an evaluation is too slow: return h
            try to bring back features that fewer rows gave up
        else:
            evaluate all starts; descend loosely from the best of them
            h = the best bandwidth seen
        settle(h)

    settle(h):
        descend tightly from h
        halve all widths while that is better
        repeat:                                                          # the ends of the range
            drop features, all or one by one: infinite bandwidth, lambda 0 or largest
            move lambdas off their ends
            with few rows: scan each width, and descend loosely from other minima on that line
            descend tightly, if any of this has gained; else stop

Every evaluation is compared with the best so far, which is the answer. The same data gives the same answer: starts are
a fixed list. Among bandwidths of equal CV the widest wins, so a feature that does not help gets an infinite one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard import kernels
from regard.engine import threads
from regard.regression.bandwidth.leave_one_out.problem import Evaluation, Problem, Rows
from regard.regression.bandwidth.objective import Objective, evaluate
from regard.regression.bandwidth.optimise import LOOSE, TIGHT, Parametrisation, descend_by_compass, descend_by_gradient
from regard.regression.bandwidth.starts import (
    SCAN_SLACK,
    Bounds,
    bounds,
    extrapolate,
    informative,
    local_minima,
    starts,
)

DESCENTS, COARSE_DESCENTS = 5, 3  # starts from which a descent begins, with all rows and with a part of them
SETTLE_ROUNDS = 4  # of dropping features and descending again
LAMBDA_STEP = 0.02  # of the largest lambda: how far a lambda is moved off its end
NARROW = 0.5  # standard deviations, x canonical bandwidth: a feature of less is not tried without, it helps
# Scan of one width. With few rows CV has valleys side by side, and which one a descent ends in is chance: of 80 small
# data sets of statsmodels the lowest valley was missed in 8 without the scan, and in 3 with it.
VALLEY_ROWS = 500  # rows: with so many or more CV is smooth
VALLEY_FACTORS = tuple(2.0**k for k in (-4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4))  # x the best width so far
# Relative to the total variance of y
SMALLEST_SCALE = 1e-6  # a smaller CV is not used as the unit of a descent
EQUAL = 1e-12  # values that differ by less are equal: above the rounding of a sum of squares
# Coarse to fine
COARSE_SECONDS = 4e-3  # an evaluation that takes longer is slow: the search begins with every fourth row
LONGEST_SECONDS = 4.0  # an evaluation that takes longer is not made
FEWEST = 250  # rows: a search does not begin with fewer
MOST_TO_BRING_BACK = 2000  # rows: with more, a feature that a part of them gave up is not tried again


class Selection(NamedTuple):
    """Best bandwidth of a search, lambdas last; inf or the largest lambda where a feature does not help."""

    bandwidth: Float[Tensor, " features"]
    value: float
    residuals: Float[Tensor, "n outputs"]
    evaluations: int


class Progress(NamedTuple):
    """State of a search after an evaluation."""

    evaluations: int
    points: int  # rows that the search uses now: it begins with few
    value: float  # the lowest CV so far with these
    bandwidth: Float[Tensor, " features"]  # where it is


Listener = Callable[[Progress], None]


def select(rows: Rows, degree: int = 0, *, tol: float = 1e-6, verbose: bool | Listener = False) -> Selection:
    """Minimise the mean squared leave-one-out residual over the bandwidth of each feature, whatever that of the rows.

    A function `verbose` is called after each evaluation, and what it raises ends the search; True prints a line. The
    bandwidth is that of a part of the rows, extrapolated, only where there is no Fourier sum and one evaluation with
    all rows would take many seconds.
    """
    problem = Problem.of(rows, degree)
    with listening(verbose) as listener, threads.one_thread():  # work that is worth more threads takes them
        selection = _search(problem, Counter(listener))
    # A search is content with a larger error than `tol`.
    bandwidth, final = selection.bandwidth, Objective(problem, tol=tol)
    exact = math.isfinite(selection.value) and final.fourier.series(bandwidth) is None and not degree
    if exact or len(problem.data.x) == 1:
        return selection
    if final.seconds(bandwidth) <= LONGEST_SECONDS and not degree:
        evaluation = final(bandwidth, gradient=False)
    else:
        evaluation = evaluate(problem, rows.sample, bandwidth, tol)
    return selection._replace(value=evaluation.value, residuals=evaluation.residuals)


@contextmanager
def listening(verbose: bool | Listener) -> Iterator[Listener | None]:
    """The listener of a search: `verbose` itself, or for True a function that prints a line on stderr."""
    if callable(verbose) or not verbose:
        yield verbose or None
        return
    try:
        yield _show
    finally:
        sys.stderr.write("\n")


def _show(state: Progress) -> None:
    sys.stderr.write(
        f"\rleave-one-out: evaluation {state.evaluations} with {state.points} points, error {state.value:.6g}   "
    )
    sys.stderr.flush()


def _search(problem: Problem, counter: Counter, *, tight: bool = True) -> Selection:
    objective = Objective(problem)
    search = Search(problem, objective, counter, tight)
    flat = search.evaluate(problem.irrelevant)
    if search.nothing_to_choose():
        return search.selection()
    begin = starts(problem, search.bounds)
    seconds = objective.seconds(begin[0] * problem.unit)
    if seconds <= COARSE_SECONDS or len(problem.data.x) < 2 * FEWEST or len(begin) <= COARSE_DESCENTS:
        search.from_starts(begin)
        return search.selection()
    part = problem.subsample(max(FEWEST, len(problem.data.x) // 4))
    coarse = _search(part, counter, tight=False).bandwidth / problem.unit
    h = extrapolate(problem, coarse, len(part.data.x) / len(problem.data.x))
    if objective.seconds(h * problem.unit) > LONGEST_SECONDS:
        return Selection(h * problem.unit, math.nan, flat.residuals, counter.evaluations)
    search.from_coarse(h)
    return search.selection()


@dataclass(eq=False)
class Counter:
    """Number of evaluations of a search so far, over all parts of the rows, and its listener."""

    listener: Listener | None
    evaluations: int = 0


class Best(NamedTuple):
    """Lowest evaluation so far, and its bandwidth in the problem's units."""

    evaluation: Evaluation
    h: Float[Tensor, " features"]

    @property
    def value(self) -> float:
        return self.evaluation.value


@dataclass(eq=False)
class Search:
    """Search over the bandwidths of one problem, in its units (standard deviations, lambdas last)."""

    problem: Problem
    objective: Callable[..., Evaluation]  # CV at a bandwidth in the caller's units
    counter: Counter
    tight: bool  # False: a part of the rows, for a start
    best: Best = field(init=False)  # the lowest evaluation so far; a search begins with one

    def __post_init__(self) -> None:
        self.bounds: Bounds = bounds(self.problem)
        # The unit of values is the same for every descent, and never 0: a perfect fit is no reason to divide by it.
        self.scale: float = self.problem.total_variance or 1.0
        self.dim: int = len(self.problem.extent)
        self.kernel: kernels.Kernel = kernels.get(self.problem.data.kernel)
        # A compact kernel has many small valleys, and categories leave each row fewer points to fill them.
        self.rough: bool = self.problem.categories is not None and self.kernel.compact

    def nothing_to_choose(self) -> bool:
        """True where no bandwidth can change CV: one row, constant outputs or only constant features."""
        rows = int((self.problem.share > 0).sum())
        return rows < 2 or self.problem.total_variance == 0 or not bool(self.bounds.free.any())

    def selection(self) -> Selection:
        """Result of the search."""
        best = self.best
        return Selection(best.h * self.problem.unit, best.value, best.evaluation.residuals, self.counter.evaluations)

    def evaluate(self, h: Float[Tensor, " features"], *, gradient: bool = False) -> Evaluation:
        """Leave-one-out at `h`; the lowest one is kept."""
        evaluation = self.objective(h * self.problem.unit, gradient=gradient)
        self.counter.evaluations += 1
        if not hasattr(self, "best") or evaluation.value < self.best.value:
            self.best = Best(evaluation, h.clone())
        if self.counter.listener is not None:
            bandwidth = self.best.h * self.problem.unit
            state = Progress(self.counter.evaluations, len(self.problem.data.x), self.best.value, bandwidth)
            self.counter.listener(state)
        return evaluation

    def from_starts(self, begin: list[Float[Tensor, " features"]]) -> None:
        """Evaluate all starts, descend from the best, and settle."""
        if len(begin) > 1:
            tried = sorted((self.evaluate(h).value, index) for index, h in enumerate(begin))
            descents = DESCENTS if self.tight else COARSE_DESCENTS
            for _, index in tried[: descents * 2 if self.rough else descents]:
                self.descend(begin[index], LOOSE)
            begin = [self.best.h]
        self.settle(begin[0])

    def from_coarse(self, h: Float[Tensor, " features"]) -> None:
        """Settle from the bandwidth of a part of the rows; all rows may need features that the part gave up."""
        self.evaluate(h)
        dropped = ((h == self.problem.irrelevant) & self.bounds.free).nonzero().flatten().tolist()
        if dropped and len(h) > 1 and len(self.problem.data.x) <= MOST_TO_BRING_BACK:
            back = informative(self.problem)
            for feature in dropped:
                self.evaluate(self._with(feature, float(back[feature])))
        self.settle(self.best.h)

    def settle(self, h: Float[Tensor, " features"]) -> None:
        """Descend to the bottom from `h`, and again where dropping a feature leads further down."""
        if not self.tight:
            self.descend(h, LOOSE)
            self.drop_features()
            return
        self.descend(h, TIGHT)
        if self.rough:
            self.descend(self.best.h, TIGHT, only_lambdas=True)  # in which CV has no edges
        self.halve_widths()
        for _ in range(SETTLE_ROUNDS):
            value = self.best.value
            self.drop_features()
            self.move_off_ends()
            if len(self.problem.data.x) < VALLEY_ROWS:
                self.scan_widths()
            if value - self.best.value <= TIGHT * self.scale:
                break
            self.descend(self.best.h, TIGHT)
        else:
            self.drop_features()

    def descend(self, h: Float[Tensor, " features"], tolerance: float, *, only_lambdas: bool = False) -> None:
        """Minimise from `h` over finite bandwidths and lambdas; `evaluate` keeps the best.

        A lambda of 0 stays, because CV jumps there: a row without another of its category is predicted by other points
        than with a lambda that is nearly 0. The largest lambda stays, because the gradient there says nothing.
        """
        moving = torch.isfinite(h) & self.bounds.free & ~self._lambdas_at_ends(h)
        if only_lambdas:
            moving[: self.dim] = False
        if not bool(moving.any()):
            return
        logs = Parametrisation.of(self.problem, moving)
        # The first step of L-BFGS is as long as the gradient, which is about right where the value is about 1.
        unit = max(min(self.best.value, self.scale), SMALLEST_SCALE * self.scale)

        def function(log_widths: Tensor, *, gradient: bool = True) -> tuple[float, Tensor]:
            evaluation = self.evaluate(logs.from_log(log_widths, h), gradient=gradient)
            return evaluation.value / unit, logs.gradient(evaluation.gradient, log_widths) / unit

        low, high = logs.to_log(self.bounds.low), logs.to_log(self.bounds.high)
        start = torch.minimum(torch.maximum(logs.to_log(h), low), high)
        no_gradient = self.kernel.piecewise_constant
        if not only_lambdas and (no_gradient or (self.rough and tolerance == TIGHT)):
            start = descend_by_compass(function, start, low, high, tolerance)
        if only_lambdas or not no_gradient:
            descend_by_gradient(function, start, low, high, tolerance)

    def halve_widths(self) -> None:
        """Halve all bandwidths while that is better: towards 0 CV may fall so slowly that a descent gives up."""
        gained = True
        while gained:
            value, h = self.best.value, self.best.h
            narrower = h.clone()
            narrower[: self.dim] = torch.maximum(h * 0.5, self.bounds.low)[: self.dim]
            self.evaluate(narrower)
            gained = self.best.value < value

    def drop_features(self) -> None:
        """Drop all features, then each one, the widest first, where CV does not rise."""
        self._take_if_no_worse(self.problem.irrelevant)
        # With many rows, the bandwidth of a feature that does not help would not have shrunk so far.
        narrow = NARROW * self.kernel.canonical_bandwidth if len(self.problem.data.x) > FEWEST else 0.0
        for feature in torch.argsort(self.best.h[: self.dim], descending=True).tolist():
            if narrow < float(self.best.h[feature]) < math.inf:
                self._take_if_no_worse(self._with(feature, math.inf))
        for category in (self.dim + self.bounds.free[self.dim :].nonzero().flatten()).tolist():
            for end in (0.0, float(self.problem.irrelevant[category])):  # of two equal ones, the last is taken
                self._take_if_no_worse(self._with(category, end))

    def move_off_ends(self) -> None:
        """Move lambdas that are 0 or the largest a little, where that gains more than rounding."""
        for category in (self._lambdas_at_ends(self.best.h) & self.bounds.free).nonzero().flatten().tolist():
            before = self.best
            part = LAMBDA_STEP if before.h[category] == 0 else 1 - LAMBDA_STEP
            moved = self.evaluate(self._with(category, float(self.problem.irrelevant[category] * part)))
            if before.value - moved.value <= TIGHT * self.scale:
                self.best = before

    def scan_widths(self) -> None:
        """Evaluate multiples of each finite bandwidth, and descend from the minima of CV on that line."""
        for feature in (torch.isfinite(self.best.h) & self.bounds.free)[: self.dim].nonzero().flatten().tolist():
            best = self.best
            line = [self._with(feature, float(best.h[feature]) * factor) for factor in VALLEY_FACTORS]
            values = [best.value if torch.equal(h, best.h) else self.evaluate(h).value for h in line]
            for index in local_minima(values):
                if not torch.equal(line[index], best.h) and values[index] <= SCAN_SLACK * best.value:
                    self.descend(line[index], LOOSE)

    def _with(self, feature: int, bandwidth: float) -> Float[Tensor, " features"]:
        """Best bandwidth so far, with another one for this feature."""
        h = self.best.h.clone()
        h[feature] = bandwidth
        return h

    def _lambdas_at_ends(self, h: Float[Tensor, " features"]) -> Bool[Tensor, " features"]:
        """Lambdas that are 0 or the largest."""
        ends = (h == 0) | (h == self.problem.irrelevant)
        ends[: self.dim] = False
        return ends

    def _take_if_no_worse(self, h: Float[Tensor, " features"]) -> None:
        """Evaluate `h`, and keep it also where CV is equal."""
        value = self.best.value
        evaluation = self.evaluate(h)
        if value <= evaluation.value <= value + EQUAL * self.scale:
            self.best = Best(evaluation, h)
