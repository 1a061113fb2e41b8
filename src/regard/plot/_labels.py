"""Tokens as tick labels, thinned while drawing: they never overlap, whatever the size of the picture or the zoom."""

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

from regard.plot._figure import SIZE, no_glyph_warnings

Tokens = Sequence[object]
LINE = 1.3 * SIZE  # from one line of text to the next
LONGEST = 28  # characters
AIR = 1.6  # how much more room labels get once not all of them fit: labels that touch look like a wall
SIGNS = str.maketrans({"\n": "↵", "\r": "↵", "\t": "⇥"})


class TokenLocator(Locator):
    """Every k-th token, k being the least round step at which labels `pitch` points apart do not touch."""

    def __init__(self, count: int, pitch: float) -> None:
        self.count, self.pitch = count, pitch

    def __call__(self) -> list[float]:
        axis: Any = self.axis
        return self.tick_values(*sorted(axis.get_view_interval()))

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        step = _round_up(self.pitch * (vmax - vmin) / _length(self.axis))
        first, last = max(0, ceil(vmin)), min(self.count - 1, floor(vmax))
        return [float(i) for i in range(ceil(first / step) * step, last + 1, step)]


def _round_up(least: float) -> int:
    """1 if that is enough; else the next of 2, 5, 10, 20, ..."""
    if least <= 1:
        return 1
    decade = 10 ** floor(log10(AIR * least))
    return next(factor * decade for factor in (1, 2, 5, 10) if factor * decade >= AIR * least)


def _length(axis: Any) -> float:
    """Of an axis as it is laid out now, in points."""
    box = axis.axes.get_window_extent()
    pixels = box.width if axis.axis_name == "x" else box.height
    return max(1.0, pixels * 72 / axis.axes.figure.figure.dpi)


def label_tokens(ax: Axes, keys: Tokens | None, queries: Tokens | None, families: list[str] | None) -> None:
    font = FontProperties(family=families, size=SIZE)
    beside = 0.0
    if queries is not None:
        labels = [shorten(str(token)) for token in queries]
        beside = _widest(labels, font)
        _write(ax.yaxis, labels, LINE)
    if keys is not None:
        labels = [shorten(str(token)) for token in keys]
        labels, pitch, turned = _lay_out(labels, font, room=_length(ax.xaxis) - beside)
        _write(ax.xaxis, labels, pitch)
        ax.tick_params("x", rotation=90 if turned else 0)


def _lay_out(labels: list[str], font: FontProperties, room: float) -> tuple[list[str], float, bool]:
    """Side by side as they are, else Chinese in columns, else turned: the labels, their pitch, and whether to turn."""
    columns = [stack(label) for label in labels]
    ways = [
        (labels, _widest(labels, font) + 0.7 * SIZE, False),
        (columns, _widest(columns, font) + 0.4 * SIZE, False),
        (labels, LINE, True),
    ]
    fitting = (way for way in ways if way[1] * len(labels) <= room)
    return next(fitting, min(ways, key=lambda way: way[1]))


def _write(axis: Any, labels: list[str], pitch: float) -> None:
    axis.set_major_locator(TokenLocator(len(labels), pitch))
    axis.set_major_formatter(FuncFormatter(lambda x, _: _plain(labels[int(x)]) if 0 <= x < len(labels) else ""))


def label_positions(ax: Axes) -> None:
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
        axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))


def shorten(token: str) -> str:
    token = token.translate(SIGNS)
    return token if len(token) <= LONGEST else token[: LONGEST - 1] + "…"


def stack(label: str) -> str:
    """Wide characters one below the other, as Chinese is written in columns; a run of narrow ones stays in one line.

    >>> stack("身高 2 米").split()
    ['身', '高', '2', '米']
    """
    runs = [(wide, "".join(run).strip()) for wide, run in groupby(label, _is_wide)]
    return "\n".join(part for wide, run in runs for part in (run if wide else [run]) if part)


def stand(label: Text, side: str) -> None:
    """Put the name of an upright axis, at its `side`, in a column if it is Chinese, which does not lie on its side."""
    if any(map(_is_wide, label.get_text())):
        label.set(text=stack(label.get_text()), rotation=0, va="center", ha="right" if side == "left" else "left")


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


def _plain(label: str) -> str:
    """Two dollar signs would make matplotlib read the label as a formula."""
    return label.replace("$", r"\$")


def _widest(labels: Sequence[str], font: FontProperties) -> float:
    """In points. Only the lines that look longest are measured: measuring is slow, and there may be 100,000 tokens."""
    lines = {line for label in labels for line in label.split("\n")}
    longest = sorted(lines, key=lambda line: -sum(2 if _is_wide(c) else 1 for c in line))[:16]
    with no_glyph_warnings():
        return max((text_to_path.get_text_width_height_descent(line, font, False)[0] for line in longest), default=0.0)
