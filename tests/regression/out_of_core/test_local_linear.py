"""Local linear fits to out-of-core data equal those in memory: predictions, leave-one-out, bandwidths."""

import math
import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import torch

import regard as rg
from regard.errors import OutsideError, UnsupportedError
from regard.regression.kernel_sums.state import Pooled, empty, merge
from regard.regression.local import least_squares
from regard.regression.out_of_core import average, source
from regard.regression.out_of_core import fit as fit_module
from regard.regression.out_of_core.average import LinearAverages
from regard.regression.out_of_core.predict import OutOfCoreModel
from regard.regression.out_of_core.source import ArraySource, summarise

N = 151
WIDTHS = {1: [2.0], 3: [2.5, np.inf, 4.0]}


def made(dim, weighted=False, outputs=2, n=N):
    """x far from the origin, y of several sizes, weights of which some are 0, and queries in and around the data."""
    random = np.random.default_rng(dim)
    x = random.normal(100, 3, (n, dim))
    y = np.stack([np.sin(x[:, 0]), 1e3 + 50 * x[:, -1] + random.normal(size=n)], 1)[:, :outputs]
    weight = random.random(n) * (random.random(n) > 0.2) if weighted else None
    return x, y, weight, np.concatenate([x[:17] + 0.1, random.normal(100, 7, (23, dim))])


def out_of_core_fit(blocks, **options):
    return rg.NadarayaWatson(**{"degree": 1} | options)._fit_source(blocks)


def assert_close(found, truth, y, tol=1e-9):
    np.testing.assert_array_equal(np.isnan(found), np.isnan(truth))
    assert np.nanmax(np.abs(found - truth) / y.std(0)) <= tol


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "epanechnikov"])
class TestSameAsInMemory:
    @pytest.mark.parametrize("rows", [7, 40, N])
    def test_predictions_and_score_of_chunks(self, kernel, dim, weighted, rows):
        x, y, weight, query = made(dim, weighted)
        truth = rg.NadarayaWatson(kernel, WIDTHS[dim], degree=1).fit(x, y, weight)
        found = out_of_core_fit(ArraySource(x, y, weight, rows), kernel=kernel, bandwidth=WIDTHS[dim])
        assert_close(found.predict(query), truth.predict(query), y)
        assert found.score(query, y[: len(query)]) == pytest.approx(truth.score(query, y[: len(query)]), rel=1e-9)

    @pytest.mark.parametrize("rows", [40, N])
    def test_leave_one_out_residuals_of_chunks(self, kernel, dim, weighted, rows):
        x, y, weight, _ = made(dim, weighted)
        truth = rg.NadarayaWatson(kernel, WIDTHS[dim], degree=1).fit(x, y, weight)
        found = out_of_core_fit(ArraySource(x, y, weight, rows), kernel=kernel, bandwidth=WIDTHS[dim])
        assert_close(found.loo_residuals_, truth.loo_residuals_, y)
        assert found.cv_ == pytest.approx(truth.cv_, rel=1e-9)
        # scikit-learn means over outputs as we do, and counts rows without weight for none
        assert found.loo_score_ == pytest.approx(truth.loo_score_, rel=1e-6)

    def test_far_away_one_point_decides(self, kernel, dim, weighted):
        """No direction is left to a line: the limit is that of degree 0."""
        x, y, weight, _ = made(dim, weighted)
        far = 100 + np.array([[1e4], [-1e5], [1e7]]) * np.linspace(1, 0.7, dim)
        truth = rg.NadarayaWatson(kernel, WIDTHS[dim], degree=1).fit(x, y, weight).predict(far)
        found = out_of_core_fit(ArraySource(x, y, weight, 40), kernel=kernel, bandwidth=WIDTHS[dim])
        assert_close(found.predict(far), truth, y, tol=1e-6)


