"""Out-of-core data gives the results of data in memory for any chunks, stays on disk, and errors name the chunk."""

import threading

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import regard as rg
from regard.errors import ChoiceError, DataError, FormatError, OutsideError, ShapeError, UnsupportedError
from regard.regression.kernel_sums import engine
from regard.regression.kernel_sums.radius_search import Nearest
from regard.regression.kernel_sums.sample import Sample
from regard.regression.kernel_sums.state import Pooled, merge
from regard.regression.out_of_core import average, parquet
from regard.regression.out_of_core import fit as fit_module
from regard.regression.out_of_core import source as source_module
from regard.regression.out_of_core.source import ArraySource, ColumnMoments, prefetch, summarise

N, D, OUTPUTS, QUERIES = 101, 3, 2, 13
KERNELS = ("gaussian", "laplace", "epanechnikov")


@pytest.fixture
def data():
    random = np.random.default_rng(7)
    x = random.normal(size=(N, D))
    y = np.sin(x[:, :OUTPUTS]) + random.normal(size=(N, OUTPUTS))
    weight = random.random(N) * (random.random(N) > 0.2)
    return x, y, weight, random.normal(size=(QUERIES, D)) * 3


@pytest.fixture
def folder(data, tmp_path):
    """Two files, their columns in a different order, one of them in small row groups."""
    frame = pd.DataFrame(data[0], columns=["a", "b", "c"]).assign(u=data[1][:, 0], v=data[1][:, 1], w=data[2])
    frame[:40].to_parquet(tmp_path / "1.parquet")
    frame[40:][list("wvucba")].to_parquet(tmp_path / "2.parquet", row_group_size=7)
    return tmp_path


@pytest.fixture
def small_chunks(monkeypatch):
    """Source of 11 rows at most, and every memory map in blocks."""
    monkeypatch.setattr(source_module, "CHUNK_BYTES", 11 * 8 * (D + OUTPUTS + 1))
    monkeypatch.setattr(fit_module, "MEMORY_MAP_BYTES", 0)


def mapped(array, path):
    np.save(path, array)
    return np.load(path, mmap_mode="r")


