"""NadarayaWatson: kernel regression as a scikit-learn estimator.

The estimator checks its input, decides once which cases it has (out of core? categories? very large y? far queries?),
and leaves the numbers to `local` (data in memory) and `out_of_core`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from regard.errors import ShapeError, UnsupportedError
from regard.kernels import Kernel
from regard.regression import cross_validation, encoding, intervals, validation
from regard.regression.cross_validation import LocalFit
from regard.regression.kernel_sums import clamp, engine
from regard.regression.kernel_sums.sample import Sample
from regard.regression.local.constant import LocalConstant
from regard.regression.local.data import Data, Noise
from regard.regression.local.linear import LinearSmoother, LocalLinear
from regard.regression.out_of_core import fit as out_of_core_fit
from regard.regression.out_of_core import leave_one_out as out_of_core_leave_one_out
from regard.regression.out_of_core import predict as out_of_core_predict
from regard.regression.out_of_core.average import ChunkAverage
from regard.regression.out_of_core.leave_one_out import LeaveOneOut
from regard.regression.out_of_core.predict import FittedEstimator, OutOfCoreModel
from regard.regression.out_of_core.source import Source
from regard.regression.out_of_core.source import Summary as SourceSummary
from regard.regression.pandas_output import PandasOutput, target_names
from regard.regression.persistence import Persistence, is_learned
from regard.regression.summary import Summary, summarise
from regard.regression.validation import Range
from regard.weights import Weights

SEARCH_DEVICE = "cpu"  # bandwidth search and leave-one-out: many small steps, which a GPU would slow down
NEAR_BANDWIDTHS = 1e6  # queries this near to the data need no clamping, whatever is computed (see clamp.Limits)
CACHED = ("_residuals", "_cv", "_x_range", "_y_unit")  # private attributes that belong to one fit


class NadarayaWatson(PandasOutput, Persistence, MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Kernel regression (Nadaraya-Watson, or local linear) with a bandwidth for each feature.

    A prediction is an average of y, weighted by the distance of each row from the query, which is attention with a
    kernel as its score:

        f(x) = sum_i s_i K(|(x - x_i) / h|) y_i / sum_i s_i K(|(x - x_i) / h|)

    with the kernel K, one bandwidth h for each feature and the sample weights s. With degree=1 a line is fitted to the
    same rows with the same weights, which removes the bias at the borders of the data.

    Parameters:

    - `kernel`: "gaussian", "laplace", or a kernel that is 0 beyond one bandwidth: "boxcar", "epanechnikov",
      "biweight", "triweight", "triangular", "tricube", "cosine"; or a `regard.kernels.Kernel`, which may be your own.
    - `bandwidth`: a number, a sequence with one number for each feature, or a rule. "cv" minimises the mean squared
      error of each row predicted from the others (leave-one-out); a feature that does not help gets an infinite
      bandwidth. "scott" is Scott's rule of thumb.
    - `degree`: 0 (local constant) or 1 (local linear). A line has no slope in a direction in which the rows that count
      differ by less than a millionth of their distance from the query; with no direction left it is a constant.
    - `tol`: largest error of a prediction, in standard deviations of y. Up to 10^7 pairs of queries and rows the result
      is exact in float64.
    - `outside`: prediction for a query that a compact kernel does not reach from any row: "nearest" (the mean of the
      nearest rows), "nan", or "raise". Other kernels reach everywhere, and far from the data their prediction is the
      mean of the nearest rows.
    - `categorical`: categorical columns, as positions, names or a mask, or "auto" for the columns of a pandas frame
      that hold no numbers. Their kernel is Aitchison and Aitken's: another category than the query's has the weight
      lambda / ((c - 1) (1 - lambda)) relative to the same one, with c categories and lambda the bandwidth of the
      column, from 0 (only the same category counts) to (c - 1) / c (the column is ignored). For a category that `fit`
      has not seen the column is ignored.
    - `plan`: algorithm for the sums, "pairs", "cells" or "fast"; "auto" takes the cheapest.
    - `device`: torch device for predictions. The bandwidth search always runs on the processor.
    - `verbose`: True prints the progress of the bandwidth search; a function is called after each step.

    Attributes after `fit`:

    - `bandwidth_` (features,): bandwidth of each feature, lambda for categorical columns.
    - `loo_residuals_` (n,) or (n, outputs), `loo_score_`, `cv_`: leave-one-out residuals, their R² and mean square.
    - `plan_`: algorithm for as many queries as there are rows, and the reason.
    - `X_` (n, features), `y_` (n,) or (n, outputs), `sample_weight_` (n,) or None: the training data, if in memory.
    - `categories_`: sorted categories of each categorical column, by position.
    - `n_samples_fit_`, `n_features_in_`, `feature_names_in_`: as in scikit-learn.

    >>> import numpy as np, regard as rg
    >>> x = np.linspace(0, 6, 40)[:, None]
    >>> model = rg.NadarayaWatson().fit(x, np.sin(x[:, 0]))
    >>> model.predict([[1.5], [100.0]]).round(2)
    array([ 1.  , -0.28])
    >>> model.weights([[1.5]]).shape
    torch.Size([1, 40])
    """

    X_: np.ndarray
    y_: np.ndarray
    sample_weight_: np.ndarray | None
    bandwidth_: np.ndarray
    categories_: dict[int, np.ndarray]
    plan_: str
    n_samples_fit_: int
    n_features_in_: int
    flat_: bool  # y was given without an axis for its outputs
    outputs_: int
    blocks_: Source | None  # the training data, if out of core
    summary_: SourceSummary

    _residuals: Tensor | None = None  # leave-one-out, computed when first needed
    _cv: float | None = None
    _x_range: Range | None = None  # of X_
    _y_unit: np.ndarray | None = None  # None: y is of ordinary size, and is not divided by anything

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

    # Fitting

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NadarayaWatson:
        """Store the training data, and select the bandwidth unless it is given.

        `X` (n, features): an array, a pandas frame or a list. Larger than memory: a path to Parquet files, a `Parquet`,
        a memory map or a Dask collection, which is read in chunks.
        `y` (n,) or (n, outputs): numbers; for Parquet files and Dask frames the name of a column, or a list of names.
        `sample_weight` (n,): non-negative numbers, or the name of a column. Whole numbers count rows: weight 2 is a row
        that occurs twice, and leave-one-out leaves out one of the two. Other weights are left out whole.
        """
        validation.check_parameters(
            kernel=self.kernel, degree=self.degree, tol=self.tol, outside=self.outside, device=self.device
        )
        self._forget()
        source = out_of_core_fit.open_source(X, y, sample_weight, self.categorical)
        return self._fit_source(source) if source is not None else self._fit_arrays(X, y, sample_weight)

    def _fit_arrays(self, X: Any, y: Any, sample_weight: Any) -> NadarayaWatson:
        self.target_names_ = target_names(y)
        self.categories_ = encoding.categories_in(X, encoding.categorical_columns(self.categorical, X))
        X, y = validation.training_data(self, encoding.encode(X, self.categories_), y, reset=True)
        lambdas = {column: encoding.largest_lambda(known) for column, known in self.categories_.items()}
        bandwidth = validation.checked_bandwidth(self.bandwidth, X.shape[1], lambdas)
        weight = validation.checked_weight(sample_weight, len(X))
        self._store_arrays(X, y, weight, None if isinstance(bandwidth, str) else bandwidth)
        if isinstance(bandwidth, str):
            start = self._local_fit(SEARCH_DEVICE, np.full(X.shape[1], 0.5))
            selected, self._residuals = cross_validation.select_bandwidth(bandwidth, start, verbose=self.verbose)
            bandwidth = selected.numpy(force=True)
        self.bandwidth_ = bandwidth
        self.plan_ = self._describe_plan()
        return self

    def _fit_source(self, source: Source) -> NadarayaWatson:
        summary, bandwidth, self._cv = out_of_core_fit.fit(
            source, self.bandwidth, self._kernel_name, self.degree, verbose=self.verbose
        )
        self.blocks_, self.summary_ = source, summary
        self.flat_, self.outputs_, self.target_names_ = source.y_is_1d, source.n_outputs, source.target_names
        self.n_samples_fit_, self.n_features_in_, self.categories_ = summary.rows, source.n_features, {}
        if source.feature_names:
            self.feature_names_in_: np.ndarray = np.array(source.feature_names, dtype=object)
        self.bandwidth_ = bandwidth
        self.plan_ = f"blocks: {summary.rows:,} rows are read block by block, and what each says is merged"
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> NadarayaWatson:
        """Add rows to the training data. The bandwidth stays; the first call is `fit`.

        `X`, `y` and `sample_weight` are as in `fit`, in memory. A new category is added to `categories_`, so that c
        grows; a column that was ignored, lambda = (c - 1) / c, stays ignored: its lambda grows with c.
        """
        if not hasattr(self, "bandwidth_"):
            return self.fit(X, y, sample_weight)
        if self.blocks_ is not None:
            raise UnsupportedError("partial_fit needs the data in memory; with files or Dask, fit the longer data anew")
        categories = encoding.extended_categories(X, self.categories_)
        X, y = validation.training_data(self, encoding.encode(X, categories), y, reset=False)
        if y.shape[1:] != self.y_.shape[1:]:
            msg = f"y must have the shape of the y that was fitted, (n, {self.y_.shape[1:]}), but it is {y.shape}"
            raise ShapeError(msg)
        weight = validation.checked_weight(sample_weight, len(X), may_be_zero=True)
        if weight is not None or self.sample_weight_ is not None:
            known = np.ones(len(self.X_)) if self.sample_weight_ is None else self.sample_weight_
            weight = np.concatenate([known, np.ones(len(X)) if weight is None else weight])
        X = np.concatenate([encoding.recode(self.X_, self.categories_, categories), X])
        y = np.concatenate([self.y_, y])
        self._store_arrays(X, y, weight, self.bandwidth_)
        self.bandwidth_ = encoding.extended_bandwidth(self.bandwidth_, self.categories_, categories)
        self.categories_ = dict(categories)
        self.plan_ = self._describe_plan()
        return self

    def _store_arrays(
        self, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, bandwidth: np.ndarray | None
    ) -> None:
        """Store the training data; raise DataError before that where float64 has no squares of its numbers."""
        names = getattr(self, "feature_names_in_", None)
        x_range, y_range = Range.of(X), Range.of(y)
        validation.check_magnitudes("X", x_range, names)
        validation.check_magnitudes("y", y_range, self.target_names_)
        if bandwidth is not None:
            validation.check_widths(bandwidth, x_range, self.degree, names, self.categories_)
        self.X_, self.y_, self.sample_weight_ = X, y, weight
        self.n_samples_fit_, self.blocks_ = len(X), None
        self.flat_, self.outputs_ = y.ndim == 1, y[:1].size
        self._x_range, self._y_unit = x_range, validation.y_unit(y_range)
        self._residuals = None

    def _forget(self) -> None:
        """Delete all that an earlier fit has learned: data in memory and out of core leave different attributes."""
        for name in [name for name in vars(self) if is_learned(name) or name in CACHED]:
            delattr(self, name)

    # Predicting

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict f(x) for each row of X: (q,) or (q, outputs), and with `return_std` its standard error as well.

        `X` (q, features) may be whatever `fit` takes; a Dask collection gives a Dask collection. The standard error is
        that of the curve, not of a new y (see `confidence_band`), and needs X and the training data in memory.
        """
        check_is_fitted(self)
        if type(X) is not np.ndarray and not return_std and out_of_core_fit.is_out_of_core(X):
            result = out_of_core_predict.predict(X, self._for_out_of_core_queries())
            return self._as_output(result, None, self.target_names_) if isinstance(result, np.ndarray) else result
        query = self._query(X, memory_for="return_std" if return_std else None)
        mean = self._output(self._model().predict(query), X)
        return (mean, self._output(cross_validation.standard_error(self._noise(query)), X)) if return_std else mean

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions for X; for files and Dask, y and sample_weight may be names of columns, as in `fit`."""
        if out_of_core_fit.is_out_of_core(X):
            check_is_fitted(self)
            return out_of_core_predict.score(X, y, sample_weight, self._for_out_of_core_queries())
        return super().score(X, y, sample_weight)

    def confidence_band(self, X: Any, level: float = 0.95) -> tuple[Any, Any]:
        """Lower and upper limit, shaped like `predict`, that hold the curve with probability `level` at each query.

        f(x) ± t se(x) with se(x)² = sigma²(x) sum_i l_i(x)² / s_i: the weights l of the prediction, the noise
        sigma²(x) = sum_i p_i(x) e_i² from the leave-one-out residuals e near x, and Student's t. It is a band for the
        smoothed curve: the bias of smoothing is not in it, and is small for a bandwidth a little below the best one.
        """
        validation.check_level(level)
        query = self._query(X, memory_for="confidence_band")
        mean = self._local_fit().predict(query)
        half = cross_validation.half_width(self._noise(query), level)
        return self._output(mean - half, X), self._output(mean + half, X)

    def prediction_interval(self, X: Any, level: float = 0.95) -> tuple[Any, Any]:
        """Lower and upper limit, shaped like `predict`, that hold a new y with probability `level`.

        f(x) ± c sigma(x): sigma(x) is the root mean square of the leave-one-out residuals near x, and c the quantile of
        |e_i| / sigma(x_i) over the rows, which assumes no distribution (see `regression.intervals`). The probability is
        that of new rows like those of the data. Fewer rows than level / (1 - level) give infinite limits.
        """
        validation.check_level(level)
        query = self._query(X, memory_for="prediction_interval")
        fit = self._local_fit()
        half = intervals.half_width(fit.data, query, self._scaled_residuals(query.device), level)
        mean = fit.predict(query)
        return self._output(mean - half, X), self._output(mean + half, X)

    def derivative(self, X: Any) -> Any:
        """Derivative df/dx at each row of X: (q, features), or (q, features, outputs) where y has columns.

        Its error is at most `tol` standard deviations of y over the bandwidth of each feature; NaN for categories.
        """
        query = self._query(X, clamp.BY_DISTANCES, memory_for="derivative")
        slope = self._in_units_of_y(self._local_fit().derivative(query)).numpy(force=True)
        table = slope[:, :, 0] if self.y_.ndim == 1 else slope
        return self._as_output(table, X, getattr(self, "feature_names_in_", None))

    # The linear smoother: predictions are a matrix times y

    def weights(self, X: Any) -> Weights | LinearSmoother:
        """Weights of all rows of the data for each row of X, a lazy (q, n) matrix: `weights @ y` predicts.

        For degree 1 rows sum to 1 and may be negative. A query out of reach has a row of zeros. For degree 0 the
        weights come from distances, whose digits end: a query farther than 10^6 bandwidths from all data (10^8 for
        "laplace") has the weights of a query at that distance in the same direction. `predict` has no such limit.
        """
        query = self._query(X, memory_for="weights")
        return self._local_fit().weights(query)

    def leverage(self) -> np.ndarray:
        """Weight of each row in its own prediction, (n,): the diagonal of the hat matrix."""
        check_is_fitted(self)
        self._require_memory("leverage")
        return self._local_fit().leverage().numpy(force=True)

    def effective_df(self) -> float:
        """Effective degrees of freedom: the trace of the hat matrix, which for a linear model counts its parameters."""
        return float(self.leverage().sum())

    def summary(self) -> Summary:
        """Bandwidths and what they mean, leave-one-out R², effective degrees of freedom and plan, as one table.

        >>> import numpy as np, regard as rg
        >>> x = np.linspace(0, 6, 40)[:, None]
        >>> summary = rg.NadarayaWatson(bandwidth=0.5).fit(x, np.sin(x[:, 0])).summary()
        >>> round(summary.loo_score, 2), round(summary.effective_df, 1)
        (0.96, 5.4)
        >>> summary.features
        (FeatureBandwidth(feature='x0', bandwidth=0.5, meaning=''),)
        """
        check_is_fitted(self)
        return summarise(self)

    # Leave-one-out

    @property
    def loo_residuals_(self) -> np.ndarray:
        """Leave-one-out residuals: y minus the prediction from all other rows, shaped like y.

        A row that a compact kernel does not reach from any other row is predicted by the nearest rows, whatever
        `outside` is, because a bandwidth search needs a number for every row. The same holds for `loo_score_` and
        `cv_`.
        """
        residuals = self._loo_residuals().numpy(force=True)
        return residuals[:, 0] if self.flat_ else residuals

    @property
    def loo_score_(self) -> float:
        """R² of each row predicted from all other rows."""
        check_is_fitted(self)
        if self.blocks_ is None:
            from sklearn.metrics import r2_score  # all metrics of scikit-learn, which a fit does not need

            return float(r2_score(self.y_, self.y_ - self.loo_residuals_, sample_weight=self.sample_weight_))
        variance = self.summary_.y.deviation().square()
        return 1 - self.cv_ / (len(variance) if len(variance) > 1 else float(variance) or 1.0)

    @property
    def cv_(self) -> float:
        """Mean squared leave-one-out residual; with several outputs, the sum over outputs, each over its variance."""
        check_is_fitted(self)
        if self.blocks_ is None:
            return cross_validation.mean_squared_residual(self._local_fit(SEARCH_DEVICE), self._loo_residuals())
        if self._cv is None:
            self._cv = out_of_core_leave_one_out.evaluate(self.blocks_, self._leave_one_out(self.blocks_))[0]
        return self._cv

    def _loo_residuals(self) -> Float[Tensor, "n outputs"]:
        check_is_fitted(self)
        if self._residuals is not None:
            return self._residuals
        if self.blocks_ is None:
            self._residuals = cross_validation.residuals(self._local_fit(SEARCH_DEVICE))
        else:
            self._residuals = out_of_core_leave_one_out.residuals(self.blocks_, self._leave_one_out(self.blocks_))
        return self._residuals

    def _leave_one_out(self, source: Source) -> LeaveOneOut:
        bandwidth = torch.from_numpy(self.bandwidth_)
        return LeaveOneOut.of(source, self.summary_, bandwidth, kernel=self._kernel_name, degree=self.degree)

    # Queries in, results out

    def _query(
        self, X: Any, limits: clamp.Limits = clamp.EXACT, *, memory_for: str | None = None
    ) -> Float[Tensor, "q features"]:
        """Queries as a float64 tensor: checked, with codes for categories, and clamped to `limits` from the data.

        `memory_for` names what needs the training data in memory, which is then checked.
        """
        check_is_fitted(self)
        if memory_for is not None:
            self._require_memory(memory_for)
        if self._is_ordinary(X):
            return self._tensor(X)
        if out_of_core_fit.is_out_of_core(X):
            raise UnsupportedError("of files, large maps and Dask only predict and score are asked; read rows first")
        query = self._tensor(validation.query_table(self, encoding.encode(X, self.categories_)))
        return self._clamped(query, limits) if self.blocks_ is None else query

    def _is_ordinary(self, X: Any) -> bool:
        """True for a float64 array of unnamed numbers near the data: it needs no conversion, check or clamping."""
        if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2 or self.blocks_ is not None:
            return False
        if not len(X) or X.shape[1] != self.n_features_in_ or self.categories_ or hasattr(self, "feature_names_in_"):
            return False
        low, high = self._range_of_x()
        width = np.where(np.isfinite(self.bandwidth_), self.bandwidth_, high - low)
        reach = NEAR_BANDWIDTHS * np.minimum(width, validation.LARGEST)
        ends = zip(X.T, low - reach, high + reach, strict=True)
        return all(least <= column.min() and column.max() <= most for column, least, most in ends)  # False for NaN

    def _range_of_x(self) -> Range:
        if self._x_range is None:  # an estimator from a file
            self._x_range, self._y_unit = Range.of(self.X_), validation.y_unit(Range.of(self.y_))
        return self._x_range

    def _clamped(self, query: Float[Tensor, "q features"], limits: clamp.Limits) -> Float[Tensor, "q features"]:
        """Bring queries nearer whose distances do not fit float64, without changing the result."""
        width = self.bandwidth_.copy()
        width[list(self.categories_)] = np.nan  # lambdas are no distances
        low, high = (self._tensor(end) for end in self._range_of_x())
        return clamp.within(query, (low, high), self._tensor(width), limits)

    def _predict_rows(self, query: Float[Tensor, "q features"]) -> np.ndarray:
        """Predictions shaped like y for rows of out-of-core queries, which are checked and encoded."""
        query = query.to(self.device or "cpu")
        query = self._clamped(query, clamp.EXACT) if self.blocks_ is None else query
        columns = self._in_units_of_y(self._model().predict(query)).numpy(force=True)
        return columns[:, 0] if self.flat_ else columns

    def _output(self, columns: Float[Tensor, "q outputs"], X: Any) -> Any:
        """Results for the user: in the units and the shape of y, as numpy or, after `set_output`, as pandas."""
        table = self._in_units_of_y(columns).numpy(force=True)
        table = table[:, 0] if self.flat_ else table
        return self._as_output(table, X, self.target_names_) if hasattr(self, "_sklearn_output_config") else table

    def _in_units_of_y(self, columns: Float[Tensor, "q ... outputs"]) -> Float[Tensor, "q ... outputs"]:
        return columns if self._y_unit is None else columns * self._tensor(self._y_unit)

    def _tensor(self, array: np.ndarray, device: str | None = None) -> Tensor:
        if not array.flags.writeable:  # torch would share the memory, and warns that it could be written to
            array = array.copy()
        tensor = torch.from_numpy(np.ascontiguousarray(array))
        if device is None and self.device is not None:
            return tensor.to(validation.checked_device(self.device))
        return tensor

    def _require_memory(self, what: str) -> None:
        if self.blocks_ is not None:
            raise UnsupportedError(f"{what} needs the data in memory, but this estimator was fitted on blocks of it")

    def _for_out_of_core_queries(self) -> FittedEstimator:
        names = list(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None
        columns = self.n_features_in_, names, self.categories_, None if self.flat_ else self.outputs_
        return FittedEstimator(*columns, self.target_names_, self._predict_rows, self._out_of_core_model())

    # Models

    def _model(self) -> LocalFit | OutOfCoreModel:
        return self._out_of_core_model() or self._local_fit()

    def _out_of_core_model(self) -> OutOfCoreModel | None:
        """The fit to out-of-core data; None if the data is in memory."""
        if self.blocks_ is None:
            return None
        bandwidth, scale = self._tensor(self.bandwidth_), self.summary_.y_scale()
        settings = ChunkAverage(bandwidth, scale, self._kernel_name, float(self.tol), self.plan)
        return OutOfCoreModel.of(self.blocks_, self.summary_, settings, self.degree, self.outside)

    def _local_fit(self, device: str | None = None, bandwidth: np.ndarray | None = None) -> LocalFit:
        """The fit to data in memory, on the device and with the bandwidth of the estimator unless others are given.

        y is in `_y_unit`, except on a given device, where bandwidths and residuals are computed in the user's units.
        """
        self._range_of_x()
        tensor = partial(self._tensor, device=device)
        y = self.y_.reshape(len(self.y_), -1)
        sample = Sample(
            tensor(self.X_),
            tensor(y if self._y_unit is None or device is not None else y / self._y_unit),
            tensor(self.bandwidth_ if bandwidth is None else bandwidth),
            self._kernel_name,
            None if self.sample_weight_ is None else tensor(self.sample_weight_).log(),
        )
        data = Data(sample, self.tol, self.plan, self.outside)
        if self.categories_:
            counts = tensor(np.array([len(known) for known in self.categories_.values()], dtype=np.float64))
            data = data.with_categories(tuple(self.categories_), counts)
        return LocalLinear(data) if self.degree else LocalConstant(data)

    def _noise(self, query: Float[Tensor, "q features"]) -> Noise:
        """Noise near each query, in units of `_y_unit`."""
        return self._local_fit().noise(query, self._scaled_residuals(query.device).square())

    def _scaled_residuals(self, device: torch.device) -> Float[Tensor, "n outputs"]:
        """Leave-one-out residuals in units of `_y_unit`."""
        residuals = self._loo_residuals().to(device)
        return residuals if self._y_unit is None else residuals / self._tensor(self._y_unit)

    def _describe_plan(self) -> str:
        sample = self._local_fit().data.sample
        return str(engine.explain(sample, sample.x, tol=self.tol, plan=self.plan))

    @property
    def _kernel_name(self) -> str:
        return self.kernel if isinstance(self.kernel, str) else self.kernel.name

    def __sklearn_is_fitted__(self) -> bool:
        """A fit that was refused or interrupted is none, whatever it has stored."""
        return hasattr(self, "bandwidth_")
