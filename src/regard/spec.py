"""Score, mask and normaliser frozen together: all that a row of weights depends on beside q and k."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from regard.masks import Mask
from regard.normalisers import Normaliser
from regard.scores import Score
from regard.term import joined


@dataclass(frozen=True, slots=True, eq=False)
class Spec:
    """What is computed. Its repr reads as the formula."""

    score: Score
    mask: Mask | None
    normaliser: Normaliser

    signature: Hashable = field(init=False)  # all that a plan may depend on

    def __post_init__(self) -> None:
        mask = None if self.mask is None else self.mask.signature
        object.__setattr__(self, "signature", (self.score.signature, mask, self.normaliser.signature))

    def tensors(self) -> Mapping[str, Tensor]:
        """The caller's tensors that the words hold, by name."""
        return joined(self.score.tensors(), {} if self.mask is None else self.mask.tensors())

    @property
    def gaps(self) -> bool:
        """Whether a score may be -inf, hence a row empty."""
        return self.mask is not None or self.score.compact

    def __repr__(self) -> str:
        where = "" if self.mask is None else f" where {self.mask}"
        return f"{self.normaliser}({self.score}{where})"
