"""Numbers as people write them: 1,234.5 or 1.234,5 or 1 234,5 or 1'234.5, and which of them a table means.

A column of texts is one of numbers if all of its texts are, with a decimal point or with a decimal comma. Where both
are possible, as for 1,234, the other columns decide; where they do not, the rule of `default_decimal` does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

SPACES = " \u00a0\u202f\u2009"
GROUPING = f"{SPACES}'’"  # separates thousands beside either decimal mark
MARKS = re.compile(f"[.,{GROUPING}−]")
OTHER = {".": ",", ",": "."}


def _pattern(decimal: str) -> re.Pattern[str]:
    separator = f"[{re.escape(OTHER[decimal])}{GROUPING}]"
    grouped = rf"[1-9]\d{{0,2}}(?P<separator>{separator})\d{{3}}(?:(?P=separator)\d{{3}})*"
    mark = re.escape(decimal)
    return re.compile(rf"[+−-]?(?:(?:{grouped}|\d+)(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?")


PATTERNS = {decimal: _pattern(decimal) for decimal in OTHER}
REMOVED = {
    decimal: str.maketrans({decimal: ".", "−": "-"} | dict.fromkeys(OTHER[decimal] + GROUPING)) for decimal in OTHER
}


class Reading(NamedTuple):
    """Numbers of a column, and how its texts were read."""

    numbers: np.ndarray  # of the texts that are not missing
    decimal: str
    example: str  # the first text with a mark
    example_number: float
    other: float | None  # the example under the other reading, if that would be possible for all texts


def parse(texts: Sequence[str], decimal: str) -> np.ndarray | None:
    """Return texts as numbers with this decimal mark, or None if one of them is no such number.

    >>> parse(["1.234,5", "12"], ","), parse(["1,234"], "."), parse(["1,5"], ".")
    (array([1234.5,   12. ]), array([1234.]), None)
    """
    match, table = PATTERNS[decimal].fullmatch, REMOVED[decimal]
    values = []
    for text in texts:
        stripped = text.strip()
        if match(stripped) is None:
            return None
        values.append(float(stripped.translate(table)))
    return np.array(values, dtype=np.float64)


def readings(texts: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the numbers of a column for each decimal mark with which all texts are numbers."""
    parsed = {decimal: parse(texts, decimal) for decimal in OTHER}
    return {decimal: values for decimal, values in parsed.items() if values is not None}


def interpret(columns: Mapping[str, Sequence[str]], preferred: Mapping[str, str], separator: str) -> dict[str, Reading]:
    """Return the columns of numbers. `preferred` decides first where both marks are possible; then other columns do."""
    marked = {name: texts for name, texts in columns.items() if any(map(MARKS.search, texts))}
    possible = {name: read for name, texts in marked.items() if (read := readings(texts))}
    certain = {next(iter(read)) for read in possible.values() if len(read) == 1}
    result = {}
    for name, read in possible.items():
        texts = marked[name]
        place = next(place for place, text in enumerate(texts) if MARKS.search(text))
        if len(read) == 1 or np.array_equal(read["."], read[","]):
            decimal, other = next(iter(read)), None
        else:
            usual = next(iter(certain)) if len(certain) == 1 else default_decimal(texts, separator)
            decimal = preferred.get(name, usual)
            other = None if name in preferred else float(read[OTHER[decimal]][place])
        result[name] = Reading(read[decimal], decimal, texts[place], float(read[decimal][place]), other)
    return result


def default_decimal(texts: Sequence[str], separator: str) -> str:
    """Return the decimal mark of a column that leaves it open: a point; a comma only in a file with semicolons.

    Programs write semicolons between columns in countries where the comma is taken by numbers. A point alone, as in
    1.234, is always a decimal point.
    """
    return "," if separator == ";" and any("," in text for text in texts) else "."
