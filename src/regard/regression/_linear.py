"""Degree 1: at each query a line through the data near by, by weighted least squares.

With the weights p_i of degree 0, the mean m of v and its covariance S under them, the line at v has the slope
b = S^-1 Cov(v, y) and the value E[y] + b (v - m). It is linear in y: its weights are

    l_i(x) = p_i(x) (1 + (v - m) S^-1 (v_i - m)),

which sum to 1 and may be negative. Where the data near a query does not vary in some direction (one point in reach,
equal points, a far query that one point decides), S has no inverse: the slope in that direction is taken as 0, the
limit of a ridge that goes to 0, and with no direction left the answer is that of degree 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.regression import _outside, _squares
from regard.regression._constant import own_weight
from regard.regression._data import Data
from regard.regression._moments import Moments, by_autograd, moments
from regard.regression._smoother import LinearSmoother
from regard.regression._squares import Noise
from regard.regression.sums import _exact_lines
from regard.regression.sums._state import Pooled


@dataclass(frozen=True, eq=False)
class LocalLinear:
    data: Data
    degree: ClassVar[int] = 1

    def predict(self, query: Float[Tensor, "q dim"]) -> Float[Tensor, "q outputs"]:
        """By the fast sum where that is certain to `tol` standard deviations of y, else from the points."""
        found = self.data.lines(query)
        if found is None:
            return self._by_moments(query)
        redo = (~(found.error <= self.data.tol)).nonzero().squeeze(-1)
        if len(redo):
            found.value[redo] = _exact_lines.lines(self.data.sample, query[redo])
        return found.value

    def _by_moments(self, query: Float[Tensor, "q dim"]) -> Float[Tensor, "q outputs"]:
        found = moments(self.data, query)
        return _outside.answer(self.data, query, Pooled(found.lse, found.value(), torch.zeros_like(found.lse))).mean

    def noise(self, query: Float[Tensor, "q dim"], variance: Float[Tensor, "n outputs"]) -> Noise:
        """The variance of a row near each query, and how much of it the prediction keeps."""
        pooled = self.data.pool(query, variance)
        found = moments(self.data, query)
        factors = _factors(found)
        corners = self._corners(found)
        rows, cols = torch.triu_indices(factors.shape[1], factors.shape[1], device=factors.device)
        products = corners[:, rows] * corners[:, cols]
        squares = _squares.pool(self.data, query, pooled.lse, products)
        twice = torch.where(rows == cols, 1.0, 2.0)
        total = squares.lse.exp()
        kept = total * (squares.mean * factors[:, rows] * factors[:, cols] * twice).sum(1).clamp_min(0)
        return _outside.noise(self.data, query, variance, pooled, Noise(pooled.mean, kept, 1 / total))

    def _corners(self, found: Moments) -> Tensor:
        v = found.frame.place(self.data.sample.x)
        return torch.cat([torch.ones_like(v[:, :1]), v], 1)

    def derivative(self, query: Float[Tensor, "q dim"]) -> Float[Tensor, "q dim outputs"]:
        """df/dx of the fit itself, which is not the slope of the local line: the line changes with x too."""

        def fit(place: Tensor) -> Tensor:
            return moments(self.data, place, differentiable=True).value()

        data = self.data
        return data.spread_out(data.points(_outside.slope(data, query, by_autograd(fit, query))))

    def weights(self, query: Float[Tensor, "q dim"]) -> LinearSmoother:
        found = moments(self.data, query)
        return LinearSmoother(self.data.weights(query), _factors(found), self._corners(found))

    def leverage(self) -> Float[Tensor, " n"]:
        """l_ii = p_ii (1 + (v_i - m) S^-1 (v_i - m))."""
        x = self.data.table()
        found = moments(self.data, x)
        return own_weight(self.data, found.lse) * (_factors(found) * self._corners(found)).sum(1)


def _factors(found: Moments) -> Float[Tensor, "q corners"]:
    """By what the weights of degree 0 are tilted: l_i = p_i times this . [1, v_i]."""
    tilt = found.solved(found.away.unsqueeze(2)).squeeze(2)
    return torch.cat([1 - (tilt * found.v).sum(1, keepdim=True), tilt], 1)
