"""What kernel regression must not depend on: the order of rows, copies against weights, and units."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import regard as rg


def table(n, seed):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, 3))
    return x, np.stack([np.sin(2 * x[:, 0]), x[:, 1] + 0.1 * generator.normal(size=n)], 1)


models = st.builds(
    rg.NadarayaWatson,
    kernel=st.sampled_from(["gaussian", "laplace", "triangular", "biweight"]),
    bandwidth=st.floats(0.8, 4.0),
    degree=st.sampled_from([0, 1]),
)


@given(model=models, seed=st.integers(0, 2**16))
def test_the_order_of_rows_does_not_matter(model, seed):
    x, y = table(53, seed)
    order = np.random.default_rng(seed).permutation(53)
    found, error = model.fit(x, y).predict(x, return_std=True)
    again, error_again = model.fit(x[order], y[order]).predict(x, return_std=True)
    np.testing.assert_allclose(again, found, atol=1e-8)
    np.testing.assert_allclose(error_again, error, atol=1e-8)


@given(model=models, seed=st.integers(0, 2**16))
def test_a_row_that_comes_twice_has_weight_two(model, seed):
    x, y = table(31, seed)
    times = np.random.default_rng(seed).integers(0, 4, 31)
    times[0] = 1
    found = model.fit(np.repeat(x, times, 0), np.repeat(y, times, 0)).predict(x, return_std=True)
    weighted = model.fit(x, y, times).predict(x, return_std=True)
    for a, b in zip(found, weighted, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-7)


@given(
    model=models,
    seed=st.integers(0, 2**16),
    shift=st.floats(-100, 100),
    scale=st.floats(0.01, 100),
    level=st.floats(-100, 100),
)
def test_units_and_offsets_do_not_matter(model, seed, shift, scale, level):
    x, y = table(37, seed)
    found, error = model.fit(x, y).predict(x, return_std=True)
    model.set_params(bandwidth=model.bandwidth * scale)
    moved, moved_error = model.fit(x * scale + shift, y * 2 + level).predict(x * scale + shift, return_std=True)
    np.testing.assert_allclose(moved, found * 2 + level, atol=1e-6)
    np.testing.assert_allclose(moved_error, error * 2, atol=1e-6)
