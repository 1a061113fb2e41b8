"""Categories in leave-one-out: the gradient is a derivative, residuals are refits, and the search finds the lowest."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_average import mixed
from leave_one_out_problem import problem_of, select

import regard as rg
from regard import kernels
from regard.regression import encoding
from regard.regression.bandwidth import objective, search
from regard.regression.bandwidth.leave_one_out import pairwise
from regard.regression.bandwidth.leave_one_out.pairwise import Pairwise
from regard.regression.bandwidth.leave_one_out.problem import Rows
from regard.regression.bandwidth.optimise import Parametrisation
from regard.regression.kernel_sums.categorical import Categories
from regard.regression.kernel_sums.sample import Sample

KERNELS = kernels.names()
COUNTS = torch.tensor([3.0, 2.0], dtype=torch.float64)


def data(n=43, outputs=1, seed=0):
    """Two features, two columns of categories; the last row is the only one of its kind in the first."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, generator=generator, dtype=torch.float64) * torch.tensor([1.0, 20.0]) + 5
    codes = torch.stack([torch.randint(0, 2, (n,), generator=generator) for _ in range(2)], 1).double()
    codes[-1, 0] = 2
    y = torch.sin(2 * x[:, :1]) + codes[:, :1] + 0.2 * torch.randn(n, outputs, generator=generator, dtype=torch.float64)
    weight = torch.rand(n, generator=generator, dtype=torch.float64) + 0.3
    return x, y, codes, weight


