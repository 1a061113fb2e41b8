"""Connections that end: uvicorn waits for ever for the rest of a request, and for a client to read its answer."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from regard.web.server.errors import dumps
from regard.web.server.guard import HEADER_LIMIT, HEADERS

RECEIVE_SECONDS = 8.0  # for a whole request, headers and body: however it trickles
SEND_SECONDS = 8.0  # in which at least SEND_BYTES are read
SEND_BYTES = 64 * 1024
MOST_CONNECTIONS = 200


class CountedTransport:
    """A transport that knows how many bytes it was given."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.given = 0

    def write(self, data: bytes) -> None:
        self.given += len(data)
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Impatient(H11Protocol):
    """Half a request is closed after RECEIVE_SECONDS, an answer that nobody reads after SEND_SECONDS."""

    since: float | None = None  # when the request that is not complete began
    read: tuple[float, int] | None = None  # when how many bytes had left, of an answer that is not all gone

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.counted = CountedTransport(transport)
        super().connection_made(cast("asyncio.Transport", self.counted))
        self.since = self.loop.time()
        if len(self.connections) > MOST_CONNECTIONS:
            self._make_room()

    def _make_room(self) -> None:
        """Somebody who sits and says nothing goes first."""
        others = [c for c in self.connections if isinstance(c, Impatient) and c is not self]
        alive = [other for other in others if not other.transport.is_closing()]
        idle = [other for other in alive if not other.is_answering]
        if len(alive) < MOST_CONNECTIONS:
            return
        if idle:
            min(idle, key=lambda other: other.since or 0.0).transport.abort()
        else:
            self.refuse(503, f"{MOST_CONNECTIONS} connections are open, and all of them are in use", "retry-after: 1")

    @property
    def is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete and not self._is_receiving

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def _look(self) -> None:
        """Whether a request has begun and is not complete."""
        if not self._is_receiving:
            self.since = None
        elif self.since is None:
            self.since = self.loop.time()

    @property
    def _is_receiving(self) -> bool:
        state = self.conn.their_state
        return state is h11.SEND_BODY or (state is h11.IDLE and bool(self.conn.trailing_data[0]))

    def sweep(self, now: float) -> None:
        """Called twice a second for every connection."""
        if self._is_not_read(now):
            self.transport.abort()
        elif self.since is not None and now - self.since > RECEIVE_SECONDS:
            self._too_slow()

    def _is_not_read(self, now: float) -> bool:
        waiting = self.transport.get_write_buffer_size()
        left = self.counted.given - waiting
        if not waiting:
            self.read = None
        elif self.read is None or left - self.read[1] >= SEND_BYTES:
            self.read = (now, left)
        return self.read is not None and now - self.read[0] > SEND_SECONDS

    def _too_slow(self) -> None:
        self.since = None
        if self.transport.is_closing():
            self.transport.abort()
        elif not self._is_receiving:
            self.transport.close()  # nothing was asked
        else:
            self.refuse(408, f"a request has to arrive within {RECEIVE_SECONDS:.0f} seconds")

    def send_400_response(self, msg: str) -> None:
        """What h11 cannot read. It does not say whether it was too long, so we look."""
        begun = self.conn.trailing_data[0]
        if len(begun) <= HEADER_LIMIT:
            self.refuse(400, "this is not HTTP/1.1 as RFC 9112 has it")
        elif b"\n" not in begun:
            self.refuse(414, "an address is not as long as this")
        else:
            self.refuse(431, f"headers have at most {HEADER_LIMIT} bytes")

    def refuse(self, status: int, message: str, *more: str) -> None:
        """Answer below the application, and close."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # in the middle of an answer
            self.transport.abort()
            return
        body = dumps({"error": message})
        extra = [tuple(line.split(": ", 1)) for line in more]
        fixed = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
        headers = [*HEADERS.items(), *fixed.items(), *extra]
        response = h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status])
        events = (response, h11.Data(data=body), h11.EndOfMessage())
        self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))  # in one piece, before a reset
        self.transport.close()
