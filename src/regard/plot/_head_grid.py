"""Parts of pictures that have one cell for each head: borders, size, layer names, colour bar."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from regard.plot._figure import INK, TICK_POINTS, hide_frame
from regard.plot._labels import MAX_LABEL, set_upright_label


def draw_cell_borders(ax: Axes, shape: tuple[int, int]) -> None:
    """Draw white lines between the cells."""
    for axis, count in ((ax.yaxis, shape[0]), (ax.xaxis, shape[1])):
        axis.set_ticks(np.arange(count - 1) + 0.5, minor=True)
    ax.tick_params(which="minor", length=0)
    ax.grid(which="minor", color="white", linewidth=1)


def figure_size(shape: tuple[int, int]) -> tuple[float, float]:
    """Return the size in inches: a third for each cell, plus names and colour bar, within what fits a page."""
    layers, count = shape
    return min(12.0, max(5.6, 3.2 + count / 3)), min(10.0, max(2.6, 1.6 + layers / 3))


def short_layer_name(layer: str) -> str:
    """Cut a long path at its beginning: its end distinguishes the layers."""
    return layer if len(layer) <= MAX_LABEL else "…" + layer[1 - MAX_LABEL :]


def add_colour_bar(ax: Axes, image: Any, label: str) -> Axes:
    """Add a colour bar with a label beside the axes; return its axes."""
    figure: Any = ax.get_figure()
    bar = figure.colorbar(image, ax=[ax], shrink=0.8, aspect=24, pad=0.03)
    bar.outline.set_visible(False)
    bar.locator = MaxNLocator(5)
    hide_frame(bar.ax)
    bar.set_label(label, fontsize=TICK_POINTS, color=INK)
    set_upright_label(bar.ax.yaxis.label, "right")
    return bar.ax


def head_cells(table: Iterable[Any], layers: Sequence[str], column: str) -> np.ndarray:
    """Return one number for each head, (layers, heads); NaN if a layer has fewer heads than another."""
    rows = list(table)
    cells = np.full((len(layers), max(row.head for row in rows) + 1), np.nan)
    for row in rows:
        cells[layers.index(row.layer), row.head] = getattr(row, column)
    return cells
