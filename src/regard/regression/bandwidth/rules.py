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
    rows = 1 / float(share.square().sum()) if count is None else count
    deviation = (share @ (x - share @ x).square()).sqrt()
    return scott_of_deviation(torch.where(x.amax(0) > x.amin(0), deviation, 0.0), rows, kernel)


def scott_of_deviation(deviation: Float[Tensor, " dim"], rows: float, kernel: str) -> Float[Tensor, " dim"]:
    """Scott's rule from standard deviations with n in their denominator; a deviation of 0 has an infinite bandwidth."""
    unbiased = deviation / math.sqrt(max(1 - 1 / rows, math.ulp(1.0)))
    width = kernels.get(kernel).canonical_bandwidth * unbiased * rows ** (-1 / (len(deviation) + 4))
    return torch.where(width > 0, width, math.inf)
