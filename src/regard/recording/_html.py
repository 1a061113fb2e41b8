"""A recording as HTML for a notebook: a line for each layer with small pictures of its heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import numpy as np

from regard.display.notebook_html import LINE, STYLE, cells_of, clip, first_matrix, inline, png, shades
from regard.errors import RegardError
from regard.recording._layer import Layer
from regard.weights import Weights

MAX_BYTES = 48_000  # of the lines; with the rest it stays below 50 kB
MAX_LAYERS, MAX_HEADS = 12, 12  # that are drawn, evenly chosen
CELLS, ZOOM = 16, 3  # along the side of a picture, and pixels of a cell
MOST_SCORES = 1 << 27  # that all pictures together compute
MAX_NAME = 60  # characters of a layer's name
CELL = "text-align:left;vertical-align:middle"


def recording_html(title: str, layers: Sequence[Layer], weights: Callable[..., Weights]) -> str:
    """A title, and for each of some layers a line with its name, shape and mask and a picture of some of its heads.

    weights(layer, head) are those of one head in the layer's first step; weights(layer) of a layer without heads.
    """
    chosen = _evenly(range(len(layers)), MAX_LAYERS)
    lines, size = [], 0
    for number in chosen:
        line = _line(number, layers[number], weights)
        size += len(line.encode())
        if size > MAX_BYTES:
            break
        lines.append(line)
    note = f"{len(lines)} of {len(layers)} layers are drawn; " if len(lines) < len(layers) else ""
    note += "recording.view() shows every head" if layers else "no layer was recorded"
    table = f'<table style="font:inherit;color:inherit;border-collapse:collapse">{"".join(lines)}</table>'
    return f'<div style="{STYLE}"><b>{escape(clip(title, 300))}</b>{table}{note}</div>'


def _evenly(numbers: Sequence[int], most: int) -> list[int]:
    """At most that many of some numbers, the first and the last among them."""
    if len(numbers) <= most:
        return list(numbers)
    return [numbers[place * (len(numbers) - 1) // (most - 1)] for place in range(most)]


def _line(number: int, layer: Layer, weights: Callable[..., Weights]) -> str:
    step, steps = layer.steps[0], len(layer.steps)
    sizes = " &times; ".join(map(str, layer.shape))
    when = f", step {step} ({steps} steps)" if steps > 1 else ""
    facts = f"{sizes}, {escape(clip(layer.mask, MAX_NAME))}{when}"
    name = f"[{number}] {escape(clip(layer.name, MAX_NAME))}"
    try:
        picture = inline(_strip(layer, weights), f"heads of layer {number}", ZOOM)
    except RegardError as refusal:  # the file is damaged
        picture = escape(clip(str(refusal), 200))
    return (
        f'<tr style="background:none"><td style="{CELL};padding:2px 12px 2px 0">{name}<br><small>{facts}</small></td>'
        f'<td style="{CELL};padding:2px 0">{picture}</td></tr>'
    )


def _strip(layer: Layer, weights: Callable[..., Weights]) -> bytes:
    """Pictures of some heads side by side, of the first sequence."""
    count = layer.shape[1] if len(layer.shape) == 4 else 1
    affordable = max(1, MOST_SCORES // (MAX_LAYERS * CELLS * max(1, layer.shape[-1])))
    parts: list[np.ndarray] = []
    for head in _evenly(range(count), max(2, min(MAX_HEADS, affordable))):
        matrix = first_matrix(weights(layer, head) if len(layer.shape) == 4 else weights(layer))
        scores = max(CELLS * layer.shape[-1], MOST_SCORES // (MAX_LAYERS * MAX_HEADS * 8))
        cells, empty = cells_of(matrix, CELLS, scores)
        pixels = shades(cells, empty, 1) if cells.size else np.full((1, 1), LINE, np.uint8)
        high = max(1, CELLS // pixels.shape[0])
        wide = max(1, CELLS // pixels.shape[1])
        parts.append(pixels.repeat(high, 0).repeat(wide, 1))
    height = max(part.shape[0] for part in parts)
    padded = [np.pad(part, ((0, height - part.shape[0]), (1, 0)), constant_values=LINE) for part in parts]
    return png(np.concatenate(padded, 1)[:, 1:])
