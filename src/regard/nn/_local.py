"""Luong's local attention: a query looks at a window around one place."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from regard import masks
from regard.attention import Attention, attend
from regard.engine import inputs
from regard.errors import ChoiceError, DtypeError
from regard.masks import Mask
from regard.masks._rules import Near
from regard.nn import _parameters
from regard.nn._luong import FORMULAS, Scored
from regard.nn._valid_lens import key_counts, visible
from regard.normalisers import Tapered
from regard.term import type_name
from regard.tracing import is_tracing, without_autocast


class LocalAttention(Scored):
    r"""The local attention of Luong, Pham and Manning (2015): each query sees the keys within `window` of a place p.

    output_i = sum_j a_ij v_j over the keys |j - p_i| <= D, where by `method`

    - "m" (monotonic): p_i = i, or `positions`, which are needed where there are not as many queries as keys;
      a_i = softmax_j(e_ij) within the window;
    - "p" (predictive): p_i = S · sigmoid(v_p · tanh(W_p q_i)), where S is the number of keys, those of valid_lens
      if given; a_ij = softmax_j(e_ij) · exp(-(j - p_i)² / 2σ²) with σ = D / 2. The Gaussian comes after the softmax,
      as in the paper, and is how W_p and v_p learn: rows of these weights sum to less than 1. They say so
      (``weights.normalised`` is False), and refuse questions that need a distribution.

    Keys are counted from 0. e_ij is by `score` "dot", "general" or "concat", as in `LuongAttention`.

    Shapes: query (..., n, query_dim), key (..., m, key_dim), value (..., m, d_v), positions (..., n); output
    (..., n, d_v), weights (..., n, m). Parameters of "p": w_p (hidden, query_dim), v_p (hidden,); hidden is query_dim
    unless given.

    >>> import torch
    >>> from regard.nn import LocalAttention
    >>> layer = LocalAttention(query_dim=3, key_dim=3, window=1, method="m")
    >>> x = torch.ones(5, 3)
    >>> layer(x, x, x).weights[1]
    tensor([0.3333, 0.3333, 0.3333, 0.0000, 0.0000])
    >>> layer = LocalAttention(query_dim=3, key_dim=3, window=2, method="p")
    >>> weights = layer(x, x, x).weights
    >>> weights.normalised, bool((weights.dense().sum(-1) < 1).all())
    (False, True)
    """

    def __init__(
        self,
        query_dim: int,
        key_dim: int,
        window: int,
        method: str = "m",
        score: str = "dot",
        hidden: int | None = None,
        dropout: float = 0.0,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        _parameters.whole("LocalAttention", window=window)
        _parameters.one_of("LocalAttention", "method", method, ["m", "p"])
        _parameters.one_of("LocalAttention", "score", score, ["dot", "general", "concat"])
        super().__init__(query_dim, key_dim, score, hidden, None, dropout, device=device, dtype=dtype)
        self.window, self.method = window, method
        if method == "p":
            self.w_p = _parameters.parameter(self.hidden, query_dim, device=device, dtype=dtype)
            self.v_p = _parameters.parameter(self.hidden, device=device, dtype=dtype)
        self.reset_parameters()

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Mask | None = None,
        valid_lens: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Attention:
        """Pool the values in each query's window."""
        score, seen = self.checked_score(query, key), visible(mask, valid_lens, query, key)
        shape = inputs.check(query, key, value, inputs.make_spec(score, seen, None))
        normaliser = None
        if self.method == "m":
            window = self._window_of(positions, shape)
        else:
            if positions is not None:
                msg = "LocalAttention with method 'p' predicts positions from the queries, but it was given some"
                raise ChoiceError(msg)
            centres, known = self._centres(query, key_counts(valid_lens, shape.m, len(shape.lead)), len(shape.lead))
            normaliser = Tapered(centres, shape.m, self.window / 2)
            window = Near(torch.where(known, centres.detach(), math.nan), self.window)
        seen = window if seen is None else window & seen
        return attend(query, key, value, score, seen, normaliser, dropout_p=self.dropout_now)

    def _window_of(self, positions: Tensor | None, shape: inputs.MatrixShape) -> Mask:
        if positions is None:
            if shape.n != shape.m:
                msg = (
                    f"LocalAttention with method 'm' puts query i beside key i, but there are {shape.n} queries and "
                    f"{shape.m} keys: say with positions (..., {shape.n}) beside which key each query stands"
                )
                raise ChoiceError(msg)
            return masks.window(self.window, self.window)
        if not isinstance(positions, Tensor) or positions.is_complex() or positions.dtype == torch.bool:
            what = type_name(positions)
            msg = f"positions must be a tensor of numbers, the key that each query stands beside, not {what}"
            raise DtypeError(msg)
        return Near(positions.to(torch.promote_types(positions.dtype, torch.float32)), self.window)

    def _centres(self, query: Tensor, counts: Tensor | int, lead: int) -> tuple[Tensor, Tensor]:
        """p = S sigmoid(v_p · tanh(W_p q)), (..., n) with all leading dimensions, and where it is no NaN.

        Where it is one, the place is that of a query of zeros: a query that sees nothing must not spoil W_p.
        """
        with without_autocast():
            shares = self._shares(query)
            known = ~shares.detach().isnan()
            if is_tracing() or not bool(known.all()):
                shares = self._shares(torch.where(known.unsqueeze(-1), query, 0.0))
            centres = counts * shares
        known = known.expand(centres.shape)
        missing = [1] * (lead + 1 - centres.dim())
        return centres.reshape(*missing, *centres.shape), known.reshape(*missing, *centres.shape)

    def _shares(self, query: Tensor) -> Tensor:
        """How far along the keys each query looks, from 0 to 1."""
        kind = torch.promote_types(query.dtype, torch.float32)  # places need digits
        return torch.sigmoid(torch.tanh(query.to(kind) @ self.w_p.to(kind).mT) @ self.v_p.to(kind))

    def formula(self) -> str:
        """The weights of a query, as one writes them."""
        aligned = f"softmax_j({FORMULAS[self.scoring]} where |j - p| <= {self.window})"
        if self.method == "m":
            return f"{aligned}, p = i"
        return f"{aligned} exp(-(j - p)² / {self.window**2 / 2:g}), p = S sigmoid(v_p·tanh(W_p q))"
