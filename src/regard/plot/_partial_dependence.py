"""Partial dependence of any scikit-learn estimator: its mean prediction as one feature varies."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from regard.errors import ChoiceError, MissingExtraError
from regard.plot._figure import BLUE, INK, RED, TICK_POINTS, Picture, name_axes, open_frame
from regard.plot._fonts import families_for, set_families

PANELS_PER_ROW = 3
MAX_LINES = 50  # rows whose own curve is drawn
NUMERIC_KINDS = "biuf"


def partial_dependence(
    model: Any,
    X: Any,
    features: Sequence[Any] | None = None,
    *,
    rows: int | None = 1_000,
    grid: int = 50,
    ylabel: str = "Partial dependence",
    labels: tuple[str, str] = ("mean", "single rows"),
) -> Picture:
    """Draw the mean prediction over the rows of X as one feature varies, and the curves of single rows (ICE).

    It is computed by `sklearn.inspection.partial_dependence`, so that it means what it means there; any regressor will
    do. model: fitted. X (n, features): the rows to average over, as `predict` takes them.
    features: their names or positions; all if left out. Each has a panel; a column of categories has a mark for each.
    rows: at most so many rows of X are used, evenly spread; None takes all. grid: points of a curve, from the 5th to
    the 95th percentile. ylabel, labels: texts.

    Returns the figure.

    >>> import numpy as np, regard as rg
    >>> X = np.random.default_rng(0).uniform(size=(60, 2))
    >>> model = rg.NadarayaWatson(bandwidth=0.2).fit(X, X[:, 0] ** 2)
    >>> figure = rg.plot.partial_dependence(model, X, [0])
    """
    columns = [str(name) for name in getattr(X, "columns", [f"x{i}" for i in range(np.shape(X)[1])])]
    chosen = [_position(feature, columns) for feature in (range(len(columns)) if features is None else features)]
    if not chosen:
        raise ChoiceError(f"features names no column; there are {', '.join(columns)}")
    X = _spread_rows(X, rows)
    across = min(PANELS_PER_ROW, len(chosen))
    down = math.ceil(len(chosen) / across)
    figure = Picture(figsize=(4.8 if across == 1 else 3.4 * across, 3.4 * down), layout="constrained")
    axes: Any = figure.subplots(down, across, squeeze=False, sharey=True)
    for ax in axes.flat[len(chosen) :]:
        ax.set_axis_off()
    for ax, column in zip(axes.flat, chosen, strict=False):
        _draw_panel(ax, model, X, column, grid, labels)
        name_axes(ax, columns[column], ylabel if ax.get_subplotspec().is_first_col() else "", "")
        open_frame(ax)
    axes.flat[0].legend(frameon=False, fontsize=TICK_POINTS, labelcolor=INK)
    ticks = [text.get_text() for ax in axes.flat for text in ax.get_xticklabels()]
    set_families(axes.flat, families_for([ylabel, *labels, *columns, *ticks]))
    return figure


def _position(feature: Any, columns: list[str]) -> int:
    if isinstance(feature, str) and feature in columns:
        return columns.index(feature)
    if isinstance(feature, int | np.integer) and -len(columns) <= feature < len(columns):
        return int(feature) % len(columns)
    raise ChoiceError(
        f"features holds {feature!r}, which is none of the columns {', '.join(columns)}; two features at once are "
        "drawn by sklearn.inspection.PartialDependenceDisplay"
    )


def _spread_rows(X: Any, rows: int | None) -> Any:
    """Return at most so many rows, evenly spread over the table."""
    if not hasattr(X, "iloc"):
        X = np.asarray(X)
    if rows is None or len(X) <= rows:
        return X
    places = np.linspace(0, len(X) - 1, rows).astype(int)
    return X.iloc[places] if hasattr(X, "iloc") else X[places]


def _draw_panel(ax: Axes, model: Any, X: Any, column: int, grid: int, labels: tuple[str, str]) -> None:
    try:
        from sklearn.inspection import partial_dependence as compute
    except ImportError as missing:
        raise MissingExtraError("partial dependence needs scikit-learn: pip install 'regard[regression]'") from missing

    categories = _categorical(model, X)
    result = compute(model, X, [column], kind="both", grid_resolution=grid, categorical_features=categories or None)
    x, mean, lines = result["grid_values"][0], result["average"][0], result["individual"][0]
    lines = lines[:: max(1, math.ceil(len(lines) / MAX_LINES))]
    if column in categories:
        ticks = [str(level) for level in x]
        x = np.arange(len(x))
        ax.plot(np.tile(x, (len(lines), 1)).T, lines.T, "_", color=BLUE, alpha=0.3, markersize=14)
        ax.plot(x, mean, "o", color=RED, markersize=7, label=labels[0])
        ax.set_xticks(x, ticks)
        ax.set_xlim(-0.5, len(x) - 0.5)
    else:
        ax.plot(x, lines.T, color=BLUE, alpha=0.25, linewidth=0.7)
        ax.plot(x, mean, color=RED, linewidth=2, label=labels[0])
    ax.plot([], [], color=BLUE, alpha=0.5, linewidth=0.7, label=labels[1])


def _categorical(model: Any, X: Any) -> list[int]:
    """Return the columns of categories: those that the estimator knows, and those that hold no numbers."""
    known = getattr(model, "categories_", None)
    columns = set(known) if isinstance(known, dict) else set()
    for column in range(np.shape(X)[1]):
        values = X.iloc[:, column] if hasattr(X, "iloc") else np.asarray(X[:, column])
        if values.dtype.kind not in NUMERIC_KINDS and not _all_numbers(values):
            columns.add(column)
    return sorted(columns)


def _all_numbers(values: Any) -> bool:
    return all(isinstance(value, int | float) for value in values)
