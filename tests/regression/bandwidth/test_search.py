"""Bandwidths by leave-one-out: residuals are refits, gradients are derivatives, and nobody finds a lower value."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from leave_one_out_problem import problem_of, select

from regard import NadarayaWatson, kernels
from regard.regression.bandwidth import objective
from regard.regression.bandwidth.leave_one_out import fourier
from regard.regression.bandwidth.leave_one_out.fourier import Fourier, Radius
from regard.regression.bandwidth.leave_one_out.pairwise import Pairwise
from regard.regression.bandwidth.leave_one_out.problem import Rows
from regard.regression.bandwidth.objective import Objective
from regard.regression.bandwidth.rules import scott
from regard.regression.bandwidth.search import Progress
from regard.regression.kernel_sums.sample import Sample

KERNELS = kernels.names()
INF = math.inf


def data(n, d=2, outputs=1, seed=0):
    """Features of very different size, far from 0."""
    generator = torch.Generator().manual_seed(seed)
    unit = torch.tensor([1.0, 50.0, 0.01, 2.0, 7.0], dtype=torch.float64)[:d]
    z = torch.randn(n, d, generator=generator, dtype=torch.float64)
    noise = torch.randn(n, outputs, generator=generator, dtype=torch.float64)
    y = torch.sin(2 * z[:, :1]) + 0.3 * noise + 5
    return z * unit + 20 * unit, y, unit


def weights_of(n, seed=1):
    return torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.3


def kernel_of(kernel, square):
    return torch.exp(kernels.get(kernel).log_kernel(square))


def refits(x, y, h, kernel="gaussian", degree=0, weight=None):
    """y_i less a fit to all the other points, one by one, in the textbook's way."""
    n = len(x)
    weight = torch.ones(n, dtype=torch.float64) if weight is None else weight
    found = torch.empty_like(y)
    for i in range(n):
        others = torch.arange(n) != i
        square = ((x[others] - x[i]) / h).square().sum(1)
        k = kernel_of(kernel, square) * weight[others]
        if k.sum() == 0:  # out of reach: the nearest
            k = torch.where(square == square.min(), weight[others], 0.0)
        if degree:
            corners = torch.cat((torch.ones(n - 1, 1, dtype=torch.float64), x[others] - x[i]), 1)
            root = k.sqrt().unsqueeze(1)
            found[i] = torch.linalg.lstsq(root * corners, root * y[others], driver="gelsd").solution[0]
        else:
            found[i] = (k.unsqueeze(1) * y[others]).sum(0) / k.sum()
    return y - found


def by_differences(function, h, step=1e-6):
    """The derivative of the value by the logarithm of each width."""
    found = []
    for k in range(len(h)):
        up, down = h.clone(), h.clone()
        up[k] *= math.exp(step)
        down[k] *= math.exp(-step)
        found.append((function(up).value - function(down).value) / (2 * step))
    return torch.tensor(found, dtype=torch.float64)


