"""NaN in a row shows in that row alone, and huge numbers in hidden keys do no harm."""

import math

import pytest
import reference
import torch
from random_qkv import qkv

import regard as rg
from regard import masks, scores

PLANS = ("auto", "dense", "tiled")


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("name", ["boxcar", "epanechnikov", "triangular", "tricube", "cosine"])
def test_a_nan_query_shows_under_a_compact_kernel(name, plan):
    q, k, v = qkv(d=2)
    q[0, 3] = math.nan
    output, weights = rg.attend(q, k, v, score=scores.kernel(name, 2.0), plan=plan)
    assert output[0, 3].isnan().all() and not weights.empty_rows()[0, 3]
    assert output[1:].isfinite().all()


@pytest.mark.parametrize("plan", ["auto", "dense", "tiled", "fused"])
@pytest.mark.parametrize("d", [3, 8])
def test_a_huge_hidden_key_changes_nothing(plan, d):
    q, k, v = qkv(n=40, m=40, d=d)
    expected = rg.attend(q, k, v, score=scores.gaussian(1.0), mask=masks.prefix(39), plan=plan).output
    k[:, 39] = 1e15
    output = rg.attend(q, k, v, score=scores.gaussian(1.0), mask=masks.prefix(39), plan=plan).output
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("plan", ["auto", "dense", "tiled", "fused"])
def test_a_nan_query_shows_where_it_sees_few_keys(plan):
    q, k, v = qkv()
    q[:, 19] = math.nan
    output = rg.attend(q, k, v, mask=masks.window(0, 0), plan=plan).output
    assert output[:, 19].isnan().all() and output[:, :19].isfinite().all()


def test_a_nan_row_gives_no_weight_to_keys_hidden_from_it():
    q, k, v = qkv()
    q[:, 5] = math.nan
    weights = rg.Weights(q, k, mask=masks.causal())
    assert weights.received()[:, 6:].isfinite().all() and weights.received()[:, :6].isnan().all()
    assert (weights.dense()[:, 5, 6:] == 0).all()
    assert (weights.mT @ v)[:, 6:].isfinite().all()


@pytest.mark.parametrize("plan", ["auto", "dense", "tiled", "fused"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [0.0, 1e-42, -0.5])
def test_hidden_keys_stay_hidden_at_any_scale(plan, dtype, scale):
    """torch's kernel multiplies the -inf of its causal mask by the scale."""
    q, k, v = (t.requires_grad_() for t in qkv(dtype=dtype))
    output, weights = rg.attend(q, k, v, scores.scaled_dot(scale), masks.causal(), plan=plan)
    raw = (q.double() @ k.double().mT * scale).masked_fill(~reference.causal(20, 20), -math.inf)
    exact = torch.softmax(raw, -1) @ v.double()
    torch.testing.assert_close(output.double(), exact, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weights.logsumexp().double(), raw.logsumexp(-1), atol=1e-5, rtol=1e-5)
    grads = [torch.autograd.grad(out.square().sum(), (q, k, v)) for out in (output, exact)]
    torch.testing.assert_close(*grads, atol=1e-4, rtol=1e-4)
