"""Smoothing kernels: all that is known of one kernel, in one frozen record.

A kernel K(u) gives the weight of a point at distance u, measured in bandwidths. `scores.kernel(K, bandwidth)` and
`NadarayaWatson(kernel=K)` take such a record or its name. A new kernel is one definition, which also registers its
name. Files hold the name alone: a program that reads such a file must define the kernel first.

>>> import torch
>>> from regard import kernels
>>> float(kernels.epanechnikov.log_kernel(torch.tensor(0.25)).exp())
0.75
>>> quartic = kernels.Kernel("quartic", lambda square: -square.square(), compact=False)
>>> round(quartic.canonical_bandwidth, 2), kernels.get("quartic") is quartic
(1.7, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import ChoiceError
from regard.operands import NEVER

__all__ = [
    "Kernel",
    "biweight",
    "boxcar",
    "cosine",
    "epanechnikov",
    "gaussian",
    "get",
    "laplace",
    "names",
    "triangular",
    "tricube",
    "triweight",
]

OfSquare = Callable[[Tensor], Tensor]  # elementwise, of u^2
LogRatio = Callable[[Tensor, Tensor, Tensor], Tensor]

NODES = 20_000  # of the midpoint rule: 6 digits of the integrals of the kernels below
GAUSSIAN_DELTA = (4 * math.pi) ** -0.1  # (R / variance^2)^(1/5) of the Gaussian

_REGISTERED: dict[str, Kernel] = {}


@dataclass(frozen=True, eq=False, repr=False)
class Kernel:
    """One smoothing kernel K(u) >= 0 of the distance u >= 0 in bandwidths; K must not grow with u.

    `name`, `log_kernel` and `compact` are required. The rest has defaults: derivatives come from automatic
    differentiation, and the canonical bandwidth from numerical integration.
    """

    name: str
    log_kernel: OfSquare  # log K of u^2, up to a constant, which cancels in weights; -inf where K is 0
    compact: bool  # True: K(u) is positive for u < 1 and 0 for u > 1. False: K is positive everywhere
    _: KW_ONLY
    # -2 dK / d(u^2) of u^2 <= 1, for a compact kernel. At u = 0 any finite number will do: distances multiply it.
    derivative: OfSquare | None = None
    # -2 d log K / d(u^2) of u^2, for a kernel that is not compact: far away K itself underflows.
    log_derivative: OfSquare | None = None
    # log K(u) - log K(v) from (v^2 - u^2) / 2, u^2 and v^2, for a kernel that is not compact. Far from all data the
    # difference of squares has digits that the squares have not.
    log_ratio: LogRatio | None = None
    # h that smooths as much as a Gaussian of h = 1: the ratio of (R(K) / variance(K)^2)^(1/5), with R(K) the integral
    # of K^2, in one dimension (Marron and Nolan 1988, "Canonical kernels").
    canonical_bandwidth: float = math.nan  # nan: by integration
    # K(u)^2 as another kernel: its name, and how many times narrower it is. None: weights are squared one by one.
    square: tuple[str, float] | None = None
    # The derivative is 0 wherever it exists: a search for a bandwidth compares values instead of using gradients.
    piecewise_constant: bool = False
    # log K falls like -u^p, far away, if K is not compact. It says from how far float64 tells points apart.
    tail_power: float = 2.0

    def __post_init__(self) -> None:
        """Check the definition, find what was left out, and register the name."""
        if self.name in _REGISTERED:
            raise ChoiceError(f"there is a kernel {self.name!r} already: a new kernel needs a name of its own")
        self._check()
        if math.isnan(self.canonical_bandwidth):
            object.__setattr__(self, "canonical_bandwidth", self._canonical_bandwidth())
        _REGISTERED[self.name] = self

    def weight_derivative(
        self,
        square: Float[Tensor, "q n"],
        weights: Float[Tensor, "q n"],
        lse: Float[Tensor, " q"],
        log_weight: Float[Tensor, "#q n"] | Float[Tensor, " n"] | None,
    ) -> Float[Tensor, "q n"]:
        """-2 s_j K'(u^2) / sum_j s_j K, the derivative of weights whose sum is held; s = exp(log_weight).

        `weights` are s_j K / sum_j s_j K and `lse` is the logarithm of their denominator.
        """
        if not self.compact:
            return self._log_derivative(square) * weights
        slope = self._derivative(square.clamp_max(1.0)) * torch.exp(-lse.where(lse > NEVER, 0.0)).unsqueeze(1)
        if log_weight is not None:
            slope = slope * torch.exp(log_weight)
        return torch.where(weights > 0, slope, 0.0)

    def log_of_derivative(self, square: Float[Tensor, "q n"], log_k: Float[Tensor, "q n"]) -> Float[Tensor, "q n"]:
        """log(-2 K'(u^2)), from u^2 and log K."""
        if not self.compact:  # through the logarithm: far from everything the kernel itself is 0 in float64
            return torch.where(square > 0, log_k + self._log_derivative(square).log(), NEVER)
        return torch.where(log_k > NEVER, self._derivative(square.clamp_max(1.0)).log(), NEVER)

    def log_relative(
        self, half_difference: Float[Tensor, "q n"], square: Float[Tensor, "q n"], nearest: Float[Tensor, "q 1"]
    ) -> Float[Tensor, "q n"]:
        """log K(u) - log K(v) from (v^2 - u^2) / 2, u^2 and v^2, with v the distance of the nearest point."""
        if self.log_ratio is not None:
            return self.log_ratio(half_difference, square, nearest)
        return self.log_kernel(square) - self.log_kernel(nearest)

    def _derivative(self, square: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        if self.derivative is not None:
            return self.derivative(square)
        return (self._log_derivative(square) * self.log_kernel(square).exp()).nan_to_num(0.0, 0.0, 0.0)

    def _log_derivative(self, square: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        if self.log_derivative is not None:
            return self.log_derivative(square)
        with torch.enable_grad():
            at = square.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(self.log_kernel(at).sum(), at, materialize_grads=True)
        return torch.where(square > 0, gradient * -2, 0.0)

    def _check(self) -> None:
        u = torch.linspace(0, 2, 65, dtype=torch.float64)
        log_k = self.log_kernel(u.square())
        if not isinstance(log_k, Tensor) or log_k.shape != u.shape or not bool((log_k[1:] <= log_k[:-1]).all()):
            raise ChoiceError(f"log_kernel of {self.name!r} must be elementwise in u^2 and must not grow with it")
        ends = bool((log_k[u > 1] == NEVER).all())
        if ends != self.compact or not bool(torch.isfinite(log_k[u < 1]).all()):
            where = "from u = 0 to 1 and -inf beyond" if self.compact else "everywhere"
            raise ChoiceError(
                f"log_kernel of {self.name!r} must be finite {where}, as compact={self.compact} says of the kernel"
            )

    def _canonical_bandwidth(self) -> float:
        """(R(K) / variance(K)^2)^(1/5) over that of the Gaussian, by the midpoint rule; u = t / (1 - t) has no end."""
        t = (torch.arange(NODES, dtype=torch.float64) + 0.5) / NODES
        u, du = (t, torch.ones_like(t)) if self.compact else (t / (1 - t), (1 - t) ** -2)
        far = self.log_kernel(torch.tensor([1e6, 1e12], dtype=torch.float64))
        if not self.compact and float(far[0] - far[1]) <= 3 * math.log(1e3):
            raise ChoiceError(
                f"{self.name!r} has no finite variance, from which its canonical bandwidth would follow: "
                "give canonical_bandwidth, how wide it must be to smooth as much as a Gaussian of bandwidth 1"
            )
        k = self.log_kernel(u.square()).exp()
        area, roughness, variance = (float((du * part).mean()) for part in (k, k.square(), u.square() * k))
        # Integrals over u > 0: over both sides each is twice as large.
        return (roughness / (2 * area**2) / (variance / area) ** 2) ** 0.2 / GAUSSIAN_DELTA

    def __reduce__(self) -> tuple[Callable[[str], Kernel], tuple[str]]:
        """Copies and pickles go by the name, so that there is one record of each kernel."""
        return get, (self.name,)

    def __repr__(self) -> str:
        return f"Kernel({self.name!r})"


def get(kernel: Kernel | str) -> Kernel:
    """The kernel of this name; a record is returned as it is."""
    if isinstance(kernel, Kernel):
        return kernel
    if not isinstance(kernel, str) or kernel not in _REGISTERED:
        raise ChoiceError(f"there is no kernel {kernel!r}; there are: {', '.join(names())}")
    return _REGISTERED[kernel]


def names() -> tuple[str, ...]:
    """The names of all kernels that are defined, the Gaussian first and the others in the order of the alphabet."""
    return ("gaussian", *sorted(set(_REGISTERED) - {"gaussian"}))


def _root(square: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """sqrt(u^2) with the gradient 0 at 0."""
    zero = square <= 0
    return torch.where(zero, 0.0, torch.where(zero, 1.0, square).sqrt())


def _log_compact(value: OfSquare) -> OfSquare:
    """log K of u^2 inside, -inf outside."""

    def log_kernel(square: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        outside, k = square >= 1, value(square.clamp_max(1))  # NaN counts as inside, so that it is seen
        # Filled before the log, not after: there the gradient would be NaN already.
        return k.masked_fill(outside, 1.0).log_().masked_fill_(outside, NEVER)

    return log_kernel


def _of_distance(derivative: Callable[[Tensor], Tensor]) -> OfSquare:
    """A derivative as a function of u made one of u^2; it is 0 at u = 0."""

    def of_square(square: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        root = torch.where(square > 0, square, 1.0).sqrt()
        return torch.where(square > 0, derivative(root), 0.0)

    return of_square


def _laplace_log_ratio(
    half_difference: Float[Tensor, "q n"], square: Float[Tensor, "q n"], nearest: Float[Tensor, "q 1"]
) -> Float[Tensor, "q n"]:
    """v - u = (v^2 - u^2) / (v + u)."""
    return half_difference / ((square.sqrt() + nearest.sqrt()) / 2).clamp_min(torch.finfo(square.dtype).tiny)


gaussian: Kernel = Kernel(
    "gaussian",
    lambda square: square * -0.5,
    compact=False,
    log_derivative=torch.ones_like,
    log_ratio=lambda half_difference, _square, _nearest: half_difference,
    canonical_bandwidth=1.0,
    square=("gaussian", math.sqrt(2)),
)
laplace: Kernel = Kernel(
    "laplace",
    lambda square: -_root(square),
    compact=False,
    log_derivative=_of_distance(lambda u: 1 / u),
    log_ratio=_laplace_log_ratio,
    canonical_bandwidth=0.7398,
    square=("laplace", 2.0),
    tail_power=1.0,
)
boxcar: Kernel = Kernel(
    "boxcar",
    lambda square: torch.where(square > 1, NEVER, 0.0 * square),
    compact=True,
    derivative=torch.zeros_like,
    canonical_bandwidth=1.7401,
    square=("boxcar", 1.0),
    piecewise_constant=True,
)
epanechnikov: Kernel = Kernel(
    "epanechnikov",
    _log_compact(lambda square: 1 - square),
    compact=True,
    derivative=lambda square: torch.full_like(square, 2.0),
    canonical_bandwidth=2.2138,
    square=("biweight", 1.0),
)
biweight: Kernel = Kernel(
    "biweight",
    _log_compact(lambda square: (1 - square) ** 2),
    compact=True,
    derivative=lambda square: 4 * (1 - square),
    canonical_bandwidth=2.6226,
)
triweight: Kernel = Kernel(
    "triweight",
    _log_compact(lambda square: (1 - square) ** 3),
    compact=True,
    derivative=lambda square: 6 * (1 - square) ** 2,
    canonical_bandwidth=2.9781,
)
triangular: Kernel = Kernel(
    "triangular",
    _log_compact(lambda square: 1 - _root(square)),
    compact=True,
    derivative=_of_distance(lambda u: 1 / u),
    canonical_bandwidth=2.4320,
)
tricube: Kernel = Kernel(
    "tricube",
    _log_compact(lambda square: (1 - _root(square) ** 3) ** 3),
    compact=True,
    derivative=_of_distance(lambda u: 9 * u * (1 - u**3) ** 2),
    canonical_bandwidth=2.6098,
)
cosine: Kernel = Kernel(
    "cosine",
    _log_compact(lambda square: torch.cos(math.pi / 2 * _root(square))),
    compact=True,
    derivative=_of_distance(lambda u: math.pi / 2 * torch.sin(math.pi / 2 * u) / u),
    canonical_bandwidth=2.2750,
)
