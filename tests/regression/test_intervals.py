"""`prediction_interval`: its formula, and intervals that hold as many new y as they promise."""

import numpy as np
import pandas as pd
import pytest

import regard as rg
from regard.errors import ChoiceError, OutsideError, UnsupportedError
from regard.regression.intervals import PRIOR_ROWS


def data(n=47, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(0, 3, size=(n, 2))
    return x, np.sin(x[:, 0]) + 0.2 * generator.normal(size=n)


def scale(weights, squares, per_row, overall):
    rows = 1 / (weights**2 / per_row).sum(1)
    return np.sqrt((rows * (weights @ squares) + PRIOR_ROWS * overall) / (rows + PRIOR_ROWS))


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_interval_follows_its_formula(kernel, degree, weighted):
    x, y = data()
    weight = np.random.default_rng(1).uniform(0.5, 3, len(x)) if weighted else np.ones(len(x))
    model = rg.NadarayaWatson(kernel, 1.3, degree).fit(x, y, weight if weighted else None)
    near = rg.NadarayaWatson(kernel, 1.3).fit(x, y, weight)
    residuals, squares = model.loo_residuals_, model.loo_residuals_**2
    overall = np.average(squares, weights=weight)
    matrix = near.weights(x).dense().numpy()
    np.fill_diagonal(matrix, 0)
    matrix /= matrix.sum(1, keepdims=True)  # each row from the others
    scores = np.abs(residuals) / scale(matrix, squares, weight, overall)
    counts = weight * weight.sum() / (weight**2).sum()
    order = np.argsort(scores)
    rank = np.ceil(0.9 * (counts.sum() + 1))
    factor = scores[order][np.argmax(np.cumsum(counts[order]) >= rank)]
    query = x[::5] + 0.03
    half = factor * scale(near.weights(query).dense().numpy(), squares, weight, overall)
    low, high = model.prediction_interval(query, 0.9)
    np.testing.assert_allclose((low + high) / 2, model.predict(query), atol=1e-12)
    np.testing.assert_allclose((high - low) / 2, half, rtol=1e-7)


@pytest.mark.parametrize("degree", [0, 1])
def test_a_whole_weight_is_a_row_that_occurs_so_often(degree):
    x, y = data()
    counts = np.random.default_rng(1).integers(0, 4, len(x))
    one = rg.NadarayaWatson(bandwidth=0.7, degree=degree).fit(x, y, counts).prediction_interval(x)
    repeated = rg.NadarayaWatson(bandwidth=0.7, degree=degree).fit(np.repeat(x, counts, 0), np.repeat(y, counts))
    np.testing.assert_allclose(one, repeated.prediction_interval(x), rtol=1e-8)


def sine(generator, n):
    x = generator.uniform(0, 5, (n, 1))
    return x, 2 * np.sin(x[:, 0]) + generator.normal(size=n)


def growing_noise(generator, n):
    x = generator.uniform(0, 5, (n, 1))
    return x, 2 * np.sin(x[:, 0]) + (0.1 + 0.3 * x[:, 0]) * generator.normal(size=n)


def heavy_tails(generator, n):
    x = generator.normal(size=(n, 2))
    return x, x[:, 0] ** 2 - x[:, 1] + generator.standard_t(3, size=n)


def skewed(generator, n):
    x = generator.exponential(size=(n, 1))
    return x, np.sqrt(x[:, 0]) + generator.exponential(size=n)


def towns(generator, n):
    town = generator.choice(["Arles", "Basel", "Cork"], n)
    x = generator.uniform(0, 3, n)
    noise = generator.normal(size=n) * np.where(town == "Cork", 1.0, 0.3)
    return pd.DataFrame({"size": x, "town": town}), x + 3 * (town == "Basel") + noise


CASES = {
    "constant": (sine, {"bandwidth": 0.4}),
    "linear": (sine, {"bandwidth": 0.6, "degree": 1}),
    "too narrow": (sine, {"bandwidth": 0.1}),
    "too wide": (sine, {"bandwidth": 2.0}),
    "cv": (sine, {}),
    "compact": (growing_noise, {"kernel": "epanechnikov", "bandwidth": 0.8}),
    "growing noise": (growing_noise, {"bandwidth": 0.5}),
    "heavy tails": (heavy_tails, {"bandwidth": 0.6, "degree": 1}),
    "skewed": (skewed, {"bandwidth": 0.5}),
    "categories": (towns, {"bandwidth": [0.5, 0.1], "categorical": ["town"]}),
}


@pytest.mark.parametrize("case", CASES)
def test_intervals_hold_the_promised_share_of_new_rows(case):
    make, options = CASES[case]
    levels, held = np.array([0.8, 0.95]), []
    for seed in range(6 if case == "cv" else 25):
        generator = np.random.default_rng(seed)
        model = rg.NadarayaWatson(**options).fit(*make(generator, 80))
        X, y = make(generator, 200)
        limits = [model.prediction_interval(X, level) for level in levels]
        held.append([np.mean((low <= y) & (y <= high)) for low, high in limits])
    # One fit varies by sqrt(level (1 - level) / 80) around what it promises.
    spread = np.sqrt(levels * (1 - levels) / 80 / len(held))
    assert (np.abs(np.mean(held, 0) - levels) < 0.012 + 3 * spread).all()


def test_weighted_rows_hold_what_they_promise_for_the_rows_they_stand_for():
    held = []
    for seed in range(25):
        generator = np.random.default_rng(seed)
        x, y = growing_noise(generator, 160)
        weight = 0.25 + x[:, 0] / 4  # new rows have more of the noisy side
        X, new = growing_noise(generator, 400)
        kept = generator.uniform(0, 1.5, 400) < 0.25 + X[:, 0] / 4
        low, high = rg.NadarayaWatson(bandwidth=0.5).fit(x, y, weight).prediction_interval(X[kept], 0.9)
        held.append(np.mean((low <= new[kept]) & (new[kept] <= high)))
    assert abs(np.mean(held) - 0.9) < 0.02


def test_intervals_are_wide_where_the_noise_is():
    model = rg.NadarayaWatson(bandwidth=0.5).fit(*growing_noise(np.random.default_rng(0), 400))
    low, high = model.prediction_interval([[0.5], [4.5]])
    assert (high - low)[1] > 2 * (high - low)[0]
    inner = model.confidence_band([[0.5], [4.5]])
    assert (low < inner[0]).all() and (inner[1] < high).all()  # a new y is less certain than the curve


def test_each_output_has_its_own_interval():
    x, y = data()
    both = rg.NadarayaWatson(bandwidth=0.7).fit(x, np.stack([y, 100 * y], 1)).prediction_interval(x[:5])
    one = rg.NadarayaWatson(bandwidth=0.7).fit(x, y).prediction_interval(x[:5])
    for limit, alone in zip(both, one, strict=True):
        np.testing.assert_allclose(limit, np.stack([alone, 100 * alone], 1), rtol=1e-9)


def test_few_rows_give_infinite_limits_and_no_noise_gives_none():
    x = np.arange(10.0)[:, None]
    model = rg.NadarayaWatson(bandwidth=1.0).fit(x, x[:, 0])
    low, high = model.prediction_interval([[3.0]], 0.95)
    assert (low[0], high[0]) == (-np.inf, np.inf)
    assert np.isfinite(model.prediction_interval([[3.0]], 0.9)).all()  # ceil(0.9 x 11) = 10 rows
    low, high = rg.NadarayaWatson(bandwidth=1.0).fit(x, np.full(10, 2.0)).prediction_interval(x, 0.5)
    np.testing.assert_array_equal([low, high], np.full((2, 10), 2.0))


def test_very_large_y_and_pandas_output():
    x, y = data()
    frame = pd.DataFrame(x, columns=["a", "b"], index=range(100, 147))
    model = rg.NadarayaWatson(bandwidth=0.7).fit(frame, pd.Series(y, name="price")).set_output(predict="pandas")
    low, _ = model.prediction_interval(frame)
    assert low.name == "price" and low.index.equals(frame.index)
    large = rg.NadarayaWatson(bandwidth=0.7).fit(frame, y * 1e140).prediction_interval(frame)[0]
    np.testing.assert_allclose(large, low * 1e140, rtol=1e-9)


def test_a_query_out_of_reach_follows_outside():
    x, y = data()
    fit = {"kernel": "boxcar", "bandwidth": 0.5}
    assert np.isnan(rg.NadarayaWatson(**fit, outside="nan").fit(x, y).prediction_interval([[50.0, 50.0]])).all()
    assert np.isfinite(rg.NadarayaWatson(**fit).fit(x, y).prediction_interval([[50.0, 50.0]])).all()
    with pytest.raises(OutsideError, match="within reach of row 0"):
        rg.NadarayaWatson(**fit, outside="raise").fit(x, y).prediction_interval([[50.0, 50.0]])


def test_what_cannot_be_is_refused_in_words(tmp_path):
    x, y = data()
    with pytest.raises(ChoiceError, match=r"between 0 and 1, for example 0\.95, but it is 95"):
        rg.NadarayaWatson(bandwidth=1.0).fit(x, y).prediction_interval(x, 95)
    pd.DataFrame({"a": x[:, 0], "y": y}).to_parquet(tmp_path / "t.parquet")
    model = rg.NadarayaWatson(bandwidth=1.0).fit(str(tmp_path / "t.parquet"), "y")
    with pytest.raises(UnsupportedError, match="prediction_interval needs the data in memory"):
        model.prediction_interval(x[:, :1])
