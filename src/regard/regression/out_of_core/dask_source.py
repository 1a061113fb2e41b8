"""Data of Dask: each chunk becomes a state where it lies, and states, not data, are merged in a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from numbers import Number
from typing import Any

import numpy as np

from regard.errors import DataError, ShapeError
from regard.regression.out_of_core.dask_rows import Rows
from regard.regression.out_of_core.dask_tasks import Delayed, shared, task, tree
from regard.regression.out_of_core.source import Block, Blocks, Item, Progress, State, block_of
from regard.regression.pandas_output import target_names


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
