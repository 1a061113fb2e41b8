"""Dask collections give the results of arrays, on threads and on workers, also where a worker is killed."""

import os
import signal
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import torch
from dask._task_spec import convert_legacy_graph

import regard as rg
from regard.errors import DataError, OutsideError, ShapeError, UnsupportedError
from regard.regression.out_of_core import fit as fit_module
from regard.regression.out_of_core import leave_one_out
from regard.regression.out_of_core.dask import FAN_IN, DaskSource, task
from regard.regression.out_of_core.source import ArraySource, summarise

N, D, OUTPUTS, QUERIES = 101, 3, 2, 13
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture
def data():
    random = np.random.default_rng(7)
    x = random.normal(size=(N, D))
    y = np.sin(x[:, :OUTPUTS]) + random.normal(size=(N, OUTPUTS))
    return x, y, random.random(N), random.normal(size=(QUERIES, D)) * 3


@pytest.fixture
def frame(data):
    x, y, weight, _ = data
    return pd.DataFrame(x, columns=["a", "b", "c"]).assign(u=y[:, 0], v=y[:, 1], w=weight)


def chunked(array, rows, columns=None):
    return da.from_array(array, chunks=(rows,) if array.ndim == 1 else (rows, columns or array.shape[1]))


def of_unknown_length(array):
    """The same rows in chunks whose lengths Dask does not know."""
    return array[da.ones(len(array), chunks=array.chunks[0]) > 0]


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
class TestSameAnswer:
    @pytest.fixture
    def truth(self, kernel, data):
        return rg.NadarayaWatson(kernel, bandwidth=0.9).fit(*data[:3]).predict(data[3])

    def test_dask_as_data_as_queries_or_as_both(self, kernel, data, truth):
        x, y, weight, query = data
        keys = rg.NadarayaWatson(kernel, bandwidth=0.9).fit(chunked(x, 17, 2), chunked(y, 23), chunked(weight, 101))
        here = rg.NadarayaWatson(kernel, bandwidth=0.9).fit(x, y, weight)
        np.testing.assert_allclose(keys.predict(query), truth, **CLOSE)
        for model in (here, keys):
            found = model.predict(chunked(query, 5, 1))
            assert found.chunks == ((5, 5, 3), (OUTPUTS,))
            assert found.dtype == np.float64
            np.testing.assert_allclose(found.compute(), truth, **CLOSE)

    def test_dask_frames_are_fitted_and_predicted_by_column_name(self, kernel, data, frame, truth):
        table = dd.from_pandas(frame, npartitions=4)
        queries = pd.DataFrame(data[3], columns=["a", "b", "c"], index=np.arange(QUERIES) * 2)
        model = rg.NadarayaWatson(kernel, bandwidth=0.9).fit(table, ["u", "v"], "w")
        assert list(model.feature_names_in_) == ["a", "b", "c"]
        np.testing.assert_allclose(model.predict(queries), truth, **CLOSE)
        found = model.predict(dd.from_pandas(queries[["c", "a", "b"]].assign(more="text"), npartitions=3))
        assert found.npartitions == 3
        assert found.divisions[-1] == 2 * (QUERIES - 1)
        pd.testing.assert_frame_equal(found.compute(), pd.DataFrame(truth, queries.index, ["u", "v"]))

    def test_series_and_chunks_of_unknown_length(self, kernel, data, frame):
        x, y, weight, query = data
        truth = rg.NadarayaWatson(kernel, bandwidth=0.9).fit(x, y[:, 0], weight).predict(query)
        table = dd.from_pandas(frame, npartitions=4)
        unknown = of_unknown_length(chunked(x, 17))
        assert np.isnan(unknown.chunks[0]).all()
        pairs = [
            (table[["a", "b", "c"]], table["u"], table["w"]),
            (table[["a", "b", "c"]], y[:, 0], weight),
            (table[["a", "b", "c"]].to_dask_array(), table["u"].to_dask_array(), table["w"]),
            (unknown, y[:, 0], weight),
            (unknown, chunked(y[:, 0], 17), of_unknown_length(chunked(weight, 17))),
        ]
        for keys, target, weights in pairs:
            model = rg.NadarayaWatson(kernel, bandwidth=0.9).fit(keys, target, weights)
            assert model.n_samples_fit_ == N
            found = model.predict(of_unknown_length(chunked(query, 5)))
            assert np.isnan(found.chunks[0]).all()
            np.testing.assert_allclose(found.compute(), truth, **CLOSE)
        series = model.predict(dd.from_pandas(pd.DataFrame(query), npartitions=2))
        np.testing.assert_allclose(series.compute().to_numpy(), truth, **CLOSE)

    def test_chunks_without_rows(self, kernel, data, truth):
        x, y, weight, query = data
        keys = chunked(x, 17)
        empty = da.concatenate([keys[:0], keys, keys[:0]])
        model = rg.NadarayaWatson(kernel, bandwidth=0.9).fit(empty, y, weight)
        queries = da.concatenate([chunked(query, 5), chunked(query, 5)[:0]])
        np.testing.assert_allclose(model.predict(queries).compute(), truth, **CLOSE)


