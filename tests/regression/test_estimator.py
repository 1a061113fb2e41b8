"""NadarayaWatson as a scikit-learn regressor, and as the attention that it is."""

import pickle
from unittest import SkipTest

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import regard as rg
from regard import scores
from regard.errors import ChoiceError, DataError, RegardError, ShapeError
from regard.kernels import names

KERNELS = names()


@parametrize_with_checks(
    [
        rg.NadarayaWatson(),
        rg.NadarayaWatson(degree=1),
        rg.NadarayaWatson(kernel="epanechnikov", bandwidth="scott"),
        rg.NadarayaWatson(bandwidth=1.0, degree=1),
    ]
)
def test_checks_of_scikit_learn_pass(estimator, check):
    try:
        check(estimator)
    except SkipTest as reason:
        pytest.fail(f"not asked: {reason}")


def table(n=53, features=3, outputs=2, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, features))
    y = np.stack([np.sin(2 * x[:, 0]) + 0.1 * generator.normal(size=n) + k * x[:, 1] for k in range(outputs)], 1)
    return x, y


def test_nadaraya_watson_is_gaussian_attention():
    x, y = table()
    query = np.random.default_rng(1).normal(size=(17, 3))
    width = np.array([0.7, 0.4, 1.3])
    w = torch.from_numpy(1 / width)
    attention = rg.attend(*map(torch.from_numpy, (query, x, y)), score=scores.gaussian(w))
    model = rg.NadarayaWatson(bandwidth=width).fit(x, y)
    np.testing.assert_allclose(model.predict(query), attention.output.numpy(), rtol=0, atol=1e-13)
    weights = model.weights(query)
    assert isinstance(weights, rg.Weights) and weights.shape == (17, 53)
    np.testing.assert_allclose(weights.dense(), attention.weights.dense(), rtol=0, atol=1e-13)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("degree", [0, 1])
def test_weights_times_y_are_the_predictions(kernel, degree):
    x, y = table()
    model = rg.NadarayaWatson(kernel, 2.5, degree).fit(x, y, np.arange(53) % 5)
    query = x[::3] + 0.01
    np.testing.assert_allclose((model.weights(query) @ torch.from_numpy(y)).numpy(), model.predict(query), atol=1e-10)
    np.testing.assert_allclose(model.weights(query).dense().sum(1), 1.0, atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("degree", [0, 1])
def test_leverage_is_the_diagonal(kernel, degree):
    x, y = table()
    model = rg.NadarayaWatson(kernel, 2.0, degree).fit(x, y, 1.0 + np.arange(53) % 5)
    np.testing.assert_allclose(model.leverage(), model.weights(x).dense().diagonal(), atol=1e-10)
    assert model.effective_df() == pytest.approx(model.leverage().sum())


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "epanechnikov"])
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_residuals_are_those_of_a_fit_without_the_row(kernel, degree, weighted):
    x, y = table(n=29)
    weight = np.random.default_rng(3).uniform(0.5, 2, 29) if weighted else None
    model = rg.NadarayaWatson(kernel, 1.7, degree).fit(x, y, weight)
    for row in range(0, 29, 4):
        rest = np.arange(29) != row
        alone = rg.NadarayaWatson(kernel, 1.7, degree).fit(x[rest], y[rest], None if weight is None else weight[rest])
        expected = y[row] - alone.predict(x[row : row + 1])[0]
        np.testing.assert_allclose(model.loo_residuals_[row], expected, atol=1e-9)


def test_leave_one_out_attributes_agree():
    x, y = table(outputs=1)
    model = rg.NadarayaWatson(bandwidth=0.8).fit(x, y[:, 0])
    residuals = model.loo_residuals_
    assert residuals.shape == (53,)
    assert model.cv_ == pytest.approx(np.mean(residuals**2), rel=1e-12)
    assert model.loo_score_ == pytest.approx(1 - np.mean(residuals**2) / y.var(), rel=1e-12)


def test_the_bandwidth_minimises_leave_one_out():
    x, y = table(n=211, outputs=1)
    model = rg.NadarayaWatson().fit(x, y[:, 0])
    assert model.bandwidth_.shape == (3,)
    for factor in (0.8, 1.25):
        other = rg.NadarayaWatson(bandwidth=model.bandwidth_ * factor).fit(x, y[:, 0])
        assert other.cv_ > model.cv_
    assert model.cv_ == pytest.approx(rg.NadarayaWatson(bandwidth=model.bandwidth_).fit(x, y[:, 0]).cv_, rel=1e-9)


