"""Local lines by the fast sum: against all pairs in float64, each within its bound, and the rest from the points."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import regard as rg
from regard.regression.bandwidth.leave_one_out.problem import Rows
from regard.regression.bandwidth.objective import residuals
from regard.regression.kernel_sums import engine, relative_weights
from regard.regression.kernel_sums.fourier import series_in_box
from regard.regression.kernel_sums.sample import Sample, scale_of, standardise_by_axis
from regard.regression.local import linear_fourier
from regard.regression.local.linear_statistics import exact_value

N, QUERIES = 1009, 211
GENERATOR = torch.Generator()


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=GENERATOR)


def filled(dim, width):
    return torch.full((dim,), float(width), dtype=torch.float64)


def values_at(x):
    return torch.stack([torch.sin(2 * x).sum(1) + 0.3 * normal(len(x)), x[:, 0] + 3 * normal(len(x))], 1)


def plain(dim, n, queries):
    x = normal(n, dim)
    return Sample(x, values_at(x), filled(dim, 0.3 if dim < 3 else 0.6)), 1.2 * normal(queries, dim)


def clusters(dim, n, queries):
    centres = 9 * torch.rand(7, dim, dtype=torch.float64, generator=GENERATOR)
    x = centres[torch.randint(7, (n,), generator=GENERATOR)] + 0.05 * normal(n, dim)
    return Sample(x, values_at(x), filled(dim, 0.3 if dim < 3 else 0.7)), x[torch.arange(queries) % n] + 0.4 * normal(
        queries, dim
    )


def duplicates(dim, n, queries):
    x = normal(11, dim)[torch.randint(11, (n,), generator=GENERATOR)]
    return Sample(x, values_at(x), filled(dim, 0.5)), normal(queries, dim)


def large_numbers(dim, n, queries):
    sample, query = plain(dim, n, queries)
    h = sample.bandwidth * 1e6
    return Sample(sample.x * 1e6 + 1e8, sample.values * 1e6 - 1e8, h), query * 1e6 + 1e8


def heavy_tails(dim, n, queries):
    x = (normal(n, dim) / normal(n, 1)).clamp(-99, 99)
    values = values_at(x) / normal(n, 1)
    return Sample(x, values, filled(dim, (0.3, 2.0, 20.0)[dim - 1])), normal(queries, dim) / normal(queries, 1)


def far_queries(dim, n, queries):
    sample, query = plain(dim, n, queries)
    return sample, query * 10 ** (3 * torch.rand(queries, 1, dtype=torch.float64, generator=GENERATOR))


def weighted(dim, n, queries):
    sample, query = plain(dim, n, queries)
    log_weight = 3 * normal(n)
    log_weight[::7] = -math.inf
    return Sample(sample.x, sample.values, sample.bandwidth, log_weight=log_weight), query


MAKERS = [plain, clusters, duplicates, large_numbers, heavy_tails, far_queries, weighted]


@pytest.fixture(autouse=True)
def same_numbers():
    GENERATOR.manual_seed(20_26)


def by_pairs(sample, query):
    """Weighted least squares from the mean around each query, so that nothing large cancels."""
    parts = []
    for some in query.split(max(1, 2**21 // len(sample.x))):
        away = (sample.x - some.unsqueeze(1)) / sample.bandwidth  # (q, n, dim)
        scores = away.square().sum(2) / -2
        p = torch.softmax(scores if sample.log_weight is None else scores + sample.log_weight, 1).unsqueeze(1)
        mean, level = p @ away, p @ sample.values
        around, y = away - mean, sample.values - level
        spread, both = around.mT @ (p.mT * around), around.mT @ (p.mT * y)
        parts.append((level - mean @ torch.linalg.pinv(spread, hermitian=True) @ both).squeeze(1))
    return torch.cat(parts)


def off(sample, query, value):
    """In standard deviations, at worst, for each query."""
    counted = slice(None) if sample.log_weight is None else torch.isfinite(sample.log_weight)
    return ((value - by_pairs(sample, query)).abs() / scale_of(sample.values[counted])).amax(1)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_no_line_breaks_its_bound(maker, dim):
    sample, query = maker(dim, N, QUERIES)
    value, error = linear_fourier.lines(sample, query, 1e-6)
    known = torch.isfinite(error)
    assert (off(sample, query[known], value[known]) <= error[known] + 1e-11).all()


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_most_queries_among_the_points_are_certain(dim):
    sample, query = plain(dim, N, QUERIES)
    _, error = linear_fourier.lines(sample, query / 2, 1e-6)
    assert (error <= 1e-6).double().mean() > 0.95


@pytest.mark.long
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_no_line_breaks_its_bound_at_a_million_queries(maker, dim):
    sample, query = maker(dim, 503, 1_000_003 // len(MAKERS) // 3 + 1)
    value, error = linear_fourier.lines(sample, query, 1e-6)
    known = torch.isfinite(error)
    assert (off(sample, query[known], value[known]) <= error[known] + 1e-11).all()


@pytest.mark.long
def test_a_million_points_at_full_size():
    x, query = normal(1_000_003, 1), normal(1_000_003, 1)
    sample = Sample(x, values_at(x), filled(1, 0.05))
    model = rg.NadarayaWatson(degree=1, bandwidth=0.05).fit(x.numpy(), sample.values.numpy())
    found = torch.from_numpy(model.predict(query.numpy()))
    _, error = linear_fourier.lines(sample, query, 1e-6)
    some = torch.cat([torch.arange(200), error.topk(200).indices])
    assert (off(sample, query[some], found[some]) <= 1e-6).all()
    assert (error > 1e-6).sum() < 1000


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_every_sum_is_within_what_it_may_be_off_by(dim):
    """The entries of M and t themselves, where few points and single ones can do the most."""
    for n in (1, 3, N):
        sample, query = plain(dim, n, QUERIES)
        data = standardise_by_axis(sample, query / 3)
        series, data, _ = series_in_box(data, 1e-6)
        got, _ = linear_fourier._equations(data, series)
        away = data.x.T.unsqueeze(1) - data.query.T.unsqueeze(2)  # (dim, q, n)
        kernel = torch.exp(away.square().sum(0) / -2)
        corners = torch.cat([torch.ones_like(away[:1]), away])
        matrix = torch.einsum("qn,aqn,bqn->abq", kernel, corners, corners)
        right = torch.einsum("qn,aqn,nc->acq", kernel, corners, data.values)
        assert ((got.matrix - matrix).abs() <= got.matrix_error).all()
        assert ((got.right - right).abs() <= got.right_error).all()


@given(
    k=st.integers(2, 4),
    size=st.floats(1e-13, 1e-3),
    narrow=st.floats(1e-4, 1.0),
    seed=st.integers(0, 2**20),
)
def test_errors_of_the_sums_bound_the_error_of_the_line(k, size, narrow, seed):
    """Any sums as far off as they may be, in the directions that hurt or at random, stay within the bound."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    corners = torch.cat([torch.ones(1, 17, dtype=torch.float64), narrow * normal(k - 1, 17) + normal(k - 1, 1)])
    y = normal(17, 2)
    matrix, right = corners @ corners.T, corners @ y
    exact = torch.linalg.lstsq(corners.T, y).solution[0]
    shift, shift_right = normal(k, k, 53).sign(), normal(k, 2, 53).sign()
    sums = linear_fourier.Equations(
        matrix.unsqueeze(2) + size * (shift + shift.transpose(0, 1)) / 2,
        right.unsqueeze(2) + size * shift_right,
        filled(1, size).expand(k, k, 1) + 1e-14 * matrix.abs().amax(),
        filled(1, size).expand(k, 2, 1) + 1e-14 * right.abs().amax(),
    )
    value, error = linear_fourier._solve(sums)
    assert ((value - exact).abs().amax(1) <= error + 1e-11).all()


