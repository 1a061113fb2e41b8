"""Bandwidth selection and leave-one-out residuals of a fit to data in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from regard.operands import NEVER
from regard.regression.bandwidth import duplicates, objective, search, starts
from regard.regression.kernel_sums.categorical import Categories
from regard.regression.local.constant import LocalConstant
from regard.regression.local.data import Data, MixedData
from regard.regression.local.linear import LocalLinear

LocalFit = LocalConstant | LocalLinear


def select_bandwidth(
    rule: str, fit: LocalFit, *, verbose: bool | Callable[[search.Progress], None] = False
) -> tuple[Float[Tensor, " features"], Float[Tensor, "n outputs"] | None]:
    """Bandwidth by the rule "cv" or "scott", and the residuals if the rule has computed them."""
    data, sample = fit.data, fit.data.sample
    rows = duplicates.merge_duplicates(sample, _categories(fit))
    if rule == "scott":
        return _in_column_order(data, _scott(rows, sample.kernel)), None
    listener = verbose if callable(verbose) else None
    result = search.select(
        rows.x,
        rows.y,
        sample.kernel,
        fit.degree,
        None if rows.weight is None else rows.weight.log(),
        left_out=rows.left_out,
        categories=rows.categories,
        tol=data.tol,
        verbose=verbose is True,
        progress=None if listener is None else _reorder(data, listener),
    )
    return _in_column_order(data, result.bandwidth), None if rows.merged else result.residuals


def _categories(fit: LocalFit) -> Categories | None:
    return fit.data.categories if isinstance(fit.data, MixedData) else None


def _in_column_order(data: Data, bandwidth: Float[Tensor, " features"]) -> Float[Tensor, " features"]:
    """Bandwidths in the order of the table's columns; a search has the lambdas of categories last."""
    return data.in_column_order(bandwidth) if isinstance(data, MixedData) else bandwidth


def _reorder(data: Data, listener: Callable[[search.Progress], None]) -> Callable[[search.Progress], None]:
    return lambda state: listener(state._replace(bandwidth=_in_column_order(data, state.bandwidth)))


def _scott(rows: duplicates.Rows, kernel: str) -> Float[Tensor, " features"]:
    """Scott's bandwidths; lambdas of categories shrink like their squares."""
    width = starts.scott(rows.x, rows.weight, kernel, rows.total)
    if rows.categories is None:
        return width
    return torch.cat((width, rows.categories.max_smoothing * len(rows.x) ** (-2 / (len(width) + 4))))


def residuals(fit: LocalFit) -> Float[Tensor, "n outputs"]:
    """Leave-one-out residuals: y_i minus the prediction at x_i from all other rows.

    A row of weight 0 is predicted by all rows that have weight.
    """
    sample, categories = fit.data.sample, _categories(fit)
    if sample.log_weight is None:
        return objective.residuals(sample, degree=fit.degree, tol=fit.data.tol, categories=categories)
    result = torch.empty_like(sample.values)
    counts = sample.log_weight > NEVER
    weighted = replace(sample, x=sample.x[counts], values=sample.values[counts], log_weight=sample.log_weight[counts])
    copies = duplicates.as_counts(sample.log_weight[counts].exp())
    left_out = None if copies is None else torch.ones_like(copies)
    categories = None if categories is None else categories.at(counts)
    result[counts] = objective.residuals(
        weighted, degree=fit.degree, left_out=left_out, tol=fit.data.tol, categories=categories
    )
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
