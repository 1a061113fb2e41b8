"""Local linear regression (degree 1): at each query a line through the data around it, by weighted least squares.

The line is linear in y. With the weights p of degree 0, their mean m and covariance S at a query v,

    f(v) = sum_i l_i y_i,    l_i = p_i (1 + (v - m)' S^+ (v_i - m)),

where the l_i sum to 1 and may be negative. Where the points near a query do not vary in some direction (one point in
reach, equal points, a far query that one point decides), the slope in that direction is 0, and with no direction left
the answer is that of degree 0. See `least_squares`.

Every answer can be computed from the points around each query, exactly. Where pairs are many, faster routes with an
error bound for each query come first, Fourier series (`linear_fourier`) or averages (`linear_statistics`), and the
points answer the queries whose bound is too large.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import TooLargeError
from regard.regression.kernel_sums.relative_weights import Statistic
from regard.regression.kernel_sums.sample import BLOCK_PAIRS, EXACT_PAIRS
from regard.regression.local import extrapolation, linear_statistics
from regard.regression.local.data import Data, Noise
from regard.regression.local.linear_fourier import lines_if_cheapest
from regard.regression.local.linear_statistics import Results
from regard.weights import DENSE_LIMIT


@dataclass(frozen=True, eq=False)
class LocalLinear:
    """Local linear fit of data: predictions, noise, derivatives, weights and leverage."""

    data: Data
    degree: ClassVar[int] = 1

    def predict(self, query: Float[Tensor, "q features"]) -> Float[Tensor, "q outputs"]:
        """Value of the line at each query, with an error of at most `tol` standard deviations of y."""
        data, sample = self.data, self.data.sample
        middle = sample.values.mean(0)
        statistic = partial(linear_statistics.exact_value, sample.values - middle)
        points = data.numeric(query)
        fast = lines_if_cheapest(sample, points, data.tol, plan=data.plan, categories=data.categories)
        if fast is None:
            lse, value = self._statistic(query, statistic, linear_statistics.fast_value)
            return extrapolation.answer(data, query, lse, value + middle)
        redo = (~(fast.error <= data.tol)).nonzero().squeeze(-1)
        if len(redo):
            fast.value[redo] = data.from_points(query[redo], statistic)[1] + middle
        return fast.value

    def _statistic(
        self, query: Float[Tensor, "q features"], exact: Statistic, fast: Callable[..., Results]
    ) -> tuple[Tensor, ...]:
        """Log total weight and a statistic at each query: exact if pairs are few, else by a fast route first."""
        data = self.data
        if len(query) * len(data.sample.x) <= EXACT_PAIRS:
            return data.from_points(query, exact)
        results, doubt = fast(data.sample, data.numeric(query), partial(data.pool, query), data.tol)
        redo = doubt.nonzero().squeeze(-1)
        if len(redo):
            better = data.from_points(query[redo], exact)
            results = tuple(whole.index_copy(0, redo, part) for whole, part in zip(results, better, strict=True))
        return results

    def noise(self, query: Float[Tensor, "q features"], variance: Float[Tensor, "n outputs"]) -> Noise:
        """Variance of a row near each query, and the share of it that stays in the prediction."""
        data, log_weight = self.data, self.data.sample.log_weight
        exact = partial(linear_statistics.exact_noise, variance, None if log_weight is None else log_weight.exp())
        fast = partial(linear_statistics.fast_noise, variance, partial(data.pool_squared, query))
        lse, near, kept, total = self._statistic(query, exact, fast)
        return extrapolation.noise(data, query, lse, variance, Noise(near, kept, 1 / total))

    def derivative(self, query: Float[Tensor, "q features"]) -> Float[Tensor, "q features outputs"]:
        """df/dx of the fit. It is not the slope of the local line, because the line itself changes with x."""
        data, values = self.data, self.data.sample.values
        exact = partial(linear_statistics.exact_derivative, data.sample, values - values.mean(0))
        lse, slope = data.from_points(query, exact)
        return data.all_features(extrapolation.slope(data, lse, slope))

    def weights(self, query: Float[Tensor, "q features"]) -> LinearSmoother:
        """Weights l of the points at each query, as a matrix that is never built."""
        return LinearSmoother(self.data, query)

    def leverage(self) -> Float[Tensor, " n"]:
        """Diagonal of the smoother: l_ii = p_ii (1 + (v_i - m)' S^+ (v_i - m))."""
        exact = partial(linear_statistics.exact_mahalanobis, self.data.sample.values)
        lse, distance = self._statistic(self.data.table(), exact, linear_statistics.fast_mahalanobis)
        return self.data.own_weight(lse) * (1 + distance)


class LinearSmoother:
    r"""The weights l of a local linear fit: ``smoother @ y`` is the fit, each row sums to 1 and may be negative.

    l_ij = p_ij (1 + (x_i - m_i) S_i^-1 (x_j - m_i)): the weights p of degree 0, tilted. Not a `Weights`, since it is no
    distribution.

    Shapes: (queries, points). A query that no point reaches has a row of zeros.

    >>> import numpy as np, regard as rg
    >>> x = np.linspace(0, 1, 5)[:, None]
    >>> smoother = rg.NadarayaWatson(bandwidth=0.3, degree=1).fit(x, 2 * x[:, 0]).weights([[1.5]])
    >>> smoother.shape
    torch.Size([1, 5])
    >>> smoother.dense().round(decimals=2)
    tensor([[-0.0000, -0.0200, -0.2800, -1.3700,  2.6800]], dtype=torch.float64)
    """

    def __init__(self, data: Data, query: Float[Tensor, "queries features"]) -> None:
        self._data, self._query = data, query

    @property
    def shape(self) -> torch.Size:
        return torch.Size((len(self._query), len(self._data.sample.x)))

    @property
    def dtype(self) -> torch.dtype:
        return self._query.dtype

    @property
    def device(self) -> torch.device:
        return self._query.device

    def __len__(self) -> int:
        return self.shape[0]

    def __matmul__(self, x: Tensor) -> Tensor:
        """(q, n) @ (n,) or (n, d) -> (q,) or (q, d): the lines through these values."""
        if len(x) != self.shape[1] or x.dtype != self.dtype or x.dim() > 2:
            return self._data.weights(self._query) @ x  # which says what is wrong with it
        matrix = x.unsqueeze(1) if x.dim() == 1 else x
        _, out = self._data.from_points(self._query, partial(linear_statistics.exact_value, matrix))
        return out.squeeze(1) if x.dim() == 1 else out

    def __getitem__(self, index: Any) -> Tensor:
        """A dense block: ints, slices and index tensors mean what they mean for a tensor."""
        # Which row and column each cell of the block comes from: views of q + n numbers, indexed as the matrix was.
        queries, points = self.shape
        rows = torch.arange(queries, device=self.device).unsqueeze(1).expand(queries, points)[index]
        columns = torch.arange(points, device=self.device).expand(queries, points)[index]
        self._check_size("this block", rows.numel(), DENSE_LIMIT)
        needed, place = torch.unique(rows, return_inverse=True)
        block = self._query.new_zeros(rows.shape)
        step = max(1, BLOCK_PAIRS // max(1, points))
        for low in range(0, len(needed), step):
            part = (place >= low) & (place < low + step)
            block[part] = self._rows(needed[low : low + step])[place[part] - low, columns[part]]
        return block

    def dense(self, limit: int = DENSE_LIMIT) -> Tensor:
        """The whole matrix, refused above `limit` bytes."""
        self._check_size("the whole matrix", self.shape.numel(), limit)
        return self._rows(torch.arange(len(self), device=self.device))

    def _rows(self, rows: Int[Tensor, " some"]) -> Float[Tensor, "some points"]:
        statistic = partial(linear_statistics.exact_rows, self._data.sample.values)
        return self._data.from_points(self._query[rows], statistic)[1]

    def _check_size(self, what: str, cells: int, limit: int) -> None:
        size = cells * self._query.element_size()
        if size > limit:
            msg = (
                f"{what} of {tuple(self.shape)} weights would take {size:,} bytes, above the limit of {limit:,}: ask "
                f"for fewer rows; dense(limit={size}) would build it"
            )
            raise TooLargeError(msg)

    def __repr__(self) -> str:
        queries, points = self.shape
        return f"LinearSmoother({queries} x {points}, {self.dtype}, rows sum to 1 and may be negative, never built)"
