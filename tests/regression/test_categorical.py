"""Features without distances: Aitchison and Aitken's kernel, with statsmodels as the judge."""

import numpy as np
import pandas as pd
import pytest
import torch
from statsmodels.nonparametric.kernel_regression import KernelReg

import regard as rg
from regard.errors import ChoiceError, DataError, RegardError, ShapeError
from regard.kernels import names

KERNELS = names()


def mixed(n=71, seed=0):
    generator = np.random.default_rng(seed)
    x = np.column_stack([generator.normal(size=n), generator.integers(0, 3, n), generator.integers(0, 2, n)])
    return x, np.sin(x[:, 0]) + 2.0 * (x[:, 1] == 1) - x[:, 2] + 0.1 * generator.normal(size=n)


@pytest.mark.parametrize("width", [[0.4, 0.3, 0.1], [1.1, 2 / 3, 0.5]])
def test_the_same_curve_as_statsmodels(width):
    x, y = mixed()
    judge = KernelReg(y, x, "cuu", reg_type="lc", bw=width)
    model = rg.NadarayaWatson(bandwidth=width, categorical=[1, 2]).fit(x, y)
    np.testing.assert_allclose(model.predict(x), judge.fit(x)[0], atol=1e-10)


@pytest.mark.parametrize("width", [[0.3, 0.1], [0.0, 0.4]])
def test_all_columns_may_be_categorical(width):
    x, y = mixed()
    judge = KernelReg(y, x[:, 1:], "uu", reg_type="lc", bw=width)
    model = rg.NadarayaWatson(bandwidth=width, categorical=[0, 1]).fit(x[:, 1:], y)
    np.testing.assert_allclose(model.predict(x[:, 1:]), judge.fit(x[:, 1:])[0], atol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("degree", [0, 1])
def test_weights_times_y_are_the_predictions_with_categories(kernel, degree):
    x, y = mixed()
    model = rg.NadarayaWatson(kernel, [1.5, 0.2, 0.0], degree, categorical=[1, 2]).fit(x, y, 1.0 + np.arange(71) % 3)
    matrix = model.weights(x).dense()
    np.testing.assert_allclose(matrix @ torch.from_numpy(y), model.predict(x), atol=1e-9)
    np.testing.assert_allclose(model.leverage(), matrix.diagonal(), atol=1e-9)
    assert np.isfinite(model.predict(x, return_std=True)[1]).all()


def test_standard_errors_follow_their_formula():
    x, y = mixed()
    model = rg.NadarayaWatson(bandwidth=[0.5, 0.2, 0.3], categorical=[1, 2]).fit(x, y)
    matrix = model.weights(x).dense().numpy()
    expected = np.sqrt(matrix @ model.loo_residuals_**2 * (matrix**2).sum(1))
    np.testing.assert_allclose(model.predict(x, return_std=True)[1], expected, rtol=1e-8)


def test_residuals_are_those_of_a_fit_without_the_row():
    x, y = mixed()
    model = rg.NadarayaWatson(bandwidth=[0.5, 0.2, 0.3], categorical=[1, 2]).fit(x, y)
    for row in range(0, 71, 9):
        rest = np.arange(71) != row
        alone = rg.NadarayaWatson(bandwidth=[0.5, 0.2, 0.3], categorical=[1, 2]).fit(x[rest], y[rest])
        assert model.loo_residuals_[row] == pytest.approx(y[row] - alone.predict(x[row : row + 1])[0], abs=1e-10)


@pytest.mark.parametrize("kernel", ["gaussian", "tricube"])
@pytest.mark.parametrize("degree", [0, 1])
def test_slopes_are_those_of_the_other_features(kernel, degree):
    x, y = mixed()
    model = rg.NadarayaWatson(kernel, [1.7, 0.2, 0.3], degree, categorical=[1, 2]).fit(x, y)
    found, step = model.derivative(x[:11]), np.array([1e-5, 0, 0])
    expected = (model.predict(x[:11] + step) - model.predict(x[:11] - step)) / 2e-5
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-5)
    assert np.isnan(found[:, 1:]).all()


def test_cross_validation_is_no_worse_than_statsmodels():
    x, y = mixed(n=31)
    x = x[:, :2]
    judge = KernelReg(y, x, "cu", reg_type="lc", bw="cv_ls")
    theirs = rg.NadarayaWatson(bandwidth=np.clip(judge.bw, 0, [np.inf, 2 / 3]), categorical=[1]).fit(x, y)
    ours = rg.NadarayaWatson(categorical=[1]).fit(x, y)
    assert ours.cv_ <= theirs.cv_ * (1 + 1e-6)
    assert rg.NadarayaWatson(bandwidth="scott", categorical=[1]).fit(x, y).cv_ > ours.cv_


def frame():
    x, y = mixed()
    colour = pd.Categorical(np.array(["red", "green", "blue"])[x[:, 1].astype(int)])
    return pd.DataFrame({"size": x[:, 0], "colour": colour, "shape": np.array(["a", "b"])[x[:, 2].astype(int)]}), x, y


