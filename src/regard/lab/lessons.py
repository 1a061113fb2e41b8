"""The worked examples, without their pictures: each is a few lines of `attend`."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard import datasets, masks, scores
from regard.attention import Attention, attend
from regard.weights import Weights

Point = tuple[float, float, float]
Width = Callable[[Tensor], scores.Score]
STEP = 0.1  # from one test input to the next
WIDTHS = (0.05, 50.0)  # the narrowest spans half a step, the widest is flat over all the data


def look_without_a_query(desk: datasets.Scene) -> Attention:
    """The involuntary cue: each object is scored by how much it stands out, whatever the query (here zeros) asks."""
    score = scores.uniform() + scores.bias(desk.keys @ desk.saliency)
    return attend(torch.zeros_like(desk.query), desk.keys, desk.values, score=score)


def look_with_a_query(desk: datasets.Scene) -> Attention:
    """The voluntary cue: the same objects, scored by what is wanted."""
    return attend(desk.query, desk.keys, desk.values, score=scores.dot())


def attend_by_hand() -> Attention:
    """Five tokens attend to each other: query = key = value, no projections."""
    tokens = datasets.worked_example().tokens
    return attend(tokens, tokens, tokens)


class Fit(NamedTuple):
    prediction: Float[Tensor, " queries"]
    weights: Weights


def average(data: datasets.Sine) -> Fit:
    """f(x) = mean(y): attention that does not listen to its query."""
    return pool(data, scores.uniform())


def nadaraya_watson(data: datasets.Sine, w: float = 1.0) -> Fit:
    """f(x) = sum_i softmax(-((x - x_i) w)^2 / 2) y_i: near points count more, and w says how near is near."""
    return pool(data, scores.gaussian(w))


def pool(data: datasets.Sine, score: scores.Score) -> Fit:
    """f(x) = sum_i softmax(score(x, x_i)) y_i at the test inputs."""
    output, weights = attend(data.x_test[:, None], data.x_train[:, None], data.y_train[:, None], score=score)
    return Fit(output[:, 0], weights)


def training_error(data: datasets.Sine, score: scores.Score, *, left_out: bool = False) -> float:
    """Mean square at the training points; left_out: each is predicted from all the others."""
    x, y = data.x_train[:, None], data.y_train[:, None]
    prediction = attend(x, x, y, score=score, mask=_others() if left_out else None).output
    return (prediction - y).square().mean().item()


def _others() -> masks.Mask:
    return ~masks.window(0, 0)


class Numbers(NamedTuple):
    """What the pictures show, as numbers. Errors are mean squares."""

    training: float  # each point predicted with itself among the points: how closely the data is followed
    left_out: float  # each point predicted from all the others: what w is learned by
    truth: float  # against the curve without noise
    entropy: float  # mean over the test inputs: the lower, the sharper the weights
    roughness: float  # mean squared second derivative: 0 is a straight line


def numbers(data: datasets.Sine, score: scores.Score, fit: Fit) -> Numbers:
    """How well and how sharply a fit by `pool(data, score)` follows the data."""
    return Numbers(
        training=training_error(data, score),
        left_out=training_error(data, score, left_out=True),
        truth=(fit.prediction - data.y_truth).square().mean().item(),
        entropy=fit.weights.entropy().mean().item(),
        roughness=(fit.prediction.diff().diff() / STEP**2).square().mean().item(),
    )


class Step(NamedTuple):
    """A step of gradient descent: the error with the w that it starts from, and the w that it comes to."""

    loss: float
    w: float


def learning(
    data: datasets.Sine, steps: int = 100, rate: float = 1.0, start: float = 1.0, width: Width = scores.gaussian
) -> Iterator[Step]:
    """Learn w by gradient descent, each point predicted from all the others: seeing itself, it would copy itself.

    width: from w to the score. A step that would leave `WIDTHS` stops at its end: there is no width below 0.
    """
    x, y = data.x_train[:, None], data.y_train[:, None]
    w = torch.tensor(start, requires_grad=True)
    for _ in range(steps):
        prediction = attend(x, x, y, score=width(w), mask=_others()).output
        loss = (prediction - y).square().mean()
        (slope,) = torch.autograd.grad(loss, w)
        with torch.no_grad():
            w.sub_(rate * slope).clamp_(*WIDTHS)
        yield Step(loss.item(), w.item())


class Learned(NamedTuple):
    w: float
    losses: tuple[float, ...]


def learn_width(data: datasets.Sine, steps: int = 100, rate: float = 1.0) -> Learned:
    """The w that `learning` comes to, and the error on the way."""
    path = list(learning(data, steps, rate))
    return Learned(path[-1].w, tuple(step.loss for step in path))


def masks_to_see(n: int = 12) -> dict[str, masks.Mask]:
    """Masks for a batch of one sequence of n tokens, by the code that makes them."""
    ids = torch.arange(n) * 3 // n
    return {
        "causal()": masks.causal(),
        "window(3, 0)": masks.window(3, 0),
        "prefix(2)": masks.prefix(2),
        f"padding([{n - 4}])": masks.padding(torch.tensor([n - 4])),
        "segments(ids, ids)": masks.segments(ids, ids),
        "causal() & segments(ids, ids)": masks.causal() & masks.segments(ids, ids),
        "window(1, 1) | prefix(2)": masks.window(1, 1) | masks.prefix(2),
        "causal() & ~window(3, 0)": masks.causal() & ~masks.window(3, 0),
    }


def copied_recipe(n: int, m: int | None = None) -> Bool[Tensor, "queries keys"]:
    """What `mask = triu(ones, 1)` with "mask == 0 is hidden" lets positions see: their future, the last one nothing."""
    return torch.ones(n, n if m is None else m).triu(1) != 0


def lorenz(n: int, duration: float) -> Float[Tensor, "steps 3"]:
    """A path on Lorenz' butterfly in n steps: it never repeats itself, and comes back near every place it has been."""
    point, path = (1.0, 1.0, 20.0), []
    for _ in range(n):
        path.append(point)
        point = _runge_kutta(point, duration / n)
    return torch.tensor(path)


def _runge_kutta(point: Point, step: float) -> Point:
    k1 = _flow(point)
    k2 = _flow(_move(point, k1, step / 2))
    k3 = _flow(_move(point, k2, step / 2))
    k4 = _flow(_move(point, k3, step))
    x, y, z = (a + 2 * b + 2 * c + d for a, b, c, d in zip(k1, k2, k3, k4, strict=True))
    return _move(point, (x, y, z), step / 6)


def _flow(point: Point) -> Point:
    x, y, z = point
    return 10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z


def _move(point: Point, by: Point, times: float) -> Point:
    return point[0] + times * by[0], point[1] + times * by[1], point[2] + times * by[2]


def look_around(n: int) -> Weights:
    """Each moment of a noisy Lorenz path attends to all that were in its direction: n x n weights, never built."""
    path = lorenz(n, duration=60.0)
    noise = torch.randn(n, 3, generator=torch.Generator().manual_seed(0))
    path = path - path.mean(0) + 0.6 * noise
    return Weights(path, path, score=scores.cosine(temperature=0.025))
