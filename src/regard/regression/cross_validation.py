r"""Leave-one-out of a fit to data in memory: bandwidth selection, residuals, and standard errors from residuals.

A prediction is linear in y, f(x) = sum_i l_i(x) y_i, so with independent noise its variance is sum_i l_i^2 sigma_i^2.
The noise near x comes from leave-one-out residuals e near x:

    se(x)^2 = sigma^2(x) sum_i l_i(x)^2 / s_i,    sigma^2(x) = sum_i p_i(x) e_i^2,

with the weights p of degree 0. So the noise may differ from place to place, and a fit that follows its own noise does
not get a narrower band. Two alternatives covered the curve less often in simulation: residuals of the fit itself, which
are too small, and one variance for all places. Tests check the coverage.

The half width of a band is Student's t times se(x), with 1 / sum_i p_i^2 - 1 degrees of freedom: the effective number
of rows behind sigma^2(x), less one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import stdtrit
from torch import Tensor

from regard.operands import NEVER
from regard.regression.bandwidth import objective, rules, search
from regard.regression.bandwidth.leave_one_out.problem import Rows, as_counts, merge_duplicates
from regard.regression.local.constant import LocalConstant
from regard.regression.local.data import Noise
from regard.regression.local.linear import LocalLinear

LocalFit = LocalConstant | LocalLinear


def select_bandwidth(
    rule: str, fit: LocalFit, *, verbose: bool | Callable[[search.Progress], None] = False
) -> tuple[Float[Tensor, " features"], Float[Tensor, "n outputs"] | None]:
    """Bandwidth by the rule "cv" or "scott", and the residuals if the rule has computed them."""
    data = fit.data
    rows = merge_duplicates(data.sample, data.categories)
    if rule == "scott":
        return data.in_column_order(_scott(rows)), None
    listener = verbose
    if callable(verbose):
        listener = lambda state: verbose(state._replace(bandwidth=data.in_column_order(state.bandwidth)))  # noqa: E731
    result = search.select(rows, fit.degree, tol=data.tol, verbose=listener)
    return data.in_column_order(result.bandwidth), None if rows.merged else result.residuals


def _scott(rows: Rows) -> Float[Tensor, " features"]:
    """Scott's bandwidths; lambdas of categories shrink like their squares."""
    sample, weight = rows.sample, None if rows.sample.log_weight is None else rows.sample.log_weight.exp()
    width = rules.scott(sample.x, weight, sample.kernel, rows.total)
    if rows.categories is None:
        return width
    return torch.cat((width, rows.categories.max_smoothing * len(sample.x) ** (-2 / (len(width) + 4))))


def residuals(fit: LocalFit) -> Float[Tensor, "n outputs"]:
    """Leave-one-out residuals: y_i minus the prediction at x_i from all other rows.

    A row of weight 0 is predicted by all rows that have weight.
    """
    sample, categories = fit.data.sample, fit.data.categories
    if sample.log_weight is None:
        return objective.residuals(Rows(sample, None, categories), fit.degree, fit.data.tol)
    result = torch.empty_like(sample.values)
    counts = sample.log_weight > NEVER
    weighted = sample.subset(lambda rows: rows[counts])
    copies = as_counts(sample.log_weight[counts].exp())
    left_out = None if copies is None else torch.ones_like(copies)
    categories = None if categories is None else categories.at(counts)
    result[counts] = objective.residuals(Rows(weighted, left_out, categories), fit.degree, fit.data.tol)
    if not bool(counts.all()):
        result[~counts] = sample.values[~counts] - fit.predict(fit.data.table()[~counts])
    return result


def mean_squared_residual(fit: LocalFit, residuals: Float[Tensor, "n outputs"]) -> float:
    """Weighted mean of squared residuals; with several outputs each is divided by its variance, and they are summed."""
    share, y = fit.data.sample.share(), fit.data.sample.values
    squares = share @ residuals.square()
    if len(squares) > 1:
        variance = share @ (y - share @ y).square()
        squares = squares / torch.where(variance > 0, variance, 1.0)
    return float(squares.sum())


# Standard errors


def standard_error(noise: Noise) -> Float[Tensor, "q outputs"]:
    """Standard error of the prediction at each query."""
    return (noise.variance * noise.kept.unsqueeze(1)).clamp_min(0).sqrt()


def half_width(noise: Noise, level: float) -> Float[Tensor, "q outputs"]:
    """Half the width of a band that holds the curve with probability `level` at each query."""
    freedom = (noise.rows - 1).clamp_min(1.0).numpy(force=True)
    quantile = np.asarray(stdtrit(freedom, (1 + level) / 2))
    return standard_error(noise) * torch.from_numpy(quantile).to(noise.kept.device).unsqueeze(1)
