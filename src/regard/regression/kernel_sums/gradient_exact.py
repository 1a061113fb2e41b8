"""Slopes of the Gaussian average from the points themselves, for data of a great many bandwidths.

The slope is the covariance of x and y around a query over h^2. As a difference of averages it keeps the rounding of
x / h, and over a bandwidth that is small beside the data nothing else would be left of it.
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from regard.regression.kernel_sums.relative_weights import Answer, Seen


def exact_covariance(values: Float[Tensor, "n outputs"]) -> Answer:
    """Of places and values under the weights around each query, (q, dim, outputs), places in bandwidths."""
    values = values - values.mean(0)

    def covariance(seen: Seen) -> tuple[Float[Tensor, "q dim outputs"]]:
        here, weights = values[seen.points], seen.weights.unsqueeze(1)
        around = weights * (seen.apart - (weights * seen.apart).sum(2, keepdim=True))
        return (around @ here - around.sum(2, keepdim=True) * (weights @ here),)

    return covariance
