"""A noisy curve for kernel regression."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import ChoiceError


class Sine(NamedTuple):
    """Noisy training points, and the curve without noise at test points."""

    x_train: Float[Tensor, " n"]
    y_train: Float[Tensor, " n"]
    x_test: Float[Tensor, "50"]
    y_truth: Float[Tensor, "50"]


def sine(n: int = 50, seed: int = 0, noise: float = 0.5) -> Sine:
    """Make a noisy curve: y = 2 sin(x) + x^0.8 + e, with e normal, mean 0, standard deviation `noise`.

    `x_train` is n points uniform on (0, 5), sorted, and `y_train` their noisy values; `x_test` is 0, 0.1, ..., 4.9, and
    `y_truth` the curve without noise there. All are computed in float64 and returned in float32. The same seed gives
    the same data, and torch's global random state is neither read nor changed.

    >>> sine().x_train.shape, sine().x_test.shape
    (torch.Size([50]), torch.Size([50]))
    """
    if n < 1:
        raise ChoiceError(f"n must be at least 1: the number of training points came as {n}")
    if not 0 <= noise < math.inf:
        raise ChoiceError(f"noise is a standard deviation, 0 or more, and came as {noise}")
    generator = torch.Generator().manual_seed(seed)
    x_train = torch.rand(n, generator=generator, dtype=torch.float64).mul(5).sort().values
    e = torch.randn(n, generator=generator, dtype=torch.float64) * noise
    x_test = torch.arange(50, dtype=torch.float64) / 10
    return Sine(x_train.float(), (_curve(x_train) + e).float(), x_test.float(), _curve(x_test).float())


def _curve(x: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    return 2 * torch.sin(x) + x**0.8
