"""Heatmaps of weights: queries down, keys across, darker is more."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize, PowerNorm
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from regard.errors import ChoiceError, ShapeError
from regard.plot._figure import GREY, Picture, hide_frame, name_axes, new_axes, to_array
from regard.plot._fonts import families_for, set_families
from regard.plot._labels import Tokens, label_positions, label_tokens
from regard.plot._matrix_part import Head, MatrixPart, from_array, known_labels, select_part

ALL = slice(None)
MAX_ANNOTATED = 400  # cells with a legible number


def show_heatmaps(
    matrices: Any,
    xlabel: str,
    ylabel: str,
    titles: Sequence[str] | None = None,
    figsize: tuple[float, float] = (2.5, 2.5),
    cmap: str | Colormap = "Reds",
) -> Picture:
    """Draw a grid of matrices on one colour scale.

    matrices: a tensor, an array, nested lists or `regard.Weights`, (rows, columns, queries, keys).
    xlabel, ylabel: names of the axes, below the last row and beside the first column.
    titles: one for each column.
    figsize: size of the whole figure in inches.
    cmap: a colour map of matplotlib.

    Returns the figure.

    >>> import torch
    >>> from regard.plot import show_heatmaps
    >>> figure = show_heatmaps(torch.eye(10).reshape(1, 1, 10, 10), xlabel="Keys", ylabel="Queries")
    """
    array = to_array(matrices)
    _check_grid(array, titles)
    rows, columns = array.shape[:2]
    figure = Picture(figsize=figsize, layout="compressed")
    grid: Any = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    norm = Normalize(*_limits(array))
    for i, j in np.ndindex(rows, columns):
        ax = grid[i, j]
        _draw(ax, from_array(array[i, j]), cmap, norm)
        title = str(titles[j]) if titles is not None and i == 0 else ""
        name_axes(ax, xlabel if i == rows - 1 else "", ylabel if j == 0 else "", title)
        ax.label_outer()
        label_positions(ax)
    _add_colour_bar(figure, grid[0, 0].images[0], grid.ravel().tolist(), shrink=0.6)
    set_families(grid.flat, families_for([xlabel, ylabel, *(titles or ())]))
    return figure


def _check_grid(array: np.ndarray, titles: Sequence[str] | None) -> None:
    if array.ndim != 4:
        raise ShapeError(
            "show_heatmaps draws a grid of shape (rows, columns, queries, keys), these matrices have "
            f"{array.ndim} dimensions: {array.shape}. One matrix: matrices[None, None]; a row of them: matrices[None]"
        )
    if 0 in array.shape:
        raise ShapeError(f"there is nothing to draw in matrices of shape {array.shape}")
    if titles is not None and (isinstance(titles, str) or len(titles) != array.shape[1]):
        given = f"the one text {titles!r}" if isinstance(titles, str) else f"{len(titles)} titles"
        raise ShapeError(f"titles has one title for each of the {array.shape[1]} columns, {given} came")


def heatmap(
    weights: Any,
    tokens: Tokens | None = None,
    query_tokens: Tokens | None = None,
    *,
    head: Head | None = None,
    queries: slice = ALL,
    keys: slice = ALL,
    ax: Axes | None = None,
    bins: int = 256,
    pool: str = "mean",
    cmap: str | Colormap = "Reds",
    limits: tuple[float, float] | None = None,
    clip: float = 1.0,
    gamma: float = 1.0,
    title: str = "",
    xlabel: str = "Key",
    ylabel: str = "Query",
    colorbar: bool = True,
    annotate: str | None = None,
) -> Axes:
    """Draw one matrix of weights, or a part of it. A row that sees no key is hatched.

    weights: `regard.Weights`, or a matrix (queries, keys).
    tokens: a label for each key, and also for each query if there are as many. query_tokens: labels of the queries.
    Axes without labels show the tokens that a recording knows of its weights, else positions.
    head: index of the matrix if weights have leading dimensions, e.g. (0, 3); for a batch of one also 3.
    queries, keys: the part to draw, e.g. slice(40_000, 42_000). ax: axes to draw on; new ones if left out.
    bins, pool: up to 512 x 512 every cell is drawn; beyond, cells are pooled ("mean", "max" or "sum"), and the axes
    still count in tokens.
    limits: the weights at the two ends of the colours. clip: without limits, the share of cells below the upper end
    (0.99: one cell in a hundred may be off the scale). gamma: a value below 1 makes small weights visible.
    cmap, colorbar: the colour map, and whether to draw its scale. title, xlabel, ylabel: texts.
    annotate: a format such as ".2f" that writes each number into its cell.

    Returns the axes.

    >>> import torch, regard as rg
    >>> x = torch.randn(4, 8)
    >>> ax = rg.attend(x, x, x).weights.plot(["the", "cat", "sat", "down"])
    """
    if not 0 < clip <= 1:
        raise ChoiceError(f"clip must be a share of the cells, above 0 and up to 1, {clip} came")
    part = select_part(weights, head, queries, keys, bins, pool)
    if query_tokens is None and part.whole[0] == part.whole[1]:
        query_tokens = tokens
    known = known_labels(weights, head)
    tokens = known.key if tokens is None else tokens
    query_tokens = known.query if query_tokens is None else query_tokens
    _check_tokens(part.whole, tokens, query_tokens)
    ax = new_axes((4.8, 4.2)) if ax is None else ax
    low, high = limits or _limits(part.cells, clip)
    image = _draw(ax, part, cmap, Normalize(low, high) if gamma == 1 else PowerNorm(gamma, low, high))
    name_axes(ax, xlabel, ylabel, title)
    if annotate is not None:
        _write_numbers(ax, image, part, annotate)
    if colorbar:
        _add_colour_bar(ax.get_figure(), image, [ax], shrink=0.8)
    families = families_for([xlabel, ylabel, title, *map(str, tokens or ()), *map(str, query_tokens or ())])
    label_positions(ax)
    label_tokens(ax, tokens, query_tokens, families)
    set_families([ax], families)
    return ax


def _check_tokens(shape: tuple[int, int], tokens: Tokens | None, query_tokens: Tokens | None) -> None:
    n, m = shape
    for name, labels, count, what in (("tokens", tokens, m, "keys"), ("query_tokens", query_tokens, n, "queries")):
        if labels is not None and len(labels) != count:
            raise ShapeError(
                f"{name} must have one label for each of the {count} {what}, {len(labels)} came (weights {shape})"
            )


def _limits(array: np.ndarray, clip: float = 1.0) -> tuple[float, float]:
    """Return the ends of the colour scale: from 0, or from the smallest number if that is negative."""
    finite = array[np.isfinite(array)]
    low, high = (float(finite.min()), float(np.quantile(finite, clip))) if finite.size else (0.0, 1.0)
    low = min(low, 0.0)
    return (low, high) if high > low else (low, low + 1.0)


def _draw(ax: Axes, part: MatrixPart, cmap: str | Colormap, norm: Normalize) -> AxesImage:
    (top, bottom), (left, right) = part.queries, part.keys
    n, m = bottom - top, right - left
    aspect = "equal" if max(n, m) <= 4 * min(n, m) else "auto"
    # NaN in grey: the lightest colour would read as 0.
    colours = (colormaps[cmap] if isinstance(cmap, str) else cmap).with_extremes(bad="0.75")
    # The axes count tokens, also if cells are pooled into bins.
    extent = (left - 0.5, right - 0.5, bottom - 0.5, top - 0.5)
    image = ax.imshow(part.cells, cmap=colours, norm=norm, extent=extent, aspect=aspect)
    for start, stop in part.empty:
        ax.axhspan(start - 0.5, stop - 0.5, facecolor="none", edgecolor=GREY, hatch="////", linewidth=0, zorder=2)
    hide_frame(ax)
    return image


def _write_numbers(ax: Axes, image: AxesImage, part: MatrixPart, number_format: str) -> None:
    n, m = part.cells.shape
    if n * m > MAX_ANNOTATED:
        raise ShapeError(f"numbers are legible in up to {MAX_ANNOTATED} cells, this picture has {n} x {m}")
    for (i, j), number in np.ndenumerate(part.cells):
        red, green, blue, _ = (channel**2.2 for channel in image.cmap(image.norm(number)))
        colour = "white" if 0.21 * red + 0.72 * green + 0.07 * blue < 0.18 else "0.1"
        x, y = part.keys[0] + j, part.queries[0] + i
        ax.text(x, y, format(number, number_format), ha="center", va="center", fontsize=8, color=colour)


def _add_colour_bar(figure: Any, image: AxesImage, axes: list[Axes], shrink: float) -> None:
    cells: Any = image.get_array()
    extend = "max" if cells.max() > image.norm.vmax else "neither"
    bar = figure.colorbar(image, ax=axes, shrink=shrink, aspect=24, pad=0.03, extend=extend)
    bar.outline.set_visible(False)
    bar.locator = MaxNLocator(5)
    hide_frame(bar.ax)
