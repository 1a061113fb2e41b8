"""Leave-one-out where some features are categories: widths and lambdas together, over all pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression._categorical import Mixed, log_other
from regard.regression._constant import LocalConstant, own_weight
from regard.regression._linear import LocalLinear
from regard.regression.selection import _rules

Local = LocalConstant | LocalLinear

ALONE = 1e-9  # a row that the others weigh less than this for is predicted by the mean
DESCENTS = 3  # from the best of the starts
FARTHEST = 1e3  # times Scott's bandwidth: as good as infinite


def residuals(local: Local) -> Float[Tensor, "n outputs"]:
    """y_i less what the other rows predict: (y_i - f_i) / (1 - l_ii), the row left out whole."""
    data = local.data
    y, table = data.sample.values, data.table()
    if isinstance(local, LocalConstant):  # one pass gives both
        lse, fit, _ = data.pool(table)
        others = 1 - own_weight(data, lse)
    else:
        fit, others = local.predict(table), 1 - local.leverage()
    found = (y - fit) / torch.where(others > ALONE, others, 1.0).unsqueeze(1)
    return torch.where((others > ALONE).unsqueeze(1), found, y - data.share() @ y)


def choose(rule: str, local: Local) -> Float[Tensor, " features"]:
    """Scott's widths, and lambdas that shrink as fast; or those that leave the smallest residuals."""
    data = _mixed(local)
    sample = data.sample
    dim, rows = sample.x.shape[1], len(sample.x)
    weight = None if sample.log_weight is None else sample.log_weight.exp()
    scott = _rules.scott(sample.x, weight, sample.kernel) if dim else sample.x.new_ones(0)
    most = (data.counts - 1) / data.counts
    if rule == "scott":
        return _joined(data, scott, most * rows ** (-2 / (dim + 4)))
    return _search(local, torch.where(torch.isfinite(scott), scott, 1.0), most)


def _search(local: Local, scott: Tensor, most: Tensor) -> Tensor:
    """L-BFGS within bounds, from the best of several starts, with gradients by differences."""
    from scipy.optimize import minimize

    def widths(place: np.ndarray) -> tuple[Tensor, Tensor]:
        found = torch.from_numpy(place).to(scott)
        return scott * found[: len(scott)].exp(), most * found[len(scott) :]

    def value(place: np.ndarray) -> float:
        there = _at(local, *widths(place))
        return mean_square(there, residuals(there))

    bounds = [(-np.log(100), np.log(FARTHEST))] * len(scott) + [(0.0, 1.0)] * len(most)
    tried = sorted((value(start), *start) for start in _starts(len(scott), len(most)))
    options = {"ftol": 1e-10, "eps": 1e-6, "maxiter": 20}
    found = [
        minimize(value, np.array(start), method="L-BFGS-B", bounds=bounds, options=options)
        for _, *start in tried[:DESCENTS]
    ]
    best = min(found, key=lambda one: one.fun)
    return _joined(_mixed(local), *widths(best.x if best.fun < tried[0][0] else np.array(tried[0][1:])))


def _starts(measured: int, kinds: int) -> list[np.ndarray]:
    """Narrow and wide, with categories that matter much, little, and not at all."""
    return [
        np.concatenate([np.full(measured, wide), np.full(kinds, part)])
        for wide in np.log(np.geomspace(0.1, 10, 9))
        for part in (0.0, 0.1, 0.5, 1.0)
    ]


def _at(local: Local, width: Tensor, chance: Tensor) -> Local:
    data = _mixed(local)
    sample = replace(data.sample, bandwidth=width)
    return replace(local, data=replace(data, sample=sample, log_other=log_other(chance, data.counts)))


def _joined(data: Mixed, width: Tensor, chance: Tensor) -> Tensor:
    whole = width.new_empty(len(width) + len(chance))
    whole[list(data.measured)], whole[list(data.kinds)] = width, chance
    return whole


def _mixed(local: Local) -> Mixed:
    assert isinstance(local.data, Mixed)  # noqa: S101  the caller has looked
    return local.data


def mean_square(local: Local, found: Float[Tensor, "n outputs"]) -> float:
    """Of residuals, weighted; with several outputs each is in units of its variance."""
    share, y = local.data.share(), local.data.sample.values
    squares = share @ found.square()
    if len(squares) > 1:
        variance = share @ (y - share @ y).square()
        squares = squares / torch.where(variance > 0, variance, 1.0)
    return float(squares.sum())
