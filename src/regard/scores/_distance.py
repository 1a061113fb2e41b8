"""Scores by distance, the kernels of Nadaraya and Watson: the score is log K, so that softmax is K / sum K."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from regard import kernels
from regard.errors import ShapeError
from regard.operands import Axis, Operand, Size, Span
from regard.scores._base import Features, Score, norm_product, same_width

CENTRE_SAMPLE = 128  # keys whose median is the origin, at most twice as many: enough to lie amid the data
DIRECT_DIMENSIONS = 4  # features: up to here squared distances are sums of squared differences, which cannot cancel


class Distance(Score, abstract=True):
    """A score of the distance |w (q - k)| alone."""

    n_operands = 2

    def weight(self) -> Shaped[Tensor, ""] | Float[Tensor, " dim"] | float:
        """w, one number or one for each feature: the inverse of the bandwidth."""
        raise NotImplementedError

    def part(self, rows: Span, cols: Span, size: Size) -> Score:
        return self  # it does not depend on positions

    def scaled(
        self, query: Float[Tensor, "*batch queries dim"], key: Float[Tensor, "*key_batch keys dim"]
    ) -> tuple[Float[Tensor, "*batch queries dim"], Float[Tensor, "*key_batch keys dim"]]:
        """w (q - c) and w (k - c): a common origin c changes no distance and keeps the numbers small."""
        centre = _centre(key)
        w = self.weight()
        w = w.to(query.dtype) if isinstance(w, Tensor) else w
        return (query - centre) * w, (key - centre) * w

    def operands(
        self, query: Float[Tensor, "*batch queries dim"], key: Float[Tensor, "*key_batch keys dim"]
    ) -> tuple[Operand, ...]:
        left, right = self.scaled(query, key)
        if left.shape[-1] > DIRECT_DIMENSIONS:
            left, right = left.double(), right.double()  # |q|^2 + |k|^2 - 2 q.k cancels
        return Operand(left, Axis.QUERY), Operand(right, Axis.KEY)


def _centre(key: Float[Tensor, "... keys dim"]) -> Float[Tensor, " dim"]:
    """The median of a sample of keys, feature by feature. (A hidden key may be anything, so a mean would not do.)"""
    flat = key.detach().reshape(-1, key.shape[-1])
    if not flat.shape[0]:
        return flat.new_zeros(key.shape[-1])
    sample = flat[:: max(1, flat.shape[0] // CENTRE_SAMPLE)]
    return sample.nan_to_num(0.0, 0.0, 0.0).median(0).values


def squared_distance(
    left: Float[Tensor, "*batch rows dim"], right: Float[Tensor, "*key_batch cols dim"]
) -> Float[Tensor, "... rows cols"]:
    """|left_i - right_j|^2, without the differences of shape (..., rows, cols, dim)."""
    if left.shape[-1] > DIRECT_DIMENSIONS:
        total = (left * -2) @ right.mT  # in place from here: new memory for each step takes longer than the step
        total += left.square().sum(-1, keepdim=True)
        total += right.square().sum(-1).unsqueeze(-2)
        return total.clamp_min_(0)
    total = torch.zeros((), dtype=left.dtype, device=left.device)
    for a, b in zip(left.unbind(-1), right.unbind(-1), strict=True):
        total = total + (a.unsqueeze(-1) - b.unsqueeze(-2)).square()
    return total


@dataclass(frozen=True, eq=False, repr=False)
class Gaussian(Distance):
    """-(w |q - k|)^2 / 2, an inner product of features."""

    w: Tensor | float  # one number, or (dim,)
    inverse: bool = False  # True: w is a bandwidth

    def label(self, field: str) -> str:
        return "bandwidth of kernel" if self.inverse else super().label(field)

    def weight(self) -> Shaped[Tensor, ""] | Float[Tensor, " dim"] | float:
        return 1 / self.w if self.inverse else self.w

    def check(self, n: int, m: int, d_q: int, d_k: int) -> None:
        same_width(self, d_q, d_k)
        _check_width("gaussian(w) needs w", self.w, d_k)

    def tile(
        self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Float[Tensor, "... rows cols"] | None = None
    ) -> Float[Tensor, "... rows cols"]:
        del rows, cols, out
        return squared_distance(*tensors) * -0.5

    def obstacle(self, *, grad: bool) -> str | None:
        del grad
        return None

    def features(
        self, query: Float[Tensor, "*batch queries dim"], key: Float[Tensor, "*key_batch keys dim"]
    ) -> Features:
        left, right = self.scaled(query, key)
        return Features(
            left,
            right,
            key_bias=right.square().sum(-1).unsqueeze(-2) * -0.5,
            row=left.square().sum(-1) * -0.5,
        )

    def magnitude(
        self, query: Float[Tensor, "*batch queries dim"], key: Float[Tensor, "*key_batch keys dim"]
    ) -> Float[Tensor, ""]:
        left, right = self.scaled(query, key)
        return (norm_product(left, left) + norm_product(right, right)).abs()

    def __repr__(self) -> str:
        return "-(w|q - k|)² / 2"


def _check_width(needs: str, w: Tensor | float, d: int) -> None:
    if isinstance(w, Tensor) and w.dim() and tuple(w.shape) != (d,):
        msg = f"{needs} to be one number or of shape ({d},), one a feature, but its shape is {tuple(w.shape)}"
        raise ShapeError(msg)


@dataclass(frozen=True, eq=False, repr=False)
class KernelScore(Distance, term_name="Kernel"):
    """log K(|q - k| / bandwidth) for any kernel but the Gaussian."""

    name: str  # of a kernel of regard.kernels
    bandwidth: Tensor | float  # one number, or (dim,)

    def __post_init__(self) -> None:
        kernels.get(self.name)

    @property
    def hides_keys(self) -> bool:
        return kernels.get(self.name).compact

    def weight(self) -> Shaped[Tensor, ""] | Float[Tensor, " dim"] | float:
        return 1 / self.bandwidth

    def check(self, n: int, m: int, d_q: int, d_k: int) -> None:
        same_width(self, d_q, d_k)
        _check_width("kernel(name, bandwidth) needs the bandwidth", self.bandwidth, d_k)

    def tile(
        self, tensors: Sequence[Tensor], rows: Span, cols: Span, out: Float[Tensor, "... rows cols"] | None = None
    ) -> Float[Tensor, "... rows cols"]:
        del rows, cols, out
        return kernels.get(self.name).log_kernel(squared_distance(*tensors))

    def magnitude(
        self, query: Float[Tensor, "*batch queries dim"], key: Float[Tensor, "*key_batch keys dim"]
    ) -> Float[Tensor, ""]:
        if self.hides_keys:
            return query.new_zeros(())
        left, right = self.scaled(query, key)
        farthest = norm_product(left, left).sqrt() + norm_product(right, right).sqrt()
        return kernels.get(self.name).log_kernel(farthest.square()).abs()

    def __repr__(self) -> str:
        return f"log {self.name}(|q - k| / h)"
