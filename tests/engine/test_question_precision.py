"""Questions in float32 within 1e-5 of a float64 dense answer, for sharp rows and large scores as for soft ones."""

from collections.abc import Callable
from typing import Any

import pytest
import reference
import torch
from strategies import normal, seeded, served
from torch import Tensor

import regard as rg
from regard import masks, scores

GROUPS = torch.arange(300) % 5 - 1
QUESTIONS: dict[str, Callable[[Any], Tensor]] = {
    "entropy": lambda w: w.entropy(),
    "saturation": lambda w: w.saturation(),
    "received": lambda w: w.received() / w.shape[-2],
    "distance": lambda w: w.distance(torch.arange(w.shape[-2])) / w.shape[-1],
    "mass": lambda w: w.mass(GROUPS[: w.shape[-1]]),
    "top": lambda w: w.top(5).values,
    "heatmap": lambda w: w.heatmap(7),
    "max heatmap": lambda w: w.heatmap(7, pool="max"),
    "dense": lambda w: w.dense(),
    "block": lambda w: w[..., ::7, 3:40],
}
ANSWERS: dict[str, Callable[[Tensor], Tensor]] = {
    "entropy": reference.entropy,
    "saturation": reference.saturation,
    "received": lambda p: reference.received(p) / p.shape[-2],
    "distance": lambda p: reference.distance(p) / p.shape[-1],
    "mass": lambda p: reference.mass(p, GROUPS[: p.shape[-1]]),
    "top": lambda p: p.topk(5).values,
    "heatmap": lambda p: reference.heatmap(p, 7, "mean"),
    "max heatmap": lambda p: reference.heatmap(p, 7, "max"),
    "dense": lambda p: p,
    "block": lambda p: p[..., ::7, 3:40],
}
MASKS = {
    "nothing": (None, lambda n, m: torch.ones(n, m, dtype=torch.bool)),
    "causal": (masks.causal(align="bottom-right"), lambda n, m: reference.causal(n, m, "bottom-right")),
    "window": (masks.window(40, 3, align="top-left"), lambda n, m: reference.window(n, m, 40, 3)),
}
every = pytest.mark.parametrize


def inputs(n: int, m: int, d: int, size: float) -> list[Tensor]:
    """float32 queries and keys whose scores reach about `size`."""
    return [normal(seeded(i), 2, length, d, dtype=torch.float32) * (size / 4) ** 0.5 for i, length in enumerate((n, m))]


def compare(question: str, weights: Any, dense: Tensor) -> None:
    found = QUESTIONS[question](weights)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), ANSWERS[question](dense), atol=1e-5, rtol=1e-5)


@every("question", list(QUESTIONS))
@every("mask", list(MASKS))
@every("plan", ["auto", "dense", "tiled", "fused"])
@every("size", [1.0, 30.0, 300.0, 1e4])
def test_questions_of_scaled_dot_are_exact(question: str, mask: str, plan: str, size: float) -> None:
    q, k = inputs(211, 257, 16, size)
    rule, visible = MASKS[mask]
    dense = reference.attend(q, k, k, visible=visible(211, 257)).weights
    weights = served(
        plan != "fused" or mask == "nothing", lambda: rg.Weights(q, k, mask=rule, plan=plan, budget=1 << 17)
    )
    if weights is not None:
        compare(question, weights, dense)


@every("size", [1.0, 30.0, 300.0, 1e4])
@every("plan", ["auto", "dense", "tiled", "fused"])
def test_logsumexp_is_exact_for_large_scores(size: float, plan: str) -> None:
    q, k = inputs(211, 257, 16, size)
    expected = torch.logsumexp(reference.attend(q, k, k).scores, -1)
    torch.testing.assert_close(rg.Weights(q, k, plan=plan).logsumexp().double(), expected, atol=1e-5, rtol=1e-6)