# Residuals are refits.


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("outputs", [1, 3])
def test_residuals_are_refits_without_the_point(kernel, degree, outputs):
    x, y, unit = data(41, outputs=outputs)
    weight = weights_of(41)
    # A line needs points in reach: the flat edges of a compact kernel are another test.
    h = unit * kernels.get(kernel).canonical_bandwidth * (3.0 if degree else 0.5)
    found = Pairwise(problem_of(x, y, kernel, degree, weight.log()))(h)
    expected = refits(x, y, h, kernel, degree, weight)
    torch.testing.assert_close(found.residuals, expected, rtol=1e-8, atol=1e-9)
    squares = (weight / weight.sum()) @ expected.square()
    if outputs > 1:
        mean = weight @ y / weight.sum()
        squares = squares / ((weight / weight.sum()) @ (y - mean).square())
    assert found.value == pytest.approx(float(squares.sum()), rel=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("outputs", [1, 2])
def test_gradient_is_the_derivative(kernel, degree, outputs):
    x, y, unit = data(53, outputs=outputs, seed=3)
    h = unit * kernels.get(kernel).canonical_bandwidth * (2.0 if degree else 0.7)
    function = Pairwise(problem_of(x, y, kernel, degree, weights_of(53).log()))
    torch.testing.assert_close(function(h).gradient, by_differences(function, h), rtol=2e-5, atol=1e-7)


def test_an_infinite_width_is_a_feature_less():
    x, y, unit = data(37, d=3)
    h = unit * torch.tensor([0.5, INF, 0.8], dtype=torch.float64)
    whole = Pairwise(problem_of(x, y))(h)
    without = Pairwise(problem_of(x[:, [0, 2]], y))(h[[0, 2]])
    torch.testing.assert_close(whole.residuals, without.residuals)
    torch.testing.assert_close(whole.gradient[[0, 2]], without.gradient)
    assert whole.gradient[1] == 0


@pytest.mark.parametrize("degree", [0, 1])
def test_at_infinite_widths_the_shortcut_is_all_pairs(degree):
    x, y, _ = data(37, d=2, outputs=3)
    problem = problem_of(x, y, "gaussian", degree, weights_of(37).log())
    h = torch.full((2,), INF, dtype=torch.float64)
    torch.testing.assert_close(Objective(problem)(h).residuals, Pairwise(problem)(h).residuals)


def test_far_from_all_others_the_nearest_decides():
    x = torch.tensor([[0.0], [1.0], [1e4]], dtype=torch.float64)
    y = torch.tensor([[1.0], [2.0], [5.0]], dtype=torch.float64)
    h = torch.tensor([0.01], dtype=torch.float64)
    for kernel in KERNELS:
        found = Pairwise(problem_of(x, y, kernel))(h)
        torch.testing.assert_close(found.residuals, torch.tensor([[-1.0], [1.0], [3.0]], dtype=torch.float64))


def test_a_compact_kernel_gains_nothing_by_isolating_points():
    x, y, unit = data(31, d=1)
    function = Pairwise(problem_of(x, y, "epanechnikov"))
    nearest = refits(x, y, unit * 1e-9, "epanechnikov")
    torch.testing.assert_close(function(unit * 1e-9).residuals, nearest)
    # The value has no jump where the last neighbour goes out of reach.
    gap = float((x[:, 0].sort().values.diff()).max())
    just_in, just_out = (function(torch.tensor([gap * f], dtype=torch.float64)).value for f in (1 + 1e-9, 1 - 1e-9))
    assert just_in == pytest.approx(just_out, rel=1e-6)


@given(seed=st.integers(0, 10**6), twice=st.integers(1, 9))
def test_weights_that_are_counts_are_copies(seed, twice):
    x, y, unit = data(11, seed=seed)
    count = torch.ones(11, dtype=torch.float64)
    count[:twice] = 2
    h = unit * 0.5
    copies = torch.cat((torch.arange(11), torch.arange(twice)))
    one = Pairwise(problem_of(x, y, "gaussian", 0, count.log(), torch.ones(11, dtype=torch.float64)))(h)
    many = Pairwise(problem_of(x[copies], y[copies]))(h)
    assert one.value == pytest.approx(many.value, rel=1e-10)
    torch.testing.assert_close(one.residuals, many.residuals[:11])
    torch.testing.assert_close(one.gradient, many.gradient, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "epanechnikov"])
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_residuals_from_the_average_of_all(kernel, degree, weighted, monkeypatch):
    x, y, unit = data(211, outputs=2)
    x[0] += (5 if degree else 40) * unit  # its own weight is nearly everything it sees
    log_weight = weights_of(211).log() if weighted else None
    sample = Sample(x, y, unit * 0.7, kernel, log_weight)
    exact = objective.residuals(Rows(sample), degree)
    monkeypatch.setattr(objective, "EXACT_PAIRS", 0)
    torch.testing.assert_close(objective.residuals(Rows(sample), degree), exact, rtol=1e-6, atol=1e-6)


# The fast sum.


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("outputs", [1, 2, 3])
@pytest.mark.parametrize("factor", [1.0, 0.2])
@pytest.mark.parametrize("direct", [0, 1e9])
def test_fourier_sums_are_all_pairs(d, outputs, factor, direct, monkeypatch):
    monkeypatch.setattr(fourier, "MAX_PAIRS_WITH_GRADIENT", direct)  # how uncertain rows are redone in two dimensions
    x, y, unit = data(601, d=d, outputs=outputs)
    x[0] += 9 * unit  # far from all others: not certain, so redone
    problem = problem_of(x, y, "gaussian", 0, weights_of(601).log())
    h = unit * factor * (0.4 if d > 1 else 0.3)
    exact, fast = Pairwise(problem)(h), Fourier(problem, tol=1e-6)
    assert fast.series(h) is not None
    found = fast(h)
    torch.testing.assert_close(found.residuals, exact.residuals, rtol=0, atol=1e-6)
    assert found.value == pytest.approx(exact.value, rel=1e-8)
    torch.testing.assert_close(found.gradient, exact.gradient, rtol=1e-6, atol=1e-9)
    if d == 1 or not direct:
        assert fast.radius is not None, "nothing was uncertain: the test misses its point"


