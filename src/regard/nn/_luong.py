"""Luong's global attention, and the base class that it shares with his local attention."""

from __future__ import annotations

import torch
from torch import nn

from regard import scores
from regard.errors import ChoiceError, ShapeError
from regard.nn import _parameters
from regard.nn._attention_layer import AttentionLayer
from regard.scores import Score

FORMULAS = {"dot": "q·k_j", "general": "q·W k_j", "concat": "v·tanh(W [q; k_j])", "location": "(W q)_j"}


class LuongLayer(AttentionLayer):
    """A layer with one of Luong's four scores and its parameters."""

    w: nn.Parameter | None
    v: nn.Parameter | None

    def __init__(
        self,
        query_dim: int,
        key_dim: int,
        scoring: str,
        hidden: int | None,
        max_keys: int | None,
        dropout: float,
        *,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        layer = type(self).__name__
        _parameters.check_sizes(
            layer, query_dim=query_dim, key_dim=key_dim, hidden=query_dim if hidden is None else hidden
        )
        if scoring == "dot" and query_dim != key_dim:
            msg = f"{layer}: dot needs queries as wide as keys, but query_dim is {query_dim} and key_dim is {key_dim}"
            raise ChoiceError(msg)
        if (scoring == "location") != (max_keys is not None):
            msg = f"{layer} needs max_keys, the most keys there may be, with location alone: it is {max_keys}"
            raise ChoiceError(msg)
        self.query_dim: int | None = query_dim
        self.key_dim: int | None = key_dim
        self.scoring: str = scoring
        self.max_keys: int | None = max_keys
        self.hidden: int = query_dim if hidden is None else hidden
        self.dropout: float = _parameters.check_dropout(layer, dropout)
        shape = {
            "general": (query_dim, key_dim),
            "concat": (self.hidden, query_dim + key_dim),
            "location": (max_keys or 0, query_dim),
        }.get(scoring)
        options = {"device": device, "dtype": dtype}
        self.register_parameter("w", None if shape is None else _parameters.empty_parameter(*shape, **options))
        self.register_parameter(
            "v", _parameters.empty_parameter(self.hidden, **options) if scoring == "concat" else None
        )

    def reset_parameters(self) -> None:
        """Draw new initial parameters."""
        _parameters.init_uniform(*self.parameters(recurse=False))

    def score(self, keys: int) -> Score:
        """The score term for this number of keys; "location" has one row of W for each."""
        if self.w is None:
            return scores.dot()
        if self.v is not None:
            return scores.concat(self.w, self.v)
        if self.max_keys is None:
            return scores.general(self.w)
        if keys > self.max_keys:
            msg = f"location knows a place for each of max_keys = {self.max_keys} keys, but {keys} keys came"
            raise ShapeError(msg)
        return scores.location(self.w[:keys])

    def extra_repr(self) -> str:
        """Formula and sizes, as `print(layer)` shows them."""
        sizes = f"query_dim={self.query_dim}, key_dim={self.key_dim}"
        hidden = f", hidden={self.hidden}" if self.v is not None else ""
        most = "" if self.max_keys is None else f", max_keys={self.max_keys}"
        dropped = f", dropout={self.dropout:g}" if self.dropout else ""
        return f"{self.formula()}, {sizes}{hidden}{most}{dropped}"

    def formula(self) -> str:
        """The weights of a query as a formula."""
        return f"softmax_j({FORMULAS[self.scoring]})"


class LuongAttention(LuongLayer):
    r"""Global attention of Luong, Pham and Manning (2015), with the four scores of the paper.

    output_i = sum_j softmax_j(e_ij) v_j, where `method` chooses the score e_ij:

    - "dot": q_i · k_j;
    - "general": q_i · W k_j, with w (query_dim, key_dim);
    - "concat": v · tanh(W [q_i; k_j]), with w (hidden, query_dim + key_dim) and v (hidden,); hidden is query_dim
      unless given;
    - "location": (W q_i)_j, with w (max_keys, query_dim), which depends on the position of a key alone. With m <
      max_keys keys the first m rows of W are used; more than max_keys keys are refused.

    The output is the paper's context vector c_t. Dropout acts in training, on the pooled weights and not on `weights`.

    Shapes: query (..., n, query_dim), key (..., m, key_dim), value (..., m, d_v); output (..., n, d_v), weights
    (..., n, m), lazy. mask is one of `regard.masks`; valid_lens is the number of keys that are no padding, (batch,), or
    for each query, (batch, n).

    >>> import torch
    >>> from regard.nn import LuongAttention
    >>> layer = LuongAttention(query_dim=3, key_dim=5, method="general")
    >>> query, key = torch.randn(2, 7, 3), torch.randn(2, 11, 5)
    >>> output, weights = layer(query, key, key)
    >>> output.shape, weights.shape
    (torch.Size([2, 7, 5]), torch.Size([2, 7, 11]))
    >>> layer
    LuongAttention(softmax_j(q·W k_j), query_dim=3, key_dim=5)
    """

    def __init__(
        self,
        query_dim: int,
        key_dim: int,
        method: str = "dot",
        hidden: int | None = None,
        max_keys: int | None = None,
        dropout: float = 0.0,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        _parameters.check_choice("LuongAttention", "method", method, list(FORMULAS))
        if max_keys is not None:
            _parameters.check_sizes("LuongAttention", max_keys=max_keys)
        super().__init__(query_dim, key_dim, method, hidden, max_keys, dropout, device=device, dtype=dtype)
        self.reset_parameters()
