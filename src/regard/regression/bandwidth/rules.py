"""Bandwidths by a rule of thumb: good places to start a search, and an answer where no search is wanted."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from regard import kernels


def scott(
    x: Float[Tensor, "n dim"],
    weight: Float[Tensor, " n"] | None = None,
    kernel: str = "gaussian",
    count: float | None = None,
) -> Float[Tensor, " dim"]:
    """Scott's rule, h_k = c sigma_k n^(-1 / (dim + 4)), as `scipy.stats.gaussian_kde` has it: (dim,).

    sigma_k is the standard deviation of feature k with n - 1 below; with weights n is `count`, or else Kish's
    (sum w)^2 / sum w^2, and sigma is weighted. (statsmodels starts its search at 1.06 times this, with n below.) c = 1
    for a Gaussian, and for another kernel the factor that makes it smooth as much. A feature that never changes gets an
    infinite width.
    """
    share = torch.full((len(x),), 1 / max(len(x), 1), dtype=x.dtype, device=x.device)
    if weight is not None:
        share = weight / weight.sum()
    concentration = float(share.square().sum()) if count is None else 1 / count
    points = 1 / concentration if concentration > 0 else 1.0
    factor = kernels.get(kernel).canonical_bandwidth * points ** (-1 / (x.shape[1] + 4))
    middle = share @ x
    variance = share @ (x - middle).square() / max(1 - concentration, math.ulp(1.0))
    sigma = (
        torch.where(x.amax(0) > x.amin(0), variance.sqrt(), math.inf) if len(x) else x.new_full(x.shape[1:], math.inf)
    )
    return torch.where(sigma > 0, sigma * factor, math.inf)
