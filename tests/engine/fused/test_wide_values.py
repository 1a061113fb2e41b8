"""Values wider than keys: the way back over whole rows of weights, against one dense tile."""

import pytest
import torch

import regard as rg
from regard import masks, scores
from regard.engine.fused import wide_values

WIDE = 101  # at least twice NARROWEST
MASKS = {"whole": None, "causal": masks.causal("top-left")}


@pytest.fixture
def calls(monkeypatch):
    """How often the way back was taken."""
    seen = []
    gradients = wide_values.gradients

    def counted(*args, **options):
        seen.append(options)
        return gradients(*args, **options)

    monkeypatch.setattr(wide_values, "gradients", counted)
    return seen


def inputs(lead=(2, 3), n=37, m=41, d=11, dtype=torch.float64, kv_lead=None):
    kv_lead = lead if kv_lead is None else kv_lead
    generator = torch.Generator().manual_seed(0)
    shapes = ((*lead, n, d), (*kv_lead, m, d), (*kv_lead, m, WIDE))
    return [torch.randn(s, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for s in shapes]


def gradients(tensors, **options):
    output = rg.attend(*tensors, **options).output
    cotangent = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).view_as(output)
    return output, *torch.autograd.grad(output, tensors, cotangent)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("sizes", [(37, 41), (41, 37), (17, 17)])
@pytest.mark.parametrize("budget", [1, 2**14, None])
def test_any_tile_is_one_dense_tile(calls, mask, sizes, budget):
    n, m = sizes
    tensors = inputs(n=n, m=m)
    found = gradients(tensors, mask=MASKS[mask], budget=budget)
    assert len(calls) == 1
    expected = gradients(tensors, mask=MASKS[mask], plan="dense")
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize(("lead", "kv_lead"), [((), ()), ((5,), (5,)), ((2, 3, 2), (2, 3, 2)), ((2, 6), (2, 3))])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_any_leading_dimensions_and_digits(calls, lead, kv_lead, dtype):
    tensors = inputs(lead, kv_lead=kv_lead, dtype=dtype)
    found = gradients(tensors)
    assert len(calls) == 1
    expected = gradients([t.detach().double().requires_grad_() for t in tensors], plan="dense")
    for one, two in zip(found, expected, strict=True):
        eps = torch.finfo(dtype).eps
        assert one.dtype == dtype
        torch.testing.assert_close(one.double(), two, atol=8 * eps * two.abs().max().item(), rtol=8 * eps)


@pytest.mark.parametrize("mask", MASKS)
def test_gradients_are_those_of_finite_differences(mask):
    tensors = inputs((2,), n=5, m=17, d=3)
    assert torch.autograd.gradcheck(
        lambda *t: rg.attend(*t, mask=MASKS[mask]).output, tensors, fast_mode=True, atol=1e-6
    )


def test_a_score_of_features_and_its_parameter(calls):
    query, key, value = inputs((), n=13, m=19, d=5)
    w = torch.linspace(0.5, 1.5, 5, dtype=torch.float64, requires_grad=True)
    asked = [query, key, value, w]
    found, expected = (
        torch.autograd.grad(rg.attend(query, key, value, score=scores.gaussian(w), plan=plan).output.sin().sum(), asked)
        for plan in ("fused", "dense")
    )
    assert len(calls) == 1
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two, atol=1e-9, rtol=1e-9)


def test_weights_have_their_log_sum_exp_all_the_same():
    query, key, value = inputs()
    weights = rg.attend(query, key, value).weights
    torch.testing.assert_close(weights.logsumexp(), torch.logsumexp(query @ key.mT / 11**0.5, -1))


@pytest.mark.parametrize("hidden", ["key", "value"])
def test_what_is_hidden_reaches_no_gradient(hidden):
    tensors = inputs((), n=17, m=17)
    with torch.no_grad():
        tensors[1 if hidden == "key" else 2][-1] = torch.nan
    output = rg.attend(*tensors, mask=masks.causal()).output
    found = torch.autograd.grad(output[:-1].sum(), tensors)
    assert all(torch.isfinite(part).all() for part in (output[:-1], *found))


def test_autocast_does_not_change_gradients():
    tensors = inputs(dtype=torch.float32)
    expected = gradients(tensors)
    with torch.autocast("cpu", torch.bfloat16):
        found = gradients(tensors)
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two)


def test_a_second_derivative_is_refused_not_wrong():
    tensors = inputs((), n=17, m=17)
    (first, *_) = torch.autograd.grad(rg.attend(*tensors).output.sum(), tensors, create_graph=True)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(first.sum(), tensors)
