"""Pictures of the tables of `regard.analysis`: measures of heads, similarity of heads, shares of tokens by layer."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize

from regard import analysis
from regard.analysis import MEASURES, CompareTable, ProfileTable, SimilarTable, TokenTable
from regard.plot._head_grid import draw_cells, head_cells, short_layer_name, table_of
from regard.recording import Recording

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
    table: ProfileTable | CompareTable | Recording,
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

    table: from `regard.analysis.profiles` or `compare`, or a recording, whose profiles are drawn.
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
    measured: ProfileTable | CompareTable = table_of(table, (ProfileTable, CompareTable), analysis.profiles)
    is_comparison = isinstance(measured, CompareTable)
    columns = ("similarity", *MEASURES) if is_comparison else MEASURES
    cells = head_cells(measured, column, columns)
    signed = is_comparison and column != "similarity"
    if label is None:
        label = NAMES[column] + (", change" if signed else "")
    colours = cmap or ("RdBu_r" if signed else "Reds")
    rows, names = [short_layer_name(layer) for layer in measured.layers], (xlabel, ylabel, title, label)
    return draw_cells(cells, rows, ax, colours, _norm(cells, column, signed), names)


def similar(
    table: SimilarTable | Recording,
    *,
    ax: Axes | None = None,
    cmap: str | Colormap = "Reds",
    title: str = "",
    xlabel: str = "Head",
    ylabel: str = "Layer and head",
    label: str = "Similarity",
) -> Axes:
    """Draw the similarity of every two heads of a recording, in the order of `table.heads`.

    table: from `regard.analysis.similar`, or a recording, whose heads are compared. The other arguments are those of
    `profiles`. Returns the axes.

    >>> import torch, regard as rg
    >>> layer = rg.nn.SelfAttention(8, 4)
    >>> with torch.no_grad(), rg.record(layer) as recording:
    ...     output, weights = layer(torch.randn(3, 5, 8))
    >>> ax = rg.plot.similar(rg.analysis.similar(recording))
    """
    compared: SimilarTable = table_of(table, SimilarTable, analysis.similar)
    names = [f"{short_layer_name(layer)} {head}" for layer, head in compared.heads]
    return draw_cells(compared.matrix.numpy(), names, ax, cmap, Normalize(0, 1), (xlabel, ylabel, title, label))


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
    rows, norm = [short_layer_name(layer) for layer in table.layers], Normalize(0, float(cells.max()))
    return draw_cells(cells, rows, ax, cmap, norm, (xlabel, ylabel, title, label), tokens, aspect="auto")


def _norm(cells: np.ndarray, column: str, signed: bool) -> Normalize:
    largest = float(np.nanmax(np.abs(cells))) if np.isfinite(cells).any() else 1.0
    if signed:
        return Normalize(-largest or -1, largest or 1)
    return Normalize(0, 1) if column in SHARES else Normalize(0, largest or 1)
