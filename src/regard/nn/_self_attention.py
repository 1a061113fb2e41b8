"""Self-attention: queries, keys and values from one sequence, with position encodings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from regard.attention import Attention
from regard.errors import DtypeError, ShapeError
from regard.masks import Mask
from regard.nn._multihead import MultiheadAttention
from regard.nn._positions import Positions
from regard.nn._valid_lens import combined_mask
from regard.scores import Score, scaled_dot
from regard.tracing import refuse_script


class SelfAttention(torch.nn.Module):
    r"""Multi-head self-attention with masks of `regard.masks` and position encodings.

    output = [softmax(q_h · k_h / √d_h) v_h for each head h] W_o + b, with q_h, k_h, v_h linear in x.

    Shapes: x (..., n, embed_dim), output (..., n, embed_dim), weights (..., heads, n, n), never built. mask: one of
    `regard.masks`. valid_lens: the number of rows that are no padding, (batch,), or for each query, (batch, n); the
    same in all heads. positions: a `regard.nn.Rotary` or `Alibi`, or several. The parameters are those of
    `layer.attention`, with torch's names.

    >>> import torch, regard as rg
    >>> layer = rg.nn.SelfAttention(16, 4, positions=rg.nn.Rotary(4))
    >>> output, weights = layer(torch.randn(2, 7, 16), mask=rg.masks.causal(), valid_lens=torch.tensor([7, 3]))
    >>> output.shape, weights.shape
    (torch.Size([2, 7, 16]), torch.Size([2, 4, 7, 7]))
    """

    __prepare_scriptable__ = refuse_script

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
        self.attention: MultiheadAttention = MultiheadAttention(
            embed_dim, num_heads, dropout, bias, batch_first=True, device=device, dtype=dtype
        )
        encodings = (positions,) if isinstance(positions, Positions) else tuple(positions)
        for encoding in encodings:
            if not isinstance(encoding, Positions):
                msg = f"positions are of regard.nn.Positions, such as Rotary(dim) or Alibi(heads), not {encoding!r:.40}"
                raise DtypeError(msg)
        self.positions: nn.ModuleList = torch.nn.ModuleList(encodings)

    def forward(
        self,
        x: Float[Tensor, "*lead rows embed_dim"],
        mask: Mask | None = None,
        valid_lens: Integer[Tensor, "..."] | None = None,
    ) -> Attention:
        """Attend from the sequence to itself: output of the shape of x, and lazy weights (..., heads, n, n)."""
        if x.dim() < 2 or x.shape[-1] != self.attention.embed_dim:
            msg = f"x is (..., rows, features) with {self.attention.embed_dim} features, but it is {tuple(x.shape)}"
            raise ShapeError(msg)
        q, k, v = (t.transpose(-3, -2) for t in self.attention.project(x, x, x))  # (..., heads, n, dim)
        score: Score | None = None
        for encoding in cast("Iterable[Positions]", self.positions):
            q, k = encoding.place(q, k)
            score = encoding.bend(score or scaled_dot(), q)
        pooled, weights = self.attention.attend(q, k, v, score, combined_mask(mask, valid_lens, x))
        return Attention(self.attention.join(pooled.transpose(-3, -2)), weights)
