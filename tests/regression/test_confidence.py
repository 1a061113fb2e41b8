"""How sure a prediction is: standard errors by their formula, and bands that hold what they promise."""

import numpy as np
import pytest

import regard as rg
from regard.kernels import names

KERNELS = names()


def data(n=61, features=2, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(0, 3, size=(n, features))
    return x, np.stack([np.sin(x[:, 0]), x.sum(1)], 1) + 0.2 * generator.normal(size=(n, 2))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_standard_error_follows_its_formula(kernel, degree, weighted):
    x, y = data()
    weight = np.random.default_rng(1).uniform(0.5, 3, 61) if weighted else np.ones(61)
    query = x[::4] + 0.05
    model = rg.NadarayaWatson(kernel, 1.7, degree).fit(x, y, weight if weighted else None)
    near = rg.NadarayaWatson(kernel, 1.7).fit(x, y, weight).weights(query).dense().numpy()
    matrix = model.weights(query).dense().numpy()
    expected = np.sqrt(near @ model.loo_residuals_**2 * (matrix**2 / weight).sum(1, keepdims=True))
    mean, found = model.predict(query, return_std=True)
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    np.testing.assert_allclose(mean, model.predict(query), rtol=1e-12)


def test_a_band_is_around_the_curve_and_grows_with_its_level():
    x, y = data()
    model = rg.NadarayaWatson(bandwidth=0.5).fit(x, y)
    mean, error = model.predict(x, return_std=True)
    low, high = model.confidence_band(x)
    np.testing.assert_allclose((low + high) / 2, mean, atol=1e-12)
    assert ((high - low) / 2 > 1.959 * error).all()  # Student's t is wider than the normal distribution
    wider = model.confidence_band(x, 0.99)
    assert (wider[0] < low).all() and (wider[1] > high).all()


def test_much_data_makes_the_quantile_normal():
    x, y = data(n=5003, features=1)
    model = rg.NadarayaWatson(bandwidth=1.0).fit(x, y[:, 0])
    _, error = model.predict(x[:7], return_std=True)
    low, high = model.confidence_band(x[:7])
    np.testing.assert_allclose((high - low) / 2, 1.95996 * error, rtol=2e-3)


LEVEL, RUNS = 0.9, 400


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("loud", [False, True])
def test_a_band_covers_the_smoothed_curve_as_often_as_it_says(degree, loud):
    """The share of fresh data sets whose band holds the smoothed curve, place by place.

    `loud` noise is six times as strong on the right as on the left: one variance for all would fail at both ends.
    """
    generator = np.random.default_rng(7)
    x = np.sort(generator.uniform(0, 5, 131))[:, None]
    truth = 2 * np.sin(x[:, 0]) + x[:, 0] ** 0.8
    noise = 0.3 + 0.3 * x[:, 0] if loud else np.full(131, 0.5)
    query = np.linspace(0.2, 4.8, 7)[:, None]
    model = rg.NadarayaWatson(bandwidth=0.3, degree=degree)
    smoothed = model.fit(x, truth).predict(query)
    inside = np.zeros(len(query))
    for _ in range(RUNS):
        low, high = model.fit(x, truth + noise * generator.normal(size=131)).confidence_band(query, LEVEL)
        inside += (low <= smoothed) & (smoothed <= high)
    # Four standard errors of a share of 400 runs, and three hundredths for what a sample of some 15 rows is short of
    # the asymptotics.
    slack = 4 * np.sqrt(LEVEL * (1 - LEVEL) / RUNS)
    assert np.abs(inside / RUNS - LEVEL).max() < slack + 0.03
    assert abs(inside.mean() / RUNS - LEVEL) < 0.03


@pytest.mark.parametrize("degree", [0, 1])
def test_coverage_of_the_truth_by_a_narrow_kernel(degree):
    """Where smoothing bends little, the band of the smoothed curve is one of the curve itself."""
    generator = np.random.default_rng(11)
    x = np.sort(generator.uniform(0, 5, 401))[:, None]
    curve = lambda x: 2 * np.sin(x[:, 0]) + x[:, 0] ** 0.8  # noqa: E731
    query = np.linspace(0.5, 4.5, 7)[:, None]
    model = rg.NadarayaWatson(bandwidth=0.1, degree=degree)
    inside = np.zeros(len(query))
    for _ in range(RUNS // 2):
        low, high = model.fit(x, curve(x) + 0.5 * generator.normal(size=401)).confidence_band(query, LEVEL)
        inside += (low <= curve(query)) & (curve(query) <= high)
    assert abs(inside.mean() / (RUNS // 2) - LEVEL) < 0.04


DIFFERENTIABLE = [kernel for kernel in KERNELS if kernel != "boxcar"]


@pytest.mark.parametrize("kernel", DIFFERENTIABLE)
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("outputs", [1, 2])
def test_derivatives_by_finite_differences(kernel, degree, outputs):
    x, y = data(n=97, features=3)
    y = y[:, 0] if outputs == 1 else y
    query = x[::9] + 0.013
    model = rg.NadarayaWatson(kernel, [1.3, 1.9, np.inf], degree).fit(x, y, np.arange(97) % 3)
    found, step = model.derivative(query), 1e-5
    assert found.shape == ((11, 3) if outputs == 1 else (11, 3, 2))
    for feature in range(3):
        away = np.eye(3)[feature] * step
        expected = (model.predict(query + away) - model.predict(query - away)) / (2 * step)
        np.testing.assert_allclose(found[:, feature], expected, atol=3e-5)


def test_a_step_has_no_slope():
    x, y = data()
    np.testing.assert_array_equal(rg.NadarayaWatson("boxcar", 0.8).fit(x, y).derivative(x + 0.01), 0)
