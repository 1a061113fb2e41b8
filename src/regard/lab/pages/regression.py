"""Kernel regression: average pooling, a fixed width, a learned width.

`show` returns, for n training points sorted by x and t = 50 test inputs:

    x_train, y_train    (n,)    sorted by x
    order               (n,)    index of each sorted point in the state's `points`; 0..n-1 if the points are drawn
    x_test, truth       (t,)    the grid 0, 0.1, ..., 4.9 and the curve without noise
    prediction          (t,)    0 at an `empty` input
    weights             (t, n)  rows sum to 1, those of `empty` inputs are 0
    empty               test inputs (indices) without a training point in reach of a compact kernel
    w, bandwidth        the width that is used, and 1 / w; null for the average
    numbers             {training, left_out, truth, entropy, roughness}: errors are mean squares, entropy is in nats and
                        roughness the mean squared second derivative (see `kernel_regression.FitQuality`)
    losses              the leave-one-out error of each step of learning; [] unless this state learns
    start               mode "learned" alone, else null: {w, prediction, weights, numbers} before learning
    product             {left, right, result}: the shapes of the batch product that is the prediction,
                        (t, 1, n) x (t, n, 1) -> (t, 1, 1), all t products at once
    example             {left, right, result}: (2, 1, 4) x (2, 4, 6) -> (2, 1, 6), the numbers themselves
    view                {x: [0, 5], y: [-1, 5]}: the limits of the picture

`train` yields {step, loss, w} for each step, `prediction` (t,) with every fifth, and at the end {done, step, w,
prediction}: put that w into the state as `learned`, and `show` need not learn it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from regard import datasets, kernels, scores
from regard.attention import attend
from regard.lab.examples import kernel_regression
from regard.lab.pages._numbers import literal, shortest_decimals
from regard.lab.pages._state import Choice, Many, Maybe, Pair, Real, Whole, setting
from regard.lab.strict_json import plain

MODES = ("average", "fixed", "learned")
WIDTH = Real(*kernel_regression.WIDTHS)
MAX_POINTS = 100  # training points
STEPS_PER_PREDICTION = 5  # `train` sends the prediction with every fifth step


@dataclass(frozen=True)
class State:
    points: tuple[tuple[float, float], ...] | None = setting(
        None, Maybe(Many(Pair(Real(0, 5), Real(-10, 10)), 1, MAX_POINTS))
    )
    n: int = setting(50, Whole(1, MAX_POINTS))  # these three draw the points where none are given
    seed: int = setting(0, Whole(0, 2**31 - 1))
    noise: float = setting(0.5, Real(0, 3))
    mode: str = setting("fixed", Choice(MODES))
    kernel: str = setting("gaussian", Choice(kernels.names()))
    w: float = setting(1.0, WIDTH)  # the fixed width, and the start of learning; 1 / w is the bandwidth
    learned: float | None = setting(None, Maybe(WIDTH))  # the result of learning, if it is known
    steps: int = setting(100, Whole(1, 200))
    rate: float = setting(1.0, Real(0, 10))


def show(state: State) -> dict[str, Any]:
    """The fit, its weights, and its errors, entropy and roughness."""
    data = _data(state)
    w, losses = _width(state)
    score = scores.uniform() if w is None else _score(state)(w)
    start = _fit(data, _score(state)(state.w)) if state.mode == "learned" else None
    return plain({
        "x_train": shortest_decimals(data.x_train),
        "y_train": shortest_decimals(data.y_train),
        "order": _order(state),
        "x_test": shortest_decimals(data.x_test),
        "truth": data.y_truth,
        **_fit(data, score),
        "empty": attend(data.x_test[:, None], data.x_train[:, None], data.y_train[:, None], score=score)
        .weights.empty_rows()
        .nonzero()
        .flatten(),
        "w": w,
        "bandwidth": None if w is None else 1 / w,
        "losses": losses,
        "start": None if start is None else {"w": state.w, **start},
        "product": {"left": [50, 1, len(data.x_train)], "right": [50, len(data.x_train), 1], "result": [50, 1, 1]},
        "example": _example(),
        "view": {"x": [0, 5], "y": [-1, 5]},
    })  # fmt: skip


def train(state: State) -> Iterator[dict[str, Any]]:
    """Learn w from the state's points, starting from its w; an event for each step."""
    data, width, w = _data(state), _score(state), state.w
    steps = kernel_regression.gradient_descent(data, state.steps, state.rate, state.w, width)
    for number, (loss, w) in enumerate(steps, 1):
        event: dict[str, Any] = {"step": number, "loss": loss, "w": w}
        if number % STEPS_PER_PREDICTION == 0:
            event["prediction"] = kernel_regression.pool(data, width(w)).prediction
        yield plain(event)
    prediction = kernel_regression.pool(data, width(w)).prediction
    yield plain({"done": True, "step": state.steps, "w": w, "prediction": prediction})