def of(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def refits(x, y, codes, weight, bandwidth, kernel, degree):
    """y_i less a fit to all the other points, one by one, in the textbook's way."""
    h, chance = bandwidth[:2], bandwidth[2:]
    found = torch.empty_like(y)
    for i in range(len(x)):
        others = torch.arange(len(x)) != i
        square = ((x[others] - x[i]) / h).square().sum(1)
        near = torch.exp(kernels.get(kernel).log_kernel(square))
        differs = codes[others] != codes[i]
        k = weight[others] * near
        for column in (chance > 0).nonzero().flatten():
            k = k * torch.where(differs[:, column], chance[column] / (COUNTS[column] - 1), 1 - chance[column])
        steps = differs[:, chance == 0].sum(1)
        if bool((k > 0).any()):
            k = torch.where(steps == steps[k > 0].min(), k, 0.0)
        else:
            k = torch.where(square == square.min(), weight[others], 0.0)
        corners = torch.cat((torch.ones(len(k), 1, dtype=torch.float64), (x[others] - x[i])[:, : 2 * degree]), 1)
        root = k.sqrt().unsqueeze(1)
        found[i] = torch.linalg.lstsq(root * corners, root * y[others], driver="gelsd").solution[0]
    return y - found


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("chance", [(0.3, 0.1), (0.0, 0.2), (0.0, 0.0)])
def test_residuals_are_refits_without_the_row(kernel, degree, chance):
    x, y, codes, weight = data(outputs=2)
    bandwidth = torch.cat(
        (of(2.0, 40.0) * kernels.get(kernel).canonical_bandwidth * (1.5 if degree else 0.4), of(*chance))
    )
    found = Pairwise(problem_of(x, y, kernel, degree, weight.log(), categories=Categories(codes, COUNTS, of(0, 0))))(
        bandwidth
    )
    expected = refits(x, y, codes, weight, bandwidth, kernel, degree)
    torch.testing.assert_close(found.residuals, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("outputs", [1, 3])
def test_gradient_is_the_derivative_in_log_widths_and_lambdas(kernel, degree, outputs):
    x, y, codes, weight = data(outputs=outputs, seed=3)
    function = Pairwise(problem_of(x, y, kernel, degree, weight.log(), categories=Categories(codes, COUNTS, of(0, 0))))
    place = torch.cat(
        (of(2.0, 40.0) * kernels.get(kernel).canonical_bandwidth * (1.5 if degree else 0.5), of(0.2, 0.35))
    )
    found, step = function(place).gradient, 1e-6
    for k in range(4):
        up, down = place.clone(), place.clone()
        up[k] = place[k] * math.exp(step) if k < 2 else place[k] + step
        down[k] = place[k] * math.exp(-step) if k < 2 else place[k] - step
        expected = (function(up).value - function(down).value) / (2 * step)
        assert float(found[k]) == pytest.approx(expected, rel=2e-5, abs=1e-7)
    assert bool((found[2:] != 0).all())


@pytest.mark.parametrize("degree", [0, 1])
def test_any_block_of_rows_gives_the_same_result(monkeypatch, degree):
    x, y, codes, weight = data()
    problem = problem_of(x, y, "gaussian", degree, weight.log(), categories=Categories(codes, COUNTS, of(0, 0)))
    whole = Pairwise(problem)(of(1.0, 20.0, 0.1, 0.3))
    monkeypatch.setattr(pairwise, "TILE_PAIRS", 7 * 43)
    parts = Pairwise(problem)(of(1.0, 20.0, 0.1, 0.3))
    torch.testing.assert_close(parts.residuals, whole.residuals, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(parts.gradient, whole.gradient, rtol=1e-10, atol=1e-12)


def test_a_category_is_a_gaussian_of_ones():
    """Another category weighs exp(-L), as a point does that is sqrt(2) away in a feature of width 1 / sqrt(L)."""
    x, y, codes, _ = data()
    ones = torch.cat([torch.nn.functional.one_hot(column.long()) for column in codes.mT], 1).double()
    apart = torch.log((COUNTS - 1) * (1 - of(0.2, 0.3)) / of(0.2, 0.3))
    widths = torch.cat((of(0.7, 9.0), apart.rsqrt().repeat_interleave(COUNTS.long())))
    plain = Pairwise(problem_of(torch.cat((x, ones), 1), y))(widths)
    mixed = Pairwise(problem_of(x, y, categories=Categories(codes, COUNTS, of(0, 0))))(of(0.7, 9.0, 0.2, 0.3))
    torch.testing.assert_close(mixed.residuals, plain.residuals, rtol=1e-9, atol=1e-10)
    steep = -1 / (of(0.2, 0.3) * (1 - of(0.2, 0.3)))  # dL / d lambda, and d log h = -dL / (2 L)
    by_width = torch.stack([part.sum() for part in plain.gradient[2:].split([3, 2])])
    torch.testing.assert_close(mixed.gradient[2:], by_width * steep / (-2 * apart), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("chance", [(0.3, 0.1), (0.0, 0.2), (2 / 3, 0.5)])
@pytest.mark.parametrize(("kernel", "degree"), [("gaussian", 0), ("gaussian", 1), ("epanechnikov", 0)])
def test_many_rows_are_left_out_from_sums_over_all(monkeypatch, kernel, degree, chance):
    x, y, codes, weight = data()
    sample, categories = Sample(x, y, of(2.5, 50.0), kernel, weight.log()), Categories(codes, COUNTS, of(*chance))
    rows = Rows(sample, None, categories)
    one_by_one = objective.residuals(rows, degree)
    monkeypatch.setattr(objective, "EXACT_PAIRS", 0)
    torch.testing.assert_close(objective.residuals(rows, degree), one_by_one, atol=1e-7, rtol=0)


# Laws.


@settings(max_examples=10)  # each is a search
@given(order=st.permutations([0, 1, 2, 3]), seed=st.integers(0, 3))
def test_the_names_of_categories_do_not_matter(order, seed):
    x, y = mixed(31, seed=2 + 4 * seed)
    renamed = x.copy()
    renamed[:, 2] = np.array(order)[x[:, 2].astype(int)]
    one = rg.NadarayaWatson(categorical=[2, 3]).fit(x, y)
    other = rg.NadarayaWatson(categorical=[2, 3]).fit(renamed, y)
    assert other.cv_ == pytest.approx(one.cv_, rel=1e-9)
    np.testing.assert_allclose(other.predict(renamed), one.predict(x), atol=1e-4)
    fixed = {"bandwidth": [0.5, 0.7, 0.2, 0.1], "categorical": [2, 3]}
    one, other = rg.NadarayaWatson(**fixed).fit(x, y), rg.NadarayaWatson(**fixed).fit(renamed, y)
    np.testing.assert_allclose(other.predict(renamed), one.predict(x), atol=1e-12)


@pytest.mark.parametrize("degree", [0, 1])
def test_a_feature_of_one_level_changes_nothing(degree):
    x, y = mixed()
    more = np.column_stack([x, np.full(len(x), 7.0)])
    one = rg.NadarayaWatson(degree=degree, categorical=[2, 3]).fit(x, y)
    other = rg.NadarayaWatson(degree=degree, categorical=[2, 3, 4]).fit(more, y)
    np.testing.assert_array_equal(other.bandwidth_, [*one.bandwidth_, 0.0])
    np.testing.assert_allclose(other.predict(more), one.predict(x), atol=1e-12)
    np.testing.assert_allclose(other.loo_residuals_, one.loo_residuals_, atol=1e-12)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "tricube"])
@pytest.mark.parametrize("degree", [0, 1])
def test_the_largest_lambda_is_the_feature_left_out(kernel, degree):
    x, y = mixed(seed=1)
    most = 1 - 1 / len(np.unique(x[:, 2]))
    one = rg.NadarayaWatson(kernel, [1.9, 2.1, most, 0.2], degree, categorical=[2, 3]).fit(x, y)
    other = rg.NadarayaWatson(kernel, [1.9, 2.1, 0.2], degree, categorical=[2]).fit(x[:, [0, 1, 3]], y)
    np.testing.assert_allclose(one.predict(x), other.predict(x[:, [0, 1, 3]]), atol=1e-11)
    np.testing.assert_allclose(one.loo_residuals_, other.loo_residuals_, atol=1e-10)
    np.testing.assert_allclose(one.leverage(), other.leverage(), atol=1e-11)


def test_weight_two_is_a_row_that_comes_twice():
    x, y = mixed(37)
    count = 1 + np.arange(37) % 2
    one = rg.NadarayaWatson(categorical=[2, 3]).fit(x, y, sample_weight=count)
    other = rg.NadarayaWatson(categorical=[2, 3]).fit(np.repeat(x, count, 0), np.repeat(y, count))
    np.testing.assert_allclose(one.bandwidth_, other.bandwidth_)
    np.testing.assert_allclose(np.repeat(one.loo_residuals_, count), other.loo_residuals_, atol=1e-10)


def test_the_smallest_lambda_is_a_limit():
    """Also for a row that is alone in its category, and for one that was never seen."""
    x, y = mixed(seed=1)
    x[0, 2] = 9
    new = x[:5] + np.array([0, 0, 100, 0])
    for degree in (0, 1):
        zero, small = (
            rg.NadarayaWatson(bandwidth=[0.9, 1.1, chance, chance], degree=degree, categorical=[2, 3]).fit(x, y)
            for chance in (0.0, 1e-13)
        )
        np.testing.assert_allclose(zero.predict(new), small.predict(new), atol=1e-8)
        np.testing.assert_allclose(zero.loo_residuals_, small.loo_residuals_, atol=1e-8)


# The search.


def test_the_same_rows_give_the_same_answer_in_any_order():
    x, y = mixed()
    one, two = (rg.NadarayaWatson(categorical=[2, 3]).fit(x, y) for _ in range(2))
    np.testing.assert_array_equal(one.bandwidth_, two.bandwidth_)
    shuffled = np.random.default_rng(0).permutation(len(x))
    other = rg.NadarayaWatson(categorical=[2, 3]).fit(x[shuffled], y[shuffled])
    assert other.cv_ == pytest.approx(one.cv_, rel=1e-8)


def test_progress_has_the_order_of_the_columns():
    x, y = mixed(seed=2)
    seen = []
    columns = [2, 0, 3, 1]
    model = rg.NadarayaWatson(categorical=[0, 2], verbose=seen.append).fit(x[:, columns], y)
    np.testing.assert_array_equal(min(seen, key=lambda state: state.value).bandwidth, model.bandwidth_)
    assert math.isinf(seen[0].bandwidth[1]) and float(seen[0].bandwidth[0]) == 0.75


def test_coarse_to_fine_ends_no_higher_than_all_starts(monkeypatch):
    x, y = mixed(811, seed=4)
    categories = Categories(torch.from_numpy(x[:, 2:]), of(2, 3), of(0, 0))
    points, values = torch.from_numpy(x[:, :2]), torch.from_numpy(y).unsqueeze(1)
    coarse = select(points, values, categories=categories)
    monkeypatch.setattr(search, "COARSE_SECONDS", math.inf)
    assert coarse.value <= select(points, values, categories=categories).value * (1 + 1e-6)


@pytest.mark.parametrize("count", [2, 3, 7, 21, 35, 37, 42, 73, 191])
def test_a_descent_may_begin_at_the_largest_lambda(count):
    codes = torch.arange(count, dtype=torch.float64).repeat(2).unsqueeze(1)
    categories = Categories(codes, of(count), of(0.0))
    x = torch.linspace(0, 1, 2 * count, dtype=torch.float64).unsqueeze(1)
    problem = problem_of(x, x.sin(), categories=categories)
    logs = Parametrisation.of(problem, torch.tensor([True, True]))
    log_widths = logs.to_log(torch.cat((of(0.3), problem.irrelevant[1:])))
    assert not log_widths.isnan().any() and log_widths[1] > 10


@pytest.mark.parametrize("degree", [0, 1])
def test_a_fit_with_categories_alone(degree):
    """No feature has a distance: an average of each category, a line without a direction, and a slope of none."""
    X, y = np.array([[0.0], [0.0], [1.0], [1.0], [1.0]]), np.array([1.0, 2.0, 6.0, 7.0, 8.0])
    fit = rg.NadarayaWatson(degree=degree, categorical=[0], bandwidth=[0.0]).fit(X, y)
    np.testing.assert_allclose(fit.predict([[0.0], [1.0]]), [1.5, 7.0])
    assert np.isnan(fit.derivative([[0.0]])).all()
    found = rg.NadarayaWatson(degree=degree, categorical=[0]).fit(X, y)
    assert found.cv_ < np.mean((y - y.mean()) ** 2)


def test_of_twin_columns_one_is_given_up():
    rng = np.random.default_rng(0)
    x, kind = rng.normal(size=61), rng.integers(0, 2, 61)
    y = np.where(kind > 0, np.sin(3 * x), -3 * x)
    found = rg.NadarayaWatson(categorical=[1, 2]).fit(np.c_[x, kind, kind], y).bandwidth_
    assert max(found[1:]) == 0.5 and min(found[1:]) < 0.1


def test_a_column_of_one_category_with_weight_is_ignored():
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=41), rng.integers(0, 2, 41)]
    fit = rg.NadarayaWatson(categorical=[1]).fit(X, np.sin(2 * X[:, 0]), sample_weight=(X[:, 1] == 0).astype(float))
    assert fit.bandwidth_[1] == 0.5


@pytest.mark.parametrize(
    ("learned", "asked"),
    [(["1.0", "2.0"], [1.0, 2.0]), (["1", "2"], [1.0, 2.0]), (["False", "True"], [False, True]), (["1.5", "x"], [1.5])],
)
def test_numbers_find_the_texts_they_were_learned_as(learned, asked):
    codes = encoding.codes(np.array(asked), np.array(learned))
    assert codes.tolist() == list(range(len(asked)))
    assert encoding.codes(np.array([np.inf, 7.0]), np.array(learned)).tolist() == [-1, -1]
