"""An error with an HTTP status, and JSON requests and responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from regard.lab import strict_json

if TYPE_CHECKING:
    from starlette.responses import Response


class ApiError(Exception):
    """A request that is refused: an HTTP status, a sentence that says why, and headers for the response.

    `kind` is the name of the library's exception behind it, so that a page can say the same in another language.
    """

    def __init__(
        self, status: int, message: str, headers: Mapping[str, str] | None = None, kind: str | None = None
    ) -> None:
        super().__init__(message)
        self.status: int = status
        self.message: str = message
        self.headers: dict[str, str] = dict(headers or {})
        self.kind: str | None = kind

    def response(self) -> Response:
        kind = {} if self.kind is None else {"kind": self.kind}
        return json_response({"error": self.message, **kind}, self.status, self.headers)


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response that no cache keeps; NaN and infinities are null."""
    from starlette.responses import Response  # late: a notebook sends messages, and needs no starlette

    body = strict_json.dumps(value)
    return Response(body, status, {"cache-control": "no-store", **(headers or {})}, "application/json")


def parse_json_object(body: bytes) -> dict[str, Any]:
    """The JSON object in the body of a request; 400 for anything else."""
    try:
        value = strict_json.loads(body)
    except ValueError as error:
        raise ApiError(400, f"a JSON object is asked for, and this is none: {str(error)[:200]}") from None
    if not isinstance(value, dict):
        raise ApiError(400, f"a JSON object {{...}} is asked for, and {type(value).__name__} came")
    return value
