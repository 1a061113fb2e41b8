"""Fits in files: the bytes as they are documented, and every damage noticed."""

import json
import os
import random
import re
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open

from regard import NadarayaWatson
from regard.errors import FormatError
from regard.regression import persistence

PAGE = Path(__file__).parents[2] / "docs" / "formats" / "model.md"
ARRAYS = {"y_": np.array([1.0, 2.0]), "X_": np.array([[0.5], [1.5]]), "flags_": np.array([True, False, True])}
HEADER = (
    '{"__metadata__":{"format":"regard-fit","version":"1",'
    '"sha256":"71b68577f5ed85630e09488bfa73d2f6c403178614d156a908c3055c57fe09a1",'
    '"model":"{\\"class\\":\\"NadarayaWatson\\"}"},'
    '"X_":{"dtype":"F64","shape":[2,1],"data_offsets":[0,16]},'
    '"y_":{"dtype":"F64","shape":[2],"data_offsets":[16,32]},'
    '"flags_":{"dtype":"BOOL","shape":[3],"data_offsets":[32,35]}}'
)
DATA = bytes.fromhex(
    "000000000000e03f 000000000000f83f"  # X_: 0.5, 1.5
    "000000000000f03f 0000000000000040"  # y_: 1, 2
    "010001"  # flags_
)


def table(n=23):
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"size": rng.normal(size=n), "größe 大小": rng.normal(size=n)})
    return X, pd.Series(np.sin(X["size"]) + rng.normal(size=n), name="price")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("fits") / "a.regard-fit"
    NadarayaWatson(bandwidth=[0.5, np.inf]).fit(*table()).save(path)
    return path


def test_the_bytes_are_the_documented_ones(tmp_path):
    path = tmp_path / "a"
    persistence.FIT_FILE.write(path, '{"class":"NadarayaWatson"}', ARRAYS)
    padding = b" " * (-len(HEADER) % 8)
    assert path.read_bytes() == (len(HEADER) + len(padding)).to_bytes(8, "little") + HEADER.encode() + padding + DATA
    page = re.sub(r"\s", "", PAGE.read_text(encoding="utf-8"))
    for part in (HEADER, DATA.hex()):
        assert re.sub(r"\s", "", part) in page


def test_the_checksum_can_be_checked_by_hand(saved):
    from hashlib import sha256

    content = saved.read_bytes()
    (stored,) = re.findall(rb'"sha256":"([0-9a-f]{64})"', content)
    assert sha256(content.replace(stored, b"0" * 64)).hexdigest() == stored.decode()


def test_safetensors_can_read_a_model_file(saved):
    with safe_open(saved, "np") as file:
        assert file.metadata()["format"] == "regard-fit"
        np.testing.assert_array_equal(file.get_tensor("X_"), table()[0].to_numpy())
        text = json.loads(file.metadata()["model"])
    assert set(text) == {"class", "parameters", "learned"}


@pytest.mark.parametrize(
    ("model", "weight"),
    [
        (NadarayaWatson(bandwidth=0.7), None),
        (NadarayaWatson(bandwidth=np.array([0.7, 2.0]), degree=1), np.arange(1.0, 24.0)),
        (NadarayaWatson(bandwidth="scott", kernel="epanechnikov", outside="nan", tol=1e-4), None),
        (NadarayaWatson(), None),
    ],
)
def test_a_reloaded_fit_is_the_same_to_the_last_bit(tmp_path, model, weight):
    X, y = table()
    model.fit(X, y, sample_weight=weight).save(tmp_path / "a")
    again = NadarayaWatson.load(tmp_path / "a")
    np.testing.assert_array_equal(again.predict(X + 0.1), model.predict(X + 0.1))
    for ours, theirs in zip(again.confidence_band(X), model.confidence_band(X), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert again.loo_score_ == pytest.approx(model.loo_score_, rel=1e-9)
    assert again.effective_df() == model.effective_df()
    assert again.feature_names_in_.tolist() == ["size", "größe 大小"]
    assert {k: str(v) for k, v in again.get_params().items()} == {k: str(v) for k, v in model.get_params().items()}
    learned = {name for name in vars(model) if name.endswith("_")}
    assert {name for name in vars(again) if name.endswith("_")} == learned
    again.save(tmp_path / "b")
    if not isinstance(model.bandwidth, np.ndarray):  # which comes back as an array, in other words
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("kinds", [["a", "b", "c"], [0, 1, 2]])
def test_categories_are_the_same_after_save_and_load(tmp_path, kinds):
    X, y = table()
    X["kind"] = np.resize(kinds, len(X))
    model = NadarayaWatson(bandwidth=[0.5, 0.5, 0.2], categorical=["kind"]).fit(X, y)
    model.save(tmp_path / "a")
    again = NadarayaWatson.load(tmp_path / "a")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    again.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_reloaded_fit_learns_on(tmp_path):
    X, y = table()
    NadarayaWatson(bandwidth=0.5).fit(X, y).save(tmp_path / "a")
    again = NadarayaWatson.load(tmp_path / "a").partial_fit(X[:7], y[:7])
    assert again.n_samples_fit_ == 30
    fresh = NadarayaWatson(bandwidth=0.5).fit(pd.concat([X, X[:7]]), pd.concat([y, y[:7]]))
    np.testing.assert_allclose(again.predict(X), fresh.predict(X))


def test_several_outputs_without_names(tmp_path):
    X, y = table()[0].to_numpy(), np.random.default_rng(0).normal(size=(23, 3))
    model = NadarayaWatson(bandwidth=0.5).fit(X, y)
    model.save(tmp_path / "a")
    again = NadarayaWatson.load(tmp_path / "a")
    assert not hasattr(again, "feature_names_in_")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_every_flipped_bit_is_noticed(saved, tmp_path):
    whole = saved.read_bytes()
    path = tmp_path / "flipped"
    flips = random.Random(0).sample(range(8 * len(whole)), 400) + list(range(64)) + list(range(8 * 80, 8 * 80 + 512))
    for bit in flips:
        content = bytearray(whole)
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"damaged|version"):
            NadarayaWatson.load(path)


