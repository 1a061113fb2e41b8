"""Curves: a fitted regression, and what happens to attention as vectors grow."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from regard.errors import ShapeError
from regard.plot._figure import FAINT, INK, SIZE, Picture, name_axes, new_axes, numbers
from regard.plot._fonts import families_for, make_legible
from regard.study import SaturationTable

RED, BLUE = "#c0282d", "#2f6db3"


def regression(
    x: Any,
    prediction: Any,
    *,
    truth: Any = None,
    train: tuple[Any, Any] | None = None,
    band: tuple[Any, Any] | None = None,
    ax: Axes | None = None,
    title: str = "",
    xlim: tuple[float, float] = (0, 5),
    ylim: tuple[float, float] = (-1, 5),
) -> Axes:
    """A fitted curve ("Pred"), the curve it should be ("Truth"), and dots for the training points.

    x, prediction, truth: (queries,); train: x and y, (keys,) each; band: the lower and the upper end of an uncertainty.
    """
    ax = new_axes((4.8, 3.4)) if ax is None else ax
    points = _line("x", x)
    if train is not None:
        dots = _line("train[0]", train[0])
        ax.plot(dots, _line("train[1]", train[1], dots), "o", color=BLUE, alpha=0.45, markersize=4, mew=0)
    if truth is not None:
        ax.plot(points, _line("truth", truth, points), color=INK, linewidth=1.4, linestyle=(0, (4, 2)), label="Truth")
    if band is not None:
        low, high = (_line("band", edge, points) for edge in band)
        ax.fill_between(points, low, high, color=RED, alpha=0.15, linewidth=0)
    ax.plot(points, _line("prediction", prediction, points), color=RED, linewidth=2, label="Pred")
    ax.set(xlim=xlim, ylim=ylim)
    ax.legend(frameon=False, loc="upper right", fontsize=SIZE, labelcolor=INK)
    name_axes(ax, "x", "y", title)
    _open(ax)
    make_legible([ax], families_for([title]))
    return ax


def _line(name: str, values: Any, like: np.ndarray | None = None) -> np.ndarray:
    array = numbers(values)
    line = array.reshape(-1) if array.shape.count(1) >= array.ndim - 1 else array
    if line.ndim != 1 or (like is not None and line.shape != like.shape):
        wanted = "one number for each point" if like is None else f"one number for each of the {len(like)} points"
        raise ShapeError(f"{name} must hold {wanted}, its shape is {array.shape}")
    return line


def saturation(table: SaturationTable) -> Picture:
    """The measurements of `regard.study.saturation` against d_k, with and without the division by sqrt(d_k)."""
    figure = Picture(figsize=(8, 5.6), layout="constrained")
    axes: Any = figure.subplots(2, 2, sharex=True)
    (variance, entropy), (sharpness, jacobian) = axes
    _panel(variance, table, "variance", "Variance of the scores")
    _panel(entropy, table, "entropy", "Entropy of the weights (nats)")
    _panel(sharpness, table, "saturation", "Saturation: sum of the squared weights")
    _panel(jacobian, table, "jacobian", "Norm of the softmax Jacobian")
    variance.set_yscale("log")
    variance.yaxis.set_minor_locator(NullLocator())
    entropy.set_ylim(0, 1.08 * max(np.log(table.keys), 0.1))
    sharpness.set_ylim(0, 1.04)
    jacobian.set_ylim(0)
    _reference(entropy, float(np.log(table.keys)), f"uniform over {table.keys} keys")
    _reference(sharpness, 1.0, "one-hot")
    for ax in (sharpness, jacobian):
        ax.set_xlabel("$d_k$, the length of queries and keys", color=INK, fontsize=9)
    return figure


def _panel(ax: Axes, table: SaturationTable, column: str, title: str) -> None:
    for part, colour, name in ((table.unscaled, RED, "$q·k$"), (table.scaled, BLUE, r"$q·k/\sqrt{d_k}$")):
        x, y = part.column("d_k"), part.column(column)
        ax.plot(x, y, color=colour, linewidth=1.8, marker="o", markersize=3)
        ax.annotate(name, (x[-1], y[-1]), (6, 0), textcoords="offset points", color=colour, va="center", fontsize=9)
    ax.set_xscale("log", base=2)
    ax.set_title(title, loc="left", fontsize=10, color=INK)
    _open(ax)


def _reference(ax: Axes, y: float, text: str) -> None:
    ax.axhline(y, color=FAINT, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    place = ax.get_yaxis_transform()
    ax.annotate(text, (0, y), (4, -3), place, textcoords="offset points", color=FAINT, va="top", fontsize=SIZE)


def _open(ax: Axes) -> None:
    """Two sides instead of a box."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(labelsize=SIZE, labelcolor=INK, color=FAINT)
