"""The bandwidth of data in blocks: found on some rows that fit into memory, settled on all of them."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard, cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard import kernels
from regard.engine import threads
from regard.errors import ChoiceError, DataError, UnsupportedError
from regard.regression import validation
from regard.regression.bandwidth.duplicates import as_counts
from regard.regression.bandwidth.leave_one_out.problem import Evaluation, Problem
from regard.regression.bandwidth.optimise import LOOSE
from regard.regression.bandwidth.search import Counter, Listener, Search, Selection, show
from regard.regression.bandwidth.search import select as select_in_memory
from regard.regression.bandwidth.starts import wide
from regard.regression.out_of_core.dask import DaskBlocks, is_dask
from regard.regression.out_of_core.leave_one_out import OfLines, Question, evaluate, residuals
from regard.regression.out_of_core.parquet import Names, Parquet, ParquetBlocks
from regard.regression.out_of_core.source import ArrayBlocks, Block, Blocks
from regard.regression.out_of_core.summary import Summary, summarise

DRAWN = 2**12  # rows on which the search begins; it tries every start there, where that is cheap


class Some(NamedTuple):
    """Rows in memory."""

    x: Float[Tensor, "n dim"]
    y: Float[Tensor, "n outputs"]
    weight: Float[Tensor, " n"] | None

    def merge(self, other: Some) -> Some:
        weight = None if self.weight is None or other.weight is None else torch.cat((self.weight, other.weight))
        return Some(torch.cat((self.x, other.x)), torch.cat((self.y, other.y)), weight)


@dataclass(frozen=True, eq=False)
class OverBlocks:
    """Leave-one-out over all blocks, as the search asks it. Residuals are not kept: there may be too many."""

    blocks: Blocks
    summary: Summary
    kernel: str
    unit: float | None

    def __call__(self, bandwidth: Float[Tensor, " dim"], *, gradient: bool = True) -> Evaluation:
        question = Question(self.summary, bandwidth, self.kernel, gradient, self.unit)
        with threads.one_thread():  # blocks are small, and the engine has workers of its own
            value, slope = evaluate(self.blocks, question)
        nothing = bandwidth.new_empty(0, self.blocks.outputs)
        return Evaluation(value, slope, nothing, torch.empty(0, dtype=torch.int64))


def select(
    blocks: Blocks,
    summary: Summary,
    kernel: str = "gaussian",
    degree: int = 0,
    *,
    verbose: bool = False,
    tell: Listener | None = None,
) -> Selection:
    """Minimise the mean squared leave-one-out residual over all rows; the residuals stay behind where the data is.

    For lines, whose derivative blocks do not know, the search ends on the rows that are drawn: their width is carried
    over to all by the rate at which the best one shrinks as rows come, and what its value is there is not known: NaN.

    `tell` is told after each evaluation, on some rows and then on all; without it, `verbose` shows the same.
    """
    unit = unit_of_counts(blocks)
    some = draw(blocks, summary)
    log_weight = None if some.weight is None else some.weight.log()
    left_out = None if some.weight is None or unit is None else torch.full_like(some.weight, unit)
    first = select_in_memory(
        some.x, some.y, kernel, degree, log_weight, left_out=left_out, verbose=verbose, progress=tell
    )
    share = len(some.x) / max(1, summary.weighing)
    if len(some.x) == summary.weighing:
        return first
    if degree:
        return first._replace(bandwidth=_narrowed(first.bandwidth, share), value=math.nan, residuals=some.y[:0])
    problem = Problem.of(some.x, some.y, kernel, 0, log_weight, left_out)
    listener = tell or (show if verbose else None)
    search = Search(problem, Counter(listener and _of_all(listener, summary.rows), first.evaluations), tight=True)
    search.objective = cast("Any", OverBlocks(blocks, summary, kernel, unit))
    begin = _narrowed(first.bandwidth / problem.unit, share)
    search.evaluate(begin)
    if not bool(torch.isfinite(begin).all()):
        # A feature that says too little for a few rows may say enough for all: it comes back as a very wide one.
        search.descend(torch.where(search.bounds.free, begin.clamp_max(wide(problem)), math.inf), LOOSE)
    search.settle(begin)
    if listener is show:
        sys.stderr.write("\n")
    return search.selection()


def _of_all(listener: Listener, rows: int) -> Listener:
    """The search knows of the rows that were drawn, and is asked about all."""
    return lambda state: listener(state._replace(points=rows))


def scott(blocks: Blocks, summary: Summary, kernel: str = "gaussian") -> Float[Tensor, " dim"]:
    """Scott's rule as `_rules.scott` has it."""
    unit = unit_of_counts(blocks)
    rows = summary.effective_rows() if unit is None else float(summary.x.total)
    variance = summary.x.squares / summary.x.total / max(1 - 1 / rows, math.ulp(1.0))
    width = kernels.get(kernel).canonical_bandwidth * variance.sqrt() * rows ** (-1 / (len(variance) + 4))
    return torch.where((summary.x.high > summary.x.low) & (width > 0), width, math.inf)


def draw(blocks: Blocks, summary: Summary) -> Some:
    """About `DRAWN` rows that weigh something, the same ones each time; all in their order, if there are no more."""
    return blocks.fold(_draw_block, Some.merge, min(1.0, DRAWN / max(1, summary.weighing)))


def unit_of_counts(blocks: Blocks) -> float | None:
    """1 if there are weights and all are whole numbers, which then say how often a row comes; else None."""
    return 1.0 if blocks.fold(_counts, lambda one, two: one and two) else None


def _draw_block(share: float, block: Block) -> Some:
    rows = torch.arange(len(block.x)) if block.weight is None else (block.weight > 0).nonzero().squeeze(1)
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(block.number))
    rows = rows[order[: math.ceil(share * len(order))].sort().values]
    return Some(block.x[rows], block.y[rows], None if block.weight is None else block.weight[rows])


def _counts(_given: None, block: Block) -> bool:
    return block.weight is not None and as_counts(block.weight) is not None


def _narrowed(bandwidth: Float[Tensor, " dim"], share: float) -> Float[Tensor, " dim"]:
    """The best width goes with the number of rows to the power -1 / (dim + 4), of the features that matter."""
    return bandwidth * share ** (1 / (int(torch.isfinite(bandwidth).sum()) + 4))


def question(model: Any) -> Question:
    """Leave-one-out at the bandwidth of a fitted estimator."""
    bandwidth, unit = torch.from_numpy(model.bandwidth_), unit_of_counts(model.blocks_)
    if model.degree:
        return OfLines(model.summary_, bandwidth, kernels.get(model.kernel).name, unit=unit)
    return Question(model.summary_, bandwidth, kernels.get(model.kernel).name, gradient=False, unit=unit)


def cross_validation(model: Any) -> float:
    """The mean squared leave-one-out residual; with several outputs each is in units of its variance."""
    return evaluate(model.blocks_, question(model))[0]


def left_out(model: Any) -> Float[Tensor, "n outputs"]:
    """y less what all the other rows predict, in the order of the blocks; it must fit into memory."""
    return residuals(model.blocks_, question(model))


def score(model: Any) -> float:
    """R^2 of rows that are predicted by the others."""
    variance = model.summary_.y.deviation().square()
    return 1 - model.cv_ / (len(variance) if len(variance) > 1 else float(variance) or 1.0)


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
        return scott(blocks, summary, kernels.get(model.kernel).name).numpy()
    tell: Any = model.verbose if callable(model.verbose) else None
    found = select(
        blocks, summary, kernels.get(model.kernel).name, model.degree, verbose=model.verbose is True, tell=tell
    )
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
