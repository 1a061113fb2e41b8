"""What a fit has found, as a table for people."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from regard.regression import NadarayaWatson

DEGREES = {0: "0, local constant", 1: "1, local linear"}
INFINITE = {0: "inf = does not matter", 1: "inf = a straight line"}


def of(model: NadarayaWatson) -> list[Text | Table]:
    """Everything there is to print; for a large table this takes a while."""
    title = Text(f"{target(model)} from {', '.join(features(model))}", style="bold")
    return [title, _widths(model), _facts(model)]


def show(lines: list[Text | Table]) -> None:
    console = Console(highlight=False)
    for line in lines:
        console.print(line)


def features(model: Any) -> list[str]:
    """Names, or x0, x1, ... where the fit was made without."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x{i}" for i in range(model.n_features_in_)] if names is None else [str(name) for name in names]


def target(model: Any) -> str:
    """The name of what is predicted, or y where the fit was made without."""
    names = getattr(model, "target_names_", None)
    return "y" if not names or names[0] is None else str(names[0])


def _widths(model: Any) -> Table:
    table = Table("feature", box=None, padding=(0, 2, 0, 0))
    table.add_column("bandwidth", justify="right")
    table.add_column("")
    for column, (name, width) in enumerate(zip(features(model), model.bandwidth_.tolist(), strict=True)):
        levels = model.categories_.get(column)
        note = ("" if math.isfinite(width) else INFINITE[model.degree]) if levels is None else _lambda(width, levels)
        table.add_row(Text(name), f"{width:.4g}", note)
    return table


def _lambda(width: float, levels: Any) -> str:
    """What the bandwidth of categories says, which is no width."""
    most = (len(levels) - 1) / len(levels)
    meaning = " = does not matter" if width >= most else " = only the same counts" if width == 0 else ""
    return f"lambda ({len(levels)} categories, up to {most:.4g}){meaning}"


def _facts(model: Any) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for name, value in _lines(model):
        table.add_row(name, Text(value))
    return table


def _score(model: Any) -> str:
    try:
        return f"{model.loo_score_:.4f}"
    except ValueError:  # one row alone, or rows out of reach of all others
        return "none: not every row is predicted by the others"


def _lines(model: Any) -> Iterator[tuple[str, str]]:
    yield "points", f"{model.n_samples_fit_:,}"
    yield "kernel", model.kernel
    yield "degree", DEGREES[model.degree]
    yield "R² by leave-one-out", _score(model)
    yield "effective degrees of freedom", f"{model.effective_df():.1f}"
    if hasattr(model, "plan_"):
        yield "plan", str(model.plan_)
