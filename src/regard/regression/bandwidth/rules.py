"""Rules of thumb for a bandwidth: where a search starts, and the answer where no search is wanted."""

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
    """Scott's rule h_k = c sigma_k n^(-1 / (dim + 4)), as in `scipy.stats.gaussian_kde`.

    sigma_k is the standard deviation of feature k, with n - 1 in its denominator. With weights, sigma is weighted and n
    is `count` or else Kish's (sum w)^2 / sum w^2. c is the canonical bandwidth of the kernel, 1 for a Gaussian. A
    constant feature gets an infinite bandwidth. (statsmodels starts its search at 1.06 times this, with n in the
    denominator.)
    """
    share = x.new_ones(len(x)) if weight is None else weight
    share = share / share.sum()
    concentration = float(share.square().sum()) if count is None else 1 / count
    factor = kernels.get(kernel).canonical_bandwidth * concentration ** (1 / (x.shape[1] + 4))
    variance = share @ (x - share @ x).square() / max(1 - concentration, math.ulp(1.0))
    return torch.where((x.amax(0) > x.amin(0)) & (variance > 0), variance.sqrt() * factor, math.inf)
