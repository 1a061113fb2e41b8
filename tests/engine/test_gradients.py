"""Derivatives in float64 against finite differences: every score with parameters, mask, normaliser, plan, question."""

from collections.abc import Callable
from typing import Any

import pytest
import reference
import torch
from strategies import MASKS, NORMALISERS, PLANS, SCORES, Problem, Sizes, normal, problem, seeded, served
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import regard as rg
from regard import scores

TINY = Sizes((2,), 3, 5, 3, 2, 2)
LONG = Sizes((), 5, 17, 3, 2, 2)  # torch's kernel is asked for 16 keys and more
SIZES = {"dense": TINY, "tiled": TINY, "fused": LONG}
BUDGET = {"dense": None, "tiled": 256, "fused": None}
SMOOTH = [name for name, case in NORMALISERS.items() if case.smooth]


def small(plan: str, *words: str, heads: bool = False, seed: int = 0) -> Problem:
    sizes = SIZES[plan]._replace(lead=(2,)) if heads else SIZES[plan]
    return problem(*words, sizes=sizes, seed=seed)


def inputs(p: Problem) -> tuple[Tensor, ...]:
    return tuple(x.clone().requires_grad_() for x in (p.q, p.k, p.v, *p.parameters))


def output(p: Problem, plan: str, **more: Any) -> Callable[..., Tensor]:
    def function(q: Tensor, k: Tensor, v: Tensor, *parameters: Tensor) -> Tensor:
        return rg.attend(q, k, v, **p.terms(*parameters), plan=plan, budget=BUDGET[plan], **more).output

    return function


def check(p: Problem, plan: str, function: Callable[..., Tensor], twice: bool = False, fast: bool = False) -> None:
    x = inputs(p)
    if served((p.fused and p.score.fused) or plan != "fused", lambda: function(*x)) is None:
        x = (*x[:3], *(t.detach() for t in x[3:]))  # the kernel may serve parameters that do not learn
    if served(p.fused or plan != "fused", lambda: function(*x)) is None:
        return
    assert gradcheck(function, x, fast_mode=fast)
    if twice:
        assert gradgradcheck(function, x, fast_mode=True)


@pytest.mark.parametrize("score", list(SCORES))
@pytest.mark.parametrize("plan", PLANS)
def test_gradients_of_every_score(score: str, plan: str) -> None:
    p = small(plan, score, heads=SCORES[score].heads)
    check(p, plan, output(p, plan), twice=plan != "fused")


@pytest.mark.parametrize("mask", list(MASKS))
@pytest.mark.parametrize("plan", PLANS)
def test_gradients_under_every_mask(mask: str, plan: str) -> None:
    p = small(plan, "scaled_dot", mask, seed=3)
    check(p, plan, output(p, plan), twice=plan != "fused")


@pytest.mark.parametrize("score", list(SCORES))
@pytest.mark.parametrize("mask", list(MASKS))
@pytest.mark.parametrize("plan", PLANS)
def test_gradients_of_every_score_under_every_mask(score: str, mask: str, plan: str) -> None:
    p = small(plan, score, mask, heads=SCORES[score].heads, seed=3)
    check(p, plan, output(p, plan), fast=True)


@pytest.mark.parametrize("normaliser", SMOOTH)
@pytest.mark.parametrize("mask", ["nothing", "hide"])
@pytest.mark.parametrize("plan", PLANS)
def test_gradients_of_every_normaliser(normaliser: str, mask: str, plan: str) -> None:
    p = small(plan, "scaled_dot", mask, normaliser, seed=1)
    check(p, plan, output(p, plan), twice=plan != "fused")


@pytest.mark.parametrize("plan", PLANS)
def test_gradients_of_grouped_heads(plan: str) -> None:
    p = problem("scaled_dot", "causal top-left", sizes=SIZES[plan]._replace(lead=(1, 4), kv_heads=2))
    check(p, plan, output(p, plan), twice=plan != "fused")


@pytest.mark.parametrize("plan", ["dense", "tiled"])
def test_gradients_with_dropout(plan: str) -> None:
    p = small(plan, "scaled_dot", "causal top-left")

    def function(*x: Tensor) -> Tensor:
        torch.manual_seed(7)
        return output(p, plan, dropout_p=0.4)(*x)

    check(p, plan, function, twice=True)


