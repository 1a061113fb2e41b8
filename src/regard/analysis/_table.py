"""Tables of results: rows that are NamedTuples, columns by name."""

from collections.abc import Iterator
from typing import Any, ClassVar, Generic, TypeVar

from regard.errors import ChoiceError

Row = TypeVar("Row", bound=tuple[Any, ...])  # a NamedTuple
PRINTED_ROWS = 20  # of a long table; the rest is counted


class Table(Generic[Row]):
    """Results of an analysis. Iterate over its rows, take a column, print it, or make a data frame of `to_dict()`."""

    rows: tuple[Row, ...]
    columns: ClassVar[tuple[str, ...]]  # names of the fields of a row

    def column(self, name: str) -> tuple[Any, ...]:
        """The values of one column."""
        if name not in self.columns:
            raise ChoiceError(f"the table has no column {name!r}, its columns are {', '.join(self.columns)}")
        return tuple(getattr(row, name) for row in self.rows)

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns by name, as `pandas.DataFrame` and `polars.DataFrame` take them."""
        return {name: list(self.column(name)) for name in self.columns}

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)


class HeadwiseTable(Table[Row]):
    """A table with one row for each head of each layer."""

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers, each once, in the order in which they ran."""
        return tuple(dict.fromkeys(self.column("layer")))

    @property
    def _layer_width(self) -> int:
        return max([len("layer"), *map(len, self.column("layer"))])
