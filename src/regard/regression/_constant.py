"""Degree 0: at each query the kernel average of y, which is attention."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression import _engine, _outside
from regard.regression._sample import Sample
from regard.regression._state import Pooled
from regard.weights import Weights


@dataclass(frozen=True, eq=False)
class Data:
    """A sample whose values are y, and how its averages are to be found: the one place where anything is pooled."""

    sample: Sample
    tol: float = 1e-6
    plan: str = "auto"
    outside: str = "nearest"

    def pool(self, query: Float[Tensor, "q dim"], values: Float[Tensor, "n columns"] | None = None) -> Pooled:
        sample = self.sample if values is None else self.with_values(values)
        return _engine.pool(sample, query, tol=self.tol, plan=self.plan)

    def with_values(self, values: Float[Tensor, "n columns"]) -> Sample:
        old = self.sample
        return Sample(old.x, values, old.bandwidth, old.kernel, old.log_weight)


@dataclass(frozen=True, eq=False)
class LocalConstant:
    """f(x) = sum_i p_i(x) y_i with p_i(x) = s_i K_i(x) / sum_j s_j K_j(x)."""

    data: Data

    def predict(self, query: Float[Tensor, "q dim"]) -> Float[Tensor, "q outputs"]:
        data = self.data
        return _outside.answer(data.pool(query), data.sample, query, data.outside).mean

    def weights(self, query: Float[Tensor, "q dim"]) -> Weights:
        """The matrix p as an object that is never built. A query that no point reaches has an empty row."""
        sample = self.data.sample
        return Weights(sample.scaled(query), sample.scaled(sample.x), score=sample.score())

    def leverage(self) -> Float[Tensor, " n"]:
        """p_ii, how much a point's own y decides its fit: K(0) = 1 over the sum of its row."""
        sample = self.data.sample
        lse = self.data.pool(sample.x, sample.x.new_zeros(len(sample.x), 1)).lse
        return torch.exp(-lse if sample.log_weight is None else sample.log_weight - lse)
