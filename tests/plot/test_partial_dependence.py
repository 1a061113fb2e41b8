"""`plot.partial_dependence`: scikit-learn's numbers, drawn for numbers and for categories."""

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import PartialDependenceDisplay, partial_dependence
from sklearn.linear_model import LinearRegression

from regard import NadarayaWatson, plot
from regard.errors import ChoiceError

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {"面积": RNG.uniform(0, 3, 90), "town": ["Arles", "Basel", "Cork"] * 30, "luck": RNG.normal(size=90)}
)
PRICE = TABLE["面积"] ** 2 + 3 * (TABLE["town"] == "Basel")


@pytest.fixture(scope="module")
def model():
    return NadarayaWatson(bandwidth=[0.3, 0.1, np.inf], categorical=["town"]).fit(TABLE, PRICE)


def mean(ax):
    (line,) = [line for line in ax.lines if line.get_label() == "均值"]
    return line.get_ydata()


def test_the_curves_are_those_of_scikit_learn(model):
    figure = plot.partial_dependence(model, TABLE, grid=9, ylabel="偏依赖", labels=("均值", "单行"))
    size, town, luck = figure.axes
    figure.canvas.draw()
    assert [ax.get_xlabel() for ax in figure.axes] == ["面积", "town", "luck"]
    assert (size.get_ylabel(), town.get_ylabel()) == ("偏依赖", "")
    expected = partial_dependence(model, TABLE, ["面积"], grid_resolution=9, categorical_features=["town"])
    np.testing.assert_allclose(mean(size), expected["average"][0])
    expected = partial_dependence(model, TABLE, ["town"], grid_resolution=9, categorical_features=["town"])
    np.testing.assert_allclose(mean(town), expected["average"][0])
    assert [text.get_text() for text in town.get_xticklabels()] == ["Arles", "Basel", "Cork"]
    assert np.ptp(mean(luck)) < 1e-12  # an infinite bandwidth: it does not matter
    assert [text.get_text() for text in size.get_legend().get_texts()] == ["均值", "单行"]


def test_any_regressor_and_few_of_many_rows_are_drawn():
    X = RNG.normal(size=(5_000, 2))
    linear = LinearRegression().fit(X, X @ [2.0, -1.0])
    figure = plot.partial_dependence(linear, X, [1], rows=40, labels=("均值", "row"))
    (ax,) = figure.axes
    assert ax.get_xlabel() == "x1" and len(ax.lines) == 40 + 2
    slope = np.diff(mean(ax)) / np.diff(ax.lines[0].get_xdata())
    np.testing.assert_allclose(slope, -1.0)


def test_scikit_learns_own_display_takes_the_estimator(model):
    shown = PartialDependenceDisplay.from_estimator(model, TABLE, ["面积", "town"], categorical_features=["town"])
    assert len(shown.pd_results) == 2


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (["sise"], "'sise', which is none of the columns 面积, town, luck"),
        ([(0, 1)], "two features at once"),
        ([], "no column"),
    ],
)
def test_wrong_features_are_refused(model, features, message):
    with pytest.raises(ChoiceError, match=message):
        plot.partial_dependence(model, TABLE, features)