@pytest.mark.parametrize("plan", PLANS)
def test_gradients_of_weights_times_a_tensor(plan: str) -> None:
    p = small(plan, "gaussian", "padding")

    def function(q: Tensor, k: Tensor, v: Tensor, *parameters: Tensor) -> Tensor:
        return rg.Weights(q, k, **p.terms(*parameters), plan=plan, budget=BUDGET[plan]) @ v

    check(p, plan, function, twice=plan != "fused")


QUESTIONS: dict[str, Callable[[Any], Tensor]] = {
    "entropy": lambda w: w.entropy(),
    "saturation": lambda w: w.saturation(),
    "logsumexp": lambda w: w.logsumexp().clamp(min=-1e3),
    "distance": lambda w: w.distance(torch.arange(w.shape[-2]) + 0.5),
    "mass": lambda w: w.mass(torch.arange(w.shape[-1]) % 3 - 1),
    "transposed": lambda w: (
        w.mT @ torch.ones(w.shape[-2], 2, dtype=torch.float64).cumsum(0).expand(*w.shape[:-2], -1, -1)
    ),
}


@pytest.mark.parametrize("question", list(QUESTIONS))
@pytest.mark.parametrize(
    "words", [("scaled_dot", "nothing"), ("scaled_dot", "hide"), ("gaussian(d)", "causal top-left")]
)
@pytest.mark.parametrize("plan", PLANS)
def test_gradients_of_row_questions(question: str, words: tuple[str, str], plan: str) -> None:
    p = small(plan, *words)

    def function(q: Tensor, k: Tensor, *parameters: Tensor) -> Tensor:
        return QUESTIONS[question](rg.Weights(q, k, **p.terms(*parameters), plan=plan, budget=BUDGET[plan]))

    x = [x for i, x in enumerate(inputs(p)) if i != 2]
    if served(p.fused or plan != "fused", lambda: function(*x)) is not None:
        assert gradcheck(function, x)


@pytest.mark.parametrize("question", ["entropy", "saturation", "distance", "mass"])
@pytest.mark.parametrize("score", ["additive", "kernel triweight", "softcap + bias", "general"])
def test_gradients_of_questions_reach_the_parameters(question: str, score: str) -> None:
    p = small("tiled", score)
    x = inputs(p)[3:]
    assert gradcheck(lambda *t: QUESTIONS[question](rg.Weights(p.q, p.k, **p.terms(*t), plan="tiled", budget=256)), x)


@pytest.mark.parametrize("normaliser", ["sparsemax", "entmax15"])
@pytest.mark.parametrize("question", ["entropy", "saturation", "distance", "mass"])
def test_gradients_of_questions_of_sparse_weights(normaliser: str, question: str) -> None:
    p = small("tiled", "scaled_dot", "hide", normaliser)
    x = inputs(p)[:2]
    assert gradcheck(lambda q, k: QUESTIONS[question](rg.Weights(q, k, **p.terms(), plan="tiled", budget=256)), x)


@pytest.mark.parametrize("question", ["received", "top", "heatmap"])
def test_questions_without_a_derivative_say_so(question: str) -> None:
    q = normal(seeded(0), 7, 3).requires_grad_()
    answer = getattr(rg.Weights(q, q), question)(*[2][: question == "top"])
    values = answer.values if question == "top" else answer
    if values.requires_grad:  # one that has a derivative after all must have the right one
        assert gradcheck(lambda q: values_of(getattr(rg.Weights(q, q), question)(*[2][: question == "top"])), q)
    assert "differentiable" in getattr(rg.Weights, question).__doc__.lower()


def values_of(answer: Any) -> Tensor:
    return answer if isinstance(answer, Tensor) else answer.values


# --- the edge of a compact kernel, and its centre


@pytest.mark.parametrize("name", reference.COMPACT)
@pytest.mark.parametrize("plan", ["auto", "dense", "tiled"])
def test_a_key_on_the_edge_or_the_centre_of_a_kernel_gives_a_finite_gradient(name: str, plan: str) -> None:
    q = torch.zeros(1, 2, dtype=torch.float64, requires_grad=True)
    k = torch.tensor([[0, 0], [1, 0], [0, 1 - 1e-12], [0.5, 0], [3, 0]], dtype=torch.float64, requires_grad=True)
    h = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    v = torch.arange(5, dtype=torch.float64)[:, None].requires_grad_()
    output = rg.attend(q, k, v, score=scores.kernel(name, h), plan=plan).output
    gradients = torch.autograd.grad(output.sum(), (q, k, v, h), materialize_grads=True)
    assert all(g.isfinite().all() for g in gradients)
    assert not gradients[1][4].any()


