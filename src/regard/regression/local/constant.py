"""Local constant regression (degree 0, Nadaraya-Watson): at each query the kernel average of y, which is attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression.kernel_sums.plan import plan_for
from regard.regression.kernel_sums.relative_weights import Neighbourhood, Statistic, weight_gradient
from regard.regression.local import extrapolation, linear_fourier
from regard.regression.local.data import Data, Noise
from regard.regression.local.least_squares import Frame, products, tol_of_averages
from regard.weights import Weights

WIDEST_FOR_AVERAGES = 1e6  # bandwidths between points: above, a difference of averages has lost 12 of 16 digits


@dataclass(frozen=True, eq=False)
class LocalConstant:
    """Local constant fit f(x) = sum_i p_i(x) y_i with p_i(x) = s_i K_i(x) / sum_j s_j K_j(x)."""

    data: Data
    degree: ClassVar[int] = 0

    def predict(self, query: Float[Tensor, "q features"]) -> Float[Tensor, "q outputs"]:
        """Kernel average of y at each query, with an error of at most `tol` standard deviations of y."""
        pooled = self.data.pool(query)
        return extrapolation.answer(self.data, query, pooled.lse, pooled.mean)

    def noise(self, query: Float[Tensor, "q features"], variance: Float[Tensor, "n outputs"]) -> Noise:
        """Variance of a row near each query, and the share of it that stays in the prediction."""
        pooled = self.data.pool(query, variance)
        squares = self.data.pool_squared(query, pooled.lse, torch.zeros_like(variance[:, :1])).lse.exp()
        return extrapolation.noise(self.data, query, pooled.lse, variance, Noise(pooled.mean, squares, 1 / squares))

    def derivative(self, query: Float[Tensor, "q features"]) -> Float[Tensor, "q features outputs"]:
        """df/dx. For the Gaussian kernel it is Cov(x, y) / h^2 under p."""
        data = self.data
        if data.sample.kernel == "gaussian":
            return data.all_features(_gaussian_derivative(data, query))
        lse, slope = data.from_points(query, _exact_derivative(data))
        return data.all_features(extrapolation.slope(data, lse, slope))

    def weights(self, query: Float[Tensor, "q features"]) -> Weights:
        """Weights p of the points at each query, as a matrix that is never built."""
        return self.data.weights(query)

    def leverage(self) -> Float[Tensor, " n"]:
        """Diagonal of the smoother: p_ii, the weight of a point's own y in its fit."""
        x = self.data.table()
        return self.data.own_weight(self.data.pool(x, torch.zeros_like(x[:, :1])).lse)


def _gaussian_derivative(data: Data, query: Float[Tensor, "q features"]) -> Float[Tensor, "q dim outputs"]:
    """Derivative by Fourier series where its error is below `tol` standard deviations of y / h, else by covariances."""
    plan = plan_for(data.sample, data.numeric(query), tol=data.tol, forced=data.plan)
    if plan.name != "fast" or data.categories is not None:
        return _from_covariance(data, query)
    slope, error = linear_fourier.gradient(data.sample, query, data.tol)
    redo = (~(error <= data.tol)).nonzero().squeeze(-1)
    if len(redo):
        slope[redo] = _from_covariance(data, query[redo])
    return slope


def _from_covariance(data: Data, query: Float[Tensor, "q features"]) -> Float[Tensor, "q dim outputs"]:
    x, width = data.sample.x, data.sample.bandwidth.unsqueeze(1)
    if not bool(((x.amax(0) - x.amin(0)) > WIDEST_FOR_AVERAGES * width.squeeze(1)).any()):
        return covariance(data, query) / width.square()
    return data.from_points(query, _exact_derivative(data))[1]


def _exact_derivative(data: Data) -> Statistic:
    """df/dx from the points around each query: the weights p change with x."""
    values = data.sample.values - data.sample.values.mean(0)

    def derivative(near: Neighbourhood) -> tuple[Float[Tensor, "q dim outputs"]]:
        y, pull = values[near.points], weight_gradient(data.sample, near)
        return (pull @ y - pull.sum(2, keepdim=True) * (near.weights @ y).unsqueeze(1),)

    return derivative


def covariance(data: Data, query: Float[Tensor, "q features"]) -> Float[Tensor, "q dim outputs"]:
    """Cov(x, y) around each query, from averages of x, y and x y'."""
    frame = Frame.of(data.sample)
    v, y = frame.place(data.sample.x), data.sample.values - frame.level
    mean = data.pool(query, torch.cat([v, y, products(v, y)], 1), tol_of_averages(data.tol, v, 1)).mean
    mean_v, mean_y, mean_vy = mean.split([v.shape[1], y.shape[1], v.shape[1] * y.shape[1]], 1)
    in_frame = mean_vy.unflatten(1, (v.shape[1], y.shape[1])) - mean_v.unsqueeze(2) * mean_y.unsqueeze(1)
    return in_frame * frame.unit.unsqueeze(1)
