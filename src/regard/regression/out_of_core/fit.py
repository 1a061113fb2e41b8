"""Fitting where the data is not an array in memory: the few lines that join it to the estimator."""

from __future__ import annotations

import math
import os
from typing import Any, TypeGuard

import numpy as np

from regard.errors import ChoiceError, DataError, UnsupportedError
from regard.regression import validation
from regard.regression.out_of_core.bandwidth import scott, select
from regard.regression.out_of_core.dask_source import DaskBlocks
from regard.regression.out_of_core.dask_tasks import is_dask
from regard.regression.out_of_core.parquet import Names, Parquet, ParquetBlocks
from regard.regression.out_of_core.source import ArrayBlocks, Blocks
from regard.regression.out_of_core.summary import summarise

# A smaller memory map is read and treated as any other array: joblib hands maps to its workers without being asked.
MAP_BYTES = 2**28


def is_elsewhere(X: object) -> bool:
    """Whether X is a path to Parquet files, a collection of Dask, or a map that may be larger than memory."""
    return isinstance(X, (str, os.PathLike, Parquet)) or is_dask(X) or is_large_map(X)


def is_large_map(X: object) -> TypeGuard[np.ndarray]:
    return isinstance(X, np.memmap) and X.nbytes > MAP_BYTES


def blocks_of(X: Any, y: Any, sample_weight: Any = None, categorical: Any = None) -> Blocks | None:
    """The data in blocks, or None if it is an array, a frame or a list in memory."""
    if is_elsewhere(X):
        _refuse_categories(categorical)  # before texts are refused for being no numbers
    if isinstance(X, (str, os.PathLike, Parquet)):
        return _files(X if isinstance(X, Parquet) else Parquet(X), names(y), name(sample_weight))
    if is_dask(X):
        return _chunks(DaskBlocks(X, y, sample_weight))
    if is_dask(y) or is_dask(sample_weight):
        raise DataError("y and sample_weight may be collections of Dask only where X is one too")
    if is_large_map(X):
        return ArrayBlocks(X, np.asanyarray(y), None if sample_weight is None else np.asanyarray(sample_weight))
    return None


def _refuse_categories(categorical: Any) -> None:
    if categorical is not None:
        raise UnsupportedError("categorical features need the data in memory; numbers can be streamed")


def _files(source: Parquet, y: Names, weight: str | None) -> Blocks:
    both = [one for one in ([y] if isinstance(y, str) else y) if one in (source.x or ())]
    if both:
        raise ChoiceError(f"x names {both[0]!r}, the column to predict: it would predict itself")
    return ParquetBlocks(source, y, weight)


def _chunks(blocks: DaskBlocks) -> Blocks:
    """Refuse names that scikit-learn refuses in memory: by which of them should queries be recognised?"""
    if any(blocks.named) and not all(blocks.named):
        raise DataError(
            "the names of the features must be texts, or none of them must be, as for scikit-learn: "
            f"they are {', '.join(blocks.labels)}; rename them, such as by X.columns = X.columns.map(str)"
        )
    return blocks


def fit(model: Any, blocks: Blocks) -> None:
    """Fit an estimator: one pass to look at the data, and the search for a bandwidth where none is given."""
    _refuse_categories(model.categorical)
    asked = validation.bandwidth(model.bandwidth, blocks.dim)
    summary = summarise(blocks)
    if not float(summary.x.total):
        raise DataError("there is no data: at least one row with a positive weight is needed")
    model.blocks_, model.summary_, model._cv, model._residuals = blocks, summary, None, None  # noqa: SLF001  our own
    model.flat_, model.outputs_, model.target_names_ = blocks.flat, blocks.outputs, blocks.targets
    model.n_samples_fit_, model.n_features_in_, model.categories_ = summary.rows, blocks.dim, {}
    if blocks.names:
        model.feature_names_in_ = np.array(blocks.names, dtype=object)
    model.bandwidth_ = asked if isinstance(asked, np.ndarray) else _choose(model, asked)
    model.plan_ = f"blocks: {summary.rows:,} rows are read block by block, and what each says is merged"


def _choose(model: Any, rule: str) -> np.ndarray:
    blocks, summary = model.blocks_, model.summary_
    if rule == "scott" or summary.rows < 2:
        return scott(blocks, summary, model.kernel).numpy()
    tell: Any = model.verbose if callable(model.verbose) else None
    found = select(blocks, summary, model.kernel, model.degree, verbose=model.verbose is True, tell=tell)
    if not math.isnan(found.value):
        model._cv = found.value  # noqa: SLF001  what the search has found anyway
    return found.bandwidth.numpy()


def names(y: Any) -> Names:
    """What y may be beside Parquet files."""
    if isinstance(y, str) or (isinstance(y, (list, tuple)) and y and all(isinstance(one, str) for one in y)):
        return y
    raise ChoiceError(
        f"with Parquet files y is the name of a column, or a list of names: it came as {type(y).__name__}"
    )


def name(weight: Any) -> str | None:
    """What sample_weight may be beside Parquet files."""
    if weight is None or isinstance(weight, str):
        return weight
    raise ChoiceError(f"with Parquet files sample_weight is the name of a column: it came as {type(weight).__name__}")
