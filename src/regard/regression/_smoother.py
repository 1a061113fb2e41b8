"""The matrix of a local linear fit, as an object that is never built."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.weights import DENSE_LIMIT, Weights


class LinearSmoother:
    r"""The weights l of a local linear fit: ``smoother @ y`` is the fit, each row sums to 1 and may be negative.

    l_ij = p_ij (a_i + g_i · v_j): the weights p of degree 0, tilted. Not a `Weights`, since it is no distribution.

    Shapes: (queries, points). A query that no point reaches has a row of zeros.

    >>> import numpy as np, regard as rg
    >>> x = np.linspace(0, 1, 5)[:, None]
    >>> smoother = rg.NadarayaWatson(bandwidth=0.3, degree=1).fit(x, 2 * x[:, 0]).weights([[1.5]])
    >>> smoother.shape
    torch.Size([1, 5])
    >>> smoother.dense().round(decimals=2)
    tensor([[-0.0000, -0.0200, -0.2800, -1.3700,  2.6800]], dtype=torch.float64)
    """

    def __init__(
        self, weights: Weights, factors: Float[Tensor, "queries corners"], corners: Float[Tensor, "points corners"]
    ) -> None:
        self._weights, self._factors, self._corners = weights, factors, corners

    @property
    def shape(self) -> torch.Size:
        return self._weights.shape

    @property
    def dtype(self) -> torch.dtype:
        return self._weights.dtype

    @property
    def device(self) -> torch.device:
        return self._weights.device

    def __len__(self) -> int:
        return self.shape[0]

    def __matmul__(self, x: Tensor) -> Tensor:
        """(q, n) @ (n,) or (n, d) -> (q,) or (q, d): pooled once for each corner of the line."""
        matrix = x.unsqueeze(1) if x.dim() == 1 else x
        if len(matrix) == self.shape[1] and x.dtype == self.dtype:  # else the weights themselves refuse
            tilted = (self._corners.unsqueeze(2) * matrix.unsqueeze(1)).flatten(1)
            pooled = (self._weights @ tilted).unflatten(1, (self._corners.shape[1], -1))
            out = (self._factors.unsqueeze(2) * pooled).sum(1)
            return out.squeeze(1) if x.dim() == 1 else out
        return self._weights @ x

    def __getitem__(self, index: Any) -> Tensor:
        """A dense block: ints, slices and index tensors mean what they mean for a tensor."""
        return self._tilted(self._weights[index], index)

    def dense(self, limit: int = DENSE_LIMIT) -> Tensor:
        """The whole matrix, refused above `limit` bytes."""
        return self._tilted(self._weights.dense(limit), ...)

    def _tilted(self, block: Tensor, index: Any) -> Tensor:
        # Which row and column each cell of the block comes from: views of q + n numbers, indexed as the matrix was.
        queries, points = self.shape
        rows = torch.arange(queries, device=self.device).unsqueeze(1).expand(queries, points)[index]
        columns = torch.arange(points, device=self.device).expand(queries, points)[index]
        tilt = torch.zeros_like(block)
        for factor, corner in zip(self._factors.unbind(1), self._corners.unbind(1), strict=True):
            tilt += factor[rows] * corner[columns]
        return block * tilt

    def __repr__(self) -> str:
        queries, points = self.shape
        return f"LinearSmoother({queries} x {points}, {self.dtype}, rows sum to 1 and may be negative, never built)"
