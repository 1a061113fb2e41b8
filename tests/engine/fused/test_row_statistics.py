"""Entropy and logsumexp with a gradient on torch's kernel: right, exact where it cancels, and twice differentiable."""

from typing import Any

import pytest
import reference
import torch
from hypothesis import given
from strategies import MASKS, Problem, Sizes, normal, problem, problems, seeded
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.utils.checkpoint import checkpoint

import regard as rg
from regard import masks, scores
from regard.engine import questions as questions_module
from regard.engine.fused import row_statistics

every = pytest.mark.parametrize
questions = every("question", ["entropy", "logsumexp"])
INNER = ["dot", "scaled_dot(2)", "cosine", "general", "location", "gaussian", "gaussian(d)"]
TINY = Sizes((2,), 5, 17, 3, 2, 2)


@pytest.fixture
def no_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """With this a question that goes back to tiles fails."""
    monkeypatch.setattr(questions_module, "row_question_with_graph", lambda *_, **__: pytest.fail("tiles"))


def finite(answer: Tensor) -> Tensor:
    return answer.where(answer > -torch.inf, 0)


def leaves(p: Problem) -> list[Tensor]:
    return [x.clone().requires_grad_() for x in (p.q, p.k, *p.parameters)]


def asked(p: Problem, question: str, plan: str) -> Any:
    return lambda q, k, *t: getattr(rg.Weights(q, k, **p.terms(*t), plan=plan), question)()


