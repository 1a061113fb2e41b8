"""Degree 1: a line through the data near by, and the matrix that draws it."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard as rg
from regard.errors import DtypeError, ShapeError, TooLargeError
from regard.kernels import names

KERNELS = names()


def fitted(n=47, features=2, seed=0, **options):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, features))
    y = np.stack([np.cos(x[:, 0]), x.sum(1) + 0.1 * generator.normal(size=n), x[:, 0] ** 2], 1)
    model = rg.NadarayaWatson(**{"bandwidth": 0.9, "degree": 1} | options)
    return model.fit(x, y, generator.uniform(0.5, 2, n)), generator.normal(size=(13, features)) * 0.7


def least_squares(model, query):
    """The line at each query by numpy's own least squares."""
    found = []
    constant = rg.NadarayaWatson(model.kernel, model.bandwidth).fit(model.X_, model.y_, model.sample_weight_)
    for at, p in zip(query, constant.weights(query).dense().numpy(), strict=True):
        design = np.column_stack([np.ones(len(model.X_)), model.X_ - at]) * np.sqrt(p)[:, None]
        found.append(np.linalg.lstsq(design, model.y_ * np.sqrt(p)[:, None], rcond=None)[0][0])
    return np.array(found)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("features", [1, 2, 3])
def test_local_linear_is_weighted_least_squares(kernel, features):
    model, query = fitted(n=101, features=features, kernel=kernel, bandwidth=2.1)
    np.testing.assert_allclose(model.predict(query), least_squares(model, query), atol=1e-9)


SLOPES = st.floats(-10, 10).map(lambda slope: round(slope, 9))  # y that differs by less than 1e-150 is refused


@given(slope=st.tuples(SLOPES, SLOPES), level=st.floats(-100, 100), width=st.floats(0.5, 50))
def test_a_plane_is_found_everywhere(slope, level, width):
    model, query = fitted(bandwidth=width)
    plane = model.fit(model.X_, model.X_ @ slope + level, model.sample_weight_)
    np.testing.assert_allclose(plane.predict(query * 3), query * 3 @ slope + level, atol=1e-6)
    np.testing.assert_allclose(plane.derivative(query), np.broadcast_to(slope, query.shape), atol=1e-5)


def test_an_infinite_width_is_a_line_and_not_nothing():
    model, query = fitted(bandwidth=[0.8, np.inf])
    wide, _ = fitted(bandwidth=[0.8, 1e6])
    np.testing.assert_allclose(model.predict(query), wide.predict(query), atol=1e-8)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_data_of_hundreds_of_bandwidths_and_a_large_offset(offset):
    x = np.linspace(0, 1, 2003)[:, None] + offset
    y = np.sin(40 * (x[:, 0] - offset))
    model = rg.NadarayaWatson(bandwidth=0.002, degree=1).fit(x, y)  # 500 bandwidths wide
    query = x[::97] + 0.0001
    p = np.exp(-0.5 * ((query - x[:, 0]) / 0.002) ** 2)
    away = x[:, 0] - query
    s0, s1, s2 = p.sum(1), (p * away).sum(1), (p * away**2).sum(1)
    expected = (s2 * (p @ y) - s1 * ((p * away) @ y)) / (s0 * s2 - s1**2)
    np.testing.assert_allclose(model.predict(query), expected, atol=1e-8)


class TestWhereThereIsNoLine:
    def test_one_point_is_a_constant(self):
        model = rg.NadarayaWatson(bandwidth=1.0, degree=1).fit([[2.0, 3.0]], [5.0])
        np.testing.assert_array_equal(model.predict([[0.0, 0.0], [2.0, 3.0]]), 5.0)

    def test_equal_points_are_their_mean(self):
        model = rg.NadarayaWatson(bandwidth=1.0, degree=1).fit(np.full((7, 2), 0.3), np.arange(7.0))
        np.testing.assert_allclose(model.predict([[0.0, 0.0]]), 3.0)

    def test_a_feature_that_never_changes_is_flat(self):
        model, query = fitted(features=1)
        with_constant = rg.NadarayaWatson(bandwidth=0.9, degree=1)
        with_constant.fit(np.column_stack([model.X_, np.full(47, 7.7)]), model.y_, model.sample_weight_)
        np.testing.assert_allclose(
            with_constant.predict(np.column_stack([query, np.full(13, 7.7)])), model.predict(query), atol=1e-10
        )

    def test_fewer_points_than_directions(self):
        x = np.random.default_rng(0).normal(size=(3, 5))
        model = rg.NadarayaWatson(bandwidth=2.0, degree=1).fit(x, [1.0, 2.0, 4.0])
        np.testing.assert_allclose(model.predict(x), [1.0, 2.0, 4.0], atol=1e-9)  # a plane goes through all of them
        assert np.isfinite(model.predict(x * 10)).all()


class TestSmoother:
    def test_smoother_times_y_is_the_fit(self):
        model, query = fitted()
        smoother = model.weights(query)
        y = torch.from_numpy(model.y_)
        assert smoother.shape == (13, 47) and len(smoother) == 13 and smoother.dtype == torch.float64
        np.testing.assert_allclose(smoother @ y, model.predict(query), atol=1e-11)
        np.testing.assert_allclose(smoother @ y[:, 0], model.predict(query)[:, 0], atol=1e-11)
        np.testing.assert_allclose(smoother.dense() @ y, model.predict(query), atol=1e-11)

    def test_rows_sum_to_one_and_some_are_negative(self):
        model, query = fitted()
        matrix = model.weights(query * 3).dense()
        np.testing.assert_allclose(matrix.sum(1), 1.0, atol=1e-10)
        assert (matrix < -0.01).any()
        assert "may be negative" in repr(model.weights(query))

    @pytest.mark.parametrize(
        "index",
        [
            3,
            (2, 5),
            slice(2, 9, 3),
            (slice(None), 4),
            (..., slice(5, 11)),
            ([1, 0, 12], [4, 46, -1]),
            (torch.tensor([[1], [7]]), torch.tensor([3, 9, 3])),
            (torch.arange(13) % 2 == 0, slice(0, 5)),
        ],
    )
    def test_an_index_selects_as_it_does_in_the_dense_matrix(self, index):
        model, query = fitted()
        smoother = model.weights(query)
        np.testing.assert_allclose(smoother[index], smoother.dense()[index], atol=1e-14)

    def test_smoother_refuses_large_blocks_and_wrong_operands(self):
        model, query = fitted()
        smoother = model.weights(query)
        with pytest.raises(TooLargeError, match="4,888 bytes"):
            smoother.dense(limit=4000)
        with pytest.raises(ShapeError, match="47 keys"):
            smoother @ torch.zeros(13, dtype=torch.float64)
        with pytest.raises(DtypeError, match="float64"):
            smoother @ torch.zeros(47, 2)
        with pytest.raises(IndexError):
            smoother[13]
