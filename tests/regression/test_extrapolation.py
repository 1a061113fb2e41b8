"""Far from the data: the limit where the kernel has no end, the caller's choice where it has one."""

import numpy as np
import pytest

import regard as rg
from regard.errors import OutsideError
from regard.kernels import names

KERNELS = names()

COMPACT = [kernel for kernel in KERNELS if kernel not in ("gaussian", "laplace")]


def data(n=43, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(0, 1, size=(n, 2))
    return x, np.stack([x.sum(1), generator.normal(size=n)], 1)


def nearest(x, y, query, width):
    distance = np.linalg.norm((query[:, None] - x) / width, axis=2)
    return y[distance.argmin(1)]


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("distance", [40, 1e3, 1e6, 1e9])
def test_far_predictions_are_finite(kernel, degree, distance):
    x, y = data()
    width = np.array([0.1, 0.3])
    query = x[:7] + distance * width
    model = rg.NadarayaWatson(kernel, width, degree).fit(x, y)
    for answer in (*model.predict(query, return_std=True), *model.confidence_band(query), model.derivative(query)):
        assert np.isfinite(answer).all()


@pytest.mark.parametrize("distance", [1e4, 1e6, 1e200])
def test_the_limit_is_the_nearest_point(distance):
    x, y = data()
    width = np.array([0.1, 0.3])
    query = np.array([[1.0, 0.3], [-1.0, 0.2], [0.1, -1.0]]) * distance * width
    model = rg.NadarayaWatson("gaussian", width).fit(x, y)
    if distance < 1e200:
        np.testing.assert_allclose(model.predict(query), nearest(x, y, query, width), atol=1e-9)
    else:  # beyond what float64 can tell apart: some point's answer, not NaN
        assert np.isfinite(model.predict(query)).all()


@pytest.mark.parametrize("kernel", ["gaussian", "biweight"])
def test_two_points_at_one_distance_give_their_mean(kernel):
    model = rg.NadarayaWatson(kernel, 0.5).fit([[0.0, 1.0], [0.0, -1.0], [-3.0, 0.0]], [1.0, 5.0, 9.0])
    assert model.predict([[1e6, 0.0]]) == pytest.approx(3.0)
    model.fit(model.X_, model.y_, [3, 1, 1])
    assert model.predict([[1e3, 0.0]]) == pytest.approx(2.0)


@pytest.mark.parametrize("kernel", COMPACT)
@pytest.mark.parametrize("degree", [0, 1])
def test_queries_out_of_reach_get_the_mean_of_the_nearest_points(kernel, degree):
    x, y = data()
    width = np.array([0.2, 0.4])
    query = np.concatenate([x[:5], [[3.0, 0.5], [-2.0, 0.5]]])
    model = rg.NadarayaWatson(kernel, width, degree).fit(x, y)
    found, error = model.predict(query, return_std=True)
    np.testing.assert_array_equal(found[5:], nearest(x, y, query[5:], width))
    assert np.isfinite(error).all() and (error[5:] > 0).all()
    np.testing.assert_array_equal(model.derivative(query)[5:], 0)
    assert (model.weights(query).dense()[5:] == 0).all()

    nan = model.set_params(outside="nan")
    assert np.isnan(nan.predict(query)[5:]).all() and np.isnan(nan.derivative(query)[5:]).all()
    assert np.isnan(nan.predict(query, return_std=True)[1][5:]).all()
    np.testing.assert_array_equal(nan.predict(query)[:5], found[:5])

    strict = model.set_params(outside="raise")
    np.testing.assert_array_equal(strict.predict(query[:5]), found[:5])
    for ask in (strict.predict, strict.derivative, strict.confidence_band):
        with pytest.raises(OutsideError, match=r"row 5 \(2 of 7 rows\)"):
            ask(query)


def test_points_without_weight_are_not_near():
    model = rg.NadarayaWatson("boxcar", 0.1).fit([[0.0], [1.0]], [3.0, 7.0], [1.0, 0.0])
    assert model.predict([[5.0]]) == 3.0


@pytest.mark.parametrize("outside", ["nearest", "nan", "raise"])
def test_leave_one_out_of_an_unreached_row_uses_the_nearest(outside):
    """A search needs a number for every row, so `outside` has no say."""
    model = rg.NadarayaWatson("boxcar", 0.1, outside=outside).fit([[0.0], [0.05], [7.0]], [1.0, 3.0, 9.0])
    np.testing.assert_array_equal(model.loo_residuals_, [1.0 - 3.0, 3.0 - 1.0, 9.0 - 3.0])
    assert model.cv_ == pytest.approx((4 + 4 + 36) / 3)


@pytest.mark.parametrize("kernel", COMPACT)
@pytest.mark.parametrize("distance", [1e16, 1e17, 1e100, 1e200, 1.7e308])
def test_the_nearest_point_is_known_at_any_distance(kernel, distance):
    x, y = np.linspace(0, 1, 11)[::-1, None], np.arange(11.0)[::-1].copy()
    model = rg.NadarayaWatson(kernel, 0.15).fit(x, y)
    found, error = model.predict([[distance], [-distance]], return_std=True)
    np.testing.assert_array_equal(found, [10.0, 0.0])
    np.testing.assert_array_equal(error, np.abs(model.loo_residuals_[[0, 10]]))


@pytest.mark.parametrize("far", [1e3, 1e17, 1e200])
def test_another_feature_decides_between_equally_far_points(far):
    x = np.array([[-0.5, 1.0], [0.0, 2.0], [0.0, 1.0], [0.0, 4.0]])
    model = rg.NadarayaWatson("boxcar", 0.1).fit(x, [9.0, 5.0, 1.0, 7.0])
    np.testing.assert_array_equal(model.predict([[far, 0.0], [far, 1.75], [far, 3.0], [-far, 3.0]]), [1, 5, 6, 9])
