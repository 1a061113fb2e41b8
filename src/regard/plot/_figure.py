"""The figure and axes of every picture, and the conversion of its data to numpy."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any, Literal

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from regard.errors import DtypeError, ShapeError

INK, GREY = "0.25", "0.6"
RED, BLUE = "#c0282d", "#2f6db3"
TICK_POINTS = 8.0  # font size of tick labels


class Picture(Figure):
    """A matplotlib `Figure` outside pyplot: freed with its last reference, and displayed by notebooks.

    pyplot would keep every figure alive until it is closed. Without pyplot a notebook cannot display a figure by
    itself, hence `_repr_png_`. The arguments are those of `matplotlib.figure.Figure`.

    >>> from regard import plot
    >>> figure = plot.Picture(figsize=(6, 3), layout="constrained")
    >>> ax = plot.heatmap([[0.9, 0.1], [0.5, 0.5]], ax=figure.add_subplot())
    """

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=2 * self.dpi)  # sharp on screens with two pixels for one
        width, height = (round(inches * self.dpi) for inches in self.get_size_inches())
        return buffer.getvalue(), {"width": width, "height": height}

    def draw(self, renderer: Any) -> None:
        with no_glyph_warnings():
            super().draw(renderer)

    def get_tightbbox(self, *args: Any, **kwargs: Any) -> Any:
        with no_glyph_warnings():
            return super().get_tightbbox(*args, **kwargs)


@contextmanager
def no_glyph_warnings() -> Iterator[None]:
    """Silence matplotlib's warning for each missing glyph: regard warns once, and names a font to install."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


class PictureAxes(Axes):
    """Axes that a notebook displays as their whole picture, and that can save it."""

    def savefig(self, *args: Any, **options: Any) -> None:
        """Save the picture that these axes are in. The arguments are those of `matplotlib.figure.Figure.savefig`."""
        self._picture.savefig(*args, **options)

    def _repr_png_(self) -> Any:
        return self._picture._repr_png_()

    @property
    def _picture(self) -> Any:
        return self.figure.figure  # the root, also from within a subfigure


def new_axes(figsize: tuple[float, float], layout: Literal["compressed", "constrained"] = "compressed") -> Axes:
    """Return axes in a new figure that a notebook displays; they have `savefig`."""
    return Picture(figsize=figsize, layout=layout).add_subplot(axes_class=PictureAxes)


def to_array(values: Any) -> np.ndarray:
    """Return a tensor, an array, a lazy matrix or nested lists of them as a float64 array."""
    if hasattr(values, "dense"):
        values = values.dense()
    if isinstance(values, torch.Tensor):
        return values.detach().to("cpu", torch.float64).numpy()
    if isinstance(values, Sequence) and not isinstance(values, str):
        arrays = [to_array(value) for value in values]
        shapes = [array.shape for array in arrays]
        if len(set(shapes)) > 1:
            raise ShapeError(f"matrices in one list must have one shape, these have {shapes}")
        return np.stack(arrays) if arrays else np.empty(0)
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DtypeError(f"only numbers can be drawn, {type(values).__name__} came: {values!r}") from error


def name_axes(ax: Axes, xlabel: str, ylabel: str, title: str) -> None:
    """Write the labels of both axes and the title."""
    ax.set_xlabel(xlabel, fontsize=9, color=INK)
    ax.set_ylabel(ylabel, fontsize=9, color=INK)
    ax.set_title(title, fontsize=10, color=INK)


def hide_frame(ax: Axes) -> None:
    """Remove the frame and the tick marks, which carry no information around a matrix."""
    ax.tick_params(length=0, labelsize=TICK_POINTS, labelcolor=INK)
    for spine in ax.spines.values():
        spine.set_visible(False)


def open_frame(ax: Axes) -> None:
    """Keep the left and the bottom side of the frame only."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(labelsize=TICK_POINTS, labelcolor=INK, color=GREY)
