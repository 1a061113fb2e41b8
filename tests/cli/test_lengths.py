"""`regard lengths`: the stored table, its picture, and a table that is made anew."""

import pytest

from regard.seq2seq import length_table
from regard.seq2seq.length_table import Place


@pytest.fixture
def small(monkeypatch):
    """One cell of numbers and one of English to French, each made in a second."""
    options = {"steps": 2, "batch_tokens": 200}
    recipe = length_table.Recipe({"embedding": 8, "hidden": 8}, {}, options, {}, pairs=400, tested=2, beam=1)
    monkeypatch.setattr(length_table, "RECIPES", {"numbers": recipe, "en-fr": recipe})
    monkeypatch.setattr(length_table, "PLACES", (Place("numbers", 60, "gru"), Place("en-fr", 60, "gru")))
    monkeypatch.setattr(length_table, "DRAWN", 200)
    length_table._number_tests.cache_clear()
    yield
    length_table._number_tests.cache_clear()


def test_stored_table_is_printed_and_drawn(regard, tmp_path):
    said = regard("lengths", "--plot", tmp_path / "a.png", "--lang", "zh")
    assert said.code == 0 and "51-60" in said.out and "bahdanau" in said.out
    absent = length_table.missing(length_table.read())
    assert said.out.count("not trained yet") == len({(place.data, place.trained_words) for place in absent})
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_table_is_made_anew_and_shown_again(regard, small, tmp_path):
    made = regard("lengths", "--train", "--folder", tmp_path / "runs")
    assert made.code == 0 and "English to French needs --corpus" in made.out and "step 2 of 2" in made.out
    assert "not trained yet: en-fr up to 60 words: gru" in made.out
    again = regard("lengths", "--train", "--folder", tmp_path / "runs")
    assert "step 2 of 2" not in again.out
    shown = regard("lengths", "--folder", tmp_path / "runs")
    assert shown.code == 0 and shown.out.splitlines()[:3] == again.out.splitlines()[1:4]


def test_wrong_arguments_are_refused(regard, tmp_path):
    said = regard("lengths", "--corpus", tmp_path)
    assert said.code == 1 and "give --train too" in said.err
    said = regard("lengths", "--train", "--folder", tmp_path, "--corpus", tmp_path)
    assert said.code == 1 and "there is no such file" in said.err
    said = regard("lengths", "--folder", tmp_path)
    assert said.code == 1 and "length_table.json" in said.err
    said = regard("lengths", "--plot", tmp_path / "a.txt")
    assert said.code == 1 and "a.txt" in said.err
