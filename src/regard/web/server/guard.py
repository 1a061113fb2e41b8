"""Who may ask: every request of every route comes through here first.

A page of another site that is open in the same browser can send requests to this machine. It cannot choose their Host
(a name that it points at 127.0.0.1 gives it away), nor hide their Origin, nor does it know the token.
"""

from __future__ import annotations

import html
import ipaddress
import secrets
import socket
from dataclasses import dataclass, field
from hmac import compare_digest
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.web.server.errors import Refusal

URL_LIMIT = 16 * 1024
HEADER_LIMIT = 32 * 1024
BODY_LIMIT = 256 * 1024
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
# Who follows a link on another site sends no strict cookie, not even one that has just been given. The page asks again
# by itself, and that counts as coming from here.
AGAIN = """<!doctype html><meta charset="utf-8"><title>regard</title>
<meta http-equiv="refresh" content="0;url=/?{query}"><p><a href="/?{query}">regard</a></p>
"""


@dataclass(frozen=True)
class Door:
    """Where the server answers, and the token that opens it."""

    host: str
    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def cookie(self) -> str:
        """Cookies do not know ports: with one name for all, two servers would log each other out."""
        return f"regard-{self.port}"

    @property
    def url(self) -> str:
        """Without the token."""
        name = "127.0.0.1" if self.is_everywhere else f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{name}:{self.port}/"

    @property
    def is_everywhere(self) -> bool:
        return self.host in ("0.0.0.0", "::", "")  # noqa: S104  the user said so

    def is_ours(self, host: str) -> bool:
        """Whether a Host header names this server: a name, a colon, the port."""
        name, _, port = host.rpartition(":")
        if port != str(self.port):
            return False
        name = name.lower()
        own = {*LOOPBACK, self.host.lower(), f"[{self.host.lower()}]"}
        if self.is_everywhere:
            # No site can make its name look like an address, so any address is as good as another.
            return name in own or name == socket.gethostname().lower() or _is_address(name)
        return name in own

    def opens(self, token: str) -> bool:
        return compare_digest(token.encode(), self.token.encode())


class Guard:
    """Checks Host, Origin, token and sizes, reads the body, and puts the headers of a strict page on every answer."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self.app, self.door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # the start and the end of the server
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        try:
            login = self._check(scope)
            body = await _body(scope, receive) if login is None else b""
        except Refusal as refusal:
            await refusal.response()(scope, receive, send_guarded)
        else:
            if body is None:  # the client left in the middle of it
                return
            await (login or self.app)(scope, _given(body, receive), send_guarded)

    def _check(self, scope: Scope) -> Response | None:
        """Refuse, or return the answer to a token, or None: go on."""
        if len(scope["raw_path"]) + len(scope["query_string"]) > URL_LIMIT:
            raise Refusal(414, f"an address has at most {URL_LIMIT} bytes")
        if scope["http_version"] not in ("1.0", "1.1"):
            raise Refusal(505, "HTTP/1.1 is spoken here")
        if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADER_LIMIT:
            raise Refusal(431, f"headers have at most {HEADER_LIMIT} bytes")
        self._check_sender(scope)
        if scope["path"] == "/" and scope["method"] in ("GET", "HEAD"):
            login = self._login(scope["query_string"])
            if login is not None:
                return login
        if not any(self.door.opens(token) for token in self._cookies(scope)):
            if _came_by_a_link(scope):
                again = AGAIN.format(query=html.escape(scope["query_string"].decode("ascii", "replace")))
                return Response(again, 401, {"cache-control": "no-store"}, "text/html; charset=utf-8")
            raise Refusal(401, "open the address that `regard` printed when it started: it carries the token")
        if not scope["path"].isprintable():
            raise Refusal(404, "there is nothing here")
        return None

    def _check_sender(self, scope: Scope) -> None:
        hosts = values(scope, b"host")
        if len(hosts) != 1 or not self.door.is_ours(hosts[0]):
            raise Refusal(403, f"this server is {self.door.url}, and the request is for {_quoted(hosts)}")
        origins = values(scope, b"origin")
        if origins and origins != [f"http://{hosts[0]}"]:
            raise Refusal(403, f"requests come from {self.door.url} itself, and this one from {_quoted(origins)}")

    def _login(self, query: bytes) -> Response | None:
        """The token in the address becomes a cookie, and leaves the address, with what else is there kept."""
        pairs = parse_qsl(query.decode("ascii", "replace"), keep_blank_values=True)
        tokens = [value for name, value in pairs if name == "token"]
        if not tokens:
            return None
        if len(tokens) > 1 or not self.door.opens(tokens[0]):
            raise Refusal(401, "this token is of another server, or of one that has stopped: use the latest address")
        rest = urlencode([(name, value) for name, value in pairs if name != "token"])
        response = Response(
            status_code=303, headers={"location": f"/?{rest}" if rest else "/", "cache-control": "no-store"}
        )
        response.set_cookie(self.door.cookie, self.door.token, path="/", httponly=True, samesite="strict")
        return response

    def _cookies(self, scope: Scope) -> list[str]:
        found: list[str] = []
        for header in values(scope, b"cookie"):
            for part in header.split(";"):
                name, _, value = part.strip().partition("=")
                if name == self.door.cookie:
                    found.append(value)
        return found[:4]


def values(scope: Scope, name: bytes) -> list[str]:
    """Of a header that may come once, never, or too often."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _came_by_a_link(scope: Scope) -> bool:
    page = scope["path"] == "/" and scope["method"] in ("GET", "HEAD")
    return (
        page and values(scope, b"sec-fetch-site") == ["cross-site"] and values(scope, b"sec-fetch-mode") == ["navigate"]
    )


async def _body(scope: Scope, receive: Receive) -> bytes | None:
    """All of it, up to the limit; None if the client left. Only POST has one."""
    limit = BODY_LIMIT if scope["method"] == "POST" else 0
    sizes = values(scope, b"content-length")
    if sizes and int(sizes[0]) > limit:  # h11 lets nothing else than digits through
        raise Refusal(413, f"{scope['method']} takes a body of at most {limit} bytes, and {sizes[0]} are announced")
    if not sizes and not values(scope, b"transfer-encoding"):
        return b""
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > limit:
            raise Refusal(413, f"{scope['method']} takes a body of at most {limit} bytes")
    return bytes(body)


def _given(body: bytes, receive: Receive) -> Receive:
    """The body in one piece, then whatever else happens."""
    waiting = [body]

    async def receive_again() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return receive_again


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _quoted(found: list[str]) -> str:
    return ", ".join(repr(text[:80]) for text in found[:3]) or "nobody"
