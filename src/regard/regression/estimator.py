"""Kernel regression as a scikit-learn regressor: what users meet. The numbers are made one floor below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from regard import kernels
from regard.errors import DataError, ShapeError, UnsupportedError
from regard.kernels import Kernel
from regard.regression import confidence, cross_validation, encoding, validation
from regard.regression.kernel_sums import clamp, engine
from regard.regression.kernel_sums.clamp import Limits
from regard.regression.kernel_sums.sample import Sample
from regard.regression.local.data import Data, Mixed
from regard.regression.local.smoother import LinearSmoother
from regard.regression.local.squared_weights import Noise
from regard.regression.out_of_core import fit as out_of_core_fit
from regard.regression.out_of_core import predict as out_of_core_predict
from regard.regression.out_of_core.predict import Streamed
from regard.regression.pandas_output import Framed, target_names
from regard.regression.persistence import Saved
from regard.weights import Weights

HERE = "cpu"  # where bandwidths are searched for, and residuals found


class NadarayaWatson(Framed, Saved, MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Kernel regression: each prediction is an average of y over the data near by, which is attention.

    f(x) = sum_i s_i K(|(x - x_i) / h|) y_i / sum_i s_i K(|(x - x_i) / h|), with h a width for each feature; with
    degree=1 a line is fitted to the same neighbours with the same weights, which does not flatten at the borders.

    Shapes: X (n, features), y (n,) or (n, outputs), sample_weight (n,): weight 2 is a row that comes twice. Weights
    that are not all whole numbers say how much a row is worth: to leave it out then leaves out all of it.

    `kernel`: "gaussian", "laplace", or one that ends at one bandwidth: "boxcar", "epanechnikov", "biweight",
    "triweight", "triangular", "tricube", "cosine"; or a record of `regard.kernels`, which may be your own.
    `bandwidth`: a number, one a feature, "scott" (a rule of thumb) or "cv": each row is predicted by the others, and
    the widths are those that do it best; a feature that does not help gets an infinite one.
    `degree`: 0, local constant, or 1, local linear. A direction in which the points that count differ by less than a
    millionth of how far the query is from them has no slope: a line is flat there; with none left, it is a constant.
    `tol`: the error promised, in standard deviations of y. Below 10^7 pairs the answer is exact in float64.
    `outside`: what a row gets that a kernel with an end does not reach: "nearest" (the nearest points' mean), "nan", or
    "raise". Without an end a far row gets the limit, the nearest points' mean, by itself.
    `categorical`: columns of categories by position, by name or as a mask, or "auto" for those of a pandas frame that
    are no numbers. Another category than the query's counts lambda / ((c - 1) (1 - lambda)) times as much as its own
    (Aitchison and Aitken), where lambda, from 0 to (c - 1) / c, is the bandwidth of that column: 0 listens to the same
    category only, the most ignores it. One that was never seen is predicted as if its column were not there.
    `plan`: how sums are done; "auto" chooses by cost. `device`: where, as torch calls it; a search for a
    bandwidth, many small steps, stays on the processor.
    `verbose`: True reports the search for a bandwidth; a function is called after each step of it.

    Learned: `bandwidth_` (features,), `loo_residuals_` like y, `loo_score_` (R² of rows predicted by the others), `cv_`
    (their mean squared error), `plan_`, `X_`, `y_`, `sample_weight_`, `n_samples_fit_`, `n_features_in_`,
    `feature_names_in_`, `categories_`.

    >>> import numpy as np, regard as rg
    >>> x = np.linspace(0, 6, 40)[:, None]
    >>> model = rg.NadarayaWatson().fit(x, np.sin(x[:, 0]))
    >>> model.predict([[1.5], [100.0]]).round(2)
    array([ 1.  , -0.28])
    >>> model.weights([[1.5]]).shape
    torch.Size([1, 40])
    """

    _residuals: Tensor | None = None  # of rows predicted by the others; found when they are asked for

    def __init__(
        self,
        kernel: Kernel | str = "gaussian",
        bandwidth: float | Sequence[float] | np.ndarray | str = "cv",
        degree: int = 0,
        tol: float = 1e-6,
        outside: str = "nearest",
        categorical: Any = None,
        plan: str = "auto",
        device: Any = None,
        verbose: bool | Callable[..., None] = False,
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

    # Learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NadarayaWatson:
        """Keep the data, and choose the bandwidth where it is not given."""
        validation.choices(self)
        cross_validation.forget(self)
        blocks = out_of_core_fit.blocks_of(X, y, sample_weight, self.categorical)
        if blocks is not None:
            out_of_core_fit.fit(self, blocks)
            try:
                validation.check_blocks(self)
            except DataError:
                cross_validation.forget(self)
                raise
            return self
        self.target_names_ = target_names(y)
        self.categories_ = encoding.levels(X, encoding.columns(self.categorical, X))
        X, y = validation.table(self, encoding.encoded(X, self.categories_), y, reset=True)
        most = {column: encoding.most(levels) for column, levels in self.categories_.items()}
        asked = validation.bandwidth(self.bandwidth, X.shape[1], most)
        validation.check(self, X, y, asked)
        self._keep(X, y, validation.weight(sample_weight, len(X)))
        if isinstance(asked, np.ndarray):
            self.bandwidth_ = asked
        else:
            somewhere = self._made(HERE, np.full(X.shape[1], 0.5))
            bandwidth, self._residuals = cross_validation.choose(asked, somewhere, verbose=self.verbose)
            self.bandwidth_ = bandwidth.numpy(force=True)
        self.plan_ = self._plan()
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> NadarayaWatson:
        """Add rows to the data. The bandwidth stays what it is; the first call is `fit`.

        A new category becomes one of `categories_`, and c grows; a column that was ignored, lambda = (c - 1) / c, stays
        so: its lambda grows with c.
        """
        if not hasattr(self, "bandwidth_"):
            return self.fit(X, y, sample_weight)
        if self.blocks_ is not None:
            raise UnsupportedError("partial_fit needs the data in memory; with files or Dask, fit the longer data anew")
        categories = encoding.grown(X, self.categories_)
        X, y = validation.table(self, encoding.encoded(X, categories), y, reset=False)
        if y.shape[1:] != self.y_.shape[1:]:
            msg = f"y must have the shape of the y that was fitted, (n, {self.y_.shape[1:]}), but it is {y.shape}"
            raise ShapeError(msg)
        weight = validation.weight(sample_weight, len(X), more=True)
        if weight is not None or self.sample_weight_ is not None:
            known = np.ones(len(self.X_)) if self.sample_weight_ is None else self.sample_weight_
            weight = np.concatenate([known, np.ones(len(X)) if weight is None else weight])
        X = np.concatenate([encoding.renumbered(self.X_, self.categories_, categories), X])
        y = np.concatenate([self.y_, y])
        validation.check(self, X, y, self.bandwidth_)
        self.bandwidth_ = encoding.widths(self.bandwidth_, self.categories_, categories)
        self.categories_ = categories
        self._keep(X, y, weight)
        self.plan_ = self._plan()
        return self

    def _keep(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> None:
        self.X_, self.y_, self.sample_weight_ = X, y, weight
        self.n_samples_fit_, self.blocks_ = len(X), None
        self.flat_, self.outputs_ = y.ndim == 1, y[:1].size
        self._residuals = None  # of rows predicted by the others; found when they are asked for

    # Predicting

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The curve at each row of X, (q,) or (q, outputs), and with `return_std` its standard error beside it.

        The standard error is that of the curve, not of a new y: see `confidence_band`.
        """
        check_is_fitted(self)
        if out_of_core_fit.is_elsewhere(X) and not return_std:
            found = out_of_core_predict.predict(self, X)
            return self._framed(found.reshape(len(found), -1), None) if isinstance(found, np.ndarray) else found
        query, unit = self._query(X), self._unit()
        mean = self._columns(self._local(unit=unit).predict(query) * unit, X)
        return (mean, self._columns(confidence.standard_error(self._noise(query)) * unit, X)) if return_std else mean

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions for X; for files and Dask, y and sample_weight may be names of columns, as in `fit`."""
        if out_of_core_fit.is_elsewhere(X):
            check_is_fitted(self)
            return out_of_core_predict.score(self, X, y, sample_weight)
        return super().score(X, y, sample_weight)

    def confidence_band(self, X: Any, level: float = 0.95) -> tuple[Any, Any]:
        """Below and above the curve, point by point, so that it is in between with probability `level`.

        f(x) ± t se(x), se(x)² = sigma²(x) sum_i l_i(x)² / s_i: the weights l of the fit, the noise sigma²(x) = sum_i
        p_i(x) e_i² from leave-one-out residuals e near x, and Student's t. It is a band for the smoothed curve: what
        smoothing flattens is not in it, and is small for a bandwidth that is a little narrower than the best.
        """
        validation.level(level)
        query, unit = self._query(X), self._unit()
        mean = self._local(unit=unit).predict(query) * unit
        half = confidence.half_width(self._noise(query), level) * unit
        return self._columns(mean - half, X), self._columns(mean + half, X)

    def derivative(self, X: Any) -> Any:
        """df/dx at each row of X, (q, features), or (q, features, outputs) where y had columns.

        It is off by at most `tol` standard deviations of y over the bandwidth of each feature; NaN for categories.
        """
        query, unit = self._query(X), self._unit()
        slope = (self._local(unit=unit).derivative(query) * unit).numpy(force=True)
        table = slope[:, :, 0] if self.y_.ndim == 1 else slope
        return self._framed_features(table, X, getattr(self, "feature_names_in_", None))

    # The matrix that turns y into predictions

    def weights(self, X: Any) -> Weights | LinearSmoother:
        """How much each row of the data counts for each row of X, a lazy (q, n); `weights @ y` predicts.

        For degree 1 the rows sum to 1 and may be negative. A query out of reach has a row of zeros. For degree 0
        weights are told by distances, `predict` by differences of them, which keep their digits anywhere: so a query
        farther than 10^6 bandwidths from all data (10^8 for "laplace") has the weights of one that is as far in its
        direction.
        """
        query = self._query(X)
        return self._local().weights(query)

    def leverage(self) -> np.ndarray:
        """How much each row decides its own prediction: the diagonal of the hat matrix, (n,)."""
        check_is_fitted(self)
        return self._local().leverage().numpy(force=True)

    def effective_df(self) -> float:
        """How many parameters a linear model as rough as this one would have: the trace of the hat matrix."""
        return float(self.leverage().sum())

    # Each row predicted by all the others

    @property
    def loo_residuals_(self) -> np.ndarray:
        """y less what all the other rows predict, like y.

        A row that a kernel with an end reaches from no other is predicted by the nearest, whatever `outside` is: a
        search for a bandwidth needs a number for every row. So it is in `loo_score_` and `cv_`.
        """
        found = self._left_out().numpy(force=True)
        return found[:, 0] if self.flat_ else found

    @property
    def loo_score_(self) -> float:
        """R² of rows that are predicted by the others."""
        check_is_fitted(self)
        if self.blocks_ is not None:
            return out_of_core_fit.score(self)
        return float(r2_score(self.y_, self.y_ - self.loo_residuals_, sample_weight=self.sample_weight_))

    @property
    def cv_(self) -> float:
        """Mean squared leave-one-out residual; with several outputs each is in units of its variance."""
        check_is_fitted(self)
        if self.blocks_ is None:
            return cross_validation.mean_square(self._made(HERE), self._left_out())
        if self._cv is None:
            self._cv = out_of_core_fit.cross_validation(self)
        return self._cv

    def _left_out(self) -> Tensor:
        check_is_fitted(self)
        if self._residuals is None:
            here = self.blocks_ is None
            self._residuals = cross_validation.residuals(self._made(HERE)) if here else out_of_core_fit.left_out(self)
        return self._residuals

    # Inside

    def _plan(self) -> str:
        """How as many queries as there are rows would be answered, and why."""
        sample = self._made().data.sample
        return str(engine.explain(sample, sample.x, tol=self.tol, plan=self.plan))

    def _noise(self, query: Tensor) -> Noise:
        """In squares of `_unit`."""
        unit = self._unit()
        return self._local(unit=unit).noise(query, (self._left_out().to(query.device) / unit).square())

    def _unit(self) -> Tensor:
        """In which what is made of products of y is told: 1, unless y is so large or small that these would not fit."""
        one = torch.ones((), dtype=torch.float64)
        return one if self.blocks_ is not None else self._tensor(validation.unit(self.y_))

    def _query(self, X: Any) -> Tensor:
        check_is_fitted(self)
        if out_of_core_fit.is_elsewhere(X):
            raise UnsupportedError("of files, large maps and Dask only predict and score are asked; read rows first")
        return self._tensor(validation.table(self, encoding.encoded(X, self.categories_), reset=False))

    def _columns(self, columns: Tensor, X: Any) -> Any:
        return self._framed(columns.numpy(force=True), X)

    def _tensor(self, array: np.ndarray, device: str | None = None) -> Tensor:
        if not array.flags.writeable:  # torch would share the memory, and warns that it could be written to
            array = array.copy()
        return torch.from_numpy(np.ascontiguousarray(array)).to(device or validation.device(self.device))

    def __sklearn_is_fitted__(self) -> bool:
        """A fit that was refused or interrupted is none, whatever it has kept."""
        return hasattr(self, "bandwidth_")

    def _local(self, unit: Tensor | None = None) -> Anywhere:
        """The data and the bandwidth, ready to be asked from anywhere; y is in the `unit`."""
        if self.blocks_ is not None:
            return Anywhere.of_blocks(self, Streamed.of(self))
        return Anywhere.of(self._made(unit=unit))

    def _made(
        self, device: str | None = None, bandwidth: np.ndarray | None = None, unit: Tensor | None = None
    ) -> cross_validation.Local:
        """Device and bandwidth are ours as they are now, if no other is told."""
        tensor = partial(self._tensor, device=device)
        y = tensor(self.y_.reshape(len(self.y_), -1))
        sample = Sample(
            tensor(self.X_),
            y if unit is None else y / unit,
            tensor(self.bandwidth_ if bandwidth is None else bandwidth),
            kernels.get(self.kernel).name,
            None if self.sample_weight_ is None else tensor(self.sample_weight_).log(),
        )
        data = Data(sample, self.tol, self.plan, self.outside)
        if self.categories_:
            counts = tensor(np.array([len(levels) for levels in self.categories_.values()], dtype=np.float64))
            data = Mixed.of(data, tuple(self.categories_), counts)
        return cross_validation.LOCAL[self.degree](data)


@dataclass(frozen=True, eq=False)
class Anywhere:
    """A Local or a Streamed, which are asked at most as far from the box around the data as the limits say."""

    local: Any
    box: tuple[Float[Tensor, " features"], Float[Tensor, " features"]]
    width: Float[Tensor, " features"]
    limits: Limits

    @classmethod
    def of(cls, local: Any) -> Anywhere:
        data = local.data
        width = data.spread_out(data.sample.bandwidth.unsqueeze(0).unsqueeze(2)).squeeze(2).squeeze(0)
        return cls(local, clamp.ends(data.table()), width, clamp.EXACT)  # NaN for categories, which are not measured

    @classmethod
    def of_blocks(cls, model: Any, streamed: Any) -> Anywhere:
        width, x = streamed.recipe.bandwidth, model.summary_.x
        return cls(streamed, (x.low.to(width.device), x.high.to(width.device)), width, clamp.BY_SQUARES)

    def predict(self, query: Float[Tensor, "q features"]) -> Float[Tensor, "q outputs"]:
        return self.local.predict(self._near(query))

    def noise(self, query: Float[Tensor, "q features"], variance: Float[Tensor, "n outputs"]) -> Noise:
        return self.local.noise(self._near(query), variance)

    def derivative(self, query: Float[Tensor, "q features"]) -> Float[Tensor, "q features outputs"]:
        return self.local.derivative(clamp.within(query, self.box, self.width, clamp.BY_DISTANCES))

    def weights(self, query: Float[Tensor, "q features"]) -> Any:
        return self.local.weights(self._near(query))

    def leverage(self) -> Float[Tensor, " n"]:
        return self.local.leverage()

    def _near(self, query: Float[Tensor, "q features"]) -> Float[Tensor, "q features"]:
        return clamp.within(query, self.box, self.width, self.limits)
