"""What was measured, line by line."""

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from regard.errors import ChoiceError

Row = TypeVar("Row", bound=tuple[Any, ...])  # a NamedTuple


class Table(Generic[Row]):
    """Iterate over its rows, ask for a column, print it, or make a frame of `to_dict()`."""

    rows: tuple[Row, ...]
    columns: tuple[str, ...]  # of a row

    def column(self, name: str) -> tuple[Any, ...]:
        if name not in self.columns:
            raise ChoiceError(f"the table has no column {name!r}, its columns are {', '.join(self.columns)}")
        return tuple(getattr(row, name) for row in self.rows)

    def to_dict(self) -> dict[str, list[Any]]:
        return {name: list(self.column(name)) for name in self.columns}

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)
