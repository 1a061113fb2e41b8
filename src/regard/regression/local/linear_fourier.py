"""Local lines at a million queries, by the same Fourier series as the average.

A line through the data near a query, a + b.(x - q) by weighted least squares, solves M (a, b) = t with

    M = sum_i s_i K_i (1, u_i) (1, u_i)^T,    t = sum_i s_i K_i (1, u_i) y_i,    u_i = x_i - q.

Each entry is a sum of order 0, 1 or 2 (`kernel_sums.fourier`), measured from the query itself, so that nothing large is
subtracted. Each query has a bound on the error of a, from what its sums may be off by: docs/en/regression-bound.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.regression.kernel_sums import nufft
from regard.regression.kernel_sums.fourier import Series, series_in_box, spectrum
from regard.regression.kernel_sums.plan import plan_for
from regard.regression.kernel_sums.sample import Sample, Standardised, standardise_by_axis

CHUNK = 2**14  # queries solved at a time: their matrices stay in the cache
SOLVING = 8  # roundings of an entry of M or t in what is computed from it


class Lines(NamedTuple):
    """The local line at each query itself, and a bound on its error, in standard deviations of y."""

    value: Float[Tensor, "q columns"]
    error: Float[Tensor, " q"]  # inf: nothing is known


class Equations(NamedTuple):
    """M and t of each query, with k = 1 + axes, and by how much an entry may be off."""

    matrix: Float[Tensor, "k k q"]
    right: Float[Tensor, "k columns q"]
    off_matrix: Float[Tensor, "k k 1"]
    off_right: Float[Tensor, "k columns 1"]

    def part(self, some: slice) -> Equations:
        return self._replace(matrix=self.matrix[..., some], right=self.right[..., some])


class Sums(NamedTuple):
    """Equations of some queries, in standardised units."""

    data: Standardised
    rows: Int[Tensor, " inside"]  # of the queries
    equations: Equations
    log_unit: float  # of the weights


def lines_if_cheapest(
    sample: Sample,
    query: Float[Tensor, "q dim"],
    *,
    tol: float = 1e-6,
    plan: str = "auto",
    left_out: Float[Tensor, " n"] | None = None,
) -> Lines | None:
    """The local line at each query, or None where the Fourier series is not the way that `plan` chooses.

    A feature of infinite bandwidth is a direction of the line too, and has no frequencies: None.
    """
    chosen = plan_for(sample, query, tol=tol, forced=plan)
    if chosen.name != "fast" or not bool(torch.isfinite(sample.bandwidth).all()):
        return None
    changes = sample.x.amax(0) > sample.x.amin(0)
    if bool(changes.any()):  # a feature that never changes is none to a Gaussian, and has no slope
        sample = replace(sample, x=sample.x[:, changes], bandwidth=sample.bandwidth[changes])
        query = query[:, changes]
    return lines(sample, query, tol, left_out)


def lines(
    sample: Sample, query: Float[Tensor, "q dim"], tol: float, left_out: Float[Tensor, " n"] | None = None
) -> Lines:
    """For the Gaussian kernel and 1 to 3 features of finite width; queries whose bound is above `tol` are the caller's.

    With `left_out` the queries are the points themselves, and that much of its own weight counts for none.
    """
    value, error = query.new_zeros(len(query), sample.values.shape[1]), query.new_full((len(query),), math.inf)
    known = sums(sample, query, tol)
    if known is None:
        return Lines(value, error)
    data, rows, equations, log_unit = known
    if left_out is not None:
        # The point itself is at u = 0: it is in the sums of order 0 alone.
        own = left_out * math.exp(-log_unit)
        equations.matrix[0, 0] -= own
        equations.right[0] -= own * data.values.T
    for first in range(0, len(rows), CHUNK):
        block = slice(first, first + CHUNK)
        solved = _solved(equations.part(block))
        value[rows[block]] = torch.addcmul(data.mean, solved.value, data.scale)
        error[rows[block]] = solved.error
    return Lines(value, error)


def sums(sample: Sample, query: Float[Tensor, "q dim"], tol: float) -> Sums | None:
    """M and t of the queries that a box around the data holds; None where there is no such box."""
    data = standardise_by_axis(sample, query)
    box = series_in_box(data, tol)
    if box is None:
        return None
    series, inside = box
    rows = torch.arange(len(query)) if inside is None else inside
    near = data if inside is None else data.with_query(data.query.T[:, rows].T)
    return Sums(data, rows, *_equations(near, series))


def _equations(data: Standardised, series: Series) -> tuple[Equations, float]:
    """M and t at queries that are all in the box, and the log of the weights' unit."""
    modes, mass, log_unit = spectrum(data, series)
    transform = nufft.plan(2, series.radians(data.query), series.modes, series.eps)
    (queries, dim), columns = data.query.shape, data.values.shape[1]
    k, new = 1 + dim, data.query.new_empty
    off = [series.error(len(data.x), order) for order in range(3)]
    result = Equations(new(k, k, queries), new(k, columns, queries), new(k, k, 1), new(k, columns, 1))
    for (a, b), multiplier in _multipliers(series).items():
        slack = [(off[(a > 0) + (b > 0)] + SOLVING * nufft.UNIT_ROUNDOFF) * one for one in mass]
        result.off_matrix[a, b] = result.off_matrix[b, a] = slack[0]
        for row, one in enumerate(modes if a == 0 else modes[:1]):
            sums = torch.view_as_real(transform((one * multiplier).unsqueeze(0))[0])
            if row == 0:
                result.matrix[a, b] = result.matrix[b, a] = sums[:, 0]
            for part in (0, 1):
                column = 2 * row + part - 1
                if a == 0 and 0 <= column < columns:
                    result.right[b, column], result.off_right[b, column] = sums[:, part], slack[row]
    return result, log_unit


