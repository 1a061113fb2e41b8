r"""Prediction intervals for a new y, from leave-one-out residuals that are scaled by the noise at their place.

The interval at x is f(x) ± c sigma(x). The scale sigma(x) is the root mean square of the leave-one-out residuals e near
x, drawn towards that of all rows where few rows are near:

    sigma^2(x) = (m(x) sum_i p_i(x) e_i^2 + M mean(e^2)) / (m(x) + M),    m(x) = 1 / sum_i p_i(x)^2,

with the weights p of degree 0 and M = `PRIOR_ROWS`. The factor c is the ceil(level (n + 1))-th smallest score
|e_i| / sigma_-i(x_i). There sigma_-i leaves row i out, since a new row is not among the data either. These are the
scores of normalised conformal prediction (Papadopoulos et al. 2002; Lei et al. 2018), with leave-one-out in place of
rows that are held out: the jackknife interval of Barber et al. (2021), scaled. Tests check the coverage.

A row with the whole sample weight s stands for s rows. With other weights the scores are weighted, and n is Kish's
effective number of rows, (sum s)^2 / sum s^2.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from regard.operands import NEVER
from regard.regression.bandwidth.leave_one_out.problem import as_counts
from regard.regression.local.constant import LocalConstant
from regard.regression.local.data import Data, Noise

PRIOR_ROWS = 10.0  # rows that the mean square of all residuals counts for, beside those near a query
SMALLEST_REST = 1e-3  # weight of the other rows below which a row counts as alone: differences have lost their digits
RANK_ROUNDING = 1e-9  # of level x (n + 1), which is a whole number for round levels


def half_width(
    data: Data, query: Float[Tensor, "q features"], residuals: Float[Tensor, "n outputs"], level: float
) -> Float[Tensor, "q outputs"]:
    """Half the width c sigma(x) of the interval; infinite where the rows are too few for the level."""
    squares = residuals.square()
    noise = LocalConstant(data).noise(query, squares)
    return _quantile(data, _scores(data, residuals), level) * _scale(noise, data.sample.share() @ squares)


def _scale(noise: Noise, overall: Float[Tensor, " outputs"]) -> Float[Tensor, "q outputs"]:
    rows = noise.rows.unsqueeze(1)
    return ((rows * noise.variance + PRIOR_ROWS * overall) / (rows + PRIOR_ROWS)).clamp_min(0).sqrt()


def _scores(data: Data, residuals: Float[Tensor, "n outputs"]) -> Float[Tensor, "counted outputs"]:
    """Leave-one-out residuals, without sign, over the scale of the noise at their place; for rows that have weight."""
    counted, weight = _weights(data)
    squares, smoother = residuals.square(), LocalConstant(data)
    noise, own = smoother.noise(data.table()[counted], squares), smoother.leverage()[counted]
    as_copies = as_counts(weight) is not None
    left_out = own / weight if as_copies else own  # of the weight at x_i: one of s copies, or the whole row
    others = _leave_one_out(noise, left_out, left_out.square() / (1 if as_copies else weight), squares[counted])
    scale = _scale(others, data.sample.share() @ squares)
    return torch.where(scale > 0, residuals[counted].abs() / scale, 0.0)


def _leave_one_out(
    noise: Noise, own: Float[Tensor, " n"], own_square: Float[Tensor, " n"], residual_square: Float[Tensor, "n outputs"]
) -> Noise:
    """Noise at each row from the other rows; `own` is the weight of the row itself."""
    rest = 1 - own
    alone = rest < SMALLEST_REST
    rows = torch.where(alone, 0.0, rest.square() / (1 / noise.rows - own_square).clamp_min(torch.finfo(own.dtype).tiny))
    variance = (noise.variance - own.unsqueeze(1) * residual_square) / rest.unsqueeze(1)
    return Noise(torch.where(alone.unsqueeze(1), 0.0, variance.clamp_min(0)), noise.kept, rows)


def _quantile(data: Data, scores: Float[Tensor, "counted outputs"], level: float) -> Float[Tensor, " outputs"]:
    _, weight = _weights(data)
    if as_counts(weight) is None:
        weight = weight * weight.sum() / weight.square().sum()  # their sum is Kish's effective number of rows
    ordered, order = scores.sort(0)
    rank = math.ceil(level * (float(weight.sum()) + 1) - RANK_ROUNDING)
    below = (weight[order].cumsum(0) < rank - RANK_ROUNDING).sum(0, keepdim=True)
    return torch.cat([ordered, torch.full_like(ordered[:1], math.inf)]).gather(0, below)[0]


def _weights(data: Data) -> tuple[Tensor, Float[Tensor, " counted"]]:
    """Mask of the rows that have weight, and their weights."""
    log_weight = data.sample.log_weights
    return log_weight > NEVER, log_weight[log_weight > NEVER].exp()
