"""A picture with one cell a head: what such pictures share."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from regard.plot._figure import INK, SIZE, quiet
from regard.plot._labels import LONGEST, stand


def part_cells(ax: Axes, shape: tuple[int, int]) -> None:
    """White lines between the cells: each is a head of its own."""
    for axis, count in ((ax.yaxis, shape[0]), (ax.xaxis, shape[1])):
        axis.set_ticks(np.arange(count - 1) + 0.5, minor=True)
    ax.tick_params(which="minor", length=0)
    ax.grid(which="minor", color="white", linewidth=1)


def size(shape: tuple[int, int]) -> tuple[float, float]:
    """Inches: a cell of a third, within what a page has room for, and room for names, marks and colours."""
    layers, count = shape
    return min(12.0, max(5.6, 3.2 + count / 3)), min(10.0, max(2.6, 1.6 + layers / 3))


def tail(layer: str) -> str:
    """The end of a path tells layers apart, the beginning does not."""
    return layer if len(layer) <= LONGEST else "…" + layer[1 - LONGEST :]


def add_colour_bar(ax: Axes, image: Any, label: str) -> Axes:
    figure: Any = ax.get_figure()
    bar = figure.colorbar(image, ax=[ax], shrink=0.8, aspect=24, pad=0.03)
    bar.outline.set_visible(False)
    bar.locator = MaxNLocator(5)
    quiet(bar.ax)
    bar.set_label(label, fontsize=SIZE, color=INK)
    stand(bar.ax.yaxis.label, "right")
    return bar.ax
