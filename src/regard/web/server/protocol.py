"""HTTP/1.1 that is strict about where a request ends, with timeouts for slow clients.

uvicorn alone waits for ever for a request, or for a client to read; h11 alone accepts forms of a request that another
server, in front of this one, could cut differently.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from regard.lab import strict_json
from regard.web.server.guard import HEADER_LIMIT, HEADERS

RECEIVE_SECONDS = 8.0  # for a whole request, headers and body, however it trickles
SEND_SECONDS = 8.0  # in which a client must read at least MIN_READ_BYTES
MIN_READ_BYTES = 64 * 1024
MAX_CONNECTIONS = 200  # a browser opens six to a server


# A line that ends without a carriage return, or a header that goes on in the next line.
LENIENT_LINES = re.compile(rb"(?<!\r)\n|\n[ \t]")


class StrictConnection(h11.Connection):
    """A connection of h11 that refuses requests whose end or headers two servers could read differently (RFC 9112)."""

    def next_event(self) -> Any:
        """Return the next event of h11; raise RemoteProtocolError for a request that is ambiguous."""
        before = self.trailing_data[0] if self.their_state is h11.IDLE else b""
        event = super().next_event()
        if isinstance(event, h11.Request):
            head = before[: len(before) - len(self.trailing_data[0])]
            self._check_head(head, {name for name, _ in event.headers}, event.http_version)
        return event

    @staticmethod
    def _check_head(head: bytes, names: set[bytes], version: bytes) -> None:
        if b"transfer-encoding" in names and (b"content-length" in names or version < b"1.1"):
            raise h11.RemoteProtocolError("Transfer-Encoding beside Content-Length, or in HTTP/1.0")
        if LENIENT_LINES.search(head):
            raise h11.RemoteProtocolError("lines that do not end in CRLF, or that are folded")


class CountingTransport:
    """A transport that counts the bytes written to it, and drops what comes after it was closed.

    An event stream may have many lines ready when the server aborts its connection: it hears of that only when it
    waits, and asyncio logs every write until then.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.bytes_written: int = 0

    def write(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        self.bytes_written += len(data)
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class TimeoutProtocol(H11Protocol):
    """Closes a request that is incomplete after RECEIVE_SECONDS, and a response not read for SEND_SECONDS."""

    request_began: float | None = None  # time at which a request began that is still incomplete
    last_read: tuple[float, int] | None = None  # (time, bytes sent by then) while a response waits to be read

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.conn: h11.Connection = StrictConnection(h11.SERVER, HEADER_LIMIT)

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.counted: CountingTransport = CountingTransport(transport)
        super().connection_made(cast("asyncio.Transport", self.counted))
        self.request_began = self.loop.time()
        if len(self.connections) > MAX_CONNECTIONS:
            self._evict_idle_connection()

    def _evict_idle_connection(self) -> None:
        """Close the connection that has been idle longest; if none is idle, refuse this one."""
        others = [c for c in self.connections if isinstance(c, TimeoutProtocol) and c is not self]
        alive = [other for other in others if not other.transport.is_closing()]
        idle = [other for other in alive if not other.is_responding]
        if len(alive) < MAX_CONNECTIONS:
            return
        if idle:
            min(idle, key=lambda other: other.request_began or 0.0).transport.abort()
        else:
            self.refuse(503, f"{MAX_CONNECTIONS} connections are open, and all of them are in use", "retry-after: 1")

    @property
    def is_responding(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete and not self._is_receiving

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._update_request_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._update_request_timer()

    def _update_request_timer(self) -> None:
        if not self._is_receiving:
            self.request_began = None
        elif self.request_began is None:
            self.request_began = self.loop.time()

    @property
    def _is_receiving(self) -> bool:
        state = self.conn.their_state
        return state is h11.SEND_BODY or (state is h11.IDLE and bool(self.conn.trailing_data[0]))

    def enforce_timeouts(self, now: float) -> None:
        """Close the connection if its client is too slow. The server calls this twice a second."""
        if self._is_unread(now):
            self.transport.abort()
        elif self.request_began is not None and now - self.request_began > RECEIVE_SECONDS:
            self._time_out_request()

    def _is_unread(self, now: float) -> bool:
        buffered = self.transport.get_write_buffer_size()
        sent = self.counted.bytes_written - buffered
        if not buffered:
            self.last_read = None
        elif self.last_read is None or sent - self.last_read[1] >= MIN_READ_BYTES:
            self.last_read = (now, sent)
        return self.last_read is not None and now - self.last_read[0] > SEND_SECONDS

    def _time_out_request(self) -> None:
        self.request_began = None
        if self.transport.is_closing():
            self.transport.abort()
        elif not self._is_receiving:
            self.transport.close()  # no request was begun
        else:
            self.refuse(408, f"a request has to arrive within {RECEIVE_SECONDS:.0f} seconds")

    def send_400_response(self, msg: str) -> None:
        """Refuse what h11 cannot parse. It does not say whether the head was too long, so that is looked up."""
        unparsed = self.conn.trailing_data[0]
        if len(unparsed) <= HEADER_LIMIT:
            self.refuse(400, "this is not HTTP/1.1 as RFC 9112 has it")
        elif b"\n" not in unparsed:
            self.refuse(414, "an address is not as long as this")
        else:
            self.refuse(431, f"headers have at most {HEADER_LIMIT} bytes")

    def refuse(self, status: int, message: str, *more: str) -> None:
        """Send an error without the application, and close; more: header lines."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # in the middle of a response
            self.transport.abort()
            return
        body = strict_json.dumps({"error": message})
        extra = [tuple(line.split(": ", 1)) for line in more]
        fixed = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
        headers = [*HEADERS.items(), *fixed.items(), *extra]
        response = h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status])
        events = (response, h11.Data(data=body), h11.EndOfMessage())
        self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))  # in one piece, before a reset
        self.transport.close()
