"""The bandwidth that predicts each point best from the others: leave-one-out, minimised over log bandwidths."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard import kernels
from regard.engine import threads
from regard.regression.bandwidth.leave_one_out.problem import Evaluation, Problem
from regard.regression.bandwidth.objective import Objective
from regard.regression.bandwidth.objective import residuals as residuals_at
from regard.regression.bandwidth.optimise import LOOSE, TIGHT, Ways, by_compass, by_gradient
from regard.regression.bandwidth.starts import another_chance, bounds, carried, starts
from regard.regression.kernel_sums.categorical import Kinds
from regard.regression.kernel_sums.sample import Sample

REFINED, COARSELY = 5, 3  # starts, of those tried, from which a descent begins; the same with few of the points
NOTHING = 1e-6  # of the total variance: below this a descent takes a value for 0
ROUNDS = 4  # of giving up features, and going down without them
OFF = 0.02  # of the largest lambda: how far a lambda is moved off its end
EXACT = 1e-12  # of the total variance: two values this near are the same
# Where an evaluation takes longer than this, the search begins with every fourth point and ends with all.
COARSE_SECONDS, FEWEST = 4e-3, 250
NARROW = 0.5  # standard deviations
MANY = 2000  # points: up to here a feature that fewer points gave up is looked at again
LONGEST_SECONDS = 4.0  # an evaluation that takes longer is not made: the width found with fewer points is carried over


class Selection(NamedTuple):
    """The bandwidth found, one number a feature, lambdas last; inf or the largest lambda: the feature does not help."""

    bandwidth: Float[Tensor, " features"]
    value: float
    residuals: Float[Tensor, "n outputs"]
    evaluations: int


class Progress(NamedTuple):
    """Where a search stands."""

    evaluations: int
    points: int  # that the search looks at now: it begins with few
    value: float  # the best so far with these
    bandwidth: Float[Tensor, " features"]  # where it was found


Listener = Callable[[Progress], None]


def select(
    x: Float[Tensor, "n dim"],
    y: Float[Tensor, "n outputs"],
    kernel: str = "gaussian",
    degree: int = 0,
    log_weight: Float[Tensor, " n"] | None = None,
    *,
    left_out: Float[Tensor, " n"] | None = None,
    kinds: Kinds | None = None,
    tol: float = 1e-6,
    verbose: bool = False,
    progress: Listener | None = None,
) -> Selection:
    """Minimise the mean squared leave-one-out residual over the bandwidth of each feature, from several starts.

    The same data gives the same answer. Among widths that predict equally well the widest wins, so a feature that does
    not help gets an infinite one. `progress` is told after each evaluation; what it raises ends the search.

    Where an evaluation is long the search begins with every fourth point, and so on, and h goes from m to n points as
    h (m / n)^(1 / (dim + 4)), the rate of the best width. Only where no fast sum serves and one evaluation with all
    points would take many seconds does the width end there.
    """
    problem = Problem.of(x, y, kernel, degree, log_weight, left_out, kinds)
    counter = Counter(progress or (show if verbose else None))
    try:
        with threads.one_thread():  # what is worth more takes more
            found = _selected(problem, counter)
    finally:
        if verbose and progress is None:
            sys.stderr.write("\n")
    width, chance = found.bandwidth.tensor_split([x.shape[1]])
    kinds = None if kinds is None else kinds._replace(chance=chance)
    return _settled(Sample(x, y, width, kernel, log_weight), kinds, found, degree, left_out, tol)


def show(state: Progress) -> None:
    sys.stderr.write(
        f"\rleave-one-out: evaluation {state.evaluations} with {state.points} points, error {state.value:.6g}   "
    )
    sys.stderr.flush()


def _settled(
    sample: Sample, kinds: Kinds | None, found: Selection, degree: int, left_out: Tensor | None, tol: float
) -> Selection:
    """The residuals with the error that was asked for: a search may be content with less."""
    problem = Problem.of(sample.x, sample.values, sample.kernel, degree, sample.log_weight, left_out, kinds)
    final = Objective(problem, tol=tol)
    by_pairs = final.fast.series(found.bandwidth) is None
    if (math.isfinite(found.value) and by_pairs and not degree) or len(problem.x) == 1:
        return found
    if final.seconds(found.bandwidth) <= LONGEST_SECONDS and not degree:
        answer = final(found.bandwidth, gradient=False)
        return found._replace(value=answer.value, residuals=answer.residuals)
    residuals = residuals_at(sample, degree=degree, left_out=left_out, tol=tol, kinds=kinds)
    return found._replace(value=problem.answer(residuals[problem.order], problem.unit).value, residuals=residuals)


def _selected(problem: Problem, counter: Counter, *, tight: bool = True) -> Selection:
    search = Search(problem, counter, tight)
    nothing = search.evaluate(problem.no_help)
    if search.undecided():
        return search.selection()
    begin = starts(problem, search.bounds)
    cost = search.objective.seconds(begin[0] * problem.unit)
    if cost <= COARSE_SECONDS or len(problem.x) < 2 * FEWEST or len(begin) <= COARSELY:
        search.from_starts(begin)
        return search.selection()
    fewer = problem.thinned(max(FEWEST, len(problem.x) // 4))
    coarse = _selected(fewer, counter, tight=False).bandwidth / problem.unit
    h = carried(problem, coarse, len(fewer.x) / len(problem.x))
    if search.objective.seconds(h * problem.unit) > LONGEST_SECONDS:
        return Selection(h * problem.unit, math.nan, nothing.residuals, counter.evaluations)
    search.from_coarse(h)
    return search.selection()


@dataclass(eq=False)
class Counter:
    listener: Listener | None
    evaluations: int = 0


class Best(NamedTuple):
    """The lowest value so far, and the bandwidth in the problem's units."""

    found: Evaluation
    h: Tensor

    @property
    def value(self) -> float:
        return self.found.value


