"""The matrix of a local linear fit, as an object that is never built."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import TooLargeError
from regard.regression.local import linear_exact
from regard.regression.local.data import Data
from regard.weights import DENSE_LIMIT

BLOCK = 2**20  # weights that are held at a time where few of them are asked for


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
        _, out = self._data.near(self._query, linear_exact.value(matrix))
        return out.squeeze(1) if x.dim() == 1 else out

    def __getitem__(self, index: Any) -> Tensor:
        """A dense block: ints, slices and index tensors mean what they mean for a tensor."""
        # Which row and column each cell of the block comes from: views of q + n numbers, indexed as the matrix was.
        queries, points = self.shape
        rows = torch.arange(queries, device=self.device).unsqueeze(1).expand(queries, points)[index]
        columns = torch.arange(points, device=self.device).expand(queries, points)[index]
        self._check_size("this block", rows.numel(), DENSE_LIMIT)
        asked, whose = torch.unique(rows, return_inverse=True)
        found = self._query.new_zeros(rows.shape)
        step = max(1, BLOCK // max(1, points))
        for low in range(0, len(asked), step):
            here = (whose >= low) & (whose < low + step)
            found[here] = self._rows(asked[low : low + step])[whose[here] - low, columns[here]]
        return found

    def dense(self, limit: int = DENSE_LIMIT) -> Tensor:
        """The whole matrix, refused above `limit` bytes."""
        self._check_size("the whole matrix", self.shape.numel(), limit)
        return self._rows(torch.arange(len(self), device=self.device))

    def _rows(self, rows: Int[Tensor, " some"]) -> Float[Tensor, "some points"]:
        return self._data.near(self._query[rows], linear_exact.rows(self._data.sample.values))[1]

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
