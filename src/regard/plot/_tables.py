"""Pictures of the tables of `regard.analysis`: measures of heads, similarity of heads, shares of tokens by layer."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize

from regard.analysis import MEASURES, CompareTable, ProfileTable, SimilarTable, TokenTable
from regard.errors import ChoiceError, ShapeError
from regard.plot._figure import hide_frame, name_axes, new_axes
from regard.plot._fonts import families_for, set_families
from regard.plot._head_grid import add_colour_bar, draw_cell_borders, figure_size, head_cells, short_layer_name
from regard.plot._labels import label_positions, label_tokens

SHARES = ("saturation", "first", "previous", "itself", "separators", "similarity")  # from 0 to 1
NAMES = {
    "entropy": "Entropy, nats",
    "saturation": "Saturation",
    "distance": "Mean distance, tokens",
    "first": "Share on the first token",
    "previous": "Share on the previous token",
    "itself": "Share on itself",
    "separators": "Share on separators",
    "similarity": "Similarity",
}


def profiles(
    table: ProfileTable | CompareTable,
    column: str = "first",
    *,
    ax: Axes | None = None,
    cmap: str | Colormap | None = None,
    title: str = "",
    xlabel: str = "Head",
    ylabel: str = "Layer",
    label: str | None = None,
) -> Axes:
    """Draw one measure of every head of a recording, or its change between two: layers down, heads across.

    table: from `regard.analysis.profiles` or `compare`.
    column: one of `regard.analysis.MEASURES`; for a comparison also "similarity".
    ax: axes to draw on; new ones if left out. cmap: a colour map of matplotlib.
    title, xlabel, ylabel: texts. label: the text beside the colours.

    Returns the axes. A head without a number has no colour.

    >>> import torch, regard as rg
    >>> model = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    >>> with torch.no_grad(), rg.record(model) as recording:
    ...     output = model(torch.randn(3, 5, 8))
    >>> ax = rg.plot.profiles(rg.analysis.profiles(recording), "entropy", xlabel="头", ylabel="层")
    """
    is_comparison = isinstance(table, CompareTable)
    columns = ("similarity", *MEASURES) if is_comparison else MEASURES
    if column not in columns:
        raise ChoiceError(f"column is one of {', '.join(columns)}, not {column!r}")
    if not len(table):
        raise ShapeError("there is nothing to draw in a table without heads")
    layers = table.layers
    cells = head_cells(table, layers, column)
    signed = is_comparison and column != "similarity"
    if label is None:
        label = NAMES[column] + (", change" if signed else "")
    colours = cmap or ("RdBu_r" if signed else "Reds")
    rows, names = [short_layer_name(layer) for layer in layers], (xlabel, ylabel, title, label)
    return _draw(cells, rows, ax, colours, _norm(cells, column, signed), names)


def similar(
    table: SimilarTable,
    *,
    ax: Axes | None = None,
    cmap: str | Colormap = "Reds",
    title: str = "",
    xlabel: str = "Head",
    ylabel: str = "Layer and head",
    label: str = "Similarity",
) -> Axes:
    """Draw the similarity of every two heads of a recording, in the order of `table.heads`.

    table: from `regard.analysis.similar`. The other arguments are those of `profiles`. Returns the axes.

    >>> import torch, regard as rg
    >>> layer = rg.nn.SelfAttention(8, 4)
    >>> with torch.no_grad(), rg.record(layer) as recording:
    ...     output, weights = layer(torch.randn(3, 5, 8))
    >>> ax = rg.plot.similar(rg.analysis.similar(recording))
    """
    names = [f"{short_layer_name(layer)} {head}" for layer, head in table.heads]
    return _draw(table.matrix.numpy(), names, ax, cmap, Normalize(0, 1), (xlabel, ylabel, title, label))


def depths(
    table: TokenTable,
    *,
    ax: Axes | None = None,
    cmap: str | Colormap = "Reds",
    title: str = "",
    xlabel: str = "Token",
    ylabel: str = "Layer",
    label: str = "Share",
) -> Axes:
    """Draw the share of each token after each layer, in the order of the computation.

    table: from `regard.analysis.rollout` or `flow`. The other arguments are those of `profiles`. Returns the axes.

    >>> import torch, regard as rg
    >>> model = torch.nn.TransformerEncoderLayer(8, 4, 16, batch_first=True).eval()
    >>> with torch.no_grad(), rg.record(model) as recording:
    ...     output = model(torch.randn(3, 5, 8))
    >>> ax = rg.plot.depths(rg.analysis.rollout(recording, token=-1))
    """
    cells = table.depths.numpy()
    tokens = table.column("token") if len(table) == cells.shape[1] and any(table.column("token")) else None
    norm, names = Normalize(0, float(cells.max())), (xlabel, ylabel, title, label)
    return _draw(cells, [short_layer_name(name) for name in table.layers], ax, cmap, norm, names, tokens, "auto")


def _norm(cells: np.ndarray, column: str, signed: bool) -> Normalize:
    largest = float(np.nanmax(np.abs(cells))) if np.isfinite(cells).any() else 1.0
    if signed:
        return Normalize(-largest or -1, largest or 1)
    return Normalize(0, 1) if column in SHARES else Normalize(0, largest or 1)


def _draw(
    cells: np.ndarray,
    rows: Sequence[str],
    ax: Axes | None,
    cmap: str | Colormap,
    norm: Normalize,
    names: tuple[str, str, str, str],
    columns: Sequence[str] | None = None,
    aspect: str = "equal",
) -> Axes:
    xlabel, ylabel, title, label = names
    ax = new_axes(figure_size(cells.shape)) if ax is None else ax
    image = ax.imshow(cells, cmap=cmap, norm=norm, aspect=aspect)  # pyright: ignore[reportArgumentType]
    hide_frame(ax)
    if max(cells.shape) <= 64:
        draw_cell_borders(ax, cells.shape)
    bar = add_colour_bar(ax, image, label)
    name_axes(ax, xlabel, ylabel, title)
    families = families_for([*names, *rows, *(columns or ())])
    label_positions(ax)
    label_tokens(ax, columns, rows, families)
    set_families([ax, bar], families)
    return ax
