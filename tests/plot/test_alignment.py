"""The picture of an alignment: words, weights, dots on found links and rings around gold ones."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex
from matplotlib.patches import Ellipse

from regard import analysis, plot
from regard.datasets import numbers, tokenise
from regard.errors import ChoiceError, ShapeError
from regard.plot import _fonts
from regard.plot._figure import BLUE

needs_font = pytest.mark.skipif(_fonts.find_cjk_family() is None, reason="no Chinese font is installed")
PAIR = numbers(3, words=(7, 7), seed=4)[0]


def translation(pair, language="zh"):
    source, target = tokenise(pair.source), tokenise(pair.target, language)
    scores = torch.randn(len(target), len(source), generator=torch.Generator().manual_seed(1))
    for i, j in pair.alignment.sure:
        scores[j, i] += 3
    return SimpleNamespace(weights=scores.softmax(-1), tokens=target, source_tokens=source)


def rings(ax, style):
    found = [patch for patch in ax.patches if isinstance(patch, Ellipse) and patch.get_linestyle() == style]
    assert all(to_hex(patch.get_edgecolor()) == BLUE for patch in found)
    return sorted(tuple(map(int, patch.center)) for patch in found)


def render(ax):
    ax.get_figure().savefig("/dev/null", format="png")


def test_found_links_are_dots_and_gold_links_are_rings():
    t = translation(PAIR)
    found = analysis.align(t)
    ax = plot.alignment(found, PAIR.alignment)
    render(ax)
    np.testing.assert_allclose(ax.images[0].get_array(), t.weights.numpy(), rtol=1e-6)
    (dots,) = ax.lines
    assert sorted(zip(*map(list, dots.get_data()), strict=True)) == list(found.links)
    assert rings(ax, "-") == list(PAIR.alignment.sure)
    assert rings(ax, ":") == list(PAIR.alignment.possible)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["found", "sure", "possible"]


def test_words_of_the_source_stand_across_and_those_of_the_target_down():
    t = translation(PAIR)
    ax = plot.alignment(t)
    render(ax)
    labels = [[tick.get_text() for tick in axis.get_ticklabels()] for axis in (ax.xaxis, ax.yaxis)]
    assert labels == [t.source_tokens, t.tokens]
    assert ax.get_legend() is None and not ax.patches


def test_arguments_of_align_are_handed_on():
    t = SimpleNamespace(weights=[[0.2, 0.3, 0.5]], tokens=["x"], source_tokens=["▁a", "b", "▁c"])
    assert len(plot.alignment(t, links=0.4).lines[0].get_xdata()) == 2
    with pytest.raises(ChoiceError, match=r"the alignment is made already: links are arguments of analysis.align"):
        plot.alignment(analysis.align(t), links=0.4)
    with pytest.raises(ShapeError, match="gold has a link 3-0"):
        plot.alignment(t, "3-0")
    with pytest.raises(ChoiceError, match="names are three texts"):
        plot.alignment(t, names=["a", "b"])


@needs_font
def test_chinese_texts_have_glyphs_and_an_upright_label(recwarn):
    ax = plot.alignment(
        translation(PAIR), PAIR.alignment, title="对齐", xlabel="源句", ylabel="译文", names=("找到", "确定", "可能")
    )
    render(ax)
    assert not [warning for warning in recwarn if "glyph" in str(warning.message).lower()]
    assert ax.yaxis.label.get_text() == "译\n文"
    assert _fonts.find_cjk_family() in ax.get_legend().get_texts()[0].get_fontfamily()


def test_title_stands_above_the_legend():
    ax = plot.alignment(translation(PAIR), PAIR.alignment, title="numbers")
    render(ax)
    assert ax.title.get_window_extent().y0 >= ax.get_legend().get_window_extent().y1 - 1


@pytest.mark.parametrize(("words", "language"), [(1, "zh"), (60, "zh"), (26, "digits")])
def test_pictures_of_any_length_are_drawn(words, language):
    pair = numbers(1, words=(words, words), target=language)[0]
    ax = plot.alignment(translation(pair, language), pair.alignment)
    render(ax)
    assert max(ax.get_figure().get_size_inches()) <= 14
