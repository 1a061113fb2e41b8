"""Pairs: a sequence that is split by a hash of the source sentence."""

import hashlib
import pickle
import re
import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.datasets import Alignment, Pair, Pairs, numbers
from regard.errors import ChoiceError, FormatError

LINKS = st.frozensets(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=12)


def side_by_the_rule(source):
    text = " ".join(re.findall(r"\w+|[^\w\s]", unicodedata.normalize("NFKC", source).lower()))
    byte = hashlib.sha256(text.encode("utf-8")).digest()[0]
    return "test" if byte < 5 else "validation" if byte < 10 else "train"


def test_split_follows_the_hash_of_the_source():
    pairs = numbers(3000, words=(1, 12))
    split = pairs.split()
    for name in split._fields:
        part = getattr(split, name)
        assert {side_by_the_rule(pair.source) for pair in part} == {name}
        assert list(part) == [pair for pair in pairs if side_by_the_rule(pair.source) == name]
        assert (part.source_language, part.target_language) == ("en", "zh")


def test_split_keeps_2_percent_for_each_test():
    counts = Counter(side_by_the_rule(f"sentence {i} .") for i in range(50_000))
    assert [len(part) for part in Pairs([(f"sentence {i} .", "x") for i in range(50_000)]).split()] == [
        counts[name] for name in ("train", "validation", "test")
    ]
    assert abs(counts["test"] / 50_000 - 5 / 256) < 0.003


@given(words=st.lists(st.sampled_from(["Go", "on", "été", "!", ",", "ﬁn"]), min_size=1, max_size=6))
def test_case_spaces_and_compatible_letters_do_not_move_a_sentence(words):
    spellings = (" ".join(words), "  ".join(words).upper().replace("É", "E\u0301"), " ".join(words).replace("ﬁ", "fi"))
    parts = Pairs([(text, "x") for text in spellings]).split()
    assert sorted(len(part) for part in parts) == [0, 0, 3]


def test_slices_are_pairs_and_items_are_not():
    pairs = numbers(11)
    assert isinstance(pairs[2:5], Pairs) and len(pairs[2:5]) == 3
    assert pairs[2:5][1] is pairs[3]
    assert list(pairs[::-1]) == list(reversed(pairs)) == list(pairs)[::-1]
    assert pairs[3] in pairs and pairs.index(pairs[3]) == 3
    with pytest.raises(IndexError):
        pairs[11]


def test_equal_pairs_are_equal_and_survive_pickle():
    pairs = numbers(7)
    assert pickle.loads(pickle.dumps(pairs)) == pairs == numbers(7)  # noqa: S301  our own bytes
    assert hash(pairs) == hash(numbers(7))
    assert pairs != numbers(7, target="fr") and pairs != pairs[:6]


def test_pairs_cannot_be_changed():
    pairs = numbers(2)
    with pytest.raises(TypeError):
        pairs[0] = pairs[1]
    with pytest.raises(AttributeError):
        pairs.target_language = "fr"


def test_pairs_show_their_number_languages_and_first_pair():
    pairs = Pairs([("go .", "va !"), ("run .", "cours !")])
    assert repr(pairs) == "<2 pairs, en -> fr: 'go .' -> 'va !', ...>"
    assert repr(pairs[:1]) == "<1 pair, en -> fr: 'go .' -> 'va !'>"
    assert repr(pairs[:0]) == "<0 pairs, en -> fr>"
    assert len(repr(numbers(2, words=(60, 60)))) < 150


def test_pairs_are_made_of_any_two_texts():
    assert list(Pairs([("a", "b"), ["c", "d"]])) == [Pair("a", "b", None), Pair("c", "d", None)]


@pytest.mark.plain
def test_pairs_refuse_what_is_not_two_texts():
    with pytest.raises(ChoiceError, match="pair 1 must be a source and a target, two texts; it came as 'no'"):
        Pairs([("a", "b"), "no"])
    with pytest.raises(ChoiceError, match="pair 0 must be a source and a target"):
        Pairs([("a", 3)])
    with pytest.raises(ChoiceError, match="each pair has one key: 1 pairs and 2 keys came"):
        Pairs([("a", "b")], keys=["a", "c"])


@given(sure=LINKS, possible=LINKS)
def test_alignment_survives_the_pharaoh_format(sure, possible):
    alignment = Alignment(tuple(sorted(sure)), tuple(sorted(possible - sure)))
    assert Alignment.from_pharaoh(alignment.pharaoh()) == alignment


def test_pharaoh_format_is_read_as_others_write_it():
    assert Alignment.from_pharaoh("2-1 0-0 1?2 1p3 0-0 0p0\n") == Alignment(((0, 0), (2, 1)), ((1, 2), (1, 3)))
    assert Alignment.from_pharaoh("") == Alignment(())
    with pytest.raises(FormatError, match=r"a link of an alignment is written as 0-0.*'1:2' came"):
        Alignment.from_pharaoh("0-0 1:2")