@pytest.mark.parametrize("degree", [0, 1])
def test_partial_fit_predicts_like_a_fit_of_all_rows(degree):
    x, y = table()
    whole = rg.NadarayaWatson(bandwidth=0.9, degree=degree).fit(x, y, np.r_[np.ones(20), np.full(33, 2.0)])
    parts = rg.NadarayaWatson(bandwidth=0.9, degree=degree)
    parts.partial_fit(x[:20], y[:20]).partial_fit(x[20:], y[20:], np.full(33, 2.0))
    np.testing.assert_array_equal(parts.predict(x), whole.predict(x))
    np.testing.assert_array_equal(parts.loo_residuals_, whole.loo_residuals_)
    assert parts.n_samples_fit_ == 53


def test_partial_fit_keeps_the_bandwidth():
    x, y = table()
    model = rg.NadarayaWatson(bandwidth="scott").fit(x, y)
    before = model.bandwidth_.copy()
    model.partial_fit(x * 5, y)
    np.testing.assert_array_equal(model.bandwidth_, before)
    with pytest.raises(ShapeError, match=r"\(53, 1\)"):
        model.partial_fit(x, y[:, :1])


def test_several_outputs_are_several_fits():
    x, y = table(outputs=3)
    for degree in (0, 1):
        both = rg.NadarayaWatson(bandwidth=0.8, degree=degree).fit(x, y)
        for k in range(3):
            one = rg.NadarayaWatson(bandwidth=0.8, degree=degree).fit(x, y[:, k])
            np.testing.assert_allclose(both.predict(x, return_std=True)[1][:, k], one.predict(x, return_std=True)[1])
            np.testing.assert_allclose(both.derivative(x)[:, :, k], one.derivative(x), atol=1e-9)
            np.testing.assert_allclose(both.predict(x)[:, k], one.predict(x), atol=1e-12)


def frames():
    x, y = table()
    x = pd.DataFrame(x, columns=["a", "b", "c"], index=[f"row {i}" for i in range(53)])
    return x, pd.Series(y[:, 0], index=x.index, name="price"), pd.DataFrame(y, index=x.index, columns=["u", "v"])


def test_frames_set_the_feature_names():
    x, y, _ = frames()
    model = rg.NadarayaWatson(bandwidth=1.0).fit(x, y)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert isinstance(model.predict(x), np.ndarray)
    with pytest.raises(DataError, match="feature names"):
        model.predict(x[["b", "a", "c"]])


def test_set_output_returns_series_and_frames():
    x, y, both = frames()
    model = rg.NadarayaWatson(bandwidth=1.0).set_output(transform="pandas").fit(x, y)
    found, error = clone(model).fit(x, y).predict(x, return_std=True)
    for series in (found, error, *model.confidence_band(x)):
        assert isinstance(series, pd.Series) and series.name == "price" and series.index.equals(x.index)
    assert list(model.derivative(x).columns) == ["a", "b", "c"]
    table = model.fit(x, both).predict(x)
    assert isinstance(table, pd.DataFrame) and list(table.columns) == ["u", "v"] and table.index.equals(x.index)
    assert isinstance(model.set_output(predict="default").predict(x), np.ndarray)
    with pytest.raises(ChoiceError, match="'arrow'"):
        model.set_output(predict="arrow")


@pytest.mark.parametrize("copied", [clone, lambda m: pickle.loads(pickle.dumps(m))])  # noqa: S301  our own bytes
def test_copies_predict_the_same(copied):
    x, y = table()
    model = rg.NadarayaWatson("laplace", degree=1).fit(x, y)
    copy = copied(model)
    if not hasattr(copy, "bandwidth_"):
        copy.fit(x, y)
    np.testing.assert_array_equal(copy.predict(x), model.predict(x))