@pytest.mark.parametrize("asked", ["auto", ["colour", "shape"], [1, 2], [-1, "colour"]])
def test_columns_are_selected_by_name_or_auto(asked):
    table, x, y = frame()
    named = rg.NadarayaWatson(bandwidth=[0.5, 0.2, 0.3], categorical=asked).fit(table, y)
    numbered = rg.NadarayaWatson(bandwidth=[0.5, 0.2, 0.3], categorical=[1, 2]).fit(x, y)
    np.testing.assert_allclose(named.predict(table), numbered.predict(x), atol=1e-12)
    assert list(named.categories_[1]) == ["blue", "green", "red"]
    np.testing.assert_allclose(
        rg.NadarayaWatson(bandwidth=[0.5, 0.2, 0.3], categorical=[1, 2])
        .fit(table.to_numpy(), y)
        .predict(table.to_numpy()),
        numbered.predict(x),
        atol=1e-12,
    )


def test_a_category_that_was_never_seen_is_like_no_other():
    table, _, y = frame()
    model = rg.NadarayaWatson(bandwidth=[0.5, 0.2, 0.3], categorical="auto").fit(table, y)
    new = table.iloc[:5].assign(colour=["pink"] * 5)
    plain = rg.NadarayaWatson(bandwidth=[0.5, 0.3], categorical="auto").fit(table[["size", "shape"]], y)
    np.testing.assert_allclose(model.predict(new), plain.predict(new[["size", "shape"]]), atol=1e-12)


def test_a_frame_whose_columns_have_numbers_for_names():
    x, y = mixed()
    table = pd.DataFrame(x)
    named = rg.NadarayaWatson(bandwidth=[0.5, 0.2, 0.3], categorical=[1, 2]).fit(table, y)
    numbered = rg.NadarayaWatson(bandwidth=[0.5, 0.2, 0.3], categorical=[1, 2]).fit(x, y)
    np.testing.assert_array_equal(named.predict(table), numbered.predict(x))
    np.testing.assert_array_equal(table, x)  # the caller's own


@pytest.mark.parametrize("kind", ["string", "Int64", object])
def test_a_missing_value_of_pandas_is_named(kind):
    table, x, y = frame()
    column = pd.Series(x[:, 1].astype(int), dtype="Int64").astype(kind)
    column[5] = pd.NA
    with pytest.raises(DataError, match="missing in row 5, column colour"):
        rg.NadarayaWatson(categorical=["colour", "shape"]).fit(table.assign(colour=column), y)


def test_a_text_in_a_numeric_column_is_a_data_error():
    x, y = mixed()
    table = x.astype(object)
    table[3, 0] = "wide"
    with pytest.raises(DataError, match="'wide' stands in row 3, column 0"):
        rg.NadarayaWatson(categorical=[1, 2]).fit(table, y)


@pytest.mark.parametrize("form", [list, tuple, np.array])
def test_a_mask_marks_columns(form):
    x, y = mixed()
    model = rg.NadarayaWatson(bandwidth=0.3, categorical=form([False, True, False])).fit(x, y)
    assert list(model.categories_) == [1]
    with pytest.raises(ShapeError, match=r"one bool for each of the 3 columns, but has 2"):
        model.set_params(categorical=form([False, True])).fit(x, y)


@pytest.mark.parametrize("asked", [1, True, np.array(1), np.array([[1]]), [True, 2]])
def test_what_is_no_list_of_columns_is_refused(asked):
    x, y = mixed()
    with pytest.raises(ChoiceError, match=r"categorical must be .*a list of columns or one of a bool for each"):
        rg.NadarayaWatson(bandwidth=0.3, categorical=asked).fit(x, y)


def test_bad_categorical_arguments_are_refused():
    table, _, y = frame()
    with pytest.raises(ChoiceError, match=r"'price'.*size, colour, shape"):
        rg.NadarayaWatson(categorical=["price"]).fit(table, y)
    with pytest.raises(ChoiceError, match=r"'all'"):
        rg.NadarayaWatson(categorical="all").fit(table, y)
    with pytest.raises(ChoiceError, match=r"from 0 to 0.6667, but it is 0.9"):
        rg.NadarayaWatson(bandwidth=[0.5, 0.9, 0.3], categorical="auto").fit(table, y)
    with pytest.raises(DataError, match="missing in row 3, column colour"):
        rg.NadarayaWatson(categorical="auto").fit(table.assign(colour=table["colour"].where(np.arange(71) != 3)), y)
    with pytest.raises(DataError, match=r"stands in row 0, column colour.*categorical=\['colour'\]"):
        rg.NadarayaWatson().fit(table, y)


def test_a_table_of_another_shape_is_refused():
    x = np.stack([np.arange(9.0), np.arange(9) % 2], 1)
    model = rg.NadarayaWatson(categorical=[1]).fit(x, x[:, 0])
    for ask in (model.predict, lambda wrong: model.partial_fit(wrong, x[:, 0])):
        with pytest.raises(RegardError, match="1 features"):
            ask(x[:, :1])
        with pytest.raises(RegardError, match="2D array"):
            ask(x[:, 0])
    with pytest.raises(RegardError, match="2D array"):
        rg.NadarayaWatson(categorical=[1]).fit(x[:, 0], x[:, 0])
