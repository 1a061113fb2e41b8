"""The figure that every picture is drawn on, and numbers made ready for it."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from regard.errors import DtypeError, ShapeError

INK, FAINT = "0.25", "0.6"
RED, BLUE = "#c0282d", "#2f6db3"
SIZE = 8.0  # of tick labels, in points


class Picture(Figure):
    """A figure that pyplot does not know.

    pyplot keeps every figure alive until it is closed, and shows it when a cell or a script says so. Without pyplot a
    notebook has no way to display a figure, hence `_repr_png_`.
    """

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=2 * self.dpi)  # two pixels for one: sharp on today's screens
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
    # Characters without a glyph are reported once, by regard, with the remedy; matplotlib would repeat itself for each.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


class PictureAxes(Axes):
    """Axes that a notebook shows as the picture they belong to."""

    def _repr_png_(self) -> Any:
        picture: Any = self.figure.figure  # the root, also from within a subfigure
        return picture._repr_png_()


def new_axes(figsize: tuple[float, float]) -> Axes:
    return Picture(figsize=figsize, layout="compressed").add_subplot(axes_class=PictureAxes)


def numbers(values: Any) -> np.ndarray:
    """A tensor, an array, a lazy matrix or nested lists of them, as a numpy array of floats."""
    if hasattr(values, "dense"):
        values = values.dense()
    if isinstance(values, torch.Tensor):
        return values.detach().to("cpu", torch.float64).numpy()
    if isinstance(values, Sequence) and not isinstance(values, str):
        parts = [numbers(value) for value in values]
        shapes = [part.shape for part in parts]
        if len(set(shapes)) > 1:
            raise ShapeError(f"matrices in one list must have one shape, these have {shapes}")
        return np.stack(parts) if parts else np.empty(0)
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DtypeError(f"only numbers can be drawn, {type(values).__name__} came: {values!r}") from error


def name_axes(ax: Axes, xlabel: str, ylabel: str, title: str) -> None:
    ax.set_xlabel(xlabel, fontsize=9, color=INK)
    ax.set_ylabel(ylabel, fontsize=9, color=INK)
    ax.set_title(title, fontsize=10, color=INK)


def quiet(ax: Axes) -> None:
    """Take away the frame and the tick marks, which carry no information around a matrix."""
    ax.tick_params(length=0, labelsize=SIZE, labelcolor=INK)
    for spine in ax.spines.values():
        spine.set_visible(False)


def open_frame(ax: Axes) -> None:
    """Two sides instead of a box."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(labelsize=SIZE, labelcolor=INK, color=FAINT)
