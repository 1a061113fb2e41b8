"""Data of Dask: each chunk becomes a state where it lies, and states, not data, are merged in a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from regard.errors import DataError, ShapeError
from regard.regression._frames import target_names
from regard.regression.blocks._blocks import Block, Blocks, Item, Progress, State, block_of
from regard.regression.blocks._rows import Rows
from regard.regression.blocks._tasks import Delayed, shared, task, tree


class DaskBlocks(Blocks):
    """Chunks of arrays or partitions of frames. Nothing is computed, and nothing moves, before a fold."""

    def __init__(self, x: Any, y: Any, weight: Any = None) -> None:
        if getattr(x, "ndim", 2) != 2:
            raise ShapeError(f"X must be a table, one row a sample: it has {x.ndim} dimension")
        x, y, weight = apart(x, y, weight)
        self.names = tuple(map(str, x.columns)) if hasattr(x, "columns") else ()
        self.targets = target_names(y)
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
    if hasattr(x, "columns"):
        _refuse_absent(x, y, weight)
        if _is_name(y):
            y, x = x[y], x.drop(columns=y)
        if isinstance(weight, str):
            weight, x = x[weight], x.drop(columns=weight)
    return x, y, weight


def lazily(
    queries: Any,
    answer: Callable[[Delayed], Delayed],
    outputs: int | None,
    names: Sequence[Any] | None = None,
    categories: Sequence[int] = (),
) -> Any:
    """A Dask array (or Series, or frame, if the queries are a frame) with the chunks of `queries`.

    `answer` makes a task out of one chunk of queries; outputs None says that an answer has no axis for them. Columns of
    `categories` may hold texts.
    """
    import dask.array as da

    rows = Rows.of(queries, "X", categories)
    answers = [answer(part) for part in rows.parts]
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
        name=f"chunk {number}",
    )


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


def _refuse_absent(frame: Any, *wanted: Any) -> None:
    names = [name for names in wanted if _is_name(names) for name in ([names] if isinstance(names, str) else names)]
    missing = [name for name in names if name not in list(frame.columns)]
    if missing:
        has = ", ".join(map(str, frame.columns))
        raise DataError(f"X has no column {', '.join(map(repr, missing))}; it has: {has}")


def _is_name(y: object) -> bool:
    return isinstance(y, str) or (isinstance(y, list) and all(isinstance(name, str) for name in y))
