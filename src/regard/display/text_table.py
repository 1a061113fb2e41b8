"""Columns of text for terminals: aligned, on one line each, and never wider than they need to be."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

MAX_TEXT = 60  # characters of a text in a cell; a longer one is cut in its middle, since both ends tell names apart
GAP = "  "  # between two columns
CONTROL_SIGNS = {"\n": "↵", "\r": "↵", "\t": "⇥"}


def one_line(text: str) -> str:
    r"""Show a text on one line: cut in the middle if it is long, and control characters as signs.

    >>> one_line("a\nb"), one_line("layer." * 20)
    ('a↵b', 'layer.layer.layer.layer.layer…layer.layer.layer.layer.layer.')
    """
    if len(text) > MAX_TEXT:
        half = MAX_TEXT // 2
        text = f"{text[: half - 1]}…{text[-half:]}"
    return "".join(CONTROL_SIGNS.get(c) or (c if c.isprintable() else ascii(c)[1:-1]) for c in text)


def aligned_lines(rows: Sequence[Sequence[str]], is_text: Sequence[bool]) -> list[str]:
    """Lines of a table whose first row is its heading: texts start at the left, numbers end at the right."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    return [GAP.join(map(_pad, row, widths, is_text)) for row in rows]


def _pad(cell: str, width: int, is_text: bool) -> str:
    space = " " * (width - _width(cell))
    return cell + space if is_text else space + cell


def _width(text: str) -> int:
    """Columns of a terminal that a text takes: a Chinese character takes two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
