"""What is no table of numbers, no device and no fit: refused in our own words, with the place."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import regard as rg
from regard.errors import ChoiceError, DataError

X = np.stack([np.arange(7.0), np.arange(7.0) % 3], 1)
Y = X[:, 0]
DAY = dt.date(2020, 1, 1)


@pytest.mark.parametrize(
    ("y", "place"),
    [
        (np.array(["a"] * 7), "'a' stands in row 0"),
        (["1"] * 7, "'1' stands in row 0"),
        ([1.0, 2.0, "b", 4.0, 5.0, 6.0, 7.0], "'1.0' stands in row 0"),  # numpy makes texts of all
        (pd.Series([1.0, 2.0, "b", 4.0, 5.0, 6.0, 7.0]), "'b' stands in row 2"),
        (pd.DataFrame({"u": [1.0] * 7, "v": ["b"] * 7}), "'b' stands in row 0, column v"),
        (np.array(["2020-01-01"] * 7, dtype="M8[D]"), "'2020-01-01' stands in row 0"),
        ([DAY] * 7, "'2020-01-01' stands in row 0"),
        (np.array([], dtype="M8[D]"), "datetime64"),
    ],
)
def test_y_must_hold_numbers(y, place):
    with pytest.raises(DataError, match=f"^y must hold numbers, but .*{place}"):
        rg.NadarayaWatson(bandwidth=1.0).fit(X, y)


@pytest.mark.parametrize("weight", [["a"] * 7, np.array(["1"] * 7), [DAY] * 7])
def test_weights_must_be_numbers(weight):
    with pytest.raises(DataError, match=r"sample_weight must hold numbers.*stands in row 0"):
        rg.NadarayaWatson(bandwidth=1.0).fit(X, Y, weight)


@pytest.mark.parametrize(
    ("x", "place"),
    [
        (np.array([["1", "2"], ["3", "red"]]), r"'red' stands in row 1, column 1; .*categorical=\[1\]"),
        ([[1.0, "2"], [3.0, "red"]], r"'red' stands in row 1, column 1; .*categorical=\[1\]"),
        (pd.DataFrame({"u": [1.0, 3.0], "v": ["2", "red"]}), r"'red' stands in row 1, column v; .*categorical=\['v'\]"),
        (
            pd.DataFrame({"u": [1.0, 3.0], "v": pd.to_datetime([DAY, DAY])}),
            "2020-01-01 00:00:00' stands in row 0, column v",
        ),
    ],
)
def test_a_text_in_x_is_named(x, place):
    with pytest.raises(DataError, match=f"X must hold numbers, but .*{place}"):
        rg.NadarayaWatson(bandwidth=1.0).fit(x, Y[:2])


@pytest.mark.parametrize("device", ["meta", "cuda:97"])
def test_a_device_that_holds_nothing_is_refused(device):
    model = rg.NadarayaWatson(bandwidth=1.0).fit(X, Y)
    with pytest.raises(ChoiceError, match=f"'{device}' torch says"):
        rg.NadarayaWatson(bandwidth=1.0, device=device).fit(X, Y)
    with pytest.raises(ChoiceError, match=f"'{device}' torch says"):
        model.set_params(device=device).predict(X)


@pytest.mark.parametrize("ask", ["predict", "derivative", "weights", "confidence_band"])
def test_an_unfitted_estimator_raises_not_fitted(ask):
    with pytest.raises(NotFittedError):
        getattr(rg.NadarayaWatson(), ask)(X)


@pytest.mark.parametrize("name", ["loo_residuals_", "loo_score_", "cv_"])
def test_an_unfitted_estimator_has_no_leave_one_out(name):
    with pytest.raises(NotFittedError):
        getattr(rg.NadarayaWatson(), name)


def test_rows_without_weight_may_be_added_to_some_with():
    model = rg.NadarayaWatson(bandwidth=1.0)
    with pytest.raises(DataError, match="all are zero"):
        model.partial_fit(X[:2], Y[:2], [0, 0])
    before = model.fit(X, Y).predict(X)
    model.partial_fit(X[:2], Y[:2] + 9, [0, 0])
    np.testing.assert_array_equal(model.predict(X), before)
    assert model.n_samples_fit_ == 9
