"""Luong's local attention: a query sees a window of keys around one position."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Integer, Shaped
from torch import Tensor, nn

from regard import masks
from regard.attention import Attention, attend
from regard.engine import inputs
from regard.errors import ChoiceError, DtypeError
from regard.masks import Mask, Near
from regard.nn import _parameters
from regard.nn._luong import FORMULAS, LuongLayer
from regard.nn._valid_lens import combined_mask, key_counts
from regard.normalisers import Tapered
from regard.term import type_name
from regard.tracing import is_tracing, without_autocast


class LocalAttention(LuongLayer):
    r"""Local attention of Luong, Pham and Manning (2015): each query sees the keys within `window` of a position p.

    output_i = sum_j a_ij v_j over the keys |j - p_i| <= D, with D = window, where `method` chooses p and a:

    - "m" (monotonic): p_i = i, or `positions`, which are needed if numbers of queries and keys differ;
      a_i = softmax_j(e_ij) within the window;
    - "p" (predictive): p_i = S · sigmoid(v_p · tanh(W_p q_i)), where S is the number of keys, those of valid_lens
      if given; a_ij = softmax_j(e_ij) · exp(-(j - p_i)² / 2σ²) with σ = D / 2. The Gaussian comes after the softmax,
      as in the paper, and passes the gradient to W_p and v_p. So rows of these weights sum to less than 1:
      ``weights.normalised`` is False, and methods that need a distribution, such as `entropy`, refuse them.

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
        _parameters.check_sizes("LocalAttention", window=window)
        _parameters.check_choice("LocalAttention", "method", method, ["m", "p"])
        _parameters.check_choice("LocalAttention", "score", score, ["dot", "general", "concat"])
        super().__init__(query_dim, key_dim, score, hidden, None, dropout, device=device, dtype=dtype)
        self.window: int = window
        self.method: str = method
        if method == "p":
            self.w_p: nn.Parameter = _parameters.empty_parameter(self.hidden, query_dim, device=device, dtype=dtype)
            self.v_p: nn.Parameter = _parameters.empty_parameter(self.hidden, device=device, dtype=dtype)
        self.reset_parameters()

    def forward(
        self,
        query: Float[Tensor, "*query_lead queries query_dim"],
        key: Float[Tensor, "*key_lead keys key_dim"],
        value: Float[Tensor, "*value_lead keys value_dim"],
        mask: Mask | None = None,
        valid_lens: Integer[Tensor, "..."] | None = None,
        positions: Shaped[Tensor, "... queries"] | None = None,
    ) -> Attention:
        """Pool the values in each query's window: output (..., queries, value_dim) and lazy weights."""
        score, mask = self.checked_score(query, key), combined_mask(mask, valid_lens, query, key)
        shape = inputs.check(query, key, value, inputs.make_spec(score, mask, None))
        normaliser = None
        if self.method == "m":
            window = self._window_mask(positions, shape)
        else:
            if positions is not None:
                msg = "LocalAttention with method 'p' predicts positions from the queries, but it was given some"
                raise ChoiceError(msg)
            centres, known = self._predicted_positions(
                query, key_counts(valid_lens, shape.m, len(shape.lead)), len(shape.lead)
            )
            normaliser = Tapered(centres, shape.m, self.window / 2)
            window = Near(torch.where(known, centres.detach(), math.nan), self.window)
        mask = window if mask is None else window & mask
        return attend(query, key, value, score, mask, normaliser, dropout_p=self.dropout_now)

    def _window_mask(self, positions: Shaped[Tensor, "... queries"] | None, shape: inputs.MatrixShape) -> Mask:
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

    def _predicted_positions(
        self, query: Float[Tensor, "*lead queries query_dim"], counts: Integer[Tensor, "... #queries"] | int, lead: int
    ) -> tuple[Float[Tensor, "*full queries"], Bool[Tensor, "*full queries"]]:
        """p = S sigmoid(v_p · tanh(W_p q)), (..., queries) with all leading dimensions, and True where it is no NaN.

        Where it is NaN, the position is that of a query of zeros: a query that sees no key must not spoil the gradient
        of W_p.
        """
        with without_autocast():
            fractions = self._fractions(query)
            known = ~fractions.detach().isnan()
            if is_tracing() or not bool(known.all()):
                fractions = self._fractions(torch.where(known.unsqueeze(-1), query, 0.0))
            centres = counts * fractions
        known = known.expand(centres.shape)
        missing = [1] * (lead + 1 - centres.dim())
        return centres.reshape(*missing, *centres.shape), known.reshape(*missing, *centres.shape)

    def _fractions(self, query: Float[Tensor, "*lead queries query_dim"]) -> Float[Tensor, "*lead queries"]:
        """Predicted position of each query as a fraction of the number of keys, from 0 to 1."""
        dtype = torch.promote_types(query.dtype, torch.float32)  # a position in bfloat16 would be rounded to whole keys
        return torch.sigmoid(torch.tanh(query.to(dtype) @ self.w_p.to(dtype).mT) @ self.v_p.to(dtype))

    def formula(self) -> str:
        """The weights of a query as a formula."""
        aligned = f"softmax_j({FORMULAS[self.scoring]} where |j - p| <= {self.window})"
        if self.method == "m":
            return f"{aligned}, p = i"
        return f"{aligned} exp(-(j - p)² / {self.window**2 / 2:g}), p = S sigmoid(v_p·tanh(W_p q))"
