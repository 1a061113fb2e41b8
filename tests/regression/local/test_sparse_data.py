"""Local lines where data is thin: few points decide, and each question about them has the same exact answer."""

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import assume, given
from hypothesis import strategies as st
from local_line import allowed, local_line

import regard as rg
from regard.kernels import names
from regard.regression.bandwidth import objective
from regard.regression.local import linear, linear_statistics

KERNELS = names()

EXACT = ["auto", "pairs", "cells"]
TOY = np.array([0.0, 0.2, 1.0, 1.4, 6.0, 7.0, 8.0, 9.0, 10.0, 20.0])[:, None], np.arange(10) % 2.0
TOY_QUERY = np.array([[-0.1], [-0.15], [-0.2], [0.4]])


def tails(seed, n=150, features=1):
    rng = np.random.default_rng(seed)
    x = rng.standard_t(3, size=(n, features))
    return x, np.sin(2 * x[:, 0]) + 0.2 * rng.normal(size=n)


def by_formula(model, query):
    """The standard error that the documents write down, from the weights of the fit and those of degree 0."""
    weight = np.ones(len(model.X_)) if model.sample_weight_ is None else model.sample_weight_
    line = local_line(model.X_, query, model.bandwidth_, model.kernel, weight)
    counts = weight > 0
    kept = (line.rows[:, counts] ** 2 / weight[counts]).sum(1)
    return np.sqrt(kept * (line.near @ model.loo_residuals_**2))


@pytest.mark.parametrize("plan", [*EXACT, "fast"])
def test_two_points_make_a_line(plan):
    model = rg.NadarayaWatson(bandwidth=0.05, degree=1, plan=plan).fit(*TOY)
    np.testing.assert_allclose(model.predict(TOY_QUERY), [-0.5, -0.75, -1.0, 2.0], rtol=1e-12)
    np.testing.assert_allclose(model.derivative(TOY_QUERY), 5.0, rtol=1e-11)
    np.testing.assert_allclose(model.weights(TOY_QUERY).dense().sum(1), 1.0, rtol=1e-14)


@pytest.mark.parametrize("plan", [*EXACT, "fast"])
@pytest.mark.parametrize("seed", [2, 3])
def test_lines_in_heavy_tails_are_those_of_60_digits(plan, seed):
    x, y = tails(seed)
    model = rg.NadarayaWatson(bandwidth=0.25, degree=1, plan=plan).fit(x, y)
    query = np.linspace(x.min(), x.max(), 61)[:, None]
    line = local_line(x, query, 0.25)
    slack = (1e-6 * y.std() if plan == "fast" else 0) + allowed(line, y)
    assert (np.abs(model.predict(query) - line.rows @ y) <= slack).all()
    np.testing.assert_allclose(model.weights(query).dense(), line.rows, atol=1e-11 * np.abs(line.rows).max())


@pytest.mark.parametrize("plan", [*EXACT, "fast"])
def test_the_far_end_of_engel(plan):
    data = np.asarray(sm.datasets.engel.load_pandas().data)
    model = rg.NadarayaWatson(bandwidth=259.0, degree=1, plan=plan).fit(data[:, :1], data[:, 1])
    found = model.predict([[4864.328], [4900.0], [4957.0]])
    np.testing.assert_allclose(found, [1836.18615, 1832.75804, 1827.27814], atol=1e-4)


@pytest.mark.parametrize("features", [1, 2])
def test_all_plans_have_one_answer(features):
    x, y = tails(1, 300, features)
    query = np.random.default_rng(0).standard_t(3, size=(211, features))
    plans = {p: rg.NadarayaWatson(bandwidth=0.3, degree=1, plan=p).fit(x, y).predict(query) for p in (*EXACT, "fast")}
    for plan in ("pairs", "cells"):
        np.testing.assert_array_equal(plans[plan], plans["auto"])
    assert np.abs(plans["fast"] - plans["auto"]).max() <= 1e-6 * y.std()


