"""Matrices whose rows are layers or heads, drawn as coloured cells with labels and a colour bar."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize
from matplotlib.ticker import MaxNLocator

from regard.errors import ChoiceError, DtypeError, ShapeError
from regard.plot._figure import INK, TICK_POINTS, hide_frame, name_axes, new_axes
from regard.plot._fonts import families_for, set_families
from regard.plot._labels import MAX_LABEL, label_positions, label_tokens, set_upright_label
from regard.recording import Recording

MAX_BORDERED = 64  # cells a side; with more, white lines between the cells would cover their colours


def draw_cells(
    cells: np.ndarray,
    rows: Sequence[str],
    ax: Axes | None,
    cmap: str | Colormap,
    norm: Normalize,
    texts: tuple[str, str, str, str],
    columns: Sequence[str] | None = None,
    *,
    aspect: str = "equal",
    colorbar: bool = True,
) -> Axes:
    """Draw a matrix of numbers as coloured cells; NaN has no colour. Returns the axes, new ones if `ax` is None.

    rows, columns: labels of the cells; positions label the columns if they are None.
    texts: xlabel, ylabel, title, and the label of the colour bar.
    """
    xlabel, ylabel, title, label = texts
    ax = new_axes(_figure_size(cells.shape)) if ax is None else ax
    image = ax.imshow(cells, cmap=cmap, norm=norm, aspect=aspect)  # pyright: ignore[reportArgumentType]
    hide_frame(ax)
    if max(cells.shape) <= MAX_BORDERED:
        _draw_cell_borders(ax, cells.shape)
    bars = [_add_colour_bar(ax, image, label)] if colorbar else []
    name_axes(ax, xlabel, ylabel, title)
    set_upright_label(ax.yaxis.label, "left")
    families = families_for([*texts, *rows, *(columns or ())])
    label_positions(ax)
    label_tokens(ax, columns, rows, families)
    set_families([ax, *bars], families)
    return ax


def table_of(given: Any, kinds: type | tuple[type, ...], question: Callable[[Recording], Any]) -> Any:
    """Return a table as it is, and for a recording the table that `question` of `regard.analysis` answers."""
    if isinstance(given, kinds):
        return given
    if isinstance(given, Recording):
        return question(given)
    name = question.__name__
    raise DtypeError(
        f"plot.{name} draws a recording, or a table of analysis.{name}, and {type(given).__name__} came; "
        f"one matrix of weights is drawn by weights.plot()"
    )


def head_cells(table: Any, column: str, columns: Collection[str]) -> np.ndarray:
    """Return one number for each head of a table, (layers, heads); NaN if a layer has fewer heads than another.

    column: the name of the number; an error unless it is one of `columns`.
    """
    if column not in columns:
        raise ChoiceError(f"column is one of {', '.join(columns)}, not {column!r}")
    if not len(table):
        raise ShapeError("there is nothing to draw in a table without heads")
    layers = table.layers
    cells = np.full((len(layers), max(row.head for row in table) + 1), np.nan)
    for row in table:
        cells[layers.index(row.layer), row.head] = getattr(row, column)
    return cells


def short_layer_name(layer: str) -> str:
    """Cut a long path at its beginning: its end distinguishes the layers."""
    return layer if len(layer) <= MAX_LABEL else "…" + layer[1 - MAX_LABEL :]


def _figure_size(shape: tuple[int, int]) -> tuple[float, float]:
    """Return the size in inches: a third for each cell, plus names and colour bar, within what fits a page."""
    layers, count = shape
    return min(12.0, max(5.6, 3.2 + count / 3)), min(10.0, max(2.6, 1.6 + layers / 3))


def _draw_cell_borders(ax: Axes, shape: tuple[int, int]) -> None:
    """Draw white lines between the cells."""
    for axis, count in ((ax.yaxis, shape[0]), (ax.xaxis, shape[1])):
        axis.set_ticks(np.arange(count - 1) + 0.5, minor=True)
    ax.tick_params(which="minor", length=0)
    ax.grid(which="minor", color="white", linewidth=1)


def _add_colour_bar(ax: Axes, image: Any, label: str) -> Axes:
    """Add a colour bar with a label beside the axes; return its axes."""
    figure: Any = ax.get_figure()
    bar = figure.colorbar(image, ax=[ax], shrink=0.8, aspect=24, pad=0.03)
    bar.outline.set_visible(False)
    bar.locator = MaxNLocator(5)
    hide_frame(bar.ax)
    bar.set_label(label, fontsize=TICK_POINTS, color=INK)
    set_upright_label(bar.ax.yaxis.label, "right")
    return bar.ax
