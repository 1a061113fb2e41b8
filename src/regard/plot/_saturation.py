"""Curves of `regard.analysis.saturation`: how scores and weights change as vectors grow longer."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from regard.analysis import SaturationTable
from regard.plot._figure import BLUE, GREY, INK, RED, TICK_POINTS, Picture, open_frame


def saturation(table: SaturationTable) -> Picture:
    """Draw four measurements against d_k, with and without the division by sqrt(d_k).

    table: from `regard.analysis.saturation`. Returns the figure, with panels for the variance of the scores, the
    entropy and the saturation of the weights, and the norm of the softmax Jacobian.

    >>> from regard import analysis, plot
    >>> figure = plot.saturation(analysis.saturation([4, 16, 64], keys=8, queries=5, trials=2))
    """
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
    for rows, colour, name in ((table.unscaled, RED, "$q·k$"), (table.scaled, BLUE, r"$q·k/\sqrt{d_k}$")):
        x, y = rows.column("d_k"), rows.column(column)
        ax.plot(x, y, color=colour, linewidth=1.8, marker="o", markersize=3)
        ax.annotate(name, (x[-1], y[-1]), (6, 0), textcoords="offset points", color=colour, va="center", fontsize=9)
    ax.set_xscale("log", base=2)
    ax.set_title(title, loc="left", fontsize=10, color=INK)
    open_frame(ax)


def _reference(ax: Axes, y: float, text: str) -> None:
    ax.axhline(y, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    place = ax.get_yaxis_transform()
    ax.annotate(text, (0, y), (4, -3), place, textcoords="offset points", color=GREY, va="top", fontsize=TICK_POINTS)
