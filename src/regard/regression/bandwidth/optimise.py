"""Two ways down: L-BFGS where there is a gradient, and trying both directions where a kernel is flat with steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard import kernels
from regard.regression.bandwidth.leave_one_out.problem import Problem

LOOSE, TIGHT = 1e-5, 1e-10  # a step that gains less than this part ends a descent
STEPS = (0.5, 0.25, 0.12, 0.06, 0.03, 0.015)

Function = Callable[..., tuple[float, Tensor]]
LogWidths = Float[Tensor, " finite"]


class Ways(NamedTuple):
    """The features over which a descent goes, each as a log width.

    Another category has exp(-L) times the weight of one's own, as if it were sqrt(2) away in a feature of width
    1 / sqrt(L): that is the width of categories. An infinite one is their largest lambda.
    """

    which: Tensor  # bool (features,)
    widths: Tensor  # bool (ways,): those that are widths anyway
    unit: Float[Tensor, " ways"]  # what a width is for a Gaussian; for categories, how many others there are
    plain: bool  # no categories: a search takes hundreds of these small steps

    @classmethod
    def of(cls, problem: Problem, which: Tensor) -> Ways:
        largest = problem.no_help
        unit = torch.where(
            torch.isinf(largest), kernels.get(problem.kernel).canonical_bandwidth, largest / (1 - largest)
        )
        widths = torch.isinf(largest)[which]
        return cls(which, widths, unit[which], bool(widths.all()))

    def there(self, bandwidth: Float[Tensor, " features"]) -> LogWidths:
        one = bandwidth[self.which]
        if self.plain:
            return torch.log(one / self.unit)
        apart = torch.log(self.unit * (1 - one) / one).clamp_min(0.0)  # L of a lambda; the largest may round below 0
        return torch.where(self.widths, torch.log(one / self.unit), torch.log(apart) / -2)

    def back(self, place: LogWidths, others: Float[Tensor, " features"]) -> Float[Tensor, " features"]:
        """A whole bandwidth; `others` are the features that stay."""
        found, place = others.clone(), place.to(others)
        if self.plain:
            found[self.which] = self.unit * place.exp()
            return found
        odds = self.unit * torch.exp(-torch.exp(-2 * place))
        found[self.which] = torch.where(self.widths, self.unit * place.exp(), odds / (1 + odds))
        return found

    def slopes(self, gradient: Float[Tensor, " features"], place: LogWidths) -> LogWidths:
        """A gradient by log widths and lambdas, as one by log widths."""
        if self.plain:
            return gradient[self.which]
        apart = torch.exp(-2 * place.to(gradient))
        odds = self.unit * torch.exp(-apart)
        steep = 2 * apart * odds / (1 + odds).square()
        return gradient[self.which] * torch.where(self.widths, 1.0, steep)


def by_gradient(at: Function, start: LogWidths, low: LogWidths, high: LogWidths, tolerance: float) -> None:
    """L-BFGS between bounds. The function remembers what it has seen, so nothing is returned.

    It goes over t = log(1 + 1 / h^2) with h in units in which the data is about 1 wide. Where h is small that is
    -2 log h; where it is large it is 1 / h^2, in which the value is nearly straight, while log h would have to grow
    without end: a feature that does not help comes to its bound in a few steps.
    """
    from scipy.optimize import minimize

    begin, ends = _bent(start), (_bent(high), _bent(low))

    def of_numpy(t: Any) -> tuple[float, Any]:
        bent = torch.from_numpy(t)
        value, gradient = at(torch.expm1(bent).log() / -2)
        return value, (gradient.cpu() / (2 * torch.expm1(-bent))).numpy()

    minimize(
        of_numpy,
        begin.numpy(force=True),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(*(end.tolist() for end in ends), strict=True)),
        options={"maxiter": 30 if tolerance > TIGHT else 100, "ftol": tolerance, "gtol": tolerance**0.5 / 100},
    )


def _bent(log_h: LogWidths) -> LogWidths:
    return torch.log1p(torch.exp(-2 * log_h))


def by_compass(at: Function, start: LogWidths, low: LogWidths, high: LogWidths, tolerance: float) -> LogWidths:
    """Steps up and down in each direction and in all together, smaller ones where none leads down; where it ends."""
    here, value = start.clone(), at(start, gradient=False)[0]
    directions = [*torch.eye(len(start), dtype=start.dtype), torch.ones_like(start)]
    for step in STEPS if tolerance == TIGHT else STEPS[:3]:
        moved = True
        while moved:
            moved = False
            for direction in (sign * one for one in directions for sign in (1, -1)):
                there = torch.minimum(torch.maximum(here + step * direction, low), high)
                found = at(there, gradient=False)[0]
                if found < value - tolerance * abs(value):
                    here, value, moved = there, found, True
    return here
