"""What is averaged: points, the numbers that stand at them, and how far a point reaches."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard import scores
from regard.scores import Score


@dataclass(frozen=True, eq=False)
class Sample:
    """Data of a kernel average: sum_i s_i K(|(x - x_i) / h|) v_i over the same sum without v. All in float64."""

    x: Float[Tensor, "n dim"]
    values: Float[Tensor, "n columns"]
    bandwidth: Float[Tensor, " dim"]  # inf: the feature does not matter
    kernel: str = "gaussian"
    log_weight: Float[Tensor, " n"] | None = None  # log s; -inf: the point does not count

    def scaled(self, points: Float[Tensor, "q dim"]) -> Float[Tensor, "q dim"]:
        """Points in units of the bandwidth; a feature of infinite width says nothing."""
        return points / self.bandwidth

    def share(self) -> Float[Tensor, " n"]:
        """The weight of each point among all, before any kernel."""
        one = self.values.new_ones(len(self.values))
        return one / len(one) if self.log_weight is None else torch.softmax(self.log_weight, 0)

    def score(self) -> Score:
        """The same as a score of attention between scaled points."""
        score = scores.kernel(self.kernel)
        return score if self.log_weight is None else score + scores.bias(self.log_weight.unsqueeze(0))


def scale_of(values: Float[Tensor, "n columns"]) -> Float[Tensor, " columns"]:
    """The unit in which a column's error is promised: its standard deviation, or 1 where it is constant."""
    deviation = values.std(0, correction=0)
    return torch.where(deviation > 0, deviation, 1.0)
