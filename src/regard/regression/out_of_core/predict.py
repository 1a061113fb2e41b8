"""Predict from out-of-core data, and predict and score out-of-core queries: Parquet files, memory maps, Dask."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard import kernels
from regard.errors import DataError, OutsideError, ShapeError
from regard.regression import encoding, validation
from regard.regression.kernel_sums import clamp
from regard.regression.local.extrapolation import rows_out_of_reach
from regard.regression.out_of_core.average import LINES_RANGE, ChunkAverage, LinearAverages, PartialState, average
from regard.regression.out_of_core.dask import (
    DaskSource,
    Delayed,
    constant,
    delayed_predictions,
    is_dask,
    split_columns,
    task,
)
from regard.regression.out_of_core.fit import is_large_map, target_columns, weight_column
from regard.regression.out_of_core.parquet import Parquet, ParquetSource
from regard.regression.out_of_core.source import ArraySource, Chunk, ColumnMoments, Source, Summary, merge_all, prefetch

PredictRows = Callable[[Float[Tensor, "q features"]], np.ndarray]  # (q,) or (q, outputs), shaped like y


@dataclass(frozen=True, eq=False)
class OutOfCoreModel:
    """Kernel regression on out-of-core data."""

    source: Source | None  # None: a Dask worker only clamps queries and turns averages into predictions
    settings: ChunkAverage
    outside: str
    value_range: float  # largest difference of two values of an averaged column, in units of its scale
    box: clamp.Box

    @staticmethod
    def of(source: Source, summary: Summary, settings: ChunkAverage, degree: int, outside: str) -> OutOfCoreModel:
        bandwidth, value_range = settings.bandwidth, summary.y_range()
        settings = replace(settings, find_nearest=kernels.get(settings.kernel).compact and outside == "nearest")
        if degree:
            lines = LinearAverages.of(summary, bandwidth)
            settings, value_range = replace(settings, scale=lines.scale, lines=lines), LINES_RANGE
        box = summary.x.low.to(bandwidth.device), summary.x.high.to(bandwidth.device)
        return OutOfCoreModel(source, settings, outside, value_range, box)

    def predict(self, query: Float[Tensor, "q dim"]) -> Float[Tensor, "q outputs"]:
        assert self.source is not None  # noqa: S101  no worker asks for this
        query = self.clamp(query)
        return self.finish(query, average(self.source, query, self.settings))

    def clamp(self, query: Float[Tensor, "q dim"]) -> Float[Tensor, "q dim"]:
        """Bring queries nearer whose squared distances would lose all digits in float64."""
        return clamp.within(query, self.box, self.settings.bandwidth, clamp.BY_SQUARES)

    def finish(self, query: Float[Tensor, "q dim"], state: PartialState) -> Float[Tensor, "q outputs"]:
        """Predictions from the averages of all chunks."""
        rows_out_of_reach(state.average.lse, self.settings.kernel, self.outside)  # may be refused
        return self.settings.predictions(query, state)


# Out-of-core queries


class FittedEstimator(NamedTuple):
    """Columns that a fitted estimator expects of queries, and how it predicts its outputs."""

    n_features: int
    feature_names: list[str] | None
    categories: Mapping[int, np.ndarray]
    n_outputs: int | None  # None: predictions have no axis for outputs
    target_names: list[Any] | None
    predict_rows: PredictRows  # for rows in memory
    model: OutOfCoreModel | None  # where the training data is out of core


def predict(X: Any, fitted: FittedEstimator) -> Any:
    """Predict Parquet files or a memory map as an array, a Dask collection as one with the same chunks."""
    if not is_dask(X):
        chunks = prefetch(_query_chunks(X, fitted))
        predictions = [_predict_chunk(fitted.predict_rows, chunk.x, chunk.name) for chunk in chunks]
        if not any(map(len, predictions)):
            raise DataError(f"X must have at least one row to predict for, and {X} has none")
        return np.concatenate(predictions)
    if hasattr(X, "columns") and fitted.feature_names is not None:
        missing = [name for name in fitted.feature_names if name not in list(X.columns)]
        if missing:
            has = ", ".join(map(str, X.columns))
            raise DataError(f"X has no column {', '.join(missing)}, which was fitted; it has: {has}")
        X = X[fitted.feature_names]
    if X.ndim != 2 or X.shape[1] != fitted.n_features:
        has = f"{X.shape[1]} columns" if X.ndim == 2 else f"{X.ndim} dimension"
        raise ShapeError(f"X must have {fitted.n_features} features, as in fit: it has {has}")
    model = fitted.model
    if model is not None and isinstance(model.source, DaskSource):
        predict_part = _predict_by_chunk_pairs(model, model.source, is_1d=fitted.n_outputs is None)
    else:
        estimator = constant(fitted.predict_rows)
        predict_part = lambda part, name: task(_predict_part, estimator, fitted.categories, part, name)  # noqa: E731
    return delayed_predictions(X, predict_part, fitted.n_outputs, fitted.target_names, tuple(fitted.categories))


def _predict_part(predict_rows: PredictRows, categories: Mapping[int, np.ndarray], part: Any, name: str) -> np.ndarray:
    return _predict_chunk(predict_rows, _query(part, name, categories), name)


def _predict_chunk(predict_rows: PredictRows, query: Float[Tensor, "q dim"], name: str) -> np.ndarray:
    with _located(name):
        return predict_rows(query)


def _predict_by_chunk_pairs(
    model: OutOfCoreModel, source: DaskSource, *, is_1d: bool
) -> Callable[[Delayed, str], Delayed]:
    """A task for each pair of a chunk of queries and a chunk of data; the states of one chunk of queries are merged."""
    # If each total weight has a relative error of e, each share of a query's weight has at most 2 e. With this smaller
    # tolerance the errors of all chunks together keep the promise, whatever the chunks hold: no chunk is read again.
    settings = replace(model.settings, tol=model.settings.tol / (1 + 2 * model.value_range))
    shared, end = constant(settings), constant(replace(model, source=None))

    def predict_part(part: Delayed, name: str) -> Delayed:
        query = task(_clamped_query, end, part, name)
        state = source.delayed_fold(ChunkAverage.chunk_state, settings.merge, shared, query)
        return task(_finish, end, query, state, name, is_1d)

    return predict_part


def _clamped_query(model: OutOfCoreModel, part: Any, name: str) -> Float[Tensor, "q dim"]:
    return model.clamp(_query(part, name))


def _finish(
    model: OutOfCoreModel, query: Float[Tensor, "q dim"], state: PartialState, name: str, is_1d: bool
) -> np.ndarray:
    with _located(name):
        columns = model.finish(query, state).numpy(force=True)
    return columns[:, 0] if is_1d else columns


def _query(part: Any, name: str, categories: Mapping[int, np.ndarray] | None = None) -> Float[Tensor, "q dim"]:
    table_name = f"X in {name}"
    table = np.array(encoding.encode(part, categories or {}, table_name), dtype=np.float64, order="C")
    validation.finite(table_name, table, list(map(str, getattr(part, "columns", []))))
    return torch.from_numpy(table)


@contextmanager
def _located(name: str) -> Iterator[None]:
    """Add to an OutsideError the chunk in which its row number counts."""
    try:
        yield
    except OutsideError as error:
        raise OutsideError(f"X in {name}: {error}") from error


def _query_chunks(X: Any, fitted: FittedEstimator, y: Any = None, weight: Any = None) -> Iterable[Chunk]:
    """Chunks of the features that were fitted, with y and the weights if these are given."""
    if isinstance(X, np.ndarray):
        if X.ndim != 2 or X.shape[1] != fitted.n_features:
            raise ShapeError(f"X must have {fitted.n_features} features, as in fit: it has the shape {X.shape}")
        chunks = (chunk.checked() for chunk in ArraySource(X, X[:, :0] if y is None else y, weight))
        return (chunk._replace(x=_query(chunk.x.numpy(), chunk.name, fitted.categories)) for chunk in chunks)
    table = X if isinstance(X, Parquet) else Parquet(X)
    wanted = table if fitted.feature_names is None else Parquet(table.path, fitted.feature_names)
    source = ParquetSource(wanted, y, weight, fitted.categories)
    if source.n_features != fitted.n_features:
        names = ", ".join(source.feature_names)
        raise ShapeError(f"X must have {fitted.n_features} features, as in fit: {table.path} has {names}")
    return (chunk.checked(source.feature_names) for chunk in source)


# R^2


class SquaredErrors(NamedTuple):
    """Partial state of R^2: moments of y, and the sum of squared prediction errors."""

    rows: int
    y: ColumnMoments
    squares: Float[Tensor, " outputs"]

    def merge(self, other: SquaredErrors) -> SquaredErrors:
        return SquaredErrors(self.rows + other.rows, self.y.merge(other.y), self.squares + other.squares)

    def r2(self) -> float:
        """Mean over the outputs. A constant output counts as in scikit-learn: 1 if it is predicted exactly, or 0."""
        if self.rows < 2:
            return math.nan
        varies = self.y.high > self.y.low
        share = self.squares / torch.where(varies, self.y.squares, 1.0)
        return float(torch.where(varies, 1 - share, (share == 0).double()).mean())


def score(X: Any, y: Any, sample_weight: Any, fitted: FittedEstimator) -> float:
    """R^2 of predictions for out-of-core queries, chunk by chunk; y and sample_weight are given as in `fit`."""
    if is_dask(X):
        features, y, sample_weight = split_columns(X, y, sample_weight)
        predicted = predict(features, fitted)
        if predicted.ndim == 1:
            predicted = predicted.to_frame() if hasattr(X, "columns") else predicted[:, None]
        return DaskSource(predicted, y, sample_weight).fold(_squared_errors, SquaredErrors.merge).r2()
    if is_large_map(X):
        y, sample_weight = np.asanyarray(y), None if sample_weight is None else np.asanyarray(sample_weight)
    else:
        y, sample_weight = target_columns(y), weight_column(sample_weight)

    def predicted_chunk(chunk: Chunk) -> Chunk:
        predictions = torch.from_numpy(_predict_chunk(fitted.predict_rows, chunk.x, chunk.name))
        return chunk._replace(x=predictions.reshape(len(chunk.x), -1))

    chunks = prefetch(_query_chunks(X, fitted, y, sample_weight))
    return merge_all((_squared_errors(predicted_chunk(chunk)) for chunk in chunks), SquaredErrors.merge).r2()


def _squared_errors(chunk: Chunk) -> SquaredErrors:
    """Errors of one chunk whose x are the predictions."""
    validation.finite(f"the prediction for {chunk.name}", chunk.x.numpy(), [])
    predicted, y, weight, *_ = chunk.checked()
    if predicted.shape != y.shape:
        raise ShapeError(f"y must have {predicted.shape[1]} outputs, as in fit: it has {y.shape[1]} in {chunk.name}")
    squares = (y - predicted).square()
    total = squares.sum(0) if weight is None else weight @ squares
    return SquaredErrors(len(y), ColumnMoments.of(y, weight), total)