def test_weights_that_count_copies_leave_one_of_them_out():
    x, y, _, _ = made(1, outputs=1)
    weight = np.random.default_rng(0).integers(1, 4, N) * 0.5
    truth = rg.NadarayaWatson(bandwidth=2.0, degree=1).fit(x, y[:, 0], weight)
    found = out_of_core_fit(ArraySource(x, y[:, 0], weight, 40), bandwidth=2.0)
    assert found.loo_residuals_.shape == (N,)
    assert_close(found.loo_residuals_, truth.loo_residuals_, y[:, 0])
    assert found.cv_ == pytest.approx(truth.cv_, rel=1e-9)


@pytest.mark.parametrize("kernel", ["boxcar", "epanechnikov"])
def test_queries_out_of_reach(kernel):
    x, y, weight, query = made(3, weighted=True)
    query = np.concatenate([query, [[300.0, 0, 100]]])
    for outside in ("nearest", "nan"):
        truth = rg.NadarayaWatson(kernel, 1.5, degree=1, outside=outside).fit(x, y, weight).predict(query)
        found = out_of_core_fit(ArraySource(x, y, weight, 40), kernel=kernel, bandwidth=1.5, outside=outside)
        assert_close(found.predict(query), truth, y)
        assert np.isnan(truth[-1]).all() == (outside == "nan")
    model = out_of_core_fit(ArraySource(x, y, weight, 40), kernel=kernel, bandwidth=1.5, outside="raise")
    with pytest.raises(OutsideError, match="within reach of row"):
        model.predict(query)


def test_fewer_points_than_directions():
    """Of the lines that fit, in memory, in blocks and in leave-one-out the same one is the flattest."""
    x, y, _, _ = made(3)
    truth = rg.NadarayaWatson("epanechnikov", 2.5, degree=1).fit(x, y)
    found = out_of_core_fit(ArraySource(x, y, rows=40), kernel="epanechnikov", bandwidth=2.5)
    assert_close(found.loo_residuals_, truth.loo_residuals_, y, tol=1e-8)
    for row in range(0, N, 10):
        without = rg.NadarayaWatson("epanechnikov", 2.5, degree=1).fit(np.delete(x, row, 0), np.delete(y, row, 0))
        assert_close(y[row] - without.predict(x[row : row + 1])[0], truth.loo_residuals_[row], y, tol=1e-8)


def test_constant_and_collinear_features():
    x, y, _, query = made(1)
    x, query = (np.concatenate([t, np.full_like(t, 0.1), t * 3], 1) for t in (x, query))
    truth = rg.NadarayaWatson(bandwidth=[2.0, 1.0, 9.0], degree=1).fit(x, y).predict(query)
    found = out_of_core_fit(ArraySource(x, y, rows=40), bandwidth=[2.0, 1.0, 9.0])
    assert_close(found.predict(query), truth, y, tol=1e-8)


