"""A folder of Parquet files as a table of numbers that is read in blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import DataError, MissingExtraError
from regard.regression import _levels
from regard.regression.blocks._blocks import Block, Blocks, block_of, rows_for

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as pads

Names = str | Sequence[str]
Levels = Mapping[str, np.ndarray]  # of the columns of categories


class Parquet:
    """A Parquet file or a folder of them, of which only some columns are meant as features.

    >>> import pandas, regard.regression
    >>> pandas.DataFrame({"area": [50.0, 70.0], "rooms": [2, 3], "price": [1.0, 2.0]}).to_parquet("homes.parquet")
    >>> regard.regression.Parquet("homes.parquet", x=["area"])
    Parquet('homes.parquet', x=['area'])
    """

    def __init__(self, path: str | os.PathLike[str], x: Names | None = None) -> None:
        self.path = Path(path)
        self.x = [x] if isinstance(x, str) else None if x is None else list(x)

    def __repr__(self) -> str:
        return f"Parquet({str(self.path)!r}, x={self.x})"


class ParquetBlocks(Blocks):
    """The columns of a Parquet file or folder, in record batches; `known` has the levels of those of categories."""

    def __init__(
        self, source: Parquet, y: Names | None, weight: str | None = None, known: Mapping[int, np.ndarray] | None = None
    ) -> None:
        self.path = str(source.path)
        self.flat = y is None or isinstance(y, str)
        self.y = [y] if isinstance(y, str) else [] if y is None else list(y)
        self.weight, self.targets = weight, self.y
        schema = open_folder(self.path).schema
        extra = {*self.y, *([] if weight is None else [weight])}
        self.names = tuple(source.x if source.x is not None else [n for n in schema.names if n not in extra])
        self.columns = [*self.names, *self.y, *([] if weight is None else [weight])]
        self.levels = {self.names[place]: levels for place, levels in (known or {}).items() if place < len(self.names)}
        _refuse_columns(schema, self.columns, self.path, self.levels)
        self.dim, self.outputs = len(self.names), len(self.y)

    def __iter__(self) -> Iterator[Block]:
        number = 0
        folder = open_folder(self.path)
        for fragment in folder.get_fragments():
            start = 0
            for table in _tables(fragment, self.columns, self.levels):
                name = f"{Path(fragment.path).name}, rows {start} to {start + len(table) - 1}"
                yield self._block(table, number, name)
                number, start = number + 1, start + len(table)

    def _block(self, table: np.ndarray, number: int, name: str) -> Block:
        x, y = table[:, : self.dim], table[:, self.dim : self.dim + self.outputs]
        return block_of(x, y, None if self.weight is None else table[:, -1], number=number, name=name)


def open_folder(path: str) -> pads.Dataset:
    try:
        import pyarrow.dataset as pads
    except ImportError as missing:
        raise MissingExtraError("Parquet files are read with pyarrow: pip install 'regard[tables]'") from missing
    if not Path(path).exists():
        raise DataError(f"there is no file and no folder {path!r}: a Parquet file, or a folder of them, is needed")
    try:
        dataset = pads.dataset(path, format="parquet", partitioning="hive")
    except (OSError, ValueError) as error:  # pyarrow's ArrowInvalid is a ValueError
        raise DataError(f"{path!r} cannot be read as Parquet: {error}") from error
    if not dataset.files:
        raise DataError(f"the folder {path!r} holds no Parquet files")
    return dataset


def _tables(fragment: Any, columns: list[str], levels: Levels) -> Iterator[np.ndarray]:
    """The rows of a file, a block at a time, however its row groups are cut."""
    rows = rows_for(len(columns))
    waiting: list[np.ndarray] = []
    for table in _batches(fragment, columns, rows, levels):
        waiting.append(table)
        if sum(map(len, waiting)) > rows // 2:  # a batch never holds more than `rows`
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


def _batches(fragment: Any, columns: list[str], rows: int, levels: Levels) -> Iterator[np.ndarray]:
    """Some rows at a time: a scan of the folder would decode whole row groups, which may be larger than our memory."""
    import pyarrow.dataset as pads
    import pyarrow.parquet as pq

    constant = pads.get_partition_keys(fragment.partition_expression)  # columns that are names of folders
    stored = [name for name in columns if name not in constant]
    with pq.ParquetFile(fragment.path, buffer_size=2**16, pre_buffer=False) as file:
        first = 0
        for batch in file.iter_batches(rows, columns=stored, use_threads=False):
            table = np.empty((len(batch), len(columns)))
            for place, name in enumerate(columns):
                # By name: each file has its own order.
                column = np.full(len(batch), constant[name]) if name in constant else batch.column(name).to_numpy(False)
                if name in levels:
                    source = f"X in {Path(fragment.path).name}"
                    column = _levels.codes(_levels.cleaned(column, name, source=source, first=first), levels[name])
                table[:, place] = column
            yield table
            first += len(batch)


def _refuse_columns(schema: pa.Schema, wanted: list[str], path: str, levels: Levels) -> None:
    import pyarrow as pa

    missing = [name for name in wanted if name not in schema.names]
    if missing:
        raise DataError(f"{path!r} has no column {', '.join(map(repr, missing))}; it has: {', '.join(schema.names)}")
    numbers = pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal
    for name in (name for name in wanted if name not in levels):
        kind = schema.field(name).type
        if not any(test(kind) for test in numbers):
            raise DataError(
                f"column {name!r} of {path!r} is {kind}, not a number: name the features, Parquet(path, x=[...])"
            )
