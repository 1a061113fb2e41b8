"""One call of attention as it is kept: what the weights are made of, never the weights."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from regard import scores
from regard.recording._bias import Bias
from regard.recording._visible import Visible
from regard.scores import Score
from regard.weights import Weights


@dataclass(frozen=True, eq=False)
class Call:
    """Query, key and everything else on which the weights of one layer's call depend."""

    name: str  # the module's path in the model
    step: int  # which forward pass
    query: Tensor  # (batch, heads, n, dim)
    key: Tensor  # (batch, key heads, m, dim)
    scale: float
    visible: Visible
    bias: Bias | None = None
    softcap: float | None = None
    lse: Tensor | None = None  # (batch, heads, n), where the model's own kernel gave it
    cross: bool = False  # whether queries and keys come from two sequences
    heads: tuple[int, ...] | None = None  # which of the layer's query heads were kept; None: all

    @property
    def shape(self) -> tuple[int, int, int, int]:
        batch, heads, n, _ = self.query.shape
        return batch, heads, n, self.key.shape[-2]

    def score(self) -> Score:
        score = scores.scaled_dot(self.scale)
        if self.softcap is not None:
            score = scores.softcap(score, self.softcap)
        return score if self.bias is None else score + self.bias.score()

    def weights(self) -> Weights:
        """The lazy matrix (batch, heads, n, m)."""
        n, m = self.shape[2:]
        return Weights(self.query, self.key, self.score(), self.visible.mask(n, m))

    def describe(self) -> str:
        """The mask, and what was added to the scores, in words."""
        parts = [self.visible.describe()]
        if self.bias is not None:
            parts.append(self.bias.describe())
        if self.softcap is not None:
            parts.append(f"softcap {self.softcap:g}")
        return ", ".join(parts)
