"""Keys that no mask hides: out of a kernel's reach, or with -inf in a bias. They contribute nothing either."""

import pytest
import torch
from strategies import PLANS

import regard as rg
from regard import masks, normalisers, scores

N, M, D = 5, 23, 3
BAD = [torch.nan, torch.inf, -torch.inf]


def inputs(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(n, D, generator=generator, dtype=torch.float64).to(dtype) for n in (N, M, M)]


def asked(tensors, plan, **words):
    """Output, entropy and gradients; None where a forced fused plan does not serve."""
    leaves = [t.clone().requires_grad_() for t in tensors]
    try:
        output, weights = rg.attend(*leaves, plan=plan, **words)
    except rg.errors.PlanError:
        return None
    finite = torch.autograd.grad(output.sin().sum(), leaves)
    return output, weights.entropy(), weights.logsumexp(), *finite


def hiding_bias(learned):
    t = torch.linspace(-1, 1, M, dtype=torch.float64)
    t[[2, 7]] = -torch.inf
    return scores.scaled_dot() + scores.bias(t.requires_grad_(learned))


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("which", ["key", "value"])
def test_a_bias_of_minus_infinity_hides_a_key(plan, learned, bad, which):
    clean = inputs()
    spoiled = [t.clone() for t in clean]
    spoiled[1 if which == "key" else 2][[2, 7]] = bad
    found, truth = (asked(tensors, plan, score=hiding_bias(learned)) for tensors in (spoiled, clean))
    if found is None:
        assert plan == "fused"
        return
    for one, two in zip(found, truth, strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("plan", ["dense", "tiled"])
@pytest.mark.parametrize("name", ["boxcar", "epanechnikov", "triangular"])
@pytest.mark.parametrize("bad", BAD)
def test_a_value_out_of_reach_of_a_kernel_changes_nothing(plan, name, bad):
    clean = inputs()
    clean[1][[2, 7]] = 100.0
    spoiled = [t.clone() for t in clean]
    spoiled[2][[2, 7]] = bad
    found, truth = (asked(tensors, plan, score=scores.kernel(name, 3.0)) for tensors in (spoiled, clean))
    for one, two in zip(found, truth, strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("plan", ["dense", "tiled"])
@pytest.mark.parametrize("name", ["boxcar", "epanechnikov", "triangular"])
def test_a_key_at_infinity_is_out_of_reach(plan, name):
    clean = inputs()
    clean[1][[2, 7]] = 100.0
    spoiled = [t.clone() for t in clean]
    spoiled[1][[2, 7]] = torch.inf
    found, truth = (asked(tensors, plan, score=scores.kernel(name, 3.0)) for tensors in (spoiled, clean))
    for one, two in zip(found, truth, strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("mask", [masks.window(2, 0, "top-left"), masks.causal("top-left"), masks.prefix(20)])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("paired", [False, True])
def test_a_bias_that_is_hidden_is_not_looked_at(plan, mask, bad, paired):
    clean = torch.linspace(-1, 1, M, dtype=torch.float64)
    spoiled = clean.clone()
    spoiled[21:] = bad
    if paired:
        clean, spoiled = (t.expand(N, M).contiguous() for t in (clean, spoiled))
    answers = [asked(inputs(), plan, score=scores.scaled_dot() + scores.bias(t), mask=mask) for t in (spoiled, clean)]
    for one, two in zip(*answers, strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("n", [M, M - 4, M + 6])
@pytest.mark.parametrize("mask", [masks.causal("top-left"), masks.window(30, 0, "top-left")])
def test_rows_that_see_only_minus_infinity_are_empty(plan, learned, n, mask):
    """Left padding, written as a bias, under a causal mask."""
    query, key, value = (torch.randn(2, length, D, dtype=torch.float64) for length in (n, M, M))
    t = torch.zeros(M, dtype=torch.float64)
    t[:4] = -torch.inf
    words = {"score": scores.scaled_dot() + scores.bias(t.requires_grad_(learned)), "mask": mask}
    output, weights = rg.attend(query, key, value, plan=plan, **words)
    empty = torch.arange(n) < 4
    assert torch.equal(weights.logsumexp() == -torch.inf, empty.expand(2, n))
    assert torch.equal(weights.empty_rows(), empty.expand(2, n))
    assert not output[:, :4].any() and torch.isfinite(output).all()


@pytest.mark.parametrize("normaliser", [normalisers.softmax(), normalisers.sparsemax(), normalisers.entmax15()])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("plan", ["dense", "tiled"])
def test_a_row_that_sees_nan_has_no_weights(normaliser, bad, plan):
    scores_of = torch.tensor([[5.0, bad, 2.0], [1.0, 0.0, 2.0]], dtype=torch.float64)
    weights = rg.Weights(
        torch.zeros(2, 1, dtype=torch.float64),
        torch.zeros(3, 1, dtype=torch.float64),
        score=scores.uniform() + scores.bias(scores_of),
        normaliser=normaliser,
        plan=plan,
    )
    assert weights.dense()[0].isnan().all() and weights[0].isnan().all()
    assert torch.isfinite(weights.dense()[1]).all()
    assert weights.received().isnan().all()
