"""Texts that come from the user, and texts that go to a terminal."""

import re
import sys
from pathlib import Path

from regard.errors import DataError

NAMED = re.compile(r"\S+\.(?:txt|md|rst|html?|json|csv|py)")


def read(given: str) -> str:
    """The text itself, or what is in the file of that name, or with "-" what is piped in."""
    if given == "-":
        return sys.stdin.read()
    try:
        if Path(given).is_file():
            return Path(given).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{given}: is not written in UTF-8 ({error}); save it as UTF-8") from None
    except (OSError, ValueError):  # longer than any name of a file, or with characters that no name has
        return given
    if NAMED.fullmatch(given):
        raise DataError(f"{given}: there is no such file")
    return given


def visible(text: str) -> str:
    r"""What a file says, made harmless to a terminal: control characters are spelled out.

    >>> print(visible("旷 \x1b[31m"))
    旷 \x1b[31m
    """
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
