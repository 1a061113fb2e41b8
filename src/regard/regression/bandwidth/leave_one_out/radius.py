"""Leave-one-out of single rows from the points within a radius, for rows of which the Fourier sums are not certain.

The radius is that of `kernel_sums.radius_search`: the points beyond it move a fit by less than a share of `tol`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.operands import NEVER
from regard.regression.bandwidth.leave_one_out.problem import Problem
from regard.regression.kernel_sums.radius_search import (
    MAX_CELL_RADIUS,
    PRUNED_SHARE,
    KdTree,
    Neighbours,
    SortedAxis,
    cell_list,
    search_index,
)
from regard.regression.kernel_sums.sample import UNIT_ROUNDOFF, extent

NO_OTHER_POINT = -1e4  # log weight of a row that knows no other: all points are within its radius


@dataclass(eq=False)
class Radius:
    """Leave-one-out of a Gaussian of degree 0 over some features, from a search that serves all bandwidths."""

    problem: Problem
    axes: tuple[int, ...]  # features of finite bandwidth

    def __post_init__(self) -> None:
        self.x: Float[Tensor, "n axes"] = self.problem.x[:, list(self.axes)].contiguous()
        self.log_total_weight: float = float(torch.logsumexp(self.problem.log_weights, 0))

    @cached_property
    def index(self) -> SortedAxis | KdTree:
        return search_index(self.x)

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
        value_range = float(((problem.y.amax(0) - problem.y.amin(0)) / problem.deviation).max())
        pruned = PRUNED_SHARE * max(tol, UNIT_ROUNDOFF) / max(1.0, value_range)
        radius = torch.sqrt(2 * (self.log_total_weight - math.log(pruned) - log_floor).clamp_min(0.0))
        total = self.x.new_zeros(len(rows), (1 + len(self.axes)) * (1 + problem.y.shape[1]))
        for near in self._neighbours(h, rows, radius):
            self._add(h, rows, log_floor, near, total)
        sums = total.unflatten(1, (1 + len(self.axes), -1))  # (rows, 1 + axes, 1 + outputs)
        weight = sums[:, :1, :1]
        fit = sums[:, 0, 1:] / weight[:, 0]
        residuals = problem.y[rows] - fit
        by_log_h = (sums[:, 1:, 1:] - fit.unsqueeze(1) * sums[:, 1:, :1]) / weight  # d fit / d log h
        by_fit = -2 * residuals * problem.output_weight * problem.share[rows].unsqueeze(1)
        return residuals, torch.einsum("ro,rao->a", by_fit, by_log_h)

    def _weight_of_neighbour(self, h: Tensor, rows: Int[Tensor, " some"]) -> Float[Tensor, " some"]:
        """Log weight of one other point at each row; the nearest of one bandwidth is near at any."""
        log_weight = self.problem.log_weights
        if isinstance(self.index, SortedAxis):
            place = torch.searchsorted(self.index.sorted, self.x[rows, 0]).unsqueeze(1) + torch.arange(-1, 2)
            nearest = self.index.order[place.clamp(0, len(self.x) - 1)]
        else:
            nearest = torch.from_numpy(self.index.tree.query(self.x[rows].numpy(), k=min(3, len(self.x)))[1])
        best = torch.full((len(rows),), NEVER, dtype=torch.float64)
        if self.problem.log_kept is not None:
            best = log_weight[rows] + self.problem.log_kept[rows]
        for other in nearest.unbind(1):
            square = ((self.x[other] - self.x[rows]) / h).square().sum(1)
            best = torch.where(other != rows, torch.maximum(best, log_weight[other] - square / 2), best)
        return torch.where(best == NEVER, NO_OTHER_POINT, best)  # only weights of 0 around it

    def _neighbours(self, h: Tensor, rows: Tensor, radius: Float[Tensor, " some"]) -> Iterator[Neighbours]:
        """Points within the radius of each row, as lists whose queries are places in `rows`."""
        everyone = torch.arange(len(rows))
        in_cells = (radius <= MAX_CELL_RADIUS) & (len(self.axes) > 1)  # one feature is sorted once for all bandwidths
        some, rest = everyone[in_cells], everyone[~in_cells]
        if len(some):
            x = (self.x.T / h.unsqueeze(1)).T
            order, blocks = cell_list(x, *extent(x), x.T[:, rows[some]].T, radius[some])
            for near in blocks:
                yield near._replace(points=order[near.points], query=some[near.query])
        if len(rest):
            order = self.index.order
            for near in self.index.within(self.x[rows[rest]], radius[rest] * h.max()):  # in the widest bandwidth
                points = near.points if order is None else order[near.points]
                yield near._replace(points=points, query=rest[near.query])

    def _add(self, h: Tensor, rows: Tensor, log_floor: Tensor, near: Neighbours, total: Tensor) -> None:
        """Add the weighted sums of [1, y], and of [1, y] ((x_i - x_j) / h)^2 of each axis, to each row."""
        problem, query = self.problem, torch.repeat_interleave(near.query, near.length)
        square = ((self.x[near.points] - self.x[rows[query]]) / h).square()
        log_weight = problem.log_weights[near.points] - square.sum(1) / 2 - log_floor[query]
        own = (near.points == rows[query]).nonzero().flatten()
        kept = problem.log_kept
        log_weight[own] = NEVER if kept is None else log_weight[own] + kept[near.points[own]]
        weight = torch.exp(log_weight).unsqueeze(1)
        ones_and_y = torch.cat((weight, weight * problem.y[near.points]), 1)
        columns = torch.cat([ones_and_y, *(ones_and_y * one.unsqueeze(1) for one in square.unbind(1))], 1)
        total.index_add_(0, near.query, near.sums(columns))
