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
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.engine import threads
from regard.kernels import get as get_kernel
from regard.operands import NEVER
from regard.regression.bandwidth.leave_one_out.problem import Evaluation, Problem
from regard.regression.kernel_sums.categorical import Kinds
from regard.regression.local.linear_exact import FLAT, TINY
from regard.regression.local.linear_exact import line as exact_line
from regard.scores._distance import squared_distance


class Unlike(NamedTuple):
    """For each combination of categories among some rows: the points that differ from it."""

    whose: Int[Tensor, " rows"]  # the combination of each row
    differs: Bool[Tensor, "kinds combinations n"]
    log_weight: Float[Tensor, "combinations n"]  # what lambdas above 0 leave of a point's weight
    steps: Int[Tensor, "combinations n"] | None  # categories of lambda 0 in which it differs

    @classmethod
    def of(cls, kinds: Kinds, rows: Tensor) -> Unlike:
        combinations, whose = torch.unique(kinds.codes[rows], dim=0, return_inverse=True)
        differs = combinations.mT.unsqueeze(2) != kinds.codes.mT.unsqueeze(1)
        log_other = kinds.log_other
        weight = torch.zeros(differs.shape[1:], dtype=log_other.dtype, device=log_other.device)
        for other, apart in zip(log_other.tolist(), differs, strict=True):
            if other > NEVER:
                weight.add_(apart.to(weight.dtype), alpha=other)
        firm = log_other == NEVER
        return cls(whose, differs, weight, differs[firm].sum(0) if bool(firm.any()) else None)

    def weights(self) -> Float[Tensor, "rows n"] | Float[Tensor, "1 n"]:
        """The log weight of each point for each row."""
        return self.log_weight if len(self.log_weight) == 1 else self.log_weight[self.whose]

    def limit(self, scores: Float[Tensor, "rows n"]) -> None:
        """Lambda = 0: of the points that a row sees, those stay that differ in the fewest categories."""
        if self.steps is None:
            return
        steps = self.steps[self.whose]
        fewest = torch.where(scores > NEVER, steps, len(self.differs)).amin(1, keepdim=True)
        scores.masked_fill_(steps > fewest, NEVER)

    def totals(self, pairs: Float[Tensor, "rows n"]) -> Float[Tensor, " kinds"]:
        """The sum over all pairs that differ, for each column of categories."""
        if len(self.log_weight) == 1:
            total = pairs.sum(0, keepdim=True)
        else:
            total = torch.zeros_like(self.log_weight).index_add_(0, self.whose, pairs)
        return torch.stack([(total * apart).sum() for apart in self.differs])


FIRM = 1e-5  # in units of the distance to the points: where they differ less than this, these are asked themselves
ROUNDED = 1e-2  # of a second moment from the origin: times FLAT this is well above rounding


class Room(NamedTuple):
    """Where a block is computed, used again by the next: fresh memory costs more than what is written into it."""

    scores: Tensor
    weights: Tensor

    @classmethod
    def of(cls, pairs: int) -> Room:
        return cls(*torch.empty(2, pairs, dtype=torch.float64))


class Kernels(NamedTuple):
    """Weights of all points for some rows, and how they answer to the bandwidth."""

    weights: Float[Tensor, "rows n"]  # sum to 1 over the others; the row's own is 0
    slopes: Float[Tensor, "rows n"]  # d weights (their sum held) / d log h_k = slopes * ((x_i - x_j)_k / h_k)^2
    alone: Tensor | None  # bool (rows,): those that see no other point, and are predicted by the nearest


def kernels(
    problem: Problem,
    x: Float[Tensor, "n dim"],
    rows: Tensor,
    room: Room,
    unlike: Unlike | None = None,
    *,
    slopes: bool,
) -> Kernels:
    """Weights of the points `x`, in units of the bandwidth, for the rows of these indices, themselves left out."""
    kernel, log_weight = problem.kernel, problem.log_weight
    if kernel == "gaussian":
        # |x_i|^2 is the same for a whole row and need not be subtracted.
        bias = x.square().sum(1) * -0.5
        scores, weights = (place[: len(rows) * len(x)].view(len(rows), len(x)) for place in room)
        torch.addmm(bias if log_weight is None else bias + log_weight, x[rows], x.mT, out=scores)
        if unlike is not None:
            scores += unlike.weights()
        _leave_out(scores, rows, problem.log_kept)
        if unlike is not None:
            unlike.limit(scores)
        torch.softmax(scores, 1, out=weights)
        return Kernels(weights, weights, None)
    square = squared_distance(x[rows], x) if x.shape[1] else x.new_zeros(len(rows), len(x))
    scores = get_kernel(kernel).log_kernel(square)
    if unlike is not None:
        log_weight = unlike.weights() if log_weight is None else unlike.weights() + log_weight
    if log_weight is not None:
        scores = scores + log_weight
    _leave_out(scores, rows, problem.log_kept)
    if unlike is not None:
        unlike.limit(scores)
    total = torch.logsumexp(scores, 1, keepdim=True)
    alone = total == NEVER
    weights = torch.exp(scores - total.where(~alone, 0.0))
    steep = get_kernel(kernel).weight_derivative(square, weights, total.squeeze(1), log_weight) if slopes else weights
    lonely = alone.squeeze(1)
    if not lonely.any():
        return Kernels(weights, steep, None)
    weights[lonely] = _nearest(square[lonely], rows[lonely], problem.log_weight)
    return Kernels(weights, steep, lonely)


