"""Tables for notebooks: rows of texts as HTML, escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def html_table(rows: Sequence[Sequence[str]], is_text: Sequence[bool], *, heading: bool = False) -> str:
    """HTML of a table whose first column names its rows: texts start at the left, numbers end at the right.

    >>> html_table([("a < b", "1")], is_text=(True, False))
    '<table><tr><th style="text-align:left">a &lt; b</th><td style="text-align:right">1</td></tr></table>'
    """
    sides = ["left" if text else "right" for text in is_text]
    lines = []
    for number, row in enumerate(rows):
        tags = ["th" if heading and number == 0 else tag for tag in ("th", *["td"] * (len(row) - 1))]
        cells = zip(tags, sides, map(escape, row), strict=True)
        lines.append("".join(f'<{tag} style="text-align:{side}">{cell}</{tag}>' for tag, side, cell in cells))
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
