"""Categories in leave-one-out: which points are of another kind than a row, what that costs them, and what it gains.

With L = log((c - 1) (1 - lambda) / lambda) a point of another category has exp(-L) times its weight, so

    d f_-i / d L = -sum_j p_ij [c_i != c_j] (y_j - f_-i),    d L / d lambda = -1 / (lambda (1 - lambda)).

All rows of one combination of categories see the same others: a block of rows, in the order of the combinations, needs
a vector for each of the few that it holds.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.operands import NEVER
from regard.regression.kernel_sums.categorical import Kinds


class Unlike(NamedTuple):
    """For each combination of categories among some rows: the points that differ from it."""

    whose: Int[Tensor, " rows"]  # the combination of each row
    differs: Bool[Tensor, "kinds combinations n"]
    log_weight: Float[Tensor, "combinations n"]  # what lambdas above 0 leave of a point's weight
    steps: Int[Tensor, "combinations n"] | None  # categories of lambda 0 in which it differs

    @classmethod
    def of(cls, kinds: Kinds, rows: Tensor) -> Unlike:
        combinations, whose = torch.unique(kinds.codes[rows], dim=0, return_inverse=True)
        differs = combinations.mT.unsqueeze(2) != kinds.codes.mT.unsqueeze(1)
        log_other = kinds.log_other
        weight = torch.zeros(differs.shape[1:], dtype=log_other.dtype, device=log_other.device)
        for other, apart in zip(log_other.tolist(), differs, strict=True):
            if other > NEVER:
                weight.add_(apart.to(weight.dtype), alpha=other)
        firm = log_other == NEVER
        return cls(whose, differs, weight, differs[firm].sum(0) if bool(firm.any()) else None)

    def weights(self) -> Float[Tensor, "rows n"] | Float[Tensor, "1 n"]:
        """The log weight of each point for each row."""
        return self.log_weight if len(self.log_weight) == 1 else self.log_weight[self.whose]

    def limit(self, scores: Float[Tensor, "rows n"]) -> None:
        """Lambda = 0: of the points that a row sees, those stay that differ in the fewest categories."""
        if self.steps is None:
            return
        steps = self.steps[self.whose]
        fewest = torch.where(scores > NEVER, steps, len(self.differs)).amin(1, keepdim=True)
        scores.masked_fill_(steps > fewest, NEVER)

    def totals(self, pairs: Float[Tensor, "rows n"]) -> Float[Tensor, " kinds"]:
        """The sum over all pairs that differ, for each column of categories."""
        if len(self.log_weight) == 1:
            total = pairs.sum(0, keepdim=True)
        else:
            total = torch.zeros_like(self.log_weight).index_add_(0, self.whose, pairs)
        return torch.stack([(total * apart).sum() for apart in self.differs])
