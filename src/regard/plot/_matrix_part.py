"""The part of a matrix that one picture shows: its cells, pooled if there are many, and its empty rows."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from regard.display.labels import Labels
from regard.errors import ChoiceError, ShapeError
from regard.plot._figure import to_array
from regard.weights import Weights

Span = tuple[int, int]  # [start, stop)
Head = int | tuple[int, ...]
MAX_CELLS = 512  # up to this many cells on a side each one is drawn; more would not fit a screen and are pooled
POOLS: dict[str, Any] = {"mean": np.add, "sum": np.add, "max": np.maximum}


class MatrixPart(NamedTuple):
    """Cells of a picture, and their place in the matrix."""

    whole: tuple[int, int]  # the shape of the matrix that this is a part of
    cells: np.ndarray  # pooled or not
    queries: Span  # that the cells stand for
    keys: Span
    empty: list[Span]  # queries that see no key


def select_part(weights: Any, head: Head | None, queries: slice, keys: slice, bins: int, pool: str) -> MatrixPart:
    """Return the cells of `queries` x `keys` of one head, pooled into `bins` if there are many."""
    if pool not in POOLS:
        raise ChoiceError(f"pool must be one of {', '.join(POOLS)}, {pool!r} came")
    if bins < 1:
        raise ChoiceError(f"bins must be at least 1, {bins} came")
    if isinstance(weights, Weights):
        return _part_of_weights(weights, head, queries, keys, bins, pool)
    array = to_array(weights)
    array = array[_head_index(array.shape, head)]
    return from_array(array, queries, keys)


def known_labels(weights: Any, head: Head | None) -> Labels:
    """Return the tokens of queries and keys that a recording knows of the matrix that is drawn."""
    if not isinstance(weights, Weights):
        return Labels()
    index = _head_index(tuple(weights.shape), head)
    return weights.select(batch=index[0]).labels if index and weights.shape[0] > 1 else weights.labels


def from_array(array: np.ndarray, queries: slice = slice(None), keys: slice = slice(None)) -> MatrixPart:
    """Return a part of an array, never pooled."""
    n, m = array.shape
    rows, columns = _to_span(queries, n, "queries"), _to_span(keys, m, "keys")
    # Weights are never negative: a row of zeros sees no key. Among negative numbers it is an ordinary row.
    empty = (array == 0).all(1) if (array >= 0).all() else np.zeros(n, dtype=bool)
    spans = _empty_spans(empty, np.arange(rows[0], rows[1] + 1))
    return MatrixPart((n, m), array[slice(*rows), slice(*columns)], rows, columns, spans)


def _part_of_weights(
    weights: Weights, head: Head | None, queries: slice, keys: slice, bins: int, pool: str
) -> MatrixPart:
    *leading, n, m = weights.shape
    index = _head_index((*leading, n, m), head)
    rows, columns = _to_span(queries, n, "queries"), _to_span(keys, m, "keys")
    row_edges, column_edges = _edges(rows, bins), _edges(columns, bins)
    if max(rows[1] - rows[0], columns[1] - columns[0]) <= MAX_CELLS:
        row_edges = np.arange(rows[0], rows[1] + 1)
        cells = to_array(weights[(*index, slice(*rows), slice(*columns))])
    elif (rows, columns) == ((0, n), (0, m)):
        cells = to_array(weights.heatmap(bins, pool)[index])
    else:
        cells = _pool_blocks(weights, index, row_edges, column_edges, pool)
    empty = weights.empty_rows()[index].cpu().numpy()
    return MatrixPart((n, m), cells, rows, columns, _empty_spans(empty, row_edges))


def _head_index(shape: tuple[int, ...], head: Head | None) -> tuple[int, ...]:
    """Return the index of one matrix in the leading dimensions."""
    leading = shape[:-2]
    if head is None and set(leading) <= {1}:
        head = (0,) * len(leading)
    index = () if head is None else (head,) if isinstance(head, int) else tuple(head)
    if isinstance(head, int) and len(leading) > 1 and set(leading[:-1]) <= {1}:
        index = (*(0,) * (len(leading) - 1), head)  # one sequence: the number of a head is enough
    if len(shape) < 2 or 0 in shape or len(index) != len(leading):
        example = 0 if len(leading) == 1 else (0,) * len(leading)
        advice = f": choose one, e.g. head={example}" if leading and 0 not in shape else ""
        raise ShapeError(f"a heatmap draws one matrix (queries, keys), these weights have shape {shape}{advice}")
    if not all(-size <= i < size for i, size in zip(index, leading, strict=True)):
        raise ShapeError(f"head={head} is outside weights of shape {shape}")
    return index


def _to_span(part: slice, count: int, name: str) -> Span:
    start, stop, step = part.indices(count)
    if step != 1 or start >= stop:
        raise ChoiceError(f"{name} must be a slice of neighbours that is not empty, {part} of {count} {name} came")
    return start, stop


def _edges(span: Span, bins: int) -> np.ndarray:
    start, stop = span
    bins = min(bins, stop - start)
    return start + np.arange(bins + 1) * (stop - start) // bins


def _pool_blocks(
    weights: Weights, index: tuple[int, ...], rows: np.ndarray, columns: np.ndarray, pool: str
) -> np.ndarray:
    """Pool a part of the matrix, with one block of rows in memory at a time."""
    keys, fold = slice(int(columns[0]), int(columns[-1])), POOLS[pool]
    pooled_rows: list[np.ndarray] = []
    for start, stop in pairwise(rows.tolist()):
        block = to_array(weights[(*index, slice(start, stop), keys)])
        pooled_rows.append(fold.reduceat(fold.reduce(block, axis=0), columns[:-1] - columns[0]))
    cells = np.stack(pooled_rows)
    return cells / np.outer(np.diff(rows), np.diff(columns)) if pool == "mean" else cells


def _empty_spans(empty: np.ndarray, edges: np.ndarray) -> list[Span]:
    """Return the spans of neighbouring bins between `edges` in which no query sees a key.

    >>> _empty_spans(np.array([True, True, True, False]), np.array([0, 1, 2, 4]))
    [(0, 2)]
    """
    flags = np.logical_and.reduceat(empty, edges[:-1])
    steps = np.diff(flags.astype(np.int8), prepend=0, append=0)
    starts, stops = edges[np.flatnonzero(steps == 1)], edges[np.flatnonzero(steps == -1)]
    return list(zip(starts.tolist(), stops.tolist(), strict=True))