class TestNumbersForNames:
    """As pandas names columns that nobody has named."""

    @pytest.fixture
    def numbered(self, frame):
        return frame.set_axis(range(6), axis=1)

    @pytest.mark.parametrize("y", [3, [3, 4]])
    def test_targets_and_weights_are_named_by_number(self, data, numbered, y):
        numbered = numbered if y == [3, 4] else numbered.drop(columns=4)
        table, queries = dd.from_pandas(numbered, npartitions=3), pd.DataFrame(data[3])
        model = rg.NadarayaWatson(bandwidth=0.9).fit(table, y, 5)
        truth = rg.NadarayaWatson(bandwidth=0.9).fit(data[0], numbered[y], numbered[5])
        found = model.predict(dd.from_pandas(queries, npartitions=2)).compute()
        np.testing.assert_allclose(found, truth.predict(data[3]), **CLOSE)
        assert np.all((found.columns if isinstance(y, list) else found.name) == np.array(y))
        assert model.score(table, y, 5) == pytest.approx(truth.score(data[0], numbered[y], numbered[5]), rel=1e-9)

    def test_a_pandas_frame_with_numbers_for_names_agrees(self, data, numbered):
        model = rg.NadarayaWatson(bandwidth=0.9).fit(dd.from_pandas(numbered[[0, 1, 2]], npartitions=3), numbered[3])
        assert not hasattr(model, "feature_names_in_")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(model.predict(pd.DataFrame(data[3])), model.predict(data[3]))

    def test_a_list_of_numbers_is_y_itself(self, data, numbered):
        table = dd.from_pandas(numbered[[0, 1, 2]], npartitions=3)
        y = np.round(data[1][:, 0])
        model = rg.NadarayaWatson(bandwidth=0.9).fit(table, y.tolist())
        truth = rg.NadarayaWatson(bandwidth=0.9).fit(data[0], y)
        np.testing.assert_allclose(model.predict(data[3]), truth.predict(data[3]), **CLOSE)

    def test_missing_columns_and_mixed_names_are_refused(self, data, numbered):
        table = dd.from_pandas(numbered, npartitions=3)
        with pytest.raises(DataError, match="X has no column 7; it has: 0, 1, 2, 3, 4, 5"):
            rg.NadarayaWatson(bandwidth=0.9).fit(table, 7)
        with pytest.raises(DataError, match=r"X has no column 'u'; it is an array"):
            rg.NadarayaWatson(bandwidth=0.9).fit(chunked(data[0], 17), "u")
        with pytest.raises(DataError, match=r"names of the features must be texts, .* they are a, 1, 2, 4, 5; rename"):
            rg.NadarayaWatson(bandwidth=0.9).fit(table.rename(columns={0: "a"}), 3)
        model = rg.NadarayaWatson(bandwidth=0.9).fit(table.rename(columns=dict(enumerate("abcuvw"))), "u")
        with pytest.raises(DataError, match="X has no column a, b, c, v, w, which was fitted; it has: 0, 1"):
            model.predict(table[[0, 1]])
        with pytest.raises(DataError, match=r"X in chunk 0 .* NaN stands in row 2, column 5 "):
            rg.NadarayaWatson(bandwidth=0.9).fit(table[[5, 1]].where(table[1] != numbered.loc[2, 1]), table[3])
        with pytest.raises(ShapeError, match="y must hold one number a row"):
            rg.NadarayaWatson(bandwidth=0.9).fit(table, None)


