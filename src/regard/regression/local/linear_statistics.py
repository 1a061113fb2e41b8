"""Statistics of the local line at each query: exact, from the points around it, or fast, from kernel averages.

The points are exact whatever the data. Averages are fast where pairs are many, and have an error bound for each query.
A covariance is a difference of averages there, E[v y] - E[v] E[y]. Its error comes from the errors of the averages,
which they report, and from rounding, which is a share of the numbers that are added. Each fast function returns its
results and the queries where that error, or a nearly flat direction, may matter: those are to be computed from the
points (`linear`), so that one place decides which directions are flat.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.operands import NEVER
from regard.regression.kernel_sums.relative_weights import Neighbourhood, feature_units, weight_gradient
from regard.regression.kernel_sums.sample import Sample, scale_of
from regard.regression.kernel_sums.state import Pooled
from regard.regression.local.least_squares import (
    Frame,
    MomentErrors,
    Moments,
    PointFit,
    fit_points,
    moment_columns,
    tol_of_averages,
)

SUM_ROUNDING = 2.0**-46  # relative rounding of an average: 128 x that of one number
LEAST_OTHERS_FOR_MOMENTS = 1e-3  # share of the other points at a row: below, leaving the row out has lost 3 digits

Pool = Callable[[Float[Tensor, "n columns"], float], Pooled]  # averages of columns at all queries, within an error
Results = tuple[tuple[Tensor, ...], Bool[Tensor, " q"]]  # the log of the total weight and more; which are in doubt


# From the points: each function is a `Statistic` once its first arguments are bound


def fit_neighbourhood(near: Neighbourhood, values: Float[Tensor, "n outputs"]) -> PointFit:
    """Lines through the points around some queries; `values` has a row for every point of the data."""
    return fit_points(near.weights, near.offset, near.query_offset, values[near.points])


def exact_value(values: Float[Tensor, "n outputs"], near: Neighbourhood) -> tuple[Float[Tensor, "q outputs"]]:
    """Value of the line at each query."""
    return (fit_neighbourhood(near, values).value(values[near.points]),)


def exact_rows(values: Float[Tensor, "n outputs"], near: Neighbourhood) -> tuple[Float[Tensor, "q n"]]:
    """Rows l of the smoother, with a column for every point of the data."""
    whole = values.new_zeros(len(near.queries), len(values))
    whole[:, near.points] = fit_neighbourhood(near, values[:, :0]).rows
    return (whole,)


def exact_mahalanobis(values: Float[Tensor, "n outputs"], near: Neighbourhood) -> tuple[Float[Tensor, " q"]]:
    """Squared Mahalanobis distance of each query from the mean of its points, (v - m)' S^+ (v - m)."""
    return (fit_neighbourhood(near, values[:, :0]).mahalanobis,)


def exact_noise(
    variance: Float[Tensor, "n outputs"], weight: Float[Tensor, " n"] | None, near: Neighbourhood
) -> tuple[Float[Tensor, "q outputs"], Float[Tensor, " q"], Float[Tensor, " q"]]:
    """Sums p_i variance_i, l_i^2 / s_i and p_i^2 / s_i over the points, with s the weights of the sample."""
    rows, level = fit_neighbourhood(near, variance[:, :0]).rows, near.weights
    if weight is not None:
        root = weight[near.points].sqrt()
        rows, level = rows / root, level / root
    return near.weights @ variance[near.points], rows.square().sum(1), level.square().sum(1)


def exact_derivative(
    sample: Sample, values: Float[Tensor, "n outputs"], near: Neighbourhood
) -> tuple[Float[Tensor, "q dim outputs"]]:
    """df/dx at each query.

    The line moves with its weights w: df = b.dx + sum_i l_i e_i dw_i / w_i, with b its slope and e its residuals.
    """
    fit, y = fit_neighbourhood(near, values), values[near.points]
    pull = weight_gradient(sample, near, 1 + (fit.tilt.unsqueeze(1) @ fit.around).squeeze(1))
    residual = pull @ y - pull.sum(2, keepdim=True) * fit.level.unsqueeze(1) - (pull @ fit.around.mT) @ fit.slope
    return (fit.slope / feature_units(sample).unsqueeze(1) + residual,)


# From averages


