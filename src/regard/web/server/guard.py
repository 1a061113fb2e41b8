"""Access control: every request of every route passes through `AccessGuard` first.

A page of another site that is open in the same browser can send requests to this machine. It cannot choose their Host
(DNS rebinding shows the other site's name), nor hide their Origin, nor does it know the token.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
from dataclasses import dataclass, field
from hmac import compare_digest
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.web.server.errors import ApiError
from regard.web.server.refusals import refusal, reload_page

URL_LIMIT = 16 * 1024  # bytes: the state of a lesson in an address is at most a few thousand
HEADER_LIMIT = 32 * 1024  # bytes of all headers together
BODY_LIMIT = 256 * 1024  # bytes: a text to record is the longest body
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


@dataclass(frozen=True)
class ServerAddress:
    """The host and port that the server listens on, and the token that grants access."""

    host: str
    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def cookie(self) -> str:
        """The cookie's name. It has the port: cookies ignore ports, and two servers would log each other out."""
        return f"regard-{self.port}"

    @property
    def url(self) -> str:
        """The address without the token."""
        name = "127.0.0.1" if self.is_any_interface else f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{name}:{self.port}/"

    @property
    def is_any_interface(self) -> bool:
        return self.host in ("0.0.0.0", "::", "")  # noqa: S104  the user said so

    def is_own_host(self, host: str) -> bool:
        """True if a Host header, `name:port`, names this server."""
        name, _, port = host.rpartition(":")
        if port != str(self.port):
            return False
        name = name.lower()
        own = {*LOOPBACK, self.host.lower(), f"[{self.host.lower()}]"}
        if self.is_any_interface:
            # No site's name looks like an IP address, so any IP address is as good as another.
            return name in own or name == socket.gethostname().lower() or _is_address(name)
        return name in own

    def accepts(self, token: str) -> bool:
        return compare_digest(token.encode(), self.token.encode())


class AccessGuard:
    """ASGI middleware: checks Host, Origin, token and sizes, reads the body, and adds HEADERS to every response."""

    def __init__(self, app: ASGIApp, address: ServerAddress) -> None:
        self.app: ASGIApp = app
        self.address: ServerAddress = address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # the start and the end of the server
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)  # a page of its own may have a stricter policy
            await send(message)

        try:
            login = self._check(scope)
            body = await _read_body(scope, receive) if login is None else b""
        except ApiError as error:
            await refusal(scope, error, self.address.url)(scope, receive, send_guarded)
        else:
            if body is None:  # the client disconnected in the middle of it
                return
            await (login or self.app)(scope, _replay_body(body, receive), send_guarded)

    def _check(self, scope: Scope) -> Response | None:
        """Raise ApiError, or return the response to a login, or None to let the request pass."""
        if len(scope["raw_path"]) + len(scope["query_string"]) > URL_LIMIT:
            raise ApiError(414, f"an address has at most {URL_LIMIT} bytes")
        if scope["http_version"] not in ("1.0", "1.1"):
            raise ApiError(505, "HTTP/1.1 is spoken here")
        if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADER_LIMIT:
            raise ApiError(431, f"headers have at most {HEADER_LIMIT} bytes")
        self._check_sender(scope)
        if scope["path"] == "/" and scope["method"] in ("GET", "HEAD"):
            login = self._login(scope["query_string"])
            if login is not None:
                return login
        if not any(self.address.accepts(token) for token in self._cookies(scope)):
            if _is_cross_site_navigation(scope):
                return reload_page(scope["query_string"])
            raise ApiError(401, "open the address that `regard` printed when it started: it carries the token")
        if not scope["path"].isprintable():
            raise ApiError(404, "there is nothing here")
        return None

    def _check_sender(self, scope: Scope) -> None:
        hosts = header_values(scope, b"host")
        if len(hosts) != 1 or not self.address.is_own_host(hosts[0]):
            raise ApiError(403, f"this server is {self.address.url}, and the request is for {_quoted(hosts)}")
        origins = header_values(scope, b"origin")
        if origins and origins != [f"http://{hosts[0]}"]:
            raise ApiError(403, f"requests come from {self.address.url} itself, and this one from {_quoted(origins)}")

    def _login(self, query: bytes) -> Response | None:
        """A redirect that moves the token from the address to a cookie and keeps the rest of the query."""
        pairs = parse_qsl(query.decode("ascii", "replace"), keep_blank_values=True)
        tokens = [value for name, value in pairs if name == "token"]
        if not tokens:
            return None
        if len(tokens) > 1 or not self.address.accepts(tokens[0]):
            raise ApiError(401, "this token is of another server, or of one that has stopped: use the latest address")
        rest = urlencode([(name, value) for name, value in pairs if name != "token"])
        response = Response(
            status_code=303, headers={"location": f"/?{rest}" if rest else "/", "cache-control": "no-store"}
        )
        response.set_cookie(self.address.cookie, self.address.token, path="/", httponly=True, samesite="strict")
        return response

    def _cookies(self, scope: Scope) -> list[str]:
        tokens: list[str] = []
        for header in header_values(scope, b"cookie"):
            for part in header.split(";"):
                name, _, value = part.strip().partition("=")
                if name == self.address.cookie:
                    tokens.append(value)
        return tokens[:4]


def header_values(scope: Scope, name: bytes) -> list[str]:
    """All values of a header, which may occur any number of times."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _is_cross_site_navigation(scope: Scope) -> bool:
    site, mode = header_values(scope, b"sec-fetch-site"), header_values(scope, b"sec-fetch-mode")
    is_page = scope["path"] == "/" and scope["method"] in ("GET", "HEAD")
    return is_page and site == ["cross-site"] and mode == ["navigate"]


async def _read_body(scope: Scope, receive: Receive) -> bytes | None:
    """The whole body; 413 above the limit, None if the client disconnected. Only POST may have one."""
    limit = BODY_LIMIT if scope["method"] == "POST" else 0
    sizes = header_values(scope, b"content-length")
    if sizes and int(sizes[0]) > limit:  # h11 lets nothing else than digits through
        raise ApiError(413, f"{scope['method']} takes a body of at most {limit} bytes, and {sizes[0]} are announced")
    if not sizes and not header_values(scope, b"transfer-encoding"):
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
            raise ApiError(413, f"{scope['method']} takes a body of at most {limit} bytes")
    return bytes(body)


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body that was read in one piece, and then passes on later messages."""
    unread = [body]

    async def receive_again() -> Message:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}
        return await receive()

    return receive_again


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _quoted(texts: list[str]) -> str:
    return ", ".join(repr(text[:80]) for text in texts[:3]) or "nobody"
