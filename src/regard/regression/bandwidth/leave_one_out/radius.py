"""Leave-one-out for single rows from the points near them: for rows that the fast sum is not certain about."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.operands import NEVER
from regard.regression.bandwidth.leave_one_out.pairwise import Pairs
from regard.regression.bandwidth.leave_one_out.problem import Problem
from regard.regression.kernel_sums.radius_search import (
    MAX_CELL_RADIUS,
    PRUNED_SHARE,
    RADIUS_SLACK,
    Neighbours,
    blocks_of_lists,
    cell_list,
    runs_to_lists,
)
from regard.regression.kernel_sums.sample import UNIT_ROUNDOFF, extent

FEW_PAIRS = 2e7  # up to here all pairs are quicker than an index


@dataclass(eq=False)
class Near:
    """The features of some axes, sorted or as a tree once for all bandwidths."""

    problem: Problem
    axes: tuple[int, ...]
    mass: float = field(init=False)  # log of the sum of all weights
    log_weight: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.log_weight = self.problem.log_weights
        self.mass = float(torch.logsumexp(self.log_weight, 0))

    @cached_property
    def x(self) -> Float[Tensor, "n axes"]:
        return self.problem.x[:, list(self.axes)].contiguous()

    @cached_property
    def line(self) -> tuple[Tensor, Tensor, Tensor]:
        """One axis: the points in order, whose they are, and the place of each."""
        ordered, whose = torch.sort(self.x[:, 0], stable=True)
        place = torch.empty_like(whose)
        place[whose] = torch.arange(len(whose))
        return ordered, whose, place

    @cached_property
    def tree(self) -> Any:
        from scipy.spatial import KDTree

        return KDTree(self.x.numpy(), balanced_tree=False, compact_nodes=False)

    def rows(
        self, h: Float[Tensor, " axes"], rows: Int[Tensor, " some"], floor: Float[Tensor, " some"], tol: float
    ) -> tuple[Float[Tensor, "some outputs"], Float[Tensor, " axes"]]:
        """Residuals of these rows and their part of the gradient. `floor`: log of a weight surely left, or -inf."""
        if len(rows) * len(self.x) <= FEW_PAIRS and len(self.axes) > 1:
            return self._all_pairs(h, rows)
        unknown = (floor == NEVER).nonzero().flatten()
        if len(unknown):
            floor = floor.clone()
            floor[unknown] = self._by_neighbour(h, rows[unknown])
        spread = self.problem.y.amax(0) - self.problem.y.amin(0)
        range_ = float((spread / self.problem.deviation).max())
        enough = self.mass + math.log(max(1.0, range_) / (PRUNED_SHARE * max(tol, UNIT_ROUNDOFF)))
        radius = torch.sqrt(2 * (enough - floor).clamp_min(0.0))
        total = self.x.new_zeros(len(rows), (1 + len(self.axes)) * (1 + self.problem.y.shape[1]))
        for part, lists in self._lists(h, rows, radius):
            self._add(h, rows, floor, part, lists, total)
        return self._finished(rows, total)

    def _all_pairs(self, h: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        bandwidth = torch.full_like(self.problem.unit, math.inf)
        bandwidth[list(self.axes)] = h
        found, gradient = Pairs(self.problem).rows(bandwidth * self.problem.unit, rows, gradient=True)
        return found, gradient[list(self.axes)]

    def _by_neighbour(self, h: Tensor, rows: Tensor) -> Float[Tensor, " some"]:
        """The weight of one other point, near in some bandwidth, is at least there in any."""
        if len(self.axes) == 1:
            _, whose, place = self.line
            sides = [(place[rows] + step) for step in (-1, 1)]
            other = [whose[side.clamp(0, len(whose) - 1)] for side in sides]
            inside = [(side >= 0) & (side < len(whose)) for side in sides]
        else:
            _, which = self.tree.query(self.x[rows].numpy(), k=min(3, len(self.x)))
            other = list(torch.from_numpy(which).unbind(1))
            inside = [one != rows for one in other]
        best = torch.full((len(rows),), NEVER, dtype=torch.float64)
        if self.problem.log_kept is not None:
            best = self.log_weight[rows] + self.problem.log_kept[rows]
        for one, there in zip(other, inside, strict=True):
            away = ((self.x[one] - self.x[rows]) / h).square().sum(1)
            best = torch.where(there, torch.maximum(best, self.log_weight[one] - away / 2), best)
        # With weights of 0 around it, a row may know no other: then nothing is left out of the ball.
        return torch.where(best == NEVER, -1e4, best)

    def _lists(self, h: Tensor, rows: Tensor, radius: Tensor) -> Iterator[tuple[Tensor, Neighbours]]:
        """Points around each row, with the rows that they belong to."""
        everyone = torch.arange(len(rows))
        if len(self.axes) == 1:
            ordered, whose, _ = self.line
            here, reach = self.x[rows, 0], radius * float(h[0]) * RADIUS_SLACK
            start = torch.searchsorted(ordered, here - reach)
            stop = torch.searchsorted(ordered, here + reach, right=True)
            for lists in runs_to_lists(everyone, start, stop):
                yield everyone, lists._replace(points=whose[lists.points])
            return
        close = radius <= MAX_CELL_RADIUS
        if close.any():
            some = everyone[close]
            x = (self.x.T / h.unsqueeze(1)).T
            order, blocks = cell_list(x, *extent(x), x.T[:, rows[some]].T, radius[some])
            for lists in blocks:
                yield some, lists._replace(points=order[lists.points])
        if not close.all():
            yield from self._balls(h, rows, radius, everyone[~close])

    def _balls(self, h: Tensor, rows: Tensor, radius: Tensor, some: Tensor) -> Iterator[tuple[Tensor, Neighbours]]:
        places, reach = self.x[rows[some]].numpy(), (radius[some] * float(h.max()) * RADIUS_SLACK).numpy()
        length = torch.from_numpy(self.tree.query_ball_point(places, reach, return_length=True))
        for part in blocks_of_lists(length):
            found = self.tree.query_ball_point(places[part], reach[part])
            flat = np.concatenate([np.asarray(one, dtype=np.int64) for one in found])
            yield some, Neighbours(torch.from_numpy(flat), torch.arange(len(some))[part], length[part])

    def _add(self, h: Tensor, rows: Tensor, floor: Tensor, part: Tensor, lists: Neighbours, total: Tensor) -> None:
        """Add to each row [1, y] and [1, y] ((x_i - x_j) / h)^2 of each axis, weighted."""
        owner = part[lists.query]
        mine = torch.repeat_interleave(owner, lists.length)
        away = ((self.x[lists.points] - self.x[rows[mine]]) / h).square()
        exponent = self.log_weight[lists.points] - away.sum(1) / 2 - floor[mine]
        own = (lists.points == rows[mine]).nonzero().flatten()
        kept = self.problem.log_kept
        exponent[own] = NEVER if kept is None else exponent[own] + kept[lists.points[own]]
        weight = torch.exp(exponent)
        begins = (lists.length.cumsum(0) - lists.length).numpy()
        ones_and_y = torch.cat((weight.unsqueeze(1), weight.unsqueeze(1) * self.problem.y[lists.points]), 1)
        columns = [ones_and_y, *(ones_and_y * one.unsqueeze(1) for one in away.unbind(1))]
        added = np.add.reduceat(torch.cat(columns, 1).numpy(), begins, axis=0)
        total.index_add_(0, owner, torch.from_numpy(added))

    def _finished(self, rows: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        problem = self.problem
        parts = total.unflatten(1, (1 + len(self.axes), -1))  # (rows, 1 + axes, 1 + outputs)
        weight = parts[:, :1, :1]
        fit = parts[:, 0, 1:] / weight[:, 0]
        residuals = problem.y[rows] - fit
        moved = (parts[:, 1:, 1:] - fit.unsqueeze(1) * parts[:, 1:, :1]) / weight  # d fit / d log h
        pull = -2 * residuals * problem.per_output * problem.share[rows].unsqueeze(1)
        return residuals, torch.einsum("ro,rao->a", pull, moved)
