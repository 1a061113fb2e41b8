"""How a Gaussian average changes with the query, by the same Fourier series as the average itself.

The derivative of each mode is the mode times i kappa, so the sums D' and N' are one more transform for each axis and
nothing is subtracted that is large: f = N / D has the slope (N' - f D') / D. Each query has a bound on the error of its
slopes, in standard deviations of y over a bandwidth; docs/en/regression-bound.md argues it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression.kernel_sums import nufft
from regard.regression.kernel_sums.cloud import Cloud
from regard.regression.kernel_sums.fourier import Series, box, packed
from regard.regression.kernel_sums.fourier_multipliers import error_of, frequencies
from regard.regression.kernel_sums.sample import Sample


class Slopes(NamedTuple):
    """df/dx at each query, and a bound on the error, in standard deviations of y over a bandwidth."""

    slope: Float[Tensor, "q dim columns"]
    error: Float[Tensor, " q"]  # inf: nothing is known


def slopes(sample: Sample, query: Float[Tensor, "q dim"], tol: float) -> Slopes:
    """For the Gaussian kernel and 1 to 3 features that count; queries whose bound is above `tol` are the caller's."""
    counts = torch.isfinite(sample.bandwidth)
    cloud, at = Cloud.of(sample, query, counts)
    columns = sample.values.shape[1]
    slope, error = query.new_zeros(len(query), len(counts), columns), query.new_full((len(query),), math.inf)
    if cloud.n == 0:
        return Slopes(slope, error)
    series, inside = box(cloud, at, tol)
    if not series.fits:
        return Slopes(slope, error)
    places = torch.arange(len(query)) if inside is None else inside.nonzero().squeeze(-1)
    found, bound = _summed(cloud, at if inside is None else at[:, places], series)
    for axis, feature in enumerate(counts.nonzero().flatten().tolist()):
        slope[places, feature] = found[axis] * (cloud.unit / sample.bandwidth[feature].cpu())
    error[places] = bound
    return Slopes(slope, error)


def _summed(cloud: Cloud, at: Float[Tensor, "axes q"], series: Series) -> Slopes:
    """Slopes by axis (axes, q, columns) in units of the cloud, and their bounds."""
    strengths = packed(cloud)
    mass = strengths.abs().sum(1)
    turn = 2 * math.pi / torch.tensor(series.periods, dtype=torch.float64).unsqueeze(-1)
    modes = nufft.type1(cloud.x * turn, strengths, series.modes, series.eps) * series.coefficients()
    del strengths
    kinds = torch.cat([modes, *(modes * 1j * kappa for kappa in frequencies(series))])
    sums = torch.view_as_real(nufft.type2(at * turn, kinds, series.eps)).unflatten(0, (-1, len(modes)))
    off, off_slope = series.error(cloud.n) * mass, error_of(series, cloud.n, 1) * mass
    return _quotients(sums, cloud.columns, off, off_slope)


def _quotients(sums: Float[Tensor, "kinds rows q 2"], columns: int, off: Tensor, off_slope: Tensor) -> Slopes:
    """The rule for a quotient, and what the errors of its four parts do to it."""
    weight, weight_slopes = sums[0, 0, :, 0], sums[1:, 0, :, 0]
    least = weight - off[0]
    least = torch.where(least > 0, least, math.nan)
    found = sums.new_empty(len(weight_slopes), len(weight), columns)
    worst = torch.zeros_like(weight)
    for column in range(columns):
        row, part = divmod(column + 1, 2)
        mean = sums[0, row, :, part] / weight
        off_mean = (off[row] + off[0] * mean.abs()) / least
        for axis, weight_slope in enumerate(weight_slopes):
            one = (sums[1 + axis, row, :, part] - mean * weight_slope) / weight
            error = off_slope[row] + mean.abs() * off_slope[0] + off[0] * one.abs()
            error += off_mean * (weight_slope.abs() + off_slope[0])
            worst = torch.maximum(worst, error / least)
            found[axis, :, column] = one
    return Slopes(found, worst.nan_to_num(nan=math.inf))
