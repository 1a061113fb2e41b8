"""Where data comes from when it need not be in memory: blocks of rows, one after the other, folded into one state."""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import DataError, ShapeError
from regard.regression import validation

Item = TypeVar("Item")
State = TypeVar("State")
Progress = Callable[[int], None]  # told how many blocks are done

# A block in float64. Three of them may be alive (read, waiting, in use) beside what the engine makes of one.
BLOCK_BYTES = 2**21


class Block(NamedTuple):
    """Some rows of the data, in float64."""

    x: Float[Tensor, "rows dim"]
    y: Float[Tensor, "rows outputs"]
    weight: Float[Tensor, " rows"] | None
    number: int  # which of the blocks; two blocks of one source are the same rows exactly if their numbers are
    name: str  # how a message calls it: "rows 0 to 9"

    @property
    def log_weight(self) -> Float[Tensor, " rows"] | None:
        return None if self.weight is None else self.weight.log()

    def checked(self, names: tuple[str, ...] = ()) -> Block:
        """The same block, or an error that says where a number is missing."""
        validation.finite(f"X in {self.name}", self.x.numpy(force=True), list(names))
        validation.finite(f"y in {self.name}", self.y.numpy(force=True), [])
        if self.weight is not None:
            validation.finite(f"sample_weight in {self.name}", self.weight.numpy(force=True), [])
            if bool((self.weight < 0).any()):
                raise DataError(f"sample_weight must not be negative, but it is so in {self.name}")
        return self


class Blocks(ABC):
    """Data in blocks, in the same order each time. What is asked of it is a fold: a state a block, merged."""

    names: tuple[str, ...] = ()  # of the features, where they have any
    labels: tuple[str, ...] = ()  # how messages call them, where that is not by their names
    dim: int
    outputs: int
    flat: bool  # y came without an axis for its outputs
    targets: list[Any] | None = None  # names of the outputs

    @abstractmethod
    def __iter__(self) -> Iterator[Block]: ...

    def fold(
        self,
        step: Callable[[Any, Block], State],
        merge: Callable[[State, State], State],
        given: Any = None,
        progress: Progress | None = None,
    ) -> State:
        """`step(given, block)` of every block, merged: `given` is what all steps share."""
        states = (step(given, block) for block in ahead(self))
        return reduced(told(states, progress), merge)

    def fold_pairs(
        self,
        step: Callable[[Any, Block, Block], State],
        merge: Callable[[State, State], State],
        finish: Callable[[Any, Block, State], Item],
        total: Callable[[Item, Item], Item],
        given: Any = None,
        progress: Progress | None = None,
    ) -> Item:
        """Each block as queries against all blocks, `step(given, queries, block)` merged and finished; all in total."""

        def row(shared: Any, queries: Block) -> Item:
            return finish(shared, queries, self.fold(lambda g, block: step(g, queries, block), merge, shared))

        return self.fold(row, total, given, progress)


class ArrayBlocks(Blocks):
    """Arrays of numpy, in memory or mapped into it: a block is a slice of rows, `rows` of them at a time."""

    def __init__(self, x: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None, rows: int | None = None) -> None:
        _same_length(x, y, weight)
        self.x, self.y, self.weight = x, y, weight
        self.dim, self.outputs, self.flat = x.shape[1], 1 if y.ndim == 1 else y.shape[1], y.ndim == 1
        self.rows = rows or rows_for(self.dim + self.outputs + 1)

    def __iter__(self) -> Iterator[Block]:
        for number, start in enumerate(range(0, len(self.x), self.rows)):
            cut = slice(start, min(start + self.rows, len(self.x)))
            parts = self.x[cut], self.y[cut], None if self.weight is None else self.weight[cut]
            yield block_of(*parts, number=number, name=f"rows {cut.start} to {cut.stop - 1}")
            for part in parts:
                _give_back(part)


def block_of(x: np.ndarray, y: np.ndarray, weight: np.ndarray | None, *, number: int, name: str) -> Block:
    """Rows as they came, as a block."""
    _same_length(x, y, weight, f" in {name}")
    values = as_tensor(y)
    return Block(
        as_tensor(x),
        values[:, None] if values.ndim == 1 else values,
        None if weight is None else as_tensor(weight),
        number,
        name,
    )


def as_tensor(array: np.ndarray) -> Tensor:
    """Numbers in float64, copied: what is read from a file is let go at once."""
    return torch.from_numpy(np.array(array, dtype=np.float64, order="C"))


def rows_for(columns: int) -> int:
    """Rows of a block with so many columns."""
    return max(1, BLOCK_BYTES // (8 * columns))


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """The same items; the next is read by a thread while the current one is in use."""
    source = iter(items)
    with ThreadPoolExecutor(1, "regard-reader") as reader:
        coming = reader.submit(next, source, None)
        while (item := coming.result()) is not None:
            coming = reader.submit(next, source, None)
            yield item


def reduced(states: Iterable[State], merge: Callable[[State, State], State]) -> State:
    """All states in one."""
    source = iter(states)
    whole = next(source, None)
    if whole is None:
        raise DataError("there is no data: at least one row is needed")
    for state in source:
        whole = merge(whole, state)
    return whole


def told(items: Iterable[Item], progress: Progress | None) -> Iterator[Item]:
    """The same items; `progress` hears how many have come."""
    for done, item in enumerate(items, 1):
        if progress is not None:
            progress(done)
        yield item


def _same_length(x: np.ndarray, y: np.ndarray, weight: np.ndarray | None, where: str = "") -> None:
    if x.ndim != 2:
        raise ShapeError(f"X must be a table, one row a sample: it has shape {x.shape}{where}")
    if len(y) != len(x):
        raise ShapeError(f"X and y must have the same length: X has {len(x)} rows, y has {len(y)}{where}")
    if weight is not None and weight.shape != (len(x),):
        raise ShapeError(
            f"sample_weight must hold one number a row: X has {len(x)} rows, it has shape {weight.shape}{where}"
        )


def _give_back(part: np.ndarray | None) -> None:
    """Let the pages of a memory map go: else they count as memory of this process until the system needs them."""
    owner: Any = part
    while isinstance(owner, np.ndarray):
        if getattr(owner, "mode", None) == "c":
            return  # pages that were written to exist nowhere else
        owner = owner.base
    if not isinstance(owner, mmap.mmap) or part is None or not hasattr(mmap, "MADV_DONTNEED"):
        return
    low, high = np.lib.array_utils.byte_bounds(part)
    if high - low > 16 * part.nbytes:
        return  # rows that lie far apart: their pages hold much else
    first = np.frombuffer(owner, np.uint8, 1).ctypes.data
    start = (low - first) // mmap.PAGESIZE * mmap.PAGESIZE
    owner.madvise(mmap.MADV_DONTNEED, start, high - first - start)
