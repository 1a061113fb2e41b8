"""The questions of the wire as messages of a notebook: the same answers, without a server.

A message is {"number", "question", "given"}; its reply has the same number, and either "json", or "shape" and "exact"
with one buffer of float32, or "error" and the status that a server would have sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from regard.errors import RegardError
from regard.web.api.map_cache import Place
from regard.web.api.params import whole
from regard.web.api.query import Answers, Numbers, pooled
from regard.web.server.errors import Refusal, dumps

Given = Mapping[str, Any]
Reply = tuple[dict[str, Any], list[memoryview]]


def reply(answers: Answers, message: Given) -> Reply:
    """The answer to a message, whatever it is."""
    number = message.get("number")
    try:
        found = _find(message)(answers, message.get("given") or {})
    except Refusal as refusal:
        return {"number": number, "error": refusal.message, "status": refusal.status}, []
    except RegardError as error:
        return {"number": number, "error": str(error), "status": 500}, []
    if isinstance(found, Numbers):
        values: Any = np.ascontiguousarray(found.values, "<f4")
        body = [memoryview(values).cast("B")] if values.size else []
        return {"number": number, "shape": list(values.shape), "exact": found.exact}, body
    return {"number": number, "json": json.loads(dumps(found))}, []  # where NaN is null, as on the wire


def _find(message: Given) -> Callable[[Answers, Given], Any]:
    question = message.get("question")
    if question not in QUESTIONS:
        raise Refusal(404, f"there is no question {str(question)[:40]!r}; there are {', '.join(QUESTIONS)}")
    return QUESTIONS[question]


def _id(given: Given) -> str:
    return str(given.get("id"))


def _place(given: Given) -> Place:
    return Place(_id(given), *_all(given, "entry", "batch", "head"))


def _all(given: Given, *names: str) -> list[int]:
    return [_number(given, name) for name in names]


def _number(given: Given, name: str) -> int:
    value = given.get(name)
    return whole("none" if value is None or isinstance(value, bool) else str(value), name)


def _between(given: Given, name: str, least: int, most: int) -> int:
    value = _number(given, name)
    if not least <= value <= most:
        raise Refusal(400, f"{name} must be from {least} to {most}, and {value} came")
    return value


QUESTIONS: dict[str, Callable[[Answers, Given], Any]] = {
    "list": lambda a, _: a.list(),
    "meta": lambda a, g: a.meta(_id(g)),
    "profiles": lambda a, g: a.profiles(_id(g)),
    "thumbs": lambda a, g: a.thumbs(_id(g), _number(g, "entry"), _number(g, "batch"), _between(g, "side", 8, 256)),
    "info": lambda a, g: a.info(_place(g)),
    "tile": lambda a, g: a.tile(_place(g), pooled(str(g.get("pool"))), *_all(g, "level", "row", "column")),
    "peaks": lambda a, g: a.peaks(_place(g), pooled(str(g.get("pool"))), *_all(g, "level", "row")),
    "row": lambda a, g: a.row(_place(g), _number(g, "i")),
    "column": lambda a, g: a.column(_place(g), _number(g, "j")),
    "top": lambda a, g: a.top(_place(g), _number(g, "i"), _between(g, "k", 1, 1000)),
}
