"""Additive attention (Bahdanau)."""

from __future__ import annotations

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from regard import scores
from regard.attention import Attention, attend
from regard.nn import _parameters
from regard.nn._attention_layer import AttentionLayer
from regard.nn._valid_lens import combined_mask
from regard.scores import Score


class AdditiveAttention(AttentionLayer):
    r"""Additive attention (Bahdanau, Cho and Bengio 2015): the score is a network with one hidden layer.

    output_i = sum_j softmax_j(e_ij) v_j with e_ij = v · tanh(W_q q_i + W_k k_j). The queries × keys × hidden numbers
    inside the tanh are never held at once. Dropout acts in training, on the pooled weights and not on `weights`.

    Shapes: query (..., n, query_dim), key (..., m, key_dim), value (..., m, d_v); output (..., n, d_v), weights
    (..., n, m), lazy. mask is one of `regard.masks`; valid_lens is the number of keys that are no padding, (batch,), or
    for each query, (batch, n). Parameters: w_q (hidden, query_dim), w_k (hidden, key_dim), v (hidden,).

    >>> import torch
    >>> from regard.nn import AdditiveAttention
    >>> layer = AdditiveAttention(query_dim=20, key_dim=2, hidden=8)
    >>> query, key, value = torch.randn(2, 1, 20), torch.ones(2, 10, 2), torch.randn(2, 10, 4)
    >>> output, weights = layer(query, key, value, valid_lens=torch.tensor([2, 6]))
    >>> output.shape, weights[0, 0, :3]
    (torch.Size([2, 1, 4]), tensor([0.5000, 0.5000, 0.0000]))
    """

    def __init__(
        self,
        query_dim: int,
        key_dim: int,
        hidden: int,
        dropout: float = 0.0,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        _parameters.check_sizes("AdditiveAttention", query_dim=query_dim, key_dim=key_dim, hidden=hidden)
        self.query_dim: int | None = query_dim
        self.key_dim: int | None = key_dim
        self.hidden: int = hidden
        self.dropout: float = _parameters.check_dropout("AdditiveAttention", dropout)
        self.w_q: nn.Parameter = _parameters.empty_parameter(hidden, query_dim, device=device, dtype=dtype)
        self.w_k: nn.Parameter = _parameters.empty_parameter(hidden, key_dim, device=device, dtype=dtype)
        self.v: nn.Parameter = _parameters.empty_parameter(hidden, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial parameters."""
        _parameters.init_uniform(self.w_q, self.w_k, self.v)

    def score(self, keys: int) -> Score:
        """The score v · tanh(W_q q + W_k k), for any number of keys."""
        del keys
        return scores.additive(self.w_q, self.w_k, self.v)

    def project_keys(self, key: Float[Tensor, "*lead keys key_dim"]) -> Float[Tensor, "*lead keys hidden"]:
        """W_k k for each key: what `attend_projected` takes, so that a decoder computes it once for all its steps."""
        _parameters.check_widths(self, key=(key, self.key_dim))
        return key @ self.w_k.mT

    def attend_projected(
        self,
        query: Float[Tensor, "*query_lead queries query_dim"],
        projected: Float[Tensor, "*key_lead keys hidden"],
        value: Float[Tensor, "*value_lead keys value_dim"],
        valid_lens: Integer[Tensor, "..."] | None = None,
    ) -> Attention:
        """Pool the values, given the keys as `project_keys` returned them; the result is that of a plain call."""
        _parameters.check_widths(self, query=(query, self.query_dim), projected=(projected, self.hidden))
        mask = combined_mask(None, valid_lens, query, projected)
        score = scores.additive(self.w_q, None, self.v)
        return attend(query, projected, value, score, mask, dropout_p=self.dropout_now)

    def extra_repr(self) -> str:
        """Formula and sizes, as `print(layer)` shows them."""
        sizes = f"query_dim={self.query_dim}, key_dim={self.key_dim}, hidden={self.hidden}"
        dropped = f", dropout={self.dropout:g}" if self.dropout else ""
        return f"softmax_j(v·tanh(W_q q + W_k k_j)), {sizes}{dropped}"
