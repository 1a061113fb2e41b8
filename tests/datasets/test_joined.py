"""Long pairs, joined from short ones of one side of the split."""

from collections import Counter
from pathlib import Path

import pytest

from regard.datasets import Pairs, joined, numbers, pairs, tokenise
from regard.errors import ChoiceError, DataError

EXCERPT = Path(__file__).parent / "tatoeba_excerpt.tsv"


def parts_of(pair, short):
    """The short pairs whose sources make up a long one, from the left, the longest first."""
    rest, found = pair.source, []
    while rest:
        part = max((one for one in short if (rest + " ").startswith(one.source + " ")), key=lambda one: len(one.source))
        found.append(part)
        rest = rest[len(part.source) + 1 :]
    return found


def test_joined_pairs_have_the_lengths_asked_for_and_at_most_so_many_sentences():
    short = pairs(EXCERPT)
    long = joined(short, 400, words=(11, 40), sentences=4)
    counted = Counter(len(tokenise(pair.source)) for pair in long)
    assert set(counted) == set(range(11, 41))
    assert max(counted.values()) < 4 * 400 / 30  # each length is as likely
    assert max(len(parts_of(pair, short)) for pair in long) == 4


def test_all_sentences_of_a_joined_pair_are_on_its_side_of_the_split():
    short = Pairs([(f"word {i} .", "mot .") for i in range(2000)])
    sides = {pair.source: side for side, part in enumerate(short.split()) for pair in part}
    long = joined(short, 3000, words=(3, 18))
    split = long.split()
    assert all(len(part) > 10 for part in split)
    for side, part in enumerate(split):
        assert {sides[one.source] for pair in part for one in parts_of(pair, short)} == {side}
    assert (
        long[100:200].split().train
        == Pairs(long.take(range(100, 200)), keys=map(long.key, range(100, 200))).split().train
    )


def test_gold_links_are_joined():
    short = numbers(300, words=(1, 4))
    long = joined(short, 50, words=(6, 12))
    for pair in long:
        i = j = 0
        sure = set()
        for part in parts_of(pair, short):
            sure |= {(i + a, j + b) for a, b in part.alignment.sure}
            i, j = i + len(part.source.split()), j + len(part.target)
        assert set(pair.alignment.sure) == sure
        assert pair.target == "".join(part.target for part in parts_of(pair, short))


def test_a_seed_gives_the_same_pairs():
    short = pairs(EXCERPT)
    assert joined(short, 20, seed=5) == joined(short, 20, seed=5) != joined(short, 20, seed=6)


def test_joining_refuses_what_cannot_be_reached():
    short = Pairs([("go .", "va !")])
    with pytest.raises(DataError, match="no 2 or fewer of these 1 pairs have 5 to 9 source words together"):
        joined(short, 1, words=(5, 9), sentences=2)
    with pytest.raises(ChoiceError, match=r"words=\(low, high\) needs"):
        joined(short, 1, words=(0, 9))
    with pytest.raises(ChoiceError, match="n must be 0 or more and sentences 1 or more; they came as 1 and 0"):
        joined(short, 1, sentences=0)
    assert len(joined(Pairs([]), 0)) == 0
