"""Position encodings for attention: rotary and ALiBi, as objects that can be combined."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from regard.engine.inputs import upcast
from regard.errors import ChoiceError, ShapeError
from regard.scores import Score, alibi
from regard.tracing import refuse_script


class Positions(torch.nn.Module):
    """Base class of position encodings: `place` changes queries and keys, `bend` changes their score.

    A subclass overrides one or both; this class changes nothing.
    """

    __prepare_scriptable__ = refuse_script

    def place(
        self, query: Float[Tensor, "*lead queries dim"], key: Float[Tensor, "*key_lead keys key_dim"]
    ) -> tuple[Float[Tensor, "*lead queries dim"], Float[Tensor, "*key_lead keys key_dim"]]:
        """Encode positions into queries (..., n, dim) and keys (..., m, dim)."""
        return query, key

    def bend(self, score: Score, query: Float[Tensor, "*lead queries dim"]) -> Score:
        """Encode positions into the score; the query gives device and dtype."""
        del query
        return score


class Rotary(Positions):
    r"""Rotary position encoding (RoPE): each pair of features is rotated by an angle that grows with the position.

    (x_2t + i x_2t+1) e^(i p θ_t) with θ_t = base^(-2t / dim) at position p, for queries and keys. So their inner
    product depends on the difference of positions alone (Su et al. 2021, equation 34).

    Shapes: query (..., n, d), key (..., m, d) with d >= dim; features from `dim` on stay as they are.

    >>> import torch, regard as rg
    >>> query, key = rg.nn.Rotary(4).place(torch.ones(3, 4), torch.ones(3, 4))
    >>> (query @ key.mT).round(decimals=2)  # the same along each diagonal
    tensor([[4.0000, 3.0800, 1.1700],
            [3.0800, 4.0000, 3.0800],
            [1.1700, 3.0800, 4.0000]])
    """

    def __init__(self, dim: int, base: float = 10000.0) -> None:
        super().__init__()
        if dim < 2 or dim % 2:
            msg = f"Rotary(dim) turns pairs of features, so dim is even and at least 2, not {dim}"
            raise ChoiceError(msg)
        if not base > 0:
            msg = f"Rotary(base) needs a positive number, but base is {base}"
            raise ChoiceError(msg)
        self.dim: int = dim
        self.base: float = base

    def place(
        self, query: Float[Tensor, "*lead queries dim"], key: Float[Tensor, "*key_lead keys key_dim"]
    ) -> tuple[Float[Tensor, "*lead queries dim"], Float[Tensor, "*key_lead keys key_dim"]]:
        """Rotate queries and keys, each by positions 0, 1, 2, ..."""
        return self._rotated(query), self._rotated(key)

    def _rotated(self, x: Float[Tensor, "*lead rows dim"]) -> Float[Tensor, "*lead rows dim"]:
        if x.shape[-1] < self.dim:
            msg = f"Rotary({self.dim}) turns {self.dim} features, but there are {x.shape[-1]}: {tuple(x.shape)}"
            raise ShapeError(msg)
        wide = upcast(x)
        pairs, rest = wide[..., : self.dim], wide[..., self.dim :]
        cos, sin = (t.to(wide.dtype) for t in self._angles(x.shape[-2], x.device))
        even, odd = pairs[..., 0::2], pairs[..., 1::2]
        rotated = torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)
        return torch.cat([rotated, rest], -1).to(x.dtype)

    def _angles(
        self, length: int, device: torch.device
    ) -> tuple[Float[Tensor, "rows pairs"], Float[Tensor, "rows pairs"]]:
        """cos and sin of the angles, (length, dim / 2). In float64: float32 loses the angle of a far position."""
        exponents = torch.arange(0, self.dim, 2, dtype=torch.float64, device=device) / -self.dim
        positions = torch.arange(length, dtype=torch.float64, device=device)
        angles = positions[:, None] * torch.exp(exponents * math.log(self.base))
        return angles.cos(), angles.sin()

    def extra_repr(self) -> str:
        """Formula and sizes, as `print(layer)` shows them."""
        return f"(x_2t + i x_2t+1) e^(i p {self.base:g}^(-2t/{self.dim}))"


class Alibi(Positions):
    r"""ALiBi, attention with linear biases (Press et al. 2022): each head subtracts a slope times the distance.

    score - slope_h |i - j| with slope_h = 2^(-8 h / heads) for h = 1, ..., heads. If the number of heads is no power of
    2, the slopes of the next lower power come first, then every other slope of the next higher power.

    >>> import regard as rg
    >>> rg.nn.Alibi(4).slopes
    (0.25, 0.0625, 0.015625, 0.00390625)
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        if heads < 1:
            msg = f"Alibi(heads) needs 1 head or more, not {heads}"
            raise ChoiceError(msg)
        self.slopes: tuple[float, ...] = _slopes(
            heads
        )  # Python floats, which a cast of the model to bfloat16 does not round

    def bend(self, score: Score, query: Float[Tensor, "*lead queries dim"]) -> Score:
        """Add the bias -slope |i - j| to the score."""
        return score + alibi(torch.tensor(self.slopes, dtype=upcast(query).dtype, device=query.device))

    def extra_repr(self) -> str:
        """Formula and sizes, as `print(layer)` shows them."""
        return f"score - slope |i - j|, {len(self.slopes)} slopes from {self.slopes[0]:.3g}"


def _slopes(heads: int) -> tuple[float, ...]:
    lower = 1 << (heads.bit_length() - 1)
    if lower == heads:
        return tuple(2.0 ** (-8 * h / heads) for h in range(1, heads + 1))
    return _slopes(lower) + _slopes(2 * lower)[0::2][: heads - lower]
