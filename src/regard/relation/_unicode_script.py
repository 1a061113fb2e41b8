"""The script of a text (Latin, Chinese, ...), by counting letters."""

import unicodedata
from collections import Counter
from collections.abc import Iterable

KANA = ("HIRAGANA", "KATAKANA")


def script_of(texts: Iterable[str]) -> str:
    """The script of most letters: "Latin", "Chinese", "Japanese", "Cyrillic", ...; "" without letters.

    A Chinese character counts as three letters, since a word of an alphabet has more of them: 他爱看 NBA is Chinese.

    >>> script_of(["He loves apples"]), script_of(["他爱看 NBA"]), script_of(["привет"])
    ('Latin', 'Chinese', 'Cyrillic')
    """
    counts = Counter(_family(letter) for text in texts for letter in text if letter.isalpha())
    counts["CJK"] *= 3
    kana = sum(counts[name] for name in KANA)
    if kana * 10 > counts["CJK"] and kana:  # Japanese has Chinese characters too, Chinese has no kana
        counts["JAPANESE"] = counts.pop("CJK") + kana
    name = max(counts, key=lambda name: counts[name]) if counts.total() else ""
    return "Chinese" if name == "CJK" else name.capitalize()


def _family(letter: str) -> str:
    """First word of the Unicode name: LATIN of LATIN SMALL LETTER A."""
    return unicodedata.name(letter, "UNKNOWN").split()[0].split("-")[0]
