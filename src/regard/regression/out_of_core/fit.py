"""Fit out-of-core data: open the source, summarise it in one pass, and select the bandwidth.

The search for a bandwidth begins on a random part of the rows that fits into memory, and ends with leave-one-out over
all rows, chunk by chunk.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import partial
from typing import Any, TypeGuard

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.engine import threads
from regard.errors import ChoiceError, DataError, UnsupportedError
from regard.regression import validation
from regard.regression.bandwidth import rules
from regard.regression.bandwidth.leave_one_out.problem import Evaluation, Problem, Rows
from regard.regression.bandwidth.optimise import LOOSE
from regard.regression.bandwidth.search import Counter, Search, Selection, listening
from regard.regression.bandwidth.search import select as select_in_memory
from regard.regression.bandwidth.starts import extrapolate, informative
from regard.regression.kernel_sums.sample import Sample
from regard.regression.out_of_core.dask import DaskSource, is_dask
from regard.regression.out_of_core.leave_one_out import LeaveOneOut, count_unit, evaluate
from regard.regression.out_of_core.parquet import Names, Parquet, ParquetSource
from regard.regression.out_of_core.source import ArraySource, Chunk, Source, Summary, summarise

# A smaller memory map is read into memory: joblib passes maps to its workers without being asked.
MEMORY_MAP_BYTES = 2**28
SAMPLED_ROWS = 2**12  # rows on which a search begins; there it can afford every start


# Sources


def is_out_of_core(X: object) -> bool:
    """Return True for a path to Parquet files, a Dask collection, or a memory map of more than MEMORY_MAP_BYTES."""
    return isinstance(X, (str, os.PathLike, Parquet)) or is_dask(X) or is_large_map(X)


def is_large_map(X: object) -> TypeGuard[np.ndarray]:
    return isinstance(X, np.memmap) and X.nbytes > MEMORY_MAP_BYTES


def open_source(X: Any, y: Any, sample_weight: Any = None, categorical: Any = None) -> Source | None:
    """Return a source for out-of-core data; None for an array, a frame or a list in memory."""
    if is_out_of_core(X) and categorical is not None:  # before texts are refused because they are no numbers
        raise UnsupportedError("categorical features need the data in memory; numbers can be streamed")
    if isinstance(X, (str, os.PathLike, Parquet)):
        table, targets = X if isinstance(X, Parquet) else Parquet(X), target_columns(y)
        for name in [targets] if isinstance(targets, str) else targets:
            if name in (table.x or ()):
                raise ChoiceError(f"x names {name!r}, the column to predict: it would predict itself")
        return ParquetSource(table, targets, weight_column(sample_weight))
    if is_dask(X):
        source = DaskSource(X, y, sample_weight)
        source.check_feature_names()
        return source
    if is_dask(y) or is_dask(sample_weight):
        raise DataError("y and sample_weight may be collections of Dask only where X is one too")
    if is_large_map(X):
        return ArraySource(X, np.asanyarray(y), None if sample_weight is None else np.asanyarray(sample_weight))
    return None


def target_columns(y: Any) -> Names:
    """Return y if it is the name of a column of Parquet files, or a list of names."""
    if isinstance(y, str) or (isinstance(y, (list, tuple)) and y and all(isinstance(one, str) for one in y)):
        return y
    raise ChoiceError(
        f"with Parquet files y is the name of a column, or a list of names: it came as {type(y).__name__}"
    )


def weight_column(weight: Any) -> str | None:
    """Return sample_weight if it is None or the name of a column of Parquet files."""
    if weight is None or isinstance(weight, str):
        return weight
    raise ChoiceError(f"with Parquet files sample_weight is the name of a column: it came as {type(weight).__name__}")


# The fit


def fit(
    source: Source, bandwidth: Any, kernel: str, degree: int, *, verbose: bool | Callable[..., None]
) -> tuple[Summary, np.ndarray, float | None]:
    """Summary of the data, its bandwidth (selected unless `bandwidth` gives it), and CV if a search has computed it."""
    widths = validation.checked_bandwidth(bandwidth, source.n_features)
    summary = summarise(source)
    if not float(summary.x.total):
        raise DataError("there is no data: at least one row with a positive weight is needed")
    names = source.feature_names or None
    x, y = (validation.Range(part.low.numpy(), part.high.numpy()) for part in (summary.x, summary.unweighted_y))
    validation.check_magnitudes("X", x, names)
    validation.check_magnitudes("y", y, source.target_names)
    value = None
    if isinstance(widths, str) and (widths == "scott" or summary.rows < 2):
        widths = scott(source, summary, kernel).numpy()
    elif isinstance(widths, str):
        result = select(source, summary, kernel, degree, verbose=verbose)
        widths, value = result.bandwidth.numpy(), None if math.isnan(result.value) else result.value
    validation.check_widths(widths, x, degree, names)
    return summary, widths, value


def scott(source: Source, summary: Summary, kernel: str = "gaussian") -> Float[Tensor, " dim"]:
    """Bandwidth by Scott's rule, as `bandwidth.rules.scott` has it for data in memory."""
    x, rows = summary.x, summary.effective_rows() if count_unit(source) is None else float(summary.x.total)
    return rules.scott_of_deviation(torch.where(x.high > x.low, x.deviation(), 0.0), rows, kernel)


