"""Kernel regression as a scikit-learn regressor: what users meet. The numbers are made one floor below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from regard.regression import _checks, _copies, _engine
from regard.regression._constant import Data, LocalConstant
from regard.regression._sample import Sample
from regard.weights import Weights


class NadarayaWatson(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Kernel regression: each prediction is an average of y over the data near by, which is attention.

    f(x) = sum_i s_i K(|(x - x_i) / h|) y_i / sum_i s_i K(|(x - x_i) / h|)
    """

    def __init__(
        self,
        kernel: str = "gaussian",
        bandwidth: float | Sequence[float] | np.ndarray | str = "cv",
        degree: int = 0,
        tol: float = 1e-6,
        outside: str = "nearest",
        categorical: Any = None,
        plan: str = "auto",
        device: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.degree = degree
        self.tol = tol
        self.outside = outside
        self.categorical = categorical
        self.plan = plan
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NadarayaWatson:
        """Keep the data, and choose the bandwidth where it is not given."""
        _checks.choices(self)
        X, y = _checks.table(self, X, y, reset=True)
        weight = _checks.weight(sample_weight, len(X))
        asked = _checks.bandwidth(self.bandwidth, X.shape[1])
        self.X_, self.y_, self.sample_weight_ = X, y, weight
        self.n_samples_fit_ = len(X)
        self.bandwidth_ = asked if isinstance(asked, np.ndarray) else self._choose(asked)
        return self

    def _choose(self, rule: str) -> np.ndarray:
        width = _scott(self.X_, self.sample_weight_)
        if rule == "scott" or len(self.X_) < 3:
            return width
        rows = _copies.of(self.X_, self.y_, self.sample_weight_)
        grid = np.geomspace(0.05, 20, 25)
        return width * grid[int(np.argmin([self._loo(rows, width * factor) for factor in grid]))]

    def _loo(self, rows: _copies.Rows, width: np.ndarray) -> float:
        y = self._tensor(rows.y.reshape(len(rows.y), -1))
        weight = y.new_ones(len(y)) if rows.weight is None else self._tensor(rows.weight)
        own = y.new_ones(len(y)) if rows.left_out is None else self._tensor(rows.left_out)
        x = self._tensor(rows.x)
        found = _engine.pool(Sample(x, y, self._tensor(width), self.kernel, weight.log()), x)
        p = (own * torch.exp(-found.lse)).unsqueeze(1)
        residual = (y - found.mean) / (1 - p).clamp_min(1e-9)
        return float((residual.square().mean(1) * weight).sum() / weight.sum())

    def predict(self, X: Any) -> np.ndarray:
        """The estimate at each row of X: (q,), or (q, outputs) where y had columns."""
        query = self._query(X)
        return self._shaped(self._local().predict(query))

    def weights(self, X: Any) -> Weights:
        """The weight of each point of the data for each row of X, a lazy matrix (q, n)."""
        return self._local().weights(self._query(X))

    def leverage(self) -> np.ndarray:
        """How much each point decides its own fit: the diagonal of the hat matrix, (n,)."""
        check_is_fitted(self)
        return self._local().leverage().numpy(force=True)

    def effective_df(self) -> float:
        """How many parameters a model of this roughness would have: the trace of the hat matrix."""
        return float(self.leverage().sum())

    def _query(self, X: Any) -> Tensor:
        check_is_fitted(self)
        return self._tensor(_checks.table(self, X, reset=False))

    def _tensor(self, array: np.ndarray) -> Tensor:
        if not array.flags.writeable:  # torch shares memory and warns that it could be written to
            array = array.copy()
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device or "cpu")

    def _data(self) -> Data:
        y = self._tensor(self.y_)
        weight = None if self.sample_weight_ is None else self._tensor(self.sample_weight_).log()
        sample = Sample(
            self._tensor(self.X_),
            y if y.dim() > 1 else y.unsqueeze(1),
            self._tensor(self.bandwidth_),
            self.kernel,
            weight,
        )
        return Data(sample, self.tol, self.plan, self.outside)

    def _local(self) -> LocalConstant:
        return LocalConstant(self._data())

    def _shaped(self, columns: Tensor) -> np.ndarray:
        found = columns.numpy(force=True)
        return found[:, 0] if self.y_.ndim == 1 else found


def _scott(x: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    total = len(x) if weight is None else weight.sum()
    deviation = np.sqrt(np.average((x - np.average(x, 0, weight)) ** 2, 0, weight))
    return np.where(deviation > 0, deviation * total ** (-1 / (x.shape[1] + 4)), np.inf)