@dataclass(eq=False)
class Search:
    problem: Problem
    counter: Counter
    tight: bool
    best: Best | None = None
    objective: Objective = field(init=False)

    def __post_init__(self) -> None:
        self.objective = Objective(self.problem)
        self.bounds = bounds(self.problem)
        # The same for every descent, and never 0: a perfect fit is no reason to divide by it.
        self.scale = self.problem.total_variance or 1.0
        self.dim = self.problem.x.shape[1]
        # A kernel that ends has many small valleys, and categories leave each row fewer points to fill them.
        self.rough = self.problem.kinds is not None and kernels.get(self.problem.kernel).compact

    def undecided(self) -> bool:
        """Whether no bandwidth can change anything: one point, constant outputs or no feature that changes."""
        others = int((self.problem.share > 0).sum())
        return others < 2 or self.problem.total_variance == 0 or not bool(self.bounds.free.any())

    def selection(self) -> Selection:
        found, h = self.known()
        return Selection(h * self.problem.unit, found.value, found.residuals, self.counter.evaluations)

    def known(self) -> Best:
        if self.best is None:
            raise AssertionError("a search begins with an evaluation")
        return self.best

    def evaluate(self, h: Tensor, *, gradient: bool = False) -> Evaluation:
        """Leave-one-out at `h`, in the problem's units, remembered if it is the best so far."""
        found = self.objective(h * self.problem.unit, gradient=gradient)
        self.counter.evaluations += 1
        if self.best is None or found.value < self.best.value:
            self.best = Best(found, h.clone())
        if self.counter.listener is not None:
            bandwidth = self.best.h * self.problem.unit
            state = Progress(self.counter.evaluations, len(self.problem.x), self.best.value, bandwidth)
            self.counter.listener(state)
        return found

    def from_starts(self, begin: list[Tensor]) -> None:
        if len(begin) > 1:
            tried = sorted((self.evaluate(h).value, index) for index, h in enumerate(begin))
            refined = REFINED if self.tight else COARSELY
            for _, index in tried[: refined * 2 if self.rough else refined]:
                self.descend(begin[index], LOOSE)
            begin = [self.known().h]
        self.settle(begin[0])

    def from_coarse(self, h: Tensor) -> None:
        self.evaluate(h)
        given_up = ((h == self.problem.no_help) & self.bounds.free).nonzero().flatten().tolist()
        if given_up and len(h) > 1 and len(self.problem.x) <= MANY:
            # More points may show what fewer could not: a feature that was given up gets another chance.
            chance = another_chance(self.problem)
            for feature in given_up:
                again = self.known().h.clone()
                again[feature] = chance[feature]
                self.evaluate(again)
        self.settle(self.known().h)

    def settle(self, h: Tensor) -> None:
        """To the bottom from `h`, again where giving up a feature leads further down."""
        if not self.tight:
            self.descend(h, LOOSE)
            self.widen()
            return
        self.descend(h, TIGHT)
        if self.rough:
            self.descend(self.known().h, TIGHT, only_lambdas=True)  # in which the value has no edges
        self.nudge()
        for _ in range(ROUNDS):
            value = self.known().value
            self.widen()
            self.leave_ends()
            if value - self.known().value <= TIGHT * self.scale:
                break
            self.descend(self.known().h, TIGHT)
        else:
            self.widen()

    def nudge(self) -> None:
        """Half of all widths while that is better: towards 0 the value may fall so slowly that a descent gives up."""
        found = True
        while found:
            value, h = self.known().value, self.known().h
            narrower = h.clone()
            narrower[: self.dim] = torch.maximum(h * 0.5, self.bounds.low)[: self.dim]
            self.evaluate(narrower)
            found = self.known().value < value

    def descend(self, h: Tensor, tolerance: float, *, only_lambdas: bool = False) -> None:
        """Go down from `h` over finite widths and lambdas; what is found is remembered by `evaluate`.

        A lambda of 0 stays: a point that only its own category counts for is predicted by other points than with a
        lambda that is nearly 0, so the value jumps there. At the largest a slope says nothing.
        """
        moving = torch.isfinite(h) & self.bounds.free & ~self.at_ends(h)
        if only_lambdas:
            moving[: self.dim] = False
        ways = Ways.of(self.problem, moving)
        if not len(ways.unit):
            return
        low, high = ways.there(self.bounds.low), ways.there(self.bounds.high)

        def at(place: Tensor, *, gradient: bool = True) -> tuple[float, Tensor]:
            found = self.evaluate(ways.back(place, h), gradient=gradient)
            return found.value / scale, ways.slopes(found.gradient, place) / scale

        # The first step is as long as the gradient, which is about right where the value is about 1.
        scale = max(min(self.known().value, self.scale), NOTHING * self.scale)
        start = torch.minimum(torch.maximum(ways.there(h), low), high)
        no_gradient = kernels.get(self.problem.kernel).piecewise_constant
        if not only_lambdas and (no_gradient or (self.rough and tolerance == TIGHT)):
            start = by_compass(at, start, low, high, tolerance)
        if only_lambdas or not no_gradient:
            by_gradient(at, start, low, high, tolerance)

    def at_ends(self, h: Tensor) -> Tensor:
        """bool (features,): lambdas that are 0 or the largest."""
        ends = (h == 0) | (h == self.problem.no_help)
        ends[: self.dim] = False
        return ends

    def leave_ends(self) -> None:
        """Lambdas that are 0 or the largest, each somewhat off; what is no better than by rounding is not taken."""
        for kind in (self.at_ends(self.known().h) & self.bounds.free).nonzero().flatten().tolist():
            off = self.known().h.clone()
            off[kind] = self.problem.no_help[kind] * (OFF if off[kind] == 0 else 1 - OFF)
            before = self.known()
            if before.value - self.evaluate(off).value <= TIGHT * self.scale:
                self.best = before

    def widen(self) -> None:
        """Give up all features, or each one, without which it is not worse, the widest first."""
        self._give_up(self.problem.no_help)
        # With many points, a width that shrank so far would have grown were the feature of no use.
        narrow = NARROW * kernels.get(self.problem.kernel).canonical_bandwidth if len(self.problem.x) > FEWEST else 0.0
        for feature in torch.argsort(self.known().h[: self.dim], descending=True).tolist():
            without = self.known().h.clone()
            if narrow < float(without[feature]) < math.inf:
                without[feature] = math.inf
                self._give_up(without)
        for kind in self.bounds.free[self.dim :].nonzero().flatten().tolist():
            for end in (0.0, self.problem.no_help[self.dim + kind]):  # of two that are the same, the last is taken
                without = self.known().h.clone()
                without[self.dim + kind] = end
                self._give_up(without)

    def _give_up(self, without: Tensor) -> None:
        """Better is remembered anyway; the same is taken too."""
        value = self.known().value
        found = self.evaluate(without)
        if value <= found.value <= value + EXACT * self.scale:
            self.best = Best(found, without)