@every("question", ["entropy", "saturation", "distance", "mass"])
@every("size", [1.0, 300.0, 1e4])
@every("mask", list(MASKS))
def test_questions_that_carry_a_gradient_are_as_exact(question: str, size: float, mask: str) -> None:
    q, k = inputs(211, 257, 16, size)
    dense = reference.attend(q, k, k, visible=MASKS[mask][1](211, 257)).weights
    weights = rg.Weights(q.requires_grad_(), k.requires_grad_(), mask=MASKS[mask][0])
    assert QUESTIONS[question](weights).requires_grad
    compare(question, weights, dense)


SHARP = {
    "gaussian": (scores.gaussian(30.0), lambda q, k: reference.gaussian(q, k, torch.tensor(30.0, dtype=torch.float64))),
    "cosine": (scores.cosine(1e-3), lambda q, k: reference.cosine(q, k, 1e-3)),
    "softcap": (scores.softcap(scores.dot(), 50.0), lambda q, k: reference.softcap(reference.dot(q, k), 50.0)),
    "dot": (scores.dot(), reference.dot),
}


@every("question", list(QUESTIONS))
@every("score", list(SHARP))
def test_questions_of_other_sharp_scores(question: str, score: str) -> None:
    q, k = inputs(101, 113, 3, 20.0)
    word, formula = SHARP[score]
    compare(question, rg.Weights(q, k, score=word), reference.attend(q, k, k, formula).weights)


@every("offset", [0.0, 1e3])
@every("plan", ["auto", "dense", "tiled", "fused"])
def test_questions_of_a_gaussian_far_from_the_origin(offset: float, plan: str) -> None:
    """|q - k|² from squares cancels: at 1000 an uncentred float32 formula is off by 0.4."""
    q, k = (x[..., :2] + offset for x in inputs(101, 113, 2, 4.0))
    v = normal(seeded(2), 2, 113, 3, dtype=torch.float32)
    w = torch.tensor(3.0, dtype=torch.float64)
    expected = reference.attend(q, k, v, lambda q, k: reference.gaussian(q, k, w)).output
    output = rg.attend(q, k, v, score=scores.gaussian(3.0), plan=plan).output
    torch.testing.assert_close(output.double(), expected, atol=2e-5, rtol=1e-5)


@every("plan", ["auto", "dense", "tiled", "fused"])
def test_one_hot_rows_have_entropy_zero_and_saturation_one(plan: str) -> None:
    q = torch.eye(64) * 1e3
    weights = rg.Weights(q, q, plan=plan)
    assert torch.equal(weights.entropy(), torch.zeros(64)) and torch.equal(weights.saturation(), torch.ones(64))
    assert torch.equal(weights.top(1).indices[:, 0], torch.arange(64))


@every("plan", ["auto", "dense", "tiled", "fused"])
def test_level_rows_have_the_entropy_of_a_fair_die(plan: str) -> None:
    weights = rg.Weights(torch.ones(32, 4), torch.ones(300, 4) * 1e2, plan=plan)
    torch.testing.assert_close(weights.entropy(), torch.full((32,), 300.0).log(), atol=1e-5, rtol=0)
    torch.testing.assert_close(weights.saturation(), torch.full((32,), 1 / 300), atol=1e-8, rtol=1e-5)


@every("plan", ["auto", "dense", "tiled", "fused"])
@every("low", [-1e9, -1e15, torch.finfo(torch.float32).min])
def test_a_row_that_a_large_number_hides_whole_has_an_entropy(plan: str, low: float) -> None:
    """Hidden by a number and not by -inf, as people write it, a padded row is one whose scores all lie far down."""
    q, k = inputs(32, 300, 4, 1.0)
    t = torch.zeros(32, 300)
    t[5] = low
    weights = rg.Weights(q, k, scores.scaled_dot() + scores.bias(t), plan=plan)
    dense = torch.softmax(q.double() @ k.double().mT / 2 + t.double(), -1)
    torch.testing.assert_close(weights.entropy().double(), reference.entropy(dense), atol=1e-5, rtol=1e-5)
