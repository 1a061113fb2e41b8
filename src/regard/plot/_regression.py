"""A fitted curve with its training points, the true curve and a confidence band."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, LogNorm

from regard.errors import ChoiceError, ShapeError
from regard.plot._figure import BLUE, GREY, INK, RED, TICK_POINTS, name_axes, new_axes, open_frame, to_array
from regard.plot._fonts import families_for, set_families

Limits = tuple[float, float]
CURVE_POINTS = 400  # of a curve over the data of an estimator
MANY_DOTS = 2_000  # more dots are drawn smaller, so that they do not cover each other
DENSE_DOTS = 20_000  # more dots would be one blue area: their density is drawn instead
DENSITY_BINS = (160, 110)  # cells along x and y
FEW_VALUES = 50  # of x, such as categories or numbers of rooms
JITTER = 0.25  # largest horizontal shift of the dots of a category: on one line they would hide each other
DENSITY_COLOURS = LinearSegmentedColormap.from_list("density", ["#dce8f5", BLUE, "#12325a"])
GOLDEN_RATIO = (5**0.5 - 1) / 2  # golden ratio: its multiples modulo 1 fill [0, 1) evenly for any number of dots


class Curve(NamedTuple):
    """Everything that is drawn."""

    x: np.ndarray
    prediction: np.ndarray
    truth: np.ndarray | None
    band: tuple[np.ndarray, np.ndarray] | None
    dots: tuple[np.ndarray, np.ndarray] | None
    name: str  # of the feature
    levels: Sequence[Any] | None = None  # names of categories; x then holds their numbers


def regression(
    x: Any,
    prediction: Any = None,
    *,
    truth: Any = None,
    train: tuple[Any, Any] | None = None,
    band: tuple[Any, Any] | float | None = None,
    ax: Axes | None = None,
    title: str = "",
    xlabel: str | None = None,
    ylabel: str = "y",
    labels: tuple[str, str] = ("Truth", "Pred"),
    xlim: Limits | None = None,
    ylim: Limits | None = None,
    levels: Sequence[Any] | None = None,
) -> Axes:
    """Draw a fitted curve ("Pred"), the true curve ("Truth") and dots for the training points.

    From arrays: x and prediction are (queries,); truth is (queries,) or a function of x; train is a pair of x and y,
    (keys,) each; band is a pair of lower and upper ends, (queries,) each.
    From a fitted estimator of one feature: `regression(model)` draws its curve over its own data, and
    `regression(x, model)` its curve at x; band=0.95 draws its `confidence_band`. If the feature is categorical, x and
    train hold categories, and each category has a mark.
    levels: names of categories, if x holds their numbers 0, 1, ...; each has a mark, and no line joins them.
    labels: names of the two curves in the legend. xlim, ylim: limits of the axes; None shows everything.
    More than 20,000 training points are drawn as their density: the bar says how many points a cell holds.
    title, xlabel, ylabel: texts. ax: axes to draw on; new ones if left out.

    Returns the axes.

    >>> import torch
    >>> from regard import plot
    >>> x = torch.linspace(0, 5, 50)
    >>> ax = plot.regression(x, x.sin(), truth=x.cos(), train=([1, 2], [0.8, 0.9]), xlim=(0, 5), ylim=(-1, 5))
    """
    curve = _curve_of(x, prediction, truth, train, band)
    levels = curve.levels if levels is None else levels
    names = [] if levels is None else [_level_name(level) for level in levels]
    ax = new_axes((4.8, 3.4)) if ax is None else ax
    _draw_dots(ax, curve, jitter=levels is not None)
    if levels is None:
        _draw_curves(ax, curve, labels)
    else:
        _draw_marks(ax, curve, labels)
        ax.set_xticks(range(len(names)), names)
    ax.set(xlim=xlim, ylim=ylim)
    has_many_dots = curve.dots is not None and len(curve.dots[0]) > MANY_DOTS
    place = "upper right" if ylim or has_many_dots else "best"  # "best" is slow for many dots
    ax.legend(frameon=False, loc=place, fontsize=TICK_POINTS, labelcolor=INK)
    name_axes(ax, curve.name if xlabel is None else xlabel, ylabel, title)
    open_frame(ax)
    set_families([ax], families_for([title, ax.get_xlabel(), ylabel, *labels, *names]))
    return ax


def _curve_of(x: Any, prediction: Any, truth: Any, train: Any, band: Any) -> Curve:
    if _is_model(x) and prediction is None:
        return _from_model(x, None, truth, train, band)
    if _is_model(prediction):
        return _from_model(prediction, x, truth, train, band)
    if prediction is None:
        raise ChoiceError("regression draws x with a prediction, or a fitted estimator: only x came")
    return _from_arrays(_line("x", x), prediction, truth, train, band, "x")


def _from_arrays(x: np.ndarray, prediction: Any, truth: Any, train: Any, band: Any, name: str) -> Curve:
    if isinstance(band, float | int):
        raise ChoiceError(
            f"band={band} asks an estimator how sure it is; numbers need both ends of the band: band=(low, high)"
        )
    order = np.argsort(x, kind="stable")  # a line must go through its points from left to right

    def sort(what: str, values: Any) -> np.ndarray:
        return _line(what, values, x)[order]

    truth_values = None if truth is None else sort("truth", truth(x) if isinstance(truth, Callable) else truth)
    edges = None if band is None else (sort("band[0]", band[0]), sort("band[1]", band[1]))
    return Curve(x[order], sort("prediction", prediction), truth_values, edges, _dots(train), name)


def _from_model(model: Any, x: Any, truth: Any, train: Any, band: Any) -> Curve:
    """Return the curve of a fitted estimator with `predict`, by scikit-learn's conventions."""
    features = getattr(model, "n_features_in_", 1)
    if features != 1:
        raise ShapeError(f"a curve has one feature, {type(model).__name__} was fitted on {features}")
    name = str(next(iter(getattr(model, "feature_names_in_", ("x",)))))
    levels = _categories(model)
    if levels is not None:
        return _from_categories(model, levels, x, truth, train, band)._replace(name=name)
    if train is None and hasattr(model, "X_"):
        train = model.X_, model.y_
    x = _grid(train) if x is None else _line("x", x)
    return _from_arrays(x, _call_without_names(model.predict, x), truth, train, _band_of(model, x, band), name)


