"""The tokeniser: words and punctuation, and back."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.datasets import detokenise, tokenise

EXCERPT = (Path(__file__).parent / "tatoeba_excerpt.tsv").read_text(encoding="utf-8").splitlines()
LANGUAGES = ("en", "fr", "zh", "digits", "es")


def one_space(text):
    return re.sub(r"\s+", " ", text).replace("’", "'").strip()


@pytest.mark.parametrize(("column", "language"), [(0, "en"), (1, "fr")])
def test_ordinary_sentences_come_back_but_for_their_kind_of_spaces(column, language):
    for row in EXCERPT:
        text = row.split("\t")[column]
        spaced = re.sub(r"(?<=\w)([!?])", r" \1", text) if language == "fr" else text  # some forget that space
        assert one_space(detokenise(tokenise(text, language), language)) == one_space(spaced)


@pytest.mark.parametrize("language", LANGUAGES)
@given(text=st.text(st.sampled_from("abcéLsSlt 's-.,:!?\"'’«»()/$9三、\u00a0\u202f…_"), max_size=30))
def test_tokens_hold_every_visible_letter_in_order(language, text):
    apostrophes = text if language in {"zh", "digits"} else text.replace("’", "'")
    assert "".join(tokenise(text, language)) == "".join(apostrophes.split())


PHRASES = {
    "en": ["Tom 's", "don't", "well-known", "3.14", "a.m.", "they 've ,", "who ?", "( yes )", "no ..."],
    "fr": [
        "l' homme",
        "dit -il",
        "va -t-elle",
        "aujourd'hui",
        "hors-la-loi",
        "qu' elle ,",
        "donne -le -moi !",
        "« non »",
    ],
    "zh": ["三", "百", "五 、", "米 。", "GPS ，", "2.13"],
    "digits": [*"0123456789", "5 ,"],
    "es": ["¿ cómo estás ?", "niño ,"],
}


@pytest.mark.parametrize("language", LANGUAGES)
@given(data=st.data())
def test_phrases_survive_writing_and_reading(language, data):
    tokens = " ".join(data.draw(st.lists(st.sampled_from(PHRASES[language]), max_size=9))).split()
    assert tokenise(detokenise(tokens, language), language) == tokens


@pytest.mark.parametrize(
    ("text", "language", "tokens"),
    [
        ("I'm at my parents' place.", "en", ["I", "'m", "at", "my", "parents", "'", "place", "."]),
        ("At 10:30 a.m. on 9/11?", "en", ["At", "10:30", "a.m.", "on", "9", "/", "11", "?"]),
        ("He paid $1,234.50 -- twice...", "en", ["He", "paid", "$", "1,234.50", "--", "twice", "..."]),
        ("Donne-le-moi, hors-la-loi\u202f!", "fr", ["Donne", "-le", "-moi", ",", "hors-la-loi", "!"]),
        ("Qu’y a-t-il ?", "fr", ["Qu'", "y", "a", "-t-il", "?"]),
        ("¿Cómo estás?", "es", ["¿", "Cómo", "estás", "?"]),
        ("他有2.13米，喜欢GPS。", "zh", ["他", "有", "2.13", "米", "，", "喜", "欢", "GPS", "。"]),
        ("co\u00adop\u200berate e\u0301te\u0301", "fr", ["cooperate", "été"]),
        ("", "en", []),
        (" \t", "zh", []),
    ],
)
def test_words_of_a_text(text, language, tokens):
    assert tokenise(text, language) == tokens


@pytest.mark.parametrize(
    ("tokens", "language", "text"),
    [
        (["he", "said", '"', "no", '"', ",", "twice"], "en", 'he said "no", twice'),
        (["the", "girls", "'", "night"], "en", "the girls' night"),
        (["«", "oui", "»", ";", "dit", "-elle"], "fr", "«\u00a0oui\u00a0»\u00a0; dit-elle"),
        (["three", "hundred"], "zh", "three hundred"),
        (["3", "0", ",", "5"], "digits", "30, 5"),
        ([], "fr", ""),
    ],
)
def test_ordinary_writing_of_tokens(tokens, language, text):
    assert detokenise(tokens, language) == text
