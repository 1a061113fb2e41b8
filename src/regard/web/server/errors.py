"""What is not answered, and why: a status and a sentence."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.responses import Response


class Refusal(Exception):  # noqa: N818  it is an answer
    """An answer other than the one that was asked for."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, dict(headers or {})

    def response(self) -> Response:
        return as_json({"error": self.message}, self.status, self.headers)


def as_json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON as every browser reads it: what is no finite number is null."""
    from starlette.responses import Response  # late: a notebook has its own way to send

    return Response(dumps(value), status, {"cache-control": "no-store", **(headers or {})}, "application/json")


def dumps(value: Any) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:  # seldom, so that most answers are walked once only
        text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")  # half a surrogate pair in a token's text is no reason to fail


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(inside) for key, inside in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inside) for inside in value]
    return value


def read_json(body: bytes) -> dict[str, Any]:
    """An object of JSON from somebody who may not mean well."""
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:  # not UTF-8, no JSON, numbers or brackets without end
        raise Refusal(400, f"a JSON object is asked for, and this is none: {_short(error)}") from None
    if not isinstance(value, dict):
        raise Refusal(400, f"a JSON object {{...}} is asked for, and {type(value).__name__} came")
    return value


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _short(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:200]