def _categories(model: Any) -> np.ndarray | None:
    """Return the categories of the one feature, or None if it is numeric."""
    categories = getattr(model, "categories_", None)
    return categories.get(0) if isinstance(categories, dict) else None


def _from_categories(model: Any, levels: np.ndarray, x: Any, truth: Any, train: Any, band: Any) -> Curve:
    """Return the curve of a categorical feature: the model predicts categories, their numbers are drawn."""
    numbers = np.arange(len(levels)) if x is None else _level_numbers("x", x, levels)
    if train is not None:
        dots = _level_numbers("train[0]", train[0], levels), train[1]
    else:
        dots = (model.X_, model.y_) if hasattr(model, "X_") else None
    x = levels[numbers]
    truth_values = truth(x) if isinstance(truth, Callable) else truth
    curve = _from_arrays(
        numbers, _call_without_names(model.predict, x), truth_values, dots, _band_of(model, x, band), ""
    )
    return curve._replace(levels=levels.tolist())


def _level_numbers(what: str, values: Any, levels: np.ndarray) -> np.ndarray:
    """Return the number of each category."""
    categories = np.asarray(values).reshape(-1).tolist()
    numbers = {level: number for number, level in enumerate(levels.tolist())}
    unknown = [value for value in categories if value not in numbers]
    if unknown:
        raise ChoiceError(
            f"{what} holds {unknown[0]!r}, which is none of the categories that were fitted: "
            f"{', '.join(map(_level_name, numbers))}"
        )
    return np.array([numbers[value] for value in categories], dtype=int)


