"""Data of Dask: each chunk becomes a state where it lies, and states, not data, are merged in a tree."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, TypeVar

import numpy as np
import torch

from regard.errors import DataError, ShapeError
from regard.regression._blocks import Block, Blocks, Item, Progress, State, block_of

FAN_IN = 8  # states merged by one task
Delayed = Any  # dask's classes are untyped


def is_dask(x: object) -> bool:
    """Whether `x` is a collection of Dask; nobody can have one without having imported it."""
    return "dask" in sys.modules and sys.modules["dask"].is_dask_collection(x)


class DaskBlocks(Blocks):
    """Chunks of arrays or partitions of frames. Nothing is computed, and nothing moves, before a fold."""

    def __init__(self, x: Any, y: Any, weight: Any = None) -> None:
        if getattr(x, "ndim", 2) != 2:
            raise ShapeError(f"X must be a table, one row a sample: it has {x.ndim} dimension")
        frame = hasattr(x, "columns")
        if frame and _is_name(y):
            y, x = x[y], x.drop(columns=y)
        if frame and isinstance(weight, str):
            weight, x = x[weight], x.drop(columns=weight)
        self.names = tuple(map(str, x.columns)) if frame else None
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


class Rows:
    """A collection cut along its rows: one delayed piece a chunk, and their lengths where they are known."""

    def __init__(self, parts: Sequence[Delayed], lengths: Sequence[float], name: str, source: Any) -> None:
        self.parts, self.lengths, self.name, self.source = list(parts), tuple(lengths), name, source

    @staticmethod
    def of(collection: Any, name: str) -> Rows:
        if hasattr(collection, "to_delayed") and hasattr(collection, "divisions"):
            _refuse_text(collection, name)
            parts = collection.to_delayed()
            return Rows(parts, [np.nan] * len(parts), name, collection)
        if not is_dask(collection):
            return Rows([], [len(collection)], name, np.asarray(collection))
        if collection.ndim == 2:
            collection = collection.rechunk({1: -1})
        return Rows(collection.to_delayed().ravel(), collection.chunks[0], name, collection)

    def __len__(self) -> int:
        return len(self.parts)

    def like(self, other: Rows) -> Rows:
        """The same rows cut where `other` is cut."""
        if not is_dask(self.source):
            return self._cut(other)
        known = not np.isnan([*self.lengths, *other.lengths]).any()
        if known and sum(self.lengths) != sum(other.lengths):
            raise ShapeError(_unequal(other, self))
        if known and self.lengths != other.lengths:
            return Rows.of(self.source.rechunk({0: tuple(other.lengths)}), self.name)
        if len(self) != len(other):
            raise ShapeError(
                f"{other.name} and {self.name} must be cut into the same chunks: {other.name} has {len(other)} of them, "
                f"{self.name} has {len(self)}, and not all lengths are known: call compute_chunk_sizes() or align them"
            )
        return self

    def _cut(self, other: Rows) -> Rows:
        """An array in memory: Dask must say where its chunks begin, and counts them if it does not know."""
        import dask

        lengths = other.lengths
        if np.isnan(lengths).any():
            lengths = dask.compute(*[task(len, part) for part in other.parts])
        if sum(lengths) != len(self.source):
            raise ShapeError(
                f"X and {self.name} must have the same length: X has {sum(lengths)} rows, {self.name} has {len(self.source)}"
            )
        pieces = np.split(self.source, np.cumsum(lengths)[:-1].astype(int))
        return Rows([shared(piece) for piece in pieces], lengths, self.name, None)


def lazily(
    queries: Any, answer: Callable[[Delayed], Delayed], outputs: int | None, names: Sequence[str] | None = None
) -> Any:
    """A Dask array (or Series, or frame, if the queries are a frame) with the chunks of `queries`.

    `answer` makes a task out of one chunk of queries; outputs None says that an answer has no axis for them.
    """
    import dask.array as da

    rows = Rows.of(queries, "X")
    answers = [answer(part) for part in rows.parts]
    if hasattr(queries, "divisions"):
        return _frame(queries, rows, answers, outputs, names)
    tail = () if outputs is None else (outputs,)
    pieces = [
        da.from_delayed(one, (length, *tail), dtype=np.float64)
        for one, length in zip(answers, rows.lengths, strict=True)
    ]
    return da.concatenate(pieces, allow_unknown_chunksizes=True)


def task(function: Callable[..., Any], *arguments: Any) -> Delayed:
    """One call, somewhere. A new name each time: nothing is hashed, and a lost result is simply computed again."""
    import dask

    return dask.delayed(alone, pure=False, traverse=False)(function, *arguments)


def shared(value: Any) -> Delayed:
    """A value that many tasks need: it stands once in the graph, so that no death of a worker loses it."""
    import dask

    return dask.delayed(value, pure=False, traverse=False)


Part = TypeVar("Part")


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
    with _one_thread():
        return function(*arguments)


_inside, _lock = [0, 1], threading.Lock()  # tasks that run in this process, and the threads torch had before them


@contextmanager
def _one_thread() -> Iterator[None]:
    with _lock:
        if not _inside[0]:
            _inside[1] = torch.get_num_threads()
        _inside[0] += 1
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            _inside[0] -= 1
            if not _inside[0]:
                torch.set_num_threads(_inside[1])


def _merged(merge: Callable[[Part, Part], Part], *parts: Part) -> Part:
    return reduce(merge, parts)


def _block(number: int, x: Any, y: Any, weight: Any) -> Block:
    return block_of(
        np.asarray(x),
        np.asarray(y),
        None if weight is None else np.asarray(weight),
        number=number,
        name=f"chunk {number}",
    )


def _frame(queries: Any, rows: Rows, answers: list[Delayed], outputs: int | None, names: Sequence[str] | None) -> Any:
    import dask.dataframe as dd

    pieces = [task(_labelled, part, one, names) for part, one in zip(rows.parts, answers, strict=True)]
    empty = np.empty((0,) if outputs is None else (0, outputs))
    meta = _labelled(queries._meta.iloc[:0], empty, names)  # noqa: SLF001  Dask's own name for it
    return dd.from_delayed(pieces, meta=meta, divisions=queries.divisions, verify_meta=False)


def _labelled(frame: Any, answer: np.ndarray, names: Sequence[str] | None) -> Any:
    import pandas as pd

    if answer.ndim == 1:
        return pd.Series(answer, index=frame.index, name=names[0] if names else None)
    return pd.DataFrame(answer, index=frame.index, columns=names)


def _is_name(y: object) -> bool:
    return isinstance(y, str) or (isinstance(y, list) and all(isinstance(name, str) for name in y))


def _refuse_text(frame: Any, name: str) -> None:
    kinds = frame.dtypes.items() if frame.ndim == 2 else [(frame.name, frame.dtype)]
    for column, kind in kinds:
        if getattr(kind, "kind", "O") not in "biuf":
            raise DataError(f"column {column!r} of {name} is {kind}, not a number: leave it out, or encode it first")


def _unequal(one: Rows, two: Rows) -> str:
    return f"{one.name} and {two.name} must have the same length: {one.name} has {sum(one.lengths)} rows, {two.name} has {sum(two.lengths)}"
