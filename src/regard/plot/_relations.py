"""Lines from questions to the segments of a text: a wider line is a larger weight."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from regard.errors import ChoiceError
from regard.plot._figure import INK, new_axes
from regard.plot._fonts import families_for, set_families
from regard.relation import Relation

COLOURS = ("#c0282d", "#2f6db3", "#3a8f4a", "#8a57a8", "#c9791b", "#16888a", "#a0522d", "#6b6b6b")
WIDEST_LINE = 16.0  # points, for a weight of 1
LINE_LETTERS = 32  # letters in a line of text; a Chinese character counts as two
LEFT, RIGHT = 0.31, 0.66  # ends of the lines, as shares of the width
MAX_NUMBER_COLUMNS = 4  # weights are written as numbers for up to this many questions


def relations(relation: Relation, *, head: int = 0, most: int = 40, title: str = "", ax: Axes | None = None) -> Axes:
    """Draw a line from each question, on the left, to each segment, on the right; its width is the weight.

    relation: from `regard.relate`. head: index of the head, if the relation was read from heads.
    most: the largest number of segments to draw; those with the largest weights are kept.
    title: text above. ax: axes to draw on; new ones if left out.

    Returns the axes.

    >>> import regard as rg
    >>> ax = rg.plot.relations(rg.relate("He runs | He is tall", ["Why is he so fast?", "Is he small?"]))
    """
    if most < 1:
        raise ChoiceError(f"most is the number of segments to draw, 1 or more, {most} came")
    rows = np.array([relation.row(question, head) for question in range(len(relation.questions))])
    shown = np.sort(np.argsort(-rows.max(0), kind="stable")[:most])
    rows, segments = rows[:, shown], [_wrap(relation.segments[place]) for place in shown]
    questions = [_wrap(question) for question in relation.questions]
    high = max(_lines(segments), _lines(questions))
    if ax is None:
        ax = new_axes((9, 0.7 + 0.21 * high), layout="constrained")
    ends, starts = _spread(segments, high), _spread(questions, high)
    for row, colour, start in zip(rows, _colours(len(rows)), starts, strict=True):
        for weight, end in zip(row, ends, strict=True):
            _line(ax, start, end, float(weight), colour)
    numbers = len(rows) if len(rows) <= MAX_NUMBER_COLUMNS else 0
    _write(ax, questions, starts, LEFT - 0.012, "right", _colours(len(rows)))
    _write(ax, segments, ends, RIGHT + 0.012 + 0.045 * numbers, "left", [INK] * len(segments))
    for place, (row, colour) in enumerate(zip(rows[:numbers], _colours(numbers), strict=True)):
        texts = [f"{weight:.2f}" for weight in row]
        _write(ax, texts, ends, RIGHT + 0.01 + 0.045 * place, "left", [colour] * len(texts), size=7.5)
    notes = [title, _note(relation, head, len(shown))]
    ax.set_title("\n".join(note for note in notes if note), fontsize=9, color=INK)
    ax.set(xlim=(0, 1), ylim=(high, 0))
    ax.set_axis_off()
    set_families([ax], families_for([*questions, *segments, *notes]))
    return ax


def _note(relation: Relation, head: int, shown: int) -> str:
    """Say which head is drawn, and how many segments are left out."""
    parts = [f"head: {relation.heads[head]}"] if relation.heads else []
    if shown < len(relation.segments):
        parts.append(f"{shown} of {len(relation.segments)} segments")
    return ", ".join(parts)


def _colours(count: int) -> list[str]:
    return [COLOURS[place % len(COLOURS)] for place in range(count)]


def _line(ax: Axes, start: float, end: float, weight: float, colour: str) -> None:
    if weight < 0.002:  # too thin to be seen
        return
    middle = (LEFT + RIGHT) / 2
    curve = Path(
        [(LEFT, start), (middle, start), (middle, end), (RIGHT, end)],
        [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4],
    )
    style: Any = {"linewidth": max(0.3, WIDEST_LINE * weight), "edgecolor": colour, "alpha": 0.25 + 0.5 * weight}
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
    """Count the lines of all texts, with half an empty line between two texts."""
    return sum(text.count("\n") + 1 for text in texts) + (len(texts) + 1) // 2 + 1


def _spread(texts: Sequence[str], high: float) -> list[float]:
    """Return the middle of each text when all are spread evenly over the height."""
    sizes = np.array([text.count("\n") + 1.0 for text in texts])
    gap = (high - sizes.sum()) / len(texts)
    return [float(y) for y in np.cumsum(sizes + gap) - (sizes + gap) / 2]


def _wrap(text: str) -> str:
    """Break a text into lines of `LINE_LETTERS`, between words if it has words."""
    lines, line, width = list[str](), "", 0
    for word in _pieces(" ".join(text.split())):
        word_width = _width(word)
        if line and width + word_width > LINE_LETTERS:
            lines.append(line.rstrip())
            line, width = "", 0
        line, width = (line + word).lstrip(), width + word_width
    return "\n".join([*lines, line])


def _pieces(text: str) -> list[str]:
    """Split a text into words with the space before them, Chinese characters, and parts of very long words."""
    pieces = list[str]()
    for character in text:
        joins = pieces and character != " " and _width(character) == 1 and _width(pieces[-1][-1]) == 1
        if joins and len(pieces[-1]) < LINE_LETTERS:
            pieces[-1] += character
        else:
            pieces.append(character)
    return pieces


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
