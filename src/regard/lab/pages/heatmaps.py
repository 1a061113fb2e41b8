"""Heatmaps: weights as pictures, several heads side by side, on one colour scale or on a scale for each.

`show` returns, for h heads of n queries and n keys:

    weights         (h, n, n) rows sum to 1; one head for the identity and the random softmax
    sharpness       (h,)      what the scores of a head are multiplied by before its softmax
    largest         (h,)      the largest weight of each head
    limits          (h, 2)    the weights at the two ends of the colours of each head
    uniform         1 / n, the weight of a head that looks everywhere alike
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.lab.pages._numbers import literal
from regard.lab.pages._state import Choice, Flag, Whole, setting
from regard.lab.strict_json import plain

KINDS = ("identity", "random", "heads")
SHARPEST = 4.0  # of several heads the last one; the first has 1 / SHARPEST


@dataclass(frozen=True)
class State:
    kind: str = setting("heads", Choice(KINDS))
    n: int = setting(10, Whole(2, 16))
    heads: int = setting(4, Whole(2, 8))
    shared: bool = setting(True, Flag())  # one colour scale for all heads
    seed: int = setting(0, Whole(0, 2**31 - 1))


def show(state: State) -> dict[str, Any]:
    """The weights of each head, and the limits of its colour scale."""
    sharpness = _sharpness(state)
    weights = _weights(state, sharpness)
    largest = weights.amax((1, 2))
    most = largest.max().expand(len(largest)) if state.shared else largest
    return plain({
        "weights": weights,
        "sharpness": sharpness,
        "largest": largest,
        "limits": torch.stack([torch.zeros_like(most), most], -1),
        "uniform": 1 / state.n,
    })  # fmt: skip


def _sharpness(state: State) -> list[float]:
    if state.kind != "heads":
        return [1.0]
    powers = torch.linspace(-1, 1, state.heads, dtype=torch.float64)
    return [round(value, 2) for value in (SHARPEST**powers).tolist()]


def _weights(state: State, sharpness: list[float]) -> Float[Tensor, "heads n n"]:
    if state.kind == "identity":
        return torch.eye(state.n, dtype=torch.float64)[None]
    generator = torch.Generator().manual_seed(state.seed)
    scores = torch.randn(len(sharpness), state.n, state.n, generator=generator, dtype=torch.float64)
    return (torch.tensor(sharpness, dtype=torch.float64)[:, None, None] * scores).softmax(-1)


def code(state: State) -> str:
    """Python code that computes `weights` and draws them, with regard and with matplotlib alone."""
    return "\n".join(["import torch", "import regard as rg", "", *_weights_code(state), "", *_plot_code(state)]) + "\n"


def _weights_code(state: State) -> list[str]:
    if state.kind == "identity":
        return [f"weights = torch.eye({state.n})[None]"]
    sharpness = _sharpness(state)
    draw = f"torch.randn({len(sharpness)}, {state.n}, {state.n}, generator=generator, dtype=torch.float64)"
    lines = [f"generator = torch.Generator().manual_seed({state.seed})", f"scores = {draw}"]
    if state.kind == "random":
        return [*lines, "weights = scores.softmax(-1)"]
    return [*lines, f"sharpness = torch.tensor({literal(sharpness)})", SOFTMAX]


SOFTMAX = "weights = (sharpness[:, None, None] * scores).softmax(-1)"


def _plot_code(state: State) -> list[str]:
    """show_heatmaps has one scale for all its matrices, so a scale for each takes a picture for each."""
    names = 'xlabel="Keys", ylabel="Queries"'
    if state.shared:
        first = [
            "# one colour scale for all",
            f"picture = rg.plot.show_heatmaps(weights[None], {names}, figsize=(8, 2.5))",
        ]
    else:
        first = [
            "# a colour scale for each",
            "for matrix in weights:",
            f"    picture = rg.plot.show_heatmaps(matrix[None, None], {names})",
        ]
    most = "weights.max()" if state.shared else "matrix.max()"
    return [
        *first,
        "",
        "# the same with matplotlib alone",
        "from matplotlib.figure import Figure",
        "",
        "figure = Figure(figsize=(8, 2.5))",
        "grid = figure.subplots(1, len(weights), squeeze=False)[0]",
        "for ax, matrix in zip(grid, weights):",
        f'    image = ax.imshow(matrix, cmap="Reds", vmin=0, vmax={most})',
        "    figure.colorbar(image, ax=ax)",
    ]
