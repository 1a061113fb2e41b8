"""The worked examples: their numbers, their pictures, and the scripts that show them."""

import math
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from matplotlib.image import imread

from regard import datasets, masks, scores
from regard.lab.examples import attention, gallery, kernel_regression, kernel_regression_plots
from regard.plot import _fonts
from regard.weights import Weights

ROOT = Path(__file__).parents[2]
# Those that draw a picture; the one that starts processes has a test of its own.
EXAMPLES = sorted({*(ROOT / "examples").glob("*.py")} - {ROOT / "examples" / "long_context.py"})


def test_same_keys_two_answers():
    desk = datasets.desk()
    for look, winner in ((attention.look_without_a_query, "red coffee cup"), (attention.look_with_a_query, "book")):
        weights = look(desk).weights.dense()
        assert desk.names[int(weights.argmax())] == winner
        assert (weights >= 0).all()
        torch.testing.assert_close(weights.sum(-1), torch.ones(1))


def test_looking_without_a_query_does_not_depend_on_it():
    desk = datasets.desk()
    other = desk._replace(query=torch.randn_like(desk.query))
    assert torch.equal(attention.look_without_a_query(desk).output, attention.look_without_a_query(other).output)


def test_attention_by_hand_to_four_decimals():
    expected = datasets.worked_example().weights
    torch.testing.assert_close(attention.attend_by_hand().weights.dense(), expected, atol=5e-5, rtol=0)


def test_average_pooling_is_the_mean():
    data = datasets.sine()
    torch.testing.assert_close(
        kernel_regression.pool(data, scores.uniform()).prediction, data.y_train.mean().expand(50)
    )


def test_nadaraya_watson_is_the_formula():
    data = datasets.sine()
    a = torch.softmax(-((data.x_test[:, None] - data.x_train) * 2.0).square() / 2, -1)
    prediction = kernel_regression.pool(data, scores.gaussian(2.0)).prediction
    torch.testing.assert_close(prediction, a @ data.y_train, atol=1e-5, rtol=0)


def test_learned_width_fits_better_and_looks_at_fewer_points():
    data = datasets.sine()
    learned = kernel_regression.learn_width(data)
    assert learned.losses[-1] < learned.losses[0]
    before, after = (kernel_regression.pool(data, scores.gaussian(w)) for w in (1.0, learned.w))
    assert (after.prediction - data.y_truth).square().mean() < (before.prediction - data.y_truth).square().mean()
    assert after.weights.entropy().mean() < before.weights.entropy().mean()
    roughness = [fit.prediction.diff().diff().square().sum() for fit in (before, after)]
    assert roughness[1] > roughness[0]


def test_learning_descends_to_where_the_slope_is_zero():
    data = datasets.sine()
    x, y = data.x_train.double(), data.y_train.double()

    def loss(w):
        scores = -((x[:, None] - x) * w).square() / 2
        return ((scores.fill_diagonal_(-torch.inf).softmax(-1) @ y) - y).square().mean()

    learned = kernel_regression.learn_width(data)
    assert learned.losses[0] == pytest.approx(loss(1.0).item(), rel=1e-4)
    assert loss(learned.w) <= min(loss(learned.w - 0.3), loss(learned.w + 0.3))


@pytest.fixture(scope="module")
def comparison():
    return kernel_regression_plots.compare()


def test_the_numbers_say_rougher_and_sharper(comparison):
    average, fixed, learned = (case.quality for case in (comparison.average, comparison.fixed, comparison.learned))
    assert average.roughness < fixed.roughness < learned.roughness
    assert average.entropy > fixed.entropy > learned.entropy
    assert average.entropy == pytest.approx(math.log(50), rel=1e-5)
    for case in (average, fixed, learned):
        assert case.training < case.left_out  # a point that sees itself is easier to predict
    assert average.training > fixed.training > learned.training
    assert learned.left_out == pytest.approx(comparison.losses[-1], rel=1e-3)


