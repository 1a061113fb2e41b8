"""The picture of the length table: a panel for each kind of data, a curve for each model, and the printed numbers."""

import math

import pytest

from regard import plot
from regard.errors import ChoiceError, DataError
from regard.seq2seq.evaluation import LengthRow
from regard.seq2seq.length_table import BINS, Cell


def cell(data, words, model, level):
    rows = tuple(LengthRow(f"{low}-{high}", 7, level / low, 40 * level, 30.0, math.nan) for low, high in BINS)
    return Cell(data, words, model, rows, 0, 1.0, 2, 1, {})


CELLS = [cell("en-fr", 60, "bahdanau", 0.9), cell("numbers", 30, "gru", 0.5), cell("numbers", 60, "gru", 0.8),
         cell("numbers", 60, "bahdanau", 1.0)]  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_curve_shows_its_cell(language):
    figure = plot.lengths(CELLS, language=language)
    long, short, french, printed = figure.axes
    assert [len(ax.get_lines()) for ax in (long, short, french)] == [2, 2, 1]  # and the line where training ends
    assert long.get_lines()[0].get_ydata() == pytest.approx([80 / low for low, _ in BINS])
    assert short.get_lines()[1].get_xdata()[0] == 2.5
    assert list(french.get_lines()[0].get_ydata()) == pytest.approx([36.0] * len(BINS))
    said = " ".join(text.get_text() for text in printed.texts)
    assert "26.75" in said and "17.82" in said and printed.get_ylim() == french.get_ylim()
    assert "60" in long.get_title() and "30" in short.get_title()
    assert len(figure.legends[0].get_texts()) == 2


def test_numbers_alone_have_no_panel_of_bleu():
    assert len(plot.lengths(CELLS[1:]).axes) == 2


def test_other_languages_and_no_cells_are_refused():
    with pytest.raises(ChoiceError, match="'en', 'zh'"):
        plot.lengths(CELLS, language="fr")
    with pytest.raises(DataError, match="no cells"):
        plot.lengths([])
