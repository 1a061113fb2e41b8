"""Texts as words and punctuation, and back to ordinary writing."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache

CHARACTERS = ("zh", "digits")  # languages whose tokens are single characters
ELISIONS = "jusqu|lorsqu|puisqu|quoiqu|quelqu|qu|[cçdjlmnst]"  # of French: l'homme is two words, aujourd'hui is one
CLITICS = {  # what is cut off at the end of a word, and stands right behind it again in ordinary writing
    "en": "'(?:s|m|re|ve|ll|d)",
    "fr": "-(?:t-(?:il|elle|on)|je|tu|ils?|elles?|on|nous|vous|ce|moi|toi|lui|leur|les?|la|y|en|ci|là)",
}
INVISIBLE = {0xAD: None, 0x200B: None, 0x2060: None, 0xFEFF: None}  # soft hyphen, zero-width space, word joiner, mark
APOSTROPHES = {ord("’"): "'", ord("‘"): "'", ord("ʼ"): "'"}
WORD = r"[^\W_]+(?:['.,:-][^\W_]+)*"  # o'clock, well-known, 3.14, 10:30 and 1,234 are one word each
PUNCTUATION = r"\.{2,}|-{2,}|[^\w\s]|_"
ABBREVIATION = r"(?:[^\W\d_]\.){2,}"  # U.S. and a.m. keep their full stops
HAN = r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff〇]"

CLOSING = set(".,;:!?)]}%…»”、。，；：！？）」》") | {"..."}  # no space before
OPENING = set("([{¿¡$€£«“（「《")  # no space behind
SPACED = set(";:!?»")  # French puts a no-break space before these, and behind «
NO_BREAK_SPACE = "\u00a0"
QUOTE = '"'


def tokenise(text: str, language: str = "en") -> list[str]:
    """Split a text into words and punctuation; Chinese ("zh") and numerals ("digits") into characters.

    Letters are not changed: lower-case the text first if case should not matter. English cuts off 's, 'm, 're, 've, 'll
    and 'd; French cuts behind an elision (l'homme) and before a pronoun (vas-tu). Latin words and numbers in a Chinese
    text stay whole. Other languages, such as "es", are cut at spaces and punctuation alone.

    >>> tokenise("Don't worry, it's Tom's.")
    ["Don't", 'worry', ',', 'it', "'s", 'Tom', "'s", '.']
    >>> tokenise("L'homme dit-il « non » aujourd'hui ?", "fr")
    ["L'", 'homme', 'dit', '-il', '«', 'non', '»', "aujourd'hui", '?']
    >>> tokenise("三百零五、42", "zh"), tokenise("305, 42", "digits")
    (['三', '百', '零', '五', '、', '42'], ['3', '0', '5', ',', '4', '2'])
    """
    text = unicodedata.normalize("NFC", text).translate(INVISIBLE)
    if language == "digits":
        return [letter for letter in text if not letter.isspace()]
    if language != "zh":
        text = text.translate(APOSTROPHES)
    return _pattern(language).findall(text)


def detokenise(tokens: Iterable[str], language: str = "en") -> str:
    r"""Join words and punctuation to ordinary writing; the opposite of `tokenise`, but for unusual spaces.

    French gets a no-break space before ; : ! ? » and behind «. A straight quotation mark opens and closes in turn.

    >>> detokenise(["Don't", "worry", ",", "it", "'s", "Tom", "'s", "."])
    "Don't worry, it's Tom's."
    >>> detokenise(["j'", "ai", "dit", ":", "vas", "-tu", "?"], "fr")
    "j'ai dit\xa0: vas-tu\xa0?"
    """
    between = _spaces(language)
    pieces: list[str] = []
    previous, quoted = "", False
    for token in tokens:
        role = token
        if token == QUOTE:
            role, quoted = "”" if quoted else "“", not quoted
        pieces += [between(previous, role) if previous else "", token]
        previous = role
    return "".join(pieces)


@cache
def _pattern(language: str) -> re.Pattern[str]:
    """A pattern whose matches are the tokens of a text."""
    if language == "zh":
        latin = rf"(?:(?!{HAN})[^\W_])+"
        return re.compile(rf"{HAN}|{latin}(?:[.,:]{latin})*|{PUNCTUATION}")
    clitic = CLITICS.get(language)
    if clitic is None:
        return re.compile(f"{ABBREVIATION}|{WORD}|{PUNCTUATION}")
    ends = rf"{clitic}(?=(?:{clitic})*(?![\w'-]))"  # donne-le-moi has two, hors-la-loi none
    cut = rf"[^\W_]+(?:(?!{ends})['.,:-][^\W_]+)*"  # a word, up to a clitic
    elided = rf"(?:{ELISIONS})'(?=\w)|" if language == "fr" else ""
    return re.compile(rf"{ABBREVIATION}|{elided}(?<=\w){ends}|{cut}|{PUNCTUATION}", re.IGNORECASE)


@cache
def _spaces(language: str) -> Callable[[str, str], str]:
    """A function that returns what stands between two tokens in ordinary writing."""
    clitic = re.compile(CLITICS.get(language, r"(?!)"), re.IGNORECASE)
    elision = re.compile(f"(?:{ELISIONS})'" if language == "fr" else r"(?!)", re.IGNORECASE)
    latin = re.compile(r"[^\W_]")
    han = re.compile(HAN)

    def characters(left: str, right: str) -> str:
        if language == "digits":
            return " " if left == "," else ""
        words = [latin.search(side) and not han.search(side) for side in (left, right)]
        return " " if all(words) else ""

    def words(left: str, right: str) -> str:
        if language == "fr" and (right in SPACED or left == "«"):
            return NO_BREAK_SPACE
        closed = right in CLOSING or clitic.fullmatch(right) or (right == "'" and left[-1] in "sS")  # the girls' night
        opened = left in OPENING or elision.fullmatch(left)
        return "" if closed or opened or "/" in {left, right} else " "

    return characters if language in CHARACTERS else words
