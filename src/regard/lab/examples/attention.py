"""Worked examples of attention: cues on a desk, five tokens by hand, masks, and a long path."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard import datasets, masks, scores
from regard.attention import Attention, attend
from regard.weights import Weights

Point = tuple[float, float, float]


def look_without_a_query(desk: datasets.Scene) -> Attention:
    """The involuntary cue: each object is scored by its saliency. The query, zeros, has no influence."""
    score = scores.uniform() + scores.bias(desk.keys @ desk.saliency)
    return attend(torch.zeros_like(desk.query), desk.keys, desk.values, score=score)


def look_with_a_query(desk: datasets.Scene) -> Attention:
    """The voluntary cue: each object is scored by its dot product with the query."""
    return attend(desk.query, desk.keys, desk.values, score=scores.dot())


def attend_by_hand() -> Attention:
    """Five tokens attend to each other: query = key = value, no projections."""
    tokens = datasets.worked_example().tokens
    return attend(tokens, tokens, tokens)


def example_masks(n: int = 12) -> dict[str, masks.Mask]:
    """Eight masks for one sequence of n tokens, by the code that makes them."""
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


def future_only_mask(n: int, m: int | None = None) -> Bool[Tensor, "queries keys"]:
    """Keys that `mask = triu(ones, 1)` with "mask == 0 is hidden" lets queries see: the future; the last sees none."""
    return torch.ones(n, n if m is None else m).triu(1) != 0


def lorenz(n: int, duration: float) -> Float[Tensor, "steps 3"]:
    """A path on the Lorenz attractor in n steps: it never repeats itself, and returns near every earlier point."""
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


def lorenz_attention(n: int) -> Weights:
    """Each point of a noisy Lorenz path attends to the points in its direction: n x n weights, never built."""
    path = lorenz(n, duration=60.0)
    noise = torch.randn(n, 3, generator=torch.Generator().manual_seed(0))
    path = path - path.mean(0) + 0.6 * noise
    return Weights(path, path, score=scores.cosine(temperature=0.025))
