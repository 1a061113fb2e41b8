"""One call of attention as it is kept: what the weights are made of, never the weights."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from regard.spec import Spec
from regard.weights import Weights


@dataclass(frozen=True, eq=False)
class Call:
    """Query, key and everything else on which the weights of one layer's call depend."""

    name: str  # the module's path in the model
    step: int  # which forward pass
    query: Tensor  # (batch, heads, n, dim)
    key: Tensor  # (batch, key heads, m, dim)
    spec: Spec
    lse: Tensor | None = None  # (batch, heads, n), where the model's own kernel gave it
    cross: bool = False  # whether queries and keys come from two sequences
    heads: tuple[int, ...] | None = None  # which of the layer's query heads were kept; None: all

    @property
    def shape(self) -> tuple[int, ...]:
        """(batch, heads, queries, keys); a layer of another kind may have other leading dimensions."""
        return (*self.query.shape[:-1], self.key.shape[-2])

    def weights(self) -> Weights:
        """The lazy matrix (batch, heads, n, m)."""
        return Weights(self.query, self.key, self.spec.score, self.spec.mask, self.spec.normaliser)
