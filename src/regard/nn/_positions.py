"""Positions: what tells attention where a query and a key stand. Objects that compose, not flags."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from regard.engine.inputs import upcast
from regard.errors import ChoiceError, ShapeError
from regard.scores import Score, alibi


class Positions(torch.nn.Module):
    """What a way to say positions may do: `place` queries and keys, `bend` their score. Either does nothing here."""

    def place(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Queries (..., n, dim) and keys (..., m, dim) that know where they stand."""
        return query, key

    def bend(self, score: Score, query: Tensor) -> Score:
        """A score that knows where query and key stand; the query tells device and dtype."""
        del query
        return score


class Rotary(Positions):
    r"""Rotary positions: each pair of features turns by an angle that grows with the position.

    (x_2t + i x_2t+1) e^(i p θ_t) with θ_t = base^(-2t / dim) at position p, for queries and keys: their inner
    product depends on positions by their difference alone (Su et al. 2021, equation 34).

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
        self.dim, self.base = dim, base

    def place(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Both turned, each by its own positions 0, 1, 2, ..."""
        return self._turned(query), self._turned(key)

    def _turned(self, x: Tensor) -> Tensor:
        if x.shape[-1] < self.dim:
            msg = f"Rotary({self.dim}) turns {self.dim} features, but there are {x.shape[-1]}: {tuple(x.shape)}"
            raise ShapeError(msg)
        wide = upcast(x)
        turning, rest = wide[..., : self.dim], wide[..., self.dim :]
        cos, sin = (t.to(wide.dtype) for t in self._angles(x.shape[-2], x.device))
        even, odd = turning[..., 0::2], turning[..., 1::2]
        turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)
        return torch.cat([turned, rest], -1).to(x.dtype)

    def _angles(self, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """cos and sin, (length, dim / 2). In float64: a far position leaves float32 too few digits of its angle."""
        exponents = torch.arange(0, self.dim, 2, dtype=torch.float64, device=device) / -self.dim
        positions = torch.arange(length, dtype=torch.float64, device=device)
        angles = positions[:, None] * torch.exp(exponents * math.log(self.base))
        return angles.cos(), angles.sin()

    def extra_repr(self) -> str:
        """The formula and its sizes."""
        return f"(x_2t + i x_2t+1) e^(i p {self.base:g}^(-2t/{self.dim}))"


class Alibi(Positions):
    r"""Attention with linear biases: each head prefers what is near, by a slope of its own (Press et al. 2022).

    score - slope_h |i - j| with slope_h = 2^(-8 h / heads) for h = 1, ..., heads. Where heads are no power of 2, the
    slopes of the next lower power come first, then every other one of those of the next higher.

    >>> import regard as rg
    >>> rg.nn.Alibi(4).slopes
    (0.25, 0.0625, 0.015625, 0.00390625)
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        if heads < 1:
            msg = f"Alibi(heads) needs 1 head or more, not {heads}"
            raise ChoiceError(msg)
        self.slopes = _slopes(heads)  # plain numbers: a model that is cast to bfloat16 keeps all their digits

    def bend(self, score: Score, query: Tensor) -> Score:
        """The score with the bias added."""
        return score + alibi(torch.tensor(self.slopes, dtype=upcast(query).dtype, device=query.device))

    def extra_repr(self) -> str:
        """The formula and its sizes."""
        return f"score - slope |i - j|, {len(self.slopes)} slopes from {self.slopes[0]:.3g}"


def _slopes(heads: int) -> tuple[float, ...]:
    lower = 1 << (heads.bit_length() - 1)
    if lower == heads:
        return tuple(2.0 ** (-8 * h / heads) for h in range(1, heads + 1))
    return _slopes(lower) + _slopes(2 * lower)[0::2][: heads - lower]
