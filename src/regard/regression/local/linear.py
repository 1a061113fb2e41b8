"""Degree 1: at each query a line through the data near by, by weighted least squares.

With the weights p_i of degree 0, the mean m of v and its covariance S under them, the line at v has the slope
b = S^-1 Cov(v, y) and the value E[y] + b (v - m). It is linear in y: its weights are

    l_i(x) = p_i(x) (1 + (v - m) S^-1 (v_i - m)),

which sum to 1 and may be negative. Where the data near a query does not vary in some direction (one point in reach,
equal points, a far query that one point decides), S has no inverse: the slope in that direction is taken as 0, the
limit of a ridge that goes to 0, and with no direction left the answer is that of degree 0.

Whatever is asked, the line is drawn through the points themselves (`_exact_lines`). Where pairs are many, quicker ways
come first that know how far off they may be, and the points answer what these leave open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.operands import NEVER
from regard.regression.kernel_sums.relative_weights import Statistic
from regard.regression.kernel_sums.state import Pooled
from regard.regression.local import extrapolation, linear_exact, linear_from_averages
from regard.regression.local.constant import own_weight
from regard.regression.local.data import Data
from regard.regression.local.smoother import LinearSmoother
from regard.regression.local.squared_weights import Noise

Quick = Callable[[Data, Float[Tensor, "q dim"]], tuple[tuple[Tensor, ...], Bool[Tensor, " q"]]]


@dataclass(frozen=True, eq=False)
class LocalLinear:
    data: Data
    degree: ClassVar[int] = 1

    def predict(self, query: Float[Tensor, "q dim"]) -> Float[Tensor, "q outputs"]:
        """By the fast sum where that is certain to `tol` standard deviations of y, else from the points."""
        middle = self.data.sample.values.mean(0)
        answer = linear_exact.value(self.data.sample.values - middle)
        found = self.data.lines(query)
        if found is None:
            lse, value = self._asked(query, answer, linear_from_averages.value)
            pooled = Pooled(lse, value + middle, torch.zeros_like(lse))
            return extrapolation.answer(self.data, query, pooled).mean
        redo = (~(found.error <= self.data.tol)).nonzero().squeeze(-1)
        if len(redo):
            found.value[redo] = self.data.near(query[redo], answer)[1] + middle
        return found.value

    def _asked(self, query: Float[Tensor, "q dim"], answer: Statistic, quick: Quick) -> tuple[Tensor, ...]:
        """From the points where these are few, else quickly; from the points again where that is in doubt."""
        if self.data.few(query):
            return self.data.near(query, answer)
        found, doubt = quick(self.data, query)
        redo = doubt.nonzero().squeeze(-1)
        if len(redo):
            again = self.data.near(query[redo], answer)
            found = tuple(whole.index_copy(0, redo, part) for whole, part in zip(found, again, strict=True))
        return found

    def noise(self, query: Float[Tensor, "q dim"], variance: Float[Tensor, "n outputs"]) -> Noise:
        """The variance of a row near each query, and how much of it the prediction keeps."""
        log_weight = self.data.sample.log_weight
        answer = linear_exact.noise(variance, None if log_weight is None else log_weight.exp())
        lse, near, kept, total = self._asked(query, answer, linear_from_averages.noise(variance))
        pooled = Pooled(lse, near, torch.zeros_like(lse))
        return extrapolation.noise(self.data, query, variance, pooled, Noise(near, kept, 1 / total))

    def derivative(self, query: Float[Tensor, "q dim"]) -> Float[Tensor, "q dim outputs"]:
        """df/dx of the fit itself, which is not the slope of the local line: the line changes with x too."""
        data, values = self.data, self.data.sample.values
        lse, slope = data.near(query, linear_exact.derivative(data.sample, values - values.mean(0)))
        return data.spread_out(extrapolation.slope(data, lse == NEVER, slope))

    def weights(self, query: Float[Tensor, "q dim"]) -> LinearSmoother:
        return LinearSmoother(self.data, query)

    def leverage(self) -> Float[Tensor, " n"]:
        """l_ii = p_ii (1 + (v_i - m) S^-1 (v_i - m))."""
        answer = linear_exact.lift(self.data.sample.values)
        lse, lift = self._asked(self.data.table(), answer, linear_from_averages.lift)
        return own_weight(self.data, lse) * (1 + lift)