@pytest.mark.parametrize("maker", [plain, weighted])
def test_a_row_left_out_is_left_out(maker):
    sample, _ = maker(1, 4001, 1)
    kept = slice(None) if sample.log_weight is None else torch.isfinite(sample.log_weight)
    weight = None if sample.log_weight is None else sample.log_weight[kept]
    sample = Sample(sample.x[kept], sample.values[kept], sample.bandwidth, log_weight=weight)
    found = residuals(Rows(sample), degree=1)
    assert engine.explain(sample, sample.x).name == "fast"
    for row in (0, 7, 1001, int(sample.x[:, 0].argmax())):
        others = torch.arange(len(sample.x)) != row
        weight = None if sample.log_weight is None else sample.log_weight[others]
        without = Sample(sample.x[others], sample.values[others], sample.bandwidth, log_weight=weight)
        expected = sample.values[row] - by_pairs(without, sample.x[row : row + 1])[0]
        assert ((found[row] - expected).abs() <= 2e-6 * scale_of(sample.values)).all()


@pytest.mark.parametrize("dim", [1, 2])
def test_the_estimator_takes_the_fast_sum_and_redoes_the_rest(dim, monkeypatch):
    sample, query = plain(dim, 4001, 4001)
    query = torch.cat([query, query[:7] + 40])
    asked = []
    original = relative_weights.for_neighbourhoods

    def counted(sample, query, statistic):
        asked.append(len(query))
        return original(sample, query, statistic)

    monkeypatch.setattr(relative_weights, "for_neighbourhoods", counted)
    model = rg.NadarayaWatson(degree=1, bandwidth=0.3).fit(sample.x.numpy(), sample.values.numpy())
    found = model.predict(query.numpy())
    assert "fast" in model.plan_
    assert 7 <= sum(asked) < len(query) // 10
    assert (off(sample, query[:-7], torch.from_numpy(found[:-7])) <= 1e-6).all()


def from_points(sample, query):
    return relative_weights.for_neighbourhoods(sample, query, partial(exact_value, sample.values))[1]


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_from_the_points_it_is_least_squares(dim):
    sample, query = plain(dim, N, QUERIES)
    design = (sample.x - query.unsqueeze(1)) / sample.bandwidth
    root = torch.softmax(design.square().sum(2) / -2, 1).sqrt().unsqueeze(2)
    design = torch.cat([torch.ones_like(root), design], 2)
    expected = torch.stack(
        [
            torch.linalg.lstsq(r * a, r * sample.values, driver="gelsd", rcond=1e-15).solution[0]
            for r, a in zip(root, design, strict=True)
        ]
    )
    np.testing.assert_allclose(from_points(sample, query), expected, rtol=0, atol=1e-7)


def test_where_there_is_no_line_it_is_flat():
    x = torch.tensor([[0.0, 0.0]] * 5 + [[1.0, 1.0]] * 5, dtype=torch.float64)
    y = torch.arange(10.0, dtype=torch.float64).unsqueeze(1)
    found = from_points(Sample(x, y, filled(2, 1.0)), torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.5, 0.5]]).double())
    np.testing.assert_allclose(found[:, 0], [2.0, 4.5, 4.5], atol=1e-12)
    one = from_points(Sample(x[:3], y[:3], filled(2, 1.0)), x[5:7] * 9)
    np.testing.assert_allclose(one[:, 0], 1.0)
