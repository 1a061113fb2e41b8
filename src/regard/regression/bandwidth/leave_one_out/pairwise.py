"""Leave-one-out over all pairs: each point predicted by the others, and how that answers to every bandwidth.

With weights p_ij of the other points (p_ii = 0) and K a function of u^2 = sum_k ((x_i - x_j)_k / h_k)^2,

    f_-i = sum_j p_ij y_j,    d f_-i / d log h_k = sum_j g_ij (y_j - f_-i) ((x_i - x_j)_k / h_k)^2,

where g = -2 s_j K'(u^2) / sum s K, which is p itself for a Gaussian. A local line has the same derivative with y_j less
the line at x_j, times the factor by which the fit multiplies a weight. Everything but p and g is a product of matrices,
and a block of rows is forgotten when it is done: the memory is a few megabytes, whatever n. Categories: see `_unlike`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.engine import threads
from regard.regression.bandwidth.leave_one_out.categorical import Unlike
from regard.regression.bandwidth.leave_one_out.rows import Lines, Room, kernels, lines
from regard.regression.bandwidth.problem import Evaluation, Problem
from regard.regression.kernel_sums.categorical import Kinds

BLOCK = 2**18  # pairs at a time: fewer, and the calls take as long as the work
WORTH_WORKERS = 2**22  # pairs: below, workers wait for each other longer than they save
NARROW = 8  # columns: up to here one by one is quicker than a product of matrices


class Scaled(NamedTuple):
    """Points in units of a bandwidth."""

    counts: Tensor  # bool (dim,): features of finite width that change at all
    h: Float[Tensor, " dim"]  # in the problem's units
    x: Float[Tensor, "n counted"]
    z: Float[Tensor, "n dim"]  # in which lines are drawn: all features, and none in a unit that is too large
    matters: Tensor | None  # bool (kinds,): categories that are told apart
    kinds: Kinds | None  # these


def scaled(problem: Problem, bandwidth: Float[Tensor, " features"]) -> Scaled:
    h, chance = (bandwidth / problem.unit).tensor_split([problem.x.shape[1]])
    counts = torch.isfinite(h) & (problem.spread > 0)
    z = problem.x / torch.where(counts, h, 1.0).clamp_max(1.0) if problem.degree else problem.x
    x = problem.x[:, counts] / h[counts]
    if problem.kinds is None or not bool((matters := problem.matters(chance)).any()):
        return Scaled(counts, h, x, z, None, None)
    codes, levels, _ = problem.kinds
    return Scaled(counts, h, x, z, matters, Kinds(codes[:, matters], levels[matters], chance[matters]))


@dataclass(frozen=True, eq=False)
class Pairs:
    """Leave-one-out of a problem by going through all pairs in float64."""

    problem: Problem
    rooms: list[Room] = field(default_factory=list)

    def __call__(self, bandwidth: Float[Tensor, " features"], *, gradient: bool = True) -> Evaluation:
        """Value, gradient and residuals at a bandwidth, one number a feature in the caller's units; inf is allowed."""
        problem = self.problem
        residuals, by_feature = self.rows(bandwidth, torch.arange(len(problem.x)), gradient=gradient)
        return problem.answer(residuals, by_feature)

    def _room(self, scores: int) -> Room:
        try:
            return self.rooms.pop()
        except IndexError:  # each worker has one of its own
            return Room.of(scores)

    def rows(self, bandwidth: Float[Tensor, " features"], which: Tensor, *, gradient: bool) -> tuple[Tensor, Tensor]:
        """Residuals of some rows, in the problem's order, and their part of the gradient."""
        problem = self.problem
        counts, _, x, z, matters, kinds = scaled(problem, bandwidth)
        sums = x.shape[1] + (0 if kinds is None else len(kinds.chance))

        def of_block(rows: Tensor) -> tuple[Tensor, Tensor]:
            near = x - x[rows].mean(0)  # from the middle of the rows: what is near, and matters, has small numbers
            room = self._room(max(BLOCK, len(x)))
            unlike = None if kinds is None else Unlike.of(kinds, rows)
            weights, slopes, alone = kernels(problem, near, rows, room, unlike, slopes=gradient)
            close = z - z[rows].mean(0) if problem.degree else z
            line = lines(weights, close, close[rows], problem.y) if problem.degree else None
            fit = weights @ problem.y if line is None else line.fit
            if line is not None and alone is not None:
                fit[alone] = weights[alone] @ problem.y  # the nearest points are no line
            residuals = problem.y[rows] - fit
            total = x.new_zeros(sums)
            if gradient:
                into = room.scores[: weights.numel()].view_as(weights)
                pulled = self._pulled(close, rows, fit, line, residuals, into)
                if alone is not None:
                    pulled[alone] = 0.0  # whom a point is nearest to changes by jumps
                if unlike is not None:
                    total[x.shape[1] :] = unlike.totals(pulled * weights)
                total[: x.shape[1]] = _squares(pulled.mul_(slopes), near, near[rows])
            self.rooms.append(room)
            return residuals, total

        blocks = which.split(max(1, BLOCK // len(x))) if len(which) else []
        if len(which) * len(x) < WORTH_WORKERS:
            with threads.one_thread():
                parts = [of_block(rows) for rows in blocks]
        else:
            parts = threads.each(of_block, blocks)
        residuals = torch.cat([problem.y[:0], *(residual for residual, _ in parts)])
        total = sum((part for _, part in parts), x.new_zeros(sums))
        by_feature = torch.zeros_like(bandwidth)
        by_feature[: len(counts)][counts] = -2 * total[: x.shape[1]]
        if kinds is not None and matters is not None:
            steep = kinds.chance * (1 - kinds.chance)
            by_feature[len(counts) :][matters] = torch.where(steep > 0, -2 * total[x.shape[1] :] / steep, 0.0)
        return residuals, by_feature

    def _pulled(
        self, z: Tensor, rows: Tensor, fit: Tensor, line: Lines | None, residuals: Tensor, into: Tensor
    ) -> Float[Tensor, "rows n"]:
        """What more weight on each point does to the squares of these rows, summed over the outputs."""
        problem = self.problem
        pull = residuals * problem.per_output * problem.share[rows].unsqueeze(1)  # (rows, outputs)
        constant = (pull * fit).sum(1, keepdim=True)
        if line is None:
            return torch.addmm(-constant, pull, problem.y.mT, out=into)
        tilt = (line.slope @ pull.unsqueeze(2)).squeeze(2)  # (rows, dim): all outputs in one line
        constant = constant - (tilt * z[rows]).sum(1, keepdim=True)
        left, right = torch.cat((pull, -tilt), 1), torch.cat((problem.y, z), 1)
        return torch.addmm(-constant, left, right.mT, out=into).mul_(torch.addmm(line.a.unsqueeze(1), line.b, z.mT))


def _squares(pairs: Float[Tensor, "rows n"], x: Float[Tensor, "n dim"], here: Float[Tensor, "rows dim"]) -> Tensor:
    """sum_ij pairs_ij (x_i - x_j)^2 for each feature, without the differences."""
    if x.shape[1] > NARROW:
        moved = pairs @ x
    else:
        moved = torch.stack([pairs @ column for column in x.mT.contiguous()], 1) if x.shape[1] else here
    return pairs.sum(1) @ here.square() + pairs.sum(0) @ x.square() - 2 * (here * moved).sum(0)