class TestChunks:
    @given(rows=st.integers(1, N + 5), weighted=st.booleans())
    def test_the_average_does_not_depend_on_the_chunks(self, rows, weighted):
        random = np.random.default_rng(rows)
        x, y, query = random.normal(size=(N, D)), random.normal(size=(N, OUTPUTS)), random.normal(size=(QUERIES, D))
        weight = random.random(N) if weighted else None
        blocks = ArraySource(x, y, weight, rows)
        bandwidth = torch.tensor([0.5, 2.0, torch.inf], dtype=torch.float64)
        log_weight = None if weight is None else torch.from_numpy(weight).log()
        whole = engine.pool(
            Sample(torch.from_numpy(x), torch.from_numpy(y), bandwidth, log_weight=log_weight), torch.from_numpy(query)
        )
        settings = average.ChunkAverage(bandwidth, summarise(blocks).y_scale())
        found = average.average(blocks, torch.from_numpy(query), settings).average
        torch.testing.assert_close(found.mean, whole.mean, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(found.lse, whole.lse, rtol=1e-12, atol=1e-12)

    @given(rows=st.integers(1, N + 5))
    def test_the_summary_does_not_depend_on_the_chunks(self, rows):
        random = np.random.default_rng(rows)
        x, y, weight = random.normal(1e3, 1, (N, D)), random.normal(size=N), random.random(N)
        weight[:: rows + 1] = 0
        found = summarise(ArraySource(x, y, weight, rows))
        mean = np.average(x, 0, weight)
        assert found.rows == N
        assert found.x.mean.numpy() == pytest.approx(mean, rel=1e-12)
        assert found.x.deviation().numpy() == pytest.approx(np.sqrt(np.average((x - mean) ** 2, 0, weight)), rel=1e-9)
        assert found.y_scale().numpy() == pytest.approx(y.std(), rel=1e-12)
        assert found.x.low.numpy() == pytest.approx(x[weight > 0].min(0))
        assert found.x.high.numpy() == pytest.approx(x[weight > 0].max(0))
        assert found.effective_rows() == pytest.approx(weight.sum() ** 2 / (weight**2).sum())

    def test_moments_of_no_rows_are_neutral(self):
        some, none = ColumnMoments.of(torch.randn(5, 2).double()), ColumnMoments.of(torch.empty(0, 2).double())
        for both in (some.merge(none), none.merge(some)):
            torch.testing.assert_close(both, some)

    def test_the_next_chunk_is_prefetched(self):
        begun = [threading.Event() for _ in range(4)]

        def source():
            for number, event in enumerate(begun):
                event.set()
                yield number

        for number in prefetch(source()):  # one that reads when it is asked would wait here for ever
            assert all(event.wait(10) for event in begun[: number + 2])
            assert not any(event.is_set() for event in begun[number + 2 :])  # one block prefetch, not all

    def test_a_reader_that_fails_says_so(self):
        def source():
            yield 1
            raise DataError("half a file")

        with pytest.raises(DataError, match="half a file"):
            list(prefetch(source()))


class TestErrors:
    """The bound of a merge holds where totals are wrong, not only means."""

    @given(seed=st.integers(0, 10**6), wrong=st.sampled_from([1e-6, 1e-3, 0.1]))
    def test_wrong_totals_and_means_stay_within_the_bound(self, seed, wrong):
        random = torch.Generator().manual_seed(seed)
        scale = torch.tensor([1.0, 3.0], dtype=torch.float64)

        def part():
            lse, mean = torch.randn(5, generator=random).double() * 3, torch.randn(5, 2, generator=random).double() * 9
            error = torch.rand(5, generator=random).double() * wrong
            sign = torch.rand(5, generator=random).double() * 2 - 1
            # The total that is known is the true one times 1 + sign error, and the mean is off by as much.
            known = lse + torch.log1p(sign * error)
            return Pooled(lse, mean, lse * 0), Pooled(known, mean + (sign * error).unsqueeze(1) * scale, error)

        (true_one, one), (true_two, two) = part(), part()
        truth, found = merge(true_one, true_two), merge(one, two, scale)
        away = ((found.mean - truth.mean).abs() / scale).amax(1)
        assert bool((away <= found.error * (1 + 1e-12)).all())
        assert bool((torch.expm1(found.lse - truth.lse).abs() <= found.error * (1 + 1e-12)).all())

    def test_inaccurate_queries_are_computed_again_exactly(self, monkeypatch):
        """An engine whose every total is as wrong as it may be."""
        random = np.random.default_rng(0)
        x, y = random.normal(size=(60, 1)), np.repeat([0.0, 100.0], 30)
        exact = engine.pool

        def sloppy(sample, query, *, tol, plan):
            found = exact(sample, query, tol=tol, plan=plan)
            return found._replace(lse=found.lse + tol, error=torch.full_like(found.error, tol))

        blocks = ArraySource(x, y, rows=30)
        settings = average.ChunkAverage(torch.ones(1).double(), summarise(blocks).y_scale(), tol=1e-3)
        query = torch.linspace(-2, 2, 7).double().unsqueeze(1)
        truth = average.average(blocks, query, settings).average
        monkeypatch.setattr(engine, "pool", sloppy)
        found = average.average(blocks, query, settings).average
        assert bool((found.error <= settings.tol).all())
        assert bool((((found.mean - truth.mean).abs() / settings.scale).amax(1) <= settings.tol).all())

    @pytest.mark.parametrize("plan", ["auto", "fast"])
    def test_chunks_that_differ_in_the_tail_are_computed_exactly(self, plan):
        """Each block is summed fast; where few points decide, and the blocks say +1 and -1, that is not certain."""
        random, half = np.random.default_rng(0), 2**15
        x = random.normal(size=(2 * half, 1))
        y = np.where(np.abs(x[:, 0]) > 3, np.repeat([1.0, -1.0], half), 0.0)
        query = np.linspace(3.5, 6, 5003)[:, None]  # those asked again are more than 10^7 pairs a block, too
        blocks = ArraySource(x, y, rows=half)
        settings = average.ChunkAverage(torch.full((1,), 0.05).double(), summarise(blocks).y_scale(), plan=plan)
        first, ask = next(iter(blocks)), torch.from_numpy(query)
        plan = engine.explain(Sample(first.x, first.y, settings.bandwidth), ask, tol=settings.tol, plan=plan)
        assert plan.name == "fast"
        found = average.average(blocks, ask, settings).average
        assert bool((found.error <= settings.tol).all())
        near = x[:, 0] > 2
        score = -(((query - x[near].T) / 0.05) ** 2) / 2
        weight = np.exp(score - score.max(1, keepdims=True))
        truth = weight @ y[near] / weight.sum(1)
        assert np.abs(found.mean[:, 0].numpy() - truth).max() <= settings.tol * y.std()

    @given(cut=st.integers(0, 12))
    def test_nearest_points_of_two_parts(self, cut):
        random = torch.Generator().manual_seed(cut)
        square = torch.randint(0, 4, (5, 12), generator=random).double()  # many ties
        weight, values = torch.rand(12, generator=random).double(), torch.randn(12, 2, generator=random).double()
        parts = [Nearest.of(square[:, s], weight[s], values[s]) for s in (slice(0, cut), slice(cut, 12))]
        torch.testing.assert_close(parts[0].merge(parts[1]), Nearest.of(square, weight, values))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.usefixtures("small_chunks")
class TestEstimator:
    def test_a_memory_map_answers_like_the_array(self, kernel, data, tmp_path):
        x, y, weight, query = data
        model = rg.NadarayaWatson(kernel, bandwidth=0.9)
        truth = model.fit(x, y, weight).predict(query)
        model.fit(mapped(x, tmp_path / "x.npy"), mapped(y, tmp_path / "y.npy"), weight)
        assert model.blocks_ is not None
        np.testing.assert_allclose(model.predict(query), truth, rtol=1e-12, atol=1e-12)
        assert model.n_samples_fit_ == N
        assert model.n_features_in_ == D

    def test_a_parquet_folder_answers_like_the_frame(self, kernel, data, folder):
        x, y, weight, query = data
        truth = rg.NadarayaWatson(kernel, bandwidth=0.9).fit(x, y, weight).predict(query)
        model = rg.NadarayaWatson(kernel, bandwidth=0.9).fit(folder, ["u", "v"], "w")
        assert list(model.feature_names_in_) == ["a", "b", "c"]
        assert len(list(model.blocks_)) > 8
        queries = pd.DataFrame(query, columns=["a", "b", "c"])
        np.testing.assert_allclose(model.predict(queries), truth, rtol=1e-12, atol=1e-12)
        queries.assign(more=1).to_parquet(folder.with_name("queries.parquet"))
        np.testing.assert_allclose(model.predict(folder.with_name("queries.parquet")), truth, rtol=1e-12, atol=1e-12)

    def test_one_output_has_no_axis(self, kernel, data, folder):
        source = rg.regression.Parquet(folder, x=["c", "a"])
        model = rg.NadarayaWatson(kernel, bandwidth=[0.5, 1.5]).fit(source, y="u")
        truth = rg.NadarayaWatson(kernel, bandwidth=[0.5, 1.5]).fit(data[0][:, [2, 0]], data[1][:, 0])
        found = model.predict(pd.DataFrame(data[3][:, [2, 0]], columns=["c", "a"]))
        assert found.shape == (QUERIES,)
        np.testing.assert_allclose(found, truth.predict(data[3][:, [2, 0]]), rtol=1e-12, atol=1e-12)

    def test_a_column_may_be_the_name_of_a_folder(self, kernel, data, tmp_path):
        frame = pd.DataFrame(data[0][:, :2], columns=["a", "b"]).assign(g=np.arange(N) % 3, u=data[1][:, 0])
        frame.to_parquet(tmp_path / "parts", partition_cols=["g"])
        model = rg.NadarayaWatson(kernel, bandwidth=0.9).fit(tmp_path / "parts", "u")
        truth = rg.NadarayaWatson(kernel, bandwidth=0.9).fit(frame[["a", "b", "g"]], frame["u"])
        queries = frame[["a", "b", "g"]][:QUERIES]
        np.testing.assert_allclose(model.predict(queries), truth.predict(queries), rtol=1e-12, atol=1e-12)

    def test_an_index_is_a_feature_only_if_it_has_a_name(self, kernel, data, tmp_path):
        frame = pd.DataFrame(data[0], columns=["a", "b", "c"]).assign(u=data[1][:, 0])[data[0][:, 0] > 0]
        frame.to_parquet(tmp_path / "counted.parquet")
        frame.set_index("a", append=True).to_parquet(tmp_path / "named.parquet")
        for name, features in (("counted", ["a", "b", "c"]), ("named", ["b", "c", "a"])):
            model = rg.NadarayaWatson(kernel, bandwidth=0.9).fit(tmp_path / f"{name}.parquet", "u")
            assert model.feature_names_in_.tolist() == features
        features = frame[["b", "c", "a"]]
        features.to_parquet(tmp_path / "queries.parquet")
        bare = rg.NadarayaWatson(kernel, bandwidth=0.9).fit(features.to_numpy(), frame.u)  # it goes by position
        np.testing.assert_allclose(bare.predict(tmp_path / "queries.parquet"), model.predict(features), rtol=1e-9)

    def test_an_estimator_in_memory_predicts_for_a_folder(self, kernel, data, folder):
        frame = pd.DataFrame(data[0], columns=["a", "b", "c"])
        model = rg.NadarayaWatson(kernel, bandwidth=0.9).fit(frame, data[1])
        found = model.predict(str(folder))
        assert found.shape == (N, OUTPUTS)
        np.testing.assert_allclose(found, model.predict(frame), rtol=1e-12, atol=1e-12)
        pd.testing.assert_frame_equal(model.set_output(predict="pandas").predict(str(folder)), pd.DataFrame(found))

    @pytest.mark.parametrize("outputs", [1, 2])
    def test_queries_in_a_map_are_read_chunk_by_chunk(self, kernel, data, tmp_path, monkeypatch, outputs):
        x, y, weight, query = data
        y = y[:, 0] if outputs == 1 else y
        model = rg.NadarayaWatson(kernel, bandwidth=0.9).fit(x, y, weight)
        truth, score = model.predict(query), model.score(x, y, weight)
        monkeypatch.setattr(model, "_query", None)  # which would read all of it
        np.testing.assert_allclose(model.predict(mapped(query, tmp_path / "q.npy")), truth, rtol=1e-12, atol=1e-12)
        stored = mapped(x, tmp_path / "x.npy")
        assert model.score(stored, mapped(y, tmp_path / "y.npy"), weight) == pytest.approx(score, rel=1e-12)


@pytest.mark.usefixtures("small_chunks")
class TestOutside:
    """A compact kernel out of reach of some blocks, or of all."""

    def test_queries_out_of_reach(self, data, tmp_path):
        x, y, _, query = data
        far = np.concatenate([query, [[50.0, 0, 0]]])
        stored = mapped(x, tmp_path / "x.npy")
        for outside in ("nearest", "nan"):
            truth = rg.NadarayaWatson("boxcar", 0.5, outside=outside).fit(x, y).predict(far)
            found = rg.NadarayaWatson("boxcar", 0.5, outside=outside).fit(stored, y).predict(far)
            np.testing.assert_allclose(found, truth, rtol=1e-12, atol=1e-12)
            assert np.isnan(truth[-1]).all() == (outside == "nan")
        with pytest.raises(OutsideError, match="within reach of row"):
            rg.NadarayaWatson("boxcar", 0.5, outside="raise").fit(stored, y).predict(far)

    def test_an_unreached_row_is_named_with_its_chunk(self, data, tmp_path):
        x, y, _, _ = data
        model = rg.NadarayaWatson("boxcar", 0.5, outside="raise").fit(x, y)
        far = x.copy()
        far[25] = 50
        with pytest.raises(OutsideError, match=r"X in rows 16 to 31: .* reach of row 9 "):
            model.predict(mapped(far, tmp_path / "far.npy"))


@pytest.mark.usefixtures("small_chunks")
class TestRefusals:
    @pytest.mark.parametrize("ask", [
        lambda model, X: model.predict(X, return_std=True),
        lambda model, X: model.confidence_band(X),
        lambda model, X: model.derivative(X),
        lambda model, X: model.weights(X),
    ])  # fmt: skip
    def test_other_methods_need_queries_in_memory(self, ask, data, folder, tmp_path):
        x, y, _, query = data
        model = rg.NadarayaWatson(bandwidth=0.9).fit(pd.DataFrame(x, columns=["a", "b", "c"]), y)
        for queries in (str(folder), mapped(query, tmp_path / "q.npy")):
            with pytest.raises(UnsupportedError, match="only predict and score are asked; read rows first"):
                ask(model, queries)

    def test_a_map_of_another_width(self, data, tmp_path):
        model = rg.NadarayaWatson(bandwidth=0.9).fit(*data[:2])
        with pytest.raises(ShapeError, match=r"must have 3 features, as in fit: it has the shape \(7, 2\)"):
            model.predict(mapped(np.zeros((7, 2)), tmp_path / "narrow.npy"))

    def test_a_missing_number_is_named(self, folder, data, tmp_path):
        x, y, weight, _ = data
        x = x.copy()
        x[25, 1] = np.nan
        with pytest.raises(DataError, match=r"X in rows 22 to 32 must hold finite.* NaN stands in row 3, column 1"):
            rg.NadarayaWatson(bandwidth=1.0).fit(mapped(x, tmp_path / "hole.npy"), y, weight)
        frame = pd.DataFrame(data[0], columns=["a", "b", "c"]).assign(u=y[:, 0], v=y[:, 1], w=weight)
        frame.loc[50, "b"] = np.inf
        frame.loc[:, "w"] = 1.0
        frame.to_parquet(folder / "3.parquet")
        with pytest.raises(DataError, match=r"X in 3.parquet, rows 44 to 54 .* infinity stands in row 6, column b"):
            rg.NadarayaWatson(bandwidth=1.0).fit(folder, ["u", "v"], "w")

    def test_a_memory_map_and_y_of_different_lengths_are_refused(self, data, tmp_path):
        with pytest.raises(ShapeError, match="X has 101 rows, y has 97"):
            rg.NadarayaWatson(bandwidth=1.0).fit(mapped(data[0], tmp_path / "x.npy"), data[1][:97])
        with pytest.raises(ShapeError, match="sample_weight must hold one number a row"):
            rg.NadarayaWatson(bandwidth=1.0).fit(mapped(data[0], tmp_path / "x.npy"), data[1], data[2][:97])

    def test_columns_that_are_not_there_or_no_numbers(self, folder):
        with pytest.raises(DataError, match="has no column 'price'; it has: a, b, c, u, v, w"):
            rg.NadarayaWatson(bandwidth=1.0).fit(folder, "price")
        frame = pd.read_parquet(folder).assign(city="Oslo")
        frame.to_parquet(folder.with_name("text.parquet"))
        with pytest.raises(DataError, match=r"column 'city' of .* is .*string, not a number"):
            rg.NadarayaWatson(bandwidth=1.0).fit(folder.with_name("text.parquet"), "u")
        model = rg.NadarayaWatson(bandwidth=1.0).fit(parquet.Parquet(folder, x="a"), "u")
        frame[["b"]].to_parquet(folder.with_name("other.parquet"))
        with pytest.raises(DataError, match="has no column 'a'"):
            model.predict(folder.with_name("other.parquet"))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda last: last.drop(columns="b"), r"last\.parquet' has no column 'b'; it has: a, c, u, v, w"),
            (lambda last: last.assign(d=1.0), r"last\.parquet' has a column 'd' that the first file .* lacks"),
            (lambda last: last.assign(c="x"), r"column 'c' of '.*last\.parquet' is .*string, not a number"),
        ],
    )
    def test_a_file_that_differs_is_named(self, folder, change, message):
        change(pd.read_parquet(folder / "1.parquet")).to_parquet(folder / "last.parquet")
        with pytest.raises(DataError, match=message):
            rg.NadarayaWatson(bandwidth=1.0).fit(folder, ["u", "v"], "w")
        same = rg.regression.Parquet(folder, x=["a"])  # which all of them have
        assert rg.NadarayaWatson(bandwidth=1.0).fit(same, "u").n_samples_fit_ == N + 40

    def test_a_target_is_no_feature(self, folder):
        for y in ("u", ["v", "u"]):
            with pytest.raises(ChoiceError, match="x names 'u', the column to predict: it would predict itself"):
                rg.NadarayaWatson(bandwidth=1.0).fit(rg.regression.Parquet(folder, x=["a", "u"]), y)

    def test_names_are_needed_and_files_must_exist(self, folder, tmp_path_factory):
        empty = tmp_path_factory.mktemp("empty")
        with pytest.raises(ChoiceError, match="y is the name of a column"):
            rg.NadarayaWatson(bandwidth=1.0).fit(folder, np.zeros(N))
        with pytest.raises(ChoiceError, match="sample_weight is the name of a column"):
            rg.NadarayaWatson(bandwidth=1.0).fit(folder, "u", np.zeros(N))
        with pytest.raises(DataError, match="there is no file and no folder"):
            rg.NadarayaWatson(bandwidth=1.0).fit(empty / "nothing", "u")
        with pytest.raises(DataError, match="holds no Parquet files"):
            rg.NadarayaWatson(bandwidth=1.0).fit(empty, "u")
        (empty / "broken.parquet").write_text("no parquet at all")
        with pytest.raises(DataError, match="cannot be read as Parquet"):
            rg.NadarayaWatson(bandwidth=1.0).fit(empty, "u")

    def test_queries_without_rows_are_refused_as_they_are_in_memory(self, folder):
        frame = pd.read_parquet(folder / "1.parquet")
        features = frame[["a", "b", "c"]]
        features[:0].to_parquet(folder / "empty.parquet")
        here = rg.NadarayaWatson(bandwidth=1.0).fit(features, frame.u)
        there = rg.NadarayaWatson(bandwidth=1.0).fit(rg.regression.Parquet(folder / "1.parquet", x=list("abc")), "u")
        for model in (here, there):
            with pytest.raises(DataError, match="0 sample"):
                model.predict(features[:0])
            with pytest.raises(DataError, match=r"at least one row to predict for, and .*empty.parquet has none"):
                model.predict(folder / "empty.parquet")

    def test_negative_weights_and_no_weight_at_all(self, data, tmp_path):
        stored = mapped(data[0], tmp_path / "x.npy")
        with pytest.raises(DataError, match=r"sample_weight must not be negative, .* rows 0 to 10"):
            rg.NadarayaWatson(bandwidth=1.0).fit(stored, data[1], -data[2] - 1)
        with pytest.raises(DataError, match="positive weight"):
            rg.NadarayaWatson(bandwidth=1.0).fit(stored, data[1], data[2] * 0)

    def test_methods_that_need_memory_are_refused(self, data, tmp_path):
        model = rg.NadarayaWatson(bandwidth=1.0).fit(mapped(data[0], tmp_path / "x.npy"), data[1])
        for question in (model.weights, model.confidence_band):
            with pytest.raises(UnsupportedError, match="needs the data in memory"):
                question(data[3])
        with pytest.raises(UnsupportedError, match="needs the data in memory"):
            model.leverage()
        with pytest.raises(FormatError, match="save needs the data in memory"):
            model.save(tmp_path / "model")
        with pytest.raises(UnsupportedError, match="partial_fit needs the data in memory"):
            model.partial_fit(data[0], data[1])
        with pytest.raises(UnsupportedError, match="categorical features need the data in memory"):
            rg.NadarayaWatson(bandwidth=1.0, categorical=[0]).fit(mapped(data[0], tmp_path / "y.npy"), data[1])


