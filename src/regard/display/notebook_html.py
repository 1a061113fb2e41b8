"""Weights as HTML for a notebook: a line of facts and a small picture, without matplotlib.

A picture has one colour, which is the more opaque the larger a weight is, so that it can be read on white and on black.
"""

from __future__ import annotations

import base64
import struct
import zlib
from html import escape
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from regard.errors import RegardError

COLOUR, GREY = (214, 39, 40), (128, 128, 128)  # of weights, and of what is no weight
LEVELS = 32  # shades of a weight; the picture stays small
EMPTY, BROKEN, LINE = LEVELS, LEVELS + 1, LEVELS + 2  # a hatched row, NaN, and the line between pictures
CELLS, PIXELS = 64, 256  # of the picture of weights, at most: cells and pixels along a side
MOST_SCORES = 1 << 22  # that one picture computes; rows of a longer matrix are sampled
STYLE = "font-family:ui-monospace,monospace;font-size:12px;line-height:1.5;color:inherit"


@runtime_checkable  # shapes and types are checked at run time in tests
class LazyWeights(Protocol):
    """As much of `regard.Weights` as a picture needs."""

    @property
    def shape(self) -> torch.Size: ...
    @property
    def dtype(self) -> torch.dtype: ...
    @property
    def plan(self) -> object: ...
    @property
    def spec(self) -> object: ...
    @property
    def normalised(self) -> bool: ...
    def select(self, *, batch: int) -> Any: ...
    def __getitem__(self, index: Any) -> Float[Tensor, "..."]: ...


def weights_html(weights: LazyWeights) -> str:
    """Shape, formula, plan and a small heatmap of the first matrix of some weights."""
    sizes = " &times; ".join(map(str, weights.shape))
    sums = "" if weights.normalised else " (rows do not sum to 1)"
    facts = [
        f"<b>Weights</b> {sizes}, {escape(str(weights.dtype))}, never built",
        escape(clip(f"{weights.spec}", 200)) + sums,
        f"plan: {escape(clip(str(weights.plan), 300))}",
    ]
    picture = _picture_with_caption(weights)
    return f'<div style="{STYLE}">{"<br>".join(facts)}{picture}</div>'


def _picture_with_caption(weights: LazyWeights) -> str:
    try:
        matrix = first_matrix(weights)
        cells, empty = cells_of(matrix, CELLS, MOST_SCORES)
        if not cells.size:
            return "<br>there is nothing to draw"
        at = ", ".join("0" for _ in weights.shape[:-2])
        which = f"weights[{at}]: " if at else ""
        hatched = "; hatched: rows without any weight" if empty.any() else ""
        largest = f"{np.nanmax(cells):.2g}" if np.isfinite(cells).any() else "NaN"
    except RegardError as refusal:  # of weights whose tensors were changed, or whose file is damaged
        return f"<br>no picture: {escape(clip(str(refusal), 300))}"
    image = png(shades(cells, empty, max(1, PIXELS // max(cells.shape))))
    return (
        f"<br>{inline(image, f'heatmap, queries down, keys across, {largest} at most')}"
        f"<br>{which}queries down, keys across; full colour: {largest}{hatched}"
    )


def first_matrix(weights: LazyWeights) -> LazyWeights:
    """The matrix at index 0 of every leading axis."""
    while len(weights.shape) > 2:
        weights = weights.select(batch=0)
    return weights


def cells_of(
    matrix: LazyWeights, side: int, most_scores: int
) -> tuple[Float[np.ndarray, "row_bins col_bins"], Bool[np.ndarray, " row_bins"]]:
    """Mean weights in at most side x side bins, and which bins of rows have no weight at all.

    Of a long matrix only every k-th row is computed, so that there are at most `most_scores` scores.
    """
    n, m = matrix.shape
    if not n or not m or m > most_scores:
        return np.zeros((0, 0)), np.zeros(0, dtype=bool)
    step = -(-n // max(1, most_scores // m))
    block = matrix[::step].detach().float().cpu().numpy()
    cells = _pool(_pool(block, side, 1), side, 0)
    empty = _pool((block == 0).all(1).astype(np.float32), side, 0) == 1
    return cells, empty


def _pool(block: Float[np.ndarray, "..."], side: int, axis: int) -> Float[np.ndarray, "..."]:
    """Means over bins of one axis, of which there are at most `side`."""
    length = block.shape[axis]
    edges = np.arange(min(side, length) + 1) * length // min(side, length)
    shape = [-1 if other == axis else 1 for other in range(block.ndim)]
    return np.add.reduceat(block, edges[:-1], axis) / np.diff(edges).reshape(shape)


def shades(
    cells: Float[np.ndarray, "rows cols"], empty: Bool[np.ndarray, " rows"], scale: int
) -> UInt8[np.ndarray, "height width"]:
    """Palette numbers of a picture with `scale` pixels along a cell; empty rows are hatched, NaN is grey."""
    finite = np.where(np.isfinite(cells), cells, 0)
    largest = finite.max(initial=0) or 1.0
    shade = np.rint(np.clip(finite / largest, 0, 1) * (LEVELS - 1)).astype(np.uint8)
    shade[~np.isfinite(cells)] = BROKEN
    pixels = shade.repeat(scale, 0).repeat(scale, 1)
    y, x = np.indices(pixels.shape)
    pixels[empty.repeat(scale)[:, None] & ((x + y) % 4 == 0)] = EMPTY
    return pixels


def png(pixels: UInt8[np.ndarray, "height width"]) -> bytes:
    """A picture of palette numbers as a PNG file."""
    height, width = pixels.shape
    alphas = [round(255 * level / (LEVELS - 1)) for level in range(LEVELS)]
    palette = bytes(COLOUR) * LEVELS + bytes(GREY) * 3
    raw = np.concatenate([np.zeros((height, 1), np.uint8), pixels], 1).tobytes()  # no filter in any line
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", palette),
        (b"tRNS", bytes([*alphas, 160, 160, 80])),
        (b"IDAT", zlib.compress(raw, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def inline(image: bytes, text: str, zoom: int = 1) -> str:
    """An <img> that holds the picture itself. text: for those who do not see it. zoom: screen pixels of a pixel."""
    width, height = (zoom * number for number in struct.unpack(">II", image[16:24]))
    return (
        f'<img alt="{escape(text)}" width="{width}" height="{height}" '
        'style="image-rendering:pixelated;outline:1px solid #8888;margin:4px 1px;max-width:none" '
        f'src="data:image/png;base64,{base64.b64encode(image).decode()}">'
    )


def clip(text: str, most: int) -> str:
    """A text of at most that many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"
