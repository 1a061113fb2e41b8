"""From weights to the cells of one picture: which matrix, which part of it, and which of its rows see no key."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from regard.errors import ChoiceError, ShapeError
from regard.plot._figure import numbers
from regard.weights import Weights

Run = tuple[int, int]
Head = int | tuple[int, ...]
EXACT = 512  # up to this many cells on a side each one is drawn; more than a screen has room for is pooled
POOLS: dict[str, Any] = {"mean": np.add, "sum": np.add, "max": np.maximum}


class Part(NamedTuple):
    whole: tuple[int, int]  # the shape of the matrix that this is a part of
    cells: np.ndarray  # pooled or not
    queries: Run  # that the cells stand for, [start, stop)
    keys: Run
    empty: list[Run]  # queries that see no key


def pick(weights: Any, head: Head | None, queries: slice, keys: slice, bins: int, pool: str) -> Part:
    if pool not in POOLS:
        raise ChoiceError(f"pool must be one of {', '.join(POOLS)}, {pool!r} came")
    if bins < 1:
        raise ChoiceError(f"bins must be at least 1, {bins} came")
    if isinstance(weights, Weights):
        return _pick_lazy(weights, head, queries, keys, bins, pool)
    array = numbers(weights)
    array = array[_choose(array.shape, head)]
    return from_array(array, queries, keys)


def from_array(array: np.ndarray, queries: slice = slice(None), keys: slice = slice(None)) -> Part:
    n, m = array.shape
    rows, columns = _span(queries, n, "queries"), _span(keys, m, "keys")
    # Weights are never negative, so a row of zeros is one that sees nothing; elsewhere it is just a row of zeros.
    empty = (array == 0).all(1) if (array >= 0).all() else np.zeros(n, dtype=bool)
    runs = _empty_runs(empty, np.arange(rows[0], rows[1] + 1))
    return Part((n, m), array[slice(*rows), slice(*columns)], rows, columns, runs)


def _pick_lazy(weights: Weights, head: Head | None, queries: slice, keys: slice, bins: int, pool: str) -> Part:
    *leading, n, m = weights.shape
    index = _choose((*leading, n, m), head)
    rows, columns = _span(queries, n, "queries"), _span(keys, m, "keys")
    row_edges, column_edges = _edges(rows, bins), _edges(columns, bins)
    if max(rows[1] - rows[0], columns[1] - columns[0]) <= EXACT:
        row_edges = np.arange(rows[0], rows[1] + 1)
        cells = numbers(weights[(*index, slice(*rows), slice(*columns))])
    elif (rows, columns) == ((0, n), (0, m)):
        cells = numbers(weights.heatmap(bins, pool)[index])
    else:
        cells = _pool_blocks(weights, index, row_edges, column_edges, pool)
    empty = weights.empty_rows()[index].cpu().numpy()
    return Part((n, m), cells, rows, columns, _empty_runs(empty, row_edges))


def _choose(shape: tuple[int, ...], head: Head | None) -> tuple[int, ...]:
    """The index of one matrix among the leading dimensions."""
    leading = shape[:-2]
    if head is None and set(leading) <= {1}:
        head = (0,) * len(leading)
    index = () if head is None else (head,) if isinstance(head, int) else tuple(head)
    if len(shape) < 2 or 0 in shape or len(index) != len(leading):
        example = 0 if len(leading) == 1 else (0,) * len(leading)
        advice = f": choose one, e.g. head={example}" if leading and 0 not in shape else ""
        raise ShapeError(f"a heatmap draws one matrix (queries, keys), these weights have shape {shape}{advice}")
    if not all(-size <= i < size for i, size in zip(index, leading, strict=True)):
        raise ShapeError(f"head={head} is outside weights of shape {shape}")
    return index


def _span(part: slice, count: int, name: str) -> Run:
    start, stop, step = part.indices(count)
    if step != 1 or start >= stop:
        raise ChoiceError(f"{name} must be a slice of neighbours that is not empty, {part} of {count} {name} came")
    return start, stop


def _edges(run: Run, bins: int) -> np.ndarray:
    start, stop = run
    bins = min(bins, stop - start)
    return start + np.arange(bins + 1) * (stop - start) // bins


def _pool_blocks(
    weights: Weights, index: tuple[int, ...], rows: np.ndarray, columns: np.ndarray, pool: str
) -> np.ndarray:
    """A part of the matrix, pooled, with one block of rows in memory at a time."""
    keys, fold = slice(int(columns[0]), int(columns[-1])), POOLS[pool]
    lines: list[np.ndarray] = []
    for start, stop in pairwise(rows.tolist()):
        block = numbers(weights[(*index, slice(start, stop), keys)])
        lines.append(fold.reduceat(fold.reduce(block, axis=0), columns[:-1] - columns[0]))
    cells = np.stack(lines)
    return cells / np.outer(np.diff(rows), np.diff(columns)) if pool == "mean" else cells


def _empty_runs(empty: np.ndarray, edges: np.ndarray) -> list[Run]:
    """[start, stop) of the bins between `edges` in which no query sees a key; neighbours become one run.

    >>> _empty_runs(np.array([True, True, True, False]), np.array([0, 1, 2, 4]))
    [(0, 2)]
    """
    flags = np.logical_and.reduceat(empty, edges[:-1])
    steps = np.diff(flags.astype(np.int8), prepend=0, append=0)
    starts, stops = edges[np.flatnonzero(steps == 1)], edges[np.flatnonzero(steps == -1)]
    return list(zip(starts.tolist(), stops.tolist(), strict=True))
