"""`plot.regression`: curves, dots and bands, from numbers and from anything that predicts."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.image import imread

from regard import NadarayaWatson, plot
from regard.errors import ChoiceError, ShapeError
from regard.plot import _fonts, _regression


class Parabola:
    """Just enough of an estimator: plot must not need ours."""

    n_features_in_ = 1

    def __init__(self, x, y):
        self.X_, self.y_ = x, y

    def predict(self, X):
        return X[:, 0] ** 2

    def confidence_band(self, X, level):
        return self.predict(X) - level, self.predict(X) + level


MODEL = Parabola(torch.tensor([[3.0], [1.0], [2.0]]), np.array([8.0, 2.0, 4.0]))


def line(ax, label):
    (found,) = [line for line in ax.lines if line.get_label() == label]
    return found.get_xdata(), found.get_ydata()


def test_truth_prediction_dots_and_band_are_drawn():
    x = torch.linspace(0, 5, 13)
    ax = plot.regression(
        x, x.sin()[:, None], truth=x.cos(), train=([1, 2, 3], [2, 1, 0]), band=(x.sin() - 1, x.sin() + 1)
    )
    ax.figure.canvas.draw()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["Truth", "Pred"]
    assert ax.lines[0].get_xydata().tolist() == [[1, 2], [2, 1], [3, 0]]
    np.testing.assert_allclose(line(ax, "Truth")[1], x.cos())
    np.testing.assert_allclose(line(ax, "Pred")[1], x.sin())
    (band,) = ax.collections
    low, high = band.get_paths()[0].get_extents().intervaly
    assert (low, high) == pytest.approx((float(x.sin().min()) - 1, float(x.sin().max()) + 1))


def test_given_limits_are_kept_and_default_limits_show_everything():
    x = torch.linspace(-20, 20, 13)
    ax = plot.regression(x, x, xlim=(0, 5), ylim=(-1, 5))
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 5), (-1, 5))
    ax = plot.regression(x, x)
    assert ax.get_xlim()[0] <= -20 and ax.get_ylim()[1] >= 20


def test_points_out_of_order_are_drawn_in_order():
    x = torch.tensor([2.0, 0.0, 1.0])
    ax = plot.regression(x, 10 * x, truth=20 * x, band=(x, 30 * x))
    for label, factor in (("Truth", 20), ("Pred", 10)):
        assert line(ax, label)[0].tolist() == [0, 1, 2]
        assert line(ax, label)[1].tolist() == [0, factor, 2 * factor]


def test_categories_have_marks_of_their_own_and_no_line_between():
    x, low, high = [0, 1, 2], [0.5, 1, 2], [1.5, 4, 4]
    train = ([0, 0, 1, 2], [1, 1, 2, 3])
    ax = plot.regression(x, [1, 2, 3], truth=[1, 1, 1], band=(low, high), train=train, levels=["red", "blue", "红"])
    ax.figure.canvas.draw()
    assert [text.get_text() for text in ax.get_xticklabels()] == ["red", "blue", "红"]
    assert {line.get_linestyle() for line in ax.lines} == {"None"}
    assert line(ax, "Pred")[1].tolist() == [1, 2, 3]
    (bars,) = ax.collections
    np.testing.assert_allclose([part[:, 1] for part in bars.get_segments()], np.transpose([low, high]))
    dots = ax.lines[0].get_xydata()
    assert dots[:, 1].tolist() == train[1]
    assert 0 < np.abs(dots[:, 0] - train[0]).max() <= _regression.JITTER, "beside their level, and nearer to no other"
    assert dots[0, 0] != dots[1, 0], "two of a level do not hide each other"


@pytest.mark.parametrize("arguments", [(MODEL,), (torch.linspace(1, 3, 400), MODEL)])
def test_an_estimator_is_asked_for_its_curve(arguments):
    ax = plot.regression(*arguments, band=0.5, truth=lambda x: x + 1)
    x, y = line(ax, "Pred")
    np.testing.assert_allclose(y, x**2)
    np.testing.assert_allclose(line(ax, "Truth")[1], x + 1)
    assert (x[0], x[-1]) == (1, 3)
    assert ax.lines[0].get_xydata().tolist() == [[3, 8], [1, 2], [2, 4]]
    low, high = ax.collections[0].get_paths()[0].get_extents().intervaly
    assert (low, high) == pytest.approx((0.5, 9.5))


def categories(kind):
    """Three categories, whose means are 10, 20 and 30; x in the words of the caller."""
    x = np.array(["a", "b", "c"] if kind is str else [1.0, 2.5, 4.0])
    frame = pd.DataFrame({"kind": np.tile(x, 4)})
    return x, NadarayaWatson(bandwidth=0.0, categorical=["kind"]).fit(frame, np.tile([10.0, 20, 30], 4))


@pytest.mark.parametrize("kind", [str, float])
def test_a_feature_of_categories_has_a_mark_for_each(kind):
    x, model = categories(kind)
    ax = plot.regression(model, band=0.95, truth=lambda given: 10.0 * (1 + np.searchsorted(x, given)))
    assert [text.get_text() for text in ax.get_xticklabels()] == (["a", "b", "c"] if kind is str else ["1", "2.5", "4"])
    assert {line.get_linestyle() for line in ax.lines} == {"None"} and ax.get_xlabel() == "kind"
    for label in ("Pred", "Truth"):
        assert [one.tolist() for one in line(ax, label)] == [[0, 1, 2], [10, 20, 30]]
    assert len(ax.collections[0].get_segments()) == 3
    np.testing.assert_allclose(ax.lines[0].get_xdata(), model.X_[:, 0], atol=_regression.JITTER)


@pytest.mark.parametrize("kind", [str, float])
def test_categories_are_drawn_at_the_given_x(kind):
    x, model = categories(kind)
    ax = plot.regression(x[[2, 0]], model, train=(x[[1]], [7.0]), levels=["one", "two", "three"])
    assert [one.tolist() for one in line(ax, "Pred")] == [[0, 2], [10, 30]]
    assert ax.lines[0].get_ydata().tolist() == [7]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["one", "two", "three"]
    with pytest.raises(ChoiceError, match=r"x holds .*, which is none of the categories that were fitted: (a|1), "):
        plot.regression(["z"] if kind is str else [3.0], model)


def test_the_name_of_the_feature_names_the_axis():
    named = Parabola(MODEL.X_, MODEL.y_)
    named.feature_names_in_ = np.array(["size"], dtype=object)
    assert plot.regression(named).get_xlabel() == "size"
    assert plot.regression(named, xlabel="m²").get_xlabel() == "m²"
    assert plot.regression(MODEL).get_xlabel() == "x"


def test_regression_draws_on_the_given_axes_and_shows_nothing(monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *_: pytest.fail("shown by force"))
    ax = plt.figure().subplots()
    assert plot.regression([0, 1], [0, 1], ax=ax) is ax
    plt.close("all")
    plot.regression([0, 1], [0, 1])
    assert plt.get_fignums() == []


@pytest.mark.skipif(_fonts.find_cjk_family() is None, reason="no Chinese font here")
def test_chinese_texts_have_all_their_glyphs():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = plot.regression(
            [0, 1], [0, 1], truth=[1, 0], title="核回归", xlabel="面积", ylabel="价格", labels=("真实", "预测")
        )
        ax.figure.canvas.draw()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["真实", "预测"]
    assert _fonts.find_cjk_family() in ax.get_legend().get_texts()[0].get_fontfamily()


def test_many_dots_are_drawn_small():
    many = np.linspace(0, 1, 3_000)
    assert plot.regression([0, 1], [0, 1], train=(many, many)).lines[0].get_markersize() < 2
    assert plot.regression([0, 1], [0, 1], train=(many[:9], many[:9])).lines[0].get_markersize() > 2


def two_features():
    model = Parabola(torch.zeros(3, 2), torch.zeros(3))
    model.n_features_in_ = 2
    return model


def without_data():
    model = Parabola(None, None)
    del model.X_
    return model


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda: plot.regression([0, 1, 2], [0, 1, 2, 3]), ShapeError, r"prediction must hold one number for each of"),
        (lambda: plot.regression([0, 1], [0, 1], train=([1], [1, 2])), ShapeError, r"train\[1\] must .* the 1 points"),
        (lambda: plot.regression([0, 1], [0, 1], band=([0, 1], [2])), ShapeError, r"band\[1\] must hold"),
        (lambda: plot.regression([0, 1], [0, 1], band=0.95), ChoiceError, r"band=\(low, high\)"),
        (lambda: plot.regression([0, 1]), ChoiceError, "only x came"),
        (lambda: plot.regression(two_features()), ShapeError, "one feature, Parabola was fitted on 2"),
        (lambda: plot.regression(without_data()), ChoiceError, r"regression\(x, model\)"),
    ],
)
def test_regression_refuses_wrong_arguments(draw, error, message):
    with pytest.raises(error, match=message):
        draw()


def test_a_model_without_its_data_is_drawn_at_the_given_x():
    ax = plot.regression([1, 2, 3], without_data())
    assert line(ax, "Pred")[1].tolist() == [1, 4, 9]


def test_a_million_points_are_drawn_as_their_density(tmp_path):
    x, y = np.random.default_rng(0).normal(size=(2, 1_000_000))
    ax = plot.regression([-4, 4], [0, 0], train=(x, y), xlim=(-3, 3), ylim=(-3, 3))
    (mesh,) = ax.collections
    counts = mesh.get_array()
    assert counts.shape == _regression.DENSITY_BINS[::-1] and counts.sum() == 1_000_000
    assert counts.mask.any() and counts.min() == 1  # a cell without points has no colour
    ax.figure.savefig(tmp_path / "density.png")
    pixels = imread(tmp_path / "density.png")[..., :3].reshape(-1, 3)
    assert len(np.unique(pixels, axis=0)) > 100, "shades, and not one blue area"
    assert [line.get_label() for line in ax.lines] == ["Pred"]


def test_the_density_of_few_values_has_a_column_for_each():
    x, y = np.repeat([0, 1, 2], 10_000), np.tile(np.linspace(0, 1, 10_000), 3)
    ax = plot.regression([0, 1, 2], [0, 1, 2], train=(x, y), levels=["a", "b", "c"])
    counts = ax.collections[0].get_array()
    assert counts.sum(0).tolist() == [10_000, None, 10_000, None, 10_000]
    assert ax.get_xlim()[0] < -_regression.JITTER and ax.get_xlim()[1] > 2 + _regression.JITTER
