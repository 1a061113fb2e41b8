"""Local lines at a million queries by the Fourier series of `kernel_sums.fourier`, with an error bound for each query.

Weighted least squares for a line a + b.(x - q) at a query q solves M (a, b) = t with

    M = sum_i s_i K_i (1, u_i) (1, u_i)',    t = sum_i s_i K_i (1, u_i) y_i,    u_i = x_i - q.

Each entry is a sum of order 0, 1 or 2 in u, which is a Fourier series with its own multipliers. u is measured from the
query, so no large numbers are subtracted. The bound on the error of a is argued in docs/en/regression-bound.md.

The local constant f = t_0 / M_00 has the gradient (t_a - f M_0a) / M_00 along each feature a, in bandwidths: u_i K_i is
the derivative of K_i in the query.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.regression.kernel_sums import nufft
from regard.regression.kernel_sums.categorical import Categories
from regard.regression.kernel_sums.fourier import Series, series_in_box, spectrum, unpack
from regard.regression.kernel_sums.plan import plan_for
from regard.regression.kernel_sums.sample import UNIT_ROUNDOFF, Sample, Standardised, standardise_by_axis
from regard.regression.local.least_squares import gauss_jordan_inverse

QUERY_BLOCK = 2**14  # queries solved at a time: their matrices stay in the cache
SOLVER_ROUNDINGS = 8  # roundings of an entry of M or t in the solution


class FourierLines(NamedTuple):
    """Value of the local line at each query, and a bound on its error in standard deviations of y."""

    value: Float[Tensor, "q outputs"]
    error: Float[Tensor, " q"]  # inf: nothing is known


class Equations(NamedTuple):
    """Normal equations of each query, with k = 1 + dim, and bounds on the errors of their entries."""

    matrix: Float[Tensor, "k k q"]  # M
    right: Float[Tensor, "k outputs q"]  # t
    matrix_error: Float[Tensor, "k k 1"]
    right_error: Float[Tensor, "k outputs 1"]

    def block(self, queries: slice) -> Equations:
        return self._replace(matrix=self.matrix[..., queries], right=self.right[..., queries])


class Sums(NamedTuple):
    """Normal equations of the queries near the data, in the units of the standardised data."""

    data: Standardised
    rows: Int[Tensor, " near"]  # of the queries
    equations: Equations
    log_unit: float  # of the weights


def gradient(
    sample: Sample, query: Float[Tensor, "q dim"], tol: float
) -> tuple[Float[Tensor, "q dim outputs"], Float[Tensor, " q"]]:
    """df/dx of a Gaussian average with 1 to 3 features of finite bandwidth, and a bound on its error.

    The bound is in standard deviations of y over a bandwidth, and inf where nothing is known.
    """
    result = query.new_zeros(len(query), len(sample.bandwidth), sample.values.shape[1])
    bound = query.new_full((len(query),), math.inf)
    known = sums(sample, query, tol, max_order=1)
    if known is None:
        return result, bound
    data, rows, (matrix, right, off_matrix, off_right), _ = known
    weight, off_weight = matrix[0, 0], off_matrix[0, 0]
    moved, off_moved = matrix[0, 1:].unsqueeze(1), off_matrix[0, 1:].unsqueeze(1)  # (dim, 1, q)
    least = torch.where(weight > off_weight, weight - off_weight, math.nan)
    # The quotient rule, and what the errors of its four parts do to it.
    mean = right[0] / weight  # (outputs, q)
    off_mean = (off_right[0] + off_weight * mean.abs()) / least
    slope = (right[1:] - mean * moved) / weight  # (dim, outputs, q)
    error = off_right[1:] + mean.abs() * off_moved + off_weight * slope.abs() + off_mean * (moved.abs() + off_moved)
    finite = torch.isfinite(sample.bandwidth).nonzero().flatten()
    result[rows.unsqueeze(1), finite] = slope.permute(2, 0, 1) * (data.scale / sample.bandwidth[finite].unsqueeze(1))
    bound[rows] = (error / least).amax((0, 1)).nan_to_num(nan=math.inf)
    return result, bound


def lines_if_cheapest(
    sample: Sample,
    query: Float[Tensor, "q dim"],
    tol: float,
    *,
    plan: str = "auto",
    categories: Categories | None = None,
    left_out: Float[Tensor, " n"] | None = None,
) -> FourierLines | None:
    """Value of the local line at each query, or None where `plan` does not choose the Fourier series.

    A feature of infinite bandwidth is a direction of the line too, and has no frequencies: None. So have categories.
    """
    chosen = plan_for(sample, query, tol=tol, forced=plan)
    if chosen.name != "fast" or categories is not None or not bool(torch.isfinite(sample.bandwidth).all()):
        return None
    changes = sample.x.amax(0) > sample.x.amin(0)
    if bool(changes.any()):  # a feature that never changes is none to a Gaussian, and has no slope
        sample = replace(sample, x=sample.x[:, changes], bandwidth=sample.bandwidth[changes])
        query = query[:, changes]
    return lines(sample, query, tol, left_out)


def lines(
    sample: Sample, query: Float[Tensor, "q dim"], tol: float, left_out: Float[Tensor, " n"] | None = None
) -> FourierLines:
    """Value of the local line at each query, for the Gaussian kernel and 1 to 3 features of finite bandwidth.

    Queries whose bound is above `tol` are left to the caller. With `left_out` the queries are the points themselves,
    and that much of a point's own weight does not count.
    """
    result = FourierLines(query.new_zeros(len(query), sample.values.shape[1]), query.new_full((len(query),), math.inf))
    known = sums(sample, query, tol)
    if known is None:
        return result
    data, rows, equations, log_unit = known
    if left_out is not None:
        # The point itself is at u = 0: it is in the sums of order 0 alone.
        own = left_out * math.exp(-log_unit)
        equations.matrix[0, 0] -= own
        equations.right[0] -= own * data.values.T
    for first in range(0, len(rows), QUERY_BLOCK):
        block = slice(first, first + QUERY_BLOCK)
        solved = _solve(equations.block(block))
        result.value[rows[block]] = torch.addcmul(data.mean, solved.value, data.scale)
        result.error[rows[block]] = solved.error
    return result


def sums(sample: Sample, query: Float[Tensor, "q dim"], tol: float, max_order: int = 2) -> Sums | None:
    """Normal equations of the queries within a box around the data; None where the box is too large for a series.

    Entries above `max_order` are left out.
    """
    data = standardise_by_axis(sample, query)
    box = series_in_box(data, tol)
    if box is None:
        return None
    series, near, rows = box
    return Sums(data, rows, *_equations(near, series, max_order))


def _equations(data: Standardised, series: Series, max_order: int = 2) -> tuple[Equations, float]:
    """Normal equations by a transform to the queries for each entry, and the log of the unit of the weights."""
    modes, mass, log_unit = spectrum(data, series)
    to_queries = nufft.plan(2, series.radians(data.query), series.modes, series.eps)
    (queries, dim), outputs = data.query.shape, data.values.shape[1]
    k, new = 1 + dim, data.query.new_empty
    error_by_order = [series.error(len(data.x), order) for order in range(3)]
    result = Equations(new(k, k, queries), new(k, outputs, queries), new(k, k, 1), new(k, outputs, 1))
    for (a, b), multiplier in _multipliers(series).items():
        order = (a > 0) + (b > 0)
        if order > max_order:
            continue
        packed = [to_queries((one * multiplier).unsqueeze(0)) for one in (modes if a == 0 else modes[:1])]
        weight, *columns = unpack(torch.cat(packed), outputs if a == 0 else 0)
        error = [(error_by_order[order] + SOLVER_ROUNDINGS * UNIT_ROUNDOFF) * one for one in mass]
        result.matrix[a, b] = result.matrix[b, a] = weight
        result.matrix_error[a, b] = result.matrix_error[b, a] = error[0]
        for column, total in enumerate(columns):
            result.right[b, column], result.right_error[b, column] = total, error[1 + column]
    return result, log_unit


def _multipliers(series: Series) -> dict[tuple[int, int], Tensor | float]:
    """Multipliers of the Fourier coefficients for each entry of M, on and above the diagonal."""
    kappa = series.frequencies()
    entries: dict[tuple[int, int], Tensor | float] = {(0, 0): 1.0}
    for a, one in enumerate(kappa, 1):
        entries[0, a] = 1j * one
        for b, two in enumerate(kappa[a - 1 :], a):
            entries[a, b] = float(a == b) - one * two
    return entries


def _solve(sums: Equations) -> FourierLines:
    """Value of the line at u = 0, and the bound z + G e of docs/en/regression-bound.md."""
    guess = gauss_jordan_inverse(sums.matrix)
    line = _product(guess, sums.right)
    residual = (_product(sums.matrix, line) - sums.right).abs() + sums.right_error
    residual += _product(sums.matrix_error, line.abs())
    identity = torch.eye(len(guess), dtype=guess.dtype).unsqueeze(2)
    growth = (_product(guess, sums.matrix) - identity).abs() + _product(guess.abs(), sums.matrix_error)
    shift = _product(guess.abs(), residual)  # (k, outputs, q)
    norm = growth.sum(1).amax(0)
    rest = growth[0].sum(0) * shift.amax(0) / torch.where(norm < 1, 1 - norm, math.nan)
    error = (shift[0] + rest).amax(0)
    return FourierLines(line[0].T, error.nan_to_num(nan=math.inf))


def _product(left: Float[Tensor, "a b #q"], right: Float[Tensor, "b c #q"]) -> Float[Tensor, "a c #q"]:
    """Products of many small matrices side by side."""
    return (left.unsqueeze(2) * right.unsqueeze(0)).sum(1)