def test_the_five_pictures_show_what_the_lesson_says(comparison):
    pictures, words = kernel_regression_plots.PICTURES, kernel_regression_plots.ENGLISH
    drawn = {name: draw(comparison, words).axes[0] for name, draw in pictures.items()}
    assert len(drawn) == 5
    for name, case in {"1-average-pooling": "average", "2-fixed-width": "fixed", "4-learned-width": "learned"}.items():
        ax = drawn[name]
        dots, truth, prediction = (line.get_ydata() for line in ax.lines)
        assert (len(dots), len(truth), len(prediction)) == (50, 50, 50)
        torch.testing.assert_close(torch.tensor(prediction).float(), getattr(comparison, case).fit.prediction)
        assert (ax.get_xlim(), ax.get_ylim()) == ((0, 5), (-1, 5))
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["Truth", "Pred"]
    for name, case in {"3-fixed-width-weights": "fixed", "5-learned-width-weights": "learned"}.items():
        ax = drawn[name]
        shown = torch.tensor(ax.images[0].get_array()).float()
        torch.testing.assert_close(shown, getattr(comparison, case).fit.weights.dense())
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("Sorted training inputs", "Sorted testing inputs")


def test_both_languages_say_the_same(comparison):
    languages = kernel_regression_plots.LANGUAGES
    english, chinese = (kernel_regression_plots.table(comparison, words) for words in languages.values())
    assert re.findall(r"\d+\.\d{3}", english) == re.findall(r"\d+\.\d{3}", chinese) != []
    ends = [re.search(r"\d$", line) and kernel_regression_plots._width(line) for line in chinese.splitlines()]
    assert len(set(ends)) == 1  # columns stand below each other though Chinese is twice as wide
    assert "学到的" in gallery.PICTURES["04-kernel-regression-4-learned-width-zh"]().axes[0].get_title()


def test_copied_recipe_sees_only_the_future():
    x = torch.randn(7, 3)
    weights = Weights(x, x, mask=masks.allow(attention.future_only_mask(7)))
    assert weights.empty_rows().tolist() == [False] * 6 + [True]
    assert not weights.dense().tril().any()


def test_lorenz_is_the_path_of_its_equations():
    path = attention.lorenz(2000, 2.0).double()
    speed = (path[2:] - path[:-2]) / (2 * 2.0 / 2000)
    x, y, z = path[1:-1].unbind(-1)
    flow = torch.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z], -1)
    assert (speed - flow).norm() < 1e-3 * flow.norm()


def test_gallery_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(gallery.PICTURES, "10-long-window", lambda: gallery.long_window(5_000))
    monkeypatch.setitem(gallery.PICTURES, "11-deep-zoom", lambda: gallery.deep_zoom(3_000))
    with warnings.catch_warnings():
        warnings.simplefilter("error" if _fonts.find_cjk_family() else "ignore")
        files = gallery.write(tmp_path / "made" / "here")
    assert [path.stem for path in files] == list(gallery.PICTURES)
    for path in files:
        picture = imread(path)
        assert min(picture.shape[:2]) > 300
        assert picture[..., :3].std() > 0.01  # something is on it


def test_gallery_shows_the_empty_row_hatched():
    figure = gallery.copied_recipe()
    assert [sum(bool(patch.get_hatch()) for patch in ax.patches) for ax in figure.axes] == [0, 1, 0]


SAID = {
    "desk": ["no query: the red coffee cup", '"I want to read": the book'],
    "self_attention_by_hand": ["0.2374  0.1440  0.2374  0.1440  0.2374"],
    "kernel_regression": ["w = 3.45 was learned", "0.589              0.295", "训练误差               0.959"],
    "saturation": ["q.k/sqrt(d_k)"],
}


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_says_what_it_should(script, tmp_path):
    picture, source = tmp_path / "picture.png", script.read_text(encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-X", "utf8", script, picture], capture_output=True, encoding="utf-8", check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert [text for text in SAID[script.stem] if text not in run.stdout] == []
    assert picture.is_file() == ("[picture.png]" in source)
    assert picture.is_dir() == ("[folder]" in source)
