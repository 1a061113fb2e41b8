"""Every head of a model in one picture: layers down, heads across, and the verdicts as marks."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize

from regard.analysis import HeadTable
from regard.errors import ChoiceError, ShapeError
from regard.plot._cells import add_colour_bar, part_cells, size, tail
from regard.plot._figure import INK, SIZE, name_axes, new_axes, quiet
from regard.plot._fonts import families_for, make_legible
from regard.plot._labels import label_positions, label_tokens, stand

COLOURS = {"saturation": "Reds", "relative": "Reds_r"}  # the sharper a head, the darker it is
NAMES = {"saturation": "Saturation", "relative": "Entropy / log(visible keys)"}
MARKS: dict[str, dict[str, Any]] = {
    "saturated": {"marker": "o", "markerfacecolor": "white"},
    "uniform": {"marker": "_", "markeredgewidth": 2.0},
    "undefined": {"marker": "x"},
}


def heads(
    table: HeadTable,
    *,
    column: str = "saturation",
    ax: Axes | None = None,
    cmap: str | Colormap | None = None,
    title: str = "",
    xlabel: str = "Head",
    ylabel: str = "Layer",
    label: str | None = None,
    names: Mapping[str, str] | None = None,
    colorbar: bool = True,
) -> Axes:
    """The heads of a model as `regard.analysis.heads` found them: one cell a head, and a mark on those to look at.

    column: what the colours show, "saturation" or "relative", the entropy over its maximum; dark is one-hot in both.
    label: its name beside the colours. names: what the verdicts are called in the legend, e.g.
    {"saturated": "饱和", "uniform": "均匀"}. A layer with fewer heads than another has no cell for the rest.

    >>> import torch
    >>> from regard import analysis, plot
    >>> layer = torch.nn.MultiheadAttention(embed_dim=8, num_heads=2, batch_first=True)
    >>> x = torch.randn(3, 5, 8)
    >>> ax = plot.heads(analysis.heads(layer, x, x, x), xlabel="头", ylabel="层")
    """
    if column not in COLOURS:
        raise ChoiceError(f"column is one of {', '.join(COLOURS)}, not {column!r}")
    if not len(table):
        raise ShapeError("there is nothing to draw in a table without heads")
    layers = table.layers
    cells = np.full((len(layers), max(table.column("head")) + 1), np.nan)  # a layer may have fewer heads than another
    for row in table:
        cells[layers.index(row.layer), row.head] = getattr(row, column)
    ax = new_axes(size(cells.shape)) if ax is None else ax
    image = ax.imshow(cells, cmap=cmap or COLOURS[column], norm=Normalize(0, 1), aspect="equal")
    quiet(ax)
    part_cells(ax, cells.shape)
    label = NAMES[column] if label is None else label
    bars = [add_colour_bar(ax, image, label)] if colorbar else []
    legend = _mark(ax, table, names or {})
    name_axes(ax, xlabel, ylabel, title)
    stand(ax.yaxis.label, "left")
    if legend:
        ax.set_title(title, fontsize=10, color=INK, pad=3 * SIZE)  # above the legend
    families = families_for([xlabel, ylabel, title, label, *legend, *layers])
    label_positions(ax)
    label_tokens(ax, None, [tail(layer) for layer in layers], families)
    make_legible([ax, *bars], families)
    return ax


def _mark(ax: Axes, table: HeadTable, names: Mapping[str, str]) -> list[str]:
    layers, texts = table.layers, list[str]()
    for verdict, style in MARKS.items():
        marked = [row for row in table if row.verdict == verdict]
        if marked:
            texts.append(names.get(verdict, verdict))
            x, y = [row.head for row in marked], [layers.index(row.layer) for row in marked]
            ax.plot(x, y, linestyle="", color=INK, markersize=6.5, label=f"{texts[-1]} ({len(marked)})", **style)
    if texts:
        ax.legend(
            frameon=False, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2, ncols=len(texts),
            fontsize=SIZE, labelcolor=INK, handletextpad=0.1, columnspacing=1.0,
        )  # fmt: skip
    return texts
