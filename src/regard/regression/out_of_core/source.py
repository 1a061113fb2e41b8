"""Out-of-core data: a source yields its rows chunk by chunk, and a fold merges one partial state per chunk.

The first fold is the summary: number of rows, and weighted moments and ranges of X and y, in one pass.
"""

from __future__ import annotations

import math
import mmap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import DataError, ShapeError
from regard.regression import validation

Item = TypeVar("Item")
State = TypeVar("State")

# Size of a chunk in float64. Three chunks may be alive (read, waiting, in use) beside what is computed from one.
CHUNK_BYTES = 2**21
TINY = torch.finfo(torch.float64).tiny


class Chunk(NamedTuple):
    """Some rows of the data, in float64."""

    x: Float[Tensor, "rows dim"]
    y: Float[Tensor, "rows outputs"]
    weight: Float[Tensor, " rows"] | None
    number: int  # position among the chunks of its source; equal numbers mean equal rows
    name: str  # used in error messages: "rows 0 to 9"

    @property
    def log_weight(self) -> Float[Tensor, " rows"] | None:
        return None if self.weight is None else self.weight.log()

    def checked(self, feature_names: tuple[str, ...] = ()) -> Chunk:
        """Return the chunk; raise DataError if a number is not finite or a weight is negative."""
        validation.finite(f"X in {self.name}", self.x.numpy(force=True), list(feature_names))
        validation.finite(f"y in {self.name}", self.y.numpy(force=True), [])
        if self.weight is not None:
            validation.finite(f"sample_weight in {self.name}", self.weight.numpy(force=True), [])
            if bool((self.weight < 0).any()):
                raise DataError(f"sample_weight must not be negative, but it is so in {self.name}")
        return self


class Source(ABC):
    """Data as a sequence of chunks, in the same order each time. All computations are folds over the chunks."""

    feature_names: tuple[str, ...] = ()  # empty where features have no names
    column_labels: tuple[str, ...] = ()  # used in error messages where columns are labelled by other things than texts
    target_names: list[Any] | None = None
    n_features: int
    n_outputs: int
    y_is_1d: bool  # y was given without an axis for its outputs

    @abstractmethod
    def __iter__(self) -> Iterator[Chunk]: ...

    def fold(self, step: Callable[[Chunk], State], merge: Callable[[State, State], State]) -> State:
        """Merge `step(chunk)` over all chunks."""
        return merge_all(map(step, prefetch(self)), merge)

    def fold_pairs(
        self,
        step: Callable[[Chunk, Chunk], State],
        merge: Callable[[State, State], State],
        finish: Callable[[Chunk, State], Item],
        merge_items: Callable[[Item, Item], Item],
    ) -> Item:
        """Use each chunk as queries against all chunks: merge `step(queries, chunk)`, finish, merge again."""
        return self.fold(lambda queries: finish(queries, self.fold(partial(step, queries), merge)), merge_items)


class ArraySource(Source):
    """Numpy arrays, in memory or memory-mapped: a chunk is a slice of `rows` rows."""

    def __init__(self, x: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None, rows: int | None = None) -> None:
        _check_lengths(x, y, weight)
        self.x: np.ndarray = x
        self.y: np.ndarray = y
        self.weight: np.ndarray | None = weight
        self.y_is_1d: bool = y.ndim == 1
        self.n_features: int = x.shape[1]
        self.n_outputs: int = 1 if self.y_is_1d else y.shape[1]
        self.rows: int = rows or rows_per_chunk(self.n_features + self.n_outputs + 1)

    def __iter__(self) -> Iterator[Chunk]:
        for number, start in enumerate(range(0, len(self.x), self.rows)):
            cut = slice(start, min(start + self.rows, len(self.x)))
            parts = self.x[cut], self.y[cut], None if self.weight is None else self.weight[cut]
            yield make_chunk(*parts, number=number, name=f"rows {cut.start} to {cut.stop - 1}")
            for part in parts:
                _release_pages(part)


def make_chunk(x: np.ndarray, y: np.ndarray, weight: np.ndarray | None, *, number: int, name: str) -> Chunk:
    """Build a chunk from arrays. The numbers are copied, so that pages of a file can be released at once."""
    _check_lengths(x, y, weight, f" in {name}")
    values = _float64(y)
    values = values[:, None] if values.ndim == 1 else values
    return Chunk(_float64(x), values, None if weight is None else _float64(weight), number, name)


def _float64(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.array(array, dtype=np.float64, order="C"))


