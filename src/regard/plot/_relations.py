"""Lines from questions to segments: the wider, the more weight."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from regard.errors import ChoiceError
from regard.plot._figure import INK, Picture, PictureAxes
from regard.plot._fonts import families_for, make_legible
from regard.relation import Relation

COLOURS = ("#c0282d", "#2f6db3", "#3a8f4a", "#8a57a8", "#c9791b", "#16888a", "#a0522d", "#6b6b6b")
WIDEST = 16.0  # points, the line of a weight of 1
COLUMN = 32  # letters to a line of text; a Chinese character is as wide as two
LEFT, RIGHT = 0.31, 0.66  # where lines begin and end, in shares of the width
MOST_NUMBERS = 4  # questions for which there is room to write the weights down


def relations(relation: Relation, *, head: int = 0, most: int = 40, title: str = "", ax: Axes | None = None) -> Axes:
    """What `regard.relate` found: each question to the left, the segments to the right, width = weight.

    head: which one, where there are several. most: how many segments are drawn at most, those with the largest weights.

    >>> import regard as rg
    >>> ax = rg.plot.relations(rg.relate("He runs | He is tall", ["Why is he so fast?", "Is he small?"]))
    """
    if most < 1:
        raise ChoiceError(f"most is the number of segments to draw, 1 or more, {most} came")
    rows = np.array([relation.row(question, head) for question in range(len(relation.questions))])
    shown = np.sort(np.argsort(-rows.max(0), kind="stable")[:most])
    rows, segments = rows[:, shown], [_wrapped(relation.segments[place]) for place in shown]
    questions = [_wrapped(question) for question in relation.questions]
    high = max(_lines(segments), _lines(questions))
    if ax is None:
        ax = Picture(figsize=(9, 0.7 + 0.21 * high), layout="constrained").add_subplot(axes_class=PictureAxes)
    ends, starts = _spread(segments, high), _spread(questions, high)
    for row, colour, start in zip(rows, _colours(len(rows)), starts, strict=True):
        for weight, end in zip(row, ends, strict=True):
            _line(ax, start, end, float(weight), colour)
    numbers = len(rows) if len(rows) <= MOST_NUMBERS else 0
    _write(ax, questions, starts, LEFT - 0.012, "right", _colours(len(rows)))
    _write(ax, segments, ends, RIGHT + 0.012 + 0.045 * numbers, "left", [INK] * len(segments))
    for place, (row, colour) in enumerate(zip(rows[:numbers], _colours(numbers), strict=True)):
        texts = [f"{weight:.2f}" for weight in row]
        _write(ax, texts, ends, RIGHT + 0.01 + 0.045 * place, "left", [colour] * len(texts), size=7.5)
    notes = [title, _note(relation, head, len(shown))]
    ax.set_title("\n".join(note for note in notes if note), fontsize=9, color=INK)
    ax.set(xlim=(0, 1), ylim=(high, 0))
    ax.set_axis_off()
    make_legible([ax], families_for([*questions, *segments, *notes]))
    return ax


def _note(relation: Relation, head: int, shown: int) -> str:
    """Which head, and how many segments were left out: a picture must not hide it."""
    parts = [f"head: {relation.heads[head]}"] if relation.heads else []
    if shown < len(relation.segments):
        parts.append(f"{shown} of {len(relation.segments)} segments")
    return ", ".join(parts)


def _colours(count: int) -> list[str]:
    return [COLOURS[place % len(COLOURS)] for place in range(count)]


def _line(ax: Axes, start: float, end: float, weight: float, colour: str) -> None:
    if weight < 0.002:  # thinner than any screen can show
        return
    middle = (LEFT + RIGHT) / 2
    curve = Path(
        [(LEFT, start), (middle, start), (middle, end), (RIGHT, end)],
        [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4],
    )
    style: Any = {"linewidth": max(0.3, WIDEST * weight), "edgecolor": colour, "alpha": 0.25 + 0.5 * weight}
    ax.add_patch(PathPatch(curve, facecolor="none", capstyle="butt", **style))


def _write(
    ax: Axes,
    texts: Sequence[str],
    heights: Sequence[float],
    x: float,
    side: str,
    colours: Sequence[str],
    size: float = 9,
) -> None:
    for text, y, colour in zip(texts, heights, colours, strict=True):
        style: Any = {"ha": side, "va": "center", "fontsize": size, "color": colour, "linespacing": 1.1}
        ax.text(x, y, text.replace("$", r"\$"), **style)


def _lines(texts: Sequence[str]) -> int:
    """How many lines high, with one half empty between two texts."""
    return sum(text.count("\n") + 1 for text in texts) + (len(texts) + 1) // 2 + 1


def _spread(texts: Sequence[str], high: float) -> list[float]:
    """The middle of each text, when all are spread evenly over the height."""
    sizes = np.array([text.count("\n") + 1.0 for text in texts])
    gap = (high - sizes.sum()) / len(texts)
    return [float(y) for y in np.cumsum(sizes + gap) - (sizes + gap) / 2]


def _wrapped(text: str) -> str:
    """Broken into lines of `COLUMN`, between words where there are words."""
    lines, line, wide = list[str](), "", 0
    for word in _pieces(" ".join(text.split())):
        room = _width(word)
        if line and wide + room > COLUMN:
            lines.append(line.rstrip())
            line, wide = "", 0
        line, wide = (line + word).lstrip(), wide + room
    return "\n".join([*lines, line])


def _pieces(text: str) -> list[str]:
    """Words with the space before them; a Chinese character is a piece of its own, and a word of 32 letters is cut."""
    pieces = list[str]()
    for character in text:
        glued = pieces and character != " " and _width(character) == 1 and _width(pieces[-1][-1]) == 1
        if glued and len(pieces[-1]) < COLUMN:
            pieces[-1] += character
        else:
            pieces.append(character)
    return pieces


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