# Cross-validation


def select(
    source: Source, summary: Summary, kernel: str, degree: int, *, verbose: bool | Callable[..., None]
) -> Selection:
    """Minimise the mean squared leave-one-out residual over all rows. The residuals are not kept.

    For degree 1 there is no gradient over chunks: the search ends on the sampled rows, and its bandwidth is scaled to
    all rows by the rate at which the best bandwidth shrinks. The value there is not computed: NaN.

    A function `verbose` is called after each evaluation, on the sample and then on all rows; True prints the same.
    """
    unit = count_unit(source)
    sample = sample_rows(source, summary)
    left_out = None if sample.weight is None or unit is None else torch.full_like(sample.weight, unit)
    drawn = Rows(Sample(sample.x, sample.y, torch.ones_like(sample.x[0]), kernel, sample.log_weight), left_out)
    first = select_in_memory(drawn, degree, verbose=verbose)
    if len(sample.x) == summary.positive_rows:
        return first
    problem = Problem.of(drawn)
    start = extrapolate(problem, first.bandwidth / problem.unit, len(sample.x) / max(1, summary.positive_rows))
    if degree:
        return first._replace(bandwidth=start * problem.unit, value=math.nan, residuals=sample.y[:0])

    def objective(bandwidth: Float[Tensor, " dim"], *, gradient: bool = True) -> Evaluation:
        leave_one_out = LeaveOneOut(summary, bandwidth, kernel, gradient, unit)
        with threads.one_thread():  # chunks are small, and the engine has workers of its own
            value, slope = evaluate(source, leave_one_out)
        # Residuals are not kept: there may be too many.
        return Evaluation(value, slope, sample.y[:0], torch.empty(0, dtype=torch.int64), problem.data.scale)

    with listening(verbose) as listener:
        # The search itself knows only the number of sampled rows.
        of_all_rows = None if listener is None else lambda state: listener(state._replace(points=summary.rows))
        search = Search(problem, objective, Counter(of_all_rows, first.evaluations), tight=True)
        search.evaluate(start)
        if not bool(torch.isfinite(start).all()):
            # A feature that does not help a few rows may help all rows: try it again with a very wide bandwidth.
            search.descend(torch.where(search.bounds.free, start.minimum(informative(problem)), math.inf), LOOSE)
        search.settle(start)
    return search.selection()


def sample_rows(source: Source, summary: Summary) -> Chunk:
    """About SAMPLED_ROWS rows of positive weight, the same ones each time; all rows if there are no more."""
    return source.fold(partial(_sample_chunk, min(1.0, SAMPLED_ROWS / max(1, summary.positive_rows))), _merge_rows)


def _sample_chunk(share: float, chunk: Chunk) -> Chunk:
    rows = torch.arange(len(chunk.x)) if chunk.weight is None else (chunk.weight > 0).nonzero().squeeze(1)
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(chunk.number))
    rows = rows[order[: math.ceil(share * len(order))].sort().values]
    return chunk._replace(x=chunk.x[rows], y=chunk.y[rows], weight=None if chunk.weight is None else chunk.weight[rows])


def _merge_rows(one: Chunk, two: Chunk) -> Chunk:
    weight = None if one.weight is None or two.weight is None else torch.cat((one.weight, two.weight))
    return one._replace(x=torch.cat((one.x, two.x)), y=torch.cat((one.y, two.y)), weight=weight)
