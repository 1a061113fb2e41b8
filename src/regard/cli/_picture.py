"""The picture of a fit: a curve for each feature."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard import plot
from regard.cli._summary import features, target
from regard.engine.files import whole_file
from regard.errors import ChoiceError

if TYPE_CHECKING:
    from regard.regression import NadarayaWatson

LEVEL, POINTS, ACROSS = 0.95, 400, 3
MIDDLE = {False: "others at their medians", True: "others at median or mode"}


def check(path: Path) -> None:
    """Refuse an ending that matplotlib does not know, before any work is done."""
    offered = sorted(plot.Picture().canvas.get_supported_filetypes())
    if path.suffix.lower()[1:] not in offered:
        raise ChoiceError(f"{path}: a picture is known by its ending, one of .{', .'.join(offered)}")


def draw(model: NadarayaWatson, path: Path) -> None:
    """Write the picture, all of it or nothing."""
    names = features(model)
    across = min(ACROSS, len(names))
    down = math.ceil(len(names) / across)
    figure = plot.Picture(figsize=(4.8 if across == 1 else 3.4 * across, 3.4 * down), layout="constrained")
    axes: Any = figure.subplots(down, across, squeeze=False)
    for feature, ax in enumerate(axes.flat):
        if feature < len(names):
            _panel(ax, model, feature, names[feature])
        else:
            ax.set_axis_off()
    with whole_file(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=150)


def _panel(ax: Any, model: Any, feature: int, name: str) -> None:
    """The prediction along one feature; the others stand at their medians, or at their most frequent category."""
    data = np.asarray(model.X_)
    levels = model.categories_.get(feature)
    line = _along(data[:, feature]) if levels is None else np.arange(len(levels), dtype=np.float64)
    X = np.tile(_middle(model, data), (len(line), 1))
    X[:, feature] = line
    X = table(model, X)
    dots, band = (data[:, feature], model.y_), model.confidence_band(X, level=LEVEL)
    title = "" if data.shape[1] == 1 else MIDDLE[bool(set(model.categories_) - {feature})]
    texts: Any = {"xlabel": name, "ylabel": target(model), "title": title, "labels": ("", "fit, and 95 % band")}
    names = None if levels is None else levels.tolist()
    plot.regression(line, model.predict(X), train=dots, band=band, ax=ax, levels=names, **texts)


def _along(values: np.ndarray) -> np.ndarray:
    return np.linspace(values.min(), values.max(), POINTS)


def _middle(model: Any, data: np.ndarray) -> np.ndarray:
    middle = np.median(data, axis=0)
    for column, levels in model.categories_.items():
        middle[column] = np.bincount(data[:, column].astype(int), minlength=len(levels)).argmax()
    return middle


def table(model: Any, X: np.ndarray) -> Any:
    """With categories for their numbers, and the names of the features where the fit knows them: it would miss them."""
    if model.categories_:
        X = X.astype(object)
        for column, levels in model.categories_.items():
            X[:, column] = levels[X[:, column].astype(int)]
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return X
    from pandas import DataFrame

    return DataFrame(X, columns=names)
