"""Minimisers of the leave-one-out criterion: L-BFGS where it has a gradient, compass search where it has steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard import kernels
from regard.regression.bandwidth.leave_one_out.problem import Problem

LOOSE, TIGHT = 1e-5, 1e-10  # relative gain of a step below which a descent ends: on the way, and at the end
LBFGS_STEPS = {LOOSE: 30, TIGHT: 100}  # largest number of iterations
CALLS_PER_STEP = 2  # evaluations allowed for an iteration, of which most need 1: at an edge of CV no step gains
COMPASS_STEPS = (0.5, 0.25, 0.12, 0.06, 0.03, 0.015)  # in log h: from a factor of 1.6 to 1.5 %
LOOSE_COMPASS_STEPS = COMPASS_STEPS[:3]  # on the way

Function = Callable[..., tuple[float, Tensor]]  # of log widths: value and, if wanted, gradient
LogWidths = Float[Tensor, " moving"]


class Parametrisation(NamedTuple):
    """Bandwidths and lambdas of a descent as log widths, in which steps have about the same effect.

    Another category has exp(-L) times the weight of the same one, with L = log((c - 1) (1 - lambda) / lambda), as if it
    were sqrt(2) away in a feature of width 1 / sqrt(L). That is the width of categories; an infinite one is the largest
    lambda.
    """

    moving: Bool[Tensor, " features"]
    is_width: Bool[Tensor, " moving"]  # False: a lambda
    unit: Float[Tensor, " moving"]  # the kernel's canonical bandwidth; for categories c - 1

    @classmethod
    def of(cls, problem: Problem, moving: Bool[Tensor, " features"]) -> Parametrisation:
        largest = problem.irrelevant
        canonical = kernels.get(problem.data.kernel).canonical_bandwidth
        unit = torch.where(torch.isinf(largest), canonical, largest / (1 - largest))
        return cls(moving, torch.isinf(largest)[moving], unit[moving])

    def to_log(self, bandwidth: Float[Tensor, " features"]) -> LogWidths:
        """Log widths of the moving features."""
        moving = bandwidth[self.moving]
        cost = torch.log(self.unit * (1 - moving) / moving).clamp_min(0.0)  # L; the largest lambda may round below 0
        return torch.where(self.is_width, torch.log(moving / self.unit), torch.log(cost) / -2)

    def from_log(self, log_widths: LogWidths, others: Float[Tensor, " features"]) -> Float[Tensor, " features"]:
        """Bandwidth with these log widths, and the other features of `others`."""
        bandwidth, log_widths = others.clone(), log_widths.to(others)
        odds = self.unit * torch.exp(-torch.exp(-2 * log_widths))
        bandwidth[self.moving] = torch.where(self.is_width, self.unit * log_widths.exp(), odds / (1 + odds))
        return bandwidth

    def gradient(self, gradient: Float[Tensor, " features"], log_widths: LogWidths) -> LogWidths:
        """Gradient by log widths, from one by log bandwidths and lambdas."""
        cost = torch.exp(-2 * log_widths.to(gradient))
        odds = self.unit * torch.exp(-cost)
        by_lambda = 2 * cost * odds / (1 + odds).square()
        return gradient[self.moving] * torch.where(self.is_width, 1.0, by_lambda)


def descend_by_gradient(
    function: Function, start: LogWidths, low: LogWidths, high: LogWidths, tolerance: float
) -> None:
    """Minimise by L-BFGS between bounds; `function` keeps its best value, so nothing is returned.

    The variable is t = log(1 + 1 / h^2). Where h is small that is -2 log h. Where h is large it is 1 / h^2, in which
    the value is nearly linear, while log h would have to grow without end: a feature that does not help comes to its
    bound in a few steps.
    """
    from scipy.optimize import minimize

    def of_numpy(t: Any) -> tuple[float, Any]:
        t = torch.from_numpy(t)
        value, gradient = function(torch.expm1(t).log() / -2)
        return value, (gradient.cpu() / (2 * torch.expm1(-t))).numpy()

    minimize(
        of_numpy,
        _to_t(start).numpy(force=True),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(_to_t(high).tolist(), _to_t(low).tolist(), strict=True)),
        options={
            "maxiter": LBFGS_STEPS[tolerance],
            "maxfun": CALLS_PER_STEP * LBFGS_STEPS[tolerance],
            "ftol": tolerance,
            "gtol": tolerance**0.5 / 100,
        },
    )


def _to_t(log_widths: LogWidths) -> LogWidths:
    return torch.log1p(torch.exp(-2 * log_widths))


def descend_by_compass(
    function: Function, start: LogWidths, low: LogWidths, high: LogWidths, tolerance: float
) -> LogWidths:
    """Minimise by steps up and down each axis and all together, smaller ones where none gains; return the end."""
    best, value = start.clone(), function(start, gradient=False)[0]
    directions = [*torch.eye(len(start), dtype=start.dtype), torch.ones_like(start)]
    for step in COMPASS_STEPS if tolerance == TIGHT else LOOSE_COMPASS_STEPS:
        gained = True
        while gained:
            gained = False
            for direction in (sign * one for one in directions for sign in (1, -1)):
                trial = torch.minimum(torch.maximum(best + step * direction, low), high)
                trial_value = function(trial, gradient=False)[0]
                if trial_value < value - tolerance * abs(value):
                    best, value, gained = trial, trial_value, True
    return best
