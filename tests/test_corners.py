"""Corners in which a plausible engine goes wrong without a word."""

import math

import pytest
import torch

import regard as rg
from regard import errors, masks, scores

PLANS = ("auto", "dense", "tiled")


def qkv(n=20, m=20, d=8, lead=(3,), dtype=torch.float32):
    generator = torch.Generator().manual_seed(7)
    return tuple(torch.randn(*lead, length, d, generator=generator, dtype=dtype) for length in (n, m, m))


@pytest.mark.parametrize("question", ["received", "entropy", "saturation", "logsumexp"])
def test_an_answer_can_be_written_over(question):
    q, k, _ = qkv()
    weights = rg.Weights(q, k)
    first = getattr(weights, question)()
    before = first.clone()
    first.zero_()
    torch.testing.assert_close(getattr(weights, question)(), before)


def test_top_and_heatmap_can_be_written_over():
    q, k, _ = qkv()
    weights = rg.Weights(q, k)
    before = weights.top(3).values.clone(), weights.heatmap(256, "sum").clone()
    weights.top(3).values.zero_()
    weights.heatmap(256, "sum").zero_()
    torch.testing.assert_close((weights.top(3).values, weights.heatmap(256, "sum")), before)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("name", ["boxcar", "epanechnikov", "triangular", "tricube", "cosine"])
def test_a_nan_under_a_compact_kernel_shows(name, plan):
    q, k, v = qkv(d=2)
    q[0, 3] = math.nan
    output, weights = rg.attend(q, k, v, score=scores.kernel(name, 2.0), plan=plan)
    assert output[0, 3].isnan().all() and not weights.empty_rows()[0, 3]
    assert output[1:].isfinite().all()


@pytest.mark.parametrize("plan", PLANS)
def test_values_may_have_leading_dimensions_of_their_own(plan):
    q, k, _ = qkv(lead=())
    v = torch.randn(5, 20, 8)
    expected = torch.stack([rg.attend(q, k, part, plan=plan).output for part in v])
    output, weights = rg.attend(q, k, v, plan=plan)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(weights @ v, expected)


@pytest.mark.parametrize("plan", ["auto", "dense", "tiled", "fused"])
def test_a_wide_gaussian_keeps_its_digits(plan):
    q, k, v = qkv(n=64, m=64, d=6)
    exact = rg.attend(q.double(), k.double(), v.double(), score=scores.gaussian(40.0), plan="dense").output
    output = rg.attend(q, k, v, score=scores.gaussian(40.0), plan=plan).output
    torch.testing.assert_close(output.double(), exact, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("plan", ["auto", "dense", "tiled", "fused"])
@pytest.mark.parametrize("d", [3, 8])
def test_a_huge_hidden_key_is_absent(plan, d):
    q, k, v = qkv(n=40, m=40, d=d)
    expected = rg.attend(q, k, v, score=scores.gaussian(1.0), mask=masks.prefix(39), plan=plan).output
    k[:, 39] = 1e15
    output = rg.attend(q, k, v, score=scores.gaussian(1.0), mask=masks.prefix(39), plan=plan).output
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("plan", ["auto", "dense", "tiled", "fused"])
def test_a_nan_query_shows_also_where_few_keys_are_seen(plan):
    q, k, v = qkv()
    q[:, 19] = math.nan
    output = rg.attend(q, k, v, mask=masks.window(0, 0), plan=plan).output
    assert output[:, 19].isnan().all() and output[:, :19].isfinite().all()


def test_a_nan_row_says_nothing_of_keys_hidden_from_it():
    q, k, v = qkv()
    q[:, 5] = math.nan
    weights = rg.Weights(q, k, mask=masks.causal())
    assert weights.received()[:, 6:].isfinite().all() and weights.received()[:, :6].isnan().all()
    assert (weights.dense()[:, 5, 6:] == 0).all()
    assert (weights.mT @ v)[:, 6:].isfinite().all()


def test_two_tensors_of_one_name_are_two():
    q, k, v = qkv()
    first, second = torch.randn(20, 20, requires_grad=True), torch.randn(20, 20)
    output, weights = rg.attend(q, k, v, score=scores.scaled_dot() + scores.bias(first) + scores.bias(second))
    assert torch.autograd.grad(output.sum(), first)[0].abs().sum() > 0
    second.zero_()
    with pytest.raises(errors.StaleWeightsError, match="another t of bias"):
        weights.entropy()


def test_a_gaussian_kernel_follows_its_bandwidth():
    q, k, v = qkv()
    width = torch.tensor(2.0, requires_grad=True)
    score = scores.kernel("gaussian", width)
    for _ in range(2):
        rg.attend(q, k, v, score=score).output.square().sum().backward()
    with torch.no_grad():
        width.fill_(0.5)
    torch.testing.assert_close(
        rg.attend(q, k, v, score=score).output, rg.attend(q, k, v, score=scores.gaussian(2.0)).output
    )


def test_second_derivatives_of_an_additive_score_of_which_only_queries_learn():
    q, k, v = (t.double() for t in qkv(n=3, m=5, d=4, lead=()))
    q.requires_grad_()
    w_q, w_k, w = (torch.randn(*shape, dtype=torch.float64) for shape in ((7, 4), (7, 4), (7,)))

    def output(q):
        return rg.attend(q, k, v, score=scores.additive(w_q, w_k, w), plan="dense").output

    assert torch.autograd.gradgradcheck(output, (q,))


def test_autocast_decides_nothing():
    q, k, v = (t.requires_grad_() for t in qkv())
    weights = rg.Weights(q, k, mask=masks.window(3, 3))
    expected = [rg.attend(q, k, v, plan="tiled").output, weights @ v, weights.entropy(), weights.dense()]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        weights = rg.Weights(q, k, mask=masks.window(3, 3))
        found = [rg.attend(q, k, v, plan="tiled").output, weights @ v, weights.entropy(), weights.dense()]
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.plain
@pytest.mark.parametrize(
    "score", [scores.gaussian(1.0), scores.cosine(), scores.scaled_dot() + scores.bias(torch.ones(20))]
)
def test_compiled_without_a_mask(score):
    q, k, v = qkv()
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda q, k, v: rg.attend(q, k, v, score=score).output, fullgraph=True, backend="aot_eager"
    )
    torch.testing.assert_close(compiled(q, k, v), rg.attend(q, k, v, score=score).output, atol=1e-5, rtol=1e-5)


def test_boolean_indices():
    q, k, _ = qkv()
    weights = rg.Weights(q, k)
    rows = torch.arange(20) % 3 == 0
    torch.testing.assert_close(weights[..., rows, :], weights.dense()[..., rows, :])
    with pytest.raises(IndexError, match="20"):
        weights[..., torch.ones(4, dtype=torch.bool), :]


@pytest.mark.parametrize("score", [scores.alibi(torch.tensor([0.5, 0.1, 0.2])), scores.bias(torch.arange(20.0))])
def test_scores_of_positions_alone(score):
    q, k, v = qkv(lead=(2, 3))
    output, weights = rg.attend(q, k, v, score=score)
    dense = weights.dense()
    torch.testing.assert_close(dense @ v, output, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weights.received(), dense.sum(-2), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weights.heatmap(5, "sum").sum((-1, -2)), torch.full((2, 3), 20.0), atol=1e-4, rtol=1e-5)