def rows_per_chunk(columns: int) -> int:
    """Number of rows with so many columns that make a chunk of CHUNK_BYTES."""
    return max(1, CHUNK_BYTES // (8 * columns))


def prefetch(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items; a thread reads the next one while the current one is in use."""
    source = iter(items)
    with ThreadPoolExecutor(1, "regard-reader") as reader:
        coming = reader.submit(next, source, None)
        while (item := coming.result()) is not None:
            coming = reader.submit(next, source, None)
            yield item


def merge_all(states: Iterable[State], merge: Callable[[State, State], State]) -> State:
    """Merge all states, from first to last."""
    source = iter(states)
    first = next(source, None)
    if first is None:
        raise DataError("there is no data: at least one row is needed")
    return reduce(merge, source, first)


def _check_lengths(x: np.ndarray, y: np.ndarray, weight: np.ndarray | None, where: str = "") -> None:
    if x.ndim != 2:
        raise ShapeError(f"X must be a table, one row a sample: it has shape {x.shape}{where}")
    if len(y) != len(x):
        raise ShapeError(f"X and y must have the same length: X has {len(x)} rows, y has {len(y)}{where}")
    if weight is not None and weight.shape != (len(x),):
        raise ShapeError(
            f"sample_weight must hold one number a row: X has {len(x)} rows, it has shape {weight.shape}{where}"
        )


def _release_pages(part: np.ndarray | None) -> None:
    """Drop the pages of a memory map from memory: the system would keep them until it needs the space."""
    owner: Any = part
    while isinstance(owner, np.ndarray):
        if getattr(owner, "mode", None) == "c":
            return  # copy-on-write: pages that were written to exist nowhere else
        owner = owner.base
    if not isinstance(owner, mmap.mmap) or part is None or not hasattr(mmap, "MADV_DONTNEED"):
        return
    low, high = np.lib.array_utils.byte_bounds(part)
    if high - low > 16 * part.nbytes:
        return  # strided rows: their pages hold much other data
    first = np.frombuffer(owner, np.uint8, 1).ctypes.data
    start = (low - first) // mmap.PAGESIZE * mmap.PAGESIZE
    owner.madvise(mmap.MADV_DONTNEED, start, high - first - start)


# Summary


class ColumnMoments(NamedTuple):
    """Total weight, mean, sum of squared deviations and range of each column; merged by Chan's formula."""

    total: Float[Tensor, ""]
    mean: Float[Tensor, " columns"]
    squares: Float[Tensor, " columns"]
    low: Float[Tensor, " columns"]
    high: Float[Tensor, " columns"]

    @staticmethod
    def of(columns: Float[Tensor, "rows columns"], weight: Float[Tensor, " rows"] | None = None) -> ColumnMoments:
        """Compute the moments; rows of weight 0 do not count, not even for the range."""
        if weight is not None:
            columns, weight = columns[weight > 0], weight[weight > 0]
        w = columns.new_ones(len(columns)) if weight is None else weight
        total = w.sum()
        mean = (w @ columns) / total.clamp_min(TINY)
        ends = torch.cat((columns, columns.new_full((1, columns.shape[1]), math.inf)))
        low = ends.amin(0)
        ends[-1] = -math.inf
        return ColumnMoments(total, mean, w @ (columns - mean).square(), low, ends.amax(0))

    def merge(self, other: ColumnMoments) -> ColumnMoments:
        total = self.total + other.total
        share = other.total / total.clamp_min(TINY)
        gap = other.mean - self.mean
        squares = self.squares + other.squares + gap.square() * self.total * share
        low, high = torch.minimum(self.low, other.low), torch.maximum(self.high, other.high)
        return ColumnMoments(total, self.mean + gap * share, squares, low, high)

    def deviation(self) -> Float[Tensor, " columns"]:
        """Standard deviation of each column."""
        return (self.squares / self.total.clamp_min(TINY)).sqrt()


class Summary(NamedTuple):
    """Counts and moments of the data. Errors are promised in standard deviations of the unweighted y."""

    rows: int
    weight_squares: Float[Tensor, ""]
    positive_rows: int  # rows of a weight above 0
    x: ColumnMoments
    y: ColumnMoments
    unweighted_y: ColumnMoments

    def y_scale(self) -> Float[Tensor, " outputs"]:
        """Standard deviation of each unweighted output, or 1 where it is constant."""
        deviation = self.unweighted_y.deviation()
        return torch.where(deviation > 0, deviation, 1.0)

    def y_range(self) -> float:
        """Largest difference of two values of one output, in units of `y_scale`."""
        return float(((self.unweighted_y.high - self.unweighted_y.low) / self.y_scale()).max())

    def effective_rows(self) -> float:
        """Kish's effective sample size (sum s)^2 / sum s^2: the number of rows if all weights are equal."""
        return float(self.x.total.square() / self.weight_squares.clamp_min(TINY))


def summarise(source: Source) -> Summary:
    """Summarise a source in one pass; raise DataError at the first number that is not finite."""
    return source.fold(partial(_summarise_chunk, source.feature_names or source.column_labels), _merge)


def _summarise_chunk(names: tuple[str, ...], chunk: Chunk) -> Summary:
    x, y, weight, *_ = chunk.checked(names)
    squares = torch.tensor(float(len(x)), dtype=torch.float64) if weight is None else weight.square().sum()
    positive_rows = len(x) if weight is None else int((weight > 0).sum())
    moments = ColumnMoments.of(x, weight), ColumnMoments.of(y, weight), ColumnMoments.of(y)
    return Summary(len(x), squares, positive_rows, *moments)


def _merge(one: Summary, two: Summary) -> Summary:
    return Summary(
        one.rows + two.rows,
        one.weight_squares + two.weight_squares,
        one.positive_rows + two.positive_rows,
        one.x.merge(two.x),
        one.y.merge(two.y),
        one.unweighted_y.merge(two.unweighted_y),
    )
