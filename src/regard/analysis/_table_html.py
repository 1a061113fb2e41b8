"""HTML of a table for notebooks: it loads nothing, takes the colours of the page, and is sorted by a click."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

# JupyterLab aligns every cell to the right, by a rule that outranks one with two classes.
STYLE = """
.regard-table table { border-collapse: collapse; font-variant-numeric: tabular-nums; color: inherit; font-size: 13px }
.regard-table caption { caption-side: top; text-align: left; padding: 4px 8px; font-weight: 600; color: inherit }
.regard-table th, .regard-table td { padding: 2px 8px; text-align: right; color: inherit; white-space: nowrap }
.regard-table th { border-bottom: 1px solid rgba(128, 128, 128, .6); font-weight: 600 }
.regard-table td { border-bottom: 1px solid rgba(128, 128, 128, .2) }
.regard-table .text { text-align: left !important }
.regard-table button { all: unset; cursor: pointer }
.regard-table button:focus-visible { outline: 2px solid currentColor }
.regard-table th[aria-sort=ascending] button::after { content: " ▲" }
.regard-table th[aria-sort=descending] button::after { content: " ▼" }
.regard-table p { margin: 4px 8px; opacity: .75 }
"""
# A notebook that is not trusted leaves scripts out. Then there are no buttons, and the table stands as it is.
SCRIPT = """
for (const table of document.querySelectorAll(".regard-table table:not([data-sortable])")) {
  table.dataset.sortable = ""
  const headings = [...table.tHead.rows[0].cells]
  headings.forEach((heading, column) => {
    const button = document.createElement("button")
    button.append(...heading.childNodes)
    heading.append(button)
    const value = row => row.cells[column].dataset.value ?? row.cells[column].textContent
    const compare = heading.className === "text"
      ? (a, b) => value(a).localeCompare(value(b), undefined, { numeric: true })
      : (a, b) => value(a) - value(b)
    button.onclick = () => {
      const down = heading.ariaSort === "ascending"
      const rows = [...table.tBodies[0].rows]
      const known = rows.filter(row => value(row) !== "").sort((a, b) => (down ? compare(b, a) : compare(a, b)))
      table.tBodies[0].append(...known, ...rows.filter(row => value(row) === ""))
      for (const other of headings) other.removeAttribute("aria-sort")
      heading.ariaSort = down ? "descending" : "ascending"
    }
  })
}
"""


def html_table(
    caption: str, headings: Sequence[str], texts: Sequence[Sequence[str]], values: Sequence[Sequence[Any]], note: str
) -> str:
    """A table as HTML. texts: what the cells show. values: what they are sorted by. note: a line below the table."""
    columns = range(len(headings))
    is_text = [any(isinstance(row[column], str | bool) for row in values) for column in columns]
    head = "".join(_cell("th", headings[column], is_text[column], ' scope="col"') for column in columns)
    body = "\n".join(
        "<tr>"
        + "".join(
            _cell("td", shown[column], is_text[column], _sort_value(row[column], shown[column])) for column in columns
        )
        + "</tr>"
        for shown, row in zip(texts, values, strict=True)
    )
    below = f"<p>{html.escape(note)}</p>" if note else ""
    return (
        f'<div class="regard-table"><style>{STYLE}</style>\n<table><caption>{html.escape(caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>{below}\n<script>{{{SCRIPT}}}</script></div>"
    )


def _cell(tag: str, text: str, is_text: bool, attributes: str) -> str:
    kind = ' class="text"' if is_text else ""
    return f"<{tag}{kind}{attributes}>{html.escape(text)}</{tag}>"


def _sort_value(value: Any, text: str) -> str:
    """The attribute by which a cell is sorted, where its text does not say it: a number that is rounded, or NaN."""
    if isinstance(value, float) and math.isnan(value):
        return ' data-value=""'
    if isinstance(value, str | bool) or str(value) == text:
        return ""
    number = f"{value:.8g}".replace("inf", "Infinity")
    return f' data-value="{number}"'
