"""Collections of Dask cut along their rows, X, y and weights at the same places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.errors import DataError, ShapeError
from regard.regression.out_of_core.dask_tasks import Delayed, is_dask, shared, task


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