@pytest.mark.usefixtures("small_chunks")
class TestRefit:
    """An estimator that is fitted again is one that was never fitted before."""

    def test_refitting_from_out_of_core_to_memory_and_back(self, data, folder, tmp_path_factory):
        elsewhere = tmp_path_factory.mktemp("refit")
        table = rg.regression.Parquet(folder, x=["a", "b"])
        by_blocks = vars(rg.NadarayaWatson(bandwidth=1.0).fit(table, "u", "w")).keys()
        in_memory = vars(rg.NadarayaWatson(bandwidth=1.0).fit(data[0], data[1])).keys()
        model = rg.NadarayaWatson(bandwidth=1.0).fit(table, "u", "w")
        assert model.loo_score_ < 1  # what is found when it is asked for is forgotten, too
        assert vars(model.fit(data[0], data[1])).keys() == in_memory
        model.save(elsewhere / "model")
        again = rg.NadarayaWatson.load(elsewhere / "model")
        np.testing.assert_array_equal(again.predict(data[3]), model.predict(data[3]))
        assert vars(model.fit(table, "u", "w")).keys() == by_blocks
        assert not hasattr(model, "X_")
        model.fit(mapped(data[0], elsewhere / "x.npy"), data[1])
        assert not hasattr(model, "feature_names_in_")

    def test_a_refused_fit_leaves_an_unfitted_estimator(self, data, folder):
        model = rg.NadarayaWatson(bandwidth=1.0).fit(data[0], data[1])
        with pytest.raises(DataError, match="no column 'price'"):
            model.fit(folder, "price")
        for query in (data[3], folder):
            with pytest.raises(NotFittedError):
                model.predict(query)