def test_every_shorter_or_longer_file_is_noticed(saved, tmp_path):
    whole = saved.read_bytes()
    path = tmp_path / "cut"
    for content in [whole[:stop] for stop in range(0, len(whole), 7)] + [whole[:-1], whole + b"\0", whole + whole]:
        path.write_bytes(content)
        with pytest.raises(FormatError, match="damaged"):
            NadarayaWatson.load(path)


@given(st.binary(max_size=200))
def test_loading_random_bytes_is_refused(content):
    with NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        with pytest.raises(FormatError, match="is not a fit that regard saved"):
            NadarayaWatson.load(file.name)


def forged(path, text, arrays=None):
    persistence.FIT_FILE.write(path, text if isinstance(text, str) else json.dumps(text), arrays or {})
    return path


@pytest.mark.parametrize(
    ("text", "arrays", "message"),
    [
        ("no json", {}, "is not a fit"),
        ("[1, 2]", {}, "is not a fit"),
        ({"class": "Ridge", "parameters": {}, "learned": {}}, {}, "holds a Ridge, and a NadarayaWatson is wanted"),
        ({"class": "NadarayaWatson", "learned": {}}, {}, "is not a fit"),
        ({"class": "NadarayaWatson", "parameters": {"alpha": 1}, "learned": {}}, {}, "is not a fit"),
        ({"class": "NadarayaWatson", "parameters": {}, "learned": {"predict": 1}}, {}, "is not a fit"),
        ({"class": "NadarayaWatson", "parameters": {}, "learned": {"__class__": 1}}, {}, "is not a fit"),
        ({"class": "NadarayaWatson", "parameters": {}, "learned": {}}, {"fit": np.ones(1)}, "is not a fit"),
    ],
)
def test_a_forged_file_is_refused(tmp_path, text, arrays, message):
    with pytest.raises(FormatError, match=message):
        NadarayaWatson.load(forged(tmp_path / "a", text, arrays))


def test_a_newer_version_is_named(saved, tmp_path):
    path = tmp_path / "new"
    path.write_bytes(saved.read_bytes().replace(b'"version":"1"', b'"version":"2"'))
    with pytest.raises(FormatError, match="has version 2 of the format regard-fit, this regard reads version 1"):
        NadarayaWatson.load(path)


def test_another_safetensors_file_is_refused(tmp_path):
    from safetensors.numpy import save_file

    save_file({"a": np.ones(3)}, tmp_path / "a", {"format": "pt"})
    with pytest.raises(FormatError, match="is not a fit that regard saved"):
        NadarayaWatson.load(tmp_path / "a")


def test_a_missing_file_is_what_python_calls_it(tmp_path):
    with pytest.raises(FileNotFoundError):
        NadarayaWatson.load(tmp_path / "nowhere")


def test_what_a_file_cannot_hold_is_refused_and_nothing_is_written(tmp_path):
    model = NadarayaWatson(bandwidth=0.5).fit(*table())
    with pytest.raises(FormatError, match="plan cannot be saved: it is a set"):
        model.set_params(plan={"a"}).save(tmp_path / "a")
    with pytest.raises(FormatError, match="z cannot be saved: its numbers are complex128"):
        persistence.FIT_FILE.write(tmp_path / "a", "", {"z": np.ones(2, complex)})
    assert list(tmp_path.iterdir()) == []


def test_an_estimator_that_is_not_fitted_has_nothing_to_save(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        NadarayaWatson().save(tmp_path / "a")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is no regular file"):
        NadarayaWatson.load(tmp_path / "pipe")
