"""Slopes by the fast sum: against all pairs in float64, each within its bound, and the rest redone."""

import math

import numpy as np
import pytest
import torch

import regard as rg
from regard.regression.kernel_sums import engine
from regard.regression.kernel_sums.sample import Sample, scale_of
from regard.regression.local import constant, linear_fourier


def data(n, d, outputs=2, seed=0):
    """Clusters, copies and a far point, on features of very different size."""
    generator = torch.Generator().manual_seed(seed)
    unit = torch.tensor([1.0, 50.0, 0.01], dtype=torch.float64)[:d]
    z = torch.randn(n, d, generator=generator, dtype=torch.float64)
    z[: n // 3] *= 0.05
    z[1] = z[0]
    z[2] += 9
    noise = torch.randn(n, outputs, generator=generator, dtype=torch.float64)
    return (z + 20) * unit, torch.sin(2 * z[:, :1]) + 0.3 * noise + 1e3, unit


def by_pairs(sample, query):
    """The covariance of x and y under the weights of each query, over h^2."""
    away = (query.unsqueeze(1) - sample.x) / sample.bandwidth
    scores = away.square().sum(2) / -2
    p = torch.softmax(scores if sample.log_weight is None else scores + sample.log_weight, 1)
    y = sample.values - p.unsqueeze(1) @ sample.values  # (q, n, outputs)
    return torch.einsum("qn,qnd,qno->qdo", p, -away, y) / sample.bandwidth.unsqueeze(1)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_slope_breaks_its_bound(d, weighted):
    x, y, unit = data(401, d)
    weight = torch.rand(401, generator=torch.Generator().manual_seed(3), dtype=torch.float64) + 0.01
    sample = Sample(x, y, unit * 0.5, log_weight=weight.log() if weighted else None)
    query = torch.cat([x[:53], x[:53] + 0.7 * unit, x[:7] + 40 * unit])
    slope, error = linear_fourier.gradient(sample, query, 1e-6)
    off = (slope - by_pairs(sample, query)).abs() * sample.bandwidth.unsqueeze(1) / scale_of(y)
    assert (off.amax((1, 2)) <= error + 1e-12).all()
    certain = error <= 1e-6
    assert certain.sum() > 50 and not certain[-7:].any(), "the bound says nothing, or too much"


def test_a_feature_of_infinite_width_has_no_slope():
    x, y, unit = data(211, 3)
    h = unit * torch.tensor([0.5, math.inf, 0.5], dtype=torch.float64)
    slope, _ = linear_fourier.gradient(Sample(x, y, h), x, 1e-6)
    alone, _ = linear_fourier.gradient(Sample(x[:, [0, 2]], y, h[[0, 2]]), x[:, [0, 2]], 1e-6)
    assert (slope[:, 1] == 0).all()
    torch.testing.assert_close(slope[:, [0, 2]], alone)


def test_the_estimator_takes_the_fast_sum_and_redoes_the_rest(monkeypatch):
    x, y, unit = data(4001, 1, outputs=1)
    query = torch.cat([x, x[:7] + 40 * unit])
    asked = []
    covariance = constant.covariance
    monkeypatch.setattr(
        "regard.regression.local.constant.covariance", lambda data, q: asked.append(len(q)) or covariance(data, q)
    )
    fitted = rg.NadarayaWatson(bandwidth=0.3).fit(x.numpy(), y[:, 0].numpy())
    found = fitted.derivative(query.numpy())
    sample = Sample(x, y, unit * 0.3)
    plan = engine.explain(sample, query)
    assert plan.name == "fast", str(plan)
    expected = torch.cat([by_pairs(sample, part) for part in query.split(500)])[:, :, 0]
    np.testing.assert_allclose(found, expected.numpy(), rtol=0, atol=1e-6 * float(scale_of(y)) / 0.3)
    assert 7 <= sum(asked) < len(query) // 10
