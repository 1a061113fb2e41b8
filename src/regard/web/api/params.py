"""Numbers in addresses: decimal digits only, within their limits."""

from __future__ import annotations

import re
from typing import Any

from regard.web.server.errors import ApiError

INTEGER = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)


def parse_integer(text: str, name: str) -> int:
    """A number from 0 to 999,999,999; 400 for any other text.

    >>> parse_integer("17", "row")
    17
    """
    if INTEGER.fullmatch(text) is None:
        raise ApiError(400, f"{name} must be a whole number like 0 or 17, and {text[:40]!r} came")
    return int(text)


def path_integers(request: Any, *names: str) -> tuple[int, ...]:
    """The path parameters of these names."""
    return tuple(parse_integer(request.path_params[name], name) for name in names)


def query_integer(request: Any, name: str, default: int, least: int, most: int) -> int:
    """A query parameter from `least` to `most` that occurs once, or the default if it is missing."""
    values = request.query_params.getlist(name)
    if not values:
        return default
    number = parse_integer(values[0], name)
    if len(values) > 1 or not least <= number <= most:
        raise ApiError(400, f"{name} must be one number from {least} to {most}, and {', '.join(values)[:40]} came")
    return number


def check_below(number: int, count: int, name: str) -> int:
    """The number itself; 404 if it is not below `count`."""
    if number >= count:
        raise ApiError(404, f"{name} must be below {count}, and {number} came")
    return number
