"""Predicting from data in blocks, and for queries in blocks: Parquet folders and collections of Dask."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard import kernels
from regard.errors import DataError, OutsideError, ShapeError, UnsupportedError
from regard.operands import NEVER
from regard.regression import encoding, validation
from regard.regression.kernel_sums import clamp
from regard.regression.kernel_sums.state import Pooled
from regard.regression.out_of_core import average, fit
from regard.regression.out_of_core.average import SPAN, Lines, Reached, Recipe
from regard.regression.out_of_core.dask import DaskBlocks, Delayed, apart, is_dask, lazily, shared, task
from regard.regression.out_of_core.parquet import Names, Parquet, ParquetBlocks
from regard.regression.out_of_core.source import ArrayBlocks, Block, Blocks, ahead, reduced
from regard.regression.out_of_core.summary import Moments


@dataclass(frozen=True, eq=False)
class Streamed:
    """Degree 0 on data in blocks."""

    blocks: Blocks | None  # None: only to finish what others have pooled
    recipe: Recipe
    outside: str
    span: float  # how far apart two values of a column can be, in units of its scale

    @staticmethod
    def of(model: Any) -> Streamed:
        summary, outside = model.summary_, model.outside
        recipe = Recipe(
            torch.from_numpy(model.bandwidth_).to(model.device or "cpu"),
            summary.scale(),
            kernels.get(model.kernel).name,
            float(model.tol),
            model.plan,
            look_for_nearest=kernels.get(model.kernel).compact and outside == "nearest",
        )
        if not model.degree:
            return Streamed(model.blocks_, recipe, outside, summary.span())
        lines = Lines.of(summary, recipe.bandwidth)
        recipe = replace(recipe, scale=lines.scale, columns=lines.columns, average=lines.average)
        return StreamedLines(model.blocks_, recipe, outside, SPAN, lines)

    def predict(self, query: Float[Tensor, "q dim"]) -> Float[Tensor, "q outputs"]:
        if self.blocks is None:
            raise UnsupportedError("there is no data to predict from")
        return self.answer(query, average.pool(self.blocks, query, self.recipe, doubtful=self._doubtful))

    def answer(self, query: Float[Tensor, "q dim"], found: Reached) -> Float[Tensor, "q outputs"]:
        far = found.pooled.lse == NEVER
        if self.outside == "raise" and bool(far.any()):
            raise OutsideError(
                f"no point of the data is within reach of row {int(far.nonzero()[0])}: the {self.recipe.kernel} kernel "
                "ends at one bandwidth; a wider bandwidth, a kernel without an end, or outside='nearest' would answer"
            )
        return self._made(query, found)

    def _doubtful(self, query: Float[Tensor, "q dim"], found: Pooled) -> Bool[Tensor, " q"]:
        """Queries whose averages are within the error that is allowed, and whose answers may not be: none."""
        return torch.zeros_like(found.lse, dtype=torch.bool)

    def _made(self, query: Float[Tensor, "q dim"], found: Reached) -> Float[Tensor, "q outputs"]:
        return found.answer()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnsupportedError(f"{name} needs the data in memory, but this estimator was fitted on blocks of it")


@dataclass(frozen=True, eq=False)
class StreamedLines(Streamed):
    """Degree 1: what is pooled is what lines are made of."""

    lines: Lines

    def _doubtful(self, query: Float[Tensor, "q dim"], found: Pooled) -> Bool[Tensor, " q"]:
        return self.lines.doubtful(query, found, self.recipe.tol)

    def _made(self, query: Float[Tensor, "q dim"], found: Reached) -> Float[Tensor, "q outputs"]:
        return self.lines.answer(query, found)


def predict(model: Any, X: Any) -> Any:
    """Predictions for a Parquet folder or a map, an array; for a collection of Dask, one with the same chunks."""
    if not is_dask(X):
        answers = [answered(model, block.x, block.name) for block in ahead(queries(model, X))]
        if not any(map(len, answers)):
            raise DataError(f"X must have at least one row to predict for, and {X} has none")
        return np.concatenate(answers)
    named = hasattr(X, "columns") and hasattr(model, "feature_names_in_")
    X = X[_present(model.feature_names_in_, X.columns)] if named else X
    if X.ndim != 2 or X.shape[1] != model.n_features_in_:
        has = f"{X.shape[1]} columns" if X.ndim == 2 else f"{X.ndim} dimension"
        raise ShapeError(f"X must have {model.n_features_in_} features, as in fit: it has {has}")
    answer = _everywhere(model) if isinstance(model.blocks_, DaskBlocks) else _here(model)
    return lazily(X, answer, None if model.flat_ else model.outputs_, model.target_names_, tuple(model.categories_))


def _here(model: Any) -> Callable[[Delayed, str], Delayed]:
    """The whole estimator goes to the queries."""
    given = shared(model)
    return lambda part, name: task(_answer_part, given, part, name)


def _everywhere(model: Any) -> Callable[[Delayed, str], Delayed]:
    """A chunk of queries meets each chunk of the data, and what they know of each other is merged."""
    streamed, blocks = Streamed.of(model), model.blocks_
    # Each share of a query's weight is wrong by at most 2 e of itself, if each total is by e: this much smaller, the
    # errors of all chunks together keep what was promised, whatever the chunks say, and no chunk is asked again.
    careful = replace(streamed.recipe, tol=streamed.recipe.tol / (1 + 2 * streamed.span))
    recipe, end = shared(careful), shared(replace(streamed, blocks=None))
    box, width = (model.summary_.x.low, model.summary_.x.high), streamed.recipe.bandwidth

    def answer(part: Delayed, name: str) -> Delayed:
        query = task(_near, part, name, box, width)
        found = blocks.folded(Recipe.reach, careful.merge, recipe, query)
        return task(_finish, end, model.flat_, query, found, name)

    return answer


def _near(
    part: Any, name: str, box: tuple[Float[Tensor, " dim"], Float[Tensor, " dim"]], width: Float[Tensor, " dim"]
) -> Float[Tensor, "q dim"]:
    return clamp.within(_query(part, name), box, width, clamp.BY_SQUARES)


def _query(part: Any, name: str, known: dict[int, np.ndarray] | None = None) -> Float[Tensor, "q dim"]:
    source = f"X in {name}"
    table = np.array(encoding.encoded(part, known or {}, source), dtype=np.float64, order="C")
    validation.finite(source, table, list(map(str, getattr(part, "columns", []))))
    return torch.from_numpy(table)


def _finish(streamed: Streamed, flat: bool, query: Float[Tensor, "q dim"], found: Reached, name: str) -> np.ndarray:
    with _placed(name):
        columns = streamed.answer(query, found).numpy(force=True)
    return columns[:, 0] if flat else columns


def _answer_part(model: Any, part: Any, name: str) -> np.ndarray:
    return answered(model, _query(part, name, model.categories_), name)


def answered(model: Any, query: Float[Tensor, "q dim"], name: str) -> np.ndarray:
    """Answers for the block of queries that messages call `name`."""
    with _placed(name):
        columns = model._local().predict(query.to(model.device or "cpu")).numpy(force=True)  # noqa: SLF001  our own
    return columns[:, 0] if model.flat_ else columns


@contextmanager
def _placed(name: str) -> Iterator[None]:
    """Say of which rows the number of a row is counted."""
    try:
        yield
    except OutsideError as error:
        raise OutsideError(f"X in {name}: {error}") from error


def queries(model: Any, X: Any, y: Any = None, weight: Any = None) -> Iterable[Block]:
    """The features that were fitted, block by block, and beside them what else is named."""
    return _of_map(model, X, y, weight) if isinstance(X, np.ndarray) else _of_files(model, X, y, weight)


def _of_map(model: Any, X: np.ndarray, y: np.ndarray | None, weight: np.ndarray | None) -> Iterable[Block]:
    if X.ndim != 2 or X.shape[1] != model.n_features_in_:
        raise ShapeError(f"X must have {model.n_features_in_} features, as in fit: it has the shape {X.shape}")
    for block in ArrayBlocks(X, X[:, :0] if y is None else y, weight):
        yield block.checked()._replace(x=_query(block.x.numpy(), block.name, model.categories_))


def _of_files(model: Any, X: Any, y: Names | None, weight: str | None) -> Iterable[Block]:
    source = X if isinstance(X, Parquet) else Parquet(X)
    names = getattr(model, "feature_names_in_", None)
    wanted = source if names is None else Parquet(source.path, list(names))
    blocks = ParquetBlocks(wanted, y, weight, known=model.categories_)
    if blocks.dim != model.n_features_in_:
        raise ShapeError(
            f"X must have {model.n_features_in_} features, as in fit: {source.path} has {', '.join(blocks.names)}"
        )
    return (block.checked(blocks.names) for block in blocks)


def _present(wanted: Iterable[str], columns: Iterable[Any]) -> list[str]:
    there = list(columns)
    missing = [name for name in wanted if name not in there]
    if missing:
        has = ", ".join(map(str, there))
        raise DataError(f"X has no column {', '.join(missing)}, which was fitted; it has: {has}")
    return list(wanted)


class Missed(NamedTuple):
    """How y varies, and by how much it was missed; of two parts together."""

    rows: int
    y: Moments
    squares: Float[Tensor, " outputs"]

    def merge(self, other: Missed) -> Missed:
        return Missed(self.rows + other.rows, self.y.merge(other.y), self.squares + other.squares)

    def score(self) -> float:
        """The mean over the outputs, and what scikit-learn says of y that does not vary: 1 if it is hit, else 0."""
        if self.rows < 2:
            return math.nan
        varies = self.y.high > self.y.low
        share = self.squares / torch.where(varies, self.y.squares, 1.0)
        return float(torch.where(varies, 1 - share, (share == 0).double()).mean())


def score(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """R^2 for a Parquet folder, a large map or a collection of Dask; y and sample_weight as in `fit`."""
    if is_dask(X):
        features, y, sample_weight = apart(X, y, sample_weight)
        predicted = predict(model, features)
        if predicted.ndim == 1:
            predicted = predicted.to_frame() if hasattr(X, "columns") else predicted[:, None]
        return DaskBlocks(predicted, y, sample_weight).fold(_missed, Missed.merge).score()
    if fit.is_large_map(X):
        y, sample_weight = np.asanyarray(y), None if sample_weight is None else np.asanyarray(sample_weight)
    else:
        y, sample_weight = fit.names(y), fit.name(sample_weight)
    blocks = queries(model, X, y, sample_weight)
    return reduced((_missed(None, _predicted(model, block)) for block in ahead(blocks)), Missed.merge).score()


def _predicted(model: Any, block: Block) -> Block:
    """The same block, with predictions in the place of what they are made from."""
    return block._replace(x=torch.from_numpy(answered(model, block.x, block.name)).reshape(len(block.x), -1))


def _missed(_given: None, block: Block) -> Missed:
    validation.finite(f"the prediction for {block.name}", block.x.numpy(), [])
    predicted, y, weight, *_ = block.checked()
    if predicted.shape != y.shape:
        raise ShapeError(f"y must have {predicted.shape[1]} outputs, as in fit: it has {y.shape[1]} in {block.name}")
    squares = (y - predicted).square()
    of_each = squares.sum(0) if weight is None else weight @ squares
    return Missed(len(y), Moments.of(y, weight), of_each)
