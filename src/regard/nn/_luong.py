"""Luong's global attention, and what his global and local ones have in common."""

from __future__ import annotations

import torch
from torch import nn

from regard import scores
from regard.errors import ChoiceError, ShapeError
from regard.nn import _parameters
from regard.nn._attention_layer import Attending
from regard.scores import Score

FORMULAS = {"dot": "q·k_j", "general": "q·W k_j", "concat": "v·tanh(W [q; k_j])", "location": "(W q)_j"}


class Scored(Attending):
    """A layer that scores a query and a key in one of Luong's ways, and holds the parameters of that."""

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
        _parameters.whole(layer, query_dim=query_dim, key_dim=key_dim, hidden=query_dim if hidden is None else hidden)
        if scoring == "dot" and query_dim != key_dim:
            msg = f"{layer}: dot needs queries as wide as keys, but query_dim is {query_dim} and key_dim is {key_dim}"
            raise ChoiceError(msg)
        if (scoring == "location") != (max_keys is not None):
            msg = f"{layer} needs max_keys, the most keys there may be, with location alone: it is {max_keys}"
            raise ChoiceError(msg)
        self.query_dim, self.key_dim, self.scoring, self.max_keys = query_dim, key_dim, scoring, max_keys
        self.hidden = query_dim if hidden is None else hidden
        self.dropout = _parameters.probability(layer, dropout)
        shape = {
            "general": (query_dim, key_dim),
            "concat": (self.hidden, query_dim + key_dim),
            "location": (max_keys or 0, query_dim),
        }.get(scoring)
        options = {"device": device, "dtype": dtype}
        self.register_parameter("w", None if shape is None else _parameters.parameter(*shape, **options))
        self.register_parameter("v", _parameters.parameter(self.hidden, **options) if scoring == "concat" else None)

    def reset_parameters(self) -> None:
        """Start anew."""
        _parameters.start(*self.parameters(recurse=False))

    def score(self, keys: int) -> Score:
        """The score for so many keys."""
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
        """The formula and the sizes in it."""
        sizes = f"query_dim={self.query_dim}, key_dim={self.key_dim}"
        hidden = f", hidden={self.hidden}" if self.v is not None else ""
        most = "" if self.max_keys is None else f", max_keys={self.max_keys}"
        dropped = f", dropout={self.dropout:g}" if self.dropout else ""
        return f"{self.formula()}, {sizes}{hidden}{most}{dropped}"

    def formula(self) -> str:
        """The weights of a query, as one writes them."""
        return f"softmax_j({FORMULAS[self.scoring]})"


class LuongAttention(Scored):
    r"""The global attention of Luong, Pham and Manning (2015), with the four scores of the paper.

    output_i = sum_j softmax_j(e_ij) v_j, where e_ij is by `method`

    - "dot": q_i · k_j;
    - "general": q_i · W k_j, with w (query_dim, key_dim);
    - "concat": v · tanh(W [q_i; k_j]), with w (hidden, query_dim + key_dim) and v (hidden,); hidden is query_dim
      unless given;
    - "location": (W q_i)_j, with w (max_keys, query_dim), which looks at no key but at its place. With m < max_keys
      keys the first m rows of W are used, and the softmax is over those; more than max_keys keys are refused.

    The output is the paper's context vector c_t. Dropout acts in training, on what is pooled and not on `weights`.

    Shapes: query (..., n, query_dim), key (..., m, key_dim), value (..., m, d_v); output (..., n, d_v), weights
    (..., n, m). valid_lens, how many keys are no padding: (batch,), or one for each query, (batch, n).

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
        _parameters.one_of("LuongAttention", "method", method, list(FORMULAS))
        if max_keys is not None:
            _parameters.whole("LuongAttention", max_keys=max_keys)
        super().__init__(query_dim, key_dim, method, hidden, max_keys, dropout, device=device, dtype=dtype)
        self.reset_parameters()
