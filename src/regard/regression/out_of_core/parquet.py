"""A folder of Parquet files as a table of numbers that is read in blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from regard.errors import DataError, MissingExtraError
from regard.regression import encoding
from regard.regression.out_of_core.source import Block, Blocks, block_of, rows_for

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


class Asked(NamedTuple):
    """What is wanted of every file."""

    columns: list[str]
    levels: Levels
    all: bool  # nobody has chosen the columns: each file has to have the same ones


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
        self.names = tuple(source.x if source.x is not None else [n for n in columns_of(schema) if n not in extra])
        columns = [*self.names, *self.y, *([] if weight is None else [weight])]
        levels = {self.names[place]: levels for place, levels in (known or {}).items() if place < len(self.names)}
        self.asked = Asked(columns, levels, source.x is None)
        _refuse_columns(schema, self.path, columns, levels)
        self.dim, self.outputs = len(self.names), len(self.y)

    def __iter__(self) -> Iterator[Block]:
        number = 0
        folder = open_folder(self.path)
        for fragment in folder.get_fragments():
            start = 0
            for table in _tables(fragment, self.asked):
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


def columns_of(schema: pa.Schema) -> list[str]:
    """All columns but an index without a name, which pandas writes beside them: it only counts rows."""
    about = schema.pandas_metadata or {}
    index = [name for name in about.get("index_columns", ()) if isinstance(name, str)]
    nameless = {column.get("field_name") for column in about.get("columns", ()) if column.get("name") is None}
    return [name for name in schema.names if not (name in index and name in nameless)]


def _tables(fragment: Any, asked: Asked) -> Iterator[np.ndarray]:
    """The rows of a file, a block at a time, however its row groups are cut."""
    rows = rows_for(len(asked.columns))
    waiting: list[np.ndarray] = []
    for table in _batches(fragment, asked, rows):
        waiting.append(table)
        if sum(map(len, waiting)) > rows // 2:  # a batch never holds more than `rows`
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


def _batches(fragment: Any, asked: Asked, rows: int) -> Iterator[np.ndarray]:
    """Some rows at a time: a scan of the folder would decode whole row groups, which may be larger than our memory."""
    import pyarrow.dataset as pads
    import pyarrow.parquet as pq

    constant = pads.get_partition_keys(fragment.partition_expression)  # columns that are names of folders
    stored = [name for name in asked.columns if name not in constant]
    with pq.ParquetFile(fragment.path, buffer_size=2**16, pre_buffer=False) as file:
        _refuse_file(file.schema_arrow, fragment.path, stored, asked)
        first = 0
        for batch in file.iter_batches(rows, columns=stored, use_threads=False):
            table = np.empty((len(batch), len(asked.columns)))
            for place, name in enumerate(asked.columns):
                # By name: each file has its own order.
                column = np.full(len(batch), constant[name]) if name in constant else batch.column(name).to_numpy(False)
                if name in asked.levels:
                    source = f"X in {Path(fragment.path).name}"
                    column = encoding.cleaned(column, name, source=source, first=first)
                    column = encoding.codes(column, asked.levels[name])
                table[:, place] = column
            yield table
            first += len(batch)


def _refuse_file(schema: pa.Schema, path: str, stored: list[str], asked: Asked) -> None:
    """The first file says which columns there are; here another may differ."""
    _refuse_columns(schema, path, stored, asked.levels)
    more = [name for name in columns_of(schema) if name not in asked.columns] if asked.all else []
    if more:
        raise DataError(
            f"{path!r} has a column {more[0]!r} that the first file of the folder lacks: "
            "name the features that all of them have, Parquet(path, x=[...])"
        )


def _refuse_columns(schema: pa.Schema, path: str, wanted: list[str], levels: Levels) -> None:
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
