"""Dask collections: each chunk becomes a partial state where it lies; states, not data, are merged in a tree."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from numbers import Number
from typing import Any, NamedTuple, TypeVar

import numpy as np

from regard.engine import threads
from regard.errors import DataError, ShapeError
from regard.regression.out_of_core.source import Chunk, Item, Source, State, make_chunk
from regard.regression.pandas_output import labelled, target_names

FAN_IN = 8  # states merged by one task
Delayed = Any  # Dask's classes are untyped
Part = TypeVar("Part")


def is_dask(x: object) -> bool:
    """Return True for a Dask collection. Nobody can have one without having imported Dask."""
    return "dask" in sys.modules and sys.modules["dask"].is_dask_collection(x)


class DaskSource(Source):
    """Chunks of Dask arrays, or partitions of Dask frames. Nothing is computed or moved before a fold."""

    def __init__(self, x: Any, y: Any, weight: Any = None) -> None:
        if getattr(x, "ndim", 2) != 2:
            raise ShapeError(f"X must be a table, one row a sample: it has {x.ndim} dimension")
        x, y, weight = split_columns(x, y, weight)
        columns = tuple(getattr(x, "columns", ()))
        self.column_labels: tuple[str, ...] = tuple(map(str, columns))
        are_texts = [isinstance(name, str) for name in columns]  # only a text is a name for scikit-learn
        self.feature_names: tuple[str, ...] = columns if all(are_texts) else ()
        self.has_mixed_names: bool = any(are_texts) and not all(are_texts)
        self.target_names: list[Any] | None = target_names(y)
        y = np.asarray(y) if isinstance(y, list) or y is None else y
        if y.ndim not in (1, 2):
            raise ShapeError("y must hold one number a row, or one a row and output; a column of X may be named")
        self.n_features: int = x.shape[1]
        self.y_is_1d: bool = y.ndim == 1
        self.n_outputs: int = 1 if self.y_is_1d else y.shape[1]
        features = RowParts.of(x, "X")
        target = features.cut(y, "y")
        weights = [None] * len(target) if weight is None else features.cut(weight, "sample_weight")
        parts = enumerate(zip(features.parts, target, weights, strict=True))
        self.parts: list[Delayed] = [task(_chunk, number, *part) for number, part in parts]

    def check_feature_names(self) -> None:
        """Raise DataError if only some names are texts, as scikit-learn does: queries could not be matched."""
        if self.has_mixed_names:
            raise DataError(
                "the names of the features must be texts, or none of them must be, as for scikit-learn: "
                f"they are {', '.join(self.column_labels)}; rename them, such as by X.columns = X.columns.map(str)"
            )

    def __iter__(self) -> Iterator[Chunk]:
        return (part.compute() for part in self.parts)

    def fold(self, step: Callable[[Chunk], State], merge: Callable[[State, State], State]) -> State:
        return self.delayed_fold(constant(step), merge).compute()

    def delayed_fold(self, step: Delayed, merge: Callable[[State, State], State], *arguments: Delayed) -> Delayed:
        """Merged state of all chunks, not computed yet: one task for each chunk, then a tree of merges."""
        return merge_tree([task(step, *arguments, part) for part in self.parts], merge)

    def fold_pairs(
        self,
        step: Callable[[Chunk, Chunk], State],
        merge: Callable[[State, State], State],
        finish: Callable[[Chunk, State], Item],
        merge_items: Callable[[Item, Item], Item],
    ) -> Item:
        pair, end = constant(step), constant(finish)
        rows = [task(end, part, self.delayed_fold(pair, merge, part)) for part in self.parts]
        return merge_tree(rows, merge_items).compute()


def _chunk(number: int, x: Any, y: Any, weight: Any) -> Chunk:
    weight = None if weight is None else np.asarray(weight)
    return make_chunk(np.asarray(x), np.asarray(y), weight, number=number, name=_chunk_name(number))


def _chunk_name(number: int) -> str:
    return f"chunk {number}"


def split_columns(x: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Return features, y and weights, where y and the weights may be given as names of columns of x."""
    columns = list(getattr(x, "columns", ()))
    targets = [y] if _is_name(y) else y if _are_names(y, columns) else []
    weights = [weight] if _is_name(weight) else []
    named = [*targets, *weights]
    missing = [name for name in named if name not in columns]
    if missing:
        has = f"it has: {', '.join(map(str, columns))}" if columns else "it is an array, and its columns have no names"
        raise DataError(f"X has no column {', '.join(map(repr, missing))}; {has}")
    y, weight = x[y] if targets else y, x[weight] if weights else weight
    return (x.drop(columns=named) if named else x), y, weight


def _is_name(value: object) -> bool:
    return isinstance(value, str | Number)


def _are_names(y: Any, columns: Sequence[Any]) -> bool:
    """Return True for a list of column names; a list of numbers that are no names of columns is y itself."""
    if not isinstance(y, list) or not y or not all(map(_is_name, y)):
        return False
    return all(isinstance(name, str) for name in y) or (len(set(y)) == len(y) and set(y) <= set(columns))


# Predictions as a collection


