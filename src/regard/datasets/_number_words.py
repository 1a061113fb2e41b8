"""Numbers below 10^16 in English words, and in Chinese numerals, French words or digits with links to these words.

A target token is linked to the English words as follows.

- A token that names a digit has a sure link to the word that names it: 四 and 二 of 四十二 to "forty" and "two".
- One word may name several tokens and the other way round: "twelve thousand" is 一万二千, both 一 and 二 are sure links
  of "twelve"; quarante-deux has sure links to "forty" and "two". A 十 or a French cent or mille that stands alone for
  one ten, one hundred, one thousand names that digit.
- A unit (十, 百, 千, 万, 亿; cent, mille, million) has possible links to the digit word before it and to the units of
  English by which this digit is multiplied: 十 of 三十万 to "three", "hundred" and "thousand".
- 零 and the digit 0 have possible links to the words from the digit before the gap to the digit after it.
"""

from __future__ import annotations

from typing import NamedTuple

LIMIT = 10**16  # numbers stay below
ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen""".split()  # noqa: SIM905  a line of words is easier to read than twenty strings
TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()  # noqa: SIM905  the same
SCALES = ("", "thousand", "million", "billion", "trillion", "quadrillion")

CHINESE_DIGITS = "零一二三四五六七八九"
CHINESE_UNITS = ("", "十", "百", "千")

FRENCH_ONES = """zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept
dix-huit dix-neuf""".split()  # noqa: SIM905  the same
FRENCH_TENS = ("", "dix", "vingt", "trente", "quarante", "cinquante", *["soixante"] * 2, *["quatre-vingt"] * 2)
FRENCH_SCALES = ("", "mille", "million", "milliard", "billion", "billiard")


class EnglishNumber(NamedTuple):
    """A number in English words, and which words name and multiply each of its digits."""

    value: int
    words: list[str]
    digit_word: dict[int, int]  # power of ten of a digit that is not 0 -> the word that names it
    units: dict[int, tuple[int, ...]]  # the same -> the words "hundred", "thousand" ... that multiply it

    def around(self, power: int) -> set[int]:
        """Words from the digit above a power of ten to the digit below it; to the end where there is none below."""
        first = self.digit_word[min(p for p in self.digit_word if p > power)]
        below = [p for p in self.digit_word if p < power]
        last = self.digit_word[max(below)] if below else len(self.words) - 1
        return set(range(first, last + 1))


class TargetToken(NamedTuple):
    """A token of a translated number, and the English words that it is linked to."""

    text: str
    sure: set[int]
    possible: set[int]


def english(value: int) -> EnglishNumber:
    """Spell a number in English, as Americans do: without "and", and here without hyphens.

    >>> " ".join(english(305_042).words)
    'three hundred five thousand forty two'
    """
    if value == 0:
        return EnglishNumber(0, [ONES[0]], {0: 0}, {0: ()})
    words: list[str] = []
    digit_word: dict[int, int] = {}
    units: dict[int, tuple[int, ...]] = {}
    for scale in reversed(range(len(SCALES))):
        group = value // 1000**scale % 1000
        if group:
            _english_group(group, scale, words, digit_word, units)
    return EnglishNumber(value, words, digit_word, units)


def _english_group(
    group: int, scale: int, words: list[str], digit_word: dict[int, int], units: dict[int, tuple[int, ...]]
) -> None:
    """Add the words of three digits and of their scale."""
    hundreds, rest = divmod(group, 100)
    named: dict[int, tuple[int, ...]] = {}  # power within the group -> its unit inside the group
    if hundreds:
        digit_word[3 * scale + 2] = len(words)
        named[2] = (len(words) + 1,)
        words += [ONES[hundreds], "hundred"]
    if rest >= 10:
        digit_word[3 * scale + 1] = len(words)
        named[1] = ()
        words.append(ONES[rest] if rest < 20 else TENS[rest // 10])
    if rest % 10:
        digit_word[3 * scale] = len(words) - (10 < rest < 20)  # a teen names both digits
        named[0] = ()
        words += [] if 10 < rest < 20 else [ONES[rest % 10]]
    for power, inside in named.items():
        units[3 * scale + power] = (*inside, len(words)) if scale else inside
    words += [SCALES[scale]] if scale else []


def chinese(number: EnglishNumber) -> list[TargetToken]:
    """Write a number in Chinese numerals, with 二 for two, and 零 for a gap.

    >>> "".join(token.text for token in chinese(english(305_042)))
    '三十万五千零四十二'
    """
    if number.value == 0:
        return [TargetToken("零", {0}, set())]
    tokens: list[TargetToken] = []
    above: int | None = None  # the power of the digit that was written last
    for power in range(15, -1, -1):
        if power in number.digit_word:
            if above is not None and _has_gap(above, power):
                tokens.append(TargetToken("零", set(), number.around(power + 1)))
            tokens += _chinese_digit(number, power, first=above is None)
            above = power
        if power in {12, 8, 4}:
            tokens += _chinese_scale(number, power)
    return tokens


def _has_gap(above: int, power: int) -> bool:
    """True if 零 stands between two digits: for zeros at the head of a group of four digits or inside it."""
    if power % 4 == 3:
        return above // 4 - power // 4 > 1
    return above - power > 1


def _chinese_digit(number: EnglishNumber, power: int, *, first: bool) -> list[TargetToken]:
    digit, unit = number.value // 10**power % 10, CHINESE_UNITS[power % 4]
    word, multiplied = {number.digit_word[power]}, {*number.units[power]}
    if first and digit == 1 and unit == "十":  # 十二, not 一十二
        return [TargetToken(unit, word, multiplied)]
    numeral = TargetToken(CHINESE_DIGITS[digit], word, set())
    return [numeral, TargetToken(unit, set(), word | multiplied)] if unit else [numeral]


def _chinese_scale(number: EnglishNumber, power: int) -> list[TargetToken]:
    """万 behind the four digits that end at this power, or 亿 behind eight, if one of them is not 0."""
    width = 8 if power == 8 else 4
    multiplied = [p for p in number.digit_word if power <= p < power + width]
    if not multiplied:
        return []
    links = {number.digit_word[min(multiplied)]}.union(*(number.units[p] for p in multiplied))
    return [TargetToken("亿" if power == 8 else "万", set(), links)]


def digits(number: EnglishNumber) -> list[TargetToken]:
    """Write a number in digits, one token each.

    >>> "".join(token.text for token in digits(english(305_042)))
    '305042'
    """
    if number.value == 0:
        return [TargetToken("0", {0}, set())]
    text = str(number.value)
    tokens: list[TargetToken] = []
    for power, digit in zip(range(len(text) - 1, -1, -1), text, strict=True):
        if digit == "0":
            tokens.append(TargetToken(digit, set(), number.around(power)))
        else:
            tokens.append(TargetToken(digit, {number.digit_word[power]}, set()))
    return tokens


def french(number: EnglishNumber) -> list[TargetToken]:
    """Write a number in French words, hyphens as before 1990: soixante et onze, quatre-vingt-dix-sept.

    >>> " ".join(token.text for token in french(english(305_042)))
    'trois cent cinq mille quarante-deux'
    """
    if number.value == 0:
        return [TargetToken(FRENCH_ONES[0], {0}, set())]
    tokens: list[TargetToken] = []
    for scale in reversed(range(len(SCALES))):
        group = number.value // 1000**scale % 1000
        if group:
            tokens += _french_group(number, group, scale)
    return tokens


def _french_group(number: EnglishNumber, group: int, scale: int) -> list[TargetToken]:
    """Write three digits and their scale; mille has neither un before it nor a plural before or on itself."""
    powers = [p for p in number.digit_word if 3 * scale <= p < 3 * scale + 3]
    last = number.digit_word[min(powers)]
    multiplied = {number.units[powers[0]][-1]} if scale else set[int]()
    if scale == 1 and group == 1:
        return [TargetToken("mille", {last}, multiplied)]
    tokens: list[TargetToken] = []
    hundreds, rest = divmod(group, 100)
    if hundreds:
        tokens += _french_hundreds(number, hundreds, scale, plural=not rest and scale != 1)
    if rest:
        tokens += _french_below_100(number, rest, scale, plural=scale != 1)
    if scale:
        plural = "s" if scale > 1 and group > 1 else ""
        tokens.append(TargetToken(FRENCH_SCALES[scale] + plural, set(), {last} | multiplied))
    return tokens


def _french_hundreds(number: EnglishNumber, hundreds: int, scale: int, *, plural: bool) -> list[TargetToken]:
    power = 3 * scale + 2
    word, multiplied = {number.digit_word[power]}, {*number.units[power]}
    if hundreds == 1:
        return [TargetToken("cent", word, multiplied)]
    unit = TargetToken("cents" if plural else "cent", set(), word | multiplied)
    return [TargetToken(FRENCH_ONES[hundreds], word, set()), unit]


def _french_below_100(number: EnglishNumber, rest: int, scale: int, *, plural: bool) -> list[TargetToken]:
    """Write 1 to 99. French counts 60 to 79 and 80 to 99 in twenties, so a ten may be said by two words."""
    words = {number.digit_word[p] for p in (3 * scale, 3 * scale + 1) if p in number.digit_word}
    tens, ones = divmod(rest, 10)
    if tens in {7, 9}:
        ones += 10  # soixante-douze
    if rest < 20:
        return [TargetToken(FRENCH_ONES[rest], words, set())]
    if ones in {1, 11} and tens < 8:
        ten, one = number.digit_word[3 * scale + 1], number.digit_word[3 * scale]
        links = {ten} if ones == 11 else set[int]()  # onze says a part of seventy too
        joint = TargetToken("et", set(), {ten, one})
        return [TargetToken(FRENCH_TENS[tens], {ten}, set()), joint, TargetToken(FRENCH_ONES[ones], {one}, links)]
    if ones:
        return [TargetToken(f"{FRENCH_TENS[tens]}-{FRENCH_ONES[ones]}", words, set())]
    return [TargetToken(FRENCH_TENS[tens] + ("s" if tens == 8 and plural else ""), words, set())]