@dataclass(frozen=True, eq=False)
class Averages:
    """Moments around each query, and bounds on the errors of the averages that they are made of."""

    lse: Float[Tensor, " q"]
    moments: Moments
    errors: Float[Tensor, "q columns"]

    @classmethod
    def of(cls, sample: Sample, query: Float[Tensor, "q dim"], pool: Pool, tol: float) -> tuple[Averages, Frame]:
        """Averages around each query, and their frame. A constant feature has no slope, and is left out."""
        changes = sample.x.amax(0) > sample.x.amin(0)
        sample = replace(sample, x=sample.x[:, changes], bandwidth=sample.bandwidth[changes])
        frame = Frame.of(sample)
        columns = frame.columns(sample.x, sample.values)
        dim, outputs = len(frame.centre), len(frame.level)
        pooled = pool(columns, tol_of_averages(tol, columns[:, :dim], 2))
        moments = Moments.of(frame.place(query[:, changes]), pooled.mean, outputs)
        size = (moments.vv.diagonal(dim1=1, dim2=2).clamp_min(0) + moments.v.square()).sqrt() + moments.away.abs()
        largest_y = columns[:, dim : dim + outputs].abs().amax(0).expand(len(size), -1)
        # Averages are computed from the mean of each column, which in heavy tails is larger than all that is near.
        added = moment_columns(size, largest_y) + columns.abs().mean(0)
        errors = pooled.error.unsqueeze(1) * scale_of(columns) + SUM_ROUNDING * added
        return cls(pooled.lse, moments, errors), frame

    @cached_property
    def moment_errors(self) -> MomentErrors:
        return MomentErrors.of(self.moments, self.errors, self.moments.v)

    def value(self, tol: Float[Tensor, " outputs"]) -> tuple[Float[Tensor, "q outputs"], Bool[Tensor, " q"]]:
        """Value of the line at each query, less the level of the frame, and where its error may be above `tol`."""
        value, error = self.moments.line(self.moment_errors)
        return value, self.doubt(~(error <= tol).all(1))

    def doubt(self, inaccurate: Bool[Tensor, " q"]) -> Bool[Tensor, " q"]:
        """Queries that are inaccurate or maybe flat; not those without a point in reach, which are certain."""
        return (inaccurate | self.moments.maybe_flat(self.moment_errors)) & (self.lse > NEVER)


def fast_value(sample: Sample, query: Float[Tensor, "q dim"], pool: Pool, tol: float) -> Results:
    """Value of the line at each query, less the mean of y."""
    around, frame = Averages.of(sample, query, pool, tol)
    line, doubt = around.value(tol * scale_of(sample.values))
    return (around.lse, frame.level + line - sample.values.mean(0)), doubt


def fast_leave_one_out_value(
    sample: Sample, pool: Pool, tol: float, log_left_out: Float[Tensor, " n"]
) -> tuple[Float[Tensor, "n outputs"], Bool[Tensor, " n"]]:
    """Value of the line at each point through the other points, and where it is in doubt.

    `pool` averages over all points. A point's own share p_ii is taken out: (mean_i - p_ii v_i) / (1 - p_ii).
    """
    others = torch.ones_like(log_left_out)

    def pool_others(columns: Tensor, tol: float) -> Pooled:
        lse, mean, error = pool(columns, tol)
        own = torch.exp(log_left_out - lse).clamp_max(1.0 - LEAST_OTHERS_FOR_MOMENTS)
        torch.sub(1, own, out=others)
        # An error of the total weight is an error of a point's own share in it.
        distance = ((columns - mean).abs() / scale_of(columns)).amax(1)
        mean = (mean - own.unsqueeze(1) * columns) / others.unsqueeze(1)
        return Pooled(lse + others.log(), mean, error * (1 + distance) / others.square())

    around, frame = Averages.of(sample, sample.x, pool_others, tol)
    around = replace(around, errors=around.errors / others.unsqueeze(1))
    line, doubt = around.value(tol * scale_of(sample.values))
    return frame.level + line, doubt | (others < 2 * LEAST_OTHERS_FOR_MOMENTS)


def fast_mahalanobis(sample: Sample, query: Float[Tensor, "q dim"], pool: Pool, tol: float) -> Results:
    """Squared Mahalanobis distance of each query from the mean of its points, (v - m)' S^-1 (v - m)."""
    around, _ = Averages.of(_without_y(sample), query, pool, tol)
    (tilt, tilt_error), away = around.moments.tilt(around.moment_errors), around.moments.away
    distance = (away * tilt).sum(1).clamp_min(0)
    error = (tilt_error * away.abs() + tilt.abs() * around.moment_errors.v).sum(1)
    return (around.lse, distance), around.doubt(~(error <= tol * (1 + distance)))


def fast_noise(
    variance: Float[Tensor, "n outputs"],
    pool_squared: Callable[..., Pooled],
    sample: Sample,
    query: Float[Tensor, "q dim"],
    pool: Pool,
    tol: float,
) -> Results:
    """Mean variance around each query, sum_i l_i^2 / s_i and sum_i p_i^2 / s_i.

    `pool_squared(lse, columns, tol)` averages under the squared weights p^2 / s. None of these is negative, and the sum
    of l^2 / s is the mean of (1 + t.(v - m))^2 under them: a squared mean and a variance.
    """
    sample, near = _without_y(sample), pool(variance, tol)
    around, _ = Averages.of(sample, query, pool, tol)
    squared, _ = Averages.of(sample, query, partial(pool_squared, near.lse), tol)
    tilt, tilt_error = around.moments.tilt(around.moment_errors)
    size, shift = tilt.abs(), squared.moments.v - around.moments.v
    mean, tilted = 1 + (shift * tilt).sum(1), (squared.moments.vv @ tilt.unsqueeze(2)).squeeze(2)
    spread = (tilt * tilted).sum(1).clamp_min(0)
    mean_error = (size * (around.moment_errors.v + squared.moment_errors.v) + tilt_error * shift.abs()).sum(1)
    spread_error = size * (squared.moment_errors.vv @ size.unsqueeze(2)).squeeze(2) + 2 * tilt_error * tilted.abs()
    kept = mean.square() + spread
    error = 2 * mean.abs() * mean_error + mean_error.square() + spread_error.sum(1)
    total = squared.lse.exp()
    return (near.lse, near.mean, total * kept, total), around.doubt(~(error <= tol * kept))


def _without_y(sample: Sample) -> Sample:
    return replace(sample, values=sample.values[:, :0])