def test_a_far_query_out_of_reach(data):
    x, y, _, query = data
    far = np.concatenate([query, [[50.0, 0, 0]]])
    for outside in ("nearest", "nan"):
        truth = rg.NadarayaWatson("boxcar", 0.5, outside=outside).fit(x, y).predict(far)
        model = rg.NadarayaWatson("boxcar", 0.5, outside=outside).fit(chunked(x, 17), chunked(y, 17))
        np.testing.assert_allclose(model.predict(chunked(far, 5)).compute(), truth, **CLOSE)
    there = rg.NadarayaWatson("boxcar", 0.5, outside="raise").fit(chunked(x, 17), chunked(y, 17))
    here = rg.NadarayaWatson("boxcar", 0.5, outside="raise").fit(x, y)
    near = np.concatenate([x[:13], [[50.0, 0, 0]]])
    for model in (there, here):
        with pytest.raises(OutsideError, match=r"X in chunk 2: .* reach of row 3"):
            model.predict(chunked(near, 5)).compute()


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "epanechnikov"])
@pytest.mark.parametrize("far", [1e9, 1e160, 1e300])
def test_a_query_too_far_for_squares(data, kernel, far):
    x, y, _, _ = data
    query = np.full((2, D), [[far], [-far]])
    model = rg.NadarayaWatson(kernel, bandwidth=0.9).fit(chunked(x, 40), chunked(y, 40))
    truth = rg.NadarayaWatson(kernel, bandwidth=0.9).fit(x, y).predict(query)
    np.testing.assert_allclose(model.predict(chunked(query, 1)).compute(), truth, rtol=1e-6)


def test_leave_one_out_is_that_of_arrays(data):
    x, y, weight, _ = data
    here, there = ArraySource(x, y, weight, rows=17), DaskSource(chunked(x, 17), chunked(y, 17), chunked(weight, 17))
    bandwidth = torch.tensor([0.5, np.inf, 2.0], dtype=torch.float64)
    for kernel in ("gaussian", "tricube"):
        one, two = (
            leave_one_out.evaluate(blocks, leave_one_out.LeaveOneOut(summarise(blocks), bandwidth, kernel))
            for blocks in (here, there)
        )
        assert two[0] == pytest.approx(one[0], rel=1e-12)
        torch.testing.assert_close(two[1], one[1], rtol=1e-9, atol=1e-12)


def test_score_and_a_bandwidth_by_rule(data):
    x, y, weight, _ = data
    truth = rg.NadarayaWatson(bandwidth="scott").fit(x, y, weight)
    model = rg.NadarayaWatson(bandwidth="scott").fit(chunked(x, 17), y, weight)
    np.testing.assert_allclose(model.bandwidth_, truth.bandwidth_, rtol=1e-12)
    assert model.score(chunked(x, 17), y) == pytest.approx(truth.score(x, y), rel=1e-12)


