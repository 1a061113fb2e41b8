"""Numbers in words: judged by num2words and cn2an, and linked to each other by construction."""

import cn2an
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from num2words import num2words

from regard.datasets import numbers, tokenise
from regard.datasets._number_words import chinese, digits, english, french
from regard.datasets._numbers import number_pair
from regard.errors import ChoiceError

# Every digit is 0 as often as not, so that gaps of all kinds occur.
SPARSE = st.lists(st.sampled_from("0000123456789"), min_size=1, max_size=16).map(lambda digits: int("".join(digits)))
VALUES = st.integers(0, 10**16 - 1) | st.integers(0, 9999) | SPARSE
TARGETS = ("zh", "fr", "digits")
DIGITS = {letter: digit for digit, letter in enumerate("零一二三四五六七八九")}


def text(tokens, between=""):
    return between.join(token.text for token in tokens)


@given(VALUES)
def test_english_is_that_of_num2words_without_and_and_hyphens(value):
    judged = num2words(value).replace("-", " ").replace(",", "").replace(" and ", " ")
    assert " ".join(english(value).words) == judged


@given(VALUES)
def test_french_is_that_of_num2words(value):
    assert text(french(english(value)), " ") == num2words(value, lang="fr")


@given(VALUES)
def test_digits_are_the_number(value):
    assert text(digits(english(value))) == str(value)


@given(VALUES)
@example(10**15)
@example(1_0000_0000_1000)
def test_cn2an_reads_our_chinese_as_the_number(value):
    assert cn2an.cn2an(text(chinese(english(value))), "strict") == value


