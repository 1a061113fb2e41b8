"""Leave-one-out over chunks: the same value, gradient, residuals and bandwidth as in memory."""

import math

import numpy as np
import pytest
import torch
from leave_one_out_problem import problem_of

import regard as rg
from regard import kernels
from regard.regression.bandwidth.leave_one_out.pairwise import Pairwise
from regard.regression.out_of_core import fit as fit_module
from regard.regression.out_of_core.leave_one_out import LeaveOneOut, count_unit, evaluate, residuals
from regard.regression.out_of_core.source import ArraySource, summarise

N = 67
KERNELS = kernels.names()


def made(dim, outputs, weights, n=N):
    """x far from the origin, some rows twice, y, and weights: none, any, or counts."""
    random = np.random.default_rng(dim + 10 * outputs)
    x = random.normal(100, 3, (n, dim))
    x[5] = x[11]
    y = np.sin(x[:, :1]) + random.normal(size=(n, outputs)) * 0.3
    weight = {"none": None, "any": random.random(n) + 0.1, "counts": random.integers(1, 4, n).astype(float)}[weights]
    return x, y, weight


def in_memory(x, y, weight, kernel, unit):
    known = None if weight is None else torch.from_numpy(weight)
    left_out = None if known is None or unit is None else torch.full_like(known, unit)
    log_weight = None if known is None else known.log()
    return Pairwise(problem_of(torch.from_numpy(x), torch.from_numpy(y), kernel, 0, log_weight, left_out))


@pytest.mark.parametrize("weights", ["none", "any", "counts"])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("kernel", KERNELS)
def test_value_gradient_and_residuals(kernel, outputs, weights):
    x, y, weight = made(3, outputs, weights)
    blocks = ArraySource(x, y, weight, rows=23)
    summary = summarise(blocks)
    unit = count_unit(blocks)
    assert unit == (1.0 if weights == "counts" else None)
    for width in (0.05, 1.0, 8.0):  # each point alone, a few in reach, all of them
        bandwidth = torch.tensor([width, math.inf, 2 * width], dtype=torch.float64)
        truth = in_memory(x, y, weight, kernel, unit)(bandwidth)
        value, gradient = evaluate(blocks, LeaveOneOut(summary, bandwidth, kernel, count_unit=unit))
        assert value == pytest.approx(truth.value, rel=1e-9)
        torch.testing.assert_close(gradient, truth.gradient, rtol=1e-7, atol=1e-8)
        found = residuals(blocks, LeaveOneOut(summary, bandwidth, kernel, gradient=False, count_unit=unit))
        torch.testing.assert_close(found, truth.residuals, rtol=1e-9, atol=1e-9)


def test_no_feature_at_all_is_the_mean_of_the_others():
    x, y, _ = made(2, 1, "none")
    blocks = ArraySource(x, y, rows=23)
    value, gradient = evaluate(blocks, LeaveOneOut(summarise(blocks), torch.full((2,), math.inf, dtype=torch.float64)))
    assert value == pytest.approx(float(np.mean(((y - y.mean()) * N / (N - 1)) ** 2)))
    assert gradient.tolist() == [0, 0]


