"""Tokens as tick labels that never overlap: they are thinned while drawing, at any size and zoom."""

import unicodedata
from collections.abc import Sequence
from itertools import groupby
from math import ceil, floor, log10
from typing import Any

from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FuncFormatter, Locator, MaxNLocator

from regard.plot._figure import TICK_POINTS, no_glyph_warnings

Tokens = Sequence[object]
LINE_POINTS = 1.3 * TICK_POINTS  # distance of two lines of text
MAX_LABEL = 28  # characters of a label
SPACING = 1.6  # factor on the distance of labels once they are thinned: labels that touch are hard to read
CONTROL_SIGNS = str.maketrans({"\n": "↵", "\r": "↵", "\t": "⇥"})


class TokenLocator(Locator):
    """Ticks at every k-th token; k is the smallest round number for which labels are `pitch` points apart."""

    def __init__(self, count: int, pitch: float) -> None:
        self.count, self.pitch = count, pitch

    def __call__(self) -> list[float]:
        axis: Any = self.axis
        return self.tick_values(*sorted(axis.get_view_interval()))

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        step = _round_up(self.pitch * (vmax - vmin) / _axis_points(self.axis))
        first, last = max(0, ceil(vmin)), min(self.count - 1, floor(vmax))
        return [float(i) for i in range(ceil(first / step) * step, last + 1, step)]


def _round_up(least: float) -> int:
    """Return 1 if that is enough, else the next of 2, 5, 10, 20, ..."""
    if least <= 1:
        return 1
    decade = 10 ** floor(log10(SPACING * least))
    return next(factor * decade for factor in (1, 2, 5, 10) if factor * decade >= SPACING * least)


def _axis_points(axis: Any) -> float:
    """Return the current length of an axis in points."""
    box = axis.axes.get_window_extent()
    pixels = box.width if axis.axis_name == "x" else box.height
    return max(1.0, pixels * 72 / axis.axes.figure.figure.dpi)


def label_tokens(ax: Axes, keys: Tokens | None, queries: Tokens | None, families: list[str] | None) -> None:
    """Label both axes with tokens; None leaves an axis as it is."""
    font = FontProperties(family=families, size=TICK_POINTS)
    query_width = 0.0
    if queries is not None:
        labels = [shorten(str(token)) for token in queries]
        query_width = _widest(labels, font)
        _write(ax.yaxis, labels, LINE_POINTS)
    if keys is not None:
        labels = [shorten(str(token)) for token in keys]
        labels, pitch, is_turned = _lay_out(labels, font, available=_axis_points(ax.xaxis) - query_width)
        _write(ax.xaxis, labels, pitch)
        ax.tick_params("x", rotation=90 if is_turned else 0)


def _lay_out(labels: list[str], font: FontProperties, available: float) -> tuple[list[str], float, bool]:
    """Return labels, their pitch and whether to turn them: in lines, else Chinese in columns, else turned."""
    columns = [stack(label) for label in labels]
    layouts = [
        (labels, _widest(labels, font) + 0.7 * TICK_POINTS, False),
        (columns, _widest(columns, font) + 0.4 * TICK_POINTS, False),
        (labels, LINE_POINTS, True),
    ]
    fitting = (layout for layout in layouts if layout[1] * len(labels) <= available)
    return next(fitting, min(layouts, key=lambda layout: layout[1]))


def _write(axis: Any, labels: list[str], pitch: float) -> None:
    axis.set_major_locator(TokenLocator(len(labels), pitch))
    axis.set_major_formatter(FuncFormatter(lambda x, _: _escape(labels[int(x)]) if 0 <= x < len(labels) else ""))


def label_positions(ax: Axes) -> None:
    """Label both axes with positions, as whole numbers."""
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
        axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))


def shorten(token: str) -> str:
    """Cut a long token, and show line breaks and tabs as signs."""
    token = token.translate(CONTROL_SIGNS)
    return token if len(token) <= MAX_LABEL else token[: MAX_LABEL - 1] + "…"


def stack(label: str) -> str:
    """Write wide characters below each other, as Chinese in columns; a run of narrow ones stays in one line.

    >>> stack("身高 2 米").split()
    ['身', '高', '2', '米']
    """
    runs = [(wide, "".join(run).strip()) for wide, run in groupby(label, _is_wide)]
    return "\n".join(part for wide, run in runs for part in (run if wide else [run]) if part)


def set_upright_label(label: Text, side: str) -> None:
    """Write the label of a vertical axis as a column if it is Chinese, instead of turning it."""
    if any(map(_is_wide, label.get_text())):
        label.set(text=stack(label.get_text()), rotation=0, va="center", ha="right" if side == "left" else "left")


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


def _escape(label: str) -> str:
    """Escape dollar signs: matplotlib would read the label as a formula."""
    return label.replace("$", r"\$")


def _widest(labels: Sequence[str], font: FontProperties) -> float:
    """Return the width of the widest line in points. Measuring is slow, so only the 16 longest lines are measured."""
    lines = {line for label in labels for line in label.split("\n")}
    longest = sorted(lines, key=lambda line: -sum(2 if _is_wide(c) else 1 for c in line))[:16]
    with no_glyph_warnings():
        return max((text_to_path.get_text_width_height_descent(line, font, False)[0] for line in longest), default=0.0)