class TestMemoryMaps:
    def test_a_small_map_is_an_array_like_any_other(self, data, tmp_path):
        model = rg.NadarayaWatson(bandwidth=1.0).fit(mapped(data[0], tmp_path / "x.npy"), data[1])
        assert model.blocks_ is None

    @pytest.mark.skipif(not hasattr(source_module.mmap, "MADV_DONTNEED"), reason="the system keeps pages as it likes")
    def test_pages_of_a_memory_map_are_released_after_a_pass(self, tmp_path):
        """The resident part of the map after a pass is a small part of the file."""
        big = mapped(np.ones((2**20, 4)), tmp_path / "x.npy")
        summarise(ArraySource(big, np.zeros(len(big))))
        assert _resident(tmp_path / "x.npy") < 0.2 * big.nbytes
        assert float(big.sum()) == big.size
        assert _resident(tmp_path / "x.npy") > 0.8 * big.nbytes  # the measure can see what is there

    def test_what_was_written_into_a_private_copy_stays(self, tmp_path):
        np.save(tmp_path / "x.npy", np.zeros((1000, 2)))
        private = np.load(tmp_path / "x.npy", mmap_mode="c")
        private[:] = 1.0
        summary = summarise(ArraySource(private, np.zeros(1000), rows=100))
        assert summary.x.mean.tolist() == [1.0, 1.0]
        assert float(private.sum()) == 2000


def _resident(path):
    """Bytes of a file that this process holds, as the kernel counts them."""
    total, inside = 0, False
    for line in open("/proc/self/smaps", encoding="utf-8"):  # noqa: PTH123, SIM115  not a file
        if "-" in line.split(" ", 1)[0]:
            inside = str(path) in line
        elif inside and line.startswith("Rss:"):
            total += int(line.split()[1]) * 1024
    return total