class TestTasks:
    def test_no_task_needs_more_than_one_chunk_of_the_data(self, data):
        """The data is never gathered: a task sees one chunk of it, and beyond that only states."""
        x, y, _, query = data
        model = rg.NadarayaWatson(bandwidth=0.9).fit(chunked(x, 9), chunked(y, 9))
        graph = convert_legacy_graph(dict(model.predict(chunked(query, 5)).__dask_graph__()))
        blocks = {part.key for part in model.blocks_.parts}
        assert len(blocks & set(graph)) == 12
        assert max(len(node.dependencies & blocks) for node in graph.values()) == 1
        merges = [node for node in graph.values() if len(node.dependencies) > 3]
        assert merges
        assert all(len(node.dependencies) <= FAN_IN for node in merges)

    def test_a_task_has_one_thread_of_torch_and_leaves_the_others_alone(self):
        before = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            assert dask.compute(*[task(torch.get_num_threads) for _ in range(8)], scheduler="threads") == (1,) * 8
            assert torch.get_num_threads() == 2
        finally:
            torch.set_num_threads(before)

    def test_predictions_are_lazy(self, data):
        def never(_):
            raise AssertionError("computed")

        model = rg.NadarayaWatson(bandwidth=0.9).fit(data[0], data[1])
        lazy = model.predict(chunked(data[3], 5).map_blocks(never, dtype=float, meta=np.empty((0, 0))))
        with pytest.raises(AssertionError, match="computed"):
            lazy.compute()


class TestRefusals:
    def test_dask_arrays_of_different_lengths_are_refused(self, data):
        x, y, weight, _ = data
        with pytest.raises(ShapeError, match="X has 101 rows, y has 97"):
            rg.NadarayaWatson(bandwidth=1.0).fit(chunked(x, 17), chunked(y[:97], 17))
        with pytest.raises(ShapeError, match="X has 101 rows, sample_weight has 97"):
            rg.NadarayaWatson(bandwidth=1.0).fit(chunked(x, 17), y, weight[:97])

    def test_chunks_that_differ_where_lengths_are_unknown(self, data):
        x, y, _, _ = data
        with pytest.raises(ShapeError, match=r"X has 6, y has 11, .* compute_chunk_sizes"):
            rg.NadarayaWatson(bandwidth=1.0).fit(of_unknown_length(chunked(x, 17)), chunked(y, 10))
        with pytest.raises(ShapeError, match=r"X has \d+ rows, y has \d+ in chunk \d"):
            rg.NadarayaWatson(bandwidth=1.0).fit(of_unknown_length(chunked(x, 17)), chunked(y, 18))

    def test_a_missing_number_is_named(self, data, frame):
        x = data[0].copy()
        x[40, 2] = np.nan
        with pytest.raises(DataError, match=r"X in chunk 2 .* NaN stands in row 6, column 2"):
            rg.NadarayaWatson(bandwidth=1.0).fit(chunked(x, 17), data[1])
        there = rg.NadarayaWatson(bandwidth=1.0).fit(chunked(data[0], 17), data[1])
        here = rg.NadarayaWatson(bandwidth=1.0).fit(data[0], data[1])
        for model in (there, here):
            with pytest.raises(DataError, match=r"X in chunk 2 .* NaN stands in row 6, column 2"):
                model.predict(chunked(x, 17)).compute()

    def test_wrong_columns_and_numbers_of_features_are_refused(self, data, frame):
        table = dd.from_pandas(frame.assign(city="Oslo"), npartitions=2)
        with pytest.raises(DataError, match=r"column 'city' of X is .*, not a number"):
            rg.NadarayaWatson(bandwidth=1.0).fit(table, "u")
        with pytest.raises(DataError, match="X has no column 'price'"):
            rg.NadarayaWatson(bandwidth=1.0).fit(table, "price")
        model = rg.NadarayaWatson(bandwidth=1.0).fit(table[["a", "b"]], table["u"])
        with pytest.raises(DataError, match="X has no column b, which was fitted; it has: a, c"):
            model.predict(table[["a", "c"]])
        with pytest.raises(ShapeError, match="X must have 2 features, as in fit: it has 3 columns"):
            model.predict(chunked(data[0], 17))
        with pytest.raises(ShapeError, match="X must be a table"):
            rg.NadarayaWatson(bandwidth=1.0).fit(table["a"], table["u"])

    def test_only_y_on_dask_and_what_needs_memory(self, data):
        with pytest.raises(DataError, match="only where X is one too"):
            rg.NadarayaWatson(bandwidth=1.0).fit(data[0], chunked(data[1], 17))
        model = rg.NadarayaWatson(bandwidth=1.0).fit(chunked(data[0], 17), data[1])
        with pytest.raises(UnsupportedError, match="weights needs the data in memory"):
            model.weights(data[3])


