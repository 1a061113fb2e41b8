"""The questions of the HTTP API as widget messages, answered without a server.

A message is {"number", "question", "given"}; its reply has the same number, and either "json", or "shape" and "exact"
with one buffer of float32, or "error" and the status that a server would have sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from regard.errors import RegardError
from regard.lab import strict_json
from regard.web.api.map_cache import HeadKey
from regard.web.api.params import parse_integer
from regard.web.api.query import RecordingQueries, check_pool
from regard.web.maps.arrays import ArrayResult
from regard.web.server.errors import ApiError

Args = Mapping[str, Any]
Question = Callable[[RecordingQueries, Args], Any]
Reply = tuple[dict[str, Any], list[memoryview]]


def reply(queries: RecordingQueries, message: Mapping[str, Any]) -> Reply:
    """The reply to a message, and its buffers; an error becomes a reply too."""
    number = message.get("number")
    try:
        result = _question(message)(queries, message.get("given") or {})
    except ApiError as error:
        return {"number": number, "error": error.message, "status": error.status}, []
    except RegardError as error:
        return {"number": number, "error": str(error), "status": 500}, []
    if isinstance(result, ArrayResult):
        values: Any = np.ascontiguousarray(result.values, "<f4")
        body = [memoryview(values).cast("B")] if values.size else []
        return {"number": number, "shape": list(values.shape), "exact": result.exact}, body
    return {"number": number, "json": strict_json.loads(strict_json.dumps(result))}, []  # NaN is null, as over HTTP


def _question(message: Mapping[str, Any]) -> Question:
    name = message.get("question")
    if name not in QUESTIONS:
        raise ApiError(404, f"there is no question {str(name)[:40]!r}; there are {', '.join(QUESTIONS)}")
    return QUESTIONS[name]


def _id(args: Args) -> str:
    return str(args.get("id"))


def _head(args: Args) -> HeadKey:
    return HeadKey(_id(args), *_integers(args, "entry", "batch", "head"))


def _integers(args: Args, *names: str) -> list[int]:
    return [_integer(args, name) for name in names]


def _integer(args: Args, name: str) -> int:
    value = args.get(name)
    return parse_integer("none" if value is None or isinstance(value, bool) else str(value), name)


def _integer_between(args: Args, name: str, least: int, most: int) -> int:
    value = _integer(args, name)
    if not least <= value <= most:
        raise ApiError(400, f"{name} must be from {least} to {most}, and {value} came")
    return value


def _pool(args: Args) -> str:
    return check_pool(str(args.get("pool")))


QUESTIONS: dict[str, Question] = {
    "list": lambda queries, _: queries.list(),
    "meta": lambda queries, args: queries.metadata(_id(args)),
    "profiles": lambda queries, args: queries.profiles(_id(args)),
    "thumbs": lambda queries, args: queries.thumbnails(
        _id(args), _integer(args, "entry"), _integer(args, "batch"), _integer_between(args, "side", 8, 256)
    ),
    "info": lambda queries, args: queries.info(_head(args)),
    "tile": lambda queries, args: queries.tile(_head(args), _pool(args), *_integers(args, "level", "row", "column")),
    "peaks": lambda queries, args: queries.peaks(
        _head(args), _pool(args), *_integers(args, "level", "row"), skip=_integer_between(args, "skip", 0, 1)
    ),
    "row": lambda queries, args: queries.row(_head(args), _integer(args, "i")),
    "column": lambda queries, args: queries.column(_head(args), _integer(args, "j")),
    "top": lambda queries, args: queries.top(_head(args), _integer(args, "i"), _integer_between(args, "k", 1, 1000)),
}
