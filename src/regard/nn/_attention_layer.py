"""Base class of the layers that take queries, keys and values and pool by softmax."""

from __future__ import annotations

from jaxtyping import Float, Integer
from torch import Tensor, nn

from regard.attention import Attention, attend
from regard.masks import Mask
from regard.nn import _parameters
from regard.nn._valid_lens import combined_mask
from regard.scores import Score
from regard.tracing import refuse_script


class AttentionLayer(nn.Module):
    """A layer that pools values by softmax. Subclasses define `score` and set the widths of queries and keys."""

    __prepare_scriptable__ = refuse_script

    query_dim: int | None = None  # None: any width
    key_dim: int | None = None
    dropout: float = 0.0

    def score(self, keys: int) -> Score:
        """The score term for this number of keys."""
        raise NotImplementedError

    def forward(
        self,
        query: Float[Tensor, "*query_lead queries query_dim"],
        key: Float[Tensor, "*key_lead keys key_dim"],
        value: Float[Tensor, "*value_lead keys value_dim"],
        mask: Mask | None = None,
        valid_lens: Integer[Tensor, "..."] | None = None,
    ) -> Attention:
        """Pool the values for each query: output (..., queries, value_dim) and lazy weights (..., queries, keys).

        mask: one of `regard.masks`. valid_lens: the number of keys that are no padding, (batch,) or (batch, queries).
        """
        score = self.checked_score(query, key)
        return attend(query, key, value, score, combined_mask(mask, valid_lens, query, key), dropout_p=self.dropout_now)

    def checked_score(
        self, query: Float[Tensor, "*query_lead queries query_dim"], key: Float[Tensor, "*key_lead keys key_dim"]
    ) -> Score:
        """The score term for these inputs, whose widths are checked."""
        _parameters.check_widths(self, query=(query, self.query_dim), key=(key, self.key_dim))
        has_rows = isinstance(key, Tensor) and key.dim() > 1  # if not, `attend` refuses it
        return self.score(key.shape[-2] if has_rows else 0)

    @property
    def dropout_now(self) -> float:
        """The dropout probability in the present mode: 0 in eval."""
        return self.dropout if self.training else 0.0
