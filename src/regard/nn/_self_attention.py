"""Self-attention: queries, keys and values from one sequence, with positions as one likes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import torch
from torch import Tensor

from regard.attention import Attention
from regard.errors import DtypeError, ShapeError
from regard.masks import Mask
from regard.nn._multihead import MultiheadAttention
from regard.nn._positions import Positions
from regard.nn._valid_lens import visible
from regard.scores import Score, scaled_dot


class SelfAttention(torch.nn.Module):
    r"""`MultiheadAttention` of a sequence to itself, in regard's words.

    output = [softmax(q_h · k_h / √d_h) v_h for each head h] W_o + b, with q_h, k_h, v_h linear in x.

    Shapes: x (..., n, embed_dim), output (..., n, embed_dim), weights (..., heads, n, n), never built. The mask is one
    of `regard.masks`. valid_lens, how many rows are no padding: (batch,), or one for each query, (batch, n); the same
    in all heads. `positions` is one of `regard.nn.Rotary` and `Alibi`, or several. The parameters are those of
    `layer.attention`, with torch's names.

    >>> import torch, regard as rg
    >>> layer = rg.nn.SelfAttention(16, 4, positions=rg.nn.Rotary(4))
    >>> output, weights = layer(torch.randn(2, 7, 16), mask=rg.masks.causal(), valid_lens=torch.tensor([7, 3]))
    >>> output.shape, weights.shape
    (torch.Size([2, 7, 16]), torch.Size([2, 4, 7, 7]))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        positions: Positions | Iterable[Positions] = (),
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.attention = MultiheadAttention(
            embed_dim, num_heads, dropout, bias, batch_first=True, device=device, dtype=dtype
        )
        given = (positions,) if isinstance(positions, Positions) else tuple(positions)
        for one in given:
            if not isinstance(one, Positions):
                msg = f"positions are of regard.nn.Positions, such as Rotary(dim) or Alibi(heads), not {one!r:.40}"
                raise DtypeError(msg)
        self.positions = torch.nn.ModuleList(given)

    def forward(self, x: Tensor, mask: Mask | None = None, valid_lens: Tensor | None = None) -> Attention:
        """x (..., n, embed_dim) -> output of the same shape, and weights (..., heads, n, n)."""
        if x.dim() < 2 or x.shape[-1] != self.attention.embed_dim:
            msg = f"x is (..., rows, features) with {self.attention.embed_dim} features, but it is {tuple(x.shape)}"
            raise ShapeError(msg)
        q, k, v = (t.transpose(-3, -2) for t in self.attention.project(x, x, x))  # (..., heads, n, dim)
        score: Score | None = None
        for one in cast("Iterable[Positions]", self.positions):
            q, k = one.place(q, k)
            score = one.bend(score or scaled_dot(), q)
        pooled, weights = self.attention.attend(q, k, v, score, visible(mask, valid_lens, x))
        return Attention(self.attention.join(pooled.transpose(-3, -2)), weights)