@pytest.mark.parametrize("seed", range(3))
def test_standard_errors_by_their_formula(seed):
    x, y = tails(seed)
    model = rg.NadarayaWatson(degree=1).fit(x, y)
    query = np.linspace(x.min(), x.max(), 53)[:, None]
    found = model.predict(query, return_std=True)[1]
    np.testing.assert_allclose(found, by_formula(model, query), rtol=1e-7)
    low, high = model.confidence_band(query)
    assert (high - low > 2 * found).all()


def test_a_row_left_out_is_a_fit_without_it():
    rng = np.random.default_rng(0)
    cloud = rng.normal(size=40).clip(-2, 1.5)  # from the row at 1.935 only two points matter, 2.1 and 7.8 widths away
    x = np.concatenate([cloud, 5 * rng.normal(size=6) - 15, [1.935, 2.04, 2.325, 30.0, 31.0]])[:, None]
    y = x[:, 0] ** 2
    model = rg.NadarayaWatson(bandwidth=0.05, degree=1).fit(x, y)
    others = (np.arange(len(x)) != row for row in range(len(x)))
    lines = [(local_line(x[some], x[~some], 0.05), y[some]) for some in others]
    for found, here, (line, rest) in zip(model.loo_residuals_, y, lines, strict=True):
        assert abs(here - line.rows @ rest - found).item() <= allowed(line, rest).item()


def clusters(n=30_000):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 1)) * 1e-3 + rng.integers(0, 20, (n, 1)) * 1.0
    return x, np.sin(x[:, 0]) + 0.1 * rng.normal(size=n), x[rng.integers(0, n, 400)] + rng.normal(size=(400, 1)) * 0.06


@pytest.mark.parametrize("kernel", ["epanechnikov", "tricube"])
def test_tol_is_kept_where_pairs_are_many_and_few_matter(kernel):
    x, y, query = clusters()
    found = rg.NadarayaWatson(kernel, 0.1, 1).fit(x, y).predict(query)  # 12 million pairs
    for at, value in zip(query, found, strict=True):
        near = np.abs(x[:, 0] - at) < 0.1
        if near.any():
            line = rg.NadarayaWatson(kernel, 0.1, 1).fit(x[near], y[near])
            assert abs(line.predict([at])[0] - value) <= 1e-6 * y.std()
    (two,) = np.flatnonzero(np.abs(query[:, 0] - 15.10330384) < 1e-7)
    np.testing.assert_allclose(found[two], 119.326166, atol=1e-6)


@pytest.fixture
def many(monkeypatch):
    """As if all pairs were too many."""
    monkeypatch.setattr(linear, "EXACT_PAIRS", 0)
    monkeypatch.setattr(objective, "EXACT_PAIRS", 0)


