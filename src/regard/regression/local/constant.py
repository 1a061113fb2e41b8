"""Degree 0: at each query the kernel average of y, which is attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.operands import NEVER
from regard.regression.kernel_sums.relative_weights import covariance_with
from regard.regression.local import extrapolation, squared_weights
from regard.regression.local.data import Data
from regard.regression.local.moments import by_autograd, covariance
from regard.regression.local.squared_weights import Noise
from regard.weights import Weights

WIDE = 1e6  # bandwidths between points, above which a difference of averages has lost too many digits


@dataclass(frozen=True, eq=False)
class LocalConstant:
    """f(x) = sum_i p_i(x) y_i with p_i(x) = s_i K_i(x) / sum_j s_j K_j(x)."""

    data: Data
    degree: ClassVar[int] = 0

    def predict(self, query: Float[Tensor, "q dim"]) -> Float[Tensor, "q outputs"]:
        return extrapolation.answer(self.data, query, self.data.pool(query)).mean

    def noise(self, query: Float[Tensor, "q dim"], variance: Float[Tensor, "n outputs"]) -> Noise:
        """The variance of a row near each query, and how much of it the prediction keeps."""
        pooled = self.data.pool(query, variance)
        squares = squared_weights.pool(self.data, query, pooled.lse, torch.zeros_like(variance[:, :1])).lse.exp()
        return extrapolation.noise(self.data, query, variance, pooled, Noise(pooled.mean, squares, 1 / squares))

    def derivative(self, query: Float[Tensor, "q dim"]) -> Float[Tensor, "q dim outputs"]:
        """df/dx. For the Gaussian it is the covariance of x and y under p, over h^2; for others, by autograd."""
        data = self.data
        if data.sample.kernel == "gaussian":
            return data.spread_out(_gaussian_slopes(data, query))
        slope = by_autograd(lambda place: data.differentiable(place, data.sample.values), query)
        far = data.pool(query, torch.zeros_like(data.sample.values[:, :1])).lse == NEVER
        return data.spread_out(data.points(extrapolation.slope(data, far, slope)))

    def weights(self, query: Float[Tensor, "q dim"]) -> Weights:
        return self.data.weights(query)

    def leverage(self) -> Float[Tensor, " n"]:
        """p_ii, how much a point's own y decides its fit: K(0) = 1 over the sum of its row."""
        x = self.data.table()
        return own_weight(self.data, self.data.pool(x, torch.zeros_like(x[:, :1])).lse)


def _gaussian_slopes(data: Data, query: Float[Tensor, "q dim"]) -> Float[Tensor, "q dim outputs"]:
    """By the fast sum where that is certain to `tol` standard deviations of y over h, else from covariances."""
    found = data.gradient(query)
    if found is None:
        return _from_points(data, query)
    redo = (~(found.error <= data.tol)).nonzero().squeeze(-1)
    if len(redo):
        found.gradient[redo] = _from_points(data, query[redo])
    return found.gradient


def _from_points(data: Data, query: Float[Tensor, "q dim"]) -> Float[Tensor, "q dim outputs"]:
    x, width = data.sample.x, data.sample.bandwidth.unsqueeze(1)
    if not bool(((x.amax(0) - x.amin(0)) > WIDE * width.squeeze(1)).any()):
        return covariance(data, query) / width.square()
    _, found = data.near(query, covariance_with(data.sample.values))
    return torch.where(torch.isfinite(width), found / width, 0.0)


def own_weight(data: Data, lse: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """The weight of each point for itself, from the row sums at the data."""
    log_weight = data.sample.log_weight
    return torch.exp(-lse if log_weight is None else log_weight - lse)
