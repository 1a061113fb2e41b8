"""Encoding of a text file: by its byte order mark, by its zero bytes, or because no other one is likely."""

from __future__ import annotations

import codecs

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins like that of UTF-16, hence before it
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
HEAD_BYTES = 4096  # that are looked at for marks and zeros
ZERO_SHARE = 0.1  # of the high bytes of UTF-16: digits, separators and line ends have zeros there, hanzi do not
GB2312_SHARE, FREQUENT_SHARE = 0.9, 0.6  # of the characters of a Chinese text, see `is_chinese`
FREQUENT_LEADS = (*range(0xA1, 0xA4), *range(0xB0, 0xD8))  # first bytes in GB2312 of punctuation and frequent hanzi
MAX_CHARACTERS = 100_000  # that are looked at for their share


def from_head(head: bytes) -> str:
    """Return the encoding that the first bytes of a file show: UTF-8 with or without a mark, UTF-16 or UTF-32.

    >>> from_head("a,b".encode("utf-16")), from_head("a,b".encode("utf-16-le")), from_head(b"a,b")
    ('utf-16', 'utf-16-le', 'utf-8')
    """
    for mark, name in BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return name
    first, second = head[0::2].count(0), head[1::2].count(0)
    if max(first, second) <= ZERO_SHARE * len(head) / 2:
        return "utf-8"
    return "utf-16-be" if first > second else "utf-16-le"


def is_chinese(content: bytes) -> bool:
    """Return True for bytes that are likely GB18030, of which GBK and GB2312 are parts.

    Texts of Western Europe can often be decoded as GB18030 too, but to rare characters. Hence most characters must be
    in GB2312, and more than half of them among its frequent ones.

    >>> is_chinese("面积,价格".encode("gbk")), is_chinese("Größe,Preis,né à".encode("cp1252"))
    (True, False)
    """
    try:
        text = content.decode("gb18030")
    except UnicodeDecodeError:
        return False
    characters = [letter for letter in text if letter > "\x7f"][:MAX_CHARACTERS]
    leads = [letter.encode("gb2312", "ignore")[:1] for letter in characters]
    frequent = sum(lead != b"" and lead[0] in FREQUENT_LEADS for lead in leads)
    known = sum(lead != b"" for lead in leads)
    return known >= GB2312_SHARE * len(leads) and frequent >= FREQUENT_SHARE * len(leads)