def everything(model, query):
    mean, error = model.predict(query, return_std=True)
    return {"mean": mean, "error": error, "leverage": model.leverage(), "residuals": model.loo_residuals_}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("features", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_many_pairs_are_answered_as_few_are(kernel, features, weighted, request):
    x, y = tails(5, 301, features)
    weight = np.random.default_rng(0).uniform(0.1, 3, 301) if weighted else None
    query = np.random.default_rng(1).standard_t(3, size=(97, features))
    few = everything(rg.NadarayaWatson(kernel, 0.7, 1).fit(x, y, weight), query)
    request.getfixturevalue("many")
    found = everything(rg.NadarayaWatson(kernel, 0.7, 1, plan="cells").fit(x, y, weight), query)
    for name, exact in few.items():
        np.testing.assert_allclose(found[name], exact, rtol=3e-6, atol=1e-6 * y.std(), err_msg=name)


def test_features_that_are_nearly_one_with_heavy_tails(request):
    rng = np.random.default_rng(5)
    x = rng.standard_t(1.5, size=(601, 3))
    x[:, 1] = 2 * x[:, 0] + 1e-4 * rng.normal(size=601)
    y, weight = np.sin(x[:, 0]) + 0.1 * rng.normal(size=601), rng.uniform(0.01, 3, 601)
    few = rg.NadarayaWatson(bandwidth=0.3, degree=1).fit(x, y, weight).loo_residuals_
    request.getfixturevalue("many")
    found = rg.NadarayaWatson(bandwidth=0.3, degree=1).fit(x, y, weight).loo_residuals_
    assert np.abs(found - few).max() <= 1e-6 * y.std()


def test_quick_answers_are_seldom_in_doubt(many, monkeypatch):
    """Nor always certain: where points are many they are quick, and the tails are asked of the points."""
    x, y = tails(5, 2003)
    shares, doubt = [], linear_statistics.Averages.doubt

    def recorded(self, inaccurate):
        shares.append((rows := doubt(self, inaccurate)).double().mean().item())
        return rows

    monkeypatch.setattr(linear_statistics.Averages, "doubt", recorded)
    everything(rg.NadarayaWatson("epanechnikov", 0.3, 1).fit(x, y), x)
    assert len(shares) == 4 and 0 < min(shares) <= max(shares) < 0.1


def test_one_line_through_everything_asks_no_pairs(many, monkeypatch):
    x, y = tails(0, 1009, 2)
    expected = np.linalg.lstsq(np.column_stack([np.ones(1009), x]), y, rcond=None)[0]
    monkeypatch.setattr("regard.regression.kernel_sums.relative_weights.for_neighbourhoods", None)  # nobody needs it
    model = rg.NadarayaWatson(bandwidth=np.inf, degree=1).fit(x, y)
    np.testing.assert_allclose(model.predict(x), expected[0] + x @ expected[1:], atol=1e-10)
    np.testing.assert_allclose(model.effective_df(), 3.0, rtol=1e-9)
    assert np.isfinite(model.predict(x, return_std=True)[1]).all()


def test_with_categories_alone_a_line_is_a_constant():
    c = np.array(list("abcab") * 6, dtype=object)[:, None]
    line, constant = (
        rg.NadarayaWatson(categorical=[0], degree=degree, bandwidth=0.2).fit(c, np.arange(30.0)) for degree in (1, 0)
    )
    query = np.array([["a"], ["c"], ["never"]], dtype=object)
    for found, expected in zip(line.confidence_band(query), constant.confidence_band(query), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(line.predict(query, return_std=True)[1], constant.predict(query, return_std=True)[1])
    np.testing.assert_allclose(line.leverage(), constant.leverage())


def test_a_line_is_drawn_up_to_a_million_times_as_far_as_its_points_differ():
    x = np.linspace(0, 1, 11)[:, None]
    model = rg.NadarayaWatson("laplace", 0.15, 1).fit(x, 3 * x[:, 0] + 1)
    far = np.array([[1e3], [1e4], [1e5]])
    np.testing.assert_allclose(model.predict(far), 3 * far[:, 0] + 1, rtol=1e-9)
    p = np.exp((x[:, 0] - 1) / 0.15)
    np.testing.assert_allclose(model.predict([[1e6]]), p @ (3 * x[:, 0] + 1) / p.sum(), rtol=1e-9)


@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if kernel != "boxcar"])
def test_slopes_where_three_points_matter(kernel):
    x, query = np.array([[0.0], [0.3], [0.4], [9.0]]), np.array([[0.17], [0.21]])
    y, step, width = np.array([0.0, 1.0, 0.5, 2.0]), 1e-12, 0.2 if kernel in ("gaussian", "laplace") else 0.5
    ahead, behind = (local_line(x, query + sign * step, width, kernel).rows @ y for sign in (1, -1))
    found = rg.NadarayaWatson(kernel, width, 1).fit(x, y).derivative(query)[:, 0]
    np.testing.assert_allclose(found, (ahead - behind) / (2 * step), rtol=2e-3)


def test_a_row_out_of_reach_is_predicted_by_the_mean_of_the_nearest():
    x = np.array([[0.0, 0.0], [3.0, 4.0], [5.0, 0.0], [0.0, 5.0], [20.0, 20.0]])
    model = rg.NadarayaWatson("epanechnikov", 1.0, 1).fit(x, [1.0, 2.0, 4.0, 9.0, 0.0])
    assert model.loo_residuals_[0] == pytest.approx(1 - (2 + 4 + 9) / 3)