class TestFastSum:
    """Many queries: blocks are summed over frequencies, and what is not certain enough is asked again."""

    @pytest.fixture
    def asked(self, monkeypatch):
        """How many queries were answered exactly, by each block."""
        counts = []
        exact = average.exact_average
        monkeypatch.setattr(
            average, "exact_average", lambda s, query, plan: counts.append(len(query)) or exact(s, query, plan)
        )
        return counts

    @pytest.mark.parametrize("dim", [1, 2])
    def test_fourier_sums_keep_the_tolerance(self, dim, asked):
        random = np.random.default_rng(0)
        x, query = random.normal(100, 3, (2**14, dim)), random.normal(100, 2, (2003, dim))
        y = np.stack([np.sin(x[:, 0]), 1e3 + 50 * x[:, -1] + random.normal(size=len(x))], 1)
        truth = rg.NadarayaWatson(bandwidth=0.5, degree=1, plan="pairs").fit(x, y).predict(query)
        found = out_of_core_fit(ArraySource(x, y, rows=2**13), bandwidth=0.5, plan="fast").predict(query)
        assert_close(found, truth, y, tol=1e-6)
        assert sum(asked) < len(query)

    def test_leave_one_out_by_fourier_sums(self, asked):
        random = np.random.default_rng(0)
        x = random.normal(100, 3, (2**13, 1))
        y = np.sin(x) + 0.3 * random.normal(size=x.shape)
        blocks = ArraySource(x, y, rows=2**12)
        truth = rg.NadarayaWatson(bandwidth=0.3, degree=1).fit(x, y)
        assert out_of_core_fit(blocks, bandwidth=0.3).cv_ == pytest.approx(truth.cv_, rel=1e-6)
        assert sum(asked) < len(x)

    def test_nearly_collinear_features_are_computed_exactly(self, asked):
        random = np.random.default_rng(0)
        x = random.normal(size=(2**13, 2))
        x[:, 1] = x[:, 0] + 1e-3 * x[:, 1]
        y = x[:, 0] + 1e3 * (x[:, 1] - x[:, 0]) + random.normal(size=len(x))
        query = x[:301] + 1e-4
        truth = rg.NadarayaWatson(bandwidth=0.2, degree=1).fit(x, y).predict(query)
        found = out_of_core_fit(ArraySource(x, y, rows=2**12), bandwidth=0.2, plan="fast").predict(query)
        assert_close(found, truth, y, tol=1e-6)
        assert asked

    def test_no_average_breaks_its_bound(self):
        random = np.random.default_rng(1)
        x, query = random.normal(100, 3, (4001, 2)), torch.from_numpy(random.normal(100, 5, (501, 2)))
        blocks = ArraySource(x, 1e3 + 50 * x, rows=4001)
        (block,) = blocks
        lines = LinearAverages.of(summarise(blocks), torch.tensor([0.5, 8.0], dtype=torch.float64))
        settings = average.ChunkAverage(torch.tensor([0.5, 8.0], dtype=torch.float64), lines.scale, lines=lines)
        sample = settings.sample(block, query.device)
        found, truth = lines.fourier_average(sample, query, 1e-6, "fast"), average.exact_average(sample, query, "pairs")
        known = torch.isfinite(found.error)
        assert known.double().mean() > 0.5
        one, two = (self._seen_from(lines, query, t) / lines.scale for t in (found.mean, truth.mean))
        assert bool(((one - two).abs().amax(1) <= found.error + 1e-9)[known].all())
        assert bool((torch.expm1(found.lse - truth.lse).abs() <= found.error + 1e-9)[known].all())

    @staticmethod
    def _seen_from(lines, query, mean):
        dim, at = lines.dim, lines.frame.place(query)
        v, y, vy, vv = least_squares.split_columns(mean, dim, len(lines.frame.level))
        u = v - at
        uu = (
            vv - at.unsqueeze(2) * v.unsqueeze(1) - v.unsqueeze(2) * at.unsqueeze(1) + at.unsqueeze(2) * at.unsqueeze(1)
        )
        rows, cols = torch.triu_indices(dim, dim)
        return torch.cat([u, y, (vy - at.unsqueeze(2) * y.unsqueeze(1)).flatten(1), uu[:, rows, cols]], 1)


def test_shares_of_a_merge_sum_to_one_at_any_distance():
    """Two parts that say the same say it together to the last bit: a covariance is a difference of such averages."""
    lse = torch.tensor([-1e12, -5e3, 0.0, 700.0], dtype=torch.float64)
    mean = torch.full((4, 1), 1234.5, dtype=torch.float64)
    both = merge(Pooled(lse, mean, lse * 0), Pooled(lse - 0.7, mean, lse * 0))
    torch.testing.assert_close(both.mean, mean, rtol=4e-16, atol=0)
    nothing = merge(empty(4, 1, lse), empty(4, 1, lse))
    assert nothing.lse.tolist() == [-math.inf] * 4
    assert nothing.mean.tolist() == [[0.0]] * 4


