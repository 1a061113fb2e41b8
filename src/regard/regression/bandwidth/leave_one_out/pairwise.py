"""Leave-one-out over all pairs: residuals of each row from all others, and the gradient of CV by each bandwidth.

With weights p_ij of the other rows (p_ii = 0) and K a function of u^2 = sum_k ((x_i - x_j)_k / h_k)^2,

    f_-i = sum_j p_ij y_j,    d f_-i / d log h_k = sum_j g_ij (y_j - f_-i) ((x_i - x_j)_k / h_k)^2,

where g = -2 s_j K'(u^2) / sum s K, which is p for a Gaussian. A local line has the same derivative with y_j minus the
line at x_j, times the factor a + b.x_j by which the fit multiplies a weight. All sums but p and g are products of
matrices. A block of rows is forgotten when it is done, so memory is a few megabytes for any n.

A point of another category has exp(-L) times its weight, with L = log((c - 1) (1 - lambda) / lambda), so

    d f_-i / d L = -sum_j p_ij [c_i != c_j] (y_j - f_-i),    d L / d lambda = -1 / (lambda (1 - lambda)).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard import kernels
from regard.engine import threads
from regard.operands import NEVER
from regard.regression.bandwidth.leave_one_out.problem import Evaluation, Problem
from regard.regression.kernel_sums.categorical import Categories
from regard.regression.kernel_sums.sample import TILE_PAIRS
from regard.regression.local.least_squares import Moments, fit_points, moment_columns
from regard.scores import squared_distance

WORTH_WORKERS = 2**22  # pairs: with fewer, workers wait longer for each other than they save
FEW_FEATURES = 8  # features: up to here column by column is faster than a product of matrices
LEAST_VARIANCE = 1e-5  # share of a direction's squared distance: below, moments have lost 5 digits, and points are used
POINT_BLOCK = 2**16  # pairs that are fitted from the points at a time


@dataclass(frozen=True, eq=False)
class Pairwise:
    """Leave-one-out of a problem over all pairs in float64."""

    problem: Problem
    # Memory for scores and weights of a block, used again by the next: to allocate it costs more than to fill it. Each
    # worker takes one.
    buffers: list[Float[Tensor, "2 pairs"]] = field(default_factory=list)

    def __call__(self, bandwidth: Float[Tensor, " features"], *, gradient: bool = True) -> Evaluation:
        """CV, gradient and residuals at a bandwidth in the caller's units; it may be infinite."""
        rows = torch.arange(len(self.problem.data.x))
        return self.problem.evaluation(*self.rows(bandwidth, rows, gradient=gradient))

    def rows(
        self, bandwidth: Float[Tensor, " features"], rows: Int[Tensor, " some"], *, gradient: bool
    ) -> tuple[Float[Tensor, "some outputs"], Float[Tensor, " features"]]:
        """Residuals of some rows, by their index in the problem, and their part of the gradient."""
        problem, n = self.problem, len(self.problem.data.x)
        sample, categories, relevant = problem.at(bandwidth)
        coordinates = problem.line_coordinates(bandwidth) if problem.degree else None
        block = partial(self._block, sample.scaled(sample.x), coordinates, categories, gradient=gradient)
        with threads.one_thread(workers=len(rows) * n >= WORTH_WORKERS):
            parts = threads.parallel_map(block, rows.split(max(1, TILE_PAIRS // n)) if len(rows) else [])
        residuals = torch.cat([problem.data.values[:0], *(residual for residual, _ in parts)])
        total = torch.zeros_like(bandwidth)
        for _, part in parts:
            total[relevant] += part
        return residuals, total

    def _block(
        self,
        x: Float[Tensor, "n dim"],
        z: Float[Tensor, "n features"] | None,
        categories: Categories | None,
        rows: Int[Tensor, " rows"],
        *,
        gradient: bool,
    ) -> tuple[Float[Tensor, "rows outputs"], Float[Tensor, " relevant"]]:
        """Residuals of a block of rows, and their part of the gradient by each relevant log h and lambda.

        x is in bandwidths; z, the coordinates of local lines, is given for degree 1.
        """
        problem, y, dim = self.problem, self.problem.data.values, x.shape[1]
        x = x - x[rows].mean(0)  # from the middle of the block: points that matter have small numbers
        z = None if z is None else z - z[rows].mean(0)
        try:
            buffers = self.buffers.pop()
        except IndexError:
            buffers = torch.empty(2, max(TILE_PAIRS, len(x)), dtype=torch.float64)
        category_block = None if categories is None else CategoryBlock.of(categories, rows)
        weights, slopes, alone = kernel_weights(problem, x, rows, buffers, category_block, slopes=gradient)
        lines = None if z is None else fit_lines(weights, z, z[rows], y)
        fit = weights @ y if lines is None else lines.fit
        if lines is not None and alone is not None:
            fit[alone] = weights[alone] @ y  # the nearest points have no line
        residuals = y[rows] - fit
        total = x.new_zeros(dim + (0 if categories is None else len(categories.counts)))
        if gradient:
            out = buffers[0, : weights.numel()].view_as(weights)
            by_weight = self._by_weight(z, rows, fit, lines, residuals, out)
            if alone is not None:
                by_weight[alone] = 0.0  # which point is the nearest changes by jumps
            if categories is not None and category_block is not None:
                by_log_weight = category_block.sum_of_different(by_weight * weights)
                variance = categories.smoothing * (1 - categories.smoothing)
                total[dim:] = torch.where(variance > 0, -2 * by_log_weight / variance, 0.0)
            total[:dim] = -2 * _squared_differences(by_weight.mul_(slopes), x, x[rows])
        self.buffers.append(buffers)
        return residuals, total

    def _by_weight(
        self, z: Tensor | None, rows: Tensor, fit: Tensor, lines: Lines | None, residuals: Tensor, out: Tensor
    ) -> Float[Tensor, "rows n"]:
        """Derivative of -CV / 2 by the relative weight of each point at each row."""
        problem, y = self.problem, self.problem.data.values
        pull = residuals * problem.output_weight * problem.share[rows].unsqueeze(1)  # (rows, outputs)
        constant = (pull * fit).sum(1, keepdim=True)
        if lines is None or z is None:
            return torch.addmm(-constant, pull, y.mT, out=out)
        slope = (lines.slope @ pull.unsqueeze(2)).squeeze(2)  # (rows, dim): outputs added up
        constant = constant - (slope * z[rows]).sum(1, keepdim=True)
        left, right = torch.cat((pull, -slope), 1), torch.cat((y, z), 1)
        return torch.addmm(-constant, left, right.mT, out=out).mul_(torch.addmm(lines.a.unsqueeze(1), lines.b, z.mT))


def _squared_differences(
    pairs: Float[Tensor, "rows n"], x: Float[Tensor, "n dim"], at: Float[Tensor, "rows dim"]
) -> Float[Tensor, " dim"]:
    """Sum over pairs of pairs_ij (at_i - x_j)^2 for each feature, without the differences."""
    if x.shape[1] > FEW_FEATURES:
        moved = pairs @ x
    else:
        moved = torch.stack([pairs @ column for column in x.mT.contiguous()], 1) if x.shape[1] else at
    return pairs.sum(1) @ at.square() + pairs.sum(0) @ x.square() - 2 * (at * moved).sum(0)


# Weights of all points at a block of rows


class KernelWeights(NamedTuple):
    """Weights of all points at some rows, and their derivatives."""

    weights: Float[Tensor, "rows n"]  # sum to 1 over the other points; a row's own weight is 0
    # d weights (before they are normalised) / d log h_k = slopes ((x_i - x_j)_k / h_k)^2
    slopes: Float[Tensor, "rows n"]
    alone: Bool[Tensor, " rows"] | None  # rows without another point in reach, which the nearest points predict


def kernel_weights(
    problem: Problem,
    x: Float[Tensor, "n dim"],
    rows: Int[Tensor, " rows"],
    buffers: Float[Tensor, "2 pairs"],
    category_block: CategoryBlock | None = None,
    *,
    slopes: bool,
) -> KernelWeights:
    """Weights of points `x`, in bandwidths, at the rows of these indices, which are left out themselves."""
    kernel, log_weight = kernels.get(problem.data.kernel), problem.data.log_weight
    scores, weights = (buffer[: len(rows) * len(x)].view(len(rows), len(x)) for buffer in buffers)
    if category_block is not None:
        log_weight = category_block.log_weights() if log_weight is None else category_block.log_weights() + log_weight
    if kernel is kernels.gaussian:
        bias = x.square().sum(1) * -0.5  # the missing |x_i|^2 / 2 is the same for a whole row
        torch.addmm(bias if log_weight is None else bias + log_weight, x[rows], x.mT, out=scores)
        _leave_out(scores, rows, problem.log_kept, category_block)
        torch.softmax(scores, 1, out=weights)
        return KernelWeights(weights, weights, None)
    square = squared_distance(x[rows], x) if x.shape[1] else x.new_zeros(len(rows), len(x))
    torch.add(kernel.log_kernel(square), 0.0 if log_weight is None else log_weight, out=scores)
    _leave_out(scores, rows, problem.log_kept, category_block)
    lse = torch.logsumexp(scores, 1)
    alone = lse == NEVER
    torch.exp(scores - lse.where(~alone, 0.0).unsqueeze(1), out=weights)
    derivative = kernel.weight_derivative(square, weights, lse, log_weight) if slopes else weights
    if not alone.any():
        return KernelWeights(weights, derivative, None)
    weights[alone] = _nearest(square[alone], rows[alone], problem.data.log_weight)
    return KernelWeights(weights, derivative, alone)


def _leave_out(
    scores: Float[Tensor, "rows n"],
    rows: Int[Tensor, " rows"],
    log_kept: Float[Tensor, " n"] | None,
    category_block: CategoryBlock | None = None,
) -> None:
    """Take each row's own point, or a part of its weight, out of the scores; then apply lambdas of 0."""
    own = torch.arange(len(rows), device=rows.device), rows
    scores[own] = NEVER if log_kept is None else scores[own] + log_kept[rows]
    if category_block is not None:
        category_block.keep_fewest_differences(scores)


def _nearest(square: Float[Tensor, "rows n"], rows: Tensor, log_weight: Tensor | None) -> Float[Tensor, "rows n"]:
    """Weights of the nearest points, which predict a row that reaches no other, as the estimator does."""
    _leave_out(scores := -square, rows, None)  # a part of its own weight would have been in reach
    if log_weight is not None:
        scores = scores.masked_fill(log_weight == NEVER, NEVER)
    best = scores.amax(1, keepdim=True)
    share = ((scores >= best) & (best > NEVER)).to(square.dtype)
    if log_weight is not None:
        share = share * torch.exp(log_weight - log_weight.max())
    return share / share.sum(1, keepdim=True)  # 0 / 0 = NaN, as it should be, where there is no other point


class CategoryBlock(NamedTuple):
    """Points that differ in their categories from a block of rows.

    All rows of one combination of categories differ from the same points. A block in the order of the combinations
    holds few of them, and needs one vector for each.
    """

    combination: Int[Tensor, " rows"]  # of each row
    differs: Bool[Tensor, "categories combinations n"]
    log_weight: Float[Tensor, "combinations n"]  # sum of -L over the categories of lambda > 0 that differ
    differences: Int[Tensor, "combinations n"] | None  # number of categories of lambda 0 that differ

    @classmethod
    def of(cls, categories: Categories, rows: Int[Tensor, " rows"]) -> CategoryBlock:
        combinations, combination = torch.unique(categories.codes[rows], dim=0, return_inverse=True)
        differs = combinations.mT.unsqueeze(2) != categories.codes.mT.unsqueeze(1)
        log_other = categories.log_other
        log_weight = torch.zeros(differs.shape[1:], dtype=log_other.dtype, device=log_other.device)
        for other, different in zip(log_other.tolist(), differs, strict=True):
            if other > NEVER:
                log_weight.add_(different.to(log_weight.dtype), alpha=other)
        at_zero = log_other == NEVER
        return cls(combination, differs, log_weight, differs[at_zero].sum(0) if bool(at_zero.any()) else None)

    def log_weights(self) -> Float[Tensor, "rows n"] | Float[Tensor, "1 n"]:
        """Log weight of each point at each row."""
        return self.log_weight if len(self.log_weight) == 1 else self.log_weight[self.combination]

    def keep_fewest_differences(self, scores: Float[Tensor, "rows n"]) -> None:
        """Keep, among the points in reach of a row, those that differ in the fewest categories of lambda 0."""
        if self.differences is None:
            return
        differences = self.differences[self.combination]
        fewest = torch.where(scores > NEVER, differences, len(self.differs)).amin(1, keepdim=True)
        scores.masked_fill_(differences > fewest, NEVER)

    def sum_of_different(self, pairs: Float[Tensor, "rows n"]) -> Float[Tensor, " categories"]:
        """Sum over all pairs that differ in each category."""
        total = torch.zeros_like(self.log_weight).index_add_(0, self.combination, pairs)
        return torch.stack([(total * different).sum() for different in self.differs])


# Local lines at a block of rows


class Lines(NamedTuple):
    """Local line at each row, and the factor a + b.z_j by which it multiplies the weight of point j."""

    fit: Float[Tensor, "rows outputs"]
    slope: Float[Tensor, "rows dim outputs"]
    a: Float[Tensor, " rows"]
    b: Float[Tensor, "rows dim"]


def fit_lines(
    weights: Float[Tensor, "rows n"],
    z: Float[Tensor, "n dim"],
    at: Float[Tensor, "rows dim"],
    y: Float[Tensor, "n outputs"],
) -> Lines:
    """Lines by weighted least squares: from the moments of the weights, or from the points where moments are weak."""
    lines, weak = lines_of_moments(Moments.of(at, weights @ moment_columns(z, y), y.shape[1]))
    for rows in weak.split(max(1, POINT_BLOCK // len(z))):
        for whole, part in zip(lines, _lines_of_points(weights[rows], z, at[rows], y), strict=True):
            whole[rows] = part
    return lines


def lines_of_moments(moments: Moments) -> tuple[Lines, Int[Tensor, " weak"]]:
    """Lines from moments, and the rows where a direction has too little variance for them."""
    inverse, least = moments.pseudo_inverse(minimum_norm=False)
    slope, tilt = inverse @ moments.vy, (inverse @ moments.away.unsqueeze(2)).squeeze(2)
    lines = Lines(moments.value(slope), slope, 1 - (tilt * moments.v).sum(1), tilt)
    return lines, (~(least >= LEAST_VARIANCE)).nonzero().flatten()


def _lines_of_points(weights: Tensor, z: Tensor, at: Tensor, y: Tensor) -> Lines:
    weights = weights.nan_to_num()  # a row without any other point; its fit is set by the caller
    line = fit_points(weights, (z - at.unsqueeze(1)).mT, torch.zeros_like(at), y)
    return Lines(line.value(y), line.slope, 1 - (line.tilt * (at + line.mean)).sum(1), line.tilt)
