"""Heads of a model: layers down, heads across, and a mark on saturated and uniform heads."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize

from regard import analysis
from regard.analysis import HeadTable
from regard.plot._figure import INK, TICK_POINTS
from regard.plot._fonts import families_for, set_families
from regard.plot._head_grid import draw_cells, head_cells, short_layer_name, table_of
from regard.recording import Recording

COLOURS = {"saturation": "Reds", "relative": "Reds_r"}  # the sharper a head, the darker it is
NAMES = {"saturation": "Saturation", "relative": "Entropy / log(visible keys)"}
MARKS: dict[str, dict[str, Any]] = {
    "saturated": {"marker": "o", "markerfacecolor": "white"},
    "uniform": {"marker": "_", "markeredgewidth": 2.0},
    "undefined": {"marker": "x"},
}


def heads(
    table: HeadTable | Recording,
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
    """Draw how sharp every head of a model is: a cell for each head, with marks on saturated and uniform heads.

    table: from `regard.analysis.heads`, or a recording, of which that table is made.
    column: "saturation", or "relative" for the entropy over its maximum; in both a dark cell is nearly one-hot.
    ax: axes to draw on; new ones if left out. cmap: a colour map of matplotlib.
    title, xlabel, ylabel: texts. label: the text beside the colours.
    names: the verdicts in the legend in another language, e.g. {"saturated": "饱和", "uniform": "均匀"}.
    colorbar: whether to draw the scale of colours.

    Returns the axes. A layer with fewer heads than another has no cell for the missing ones.

    >>> import torch
    >>> from regard import analysis, plot
    >>> layer = torch.nn.MultiheadAttention(embed_dim=8, num_heads=2, batch_first=True)
    >>> x = torch.randn(3, 5, 8)
    >>> ax = plot.heads(analysis.heads(layer, x, x, x), xlabel="头", ylabel="层")
    """
    measured: HeadTable = table_of(table, HeadTable, analysis.heads)
    cells, rows = head_cells(measured, column, COLOURS), [short_layer_name(layer) for layer in measured.layers]
    texts = (xlabel, ylabel, title, NAMES[column] if label is None else label)
    ax = draw_cells(cells, rows, ax, cmap or COLOURS[column], Normalize(0, 1), texts, colorbar=colorbar)
    legend = _mark(ax, measured, names or {})
    if legend:
        ax.set_title(title, fontsize=10, color=INK, pad=3 * TICK_POINTS)  # above the legend
    set_families([ax], families_for([*texts, *legend]))
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
            fontsize=TICK_POINTS, labelcolor=INK, handletextpad=0.1, columnspacing=1.0,
        )  # fmt: skip
    return texts
