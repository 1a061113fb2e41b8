"""Weights that are whole numbers count rows; others say how much a row is worth, down to nothing at all."""

import numpy as np
import pytest

import regard as rg
from regard.regression.out_of_core import fit
from regard.regression.out_of_core.source import ArraySource


def data(n, seed=0):
    random = np.random.default_rng(seed)
    x = random.uniform(0, 5, (n, 1))
    return x, np.sin(2 * x[:, 0]) + 0.3 * random.normal(size=n), random


@pytest.mark.parametrize("rule", ["cv", "scott"])
@pytest.mark.parametrize("others", [1.0, "any"])
@pytest.mark.parametrize("faint", [1e-12, 1e-9, 1e-300])
def test_a_row_worth_next_to_nothing_changes_nothing(rule, others, faint):
    x, y, random = data(120)
    weight = np.full(120, 1.0) if others == 1.0 else random.uniform(0.5, 2, 120)
    weight[:7] = faint
    found = rg.NadarayaWatson(bandwidth=rule).fit(x, y, weight)
    truth = rg.NadarayaWatson(bandwidth=rule).fit(x[7:], y[7:], weight[7:] + (others == 1.0) * 1e-7)
    np.testing.assert_allclose(found.bandwidth_, truth.bandwidth_, rtol=1e-4)
    assert found.cv_ == pytest.approx(truth.cv_, rel=1e-5)
    band = found.confidence_band([[2.0]])
    assert band[1] - band[0] > 0.05


def test_weights_of_a_tenth_are_no_counts():
    x, y, random = data(150)
    weight = random.choice([0.1, 1.0], 150)
    found = rg.NadarayaWatson().fit(x, y, weight)
    assert found.bandwidth_[0] > 0.03  # as counts, ten copies of a row would predict it
    assert found.loo_score_ < 0.95


def test_weights_that_are_counts_equal_repeated_rows():
    x, y, random = data(60)
    times = random.integers(1, 4, 60)
    found = rg.NadarayaWatson().fit(x, y, times)
    truth = rg.NadarayaWatson().fit(np.repeat(x, times, 0), np.repeat(y, times))
    np.testing.assert_allclose(found.bandwidth_, truth.bandwidth_, rtol=1e-6)


def test_chunks_of_rows_without_weight(monkeypatch):
    monkeypatch.setattr(fit, "SAMPLED_ROWS", 30)
    x, y, random = data(1500)
    weight = np.zeros(1500)
    some = random.choice(1500, 60, replace=False)
    weight[some] = random.uniform(0.5, 2, 60)
    found = rg.NadarayaWatson()._fit_source(ArraySource(x, y, weight, rows=500))
    truth = rg.NadarayaWatson().fit(x, y, weight)
    assert np.isfinite(found.bandwidth_).all()
    np.testing.assert_allclose(found.bandwidth_, truth.bandwidth_, rtol=1e-3)
