"""Local lines at a million queries, by the same Fourier series as the average.

A line through the data near a query, a + b.(x - q) by weighted least squares, solves M (a, b) = t with

    M = sum_i s_i K_i (1, u_i) (1, u_i)^T,    t = sum_i s_i K_i (1, u_i) y_i,    u_i = x_i - q.

Each entry is a sum of order 0, 1 or 2 (`_multipliers`), measured from the query itself, so that nothing is subtracted
that is large. Each query has a bound on the error of a, from what its sums may be off by: docs/en/regression-bound.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.regression.kernel_sums import engine, nufft
from regard.regression.kernel_sums.cloud import Cloud
from regard.regression.kernel_sums.fourier import Series, box, packed
from regard.regression.kernel_sums.fourier_multipliers import error_of, frequencies
from regard.regression.kernel_sums.sample import Sample

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
    """Equations of some queries, in the units of a cloud."""

    cloud: Cloud
    places: Int[Tensor, " some"]  # which queries these are
    found: Equations


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
    way = engine.way_of(sample, query, tol=tol, plan=plan)
    if way.name != "fast" or not bool(torch.isfinite(sample.bandwidth).all()):
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
    cloud, places, found = known
    if left_out is not None:
        # The point itself is at u = 0: it is in the sums of order 0 alone.
        own = left_out.cpu() * math.exp(-cloud.top)
        found.matrix[0, 0] -= own
        found.right[0] -= own * cloud.values.T
    for first in range(0, len(places), CHUNK):
        some = slice(first, first + CHUNK)
        solved = _solved(found.part(some))
        value[places[some]] = torch.addcmul(cloud.mean, solved.value, cloud.unit).to(value.device)
        error[places[some]] = solved.error.to(error.device)
    return Lines(value, error)


def sums(sample: Sample, query: Float[Tensor, "q dim"], tol: float) -> Sums | None:
    """M and t of the queries that a box around the data holds; None where there is no such box."""
    cloud, at = Cloud.of(sample, query, torch.isfinite(sample.bandwidth))
    if cloud.n == 0:
        return None
    series, inside = box(cloud, at, tol)
    if not series.fits:
        return None
    places = torch.arange(len(query)) if inside is None else inside.nonzero().squeeze(-1)
    return Sums(cloud, places, _equations(cloud, at if inside is None else at[:, places], series))


def _equations(cloud: Cloud, at: Float[Tensor, "axes q"], series: Series) -> Equations:
    strengths = packed(cloud)
    mass = strengths.abs().sum(1)
    turn = 2 * math.pi / torch.tensor(series.periods, dtype=torch.float64).unsqueeze(-1)
    modes = nufft.type1(cloud.x * turn, strengths, series.modes, series.eps) * series.coefficients()
    del strengths
    there = nufft.planned(2, at * turn, series.modes, series.eps)
    k = 1 + len(at)
    off = [series.error(cloud.n), error_of(series, cloud.n, 1), error_of(series, cloud.n, 2)]
    found = Equations(
        at.new_empty(k, k, at.shape[1]),
        at.new_empty(k, cloud.columns, at.shape[1]),
        at.new_empty(k, k, 1),
        at.new_empty(k, cloud.columns, 1),
    )
    for (a, b), multiplier in _multipliers(series).items():
        order = (a > 0) + (b > 0)
        slack = (off[order] + SOLVING * nufft.ROUNDING) * mass
        found.off_matrix[a, b] = found.off_matrix[b, a] = slack[0]
        for row, one in enumerate(modes if a == 0 else modes[:1]):
            sums = torch.view_as_real(there((one * multiplier).unsqueeze(0))[0])
            if row == 0:
                found.matrix[a, b] = found.matrix[b, a] = sums[:, 0]
            for part in (0, 1):
                column = 2 * row + part - 1
                if a == 0 and 0 <= column < cloud.columns:
                    found.right[b, column], found.off_right[b, column] = sums[:, part], slack[row]
    return found


def _multipliers(series: Series) -> dict[tuple[int, int], Tensor | float]:
    """Of each entry of M, above and on the diagonal."""
    kappa = frequencies(series)
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
