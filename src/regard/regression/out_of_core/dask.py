"""Tasks of Dask: a call somewhere, a value that many calls share, a tree of merges."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from numbers import Number
from typing import Any, TypeVar

import numpy as np

from regard.engine import threads
from regard.errors import DataError, ShapeError
from regard.regression.out_of_core.source import Block, Blocks, Item, Progress, State, block_of
from regard.regression.pandas_output import target_names

FAN_IN = 8  # states merged by one task
Delayed = Any  # dask's classes are untyped
Part = TypeVar("Part")


def is_dask(x: object) -> bool:
    """Whether `x` is a collection of Dask; nobody can have one without having imported it."""
    return "dask" in sys.modules and sys.modules["dask"].is_dask_collection(x)


def task(function: Callable[..., Any], *arguments: Any) -> Delayed:
    """One call, somewhere. A new name each time: nothing is hashed, and a lost result is simply computed again."""
    from dask.delayed import delayed

    return delayed(alone, pure=False, traverse=False)(function, *arguments)


def shared(value: Any) -> Delayed:
    """A value that many tasks need: it stands once in the graph, so that no death of a worker loses it."""
    from dask.delayed import delayed

    return delayed(value, pure=False, traverse=False)


def tree(parts: Sequence[Delayed], merge: Callable[[Part, Part], Part]) -> Delayed:
    """All parts in one, `FAN_IN` at a time, always in the same order: the answer is the same to the last bit."""
    if not parts:
        raise DataError("there is no data: at least one chunk is needed")
    level = list(parts)
    while len(level) > 1:
        starts = range(0, len(level), FAN_IN)
        level = [task(_merged, merge, *level[start : start + FAN_IN]) for start in starts]
    return level[0]


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run with one thread of torch: Dask fills the cores itself."""
    with threads.one_thread(workers=False):
        return function(*arguments)


def _merged(merge: Callable[[Part, Part], Part], *parts: Part) -> Part:
    return reduce(merge, parts)


class Rows:
    """A collection cut along its rows: one delayed piece a chunk, and their lengths where they are known."""

    def __init__(self, parts: Sequence[Delayed], lengths: Sequence[float], name: str, source: Any) -> None:
        self.parts, self.lengths, self.name, self.source = list(parts), tuple(lengths), name, source

    @staticmethod
    def of(collection: Any, name: str, categories: Sequence[int] = ()) -> Rows:
        if hasattr(collection, "to_delayed") and hasattr(collection, "divisions"):
            _refuse_text(collection, name, categories)
            parts = collection.to_delayed()
            return Rows(parts, [np.nan] * len(parts), name, collection)
        if not is_dask(collection):
            return Rows([], [len(collection)], name, np.asarray(collection))
        if collection.ndim == 2:
            collection = collection.rechunk({1: -1})
        return Rows(list(collection.to_delayed().ravel()), collection.chunks[0], name, collection)

    def __len__(self) -> int:
        return len(self.parts)

    def like(self, other: Rows) -> Rows:
        """The same rows cut where `other` is cut."""
        if not is_dask(self.source):
            return self._cut(other)
        known = not np.isnan([*self.lengths, *other.lengths]).any()
        if known and sum(self.lengths) != sum(other.lengths):
            raise _unequal(other.name, sum(other.lengths), self.name, sum(self.lengths))
        if known and self.lengths != other.lengths:
            return Rows.of(self.source.rechunk({0: tuple(other.lengths)}), self.name)
        if len(self) != len(other):
            raise ShapeError(
                f"{other.name} and {self.name} must be cut into the same chunks: {other.name} has {len(other)}, "
                f"{self.name} has {len(self)}, and not all lengths are known: call compute_chunk_sizes() or align them"
            )
        return self

    def _cut(self, other: Rows) -> Rows:
        """An array in memory: Dask must say where its chunks begin, and counts them if it does not know."""
        from dask.base import compute

        lengths = other.lengths
        if np.isnan(lengths).any():
            lengths = compute(*[task(len, part) for part in other.parts])
        if sum(lengths) != len(self.source):
            raise _unequal(other.name, sum(lengths), self.name, len(self.source))
        pieces = np.split(self.source, np.cumsum(lengths)[:-1].astype(int))
        return Rows([shared(piece) for piece in pieces], lengths, self.name, None)


def _refuse_text(frame: Any, name: str, categories: Sequence[int]) -> None:
    kinds = frame.dtypes.items() if frame.ndim == 2 else [(frame.name, frame.dtype)]
    for place, (column, kind) in enumerate(kinds):
        if place not in categories and getattr(kind, "kind", "O") not in "biuf":
            raise DataError(f"column {column!r} of {name} is {kind}, not a number: leave it out, or encode it first")


def _unequal(one: str, rows: float, two: str, other_rows: float) -> ShapeError:
    return ShapeError(f"{one} and {two} must have the same length: {one} has {rows} rows, {two} has {other_rows}")


