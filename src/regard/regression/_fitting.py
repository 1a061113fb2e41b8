"""From the rows of a table to a bandwidth, and to what each row looks like from all the others."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression import _copies
from regard.regression._constant import LocalConstant
from regard.regression._linear import LocalLinear

LOCAL = {0: LocalConstant, 1: LocalLinear}
Local = LocalConstant | LocalLinear


def choose(rule: str, local: Local, *, verbose: bool = False) -> tuple[np.ndarray, Tensor | None]:
    """The bandwidth by a rule, and the residuals where the rule has computed them."""
    del verbose
    sample = local.data.sample
    scott = _scott(sample.x, sample.log_weight)
    if rule == "scott" or len(sample.x) < 3:
        return scott.numpy(force=True), None
    grid = np.geomspace(0.05, 20, 25)
    values = [mean_square(found := _at(local, scott * factor), residuals(found)) for factor in grid]
    return (scott * grid[int(np.argmin(values))]).numpy(force=True), None


def _at(local: Local, bandwidth: Tensor) -> Local:
    from dataclasses import replace

    return replace(local, data=replace(local.data, sample=replace(local.data.sample, bandwidth=bandwidth)))


def residuals(local: Local) -> Float[Tensor, "n outputs"]:
    """y_i less what all the other rows predict at x_i."""
    sample = local.data.sample
    own = local.leverage()
    if sample.log_weight is not None:
        weight = sample.log_weight.exp()
        own = own / torch.where(weight > 0, weight, 1.0) * torch.from_numpy(_left_out(sample.x, sample.values, weight))
    return (sample.values - local.predict(sample.x)) / (1 - own).clamp_min(1e-9).unsqueeze(1)


def _left_out(x: Tensor, y: Tensor, weight: Tensor) -> np.ndarray:
    rows = _copies.of(x.numpy(force=True), y.numpy(force=True), weight.numpy(force=True))
    if rows.left_out is None or rows.place is None:
        return weight.numpy(force=True)
    return np.where(rows.place >= 0, rows.left_out[rows.place], 1.0)


def mean_square(local: Local, found: Float[Tensor, "n outputs"]) -> float:
    """Of residuals, weighted; with several outputs each is in units of its variance."""
    sample = local.data.sample
    weight = torch.ones_like(found[:, 0]) if sample.log_weight is None else sample.log_weight.exp()
    share = weight / weight.sum()
    squares = share @ found.square()
    if len(squares) > 1:
        variance = share @ (sample.values - share @ sample.values).square()
        squares = squares / torch.where(variance > 0, variance, 1.0)
    return float(squares.sum())


def _scott(x: Tensor, log_weight: Tensor | None) -> Tensor:
    weight = torch.ones_like(x[:, 0]) if log_weight is None else log_weight.exp()
    share = weight / weight.sum()
    deviation = (share @ (x - share @ x).square()).sqrt()
    return torch.where(deviation > 0, deviation * float(weight.sum()) ** (-1 / (x.shape[1] + 4)), torch.inf)
