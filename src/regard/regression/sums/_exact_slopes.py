"""Slopes of the Gaussian average from the points themselves, for data of a great many bandwidths.

The slope is the covariance of x and y around a query over h^2. As a difference of averages it keeps the rounding of
x / h, and over a bandwidth that is small beside the data nothing else would be left of it.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression.sums import _apart
from regard.regression.sums._apart import Seen
from regard.regression.sums._sample import Sample


def slopes(sample: Sample, query: Float[Tensor, "q dim"]) -> Float[Tensor, "q dim outputs"]:
    """df/dx at each query, in the units of x and y; 0 along a feature of infinite width."""
    problem, found = _apart.answered(sample, query, _covariance)
    told = torch.isfinite(sample.bandwidth)
    slope = query.new_zeros(*query.shape, sample.values.shape[1])
    by_width = found.mean.unflatten(1, (int(told.sum()), -1)) * problem.unit
    slope[:, told] = by_width / sample.bandwidth[told].unsqueeze(1)
    return slope


def _covariance(seen: Seen) -> Float[Tensor, "q products"]:
    """Of places and values, in bandwidths and units of the values."""
    place = (seen.weights * seen.apart).sum(2, keepdim=True)
    around = seen.weights * (seen.apart - place)  # (dim, q, n)
    found = around @ seen.values - around.sum(2, keepdim=True) * (seen.weights @ seen.values)
    return found.transpose(0, 1).flatten(1)