class DaskBlocks(Blocks):
    """Chunks of arrays or partitions of frames. Nothing is computed, and nothing moves, before a fold."""

    def __init__(self, x: Any, y: Any, weight: Any = None) -> None:
        if getattr(x, "ndim", 2) != 2:
            raise ShapeError(f"X must be a table, one row a sample: it has {x.ndim} dimension")
        x, y, weight = apart(x, y, weight)
        columns = tuple(getattr(x, "columns", ()))
        self.labels = tuple(map(str, columns))
        self.named = [isinstance(name, str) for name in columns]  # only a text is a name for scikit-learn
        self.names = columns if all(self.named) else ()
        self.targets = target_names(y)
        y = np.asarray(y) if isinstance(y, list) or y is None else y
        if y.ndim not in (1, 2):
            raise ShapeError("y must hold one number a row, or one a row and output; a column of X may be named")
        self.dim, self.flat = x.shape[1], y.ndim == 1
        self.outputs = 1 if self.flat else y.shape[1]
        features = Rows.of(x, "X")
        target = Rows.of(y, "y").like(features)
        weights = [None] * len(features) if weight is None else Rows.of(weight, "sample_weight").like(features).parts
        chunks = enumerate(zip(features.parts, target.parts, weights, strict=True))
        self.parts = [task(_block, number, *parts) for number, parts in chunks]

    def __iter__(self) -> Iterator[Block]:
        return (part.compute() for part in self.parts)

    def fold(
        self,
        step: Callable[[Any, Block], State],
        merge: Callable[[State, State], State],
        given: Any = None,
        progress: Progress | None = None,
    ) -> State:
        return self.folded(step, merge, shared(given)).compute()

    def folded(self, step: Callable[..., State], merge: Callable[[State, State], State], *given: Delayed) -> Delayed:
        """The state of all blocks, not computed yet: one task a block, then a tree of merges."""
        return tree([task(step, *given, part) for part in self.parts], merge)

    def fold_pairs(
        self,
        step: Callable[[Any, Block, Block], State],
        merge: Callable[[State, State], State],
        finish: Callable[[Any, Block, State], Item],
        total: Callable[[Item, Item], Item],
        given: Any = None,
        progress: Progress | None = None,
    ) -> Item:
        common = shared(given)
        rows = [task(finish, common, part, self.folded(step, merge, common, part)) for part in self.parts]
        return tree(rows, total).compute()


def apart(x: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Features, y and weights, where the last two may be named as columns of the first."""
    there = list(getattr(x, "columns", ()))
    targets = [y] if _is_name(y) else y if _are_names(y, there) else []
    weights = [weight] if _is_name(weight) else []
    named = [*targets, *weights]
    missing = [name for name in named if name not in there]
    if missing:
        has = f"it has: {', '.join(map(str, there))}" if there else "it is an array, and its columns have no names"
        raise DataError(f"X has no column {', '.join(map(repr, missing))}; {has}")
    y, weight = x[y] if targets else y, x[weight] if weights else weight
    return (x.drop(columns=named) if named else x), y, weight


def lazily(
    queries: Any,
    answer: Callable[[Delayed, str], Delayed],
    outputs: int | None,
    names: Sequence[Any] | None = None,
    categories: Sequence[int] = (),
) -> Any:
    """A Dask array (or Series, or frame, if the queries are a frame) with the chunks of `queries`.

    `answer` makes a task out of one chunk of queries and its name; outputs None says that an answer has no axis for
    them. Columns of `categories` may hold texts.
    """
    import dask.array as da

    rows = Rows.of(queries, "X", categories)
    answers = [answer(part, _name(number)) for number, part in enumerate(rows.parts)]
    if hasattr(queries, "divisions"):
        return _frame(queries, rows, answers, outputs, names)
    tail = () if outputs is None else (outputs,)
    pieces = [
        da.from_delayed(one, (length, *tail), dtype=np.float64)
        for one, length in zip(answers, rows.lengths, strict=True)
    ]
    return da.concatenate(pieces, allow_unknown_chunksizes=True)


def _block(number: int, x: Any, y: Any, weight: Any) -> Block:
    return block_of(
        np.asarray(x),
        np.asarray(y),
        None if weight is None else np.asarray(weight),
        number=number,
        name=_name(number),
    )


def _name(number: int) -> str:
    """How a message calls a chunk."""
    return f"chunk {number}"


def _frame(queries: Any, rows: Rows, answers: list[Delayed], outputs: int | None, names: Sequence[Any] | None) -> Any:
    import dask.dataframe as dd

    pieces = [task(_labelled, part, one, names) for part, one in zip(rows.parts, answers, strict=True)]
    empty = np.empty((0,) if outputs is None else (0, outputs))
    meta = _labelled(queries._meta.iloc[:0], empty, names)  # noqa: SLF001  Dask's own name for it
    return dd.from_delayed(pieces, meta=meta, divisions=queries.divisions, verify_meta=False)


def _labelled(frame: Any, answer: np.ndarray, names: Sequence[Any] | None) -> Any:
    import pandas as pd

    if answer.ndim == 1:
        return pd.Series(answer, index=frame.index, name=names[0] if names else None)
    return pd.DataFrame(answer, index=frame.index, columns=None if names is None else list(names))


def _is_name(thing: object) -> bool:
    return isinstance(thing, str | Number)


def _are_names(y: Any, columns: Sequence[Any]) -> bool:
    """Whether it is a list of names of columns; a list of numbers may also be y itself."""
    if not isinstance(y, list) or not y or not all(map(_is_name, y)):
        return False
    return all(isinstance(name, str) for name in y) or (len(set(y)) == len(y) and set(y) <= set(columns))
