"""Parquet files: a file or a folder as a table of numbers that is read chunk by chunk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import DataError, MissingExtraError
from regard.regression import encoding
from regard.regression.out_of_core.source import Chunk, Source, make_chunk, rows_per_chunk

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as pads

Names = str | Sequence[str]


class Parquet:
    """A Parquet file, or a folder of Parquet files, and the columns that are features.

    `path`: the file or the folder. `x`: one name or a list of names; None means all columns but those that `fit` uses
    as y and sample_weight.

    >>> import pandas, regard.regression
    >>> pandas.DataFrame({"area": [50.0, 70.0], "rooms": [2, 3], "price": [1.0, 2.0]}).to_parquet("homes.parquet")
    >>> regard.regression.Parquet("homes.parquet", x=["area"])
    Parquet('homes.parquet', x=['area'])
    """

    def __init__(self, path: str | os.PathLike[str], x: Names | None = None) -> None:
        self.path: Path = Path(path)
        self.x: list[str] | None = [x] if isinstance(x, str) else None if x is None else list(x)

    def __repr__(self) -> str:
        return f"Parquet({str(self.path)!r}, x={self.x})"


class ParquetSource(Source):
    """Columns of a Parquet file or folder, in record batches. `categories` maps positions of features to categories."""

    def __init__(
        self,
        table: Parquet,
        y: Names | None,
        weight: str | None = None,
        categories: Mapping[int, np.ndarray] | None = None,
    ) -> None:
        self.path: str = str(table.path)
        self.weight: str | None = weight
        self.y_is_1d: bool = y is None or isinstance(y, str)
        targets = [y] if isinstance(y, str) else [] if y is None else list(y)
        self.target_names: list[Any] | None = targets
        schema = _dataset(self.path).schema
        others = [*targets, *([] if weight is None else [weight])]
        features = table.x if table.x is not None else [name for name in _columns(schema) if name not in others]
        self.feature_names: tuple[str, ...] = tuple(features)
        self.n_features: int = len(features)
        self.n_outputs: int = len(targets)
        self.columns: list[str] = [*features, *others]  # read from every file, in this order
        known = {features[place]: part for place, part in (categories or {}).items() if place < len(features)}
        self.categories: dict[str, np.ndarray] = known
        self.is_whole_table: bool = table.x is None  # nobody chose columns: all files must have the same ones
        self._check_columns(schema, self.path, self.columns)

    def __iter__(self) -> Iterator[Chunk]:
        number = 0
        for fragment in _dataset(self.path).get_fragments():
            start = 0
            for table in self._tables(fragment):
                name = f"{Path(fragment.path).name}, rows {start} to {start + len(table) - 1}"
                x, y = table[:, : self.n_features], table[:, self.n_features : self.n_features + self.n_outputs]
                yield make_chunk(x, y, None if self.weight is None else table[:, -1], number=number, name=name)
                number, start = number + 1, start + len(table)

    def _tables(self, fragment: Any) -> Iterator[np.ndarray]:
        """Yield the rows of one file in chunks, whatever its row groups are."""
        rows = rows_per_chunk(len(self.columns))
        waiting: list[np.ndarray] = []
        for table in self._batches(fragment, rows):
            waiting.append(table)
            if sum(map(len, waiting)) > rows // 2:  # a batch never holds more than `rows`
                yield np.concatenate(waiting)
                waiting = []
        if waiting:
            yield np.concatenate(waiting)

    def _batches(self, fragment: Any, rows: int) -> Iterator[np.ndarray]:
        """Yield record batches of one file. A scan of the dataset would decode whole row groups, which may be large."""
        import pyarrow.dataset as pads
        import pyarrow.parquet as pq

        constant = pads.get_partition_keys(fragment.partition_expression)  # columns that are names of folders
        stored = [name for name in self.columns if name not in constant]
        with pq.ParquetFile(fragment.path, buffer_size=2**16, pre_buffer=False) as file:
            self._check_columns(file.schema_arrow, fragment.path, stored)
            more = [name for name in _columns(file.schema_arrow) if name not in self.columns]
            if more and self.is_whole_table:
                raise DataError(
                    f"{fragment.path!r} has a column {more[0]!r} that the first file of the folder lacks: "
                    "name the features that all of them have, Parquet(path, x=[...])"
                )
            first = 0
            for batch in file.iter_batches(rows, columns=stored, use_threads=False):
                table = np.empty((len(batch), len(self.columns)))
                for position, name in enumerate(self.columns):
                    # By name: each file has its own order of columns.
                    column = (
                        np.full(len(batch), constant[name]) if name in constant else batch.column(name).to_numpy(False)
                    )
                    if name in self.categories:
                        table_name = f"X in {Path(fragment.path).name}"
                        column = encoding.category_values(column, name, table_name=table_name, first_row=first)
                        column = encoding.codes(column, self.categories[name])
                    table[:, position] = column
                yield table
                first += len(batch)

    def _check_columns(self, schema: pa.Schema, path: str, wanted: list[str]) -> None:
        """Raise DataError where a column is missing, or is neither a number nor a known categorical column."""
        import pyarrow as pa

        missing = [name for name in wanted if name not in schema.names]
        if missing:
            raise DataError(
                f"{path!r} has no column {', '.join(map(repr, missing))}; it has: {', '.join(schema.names)}"
            )
        numbers = pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal
        for name in (name for name in wanted if name not in self.categories):
            dtype = schema.field(name).type
            if not any(is_number(dtype) for is_number in numbers):
                raise DataError(
                    f"column {name!r} of {path!r} is {dtype}, not a number: name the features, Parquet(path, x=[...])"
                )


def _dataset(path: str) -> pads.Dataset:
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


def _columns(schema: pa.Schema) -> list[str]:
    """All columns except an unnamed pandas index, which only counts rows."""
    metadata = schema.pandas_metadata or {}
    index = [name for name in metadata.get("index_columns", ()) if isinstance(name, str)]
    unnamed = {column.get("field_name") for column in metadata.get("columns", ()) if column.get("name") is None}
    return [name for name in schema.names if not (name in index and name in unnamed)]
