"""Which way to leave-one-out is quicker at a bandwidth: all pairs, or the fast sum where there is one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression.bandwidth.leave_one_out.fourier import ROOM, SUREST, Fast
from regard.regression.bandwidth.leave_one_out.pairwise import Pairs
from regard.regression.bandwidth.leave_one_out.rows import FIRM, lines_of_moments, moments, split_moments
from regard.regression.bandwidth.problem import Evaluation, Problem
from regard.regression.kernel_sums import nufft
from regard.regression.kernel_sums.fourier import Series

# Seconds, measured on one core: a pair, the calls of a fast evaluation, a point times a cell it touches, a grid cell.
PAIR, CALLS, TOUCH, CELL = 6e-9, 6e-4, 0.9e-9, 30e-9
MOST = 0.99  # of all weight: without a point that has more, moments of all say little of the others
SLOWER = 8.0  # a cell touched by our own transform, without finufft


@dataclass(eq=False)
class Objective:
    """Leave-one-out of a problem, each bandwidth by the way that is quicker for it."""

    problem: Problem
    tol: float = SUREST

    def __post_init__(self) -> None:
        self.pairs = Pairs(self.problem)
        self.fast = Fast(self.problem, tol=self.tol)

    def __call__(self, bandwidth: Float[Tensor, " features"], *, gradient: bool = True) -> Evaluation:
        if self._all_alike(bandwidth):
            return self.problem.answer(_of_all_alike(self.problem), bandwidth.new_zeros(len(bandwidth)))
        way = self.fast if self.seconds(bandwidth) < self._seconds_of_pairs() else self.pairs
        return way(bandwidth, gradient=gradient)

    def seconds(self, bandwidth: Float[Tensor, " features"]) -> float:
        """What an evaluation costs, roughly, by the quicker way."""
        if self._all_alike(bandwidth):
            return 0.0
        series = self.fast.series(bandwidth)
        slow = self._seconds_of_pairs()
        return slow if series is None else min(slow, self._seconds_of(series))

    def _all_alike(self, bandwidth: Float[Tensor, " features"]) -> bool:
        kinds, dim = self.problem.kinds, self.problem.x.shape[1]
        apart = kinds is not None and bool(self.problem.matters(bandwidth[dim:]).any())
        return not apart and not self.fast.axes(bandwidth)

    def _seconds_of_pairs(self) -> float:
        n, dim = self.problem.x.shape
        return PAIR * n * n * (1 + self.problem.degree * dim / 2)

    def _seconds_of(self, series: Series) -> float:
        n, outputs = self.problem.y.shape
        dim = len(series.modes)
        width = math.ceil(-math.log10(series.eps)) + 1
        touched = n * width**dim * TOUCH * (1 if nufft.has_finufft() else SLOWER)
        return CALLS + (outputs + 2) // 2 * 2 * (touched + CELL * series.cells * ROOM[dim] ** dim)


def _of_all_alike(problem: Problem) -> Float[Tensor, "n outputs"]:
    """Every width infinite: each point predicted by the mean of the others, or by one line through them."""
    columns = moments(problem.x, problem.y) if problem.degree else problem.y
    left = problem.share * torch.exp(problem.log_left_out - problem.log_weights)
    mean = (problem.share @ columns - left.unsqueeze(1) * columns) / (1 - left).unsqueeze(1)
    if not problem.degree:
        return problem.y - mean
    parts = split_moments(mean, problem.x.shape[1], problem.y.shape[1])
    line = lines_of_moments(problem.x, *parts)
    found, weak = problem.y - line.fit, ~(line.firm >= FIRM) | (left > MOST)
    if bool(weak.any()):
        found[weak] = Pairs(problem).rows(problem.no_help, weak.nonzero().flatten(), gradient=False)[0]
    return found
