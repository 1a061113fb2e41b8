"""What the layers of queries, keys and values have in common: the call."""

from __future__ import annotations

from torch import Tensor, nn

from regard.attention import Attention, attend
from regard.masks import Mask
from regard.nn import _parameters
from regard.nn._valid_lens import visible
from regard.scores import Score


class Attending(nn.Module):
    """A layer that pools values by softmax; subclasses fill in `score`, and say how wide queries and keys are."""

    query_dim: int | None = None  # None: any width
    key_dim: int | None = None
    dropout: float = 0.0

    def score(self, keys: int) -> Score:
        """The score for so many keys."""
        raise NotImplementedError

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Mask | None = None,
        valid_lens: Tensor | None = None,
    ) -> Attention:
        """Pool the values for each query."""
        score = self.checked_score(query, key)
        return attend(query, key, value, score, visible(mask, valid_lens, query, key), dropout_p=self.dropout_now)

    def checked_score(self, query: Tensor, key: Tensor) -> Score:
        """The score for these inputs, if they have the widths that the layer was built for."""
        _parameters.check_widths(self, query=(query, self.query_dim), key=(key, self.key_dim))
        has_rows = isinstance(key, Tensor) and key.dim() > 1  # if not, the checks of `attend` say so
        return self.score(key.shape[-2] if has_rows else 0)

    @property
    def dropout_now(self) -> float:
        return self.dropout if self.training else 0.0
