"""Score, mask and normaliser, frozen together: all that a row of weights depends on beside query and key."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from regard.masks import Mask
from regard.normalisers import Normaliser
from regard.scores import Score
from regard.term import merge_named


@dataclass(frozen=True, slots=True, eq=False)
class Spec:
    """The formula of attention weights: normaliser(score where mask). Its repr reads as that formula."""

    score: Score
    mask: Mask | None
    normaliser: Normaliser

    signature: Hashable = field(init=False)  # all that a plan may depend on

    def __post_init__(self) -> None:
        mask = None if self.mask is None else self.mask.signature
        object.__setattr__(self, "signature", (self.score.signature, mask, self.normaliser.signature))

    def tensors(self) -> Mapping[str, Tensor]:
        """The caller's tensors in score and mask, each under its label."""
        return merge_named(self.score.tensors(), {} if self.mask is None else self.mask.tensors())

    @property
    def hides_keys(self) -> bool:
        """True if a score may be -inf, so that a row may be empty."""
        return self.mask is not None or self.score.hides_keys

    def of_head(self, head: int) -> Spec:
        """The formula for one head of weights (batch, heads, queries, keys)."""
        mask = None if self.mask is None else self.mask.of_head(head)
        return Spec(self.score.of_head(head), mask, self.normaliser.of_head(head))

    def __repr__(self) -> str:
        where = "" if self.mask is None else f" where {self.mask}"
        return f"{self.normaliser}({self.score}{where})"
