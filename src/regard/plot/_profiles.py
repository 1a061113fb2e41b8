"""Pictures of what `regard.analysis` finds in a recording."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize

from regard.analysis import MEASURES, CompareTable, ProfileTable, SimilarTable, TokenTable
from regard.errors import ChoiceError, ShapeError
from regard.plot._cells import add_colour_bar, part_cells, size, tail
from regard.plot._figure import name_axes, new_axes, quiet
from regard.plot._fonts import families_for, make_legible
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
    """One measure of every head of a recording, or its change between two: layers down, heads across.

    column: one of `regard.analysis.MEASURES`, for comparisons also "similarity". A head without a number has no colour.

    >>> import torch, regard as rg
    >>> model = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    >>> with torch.no_grad(), rg.record(model) as recording:
    ...     output = model(torch.randn(3, 5, 8))
    >>> ax = rg.plot.profiles(rg.analysis.profiles(recording), "entropy", xlabel="头", ylabel="层")
    """
    changes = isinstance(table, CompareTable)
    offered = ("similarity", *MEASURES) if changes else MEASURES
    if column not in offered:
        raise ChoiceError(f"column is one of {', '.join(offered)}, not {column!r}")
    if not len(table):
        raise ShapeError("there is nothing to draw in a table without heads")
    layers = table.layers
    cells = np.full((len(layers), max(table.column("head")) + 1), np.nan)
    for row in table:
        cells[layers.index(row.layer), row.head] = getattr(row, column)
    signed = changes and column != "similarity"
    if label is None:
        label = NAMES[column] + (", change" if signed else "")
    colours = cmap or ("RdBu_r" if signed else "Reds")
    rows, names = [tail(layer) for layer in layers], (xlabel, ylabel, title, label)
    return _cells(cells, rows, ax, colours, _norm(cells, column, signed), names)


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
    """How alike every two heads of a recording are, heads in the order of `table.heads`.

    >>> import torch, regard as rg
    >>> model = torch.nn.TransformerEncoderLayer(8, 4, 16, batch_first=True).eval()
    >>> with torch.no_grad(), rg.record(model) as recording:
    ...     output = model(torch.randn(3, 5, 8))
    >>> ax = rg.plot.similar(rg.analysis.similar(recording))
    """
    names = [f"{tail(layer)} {head}" for layer, head in table.heads]
    return _cells(table.matrix.numpy(), names, ax, cmap, Normalize(0, 1), (xlabel, ylabel, title, label))


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
    """What `rollout` or `flow` has found after each layer, in the order in which it went through them.

    >>> import torch, regard as rg
    >>> model = torch.nn.TransformerEncoderLayer(8, 4, 16, batch_first=True).eval()
    >>> with torch.no_grad(), rg.record(model) as recording:
    ...     output = model(torch.randn(3, 5, 8))
    >>> ax = rg.plot.depths(rg.analysis.rollout(recording, token=-1))
    """
    cells = table.depths.numpy()
    words = table.column("token") if len(table) == cells.shape[1] and any(table.column("token")) else None
    norm, names = Normalize(0, float(cells.max())), (xlabel, ylabel, title, label)
    return _cells(cells, [tail(name) for name in table.layers], ax, cmap, norm, names, words, "auto")


def _norm(cells: np.ndarray, column: str, signed: bool) -> Normalize:
    most = float(np.nanmax(np.abs(cells))) if np.isfinite(cells).any() else 1.0
    if signed:
        return Normalize(-most or -1, most or 1)
    return Normalize(0, 1) if column in SHARES else Normalize(0, most or 1)


def _cells(
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
    ax = new_axes(size(cells.shape)) if ax is None else ax
    image = ax.imshow(cells, cmap=cmap, norm=norm, aspect=aspect)  # pyright: ignore[reportArgumentType]
    quiet(ax)
    if max(cells.shape) <= 64:
        part_cells(ax, cells.shape)
    bar = add_colour_bar(ax, image, label)
    name_axes(ax, xlabel, ylabel, title)
    families = families_for([*names, *rows, *(columns or ())])
    label_positions(ax)
    label_tokens(ax, columns, rows, families)
    make_legible([ax, bar], families)
    return ax
