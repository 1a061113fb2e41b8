"""Server-sent events: what a thread finds out, step by step, as `data: {json}` lines."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import closing, suppress
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from regard.errors import RegardError
from regard.web.server.errors import dumps
from regard.web.server.workers import Cancelled, Job, Pool

AHEAD = 32  # events that a client may be behind before the work waits for it
HEADERS = {"cache-control": "no-store", "content-type": "text/event-stream; charset=utf-8"}

Events = Callable[[Job[None]], Iterator[dict[str, Any]]]


async def stream(request: Request, pool: Pool, events: Events) -> Response:
    """Run `events` in a thread and send what it yields. It is closed when the client leaves."""
    if request.method == "HEAD":
        return Response(headers=HEADERS)
    belt = _Belt()
    job = pool.start(lambda job: belt.run(job, events))

    async def lines() -> AsyncIterator[bytes]:
        try:
            async for event in belt:
                yield b"data: " + dumps(event) + b"\n\n"
        finally:
            job.cancel()

    return StreamingResponse(lines(), headers=HEADERS)


class _Belt:
    """From a thread to the event loop, a few events long."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue = asyncio.Queue[dict[str, Any] | None]()
        self._room = threading.Semaphore(AHEAD)

    def run(self, job: Job[None], events: Events) -> None:
        try:
            with closing(cast("Generator[dict[str, Any]]", events(job))) as found:
                for event in found:
                    self._put(job, event)
        except Cancelled:
            pass
        except RegardError as error:
            self._last({"error": str(error)})
        except Exception:
            logging.getLogger("regard.web").exception("an event stream failed")
            self._last({"error": "this failed inside regard; the terminal says how"})
        finally:
            self._last(None)

    def _put(self, job: Job[None], event: dict[str, Any]) -> None:
        """Waits for room, and looks up while it waits."""
        while not self._room.acquire(timeout=0.1):
            job.check()
        job.check()
        self._last(event)

    def _last(self, event: dict[str, Any] | None) -> None:
        with suppress(RuntimeError):  # the loop has ended, and with it everybody who could listen
            self._loop.call_soon_threadsafe(self._queue.put_nowait, event)

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        while (event := await self._queue.get()) is not None:
            self._room.release()
            yield event