def test_joblib_stores_a_fitted_model(tmp_path):
    x, y = table()
    model = rg.NadarayaWatson(bandwidth=0.5).fit(x, y)
    joblib.dump(model, tmp_path / "model.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "model.joblib").predict(x), model.predict(x))


def test_in_a_pipeline_and_a_search():
    x, y = table(outputs=1)
    pipe = make_pipeline(StandardScaler(), rg.NadarayaWatson(bandwidth=0.5))
    search = GridSearchCV(pipe, {"nadarayawatson__bandwidth": [0.01, 0.5], "nadarayawatson__degree": [0, 1]}, cv=3)
    best = search.fit(x, y[:, 0]).best_params_
    assert best["nadarayawatson__bandwidth"] == 0.5
    assert search.predict(x).shape == (53,)


def test_the_callers_arrays_may_change_later():
    x, y = table()
    model = rg.NadarayaWatson(bandwidth=0.5).fit(x, y)
    query = x.copy()
    before = model.predict(query)
    x[:] = 0
    y[:] = 0
    np.testing.assert_array_equal(model.predict(query), before)


def test_a_search_that_ends_early_is_no_fit():
    def stop(state):
        raise KeyboardInterrupt

    x, y = table()
    model = rg.NadarayaWatson(bandwidth=0.5).fit(x, y)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(bandwidth="cv", verbose=stop).fit(x, y)
    with pytest.raises(NotFittedError):
        model.predict(x)


def test_a_device_that_nobody_knows_is_refused():
    x, y = table()
    with pytest.raises(ChoiceError, match="'nowhere'"):
        rg.NadarayaWatson(bandwidth=0.5, device="nowhere").fit(x, y)


BAD = [
    ({"kernel": "round"}, ChoiceError, r"'gaussian'.*'round'"),
    ({"kernel": None}, ChoiceError, "None"),
    ({"bandwidth": -1.0}, ChoiceError, r"positive.*-1"),
    ({"bandwidth": 0.0}, ChoiceError, "positive"),
    ({"bandwidth": [1.0, float("nan"), 1.0]}, ChoiceError, "positive"),
    ({"bandwidth": [1.0, 2.0]}, ShapeError, r"one number or 3.*\(2,\)"),
    ({"bandwidth": "silverman"}, ChoiceError, "'scott'"),
    ({"bandwidth": object()}, ChoiceError, "one number a feature"),
    ({"degree": 2}, ChoiceError, r"0 .* or 1"),
    ({"tol": 0}, ChoiceError, "positive"),
    ({"tol": float("nan")}, ChoiceError, "positive"),
    ({"outside": "zero"}, ChoiceError, "'nearest', 'nan', 'raise'"),
    ({"plan": "magic"}, ChoiceError, "magic"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD)
def test_parameters_that_are_not_offered_are_refused(options, error, message):
    x, y = table()
    with pytest.raises(error, match=message):
        rg.NadarayaWatson(**{"bandwidth": 1.0} | options).fit(x, y)


def test_missing_numbers_are_named():
    x, y = table()
    model = rg.NadarayaWatson(bandwidth=1.0).fit(x, y)
    for frame, place in ((x, "row 7, column 2"), (pd.DataFrame(x, columns=["a", "b", "c"]), "row 7, column c")):
        holes = frame.copy()
        (holes.iloc if isinstance(holes, pd.DataFrame) else holes).__setitem__((7, 2), np.nan)
        with pytest.raises(DataError, match=f"NaN stands in {place}"):
            model.fit(holes, y)
    holes = y.copy()
    holes[11, 1] = np.inf
    with pytest.raises(DataError, match=r"y must.*infinity stands in row 11, column 1"):
        model.fit(x, holes)
    with pytest.raises(DataError, match=r"X must.*NaN stands in row 0, column 1"):
        rg.NadarayaWatson(bandwidth=1.0).fit(x, y).predict([[0, np.nan, 0]])


def test_sizes_that_do_not_fit():
    x, y = table()
    model = rg.NadarayaWatson(bandwidth=1.0).fit(x, y)
    with pytest.raises(DataError, match=r"2 features.*expecting 3"):
        model.predict(x[:, :2])
    with pytest.raises(RegardError, match="inconsistent"):
        model.fit(x, y[:5])
    with pytest.raises(ShapeError, match=r"\(53,\).*\(5,\)"):
        model.fit(x, y, np.ones(5))
    with pytest.raises(DataError, match=r"negative.*-1 in row 3"):
        model.fit(x, y, np.where(np.arange(53) == 3, -1, 1))
    with pytest.raises(DataError, match="all are zero"):
        model.fit(x, y, np.zeros(53))
    with pytest.raises(ChoiceError, match=r"between 0 and 1.*95"):
        model.confidence_band(x, 95)
