"""The gradient of a Gaussian average in the query, by the Fourier series of the average itself.

The derivative of each mode is the mode times i kappa, so the sums D' and N' are one more transform for each axis and
nothing is subtracted that is large: f = N / D has the gradient (N' - f D') / D. Each query has a bound on the error of
its gradient, in standard deviations of y over a bandwidth; docs/en/regression-bound.md derives it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression.kernel_sums import nufft
from regard.regression.kernel_sums.fourier import Series, series_in_box, spectrum
from regard.regression.kernel_sums.sample import Sample, Standardised, standardise_by_axis


class Gradient(NamedTuple):
    """df/dx at each query, and a bound on the error, in standard deviations of y over a bandwidth."""

    gradient: Float[Tensor, "q dim columns"]
    error: Float[Tensor, " q"]  # inf: nothing is known


def gradient(sample: Sample, query: Float[Tensor, "q dim"], tol: float) -> Gradient:
    """df/dx of a Gaussian average with 1 to 3 features of finite bandwidth; where the error is above `tol`, the caller
    computes it otherwise.
    """
    dim, columns = len(sample.bandwidth), sample.values.shape[1]
    result = Gradient(query.new_zeros(len(query), dim, columns), query.new_full((len(query),), math.inf))
    data = standardise_by_axis(sample, query)
    box = series_in_box(data, tol)
    if box is None:
        return result
    series, inside = box
    rows = torch.arange(len(query)) if inside is None else inside
    by_axis, error = _gradient_inside(data if inside is None else data.with_query(data.query.T[:, rows].T), series)
    for axis, feature in enumerate(torch.isfinite(sample.bandwidth).nonzero().flatten().tolist()):
        result.gradient[rows, feature] = by_axis[axis] * (data.scale / sample.bandwidth[feature])
    result.error[rows] = error
    return result


def _gradient_inside(data: Standardised, series: Series) -> tuple[Float[Tensor, "axes q columns"], Float[Tensor, " q"]]:
    """df/dx by axis in standardised units, and its bound, at queries that are all in the box."""
    modes, mass, _ = spectrum(data, series)
    derivatives = [modes * 1j * kappa for kappa in series.frequencies()]
    sums = nufft.type2(series.radians(data.query), torch.cat([modes, *derivatives]), series.eps)
    by_order = torch.view_as_real(sums).unflatten(0, (-1, len(modes)))
    n, rows = len(data.x), torch.tensor(mass, dtype=torch.float64)
    return _quotients(by_order, data.values.shape[1], series.error(n) * rows, series.error(n, 1) * rows)


def _quotients(
    sums: Float[Tensor, "functions rows q 2"],
    columns: int,
    off: Float[Tensor, " rows"],
    off_derivative: Float[Tensor, " rows"],
) -> tuple[Float[Tensor, "axes q columns"], Float[Tensor, " q"]]:
    """The quotient rule, and what the errors of its four parts do to it."""
    weight, weight_derivatives = sums[0, 0, :, 0], sums[1:, 0, :, 0]
    least = weight - off[0]
    least = torch.where(least > 0, least, math.nan)
    by_axis = sums.new_empty(len(weight_derivatives), len(weight), columns)
    worst = torch.zeros_like(weight)
    for column in range(columns):
        row, part = divmod(column + 1, 2)
        mean = sums[0, row, :, part] / weight
        off_mean = (off[row] + off[0] * mean.abs()) / least
        for axis, weight_derivative in enumerate(weight_derivatives):
            one = (sums[1 + axis, row, :, part] - mean * weight_derivative) / weight
            error = off_derivative[row] + mean.abs() * off_derivative[0] + off[0] * one.abs()
            error += off_mean * (weight_derivative.abs() + off_derivative[0])
            worst = torch.maximum(worst, error / least)
            by_axis[axis, :, column] = one
    return by_axis, worst.nan_to_num(nan=math.inf)