class TestBandwidth:
    @pytest.fixture
    def rows(self):
        random = np.random.default_rng(3)
        x = random.normal(size=(400, 2))
        return x, np.sin(2 * x[:, 0]) + 0.5 * x[:, 1] + random.normal(size=400) * 0.3

    def test_scott_bandwidth_of_chunks(self, rows):
        truth = rg.NadarayaWatson(bandwidth="scott", degree=1).fit(*rows)
        found = out_of_core_fit(ArraySource(*rows, rows=90), bandwidth="scott")
        np.testing.assert_allclose(found.bandwidth_, truth.bandwidth_, rtol=1e-9)

    def test_few_rows_are_searched_in_memory(self, rows):
        truth = rg.NadarayaWatson(degree=1).fit(*rows)
        found = out_of_core_fit(ArraySource(*rows, rows=90))
        np.testing.assert_allclose(found.bandwidth_, truth.bandwidth_, rtol=1e-9)
        assert found.cv_ == pytest.approx(truth.cv_, rel=1e-9)

    def test_the_bandwidth_of_a_sample_is_scaled_to_all_rows(self, rows, monkeypatch):
        monkeypatch.setattr(fit_module, "SAMPLED_ROWS", 150)
        blocks = ArraySource(*rows, rows=90)
        some = fit_module.sample_rows(blocks, summarise(blocks))
        told = []
        found = out_of_core_fit(blocks, verbose=told.append)
        drawn = rg.NadarayaWatson(degree=1).fit(some.x.numpy(), some.y.numpy()).bandwidth_
        matter = int(np.isfinite(drawn).sum())
        np.testing.assert_allclose(found.bandwidth_, drawn * (len(some.x) / 400) ** (1 / (matter + 4)), rtol=1e-9)
        assert {state.points for state in told} <= set(range(len(some.x) + 1))
        truth = rg.NadarayaWatson(bandwidth=found.bandwidth_, degree=1).fit(*rows)
        assert found.cv_ == pytest.approx(truth.cv_, rel=1e-9)  # of all rows, when it is asked for
        assert found.cv_ < 1.1 * rg.NadarayaWatson(degree=1).fit(*rows).cv_


