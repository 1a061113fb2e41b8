"""An alignment of words: weights as a heatmap, found links as dots, gold links as rings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse

from regard.analysis import WordAlignment, align
from regard.errors import ChoiceError
from regard.plot._figure import BLUE, INK, new_axes
from regard.plot._fonts import families_for, set_families
from regard.plot._heatmaps import heatmap
from regard.plot._labels import set_upright_label

CELL_INCHES = 0.3  # side of a cell, for words to be legible
MARGIN_INCHES = 1.9  # for words, names and the colour scale
LEAST_INCHES, MOST_INCHES = 3.2, 14.0  # of a side of the picture
RING = 0.82  # width of a ring, in cells
NAMES = ("found", "sure", "possible")


def alignment(
    attended: Any,
    gold: Any = None,
    *,
    title: str = "",
    xlabel: str = "Source",
    ylabel: str = "Target",
    names: Sequence[str] = NAMES,
    cmap: str | Colormap = "Reds",
    colorbar: bool = True,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw which source word each target word attended to: words of the source across, of the target down.

    attended: the result of `analysis.align`, or what that takes, with its arguments as `options`.
    gold: links that are known, such as `pair.alignment`. Sure links get a ring, possible ones a dotted ring, and found
        links, which are dots, should be inside of rings.
    title, xlabel, ylabel: texts. names: what the legend calls found, sure and possible links.
    cmap, colorbar: the colour map, and whether to draw its scale. ax: axes to draw on; new ones if left out.

    Returns the axes.

    >>> import regard as rg
    >>> from types import SimpleNamespace
    >>> t = SimpleNamespace(weights=[[0.1, 0.9], [0.8, 0.2]], tokens=["chat", "noir"], source_tokens=["black", "cat"])
    >>> ax = rg.plot.alignment(t, gold="0-1 1-0")
    """
    if isinstance(names, str) or len(names) != len(NAMES):
        raise ChoiceError(f"names are three texts, for {', '.join(NAMES)} links; {names!r} came")
    if isinstance(attended, WordAlignment) and options:
        raise ChoiceError(f"the alignment is made already: {', '.join(options)} are arguments of analysis.align")
    found = attended if isinstance(attended, WordAlignment) else align(attended, **options)
    reference = None if gold is None else found.checked_gold(gold)
    source, target = found.source_words, found.target_words
    ax = new_axes((_inches(len(source)), _inches(len(target)))) if ax is None else ax
    texts: Any = {"title": title, "xlabel": xlabel, "ylabel": ylabel}
    heatmap(found.weights, source, target, ax=ax, cmap=cmap, colorbar=colorbar, limits=(0.0, 1.0), **texts)
    if reference is not None:
        for style, links in (("-", reference.sure), (":", reference.possible)):
            for i, j in links:
                ax.add_patch(_ring(i, j, style))
        _add_legend(ax, names)
        ax.set_title(title, fontsize=10, color=INK, pad=22)  # above the legend
    ax.plot([i for i, _ in found.links], [j for _, j in found.links], **DOT)
    set_upright_label(ax.yaxis.label, "left")
    set_families([ax], families_for([*source, *target, title, xlabel, ylabel, *names]))
    return ax


DOT: Any = {"linestyle": "", "marker": "o", "markersize": 4, "markerfacecolor": "white", "markeredgecolor": INK}


def _inches(words: int) -> float:
    return min(max(MARGIN_INCHES + CELL_INCHES * words, LEAST_INCHES), MOST_INCHES)


def _ring(source: int, target: int, style: str) -> Ellipse:
    return Ellipse((source, target), RING, RING, facecolor="none", edgecolor=BLUE, linestyle=style, linewidth=1.4)


def _add_legend(ax: Axes, names: Sequence[str]) -> None:
    ring: Any = {"linestyle": "", "marker": "o", "markersize": 8, "markerfacecolor": "none", "markeredgecolor": BLUE}
    found, sure = Line2D([], [], label=names[0], **DOT), Line2D([], [], label=names[1], **ring)
    possible = Line2D([], [], color=BLUE, linestyle=":", linewidth=1.6, label=names[2])
    place: Any = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 3, "frameon": False}
    ax.legend(
        handles=[found, sure, possible], fontsize=8, labelcolor=INK, handletextpad=0.3, columnspacing=1.2, **place
    )