def test_rows_without_weight_do_not_count():
    x, y, weight = made(2, 1, "any")
    weight[::3] = 0
    bandwidth = torch.tensor([0.02, 0.02], dtype=torch.float64)  # a row of weight 0 is very far from all others
    some = ArraySource(x[weight > 0], y[weight > 0], weight[weight > 0], rows=23)
    every = ArraySource(x, y, weight, rows=23)
    truth = evaluate(some, LeaveOneOut(summarise(some), bandwidth))
    found = evaluate(every, LeaveOneOut(summarise(every), bandwidth))
    assert found[0] == pytest.approx(truth[0], rel=1e-9)
    torch.testing.assert_close(found[1], truth[1], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("weights", ["none", "any", "counts"])
def test_scott_gives_the_bandwidth_of_data_in_memory(weights):
    x, y, weight = made(3, 1, weights)
    x[:, 1] = 7.0  # never changes
    blocks = ArraySource(x, y, weight, rows=23)
    truth = rg.NadarayaWatson("epanechnikov", bandwidth="scott").fit(x, y, weight).bandwidth_
    assert np.isinf(truth).tolist() == [False, True, False]
    found = fit_module.scott(blocks, summarise(blocks), "epanechnikov")
    np.testing.assert_allclose(found.numpy(), truth, rtol=1e-9)


class TestSelection:
    def test_few_rows_are_searched_in_memory(self):
        x, y, _ = made(1, 1, "none")
        blocks = ArraySource(x, y, rows=23)
        some = fit_module.sample_rows(blocks, summarise(blocks))
        assert np.array_equal(some.x.numpy(), x)

    def test_the_sample_of_rows_is_the_same_each_time(self, monkeypatch):
        monkeypatch.setattr(fit_module, "SAMPLED_ROWS", 20)
        x, y, weight = made(2, 1, "any")
        blocks = ArraySource(x, y, weight, rows=23)
        one, two = (fit_module.sample_rows(blocks, summarise(blocks)) for _ in range(2))
        assert 20 <= len(one.x) <= 20 + 3
        assert all(torch.equal(a, b) for a, b in zip(one[:3], two[:3], strict=True))

    def test_the_search_ends_where_a_search_in_memory_does(self, monkeypatch, tmp_path):
        """The search begins on a few rows and must settle where the search on all rows does."""
        random = np.random.default_rng(3)
        x = random.normal(size=(400, 3))
        y = np.sin(2 * x[:, 0]) + 0.5 * x[:, 2] + random.normal(size=400) * 0.3  # the second feature says nothing
        truth = rg.NadarayaWatson().fit(x, y)
        monkeypatch.setattr(fit_module, "SAMPLED_ROWS", 150)
        monkeypatch.setattr(fit_module, "MEMORY_MAP_BYTES", 0)
        np.save(tmp_path / "x.npy", x)
        found = rg.NadarayaWatson().fit(np.load(tmp_path / "x.npy", mmap_mode="r"), y)
        assert found.blocks_ is not None
        whole = in_memory(x, y[:, None], None, "gaussian", None)
        assert found.cv_ == pytest.approx(whole(torch.from_numpy(found.bandwidth_)).value, rel=1e-9)
        assert found.cv_ <= truth.cv_ * (1 + 1e-6)
        assert found.bandwidth_[0] == pytest.approx(truth.bandwidth_[0], rel=0.05)
        np.testing.assert_allclose(
            found.loo_residuals_, rg.NadarayaWatson(bandwidth=found.bandwidth_).fit(x, y).loo_residuals_, atol=1e-9
        )
        assert found.loo_score_ == pytest.approx(1 - found.cv_ / y.var())

    @pytest.mark.parametrize("drawn", [150, 400])
    def test_a_listener_is_called_after_each_step_and_nothing_is_printed(self, drawn, stored, monkeypatch, capsys):
        monkeypatch.setattr(fit_module, "SAMPLED_ROWS", drawn)
        told = []
        found = rg.NadarayaWatson(verbose=told.append).fit(*stored)
        assert [state.evaluations for state in told] == list(range(1, len(told) + 1))
        assert drawn in {state.points for state in told}
        assert told[-1].points == len(stored[1])
        assert told[-1].value == pytest.approx(found.cv_)
        np.testing.assert_array_equal(told[-1].bandwidth.numpy(), found.bandwidth_)
        assert capsys.readouterr() == ("", "")

    def test_verbose_prints_the_progress(self, stored, monkeypatch, capsys):
        monkeypatch.setattr(fit_module, "SAMPLED_ROWS", 150)
        rg.NadarayaWatson(verbose=True).fit(*stored)
        said = capsys.readouterr().err
        assert "with 150 points" in said
        assert "with 400 points" in said.rsplit("\r", 1)[1]
        assert said.endswith("\n")

    @pytest.fixture
    def stored(self, monkeypatch, tmp_path):
        """A map of 400 rows, which is read in blocks, and y."""
        random = np.random.default_rng(3)
        x = random.normal(size=(400, 1))
        np.save(tmp_path / "x.npy", x)
        monkeypatch.setattr(fit_module, "MEMORY_MAP_BYTES", 0)
        return np.load(tmp_path / "x.npy", mmap_mode="r"), np.sin(2 * x[:, 0]) + random.normal(size=400) * 0.3
