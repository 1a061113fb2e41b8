"""Kernel regression as attention: three fits of one noisy curve, and a width learned by gradient descent."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard import datasets, masks, scores
from regard.attention import attend
from regard.weights import Weights

Width = Callable[[Tensor], scores.Score]
STEP = 0.1  # from one test input to the next
WIDTHS = (0.05, 50.0)  # limits of w: a bandwidth of 1 / 50 is below a step, 1 / 0.05 is flat over all the data
LEAVE_ONE_OUT = ~masks.window(0, 0)


class Fit(NamedTuple):
    """Predictions at the test inputs, and the weights that made them."""

    prediction: Float[Tensor, " queries"]
    weights: Weights


def pool(data: datasets.Sine, score: scores.Score) -> Fit:
    """f(x) = sum_i softmax(score(x, x_i)) y_i at the test inputs."""
    output, weights = attend(data.x_test[:, None], data.x_train[:, None], data.y_train[:, None], score=score)
    return Fit(output[:, 0], weights)


def training_error(data: datasets.Sine, score: scores.Score, *, left_out: bool = False) -> float:
    """Mean squared error at the training points; left_out: each is predicted from all the others."""
    x, y = data.x_train[:, None], data.y_train[:, None]
    prediction = attend(x, x, y, score=score, mask=LEAVE_ONE_OUT if left_out else None).output
    return (prediction - y).square().mean().item()


class FitQuality(NamedTuple):
    """Quality of a fit. Errors are mean squares."""

    training: float  # each point predicted with itself among the points
    left_out: float  # each point predicted from all the others: the loss that w is learned by
    truth: float  # against the curve without noise
    entropy: float  # mean over the test inputs: the lower, the sharper the weights
    roughness: float  # mean squared second derivative: 0 is a straight line


def fit_quality(data: datasets.Sine, score: scores.Score, fit: Fit) -> FitQuality:
    """Errors, entropy and roughness of a fit by `pool(data, score)`."""
    return FitQuality(
        training=training_error(data, score),
        left_out=training_error(data, score, left_out=True),
        truth=(fit.prediction - data.y_truth).square().mean().item(),
        entropy=fit.weights.entropy().mean().item(),
        roughness=(fit.prediction.diff().diff() / STEP**2).square().mean().item(),
    )


class Step(NamedTuple):
    """A step of gradient descent: the loss before the step, and w after it."""

    loss: float
    w: float


def gradient_descent(
    data: datasets.Sine, steps: int = 100, rate: float = 1.0, start: float = 1.0, width: Width = scores.gaussian
) -> Iterator[Step]:
    """Learn w by gradient descent on the leave-one-out error; with itself among the points, each would copy itself.

    width: from w to the score. w is clamped to `WIDTHS`.
    """
    x, y = data.x_train[:, None], data.y_train[:, None]
    w = torch.tensor(start, requires_grad=True)
    for _ in range(steps):
        prediction = attend(x, x, y, score=width(w), mask=LEAVE_ONE_OUT).output
        loss = (prediction - y).square().mean()
        (slope,) = torch.autograd.grad(loss, w)
        with torch.no_grad():
            w.sub_(rate * slope).clamp_(*WIDTHS)
        yield Step(loss.item(), w.item())


class LearnedWidth(NamedTuple):
    w: float
    losses: tuple[float, ...]


def learn_width(data: datasets.Sine, steps: int = 100, rate: float = 1.0) -> LearnedWidth:
    """The last w of `gradient_descent`, and the loss before each step."""
    path = list(gradient_descent(data, steps, rate))
    return LearnedWidth(path[-1].w, tuple(step.loss for step in path))