def test_fourier_sums_in_three_dimensions():
    x, y, unit = data(401, d=3)
    problem = problem_of(x, y)
    h = unit * 2.0
    torch.testing.assert_close(Fourier(problem)(h).gradient, Pairwise(problem)(h).gradient, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("d", [1, 2])
def test_rows_from_the_points_within_a_radius_are_all_pairs(d):
    """All rows through the points near them, as if the Fourier sums were certain of none."""
    x, y, unit = data(307, d=d, outputs=2)
    x[7] = x[8]  # a twin
    x[0] += 30 * unit
    problem = problem_of(x, y, "gaussian", 0, weights_of(307).log())
    h = unit * 0.2
    exact = Pairwise(problem).rows(h, torch.arange(307), gradient=True)
    near = Radius(problem, tuple(range(d)))
    nothing_known = torch.full((307,), -INF, dtype=torch.float64)
    residuals, gradient = near.rows(h / problem.unit, torch.arange(307), nothing_known, 1e-9)
    torch.testing.assert_close(residuals, exact[0], rtol=0, atol=1e-8)
    torch.testing.assert_close(gradient, exact[1], rtol=1e-6, atol=1e-9)


# The search.


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_bandwidth_near_the_selected_one_is_better(kernel):
    x, y, _ = data(61, d=1)
    found = select(x, y, kernel)
    function = Pairwise(problem_of(x, y, kernel))
    assert found.value == pytest.approx(function(found.bandwidth).value, rel=1e-9)
    torch.testing.assert_close(found.residuals, function(found.bandwidth).residuals, rtol=1e-6, atol=1e-6)
    grid = found.bandwidth * torch.logspace(-0.3, 0.3, 21, dtype=torch.float64).unsqueeze(1)
    slack = 1 + (0.02 if kernel == "boxcar" else 1e-6)  # a boxcar's value is made of steps
    assert all(found.value <= function(h).value * slack for h in grid)


def test_a_feature_that_does_not_help_gets_an_infinite_width():
    x, y, _ = data(307, d=2, seed=5)
    found = select(x, y)
    assert math.isinf(found.bandwidth[1]) and math.isfinite(found.bandwidth[0])


def test_the_same_data_gives_the_same_answer_and_order_does_not_matter():
    x, y, _ = data(101, d=2)
    one, two = select(x, y), select(x.clone(), y.clone())
    assert torch.equal(one.bandwidth, two.bandwidth) and torch.equal(one.residuals, two.residuals)
    shuffled = torch.randperm(101, generator=torch.Generator().manual_seed(2))
    other = select(x[shuffled], y[shuffled])
    assert other.value == pytest.approx(one.value, rel=1e-9)
    torch.testing.assert_close(other.residuals, one.residuals[shuffled], rtol=1e-4, atol=1e-4)


@settings(max_examples=20)  # each is two searches
@given(shift=st.floats(-1e6, 1e6), factor=st.floats(1e-6, 1e6))
def test_shift_and_scale_move_the_bandwidth_along(shift, factor):
    x, y, _ = data(31, d=1, seed=4)
    one, other = select(x, y), select(x * factor + shift * factor, y)
    assert other.value == pytest.approx(one.value, rel=1e-6)


def test_coarse_to_fine_ends_where_all_starts_end(monkeypatch):
    from regard.regression.bandwidth import search

    x, y, _ = data(1201, d=2, seed=8)
    coarse = select(x, y)
    monkeypatch.setattr(search, "COARSE_SECONDS", INF)
    assert coarse.value == pytest.approx(select(x, y).value, rel=1e-6)


def test_with_too_many_points_the_width_is_extrapolated(monkeypatch):
    from regard.regression.bandwidth import search

    x, y, _ = data(1103, d=1, seed=8)
    direct = select(x, y, "laplace")
    monkeypatch.setattr(search, "LONGEST_SECONDS", 1e-3)
    carried = select(x, y, "laplace")
    assert carried.residuals.shape == direct.residuals.shape
    expected = Pairwise(problem_of(x, y, "laplace"))(carried.bandwidth)
    assert carried.value == pytest.approx(expected.value, rel=1e-6)
    assert carried.value <= direct.value * 1.05


# Corners.


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_two_to_four_points_have_a_finite_value(n, degree):
    x, y, _ = data(n, d=1)
    found = select(x, y, "gaussian", degree)
    assert math.isfinite(found.value) and (found.bandwidth > 0).all()


def test_one_point_has_no_others():
    x, y, _ = data(1, d=2)
    found = select(x, y)
    assert torch.isinf(found.bandwidth).all() and math.isnan(found.value) and torch.isnan(found.residuals).all()


def test_constant_features_and_outputs_get_infinite_widths():
    x, y, _ = data(43, d=2)
    constant = torch.full_like(x[:, :1], 1e8)
    found = select(torch.cat((constant, x), 1), y)
    assert math.isinf(found.bandwidth[0]) and math.isfinite(found.bandwidth[1])
    assert torch.isinf(select(x, torch.full_like(y, 3.3)).bandwidth).all()
    assert torch.isinf(select(constant, y).bandwidth).all()


def test_two_points_cannot_tell_widths_apart():
    x, y, _ = data(2, d=1)
    assert torch.isinf(select(x, y).bandwidth).all()


def test_a_line_is_fitted_exactly_by_lines_of_any_width():
    x, _, _ = data(47, d=2)
    y = x @ torch.tensor([[1.0], [-0.02]], dtype=torch.float64) + 3
    found = select(x, y, "gaussian", 1)
    assert torch.isinf(found.bandwidth).all()
    assert found.value < 1e-20 * float(y.var())


def test_copies_do_not_draw_the_width_to_zero():
    """Every point twice, with other noise: the twin is one opinion among many."""
    x, _, _ = data(200, d=1)
    x = x.repeat(2, 1)
    generator = torch.Generator().manual_seed(0)
    y = torch.sin(2 * x) + 0.5 * torch.randn(400, 1, generator=generator, dtype=torch.float64)
    assert float(select(x, y).bandwidth) > 0.05


def test_discrete_features_are_no_worse_than_means_by_level():
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, 5, (503, 1), generator=generator).double()
    y = (x - 2) ** 2 + torch.randn(503, 1, generator=generator, dtype=torch.float64)
    found = select(x, y)
    by_level = torch.empty_like(y)
    for i in range(503):
        same = (x[:, 0] == x[i, 0]) & (torch.arange(503) != i)
        by_level[i] = y[i] - y[same].mean()
    assert found.value <= float(by_level.square().mean()) * (1 + 1e-9)


