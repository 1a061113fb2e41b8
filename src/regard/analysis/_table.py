"""Tables of results: rows that are NamedTuples, columns by name, shown as text and as HTML of bounded size."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar, overload

from regard.analysis._table_html import html_table
from regard.display.text_table import aligned_lines, one_line
from regard.errors import ChoiceError, MissingExtraError

Row = TypeVar("Row", bound=tuple[Any, ...])  # a NamedTuple
This = TypeVar("This", bound="Table[Any]")  # as typing.Self, which the checker of types at run time refuses
Titles = Mapping[str, str]  # headings by column
Formats = Mapping[str, Callable[[Any], str]]  # texts of values by column
PRINTED_ROWS = 50  # of a long table, printed or in a notebook; the rest is counted
REPR_ROWS = 10  # of a long table in a terminal that shows the value of an expression
MANY_DIGITS = 1e6  # numbers from here on are shown with an exponent


@dataclass(frozen=True, eq=False, repr=False)
class Table(Generic[Row]):
    """Results of an analysis: a NamedTuple for each row.

    - ``table[0]``, iteration: rows. ``table["entropy"]``, ``table.column("entropy")``: a column.
    - ``table.sort("entropy")``: the same rows in another order.
    - ``table.to_pandas()``: a data frame. ``table.to_dict()``: columns by name, for any other library.
    - ``print(table)``: up to 50 rows. A notebook shows the same rows, and a click on a heading sorts them.
    """

    rows: tuple[Row, ...]

    columns: ClassVar[tuple[str, ...]]  # names of the fields of a row
    _titles: ClassVar[Titles] = {}  # headings of columns that are shown under another name
    _formats: ClassVar[Formats] = {}  # texts of columns that are shown in another form

    def column(self, name: str) -> tuple[Any, ...]:
        """The values of one column."""
        if name not in self.columns:
            raise ChoiceError(f"the table has no column {name!r}, its columns are {', '.join(self.columns)}")
        return tuple(getattr(row, name) for row in self.rows)

    def sort(self: This, by: str, *, descending: bool = False) -> This:  # noqa: PYI019  see This
        """The table with its rows in the order of one column, NaN and None last; equal rows keep their order.

        Numbers inside texts count as numbers: layer.2 stands before layer.10.
        """
        pairs = list(zip(self.column(by), self.rows, strict=True))
        known = sorted(((v, row) for v, row in pairs if _is_known(v)), key=lambda p: _key(p[0]), reverse=descending)
        unknown = [row for value, row in pairs if not _is_known(value)]
        return self._with_rows([*(row for _, row in known), *unknown])

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns by name, as `pandas.DataFrame` and `polars.DataFrame` take them."""
        return {name: list(self.column(name)) for name in self.columns}

    def to_pandas(self) -> Any:
        """The table as a `pandas.DataFrame`, with every row and column."""
        try:
            import pandas as pd
        except ImportError as missing:
            raise MissingExtraError("to_pandas() needs pandas: pip install 'regard[tables]'") from missing
        return pd.DataFrame(self.to_dict(), columns=list(self.columns))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @overload
    def __getitem__(self, which: int) -> Row: ...
    @overload
    def __getitem__(self: This, which: slice) -> This: ...
    @overload
    def __getitem__(self, which: str) -> tuple[Any, ...]: ...
    def __getitem__(self, which: int | slice | str) -> Row | Table[Row] | tuple[Any, ...]:
        """A row by its number, a table of some rows by a slice, or the values of a column by its name."""
        if isinstance(which, str):
            return self.column(which)
        return self._with_rows(self.rows[which]) if isinstance(which, slice) else self.rows[which]

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.columns)

    def __str__(self) -> str:
        return self._printed(PRINTED_ROWS)

    def __repr__(self) -> str:
        return f"{self._caption()}\n{self._printed(REPR_ROWS)}"

    def _repr_html_(self) -> str:
        rows, names = self._shown_rows(PRINTED_ROWS), self._shown_columns()
        values = [[getattr(row, name) for name in names] for row in rows]
        texts = [[self._text(name, value) for name, value in zip(names, row, strict=True)] for row in values]
        left = len(self) - len(rows)
        note = f"{left:,} more rows. A click sorts what is shown; table.sort(by) sorts all." if left else ""
        return html_table(self._caption(), self._headings(), texts, values, note)

    # What is shown, and in which form

    def _shown_columns(self) -> Sequence[str]:
        return self.columns

    def _shown_rows(self, count: int) -> Sequence[Row]:
        """At most `count` rows, the first ones unless a table knows better."""
        return self.rows[:count]

    def _caption(self) -> str:
        return f"{type(self).__name__}, {len(self):,} {'row' if len(self) == 1 else 'rows'}"

    def _headings(self) -> list[str]:
        return [self._titles.get(name, name) for name in self._shown_columns()]

    def _text(self, name: str, value: Any) -> str:
        if name in self._formats:
            return self._formats[name](value)
        if isinstance(value, float):
            return f"{value:.4f}" if not abs(value) >= MANY_DIGITS else f"{value:.4g}"
        return one_line(str(value))

    def _printed(self, count: int) -> str:
        rows, names = self._shown_rows(count), self._shown_columns()
        texts = [[self._text(name, getattr(row, name)) for name in names] for row in rows]
        is_text = [any(isinstance(getattr(row, name), str | bool) for row in rows) for name in names]
        lines = aligned_lines([self._headings(), *texts], is_text)
        left = len(self) - len(rows)
        return "\n".join([*lines, *([f"... {left:,} more rows: .sort(by), .to_pandas()"] if left else [])])

    def _with_rows(self: This, rows: Sequence[Any]) -> This:  # noqa: PYI019  see This
        return replace(self, rows=tuple(rows))


class HeadwiseTable(Table[Row]):
    """A table with one row for each head of each layer."""

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers, each once, in the order in which they stand in the table."""
        return tuple(dict.fromkeys(self.column("layer")))


def _is_known(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _key(value: Any) -> Any:
    """A value by which rows are sorted: a text is cut into words and numbers, layer.10 -> layer., 10."""
    if not isinstance(value, str):
        return value
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", value) if part]
