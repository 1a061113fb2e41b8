"""Numbers in addresses: digits, and nothing that merely could be read as a number."""

from __future__ import annotations

import re
from typing import Any

from regard.web.server.errors import Refusal

WHOLE = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)


def whole(text: str, name: str) -> int:
    """A number from 0 to 999,999,999.

    >>> whole("17", "row")
    17
    """
    if WHOLE.fullmatch(text) is None:
        raise Refusal(400, f"{name} must be a whole number like 0 or 17, and {text[:40]!r} came")
    return int(text)


def in_path(request: Any, *names: str) -> tuple[int, ...]:
    return tuple(whole(request.path_params[name], name) for name in names)


def in_query(request: Any, name: str, default: int, least: int, most: int) -> int:
    """A number behind the question mark, once or not at all."""
    asked = request.query_params.getlist(name)
    if not asked:
        return default
    number = whole(asked[0], name)
    if len(asked) > 1 or not least <= number <= most:
        raise Refusal(400, f"{name} must be one number from {least} to {most}, and {', '.join(asked)[:40]} came")
    return number


def below(number: int, count: int, name: str) -> int:
    if number >= count:
        raise Refusal(404, f"{name} must be below {count}, and {number} came")
    return number