class TestPlaces:
    """The same from files and from Dask."""

    @pytest.fixture
    def frame(self):
        x, y, weight, _ = made(3, weighted=True)
        return pd.DataFrame(x, columns=list("abc")).assign(u=y[:, 0], v=y[:, 1], w=weight)

    @pytest.fixture
    def truth(self, frame):
        return rg.NadarayaWatson(bandwidth=WIDTHS[3], degree=1).fit(frame[list("abc")], frame[["u", "v"]], frame.w)

    @pytest.fixture
    def queries(self):
        return pd.DataFrame(made(3)[3], columns=list("abc"))

    def test_a_parquet_folder_predicts_as_data_in_memory(self, frame, truth, queries, tmp_path, monkeypatch):
        monkeypatch.setattr(source, "CHUNK_BYTES", 11 * 8 * 6)
        (tmp_path / "data").mkdir()
        frame[:40].to_parquet(tmp_path / "data" / "1.parquet")
        frame[40:].to_parquet(tmp_path / "data" / "2.parquet")
        queries.to_parquet(tmp_path / "queries.parquet")
        model = rg.NadarayaWatson(bandwidth=WIDTHS[3], degree=1).fit(tmp_path / "data", ["u", "v"], "w")
        y = truth.y_
        assert_close(model.predict(queries), np.asarray(truth.predict(queries)), y)
        assert_close(model.predict(tmp_path / "queries.parquet"), np.asarray(truth.predict(queries)), y)
        assert model.score(tmp_path / "data", ["u", "v"]) == pytest.approx(
            truth.score(frame[list("abc")], frame[["u", "v"]]), rel=1e-9
        )
        assert model.cv_ == pytest.approx(truth.cv_, rel=1e-9)

    def test_a_memory_map_predicts_as_data_in_memory(self, truth, queries, tmp_path, monkeypatch):
        monkeypatch.setattr(fit_module, "MEMORY_MAP_BYTES", 0)
        np.save(tmp_path / "x.npy", truth.X_)
        stored = np.load(tmp_path / "x.npy", mmap_mode="r")
        model = rg.NadarayaWatson(bandwidth=WIDTHS[3], degree=1).fit(stored, truth.y_, truth.sample_weight_)
        assert model.blocks_ is not None
        assert_close(model.predict(queries.to_numpy()), np.asarray(truth.predict(queries)), truth.y_)

    @pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
    def test_dask_arrays_predict_as_data_in_memory(self, kernel, queries):
        x, y, weight, _ = made(3, weighted=True)
        query = queries.to_numpy()
        truth = rg.NadarayaWatson(kernel, WIDTHS[3], degree=1).fit(x, y, weight)
        parts = [da.from_array(part, chunks=(29, *part.shape[1:])) for part in (x, y, weight)]
        model = rg.NadarayaWatson(kernel, WIDTHS[3], degree=1).fit(*parts)
        assert_close(model.predict(query), truth.predict(query), y)
        asked = da.from_array(query, chunks=(9, 3))
        assert_close(model.predict(asked).compute(), truth.predict(query), y)
        assert_close(truth.predict(asked).compute(), truth.predict(query), y)
        assert model.score(parts[0], parts[1]) == pytest.approx(truth.score(x, y), rel=1e-9)
        assert_close(model.loo_residuals_, truth.loo_residuals_, y)
        assert model.cv_ == pytest.approx(truth.cv_, rel=1e-9)

    def test_chunks_of_dask_by_the_fast_sum(self):
        random = np.random.default_rng(0)
        x, query = random.normal(100, 3, (2**13, 1)), random.normal(100, 2, (1003, 1))
        y = np.sin(x) + 0.3 * random.normal(size=x.shape)
        truth = rg.NadarayaWatson(bandwidth=0.3, degree=1, plan="pairs").fit(x, y).predict(query)
        parts = [da.from_array(part, chunks=(2**12, 1)) for part in (x, y)]
        model = rg.NadarayaWatson(bandwidth=0.3, degree=1, plan="fast").fit(*parts)
        assert_close(model.predict(da.from_array(query, chunks=(501, 1))).compute(), truth, y, tol=1e-6)

    def test_workers_in_other_processes(self, frame, truth, queries):
        from distributed import Client, LocalCluster

        options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "memory_limit": None}
        table = dd.from_pandas(frame, npartitions=3)
        with LocalCluster(**options) as cluster, Client(cluster):
            model = rg.NadarayaWatson(bandwidth=WIDTHS[3], degree=1).fit(table, ["u", "v"], "w")
            found = model.predict(dd.from_pandas(queries, npartitions=2)).compute()
            value = model.cv_
        assert_close(found.to_numpy(), np.asarray(truth.predict(queries)), truth.y_)
        assert value == pytest.approx(truth.cv_, rel=1e-9)


def copied(thing):
    return pickle.loads(pickle.dumps(thing))  # noqa: S301  our own


def test_models_for_workers_can_be_pickled():
    x, y, weight, query = made(3, weighted=True)
    model = out_of_core_fit(ArraySource(x, y, weight, 40), bandwidth=WIDTHS[3])
    again = copied(model)
    np.testing.assert_array_equal(again.predict(query), model.predict(query))
    out_of_core = model._out_of_core_model()
    assert isinstance(out_of_core, OutOfCoreModel)
    copy = copied(out_of_core)
    at = torch.from_numpy(query)
    torch.testing.assert_close(copy.predict(at), out_of_core.predict(at), rtol=0, atol=0)
    asked = copied(model._leave_one_out(model.blocks_))
    assert asked.lines is not None
    assert not asked.gradient


def test_methods_that_need_memory_are_refused():
    x, y, weight, query = made(1)
    model = out_of_core_fit(ArraySource(x, y, weight, 40), bandwidth=2.0)
    for question in (model.weights, model.derivative, model.confidence_band):
        with pytest.raises(UnsupportedError, match="needs the data in memory"):
            question(query)
    with pytest.raises(UnsupportedError, match="categorical features need the data in memory"):
        rg.NadarayaWatson(degree=1, bandwidth=2.0, categorical=[0]).fit("rows.parquet", "y")