def delayed_predictions(
    queries: Any,
    predict: Callable[[Delayed, str], Delayed],
    n_outputs: int | None,
    names: list[Any] | None = None,
    categories: Sequence[int] = (),
) -> Any:
    """Predictions as a Dask array (a Series or frame if the queries are a frame) with the chunks of `queries`.

    `predict` turns one chunk of queries and its name into a task. n_outputs None means that predictions have no axis
    for outputs. Columns listed in `categories` may hold texts.
    """
    rows = RowParts.of(queries, "X", categories)
    answers = [predict(part, _chunk_name(number)) for number, part in enumerate(rows.parts)]
    tail = () if n_outputs is None else (n_outputs,)
    if hasattr(queries, "divisions"):
        import dask.dataframe as dd

        pieces = [task(labelled, one, part.index, names) for part, one in zip(rows.parts, answers, strict=True)]
        meta = labelled(np.empty((0, *tail)), queries._meta.index[:0], names)  # noqa: SLF001  Dask's own name for it
        return dd.from_delayed(pieces, meta=meta, divisions=queries.divisions, verify_meta=False)
    import dask.array as da

    lengths = zip(answers, rows.lengths, strict=True)
    pieces = [da.from_delayed(one, (length, *tail), dtype=np.float64) for one, length in lengths]
    return da.concatenate(pieces, allow_unknown_chunksizes=True)


# Collections cut along their rows


class RowParts(NamedTuple):
    """A collection cut along its rows: one delayed part for each chunk, and their lengths (NaN where unknown)."""

    parts: list[Delayed]
    lengths: tuple[float, ...]

    @staticmethod
    def of(collection: Any, name: str, categories: Sequence[int] = ()) -> RowParts:
        """Cut a Dask frame or array at its chunks; `name` is used in error messages."""
        if hasattr(collection, "divisions"):
            _refuse_text(collection, name, categories)
            parts = collection.to_delayed()
            return RowParts(parts, (np.nan,) * len(parts))
        if collection.ndim == 2:
            collection = collection.rechunk({1: -1})
        return RowParts(list(collection.to_delayed().ravel()), collection.chunks[0])

    def cut(self, other: Any, name: str) -> list[Delayed]:
        """Cut y or the weights where these rows, of X, are cut. An array in memory needs lengths: they are computed."""
        if not is_dask(other):
            return self._split(np.asarray(other), name)
        parts, lengths = RowParts.of(other, name)
        if not np.isnan([*lengths, *self.lengths]).any():
            _check_length(self.lengths, name, sum(lengths))
            return parts if lengths == self.lengths else RowParts.of(other.rechunk({0: self.lengths}), name).parts
        if len(parts) != len(self.parts):
            raise ShapeError(
                f"X and {name} must be cut into the same chunks: X has {len(self.parts)}, {name} has {len(parts)}, "
                "and not all lengths are known: call compute_chunk_sizes() or align them"
            )
        return parts

    def _split(self, array: np.ndarray, name: str) -> list[Delayed]:
        from dask.base import compute

        lengths = self.lengths
        if np.isnan(lengths).any():
            lengths = compute(*[task(len, part) for part in self.parts])
        _check_length(lengths, name, len(array))
        return [constant(piece) for piece in np.split(array, np.cumsum(lengths)[:-1].astype(int))]


def _refuse_text(frame: Any, name: str, categories: Sequence[int]) -> None:
    dtypes = frame.dtypes.items() if frame.ndim == 2 else [(frame.name, frame.dtype)]
    for position, (column, dtype) in enumerate(dtypes):
        if position not in categories and getattr(dtype, "kind", "O") not in "biuf":
            raise DataError(f"column {column!r} of {name} is {dtype}, not a number: leave it out, or encode it first")


def _check_length(lengths: Sequence[float], name: str, rows: float) -> None:
    if sum(lengths) != rows:
        raise ShapeError(f"X and {name} must have the same length: X has {sum(lengths)} rows, {name} has {rows}")


# Tasks


def task(function: Callable[..., Any] | Delayed, *arguments: Any) -> Delayed:
    """One delayed call. It has a new name each time: nothing is hashed, and a lost result is computed again.

    A function that holds much data is given as a `constant`.
    """
    from dask.delayed import delayed

    return delayed(_with_one_thread, pure=False, traverse=False)(function, *arguments)


def constant(value: Any) -> Delayed:
    """A value for many tasks. It stands once in the graph, so that it survives the death of a worker."""
    from dask.delayed import delayed

    return delayed(value, pure=False, traverse=False)


def merge_tree(parts: Sequence[Delayed], merge: Callable[[Part, Part], Part]) -> Delayed:
    """Merge all parts, FAN_IN at a time, always in the same order: the result is the same to the last bit."""
    if not parts:
        raise DataError("there is no data: at least one chunk is needed")
    level = list(parts)
    while len(level) > 1:
        starts = range(0, len(level), FAN_IN)
        level = [task(_merged, merge, *level[start : start + FAN_IN]) for start in starts]
    return level[0]


def _merged(merge: Callable[[Part, Part], Part], *parts: Part) -> Part:
    return reduce(merge, parts)


def _with_one_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call with one thread of torch: Dask fills the cores itself."""
    with threads.one_thread(workers=False):
        return function(*arguments)
