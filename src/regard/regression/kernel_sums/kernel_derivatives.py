"""How kernels fall: what the weight of a point does when the distance to it changes."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from regard.operands import NEVER


def _of_root(slope: Callable[[Tensor], Tensor], at_zero: float = 0.0) -> Callable[[Tensor], Tensor]:
    def of_square(square: Tensor) -> Tensor:
        root = torch.where(square > 0, square, 1.0).sqrt()
        return torch.where(square > 0, slope(root), at_zero)

    return of_square


# -2 dK / d(u^2) inside the support, of u^2. (The last number is the value at 0, where the distance multiplies it away.)
SLOPES: dict[str, Callable[[Tensor], Tensor]] = {
    "laplace": _of_root(lambda u: torch.exp(-u) / u),
    "boxcar": torch.zeros_like,
    "epanechnikov": lambda square: torch.full_like(square, 2.0),
    "biweight": lambda square: 4 * (1 - square),
    "triweight": lambda square: 6 * (1 - square) ** 2,
    "triangular": _of_root(lambda u: 1 / u),
    "tricube": _of_root(lambda u: 9 * u * (1 - u**3) ** 2),
    "cosine": _of_root(lambda u: math.pi / 2 * torch.sin(math.pi / 2 * u) / u),
}


def steepness(
    kernel: str,
    square: Float[Tensor, "q n"],
    weights: Float[Tensor, "q n"],
    lse: Float[Tensor, " q"],
    log_weight: Float[Tensor, "#q n"] | Float[Tensor, " n"] | None,
) -> Float[Tensor, "q n"]:
    """-2 dK / d(u^2) times a point's own weight, over the total weight: for a Gaussian the weights themselves."""
    if kernel == "gaussian":
        return weights
    if kernel == "laplace":
        # Through the weights: far from everything the kernel itself is 0 in float64.
        return _of_root(lambda u: 1 / u)(square) * weights
    steep = SLOPES[kernel](square.clamp_max(1.0)) * torch.exp(-lse.where(lse > NEVER, 0.0)).unsqueeze(1)
    if log_weight is not None:
        steep = steep * torch.exp(log_weight)
    return torch.where(weights > 0, steep, 0.0)