def test_heavy_tails_do_not_widen_the_bandwidth():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(701, 1, generator=generator, dtype=torch.float64)
    x = x / torch.randn(701, 1, generator=generator, dtype=torch.float64)  # Cauchy
    y = torch.sin(2 * x).where(x.abs() < 4, 0.0) + 0.1 * torch.randn(701, 1, generator=generator, dtype=torch.float64)
    found = select(x, y)
    assert float(found.bandwidth) < 1
    assert found.value < 0.5 * float(y.var())


def test_progress_is_told_and_may_end_the_search():
    x, y, _ = data(41, d=1)
    seen: list[Progress] = []
    found = select(x, y, verbose=seen.append)
    assert seen[-1].evaluations == found.evaluations and seen[-1].points == 41
    values = [state.value for state in seen]
    assert values == sorted(values, reverse=True)

    def stop(state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        select(x, y, verbose=stop)


def test_verbose_says_where_it_is(capsys):
    x, y, _ = data(41, d=1)
    select(x, y, verbose=True)
    said = capsys.readouterr().err
    assert "leave-one-out: evaluation 2 with 41 points" in said and said.endswith("\n")


# The rule.


def test_scott_is_scipys():
    from scipy.stats import gaussian_kde

    x, _, _ = data(97, d=3)
    weight = weights_of(97)
    for given_weight in (None, weight):
        peer = gaussian_kde(x.numpy().T, weights=None if given_weight is None else weight.numpy())
        expected = torch.from_numpy(np.sqrt(np.diag(peer.covariance)))
        torch.testing.assert_close(scott(x, given_weight), expected)


def test_scott_of_what_never_changes_is_infinite():
    x = torch.tensor([[1.0, 2.0], [1.0, 3.0]], dtype=torch.float64)
    found = scott(x)
    assert math.isinf(found[0]) and math.isfinite(found[1])
    assert torch.isinf(scott(x[:1])).all()


def test_canonical_factors_are_those_of_the_kernels():
    from scipy.integrate import quad

    def delta(kernel):
        end = 60.0 if kernel in {"gaussian", "laplace"} else 1.0

        def k(u):
            return float(kernel_of(kernel, torch.tensor(u * u, dtype=torch.float64)))

        area, points = 2 * quad(k, 0, end, points=[1.0] if end > 1 else None)[0], None
        squares = 2 * quad(lambda u: k(u) ** 2, 0, end, points=points)[0] / area**2
        variance = 2 * quad(lambda u: u * u * k(u), 0, end, points=points)[0] / area
        return (squares / variance**2) ** 0.2

    for kernel in KERNELS:
        assert delta(kernel) / delta("gaussian") == pytest.approx(kernels.get(kernel).canonical_bandwidth, abs=2e-3)


# statsmodels, live.


def table(name):
    import statsmodels.api as sm

    if name == "diabetes":
        from sklearn.datasets import load_diabetes

        diabetes: Any = load_diabetes(return_X_y=True)
        x, y = diabetes
        return x[:, [2, 8]], y
    frame = getattr(sm.datasets, name).load_pandas().data
    if name == "engel":
        return frame[["income"]].to_numpy(float), frame["foodexp"].to_numpy(float)
    if name == "co2":
        y = frame["co2"].interpolate().to_numpy(float)[::12]
        return np.arange(len(y), dtype=float)[:, None], y
    y = frame.iloc[:, -1].to_numpy(float)
    return np.arange(len(y), dtype=float)[:, None], y


def not_worse_than_statsmodels(x, y, degree, *, lonely=False):
    """`lonely`: at points with hardly more than one neighbour, lines by statsmodels depend on the units of x (its
    pseudo-inverse cuts small numbers off). Its bandwidth is then judged by the value it has here."""
    from statsmodels.nonparametric.kernel_regression import KernelReg

    kind = "ll" if degree else "lc"
    peer: Any = KernelReg(y, x, "c" * x.shape[1], reg_type=kind, bw="cv_ls")
    theirs = float(np.squeeze(peer.cv_loo(peer.bw, peer.est[kind])))
    tx, ty = torch.tensor(x), torch.tensor(y).unsqueeze(1)
    here = Pairwise(problem_of(tx, ty, "gaussian", degree))(torch.from_numpy(np.abs(peer.bw))).value
    if not lonely:
        assert here == pytest.approx(theirs, rel=1e-7)
    assert select(tx, ty, "gaussian", degree).value <= (here if lonely else theirs) * (1 + 1e-9)


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("name", ["engel", "nile", "sunspots", "co2"])
def test_statsmodels_finds_nothing_better(name, degree):
    not_worse_than_statsmodels(*table(name), degree, lonely=degree == 1 and name in {"engel", "sunspots"})


@pytest.mark.parametrize(
    ("name", "features", "output", "rows"),
    [
        ("macrodata", ["realgdp", "infl"], "unemp", 120),  # two valleys side by side
        # One feature does not help, the other has two valleys.
        pytest.param("fair", ["age", "yrs_married"], "affairs", 210, marks=pytest.mark.long),
        ("copper", ["COPPERPRICE", "INCOMEINDEX"], "WORLDCONSUMPTION", 25),
        ("scotland", ["COUTAX", "UNEMPF"], "YES", 32),
    ],
)
def test_few_rows_end_in_no_higher_valley_than_statsmodels(name, features, output, rows):
    import statsmodels.api as sm
    from statsmodels.nonparametric.kernel_regression import KernelReg

    frame = getattr(sm.datasets, name).load_pandas().data.iloc[:rows]
    x, y = frame[features].to_numpy(float), frame[output].to_numpy(float)
    peer: Any = KernelReg(y, x, "c" * len(features), reg_type="lc", bw="cv_ls")
    width = NadarayaWatson().fit(x, y).bandwidth_
    ours, theirs = (
        float(np.squeeze(peer.cv_loo(np.minimum(h, 1e6 * np.ptp(x, axis=0)), peer.est["lc"]))) for h in (width, peer.bw)
    )
    assert ours <= 1.0005 * theirs


@pytest.mark.long
@pytest.mark.parametrize("degree", [0, 1])
def test_two_features_of_diabetes(degree):
    not_worse_than_statsmodels(*table("diabetes"), degree)


@pytest.mark.long
def test_all_features_of_diabetes_are_no_worse_than_statsmodels():
    from sklearn.datasets import load_diabetes

    diabetes: Any = load_diabetes(return_X_y=True)
    not_worse_than_statsmodels(diabetes[0], diabetes[1], 0)


@pytest.mark.long
@pytest.mark.parametrize("d", [1, 2])
def test_residuals_of_a_hundred_thousand_points_equal_all_pairs(d):
    """Residuals of the search, at a size where only the fast sum serves, against all pairs for some rows."""
    x, y, _ = data(100_003, d=d)
    found = select(x, y)
    problem = problem_of(x, y)
    rows = torch.arange(0, len(x), 997)
    exact = Pairwise(problem).rows(found.bandwidth, rows, gradient=False)[0]
    torch.testing.assert_close(found.residuals[problem.order[rows]], exact * problem.data.scale, rtol=0, atol=1e-6)
