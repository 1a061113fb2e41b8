"""Reports of `regard fit`: a summary for the terminal, and a picture with a curve for each feature.

A model here is a fitted `regard.NadarayaWatson`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from regard.engine.files import atomic_file
from regard.errors import ChoiceError

DEGREES = {0: "0, local constant", 1: "1, local linear"}
INFINITE_BANDWIDTH = {0: "inf = does not matter", 1: "inf = a straight line"}  # by degree
BAND_LEVEL = 0.95
CURVE_POINTS = 400
PANELS_PER_ROW = 3
PANEL_TITLES = {False: "others at their medians", True: "others at median or mode"}  # by "are there categories?"


def summary(model: Any) -> list[Text | Table]:
    """Return the parts of the summary; the leave-one-out score takes a while for a large table."""
    title = Text(f"{_target_name(model)} from {', '.join(_feature_names(model))}", style="bold")
    return [title, _bandwidth_table(model), _fact_table(model)]


def show(parts: list[Text | Table]) -> None:
    """Print a summary."""
    console = Console(highlight=False)
    for part in parts:
        console.print(part)


def _feature_names(model: Any) -> list[str]:
    """Return the names of the features, or x0, x1, ... if the model was fitted without names."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x{i}" for i in range(model.n_features_in_)] if names is None else [str(name) for name in names]


def _target_name(model: Any) -> str:
    """Return the name of the predicted column, or y if the model was fitted without names."""
    names = getattr(model, "target_names_", None)
    return "y" if not names or names[0] is None else str(names[0])


def _bandwidth_table(model: Any) -> Table:
    table = Table("feature", box=None, padding=(0, 2, 0, 0))
    table.add_column("bandwidth", justify="right")
    table.add_column("")
    for column, (name, bandwidth) in enumerate(zip(_feature_names(model), model.bandwidth_.tolist(), strict=True)):
        categories = model.categories_.get(column)
        if categories is not None:
            note = _smoothing_note(bandwidth, categories)
        else:
            note = "" if math.isfinite(bandwidth) else INFINITE_BANDWIDTH[model.degree]
        table.add_row(Text(name), f"{bandwidth:.4g}", note)
    return table


def _smoothing_note(smoothing: float, categories: Any) -> str:
    """Explain the bandwidth of a categorical feature: the smoothing lambda, from 0 to (c - 1) / c."""
    largest = (len(categories) - 1) / len(categories)
    is_largest, is_smallest = smoothing >= largest, smoothing == 0
    meaning = " = does not matter" if is_largest else " = only the same counts" if is_smallest else ""
    return f"lambda ({len(categories)} categories, up to {largest:.4g}){meaning}"


def _fact_table(model: Any) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for name, value in _facts(model):
        table.add_row(name, Text(value))
    return table


def _facts(model: Any) -> Iterator[tuple[str, str]]:
    yield "points", f"{model.n_samples_fit_:,}"
    yield "kernel", model.kernel
    yield "degree", DEGREES[model.degree]
    yield "R² by leave-one-out", _leave_one_out_score(model)
    yield "effective degrees of freedom", f"{model.effective_df():.1f}"
    if hasattr(model, "plan_"):
        yield "plan", str(model.plan_)


def _leave_one_out_score(model: Any) -> str:
    try:
        return f"{model.loo_score_:.4f}"
    except ValueError:  # a single row, or rows out of reach of all others
        return "none: not every row is predicted by the others"


def check_picture(path: Path) -> None:
    """Refuse, before any work is done, an ending that matplotlib does not know."""
    from regard import plot

    endings = sorted(plot.Picture().canvas.get_supported_filetypes())
    if path.suffix.lower()[1:] not in endings:
        raise ChoiceError(f"{path}: a picture is known by its ending, one of .{', .'.join(endings)}")


def draw(model: Any, path: Path) -> None:
    """Write the picture of a fit: one panel for each feature."""
    from regard import plot

    names = _feature_names(model)
    columns = min(PANELS_PER_ROW, len(names))
    rows = math.ceil(len(names) / columns)
    figure = plot.Picture(figsize=(4.8 if columns == 1 else 3.4 * columns, 3.4 * rows), layout="constrained")
    axes: Any = figure.subplots(rows, columns, squeeze=False)
    for feature, ax in enumerate(axes.flat):
        if feature < len(names):
            _draw_panel(ax, model, feature, names[feature])
        else:
            ax.set_axis_off()
    with atomic_file(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=150)


def _draw_panel(ax: Any, model: Any, feature: int, name: str) -> None:
    """Draw the prediction along one feature; the others stand at their medians, or at their most frequent category."""
    from regard import plot

    data = np.asarray(model.X_)
    column, categories = data[:, feature], model.categories_.get(feature)
    if categories is None:
        curve, levels = np.linspace(column.min(), column.max(), CURVE_POINTS), None
    else:
        curve, levels = np.arange(len(categories), dtype=np.float64), categories.tolist()
    X = np.tile(_typical_row(model, data), (len(curve), 1))
    X[:, feature] = curve
    X = _as_fitted(model, X)
    title = "" if data.shape[1] == 1 else PANEL_TITLES[bool(set(model.categories_) - {feature})]
    texts: Any = {"xlabel": name, "ylabel": _target_name(model), "title": title, "labels": ("", "fit, and 95 % band")}
    band = model.confidence_band(X, level=BAND_LEVEL)
    plot.regression(curve, model.predict(X), train=(column, model.y_), band=band, ax=ax, levels=levels, **texts)


def _typical_row(model: Any, data: np.ndarray) -> np.ndarray:
    row = np.median(data, axis=0)
    for column, categories in model.categories_.items():
        row[column] = np.bincount(data[:, column].astype(int), minlength=len(categories)).argmax()
    return row


def _as_fitted(model: Any, X: np.ndarray) -> Any:
    """Return rows as the model was fitted on: categories instead of codes, and a frame if it knows names."""
    if model.categories_:
        X = X.astype(object)
        for column, categories in model.categories_.items():
            X[:, column] = categories[X[:, column].astype(int)]
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return X
    from pandas import DataFrame

    return DataFrame(X, columns=names)