def _data(state: State) -> datasets.Sine:
    if state.points is None:
        return datasets.sine(state.n, state.seed, state.noise)
    points = torch.tensor([state.points[place] for place in _order(state)])
    return datasets.sine(1)._replace(x_train=points[:, 0], y_train=points[:, 1])


def _order(state: State) -> list[int]:
    points = state.points
    return list(range(state.n)) if points is None else sorted(range(len(points)), key=points.__getitem__)


def _score(state: State) -> Callable[[Any], scores.Score]:
    """The function from w to the score."""
    if state.kernel == "gaussian":
        return scores.gaussian
    return lambda w: scores.kernel(state.kernel, 1 / w)


def _width(state: State) -> tuple[float | None, tuple[float, ...]]:
    if state.mode == "average":
        return None, ()
    if state.mode == "fixed":
        return state.w, ()
    return _learned(state) if state.learned is None else (state.learned, ())


@lru_cache(maxsize=256)
def _learned(state: State) -> tuple[float, tuple[float, ...]]:
    path = list(kernel_regression.gradient_descent(_data(state), state.steps, state.rate, state.w, _score(state)))
    return path[-1].w, tuple(step.loss for step in path)


def _fit(data: datasets.Sine, score: scores.Score) -> dict[str, Any]:
    fit = kernel_regression.pool(data, score)
    numbers = kernel_regression.fit_quality(data, score, fit)._asdict()
    return {"prediction": fit.prediction, "weights": fit.weights.dense(), "numbers": numbers}


def _example() -> dict[str, Tensor]:
    """A batch of two products of a row and a matrix: each entry of the result is a sum of four ones."""
    left, right = torch.ones(2, 1, 4), torch.ones(2, 4, 6)
    return {"left": left, "right": right, "result": left @ right}


def code(state: State) -> str:
    """Python code that computes `prediction` and `weights`."""
    lines = ["import torch", "import regard as rg", "", *_data_code(state), *_score_code(state), *ATTEND_CODE]
    return "\n".join(lines) + "\n"


ATTEND_CODE = (
    "output, weights = rg.attend(x_test[:, None], x, y, score=score)",
    "prediction = output[:, 0]",
)


def _data_code(state: State) -> list[str]:
    if state.points is None:
        arguments = f"n={state.n}, seed={state.seed}, noise={literal(state.noise)}"
        return [
            f"data = rg.datasets.sine({arguments})",
            "x, y, x_test = data.x_train[:, None], data.y_train[:, None], data.x_test",
        ]
    points = [state.points[place] for place in _order(state)]
    return [
        f"x = torch.tensor({literal([[x] for x, _ in points])}, dtype=torch.float32)",
        f"y = torch.tensor({literal([[y] for _, y in points])}, dtype=torch.float32)",
        "x_test = torch.arange(50) / 10",
    ]


def _score_code(state: State) -> list[str]:
    if state.mode == "average":
        return ["score = rg.scores.uniform()"]
    score = "rg.scores.gaussian(w)" if state.kernel == "gaussian" else f'rg.scores.kernel("{state.kernel}", 1 / w)'
    if state.mode == "fixed":
        return [f"w = {state.w!r}", f"score = {score}"]
    if state.learned is not None:
        return [f"w = {state.learned!r}  # learned before", f"score = {score}"]
    least, most = kernel_regression.WIDTHS
    return [
        f"w = torch.tensor({state.w!r}, requires_grad=True)",
        f"for step in range({state.steps}):  # each point is predicted from all the others",
        f"    fit = rg.attend(x, x, y, score={score}, mask=~rg.masks.window(0, 0)).output",
        "    (slope,) = torch.autograd.grad((fit - y).square().mean(), w)",
        f"    w.data.sub_({literal(state.rate)} * slope).clamp_({least}, {literal(most)})",
        f"w = w.item()\nscore = {score}",
    ]
