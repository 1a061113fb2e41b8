"""Very large and very small numbers: the same answers in other units, and words where float64 has no squares."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import regard as rg
from regard.errors import DataError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(61, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=61)
BEYOND = [1e-300, 1e-170, 1e155, 1e300]


def answers(x_unit, y_unit, bandwidth, **options):
    """All that is asked of a fit, told without units."""
    width = bandwidth if isinstance(bandwidth, str) else bandwidth * x_unit
    model = rg.NadarayaWatson(bandwidth=width, **options).fit(X * x_unit, Y * y_unit)
    query = (X[:7] + 0.01) * x_unit
    slope = model.derivative(query) * x_unit
    told = (*model.predict(query, return_std=True), *model.confidence_band(query), slope, model.loo_residuals_)
    return *(part / y_unit for part in told), model.loo_score_, model.cv_ / y_unit**2, model.bandwidth_ / x_unit


@pytest.mark.parametrize("options", [{}, {"degree": 1}, {"kernel": "epanechnikov", "degree": 1}, {"kernel": "laplace"}])
@pytest.mark.parametrize("bandwidth", [0.7, "cv", "scott"])
@pytest.mark.parametrize(("x_unit", "y_unit"), [(1e145, 1e-145), (1e-145, 1e145), (1.0, 1e149), (1e149, 1.0)])
def test_units_do_not_matter(options, bandwidth, x_unit, y_unit):
    usual, extreme = answers(1.0, 1.0, bandwidth, **options), answers(x_unit, y_unit, bandwidth, **options)
    for one, other in zip(usual, extreme, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("bandwidth", ["cv", "scott", 0.5])
@pytest.mark.parametrize("unit", BEYOND)
def test_numbers_without_squares_are_refused(bandwidth, unit):
    frame = pd.DataFrame(X * [1.0, unit], columns=["a", "b"])
    with pytest.raises(DataError, match=r"X must hold.*Column b goes from -.*multiply it by a power of ten"):
        rg.NadarayaWatson(bandwidth=bandwidth).fit(frame, Y)
    both = pd.DataFrame({"u": Y, "v": Y * unit})
    for y, name in ((Y * unit, "0"), (both, "v")):
        with pytest.raises(DataError, match=f"y must hold.*Column {name} goes from -"):
            rg.NadarayaWatson(bandwidth=bandwidth).fit(X, y)


@pytest.mark.parametrize("unit", BEYOND)
def test_numbers_without_squares_are_refused_out_of_core_and_in_partial_fit(unit):
    da = pytest.importorskip("dask.array")
    model = rg.NadarayaWatson(bandwidth=0.5)
    with pytest.raises(DataError, match="Column 0 goes from"):
        model.fit(da.from_array(X * unit, chunks=(20, 2)), da.from_array(Y, chunks=20))
    with pytest.raises(NotFittedError):
        model.predict(X)
    before = model.fit(X, Y).predict(X)
    if unit > 1:
        with pytest.raises(DataError, match="Column 0 goes from"):
            model.partial_fit(X * unit, Y)
        np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize(("degree", "width"), [(0, 1e-151), (0, 1e-320), (1, 1e-71)])
def test_a_bandwidth_in_which_distances_have_no_squares_is_refused(degree, width):
    with pytest.raises(DataError, match=f"Column 1 has the bandwidth {width:g}.*wider bandwidth"):
        rg.NadarayaWatson(bandwidth=[1.0, width], degree=degree).fit(X, Y)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "boxcar"])
@pytest.mark.parametrize("width", [1e-9, 1e-30, 1e-149])
@pytest.mark.parametrize("unit", [1.0, 1e149, 1e-149])
def test_a_very_narrow_bandwidth_predicts_the_nearest_point(kernel, width, unit):
    model = rg.NadarayaWatson(kernel, width).fit(X, Y * unit)
    found, error = model.predict(X[:7] + 1e-3, return_std=True)
    np.testing.assert_allclose(found / unit, Y[:7], rtol=1e-12)
    np.testing.assert_allclose(error, np.abs(model.loo_residuals_[:7]), rtol=1e-12)
    np.testing.assert_array_equal(model.derivative(X[:7] + 1e-3), 0.0)
    np.testing.assert_array_equal(model.leverage(), 1.0)


@pytest.mark.parametrize("width", [1e-30, 1e-69])
@pytest.mark.parametrize("unit", [1.0, 1e149, 1e-149])
def test_lines_through_one_point_are_finite(width, unit):
    model = rg.NadarayaWatson("boxcar", width, degree=1).fit(X, Y * unit)
    np.testing.assert_allclose(model.predict(X + 1e-3) / unit, Y, rtol=1e-12)
    for answer in (*model.confidence_band(X + 1e-3), model.derivative(X + 1e-3), model.loo_residuals_):
        assert np.isfinite(answer).all()


def test_a_column_that_never_changes_may_be_small():
    x = np.stack([X[:, 0], np.full(61, 1e-300)], 1)
    np.testing.assert_allclose(
        rg.NadarayaWatson().fit(x, Y).predict(x), rg.NadarayaWatson().fit(X[:, :1], Y).predict(X[:, :1])
    )


def test_derivatives_beside_categories_keep_their_digits():
    """The same category everywhere changes nothing, also where data spans a great many bandwidths."""
    x = np.concatenate([np.linspace(0, 4e-9, 9), [1.0]])
    y, query = np.sin(np.arange(10.0)), np.array([1.3e-9, 2.9e-9])
    alone = rg.NadarayaWatson(bandwidth=1e-9).fit(x[:, None], y).derivative(query[:, None])
    kinds = rg.NadarayaWatson(bandwidth=[1e-9, 0.0], categorical=[1]).fit(np.c_[x, np.ones(10)], y)
    found = kinds.derivative(np.c_[query, np.ones(2)])
    np.testing.assert_allclose(found[:, 0], alone[:, 0], rtol=1e-12)
