"""The length table: its file, and that a cell is made from sources that its model has never seen."""

import math

import pytest

from regard import datasets
from regard.errors import ChoiceError, FormatError
from regard.seq2seq import length_table
from regard.seq2seq.length_table import BINS, PLACES, Place, make, missing, read, write

NUMBERS = Place("numbers", 30, "gru")


@pytest.fixture
def small(monkeypatch):
    """Recipes that take a second."""
    options = {"steps": 4, "batch_tokens": 200, "validate_every": 2}
    recipe = length_table.Recipe({"embedding": 8, "hidden": 8}, {"embedding": 8, "heads": 2, "layers": 1}, options,
                                 {"learning_rate": 1e-3}, pairs=400, tested=3, beam=1)  # fmt: skip
    monkeypatch.setattr(length_table, "RECIPES", {"numbers": recipe, "en-fr": recipe})
    monkeypatch.setattr(length_table, "DRAWN", 200)
    length_table._number_tests.cache_clear()
    yield
    length_table._number_tests.cache_clear()


def test_table_that_comes_with_regard_is_whole_or_says_what_is_missing():
    cells = read()
    places = [cell.place for cell in cells]
    assert len(set(places)) == len(places) and {*places, *missing(cells)} == set(PLACES)
    for cell in cells:
        assert [row.words for row in cell.rows] == [f"{low}-{high}" for low, high in BINS]
        assert all(0 <= row.exact_match <= 1 and 0 <= row.bleu <= 100 and row.sentences for row in cell.rows)
        assert {"regard", "torch", "sacrebleu"} <= set(cell.versions)


def test_table_comes_back_from_its_file(tmp_path):
    cells = read()
    write(tmp_path / "table.json", cells[::-1])
    again = read(tmp_path / "table.json")
    assert repr(again) == repr(tuple(sorted(cells, key=lambda cell: PLACES.index(cell.place))))  # NaN is not NaN


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"format": "regard-length-table", "version": 2, "cells": []}',
                '{"format": "regard-length-table", "version": 1, "cells": [{"rows": []}]}'],
)  # fmt: skip
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "table.json").write_text(content)
    with pytest.raises(FormatError, match=r"table\.json"):
        read(tmp_path / "table.json")


@pytest.mark.parametrize("model", ["gru", "transformer"])
def test_cell_is_made_once(small, tmp_path, model):
    place = Place("numbers", 30, model)
    cell = make(place, tmp_path)
    assert cell.place == place and cell.steps == 4 and cell.minutes >= 0
    assert [(row.words, row.sentences) for row in cell.rows] == [(f"{low}-{high}", 3) for low, high in BINS]
    again = make(place, tmp_path, report=lambda run: pytest.fail("it was trained again"))
    assert [row.words for row in again.rows] == [row.words for row in cell.rows] and again.minutes == cell.minutes


def test_cell_that_was_interrupted_goes_on_to_the_same_result(small, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        make(NUMBERS, tmp_path / "cut", report=lambda run: run.steps < 2)
    steps = []
    cut = make(NUMBERS, tmp_path / "cut", report=lambda run: steps.append(run.steps))
    whole = make(NUMBERS, tmp_path / "whole")
    assert steps == [4] and repr(cut.rows) == repr(whole.rows)


def test_tested_numbers_are_of_their_length_and_never_trained_on(small):
    learned, validation = length_table._pairs(NUMBERS, length_table.RECIPES["numbers"], None)
    known = {pair.source for pair in learned} | {pair.source for pair in validation}
    for (low, high), pairs in zip(BINS, length_table._number_tests(3), strict=True):
        assert all(low <= len(pair.source.split()) <= high and pair.source not in known for pair in pairs)
    assert max(len(pair.source.split()) for pair in learned) == 30


def test_joined_sentences_are_of_one_side_of_the_split(small, tmp_path):
    texts = ["one two three .", "four five six seven eight ?", "nine , ten eleven twelve thirteen fourteen fifteen ."]
    corpus = datasets.Pairs([(f"{i} {text}", f"f{i} {text}") for i in range(400) for text in texts])
    place = Place("en-fr", 60, "bahdanau")
    cell = make(place, tmp_path, corpus)
    assert [row.words for row in cell.rows] == [f"{low}-{high}" for low, high in BINS]
    assert all(math.isnan(row.alignment_error_rate) for row in cell.rows)
    sources = {pair.source for pair in corpus.split().test}
    tests = list(length_table._joined_tests(corpus, 3))
    assert all(any(pair.source.startswith(source) for source in sources) for pairs in tests for pair in pairs)


def test_what_the_table_does_not_have_is_refused(tmp_path):
    with pytest.raises(ChoiceError, match="no cell"):
        make(Place("en-fr", 30, "gru"), tmp_path)
    with pytest.raises(ChoiceError, match="corpus="):
        make(Place("en-fr", 60, "gru"), tmp_path)
