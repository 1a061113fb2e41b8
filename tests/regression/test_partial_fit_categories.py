"""`partial_fit` with categories that are new: levels of their own, as if all rows had been fitted at once."""

import numpy as np
import pandas as pd
import pytest
import torch

import regard as rg
from regard.cli import fit_report
from regard.errors import DataError, ShapeError


def rows(towns, seed=0):
    rng = np.random.default_rng(seed)
    n = 7 * len(towns)
    frame = pd.DataFrame({"size": rng.normal(size=n), "town": rng.permutation(np.repeat(towns, 7))})
    frame["paint"] = rng.choice(["red", "white"], n)
    return frame, frame["size"] + frame["town"].str[0].map(ord) % 5 + rng.normal(size=n)


def grown(first, later, **options):
    model = rg.NadarayaWatson(categorical=["town", "paint"], **options).fit(*first)
    return model.partial_fit(*later)


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("later", [["Cork", "Delft"], ["Aachen", "Basel"], ["Arles"]])
def test_partial_fit_with_new_categories_predicts_like_a_fit_of_all_rows(later, degree):
    first, more = rows(["Basel", "Arles"]), rows(later, seed=1)
    options = {"bandwidth": [0.7, 0.2, 0.1], "degree": degree}
    model = grown(first, more, **options)
    X, y = pd.concat([first[0], more[0]]), pd.concat([first[1], more[1]])
    whole = rg.NadarayaWatson(categorical=["town", "paint"], **options).fit(X, y)
    assert [list(levels) for levels in model.categories_.values()] == [
        sorted({"Basel", "Arles", *later}),
        ["red", "white"],
    ]
    np.testing.assert_array_equal(model.X_, whole.X_)
    new = X.assign(town=X["town"].where(np.arange(len(X)) % 5 > 0, "Essen"))
    np.testing.assert_array_equal(model.predict(new), whole.predict(new))
    np.testing.assert_array_equal(model.loo_residuals_, whole.loo_residuals_)
    np.testing.assert_allclose(model.weights(new).dense() @ torch.from_numpy(model.y_), model.predict(new), atol=1e-9)


def test_a_category_that_was_never_seen_is_still_like_no_other():
    model = rg.NadarayaWatson(bandwidth=0.0, categorical=[0]).fit(np.array([["A"], ["B"]], object), [1.0, 2.0])
    model.partial_fit(np.array([["C"], ["D"]], object), [30.0, 60.0])
    query = np.array([["A"], ["B"], ["C"], ["D"], ["E"]], object)
    np.testing.assert_allclose(model.predict(query), [1, 2, 30, 60, 93 / 4], atol=1e-12)
    np.testing.assert_allclose(model.weights(query).dense() @ torch.from_numpy(model.y_), model.predict(query))


def test_a_column_that_was_ignored_still_is():
    first, later = rows(["Arles", "Basel"]), rows(["Cork"], seed=1)
    model = grown(first, later, bandwidth=[0.7, 0.5, 0.2])
    np.testing.assert_allclose(model.bandwidth_, [0.7, 2 / 3, 0.2])
    X, y = pd.concat([first[0], later[0]]), pd.concat([first[1], later[1]])
    plain = rg.NadarayaWatson(bandwidth=[0.7, 0.2], categorical=["paint"]).fit(X[["size", "paint"]], y)
    np.testing.assert_allclose(model.predict(X), plain.predict(X[["size", "paint"]]), atol=1e-12)


def test_a_column_of_one_category_does_not_become_ignored():
    model = rg.NadarayaWatson(bandwidth=0.0, categorical=[0]).fit([["A"]], [1.0]).partial_fit([["B"]], [2.0])
    np.testing.assert_array_equal(model.predict([["A"], ["B"]]), [1, 2])


def test_a_grown_model_can_be_saved_and_plotted(tmp_path):
    model = grown(rows(["Arles", "Basel"]), rows(["Aachen", "Cork"], seed=1), bandwidth=[0.7, 0.2, 0.1])
    model.save(tmp_path / "m")
    again = rg.NadarayaWatson.load(tmp_path / "m")
    X = rows(["Aachen", "Arles", "Cork", "Essen"], seed=2)[0]
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    again.partial_fit(*rows(["Zug"], seed=3))
    assert list(again.categories_[1]) == ["Aachen", "Arles", "Basel", "Cork", "Zug"]
    fit_report.draw(again, again.summary(), tmp_path / "fit.svg", "en")
    assert (tmp_path / "fit.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("first", "later", "levels"),
    [
        ([10, 20], [15, 30], [10, 15, 20, 30]),
        ([9, 10], ["11", "9"], [9, 10, 11]),  # texts that are numbers, as files have them
        ([9, 10], ["11", "x"], ["10", "11", "9", "x"]),
        (["9", "10"], [11, 9], ["10", "11", "9"]),
    ],
)
def test_new_categories_may_be_numbers_or_texts(first, later, levels):
    y = np.array([1.0, 2.0, 3.0, 4.0])
    model = rg.NadarayaWatson(bandwidth=0.0, categorical=["a"]).fit(pd.DataFrame({"a": first}), y[:2])
    model.partial_fit(pd.DataFrame({"a": later}), y[2:])
    assert model.categories_[0].tolist() == levels
    assert set(model.X_[:, 0]) == set(range(len(levels)))
    for values, column in ((first, y[:2]), (later, y[2:])):
        alone = [value for value in values if str(value) not in {str(v) for v in first} & {str(v) for v in later}]
        expected = [y_i for value, y_i in zip(values, column, strict=True) if value in alone]
        np.testing.assert_allclose(model.predict(pd.DataFrame({"a": alone})), expected)


def test_a_refused_partial_fit_changes_nothing():
    first, later = rows(["Arles", "Basel"]), rows(["Aachen"], seed=1)
    model = rg.NadarayaWatson(bandwidth=[0.7, 0.5, 0.2], categorical=["town", "paint"]).fit(*first)
    before = model.predict(first[0])
    with pytest.raises(ShapeError):
        model.partial_fit(later[0], np.ones((7, 2)))
    with pytest.raises(DataError, match="missing in row 3, column town"):
        model.partial_fit(later[0].assign(town=later[0]["town"].where(later[0].index != 3)), later[1])
    np.testing.assert_array_equal(model.predict(first[0]), before)
    assert len(model.categories_[1]) == 2 and model.bandwidth_[1] == 0.5