def exact(q: Tensor, k: Tensor, visible: Tensor, question: str, grad: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Answer and gradients of the dense formula in float64."""
    x = [t.detach().double().requires_grad_() for t in (q, k)]
    seen = visible.any(-1)
    rows = reference.scaled_dot(*x).masked_fill(~visible & seen.unsqueeze(-1), -torch.inf)
    weights = reference.softmax(rows, visible)
    log = rows.log_softmax(-1).clamp(min=-1e4)
    answer = -(weights * log).sum(-1) if question == "entropy" else rows.logsumexp(-1)
    answer = answer.where(seen, 0)
    return answer.detach(), torch.autograd.grad(answer, x, grad.double())


def compare(q: Tensor, k: Tensor, mask: Any, visible: Tensor, question: str) -> None:
    """float32 against float64: values to 1e-5, gradients to 1e-4 of their size."""
    q, k = (x.detach().clone().requires_grad_() for x in (q, k))
    weights = rg.Weights(q, k, mask=mask)
    assert weights.plan.executor == "fused"
    found = finite(getattr(weights, question)())
    grad = normal(seeded(5), *found.shape, dtype=torch.float32)
    answer, gradients = exact(q, k, visible.expand(*found.shape, k.shape[-2]), question, grad)
    torch.testing.assert_close(found.double(), answer, atol=1e-5, rtol=1e-6)
    for a, e in zip(torch.autograd.grad(found, (q, k), grad), gradients, strict=True):
        assert (a - e).norm() <= 1e-4 * e.norm()


@questions
@every("score", INNER)
@every("mask", list(MASKS))
def test_first_and_second_derivatives(question: str, score: str, mask: str) -> None:
    p = problem(score, mask, sizes=TINY, seed=3)
    function = asked(p, question, "fused")
    assert gradcheck(lambda *x: finite(function(*x)), leaves(p), fast_mode=True)
    if p.visible.any():
        assert gradgradcheck(lambda *x: finite(function(*x)), leaves(p), fast_mode=True)


@questions
@given(p=problems(score=INNER))
def test_the_kernel_says_what_tiles_say(question: str, p: Problem) -> None:
    if p.sizes.m < 16:
        return
    x = leaves(p)
    answers = [asked(p, question, plan)(*x) for plan in ("fused", "tiled")]
    torch.testing.assert_close(*answers, atol=1e-9, rtol=1e-9)
    grad = normal(seeded(1), *answers[0].shape)
    gradients = [torch.autograd.grad(finite(a), x, grad, materialize_grads=True) for a in answers]
    for a, e in zip(*gradients, strict=True):
        torch.testing.assert_close(a, e, atol=1e-9, rtol=1e-7)


@questions
@every("score", INNER)
@pytest.mark.usefixtures("no_tiles")
def test_the_kernel_answers_without_tiles(question: str, score: str) -> None:
    p = problem(score, "padding", sizes=Sizes((2, 4), 11, 37, 5, 3, 2, None), seed=1)
    x = [t.detach() / 4 for t in leaves(p)]
    finite(asked(p, question, "fused")(*(t.requires_grad_() for t in x))).sum().backward()
    assert x[0].grad is not None


@questions
@pytest.mark.usefixtures("no_tiles")
def test_grouped_heads_equal_repeated_heads(question: str) -> None:
    q, k = normal(seeded(0), 2, 6, 19, 5).requires_grad_(), normal(seeded(1), 2, 3, 31, 5).requires_grad_()
    found = getattr(rg.Weights(q, k), question)()
    twin = getattr(rg.Weights(q, k.repeat_interleave(2, -3)), question)()
    torch.testing.assert_close(found, twin)
    for a, e in zip(*(torch.autograd.grad(answer.sum(), (q, k)) for answer in (found, twin)), strict=True):
        torch.testing.assert_close(a, e)


@questions
@every("mask", ["nothing", "causal", "window"])
@every("size", [1.0, 20.0, 40.0, 300.0, 3e3])
@every("sharp", ["no", "all", "some", "one head"])
def test_float32_answers_are_within_rounding_of_float64(question: str, mask: str, size: float, sharp: str) -> None:
    q, k = (normal(seeded(i), 3, 512, 16, dtype=torch.float32) for i in range(2))
    if sharp == "all":
        q = k
    elif sharp == "some":
        q[:, ::7] = k[:, ::7]
    elif sharp == "one head":
        q[1] = k[1]
    largest = scores.scaled_dot().magnitude(q, k)
    q, k = (x * (size / largest) ** 0.5 for x in (q, k))
    word, visible = {
        "nothing": (None, torch.ones(512, 512, dtype=torch.bool)),
        "causal": (masks.causal(), reference.causal(512, 512)),
        "window": (masks.window(40, 3), reference.window(512, 512, 40, 3)),
    }[mask]
    if size > 100 and sharp == "all":
        size, q, k = 47.0, q / size**0.5 * 47**0.5, k / size**0.5 * 47**0.5  # else all gradients would be 0
    compare(q, k, word, visible, question)


@questions
def test_a_padded_batch_with_empty_rows(question: str) -> None:
    q, k = (normal(seeded(i), 3, 2, 129, 16, dtype=torch.float32) for i in range(2))
    lengths = torch.tensor([129, 0, 77])
    mask = masks.padding(lengths) & masks.hide(torch.arange(129)[:, None] == 5)
    visible = reference.padding(129, 129, lengths, 2) & (torch.arange(129)[:, None] != 5)
    compare(q, k, mask, visible, question)
    q.requires_grad_(), k.requires_grad_()
    answer = getattr(rg.Weights(q, k, mask=mask), question)()
    assert (answer[1] == (0 if question == "entropy" else -torch.inf)).all()
    answer.where(answer > -torch.inf, 0).sum().backward()
    assert not q.grad[1].any() and not k.grad[1].any() and not q.grad[:, :, 5].any()


def test_only_tiles_with_sharp_rows_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    plain = questions_module.row_question_with_graph

    def spy(problem: Any, question: str, cap: int, tiles: Any = None) -> Tensor:
        made.append(tiles)
        return plain(problem, question, cap, tiles=tiles)

    monkeypatch.setattr(questions_module, "row_question_with_graph", spy)
    q, k = (normal(seeded(i), 4, 1024, 8, dtype=torch.float32) for i in range(2))
    rg.Weights(q.requires_grad_(), k, mask=masks.causal(), budget=1 << 20).entropy()  # the first row sees one key
    (tiles,) = made
    assert tiles is not None and all(tile.rows.start == 0 for tile in tiles)
    assert row_statistics._n_scores(tiles) < 4 * 1024 * 1024 / 8


@every("plan", ["dense", "tiled", "fused"])
def test_the_gradient_of_sharp_rows_has_its_digits(plan: str) -> None:
    """d(p log p) = log p + 1, and the 1 must not round log p away."""
    k = torch.eye(32) * 12.0
    q = torch.eye(32).requires_grad_()
    (found,) = torch.autograd.grad(rg.Weights(q, k, score=scores.dot(), plan=plan).entropy().sum(), q)
    x = torch.eye(32, dtype=torch.float64).requires_grad_()
    log = (x @ k.double().mT).log_softmax(-1)
    (expected,) = torch.autograd.grad(-(log.exp() * log).sum(), x)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-9)


@questions
@every("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_is_computed_in_float32(question: str, dtype: torch.dtype) -> None:
    q, k = (normal(seeded(i), 2, 65, 16, dtype=dtype) for i in range(2))
    low = [x.clone().requires_grad_() for x in (q, k)]
    high = [x.float().requires_grad_() for x in (q, k)]
    answers = [getattr(rg.Weights(*x), question)() for x in (low, high)]
    assert answers[0].dtype == torch.float32 and torch.equal(*answers)
    gradients = [torch.autograd.grad(a.sum(), x) for a, x in zip(answers, (low, high), strict=True)]
    assert all(torch.equal(a, e.to(dtype)) for a, e in zip(*gradients, strict=True))


@questions
@every("score", [scores.scaled_dot() + scores.bias(torch.linspace(0, 1, 33)), scores.scaled_dot()])
def test_gradients_of_questions_where_one_side_requires_them(question: str, score: Any) -> None:
    for side in (0, 1):
        x = [normal(seeded(i), 2, 33, 4) for i in range(2)]
        x[side].requires_grad_()
        assert gradcheck(lambda *t: getattr(rg.Weights(*t, score=score, plan="fused"), question)(), x, fast_mode=True)


@questions
def test_a_checkpoint_and_a_second_pass_give_the_same(question: str) -> None:
    x = [normal(seeded(i), 2, 300, 16).requires_grad_() for i in range(2)]
    function = lambda q, k: getattr(rg.Weights(q, k, mask=masks.causal()), question)()  # noqa: E731
    answer = function(*x).sum()
    first = torch.autograd.grad(answer, x, retain_graph=True)
    again = torch.autograd.grad(answer, x)
    saved = torch.autograd.grad(checkpoint(function, *x, use_reentrant=False).sum(), x)
    for one, two, three in zip(first, again, saved, strict=True):
        assert torch.equal(one, two) and torch.equal(one, three)
