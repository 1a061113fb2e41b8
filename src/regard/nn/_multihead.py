"""Multi-head attention: a drop-in for torch's layer with lazy weights."""

from __future__ import annotations

import math
import sys
from typing import Any, Literal

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.nn.functional import linear
from torch.nn.init import constant_, xavier_normal_, xavier_uniform_

from regard.attention import Attention, attend
from regard.errors import ChoiceError, LayerError
from regard.masks import Mask
from regard.scores import Score
from regard.torch_compat import masks
from regard.torch_compat.multihead import append_extra_keys, disable_fast_path, heads_first, project
from regard.tracing import is_tracing, refuse_script
from regard.weights import Weights, matrix_of

AVERAGED_AT_ONCE = 1 << 22  # weights of all heads that are held while their average is computed


class MultiheadAttention(torch.nn.MultiheadAttention):
    r"""Multi-head attention: a drop-in for `torch.nn.MultiheadAttention` with lazy weights.

    output = [softmax(q_h · k_h / √d_h) v_h for each head h] W_o + b, with q_h, k_h, v_h linear in query, key, value.

    Shapes: query (n, batch, embed_dim), key (m, batch, kdim), value (m, batch, vdim), output (n, batch, embed_dim);
    with batch_first=True the batch comes first, and all three may come without a batch.

    Constructor, arguments, masks, parameters and initialisation are torch's, so a state_dict loads both ways.
    Differences from torch:

    - need_weights="lazy" gives `regard.Weights`, (batch, heads, n, m), never built; True and False give what torch
      gives: dense weights, or None.
    - Asking for weights does not change the output, and they are those before dropout.
    - A query that sees no key gets zeros from attention, not NaN, so its output is the bias b.
    - NaN in a key that is hidden, by True or by -inf, reaches neither the output nor a gradient.
    - is_causal=True always means the causal mask; attn_mask must still be given, as torch demands, and fit.
    - torch.nn.TransformerEncoderLayer calls it in eval too: torch's fast path, which would not, is disabled.

    >>> import torch, regard as rg
    >>> layer = rg.nn.MultiheadAttention(16, 4, batch_first=True)
    >>> x = torch.randn(2, 7, 16)
    >>> output, weights = layer(x, x, x, need_weights="lazy")
    >>> output.shape, weights.shape, weights.entropy().shape
    (torch.Size([2, 7, 16]), torch.Size([2, 4, 7, 7]), torch.Size([2, 4, 7]))
    """

    __prepare_scriptable__ = refuse_script

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            msg = f"embed_dim is a positive multiple of num_heads: embed_dim={embed_dim}, num_heads={num_heads}"
            raise LayerError(msg)
        super().__init__(
            embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first, device, dtype
        )
        disable_fast_path(self)

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            constant_(self.in_proj_bias, 0.0)
            constant_(self.out_proj.bias, 0.0)
        for vector in (self.bias_k, self.bias_v):
            if vector is not None:
                xavier_normal_(vector)

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Shaped[Tensor, "*batch keys"] | None = None,
        need_weights: bool | Literal["lazy"] = True,
        attn_mask: Shaped[Tensor, "*batch_and_heads queries keys"] | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | Weights | None]:
        """Attend as torch's layer does: output, and dense weights, None or (need_weights="lazy") `regard.Weights`."""
        if isinstance(need_weights, str) and need_weights != "lazy":
            msg = f"need_weights is True, False or 'lazy', not {need_weights!r}"
            raise ChoiceError(msg)
        if query.is_nested:
            return self._nested(query, key, value, need_weights, average_attn_weights)
        return self._plain(
            query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal
        )

    def _plain(
        self,
        query: Float[Tensor, "*lead embed_dim"],
        key: Float[Tensor, "*key_lead kdim"],
        value: Float[Tensor, "*value_lead vdim"],
        key_padding_mask: Shaped[Tensor, "*batch keys"] | None,
        need_weights: bool | Literal["lazy"],
        attn_mask: Shaped[Tensor, "*batch_and_heads queries all_keys"] | None,
        average: bool,
        is_causal: bool,
    ) -> tuple[Float[Tensor, "*lead embed_dim"], Float[Tensor, "... queries _"] | Weights | None]:
        if is_causal and attn_mask is None:
            msg = "is_causal=True says that attn_mask is the causal mask, so attn_mask must be given, as for torch"
            raise LayerError(msg)
        self._check(query, key, value, key_padding_mask, attn_mask)
        q, k, v = (heads_first(self, x) for x in project(self, query, key, value))
        extra = (self.bias_k is not None) + self.add_zero_attn
        if extra:
            k, v = append_extra_keys(self, k, self.bias_k), append_extra_keys(self, v, self.bias_v)
        pairs = None if attn_mask is None else masks.split_heads(attn_mask, self.num_heads)
        causal = is_causal and not extra  # keys that the layer adds are seen by all
        score, mask = masks.layer_terms(pairs, key_padding_mask, (q, k, v), is_causal=causal, extra=extra)
        pooled, weights = self.attend(q, k, v, score, mask)
        rows_first = pooled.dim() == 4 and not self.batch_first
        output = self.join(pooled.permute(2, 0, 1, 3) if rows_first else pooled.transpose(-3, -2))
        if isinstance(need_weights, str):
            return output, weights
        return output, _dense(weights, average=average) if need_weights else None

    # The three steps, for layers that put something between them

    def project(
        self,
        query: Float[Tensor, "*lead embed_dim"],
        key: Float[Tensor, "*key_lead kdim"],
        value: Float[Tensor, "*key_lead vdim"],
    ) -> tuple[
        Float[Tensor, "*lead heads dim"], Float[Tensor, "*key_lead heads dim"], Float[Tensor, "*key_lead heads dim"]
    ]:
        """(..., embed_dim), (..., kdim), (..., vdim) -> (..., heads, dim) three times."""
        return project(self, query, key, value)  # pyright: ignore[reportReturnType]

    def attend(
        self,
        q: Float[Tensor, "*lead heads queries dim"],
        k: Float[Tensor, "*lead heads keys dim"],
        v: Float[Tensor, "*lead heads keys dim"],
        score: Score | None,
        mask: Mask | None,
    ) -> Attention:
        """`regard.attend` with the layer's dropout: (..., heads, rows, dim) -> (..., heads, n, dim)."""
        p = self.dropout if self.training else 0.0
        if p != 1:
            return attend(q, k, v, score, mask, dropout_p=p)
        pooled, weights = attend(q, k, v, score, mask)
        return Attention(pooled * 0.0, weights)  # torch accepts a dropout of 1

    def join(self, pooled: Float[Tensor, "*lead heads dim"]) -> Float[Tensor, "*lead embed_dim"]:
        """The output projection: (..., heads, dim) -> (..., embed_dim)."""
        return linear(pooled.flatten(-2), self.out_proj.weight, self.out_proj.bias)

    def _nested(
        self, query: Tensor, key: Tensor, value: Tensor, need_weights: bool | Literal["lazy"], average: bool
    ) -> tuple[Tensor, Tensor | Weights | None]:
        """Attend over a nested tensor, into which torch.nn.TransformerEncoder packs padded sequences in eval."""
        if query is not key or key is not value or not self.batch_first:
            msg = "nested tensors are for self-attention (query, key and value the same tensor) with batch_first=True"
            raise LayerError(msg)
        lengths = [len(sequence) for sequence in query.unbind()]
        x = query.to_padded_tensor(0.0)
        hidden = torch.arange(x.shape[1], device=x.device) >= torch.tensor(lengths, device=x.device)[:, None]
        output, weights = self._plain(x, x, x, hidden, need_weights, None, average, is_causal=False)
        return torch.nested.as_nested_tensor([row[:n] for row, n in zip(output, lengths, strict=True)]), weights

    def _check(
        self,
        query: Float[Tensor, "*lead embed_dim"],
        key: Float[Tensor, "*key_lead kdim"],
        value: Float[Tensor, "*value_lead vdim"],
        key_padding_mask: Shaped[Tensor, "*batch keys"] | None,
        attn_mask: Shaped[Tensor, "*batch_and_heads queries keys"] | None,
    ) -> None:
        rows = 1 if self.batch_first and query.dim() == 3 else 0  # the dimension of the rows
        if not self._fits(query, key, value, 1 - rows):
            layout = "batch, rows" if self.batch_first else "rows, batch"
            shapes = ", ".join(str(tuple(x.shape)) for x in (query, key, value))
            msg = (
                f"query, key and value are ({layout}, features) or (rows, features), with {self.embed_dim}, "
                f"{self.kdim} and {self.vdim} features, one batch and as many values as keys, but they are {shapes}"
            )
            raise LayerError(msg)
        lead = () if query.dim() == 2 else (query.shape[1 - rows],)
        n, m = query.shape[rows], key.shape[rows]
        masks.check(attn_mask, key_padding_mask, lead=lead, heads=self.num_heads, n=n, m=m)

    def _fits(
        self,
        query: Float[Tensor, "*lead embed_dim"],
        key: Float[Tensor, "*key_lead kdim"],
        value: Float[Tensor, "*value_lead vdim"],
        batch: int,
    ) -> bool:
        return (
            query.dim() in (2, 3)
            and query.dim() == key.dim() == value.dim()
            and (query.shape[-1], key.shape[-1], value.shape[-1]) == (self.embed_dim, self.kdim, self.vdim)
            and key.shape[:-1] == value.shape[:-1]
            and (query.dim() == 2 or query.shape[batch] == key.shape[batch])
        )

    def extra_repr(self) -> str:
        """Formula and sizes, as `print(layer)` shows them."""
        head = f"softmax(q·k / √{self.head_dim}) v"
        return f"[{head} for each of {self.num_heads} heads] W, {self.embed_dim} features"


def _dense(weights: Weights, *, average: bool) -> Float[Tensor, "... queries keys"]:
    """Dense weights as torch's layer returns them, differentiable: (..., heads, n, m), averaged (..., n, m)."""
    if is_tracing() or matrix_of(weights).wants_gradient():
        whole = matrix_of(weights).dense_with_graph()
        return whole.mean(-3) if average else whole
    if not average:
        return weights.dense(limit=sys.maxsize)
    *lead, n, m = weights.shape
    out = torch.empty((*lead[:-1], n, m), dtype=weights.dtype, device=weights.device)
    rows = max(1, AVERAGED_AT_ONCE // max(1, math.prod(lead) * m))
    for low in range(0, n, rows):
        out[..., low : low + rows, :] = weights[..., low : low + rows, :].mean(-3)
    return out