@given(VALUES)
@example(1_0000_1000)
def test_chinese_is_that_of_cn2an_but_for_whole_groups_of_zeros(value):
    ours, theirs = text(chinese(english(value))), cn2an.an2cn(value)
    low, wan, yi, wan_yi = (value // 10**power % 10**4 for power in (0, 4, 8, 12))
    skips = (low >= 1000 and not wan and (yi or wan_yi)) or (wan >= 1000 and not yi and wan_yi)
    assert ours == theirs or (skips and ours.replace("零", "") == theirs.replace("零", ""))
    assert skips or ours == theirs


@pytest.mark.parametrize(
    ("value", "numeral"),
    [
        (10, "十"),
        (12, "十二"),
        (110, "一百一十"),
        (305, "三百零五"),
        (1010, "一千零一十"),
        (10_0000, "十万"),
        (10_1000, "十万一千"),
        (1_0000_1000, "一亿零一千"),  # without 零 it would be heard as 一亿一千万
        (1_0000_0000_0001, "一万亿零一"),
        (1_0001_0000_0000, "一万零一亿"),
    ],
)
def test_chinese_numerals_of_the_textbook(value, numeral):
    assert text(chinese(english(value))) == numeral


@pytest.mark.parametrize("target", TARGETS)
@given(values=st.lists(VALUES, min_size=1, max_size=3))
def test_links_stand_on_words_of_both_texts(target, values):
    pair = number_pair(values, target)
    words, tokens = tokenise(pair.source), tokenise(pair.target, target)
    sure, possible = map(set, pair.alignment)
    assert len(sure) == len(pair.alignment.sure) and len(possible) == len(pair.alignment.possible)
    assert not sure & possible
    assert all(0 <= i < len(words) and 0 <= j < len(tokens) for i, j in sure | possible)
    assert {j for _, j in sure | possible} == set(range(len(tokens)))  # every token comes from somewhere
    named = {i for i, word in enumerate(words) if word not in UNITS}
    assert {i for i, _ in sure} == named  # every digit word is said


UNITS = {"hundred", "thousand", "million", "billion", "trillion", "quadrillion"}
NAMES = {word: value for value in range(100) for word in [num2words(value)] if "-" not in word}


@given(VALUES)
def test_sure_links_of_chinese_join_a_digit_with_the_word_that_names_it(value):
    pair = number_pair([value])
    words = pair.source.split()
    for i, j in pair.alignment.sure:
        digit = 1 if pair.target[j] == "十" else DIGITS[pair.target[j]]
        assert digit in divmod(NAMES[words[i]], 10)
    unsure = set(range(len(pair.target))) - {j for _, j in pair.alignment.sure}
    assert {pair.target[j] for j in unsure} <= set("零十百千万亿")


@pytest.mark.parametrize("target", TARGETS)
@given(value=VALUES, power=st.integers(0, 15), digit=st.integers(2, 9))
def test_what_changes_together_has_a_sure_link(target, value, power, digit):
    """Another digit at one place changes one word and the token that says it."""
    old = value // 10**power % 10
    is_teen = power % 3 == 0 and value // 10 ** (power + 1) % 10 == 1
    assume(old >= 2 and old != digit and not is_teen)
    before, after = (number_pair([v], target) for v in (value, value + (digit - old) * 10**power))
    words = changes(before.source.split(), after.source.split())
    tokens = changes(tokenise(before.target, target), tokenise(after.target, target))
    assume(tokens is not None)  # French "et" comes and goes
    assert words is not None and len(words) == 1 and tokens
    linked = {j for i, j in before.alignment.sure if i in words}
    assert (
        linked == tokens
        if target != "fr"
        else tokens <= linked | {j for i, j in before.alignment.possible if i in words}
    )


def changes(before, after):
    """Positions at which two lists of one length differ."""
    return (
        {i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b} if len(before) == len(after) else None
    )


@pytest.mark.parametrize(
    ("value", "target", "links"),
    [
        (42, "zh", "0-0 0p1 1-2"),  # forty two: 四 十 二
        (12, "zh", "0-0 0-1"),  # twelve: 十 stands for the digit 1
        (12_000, "zh", "0-0 0p1 0-2 0p3 1p1 1p3"),  # twelve thousand: 一 万 二 千
        (300_000, "zh", "0-0 0p1 0p2 1p1 1p2 2p1 2p2"),  # three hundred thousand: 三 十 万
        (305, "zh", "0-0 0p1 0p2 1p1 1p2 2p2 2-3"),  # three hundred five: 三 百 零 五
        (42, "fr", "0-0 1-0"),  # quarante-deux
        (71, "fr", "0-0 0p1 0p2 1p1 1-2"),  # soixante et onze
        (1200, "fr", "0-0 1p0 2-1 2p2 3p2"),  # one thousand two hundred: mille deux cents
        (305, "digits", "0-0 0p1 1p1 2p1 2-2"),
        (0, "zh", "0-0"),
    ],
)
def test_links_are_as_documented(value, target, links):
    assert number_pair([value], target).alignment.pharaoh() == links


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("words", [(1, 1), (2, 20), (21, 29), (60, 60)])
def test_lengths_are_within_bounds_and_every_one_occurs(words, target):
    pairs = numbers(600, words=words, target=target)
    counted = {len(pair.source.split()) for pair in pairs}
    assert counted == set(range(words[0], words[1] + 1))
    assert pairs.target_language == target
    for pair in pairs:
        commas = pair.source.split().count("comma")
        assert (commas > 0) == (len(pair.source.split()) > 20)
        assert sum(pair.target.count(mark) for mark in ",、") == commas
        assert tokenise(pair.source) == pair.source.split()


def test_numbers_of_every_size_occur_at_a_short_length():
    values = {len(str(cn2an.cn2an(pair.target))) for pair in numbers(2000, words=(3, 3))}
    assert values == set(range(3, 17))


def test_a_seed_gives_the_same_numbers_and_another_seed_others():
    assert numbers(50, seed=3) == numbers(50, seed=3) == numbers(80, seed=3)[:50]
    assert numbers(50, seed=3) != numbers(50, seed=4)
    sources = [pair.source for pair in numbers(50, words=(1, 60), seed=3)]
    assert sources == [pair.source for pair in numbers(50, words=(1, 60), seed=3, target="fr")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": -1}, "n is a number of pairs, 0 or more, and came as -1"),
        ({"n": 3, "target": "de"}, "target must be one of 'zh', 'fr', 'digits'; it came as 'de'"),
        ({"n": 3, "words": (0, 4)}, r"words=\(low, high\) needs 1 <= low <= high; it came as \(0, 4\)"),
        ({"n": 3, "words": (5, 4)}, r"words=\(low, high\) needs 1 <= low <= high"),
    ],
)
def test_numbers_refuse_what_cannot_be_made(arguments, message):
    with pytest.raises(ChoiceError, match=message):
        numbers(**arguments)
