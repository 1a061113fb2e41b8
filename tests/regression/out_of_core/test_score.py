"""R^2 for data in blocks is scikit-learn's, wherever model, queries and targets are."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import regard as rg
from regard.errors import ChoiceError, DataError, ShapeError
from regard.regression.out_of_core import source

N, FEATURES, TARGETS = 101, ["a", "b", "c"], ["u", "v"]


@pytest.fixture
def frame():
    random = np.random.default_rng(7)
    table = pd.DataFrame(random.normal(size=(N, 3)), columns=FEATURES)
    table["u"] = np.sin(table.a) + random.normal(size=N)
    table["v"] = 1e3 + table.b
    return table.assign(w=random.random(N) * (random.random(N) > 0.2))


@pytest.fixture
def stored(frame, tmp_path, monkeypatch):
    """Two files, read in blocks of 11 rows at most."""
    monkeypatch.setattr(source, "CHUNK_BYTES", 11 * 8 * 6)
    frame[:40].to_parquet(tmp_path / "1.parquet")
    frame[40:].to_parquet(tmp_path / "2.parquet")
    return rg.regression.Parquet(tmp_path, x=FEATURES)


def fitted(place, frame, stored, y):
    X, target = {
        "memory": (frame[FEATURES], frame[y]),
        "parquet": (stored, y),
        "dask": (dd.from_pandas(frame[FEATURES], npartitions=3), dd.from_pandas(frame[y], npartitions=3)),
    }[place]
    return rg.NadarayaWatson(bandwidth=0.9).fit(X, target)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("y", ["u", TARGETS])
@pytest.mark.parametrize("place", ["memory", "parquet", "dask"])
def test_score_is_that_of_scikit_learn_for_every_source(place, y, weighted, frame, stored):
    model = fitted(place, frame, stored, y)
    weight = frame.w if weighted else None
    truth = pytest.approx(
        rg.NadarayaWatson(bandwidth=0.9).fit(frame[FEATURES], frame[y]).score(frame[FEATURES], frame[y], weight),
        rel=1e-9,
    )
    name = "w" if weighted else None
    assert model.score(frame[FEATURES], frame[y], weight) == truth
    assert model.score(stored, y, name) == truth
    assert model.score(stored.path, y, name) == truth  # other columns are not features
    table = dd.from_pandas(frame, npartitions=4)
    assert model.score(table, y, name) == truth
    assert model.score(table[FEATURES], table[y], table["w"] if weighted else None) == truth


@pytest.mark.parametrize("y", ["u", TARGETS])
def test_arrays_of_dask_without_names(y, frame):
    x, target, weight = (frame[part].to_numpy() for part in (FEATURES, y, "w"))
    truth = rg.NadarayaWatson(bandwidth=0.9).fit(x, target).score(x, target, weight)
    parts = [da.from_array(part, chunks=(17, *part.shape[1:])) for part in (x, target, weight)]
    unknown = [part[da.ones(N, chunks=17) > 0] for part in parts]
    for model in (rg.NadarayaWatson(bandwidth=0.9).fit(x, target), rg.NadarayaWatson(bandwidth=0.9).fit(*parts[:2])):
        for given in (parts, unknown, [parts[0], target, weight]):
            assert model.score(*given) == pytest.approx(truth, rel=1e-9)


def test_categories_are_those_of_the_fit(frame, tmp_path):
    table = frame.assign(c=np.where(frame.c > 0, "up", "down"))
    model = rg.NadarayaWatson(bandwidth=[0.9, 0.9, 0.1], categorical=["c"]).fit(table[FEATURES], table.u)
    truth = pytest.approx(model.score(table[FEATURES], table.u), rel=1e-9)
    table.to_parquet(tmp_path / "table.parquet")
    assert model.score(tmp_path / "table.parquet", "u") == truth
    assert model.score(dd.from_pandas(table, npartitions=3), "u") == truth


def test_constant_targets_score_one_or_zero(frame, tmp_path):
    model = rg.NadarayaWatson(bandwidth=0.9).fit(frame[FEATURES], frame.u)
    flat = rg.NadarayaWatson(bandwidth=0.9).fit(frame[FEATURES], 0 * frame.u)
    frame.assign(u=0.0).to_parquet(tmp_path / "flat.parquet")
    assert model.score(tmp_path / "flat.parquet", "u") == model.score(frame[FEATURES], 0 * frame.u) == 0.0
    assert flat.score(tmp_path / "flat.parquet", "u") == flat.score(frame[FEATURES], 0 * frame.u) == 1.0
    frame[:1].to_parquet(tmp_path / "one.parquet")
    assert np.isnan(model.score(tmp_path / "one.parquet", "u"))


def test_bad_targets_and_weights_are_refused(frame, stored):
    model = fitted("parquet", frame, stored, "u")
    with pytest.raises(ChoiceError, match="y is the name of a column"):
        model.score(stored, frame.u)
    with pytest.raises(ShapeError, match=r"y must have 1 outputs, as in fit: it has 2 in 1.parquet, rows 0 to"):
        model.score(stored, TARGETS)
    with pytest.raises(DataError, match="no column 'price'"):
        model.score(dd.from_pandas(frame, npartitions=2), "price")
    boxcar = rg.NadarayaWatson("boxcar", 0.1, outside="nan").fit(frame[FEATURES][:50], frame.u[:50])
    with pytest.raises(DataError, match=r"the prediction for 2.parquet, rows .* must hold finite numbers, but NaN"):
        boxcar.score(stored, "u")
