"""Local lines from the points around each query: exact whatever the data, for every question about a line."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from regard import kernels
from regard.regression.kernel_sums.relative_weights import Neighbourhood, Statistic, feature_units
from regard.regression.kernel_sums.sample import Sample
from regard.regression.local.least_squares import PointFit, fit_points


def fit_neighbourhood(near: Neighbourhood, values: Float[Tensor, "n outputs"]) -> PointFit:
    """Lines through the points around some queries; `values` has a row for every point of the data."""
    return fit_points(near.weights, near.offset, near.query_offset, values[near.points])


def value_at(values: Float[Tensor, "n outputs"]) -> Statistic:
    """Value of the line at each query."""
    return lambda near: (fit_neighbourhood(near, values).value(values[near.points]),)


def rows_at(values: Float[Tensor, "n outputs"]) -> Statistic:
    """Rows l of the smoother, with a column for every point of the data."""

    def statistic(near: Neighbourhood) -> tuple[Tensor]:
        whole = values.new_zeros(len(near.queries), len(values))
        whole[:, near.points] = fit_neighbourhood(near, values[:, :0]).rows
        return (whole,)

    return statistic


def mahalanobis_at(values: Float[Tensor, "n outputs"]) -> Statistic:
    """Squared Mahalanobis distance of each query from the mean of its points, (v - m)' S^+ (v - m)."""
    return lambda near: (fit_neighbourhood(near, values[:, :0]).mahalanobis,)


def noise_at(variance: Float[Tensor, "n outputs"], weight: Float[Tensor, " n"] | None) -> Statistic:
    """Sums p_i variance_i, l_i^2 / s_i and p_i^2 / s_i over the points, with s the weights of the sample."""

    def statistic(near: Neighbourhood) -> tuple[Tensor, Tensor, Tensor]:
        rows, level = fit_neighbourhood(near, variance[:, :0]).rows, near.weights
        if weight is not None:
            root = weight[near.points].sqrt()
            rows, level = rows / root, level / root
        return near.weights @ variance[near.points], rows.square().sum(1), level.square().sum(1)

    return statistic


def derivative_at(sample: Sample, values: Float[Tensor, "n outputs"]) -> Statistic:
    """df/dx at each query, (q, dim, outputs).

    The line moves with its weights w: df = b.dx + sum_i l_i e_i dw_i / w_i, with b its slope and e its residuals.
    """
    kernel, finite, unit = (
        kernels.get(sample.kernel),
        torch.isfinite(sample.bandwidth),
        feature_units(sample).unsqueeze(1),
    )

    def statistic(near: Neighbourhood) -> tuple[Tensor]:
        fit, y = fit_neighbourhood(near, values), values[near.points]
        slope_of_weight = kernel.weight_derivative(near.square, near.weights, near.lse, near.log_weight)
        slope_of_weight = slope_of_weight * (1 + (fit.tilt.unsqueeze(1) @ fit.around).squeeze(1))
        toward = torch.where(finite.unsqueeze(1), near.offset - near.query_offset.unsqueeze(2), 0.0)  # (q, dim, n)
        pull = slope_of_weight.unsqueeze(1) * toward
        residual = pull @ y - pull.sum(2, keepdim=True) * fit.level.unsqueeze(1)
        return ((fit.slope + residual - (pull @ fit.around.mT) @ fit.slope) / unit,)

    return statistic
