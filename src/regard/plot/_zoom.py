"""One matrix at several scales, side by side."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import ConnectionPatch, Rectangle

from regard.errors import ChoiceError
from regard.plot._figure import INK, Picture
from regard.plot._heatmaps import heatmap

Square = tuple[int, int, int]


def zoom(
    weights: Any, squares: Sequence[Square], *, figsize: tuple[float, float] | None = None, **options: Any
) -> Picture:
    """Draw the whole matrix, then each square enlarged; a frame marks the square in the panel before it.

    weights: `regard.Weights` of any size; nothing larger than the picture is computed at once.
    squares: (first query, first key, side) for each panel after the first. figsize: in inches.
    options: arguments of `heatmap`, for all panels.

    Returns the figure.

    >>> import torch, regard as rg
    >>> figure = rg.plot.zoom(rg.Weights(torch.randn(600, 3), torch.randn(600, 3)), [(100, 200, 50), (110, 220, 7)])
    """
    if not squares:
        raise ChoiceError("zoom needs at least one square to enlarge: (first query, first key, side)")
    n, m = weights.shape[-2:]
    figure = Picture(figsize=figsize or (4.2 * (1 + len(squares)), 4.4), layout="compressed")
    axes: Any = figure.subplots(1, 1 + len(squares))
    heatmap(weights, ax=axes[0], colorbar=False, **{"title": f"{n:,} x {m:,}", **options})
    for (outer, inner), square in zip(pairwise(axes), squares, strict=True):
        query, key, side = square
        part = {"queries": slice(query, query + side), "keys": slice(key, key + side), "title": f"{side:,} x {side:,}"}
        heatmap(weights, ax=inner, colorbar=False, **{**options, **part, "ylabel": ""})
        inner.yaxis.tick_right()
        inner.tick_params(length=0)
        _connect(outer, inner, square)
    return figure


def _connect(outer: Axes, inner: Axes, square: Square) -> None:
    query, key, side = square
    outer.add_patch(Rectangle((key - 0.5, query - 0.5), side, side, fill=False, edgecolor=INK, linewidth=0.9))
    for row in (query - 0.5, query + side - 0.5):
        line = ConnectionPatch((key + side - 0.5, row), (key - 0.5, row), "data", "data", axesA=outer, axesB=inner)
        line.set(color=INK, linewidth=0.5, linestyle=(0, (3, 3)), zorder=1.2)  # above the image, below the numbers
        line.set_in_layout(False)
        outer.add_artist(line).set_clip_on(False)
    for label in outer.get_yticklabels():
        label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
