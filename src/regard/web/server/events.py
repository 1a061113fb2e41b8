"""Server-sent events: what a worker thread yields, sent as `data: {json}` lines."""

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
from regard.lab import strict_json
from regard.web.server.workers import Job, JobCancelled, WorkerPool

MAX_QUEUED_EVENTS = 32  # a client that is further behind makes the worker wait
HEADERS = {"cache-control": "no-store", "content-type": "text/event-stream; charset=utf-8"}

Events = Callable[[Job[None]], Iterator[dict[str, Any]]]


async def event_stream(request: Request, pool: WorkerPool, events: Events) -> Response:
    """Run `events` in a worker thread and send each event it yields. It is closed when the client disconnects."""
    if request.method == "HEAD":
        return Response(headers=HEADERS)
    queue = EventQueue()
    job = pool.submit(lambda job: queue.run(job, events))

    async def lines() -> AsyncIterator[bytes]:
        try:
            async for event in queue:
                yield b"data: " + strict_json.dumps(event) + b"\n\n"
        finally:
            job.cancel()

    return StreamingResponse(lines(), headers=HEADERS)


class EventQueue:
    """A bounded queue from a worker thread to the event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue = asyncio.Queue[dict[str, Any] | None]()
        self._free_slots = threading.Semaphore(MAX_QUEUED_EVENTS)

    def run(self, job: Job[None], events: Events) -> None:
        """Put all events of `events(job)`; an error becomes the last event."""
        try:
            with closing(cast("Generator[dict[str, Any]]", events(job))) as generator:
                for event in generator:
                    self._put_when_free(job, event)
        except JobCancelled:
            pass
        except RegardError as error:
            self._put({"error": str(error), "kind": type(error).__name__})
        except Exception:
            logging.getLogger("regard.web").exception("an event stream failed")
            self._put({"error": "this failed inside regard; the terminal says how"})
        finally:
            self._put(None)

    def _put_when_free(self, job: Job[None], event: dict[str, Any]) -> None:
        while not self._free_slots.acquire(timeout=0.1):
            job.check()
        job.check()
        self._put(event)

    def _put(self, event: dict[str, Any] | None) -> None:
        with suppress(RuntimeError):  # the loop has ended, and with it everybody who could listen
            self._loop.call_soon_threadsafe(self._queue.put_nowait, event)

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        while (event := await self._queue.get()) is not None:
            self._free_slots.release()
            yield event
