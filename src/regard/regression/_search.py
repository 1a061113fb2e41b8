"""The bandwidth that predicts each point best from the others: leave-one-out, minimised over log bandwidths."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression._loo import Pairs
from regard.regression._problem import Evaluation, Problem
from regard.regression._starts import bounds, starts

REFINED = 3  # starts, of those tried, from which a descent begins
WIDE = 1.0  # of a feature's whole range: from here on an infinite width is tried
EXACT = 1e-12  # of the total variance: two values this near are the same


class Selection(NamedTuple):
    """The bandwidth found, one number a feature; inf: the feature does not help."""

    bandwidth: Float[Tensor, " dim"]
    value: float
    residuals: Float[Tensor, "n outputs"]
    evaluations: int


class Progress(NamedTuple):
    """Where a search stands."""

    evaluations: int
    value: float  # the best so far
    bandwidth: Float[Tensor, " dim"]  # where it was found


Objective = Callable[..., Evaluation]


def select(
    x: Float[Tensor, "n dim"],
    y: Float[Tensor, "n outputs"],
    kernel: str = "gaussian",
    degree: int = 0,
    log_weight: Float[Tensor, " n"] | None = None,
    *,
    left_out: Float[Tensor, " n"] | None = None,
    tol: float = 1e-6,
    verbose: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Selection:
    """Minimise the mean squared leave-one-out residual over the bandwidth of each feature, from several starts.

    The same data gives the same answer. Among widths that predict equally well the widest wins, so a feature that does
    not help gets an infinite one. `progress` is told after each evaluation; what it raises ends the search.
    """
    del tol
    problem = Problem.of(x, y, kernel, degree, log_weight, left_out)
    search = _Search(problem, Pairs(problem), progress or (_print if verbose else None))
    try:
        return search.run()
    finally:
        if verbose and progress is None:
            sys.stderr.write("\n")


def _print(state: Progress) -> None:
    sys.stderr.write(f"\rleave-one-out: evaluation {state.evaluations}, mean squared error {state.value:.6g} ")
    sys.stderr.flush()


class _Search:
    def __init__(self, problem: Problem, objective: Objective, progress: Callable[[Progress], None] | None) -> None:
        self.problem = problem
        self.objective = objective
        self.progress = progress
        self.evaluations = 0
        self.best: tuple[float, Tensor, Tensor] | None = None  # value, bandwidth in the problem's units, residuals
        # The same for every descent, and never 0: a perfect fit is no reason to divide by it.
        self.scale = problem.total_variance or 1.0
        self.bounds = bounds(problem)

    def run(self) -> Selection:
        problem = self.problem
        nothing = torch.full_like(problem.unit, math.inf)
        self.evaluate(nothing)
        if self.undecided():
            return self.selection()
        tried = [(self.evaluate(h), h) for h in starts(problem, self.bounds)]
        for _, h in _distinct(tried, REFINED):
            self.descend(h)
        self.widen()
        return self.selection()

    def undecided(self) -> bool:
        """Whether no bandwidth can change anything: one point, constant outputs or no feature that changes."""
        others = int((self.problem.share > 0).sum())
        return others < 2 or self.problem.total_variance == 0 or not bool(self.bounds.free.any())

    def selection(self) -> Selection:
        if self.best is None:
            raise AssertionError("a search evaluates at least once")
        value, h, residuals = self.best
        return Selection(h * self.problem.unit, value, residuals, self.evaluations)

    def evaluate(self, h: Tensor, *, gradient: bool = False) -> Evaluation:
        """Leave-one-out at `h`, in the problem's units, remembered if it is the best so far."""
        found = self.objective(h * self.problem.unit, gradient=gradient)
        self.evaluations += 1
        if self.best is None or found.value < self.best[0]:
            self.best = (found.value, h.clone(), found.residuals)
        if self.progress is not None:
            self.progress(Progress(self.evaluations, self.best[0], self.best[1] * self.problem.unit))
        return found

    def descend(self, h: Tensor) -> None:
        """L-BFGS over the logarithms of the finite widths; what it finds is remembered by `evaluate`."""
        from scipy.optimize import minimize

        finite = torch.isfinite(h)
        if not finite.any():
            return
        low, high = self.bounds.low[finite].log(), self.bounds.high[finite].log()

        def value_and_gradient(log_h):  # noqa: ANN001, ANN202  numpy's, as scipy hands it over
            at = h.clone()
            at[finite] = torch.from_numpy(log_h).to(h).exp()
            found = self.evaluate(at, gradient=True)
            return found.value / self.scale, (found.gradient[finite] / self.scale).cpu().numpy()

        start = torch.minimum(torch.maximum(h[finite].log(), low), high)
        minimize(
            value_and_gradient,
            start.cpu().numpy(),
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(low.tolist(), high.tolist(), strict=True)),
            options={"maxiter": 100, "ftol": 1e-11, "gtol": 1e-7},
        )

    def widen(self) -> None:
        """Give up each feature without which it is not worse, the widest first, then settle the others again."""
        if self.best is None:
            return
        given_up = False
        for feature in torch.argsort(self.best[1], descending=True).tolist():
            value, h, _ = self.best
            without = h.clone()
            without[feature] = math.inf
            if math.isinf(float(h[feature])):
                continue
            found = self.evaluate(without)
            if value < found.value <= value + EXACT * self.scale:
                self.best = (found.value, without, found.residuals)
            given_up |= found.value <= value
        if given_up:
            self.descend(self.best[1])


def _distinct(tried: Iterable[tuple[Evaluation, Tensor]], count: int) -> list[tuple[Evaluation, Tensor]]:
    """The best few of what was tried."""
    return sorted(tried, key=lambda pair: pair[0].value)[:count]
