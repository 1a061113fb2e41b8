"""Reports of `regard fit`: a summary for the terminal, and a picture with a curve for each feature.

A model here is a fitted `regard.NadarayaWatson`.
"""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from regard.cli.console import printable
from regard.cli.tables.columns import Preparation
from regard.engine.files import atomic_file
from regard.errors import ChoiceError, MissingExtraError

BAND_LEVEL = 0.95
CURVE_POINTS = 400
PANELS_PER_ROW = 3
PICTURES = (".png", ".svg", ".pdf", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".eps", ".ps", ".svgz")
LABELS = {
    "en": {
        "title": "{y} by {x}",
        "medians": "others at their medians",
        "modes": "others at median or mode",
        "fit": "fit, and 95 % band",
    },
    "zh": {
        "title": "{y} 随 {x} 的变化",
        "medians": "其他特征取中位数",
        "modes": "其他特征取中位数或众数",
        "fit": "拟合与 95% 置信带",
    },
}


def show(summary: Any) -> None:
    """Print the summary of a model: title, bandwidths, facts."""
    console = Console(highlight=False)
    console.print(Text(printable(summary.title), style="bold"))
    bandwidths = Table("feature", box=None, padding=(0, 2, 0, 0))
    bandwidths.add_column("bandwidth", justify="right")
    bandwidths.add_column("")
    for name, bandwidth, meaning in summary.features:
        bandwidths.add_row(Text(printable(name)), f"{bandwidth:.4g}", meaning)
    facts = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for name, value in summary.facts().items():
        facts.add_row(name, Text(value))
    console.print(bandwidths)
    console.print(facts)


def check_picture(path: Path) -> None:
    """Refuse, before any work is done, an ending that is no picture; without matplotlib, say what to install."""
    if path.suffix.lower() not in PICTURES:
        raise ChoiceError(f"{path}: a picture is known by its ending, one of {', '.join(PICTURES)}")
    if find_spec("matplotlib") is None:
        raise MissingExtraError(
            "a picture is drawn with matplotlib, which is not installed: pip install 'regard[plot]'"
        )


def draw(model: Any, summary: Any, path: Path, lang: str) -> None:
    """Write the picture of a fit: one panel for each feature."""
    from regard import plot

    names = [row.feature for row in summary.features]
    columns = min(PANELS_PER_ROW, len(names))
    rows = math.ceil(len(names) / columns)
    figure = plot.Picture(figsize=(4.8 if columns == 1 else 3.4 * columns, 3.4 * rows), layout="constrained")
    axes: Any = figure.subplots(rows, columns, squeeze=False)
    for feature, ax in enumerate(axes.flat):
        if feature < len(names):
            _draw_panel(ax, model, feature, LABELS[lang], (names[feature], summary.target))
        else:
            ax.set_axis_off()
    with atomic_file(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=150)


def _draw_panel(ax: Any, model: Any, feature: int, labels: dict[str, str], names: tuple[str, str]) -> None:
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
    x, y = names
    others = "" if data.shape[1] == 1 else "\n" + labels["modes" if set(model.categories_) - {feature} else "medians"]
    title = labels["title"].format(y=y, x=x) + others
    prediction, band = model.predict(X), model.confidence_band(X, level=BAND_LEVEL)
    texts: Any = {"xlabel": x, "ylabel": y, "title": title, "labels": ("", labels["fit"])}
    ylim = _y_limits(prediction, model.y_)
    plot.regression(curve, prediction, train=(column, model.y_), band=band, ax=ax, levels=levels, ylim=ylim, **texts)
    if x in _date_features(model):
        ax.xaxis_date()  # matplotlib too counts days since 1970-01-01
        ax.tick_params(axis="x", labelrotation=30)


def _y_limits(*shown: np.ndarray) -> tuple[float, float]:
    """Limits that show the points and the curve, with room for the legend; far from the points a band has no end."""
    low, high = min(map(np.nanmin, shown)), max(map(np.nanmax, shown))
    span = (high - low) or 1.0
    return float(low - 0.05 * span), float(high + 0.2 * span)


def _date_features(model: Any) -> list[str]:
    """Return the features that are dates, as days since 1970-01-01."""
    stored = getattr(model, "preparation_", None)
    preparation = None if stored is None else Preparation.from_json(stored)
    if preparation is None or preparation.dates != "days":
        return []
    return [column.name for column in preparation.columns if column.kind == "date"]


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