def _call_without_names(method: Callable[..., Any], x: np.ndarray, **options: Any) -> Any:
    """Call a method of an estimator with one column, which needs no name."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return method(x[:, None], **options)


def _band_of(model: Any, x: np.ndarray, band: Any) -> Any:
    return _call_without_names(model.confidence_band, x, level=float(band)) if isinstance(band, float | int) else band


def _level_name(level: object) -> str:
    return f"{level:g}" if isinstance(level, float) else str(level)


def _is_model(thing: Any) -> bool:
    return hasattr(thing, "predict")


def _grid(train: Any) -> np.ndarray:
    if train is None:
        raise ChoiceError("the estimator does not hold its data: say where to draw it, regression(x, model)")
    x = _line("train[0]", train[0])
    return np.linspace(x.min(), x.max(), CURVE_POINTS)


def _dots(train: Any) -> tuple[np.ndarray, np.ndarray] | None:
    if train is None:
        return None
    x = _line("train[0]", train[0])
    return x, _line("train[1]", train[1], x)


def _draw_curves(ax: Axes, curve: Curve, labels: tuple[str, str]) -> None:
    if curve.truth is not None:
        ax.plot(curve.x, curve.truth, color=INK, linewidth=1.4, linestyle=(0, (4, 2)), label=labels[0])
    if curve.band is not None:
        ax.fill_between(curve.x, *curve.band, color=RED, alpha=0.15, linewidth=0)
    ax.plot(curve.x, curve.prediction, color=RED, linewidth=2, label=labels[1])


def _draw_marks(ax: Axes, curve: Curve, labels: tuple[str, str]) -> None:
    if curve.truth is not None:
        ax.plot(curve.x, curve.truth, "_", color=INK, markersize=22, mew=1.4, label=labels[0])
    if curve.band is not None:
        ax.vlines(curve.x, *curve.band, color=RED, linewidth=2)
    ax.plot(curve.x, curve.prediction, "o", color=RED, markersize=7, label=labels[1])


def _draw_dots(ax: Axes, curve: Curve, *, jitter: bool) -> None:
    if curve.dots is None:
        return
    x, y = curve.dots
    if len(x) > DENSE_DOTS:
        _draw_density(ax, x, y)
        return
    if jitter:
        x = x + (np.arange(len(x)) * GOLDEN_RATIO % 1 - 0.5) * 2 * JITTER
    size, alpha = (4.0, 0.45) if len(x) <= MANY_DOTS else (1.5, 0.25)
    ax.plot(x, y, "o", color=BLUE, alpha=alpha, markersize=size, mew=0, rasterized=len(x) > MANY_DOTS)


def _draw_density(ax: Axes, x: np.ndarray, y: np.ndarray) -> None:
    """Draw the number of points in each cell, on a logarithmic scale; few values of x have a column of cells each."""
    values, bins = np.unique(x), DENSITY_BINS
    if 1 < len(values) <= FEW_VALUES:
        half = JITTER * np.diff(values).min()  # the cells between two values stay empty
        bins = (np.stack([values - half, values + half], 1).reshape(-1), DENSITY_BINS[1])
    counts, x_edges, y_edges = np.histogram2d(x, y, bins)
    norm = LogNorm(1, max(float(counts.max()), 2.0))
    cells = np.ma.masked_equal(counts.T, 0)
    mesh = ax.pcolormesh(x_edges, y_edges, cells, cmap=DENSITY_COLOURS, norm=norm, rasterized=True)
    ax.use_sticky_edges = False
    bar = ax.figure.colorbar(mesh, ax=ax, fraction=0.04, pad=0.02, aspect=30, format="{x:,.0f}")
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=TICK_POINTS, labelcolor=INK, color=GREY)
    bar.ax.minorticks_off()


def _line(name: str, values: Any, like: np.ndarray | None = None) -> np.ndarray:
    array = to_array(values)
    line = array.reshape(-1) if array.shape.count(1) >= array.ndim - 1 else array
    if line.ndim != 1 or (like is not None and line.shape != like.shape):
        wanted = "one number for each point" if like is None else f"one number for each of the {len(like)} points"
        raise ShapeError(f"{name} must hold {wanted}, its shape is {array.shape}")
    return line
