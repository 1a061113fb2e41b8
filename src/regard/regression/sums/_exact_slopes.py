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
    values = sample.values - sample.values.mean(0)

    def covariance(seen: Seen) -> tuple[Float[Tensor, "q dim outputs"]]:
        """Of places and values, in bandwidths and units of the values."""
        here, weights = values[seen.points], seen.weights.unsqueeze(1)
        around = weights * (seen.apart - (weights * seen.apart).sum(2, keepdim=True))
        return (around @ here - around.sum(2, keepdim=True) * (weights @ here),)

    _, found = _apart.answered(sample, query, covariance)
    width = sample.bandwidth.unsqueeze(1)
    return torch.where(torch.isfinite(width), found / width, 0.0)
