"""Numbers in English words with their translation, generated, with gold alignment."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import NamedTuple

from regard.datasets._alignment import Alignment, Link
from regard.datasets._draws import below, weighted
from regard.datasets._number_words import EnglishNumber, TargetToken, chinese, digits, english, french
from regard.datasets._pairs import Pair, Pairs
from regard.datasets._words import detokenise
from regard.errors import ChoiceError

MAX_WORDS_OF_A_NUMBER = 20  # an item with more words is a list of numbers
GROUPS = 6  # of three digits, the highest a single one: numbers below 10^16


class Target(NamedTuple):
    """A way to write numbers."""

    write: Callable[[EnglishNumber], list[TargetToken]]
    comma: str


TARGETS = {"zh": Target(chinese, "、"), "fr": Target(french, ","), "digits": Target(digits, ",")}


def numbers(n: int, words: tuple[int, int] = (3, 20), seed: int = 0, target: str = "zh") -> Pairs:
    """Make n pairs of a number in English words and its translation, with gold alignment.

    words: least and largest number of English words; each length is equally likely. Above 20 words an item is a list of
        numbers, each below 10^16, with "comma" between them: 、 in Chinese.
    seed: the same seed gives the same pairs, on every machine.
    target: "zh" for Chinese numerals, "fr" for French words, "digits" for 305.

    Words for digits have sure links, units and 零 possible ones; `Pair.alignment` holds both. "forty two" is 四十二:
    "forty" has a sure link to 四 and a possible one to 十, "two" a sure link to 二.

    >>> numbers(3, words=(3, 8), seed=1)[2]
    Pair(source='fourteen thousand seven', target='一万四千零七',
         alignment=Alignment.from_pharaoh('0-0 0p1 0-2 0p3 0p4 1p1 1p3 1p4 2p4 2-5'))
    """
    if n < 0:
        raise ChoiceError(f"n is a number of pairs, 0 or more, and came as {n}")
    if target not in TARGETS:
        raise ChoiceError(f"target must be one of {', '.join(map(repr, TARGETS))}; it came as {target!r}")
    low, high = words
    if not 1 <= low <= high:
        raise ChoiceError(f"words=(low, high) needs 1 <= low <= high; it came as {words}")
    random = Random(seed)
    return Pairs(
        (_pair(_draw_item(low + below(high - low + 1, random), random), target) for _ in range(n)),
        source_language="en",
        target_language=target,
    )


def number_pair(values: list[int], target: str = "zh") -> Pair:
    """The pair of a list of numbers.

    >>> number_pair([42, 7]).target
    '四十二、七'
    """
    return _pair(values, target)


def _pair(values: list[int], target: str) -> Pair:
    write, comma = TARGETS[target]
    words: list[str] = []
    tokens: list[str] = []
    sure: list[Link] = []
    possible: list[Link] = []
    for value in values:
        if tokens:
            sure.append(_link(len(words), len(tokens)))
            words.append("comma")
            tokens.append(comma)
        number = english(value)
        for token in write(number):
            sure += [_link(len(words) + i, len(tokens)) for i in token.sure]
            possible += [_link(len(words) + i, len(tokens)) for i in token.possible - token.sure]
            tokens.append(token.text)
        words += number.words
    text = "".join(tokens) if target == "zh" else detokenise(tokens, target)
    return Pair(" ".join(words), text, Alignment(tuple(sorted(sure)), tuple(sorted(possible))))


@cache
def _link(source: int, target: int) -> Link:
    """A link, kept once: a set of long lists has millions of them, and few different ones."""
    return source, target


def _draw_item(length: int, random: Random) -> list[int]:
    """Numbers that take `length` words together, with a word between each two."""
    values: list[int] = []
    while length > MAX_WORDS_OF_A_NUMBER:
        taken = 1 + below(min(MAX_WORDS_OF_A_NUMBER, length - 2), random)
        values.append(_draw_number(taken, random))
        length -= taken + 1
    return [*values, _draw_number(length, random)]


def _draw_number(length: int, random: Random) -> int:
    """A number of `length` words: its size in groups of three digits is drawn first, then each number is as likely."""
    sizes = [size for size in range(GROUPS) if _count(size, length, top=True)]
    size = sizes[below(len(sizes), random)]
    value = 0
    for scale in range(size, -1, -1):
        choices = [
            (taken, len(group) * _count(scale - 1, length - taken))
            for taken, group in _groups(scale).items()
            if scale < size or taken
        ]
        taken = choices[weighted([weight for _, weight in choices], random)][0]
        group = _groups(scale)[taken]
        value += group[below(len(group), random)] * 1000**scale
        length -= taken
    return value


@cache
def _groups(scale: int) -> dict[int, list[int]]:
    """Number of words, with that of the scale -> the values of three digits that take so many words."""
    by_words: dict[int, list[int]] = {0: [0]}
    for value in range(1, 10 if scale == GROUPS - 1 else 1000):
        by_words.setdefault(len(english(value).words) + (scale > 0), []).append(value)
    return by_words


@cache
def _count(scale: int, length: int, *, top: bool = False) -> int:
    """How many numbers with groups up to `scale` take `length` words; top: only those whose highest group is not 0."""
    if scale < 0:
        return int(length == 0)
    return sum(
        len(group) * _count(scale - 1, length - taken)
        for taken, group in _groups(scale).items()
        if taken <= length and (taken or not top)
    )
