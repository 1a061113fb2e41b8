"""Score, mask and normaliser, frozen together: all that a row of weights depends on beside query and key."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from regard.masks import Mask, Whole
from regard.normalisers import Normaliser
from regard.operands import Size, Span
from regard.scores import Score
from regard.term import merge_named


@dataclass(frozen=True, slots=True, eq=False)
class Spec:
    """The formula of attention weights: normaliser(score where mask). Its repr reads as that formula."""

    score: Score
    mask: Mask | None
    normaliser: Normaliser

    @property
    def signature(self) -> Hashable:
        """All that a plan may depend on."""
        mask = None if self.mask is None else self.mask.signature
        return (self.score.signature, mask, self.normaliser.signature)

    def all_tensors(self) -> list[Tensor]:
        """The caller's tensors in score and mask."""
        return self.score.all_tensors() + ([] if self.mask is None else self.mask.all_tensors())

    def tensors(self) -> Mapping[str, Tensor]:
        """The caller's tensors in score and mask, each under its label."""
        return merge_named(self.score.tensors(), {} if self.mask is None else self.mask.tensors())

    @property
    def hides_keys(self) -> bool:
        """True if a score may be -inf, so that a row may be empty."""
        return self.mask is not None or self.score.hides_keys

    def of_heads(self, heads: Sequence[int]) -> Spec:
        """The formula for some heads of weights (batch, heads, queries, keys)."""
        mask = None if self.mask is None else self.mask.of_heads(heads)
        return Spec(self.score.of_heads(heads), mask, self.normaliser.of_heads(heads))

    def part(self, whole: Whole | None, rows: Span, cols: Span, size: Size) -> Spec:
        """The formula on the rectangle of these rows and columns; `whole` is the mask on the whole matrix."""
        mask = None if self.mask is None or whole is None else self.mask.part(whole, rows, cols)
        return Spec(self.score.part(rows, cols, size), mask, self.normaliser)

    def at(self, axis: int, index: int, lead: int) -> Spec:
        """The formula at one index of a leading axis of the weights, which have `lead` such axes."""
        mask = None if self.mask is None else self.mask.at(axis, index, lead)
        return Spec(self.score.at(axis, index, lead), mask, self.normaliser.at(axis, index, lead))

    def __repr__(self) -> str:
        where = "" if self.mask is None else f" where {self.mask}"
        return f"{self.normaliser}({self.score}{where})"