def _multipliers(series: Series) -> dict[tuple[int, int], Tensor | float]:
    """Of each entry of M, above and on the diagonal."""
    kappa = series.frequencies()
    found: dict[tuple[int, int], Tensor | float] = {(0, 0): 1.0}
    for a, one in enumerate(kappa, 1):
        found[0, a] = 1j * one
        for b, two in enumerate(kappa[a - 1 :], a):
            found[a, b] = float(a == b) - one * two
    return found


def _solved(sums: Equations) -> Lines:
    """The line at u = 0, and its bound: z + G e, as the documents have it."""
    guess = _inverse(sums.matrix)
    line = _product(guess, sums.right)
    missed = (_product(sums.matrix, line) - sums.right).abs() + sums.off_right
    missed += _product(sums.off_matrix, line.abs())
    unit = torch.eye(len(guess), dtype=guess.dtype).unsqueeze(2)
    grown = (_product(guess, sums.matrix) - unit).abs() + _product(guess.abs(), sums.off_matrix)
    shift = _product(guess.abs(), missed)  # (k, columns, q)
    most = grown.sum(1).amax(0)
    rest = grown[0].sum(0) * shift.amax(0) / torch.where(most < 1, 1 - most, math.nan)
    error = (shift[0] + rest).amax(0)
    return Lines(line[0].T, error.nan_to_num(nan=math.inf))


def _product(left: Float[Tensor, "a b #q"], right: Float[Tensor, "b c #q"]) -> Float[Tensor, "a c #q"]:
    """Of many small matrices, side by side."""
    return (left.unsqueeze(2) * right.unsqueeze(0)).sum(1)


def _inverse(matrix: Float[Tensor, "k k q"]) -> Float[Tensor, "k k q"]:
    """By Gauss and Jordan, without pivots: the bound does not trust it, it looks at what it does to `matrix`."""
    work = matrix.clone()
    for pivot in range(len(work)):
        column, one = work[:, pivot].clone(), 1 / work[pivot, pivot]
        column[pivot] = 0.0
        row = work[pivot] * one
        row[pivot] = one
        work[:, pivot] = 0.0
        work[pivot] = 0.0
        work -= column.unsqueeze(1) * row.unsqueeze(0)
        work[pivot] = row
    return work
