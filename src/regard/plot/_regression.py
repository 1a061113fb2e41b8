"""A fitted curve: the truth, the prediction, the points it was learned from, and how sure it is."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from regard.errors import ChoiceError, ShapeError
from regard.plot._figure import BLUE, INK, RED, SIZE, name_axes, new_axes, numbers, open_frame
from regard.plot._fonts import families_for, make_legible

Limits = tuple[float, float]
GRID = 400  # points of a curve that nobody gave points for
MANY = 2_000  # dots; beyond, small ones, or they are one blot
ASIDE = 0.25  # how far the dots of a level lie beside it, at most: on one line they would hide each other
GOLDEN = (5**0.5 - 1) / 2  # whose multiples fill a range evenly, whatever their number


class Curve(NamedTuple):
    x: np.ndarray
    prediction: np.ndarray
    truth: np.ndarray | None
    band: tuple[np.ndarray, np.ndarray] | None
    dots: tuple[np.ndarray, np.ndarray] | None
    name: str  # of the feature
    levels: Sequence[Any] | None = None  # categories, of which x holds the numbers


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
    """A fitted curve ("Pred"), the curve it should be ("Truth"), and dots for the training points.

    From arrays: x, prediction, truth: (queries,); train: x and y, (keys,) each; band: the lower and the upper end of an
    uncertainty, (queries,) each.
    From a fitted estimator of one feature, alone or in the place of `prediction`: it is asked for its curve at x, or
    over its own data, whose dots are drawn; band: a level such as 0.95 asks for its `confidence_band`. If the feature
    is one of categories, x and train name them, and each has a mark of its own.
    truth: also a function of x. labels: of the two curves, for the legend. xlim, ylim: None shows everything.
    levels: names of categories, where x is their numbers 0, 1, ...: each has a mark of its own, and no line between.

    >>> import torch
    >>> from regard import plot
    >>> x = torch.linspace(0, 5, 50)
    >>> ax = plot.regression(x, x.sin(), truth=x.cos(), train=([1, 2], [0.8, 0.9]), xlim=(0, 5), ylim=(-1, 5))
    """
    curve = _curve_of(x, prediction, truth, train, band)
    levels = curve.levels if levels is None else levels
    names = [] if levels is None else [_word(level) for level in levels]
    ax = new_axes((4.8, 3.4)) if ax is None else ax
    _draw_dots(ax, curve, apart=levels is not None)
    if levels is None:
        _draw_curves(ax, curve, labels)
    else:
        _draw_marks(ax, curve, labels)
        ax.set_xticks(range(len(names)), names)
    ax.set(xlim=xlim, ylim=ylim)
    place = "upper right" if ylim or (curve.dots and len(curve.dots[0]) > MANY) else "best"  # the best is slow to find
    ax.legend(frameon=False, loc=place, fontsize=SIZE, labelcolor=INK)
    name_axes(ax, curve.name if xlabel is None else xlabel, ylabel, title)
    open_frame(ax)
    make_legible([ax], families_for([title, ax.get_xlabel(), ylabel, *labels, *names]))
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
    order = np.argsort(x, kind="stable")  # a line through points out of order is a scribble

    def sort(what: str, values: Any) -> np.ndarray:
        return _line(what, values, x)[order]

    right = None if truth is None else sort("truth", truth(x) if isinstance(truth, Callable) else truth)
    edges = None if band is None else (sort("band[0]", band[0]), sort("band[1]", band[1]))
    return Curve(x[order], sort("prediction", prediction), right, edges, _dots(train), name)


def _from_model(model: Any, x: Any, truth: Any, train: Any, band: Any) -> Curve:
    """Ask anything with `predict`; scikit-learn's names tell what it was fitted on."""
    features = getattr(model, "n_features_in_", 1)
    if features != 1:
        raise ShapeError(f"a curve has one feature, {type(model).__name__} was fitted on {features}")
    name = str(next(iter(getattr(model, "feature_names_in_", ("x",)))))
    levels = _levels(model)
    if levels is not None:
        return _from_categories(model, levels, x, truth, train, band)._replace(name=name)
    if train is None and hasattr(model, "X_"):
        train = model.X_, model.y_
    x = _grid(train) if x is None else _line("x", x)
    return _from_arrays(x, _ask(model.predict, x), truth, train, _band_of(model, x, band), name)


def _levels(model: Any) -> np.ndarray | None:
    """The categories of the one feature, if it is one of categories."""
    known = getattr(model, "categories_", None)
    return known.get(0) if isinstance(known, dict) else None


def _from_categories(model: Any, levels: np.ndarray, x: Any, truth: Any, train: Any, band: Any) -> Curve:
    """The model is asked about categories; what is drawn are their numbers."""
    places = np.arange(len(levels)) if x is None else _places("x", x, levels)
    if train is not None:
        dots = _places("train[0]", train[0], levels), train[1]
    else:
        dots = (model.X_, model.y_) if hasattr(model, "X_") else None
    x = levels[places]
    right = truth(x) if isinstance(truth, Callable) else truth
    curve = _from_arrays(places, _ask(model.predict, x), right, dots, _band_of(model, x, band), "")
    return curve._replace(levels=levels.tolist())


def _places(what: str, values: Any, levels: np.ndarray) -> np.ndarray:
    """The numbers of categories."""
    found = np.asarray(values).reshape(-1)
    known = {level: place for place, level in enumerate(levels.tolist())}
    strange = [value for value in found.tolist() if value not in known]
    if strange:
        raise ChoiceError(
            f"{what} holds {strange[0]!r}, which is none of the categories that were fitted: "
            f"{', '.join(map(_word, known))}"
        )
    return np.array([known[value] for value in found.tolist()], dtype=int)


def _ask(question: Callable[..., Any], x: np.ndarray, **options: Any) -> Any:
    with warnings.catch_warnings():
        # The one feature has no other name to be confused with.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return question(x[:, None], **options)


def _band_of(model: Any, x: np.ndarray, band: Any) -> Any:
    return _ask(model.confidence_band, x, level=float(band)) if isinstance(band, float | int) else band


def _word(level: object) -> str:
    return f"{level:g}" if isinstance(level, float) else str(level)


def _is_model(thing: Any) -> bool:
    return hasattr(thing, "predict")


def _grid(train: Any) -> np.ndarray:
    if train is None:
        raise ChoiceError("the estimator does not hold its data: say where to draw it, regression(x, model)")
    x = _line("train[0]", train[0])
    return np.linspace(x.min(), x.max(), GRID)


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


def _draw_dots(ax: Axes, curve: Curve, *, apart: bool) -> None:
    if curve.dots is None:
        return
    x, y = curve.dots
    if apart:
        x = x + (np.arange(len(x)) * GOLDEN % 1 - 0.5) * 2 * ASIDE
    size, alpha = (4.0, 0.45) if len(x) <= MANY else (1.5, 0.25)
    ax.plot(x, y, "o", color=BLUE, alpha=alpha, markersize=size, mew=0, rasterized=len(x) > MANY)


def _line(name: str, values: Any, like: np.ndarray | None = None) -> np.ndarray:
    array = numbers(values)
    line = array.reshape(-1) if array.shape.count(1) >= array.ndim - 1 else array
    if line.ndim != 1 or (like is not None and line.shape != like.shape):
        wanted = "one number for each point" if like is None else f"one number for each of the {len(like)} points"
        raise ShapeError(f"{name} must hold {wanted}, its shape is {array.shape}")
    return line