@pytest.fixture(scope="module")
def client():
    """Two worker processes, which come back when they die."""
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "memory_limit": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


def watched(array, rows, folder, seconds=0.0):
    """Chunks that note who made them, and when, each time they are made."""
    note = str(folder)

    def make(part):
        Path(note, f"{time.time_ns()}-{os.getpid()}").touch()
        time.sleep(seconds)
        return part

    return chunked(array, rows).map_blocks(make, dtype=float)


def workers(client):
    """The processes that work now."""
    client.wait_for_workers(2, timeout=200)  # a busy machine starts them slowly
    return set(client.run(os.getpid).values())


def kill_after(folder, notes, alive):
    """Kill the worker that made the chunk of this number, as soon as it is made; who that was, and when."""
    deadline = time.monotonic() + 90
    while len(found := sorted(folder.iterdir())) < notes:
        assert time.monotonic() < deadline, f"{len(found)} chunks were made, and number {notes} is waited for"
        time.sleep(0.01)
    worker = int(found[notes - 1].name.split("-")[1])
    assert worker in alive  # and so not this process
    os.kill(worker, signal.SIGKILL)
    return worker, time.time_ns()


def assert_others_went_on(client, folder, killed):
    """The worker is gone, and chunks were made after its death."""
    worker, when = killed
    assert worker not in workers(client)
    assert max(int(note.name.split("-")[0]) for note in folder.iterdir()) > when


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nothing here can kill a process")
class TestWorkers:
    def test_a_worker_killed_while_it_predicts(self, client, data, tmp_path):
        x, y, weight, query = data
        with dask.config.set(scheduler="threads"):
            quiet = rg.NadarayaWatson(bandwidth=0.9).fit(chunked(x, 9), chunked(y, 9), chunked(weight, 9))
            truth = quiet.predict(chunked(query, 5)).compute()
        np.testing.assert_allclose(truth, rg.NadarayaWatson(bandwidth=0.9).fit(x, y, weight).predict(query), **CLOSE)
        model = rg.NadarayaWatson(bandwidth=0.9).fit(watched(x, 9, tmp_path, 0.1), chunked(y, 9), chunked(weight, 9))
        for note in tmp_path.iterdir():  # of the fit
            note.unlink()
        alive = workers(client)
        running = client.compute(model.predict(chunked(query, 5)))
        killed = kill_after(tmp_path, 7, alive)
        assert np.array_equal(running.result(timeout=120), truth)
        assert len(list(tmp_path.iterdir())) > 12  # what the dead one knew had to be made again
        assert_others_went_on(client, tmp_path, killed)

    def test_a_worker_killed_while_a_bandwidth_is_chosen(self, client, data, tmp_path, monkeypatch):
        x, y, weight = data[0][:, :1], data[1][:, 0], data[2]
        monkeypatch.setattr(fit_module, "SAMPLED_ROWS", 40)  # the rest of the search asks the workers
        with dask.config.set(scheduler="threads"):
            quiet = rg.NadarayaWatson().fit(chunked(x, 34), y, weight)
        with ThreadPoolExecutor(1) as thread:
            killing = thread.submit(kill_after, tmp_path, 20, workers(client))
            model = rg.NadarayaWatson().fit(watched(x, 34, tmp_path), y, weight)
        assert_others_went_on(client, tmp_path, killing.result())
        assert np.array_equal(model.bandwidth_, quiet.bandwidth_)
        assert model.cv_ == quiet.cv_
        assert model.n_samples_fit_ == N
        truth = rg.NadarayaWatson(bandwidth=model.bandwidth_).fit(x, y, weight)
        assert model.cv_ == pytest.approx(truth.cv_, rel=1e-9)