@pytest.mark.parametrize("name", reference.COMPACT)
@pytest.mark.parametrize("plan", ["auto", "dense", "tiled"])
def test_just_inside_the_edge_the_gradient_is_that_of_the_kernel_itself(name: str, plan: str) -> None:
    """d log K explodes there; dK does not: compare with K / sum K differentiated as it stands."""
    k = torch.tensor([[0.25], [1 - 1e-9]], dtype=torch.float64, requires_grad=True)
    v = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    output = rg.attend(torch.zeros(1, 1, dtype=torch.float64), k, v, score=scores.kernel(name, 1.0), plan=plan).output
    raw = reference.KERNELS[name](k[:, 0]) + 0 * k[:, 0]
    (expected,) = torch.autograd.grad((raw * v[:, 0]).sum() / raw.sum(), k)
    actual = torch.autograd.grad(output.sum() + 0 * k.sum(), k)[0]
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["laplace", "gaussian", *reference.COMPACT])
def test_far_away_keys_give_an_empty_row_or_the_nearest_and_finite_gradients(name: str) -> None:
    q, k = torch.zeros(2, 3, requires_grad=True), torch.full((4, 3), 50.0, requires_grad=True)
    output, weights = rg.attend(q, k, torch.ones(4, 2), score=scores.kernel(name, 1.0))
    assert torch.equal(weights.empty_rows(), torch.full((2,), name in reference.COMPACT))
    assert torch.equal(output, torch.full((2, 2), float(name not in reference.COMPACT)))
    assert all(not g.any() for g in torch.autograd.grad(output.sum() + 0 * q.sum(), (q, k), materialize_grads=True))


# --- what must not be differentiated


@pytest.mark.parametrize("plan", ["auto", *PLANS])
def test_only_tensors_that_require_a_gradient_get_one(plan: str) -> None:
    p = problem(sizes=LONG)
    p.v.requires_grad_()
    p.attend(plan=plan).output.sum().backward()
    assert p.v.grad is not None
    assert p.q.grad is None and p.k.grad is None
    torch.testing.assert_close(p.v.grad, p.answer().weights.sum(-2)[:, None].expand(p.v.shape))


def test_hard_attention_gives_values_their_gradient_and_queries_none() -> None:
    p = problem("scaled_dot", "nothing", "hard", sizes=LONG)
    q, k, v = inputs(p)
    rg.attend(q, k, v, **p.terms()).output.sum().backward()
    torch.testing.assert_close(v.grad, p.answer().weights.sum(-2)[:, None].expand(v.shape))
    assert all(x.grad is None or not x.grad.any() for x in (q, k))


@pytest.mark.parametrize("plan", ["auto", *PLANS])
@pytest.mark.parametrize("mask", list(MASKS))
@pytest.mark.parametrize(("n", "m"), [(256, 256), (301, 331), (128, 640), (700, 90)])
def test_output_and_gradient_are_those_of_the_formula_over_many_blocks(n: int, m: int, mask: str, plan: str) -> None:
    p = problem("scaled_dot", mask, sizes=Sizes((2,), n, m, 8, 8, 5), seed=n)
    p = p._replace(**dict(zip("qkv", inputs(p), strict=True)))
    answer = served(
        p.fused or plan != "fused", lambda: p.attend(plan=plan, budget=1 << 16 if plan == "tiled" else None)
    )
    if answer is None:
        return
    x, weight, expected = (p.q, p.k, p.v), normal(seeded(9), *answer.output.shape), p.answer().output
    torch.testing.assert_close(answer.output, expected, atol=1e-10, rtol=1e-8)
    pairs = [torch.autograd.grad((output * weight).sum(), x) for output in (answer.output, expected)]
    for a, e in zip(*pairs, strict=True):
        torch.testing.assert_close(a, e, atol=1e-10, rtol=1e-8)