def _leave_out(scores: Tensor, rows: Tensor, log_kept: Tensor | None) -> None:
    own = torch.arange(len(rows), device=rows.device), rows
    scores[own] = NEVER if log_kept is None else scores[own] + log_kept[rows]


def _nearest(square: Tensor, rows: Tensor, log_weight: Tensor | None) -> Tensor:
    """A point that sees no other is predicted by the nearest ones, as the estimator predicts out of reach."""
    _leave_out(scores := -square, rows, None)  # what is kept of a point would have been seen
    if log_weight is not None:
        scores = scores.masked_fill(log_weight == NEVER, NEVER)
    best = scores.amax(1, keepdim=True)
    share = ((scores >= best) & (best > NEVER)).to(square.dtype)
    if log_weight is not None:
        share = share * torch.exp(log_weight - log_weight.max())
    return share / share.sum(1, keepdim=True)  # 0 / 0 where there is no other point at all: NaN, as it should be


class Lines(NamedTuple):
    """What is fitted around each row: `fit` there, slopes, and by what the fit multiplies a weight, a + b . z_j."""

    fit: Float[Tensor, "rows outputs"]
    slope: Float[Tensor, "rows dim outputs"]
    a: Float[Tensor, " rows"]
    b: Float[Tensor, "rows dim"]
    firm: Float[Tensor, " rows"]  # how much the points differ where they differ least; 1 is a lot


def lines(
    weights: Float[Tensor, "rows n"],
    z: Float[Tensor, "n dim"],
    at: Float[Tensor, "rows dim"],
    y: Float[Tensor, "n out"],
) -> Lines:
    """Local lines in z by weighted least squares: from the moments of the weights, or from the points where weak."""
    found = lines_of_moments(at, *split_moments(weights @ moments(z, y), z.shape[1], y.shape[1]))
    weak = (~(found.firm >= FIRM)).nonzero().flatten()
    for rows in weak.split(max(1, 2**16 // len(z))):
        for old, new in zip(found, _from_points(weights[rows], z, at[rows], y), strict=False):
            old[rows] = new
    return found


def _from_points(weights: Tensor, z: Tensor, at: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The same from differences: where points hardly differ, moments from elsewhere round it away."""
    weights = weights.nan_to_num()  # a row with no other point: its fit is told apart from lines
    line = exact_line(weights, (z - at.unsqueeze(1)).mT, torch.zeros_like(at), y)
    a = 1 - (line.tilt * (at + line.mean)).sum(1)
    return line.value(y), line.slope, a, line.tilt


def moments(z: Float[Tensor, "n dim"], y: Float[Tensor, "n outputs"]) -> Float[Tensor, "n columns"]:
    """The columns whose weighted means give a local line: z, y, z z' and z y'."""
    return torch.cat((z, y, _products(z, z), _products(z, y)), 1)


def split_moments(mean: Float[Tensor, "rows columns"], dim: int, outputs: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Means of `moments`, each in its own shape."""
    z, y, zz, zy = mean.split((dim, outputs, dim * dim, dim * outputs), 1)
    return z, y, zz.unflatten(1, (dim, dim)), zy.unflatten(1, (dim, outputs))


def lines_of_moments(at: Tensor, z: Tensor, y: Tensor, zz: Tensor, zy: Tensor) -> Lines:
    """Local lines at the points `at` from weighted means of z, y, z z' and z y', all from the same origin.

    A direction in which the weighted points hardly differ has no slope: with too few points in reach the line is the
    flattest of those that fit best.
    """
    spread = zz - z.unsqueeze(2) * z.unsqueeze(1)
    common = zy - z.unsqueeze(2) * y.unsqueeze(1)
    away = at - z
    seconds = zz.diagonal(dim1=1, dim2=2)
    # In units of how far the points are from the row, feature by feature; what is rounded is a moment from the origin.
    unit = (spread.diagonal(dim1=1, dim2=2) + away.square() + ROUNDED * seconds).sqrt().clamp_min(TINY).unsqueeze(2)
    inverse, firm = _pseudo_inverse(spread / unit / unit.mT)
    inverse = inverse / unit / unit.mT
    slope = inverse @ common
    b = (inverse @ away.unsqueeze(2)).squeeze(2)
    fit = y + (away.unsqueeze(1) @ slope).squeeze(1)
    return Lines(fit, slope, 1 - (b * z).sum(1), b, firm)


def _pseudo_inverse(spread: Float[Tensor, "rows dim dim"]) -> tuple[Tensor, Float[Tensor, " rows"]]:
    if not spread.shape[-1]:  # all features are categories: there is no line to be weak
        return spread, spread.new_full((len(spread),), torch.inf)
    if spread.shape[-1] == 1:
        return torch.where(spread > FLAT, 1 / spread, 0.0), spread.flatten()
    # NaN, a row with no other point, would be an error instead of an answer.
    strength, direction = torch.linalg.eigh(spread.nan_to_num())
    inverse = torch.where(strength > FLAT, 1 / strength, 0.0).unsqueeze(1)
    return (direction * inverse) @ direction.mT, strength[:, 0]


def _products(left: Tensor, right: Tensor) -> Tensor:
    return (left.unsqueeze(2) * right.unsqueeze(1)).flatten(1)


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
            parts = threads.parallel_map(of_block, blocks)
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