def thin(seed, features, doubled):
    """Few points, some far out, some twice; and a width at which few of them are in reach of each other."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 10))
    x = rng.standard_t(1.5, size=(n, features)) * 10.0 ** rng.integers(-3, 3, features)
    if doubled:
        x = x[rng.integers(0, n, n)]
    width = np.abs(x - np.median(x, 0)).max(0) * 10.0 ** rng.uniform(-1.5, 0.5, features) + 1e-3
    query = x[rng.integers(0, n, 3)] + width * rng.normal(size=(3, features)) * [[0.0], [0.3], [2.0]]
    return x, rng.normal(size=n) * 10 + 100, query, width, rng


SOME_WEIGHTS = {
    "none": lambda rng, n: None,
    "counts": lambda rng, n: rng.integers(1, 4, n).astype(float),
    "parts": lambda rng, n: rng.uniform(0.1, 3, n),
}
THIN = {
    "seed": st.integers(0, 2**32),
    "features": st.integers(1, 3),
    "kernel": st.sampled_from(KERNELS),
    "doubled": st.booleans(),
    "weights": st.sampled_from(sorted(SOME_WEIGHTS)),
}


@given(**THIN)
def test_thin_data_is_least_squares(seed, features, kernel, doubled, weights):
    x, y, query, width, rng = thin(seed, features, doubled)
    weight = SOME_WEIGHTS[weights](rng, len(x))
    line = local_line(x, query, width, kernel, weight)
    assume(not line.close.any())
    model = rg.NadarayaWatson(kernel, width, 1, outside="nan").fit(x, y, weight)
    found, matrix, slack = model.predict(query), model.weights(query).dense().numpy(), allowed(line, y)
    reached = line.near.any(1)
    assert (np.isnan(found) == ~reached).all()
    assert (np.abs(found - line.rows @ y)[reached] <= slack[reached]).all()
    assert (np.abs(matrix @ y - line.rows @ y) <= slack).all()
    assert (np.abs(matrix.sum(1) - reached) <= slack / 10).all()
    for plan in ("pairs", "cells"):
        again = rg.NadarayaWatson(kernel, width, 1, outside="nan", plan=plan).fit(x, y, weight)
        np.testing.assert_array_equal(again.predict(query), found)


@given(**THIN)
def test_thin_standard_errors_are_their_formula(seed, features, kernel, doubled, weights):
    x, y, query, width, rng = thin(seed, features, doubled)
    weight = SOME_WEIGHTS[weights](rng, len(x))
    model = rg.NadarayaWatson(kernel, width, 1).fit(x, y, weight)
    line = local_line(x, query, width, kernel, weight)
    some = line.near.any(1) & ~line.close
    assume(some.any() and np.isfinite(model.loo_residuals_).all())
    found, expected = model.predict(query, return_std=True)[1], by_formula(model, query)
    slack = 10 * line.lost * (1 + np.abs(line.rows).sum(1)) * np.abs(model.loo_residuals_).max()
    assert (np.abs(found - expected)[some] <= slack[some]).all()


@given(**THIN)
def test_residuals_of_sparse_data_equal_fits_without_each_row(seed, features, kernel, doubled, weights):
    x, y, _, width, rng = thin(seed, features, doubled)
    weight = SOME_WEIGHTS[weights](rng, len(x))
    model = rg.NadarayaWatson(kernel, width, 1).fit(x, y, weight)
    for row, found in enumerate(model.loo_residuals_):
        left = np.ones(len(x)) if weight is None else weight.copy()
        left[row] = max(left[row] - 1, 0) if weights == "counts" else 0
        line = local_line(x, x[row : row + 1], width, kernel, left)
        if not line.near.any():
            expected, slack = rg.NadarayaWatson(kernel, width, 1).fit(x, y, left).predict(x[row : row + 1]), 1e-9
        else:
            expected, slack = line.rows @ y, allowed(line, y)
        assert line.close.any() or np.abs(y[row] - expected - found) <= slack


@pytest.mark.parametrize("kernel", ["gaussian", "tricube"])
@pytest.mark.parametrize("weights", SOME_WEIGHTS)
def test_leverage_is_the_diagonal(kernel, weights):
    x, y = tails(4, 61, 2)
    model = rg.NadarayaWatson(kernel, 0.6, 1).fit(x, y, SOME_WEIGHTS[weights](np.random.default_rng(0), 61))
    np.testing.assert_allclose(model.leverage(), model.weights(x).dense().diagonal(), rtol=1e-9)
