"""Queries in blocks of a fit that knows categories: the same answers as for the same rows in memory."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import regard as rg
from regard.errors import DataError, UnsupportedError
from regard.regression.out_of_core import fit, parquet

WIDTH = [0.5, 0.2, 0.1]
KINDS = ["colour", "town"]


@pytest.fixture
def table():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"size": rng.normal(size=61), "colour": rng.choice(["red", "green", "blue"], 61)})
    frame["town"] = rng.choice([10, 20], 61)
    return frame, np.sin(frame["size"]) + 3.0 * (frame["colour"] == "red") - 2.0 * (frame["town"] == 20)


@pytest.fixture
def model(table):
    return rg.NadarayaWatson(bandwidth=WIDTH, categorical=KINDS).fit(*table)


@pytest.fixture
def queries(table):
    new = table[0][::2].reset_index(drop=True)
    return new.assign(colour=new["colour"].where(new.index != 7, "pink"), town=new["town"].where(new.index != 11, 30))


@pytest.mark.parametrize("degree", [0, 1])
def test_numbers_in_an_array_of_dask(table, degree):
    x, y = table[0][["town", "size"]].to_numpy(np.float64), table[1]
    model = rg.NadarayaWatson(bandwidth=[0.1, 0.5], categorical=[0], degree=degree).fit(x, y)
    expected = model.predict(x)
    assert np.ptp(expected) > 1
    np.testing.assert_allclose(model.predict(da.from_array(x, chunks=(17, 1))).compute(), expected, atol=1e-10)


@pytest.mark.parametrize("kind", ["str", "category", object])
def test_texts_in_a_frame_of_dask(model, queries, kind):
    expected = model.predict(queries)
    frame = dd.from_pandas(queries.astype({"colour": kind})[["town", "size", "colour"]], npartitions=3)
    np.testing.assert_allclose(model.predict(frame).compute(), expected, atol=1e-10)
    few = frame[frame["size"] > queries["size"].nlargest(3).iloc[-1]]  # some partitions are empty
    np.testing.assert_allclose(model.predict(few).compute(), expected[few.compute().index], atol=1e-10)


def test_texts_in_an_array_of_dask(table, queries):
    model = rg.NadarayaWatson(bandwidth=WIDTH, categorical=[1, 2]).fit(table[0].to_numpy(), table[1])
    found = model.predict(da.from_array(queries.to_numpy(object), chunks=(11, 3))).compute()
    np.testing.assert_allclose(found, model.predict(queries.to_numpy()), atol=1e-10)


@pytest.mark.parametrize("kind", ["str", "category"])
def test_texts_in_a_parquet_folder(model, queries, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "rows_per_chunk", lambda columns: 5)
    queries = queries.astype({"colour": kind})
    queries[:13][["town", "colour", "size"]].to_parquet(tmp_path / "a.parquet")
    queries[13:].to_parquet(tmp_path / "b.parquet")
    np.testing.assert_allclose(model.predict(tmp_path), model.predict(queries), atol=1e-10)


def test_categories_that_are_names_of_folders(model, queries, tmp_path):
    queries.to_parquet(tmp_path, partition_cols=["colour"])
    there = pd.concat(part for _, part in queries.groupby("colour"))  # as the folders are sorted
    np.testing.assert_allclose(model.predict(tmp_path), model.predict(there), atol=1e-10)


def test_numbers_in_a_parquet_file_without_names(table, tmp_path):
    x, y = table[0][["town", "size"]], table[1]
    model = rg.NadarayaWatson(bandwidth=[0.1, 0.5], categorical=[0]).fit(x.to_numpy(), y)
    x.to_parquet(tmp_path / "x.parquet")
    np.testing.assert_allclose(model.predict(tmp_path / "x.parquet"), model.predict(x.to_numpy()), atol=1e-10)


def test_a_memory_map_with_categories_is_predicted_and_not_changed(table, tmp_path):
    x, y = table[0][["town", "size"]].to_numpy(np.float64), table[1]
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    model = rg.NadarayaWatson(bandwidth=[0.1, 0.5], categorical=[0]).fit(x, y)
    np.testing.assert_array_equal(model.predict(mapped), model.predict(x))
    np.testing.assert_array_equal(mapped, x)


def test_a_missing_category_in_a_file_is_named_with_its_row(model, queries, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "rows_per_chunk", lambda columns: 5)
    bad = queries.assign(colour=queries["colour"].where(queries.index != 12))
    bad.to_parquet(tmp_path / "bad.parquet")
    with pytest.raises(DataError, match=r"X in bad\.parquet .*missing in row 12, column colour"):
        model.predict(tmp_path / "bad.parquet")
    partitions = dd.from_pandas(bad, npartitions=3)
    first = partitions.divisions[1]
    with pytest.raises(DataError, match=f"X in chunk 1 .*missing in row {12 - first}, column colour"):
        model.predict(partitions).compute()


def test_a_missing_category_in_a_memory_map_is_named_with_its_row(table, tmp_path, monkeypatch):
    x = table[0][["town", "size"]].to_numpy(np.float64)
    model = rg.NadarayaWatson(bandwidth=[0.1, 0.5], categorical=[0]).fit(x, table[1])
    x[7, 0] = np.nan
    np.save(tmp_path / "x.npy", x)
    monkeypatch.setattr(fit, "MEMORY_MAP_BYTES", 0)
    with pytest.raises(DataError, match=r"X in rows 0 to 60 .* row 7, column 0"):
        model.predict(np.load(tmp_path / "x.npy", mmap_mode="r"))


def test_texts_that_are_no_categories_are_refused(table, queries, tmp_path):
    model = rg.NadarayaWatson(bandwidth=[0.5, 0.1], categorical=["town"]).fit(table[0][["size", "town"]], table[1])
    wrong = queries.rename(columns={"size": "width", "colour": "size"})
    with pytest.raises(DataError, match=r"column 'size' of X is .*, not a number"):
        model.predict(dd.from_pandas(wrong, npartitions=2))
    wrong.to_parquet(tmp_path / "wrong.parquet")
    with pytest.raises(DataError, match=r"column 'size' .* not a number"):
        model.predict(tmp_path / "wrong.parquet")


def test_a_fit_says_that_categories_need_the_rows_in_memory(table, tmp_path):
    whole = table[0].assign(price=table[1])
    whole.to_parquet(tmp_path / "whole.parquet")
    for X in (dd.from_pandas(whole, npartitions=2), tmp_path / "whole.parquet"):
        with pytest.raises(UnsupportedError, match="categorical features need the data in memory"):
            rg.NadarayaWatson(bandwidth=WIDTH, categorical=KINDS).fit(X, "price")
