"""A server on this machine: a port, a line that says where, and an end that comes quickly."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import uvicorn

from regard.errors import CallError, ChoiceError
from regard.web.api.registry import Shelf
from regard.web.app import build
from regard.web.server.guard import HEADER_LIMIT, Door
from regard.web.server.page import Page
from regard.web.server.protocol import Impatient
from regard.web.server.workers import Job, Workshop

USUAL_PORT = 8765
SWEEP = 5  # ticks of uvicorn, a tenth of a second each


class Server(uvicorn.Server):
    """uvicorn that looks after its connections and tells when it answers."""

    def __init__(self, config: uvicorn.Config, work: Workshop, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._work, self._tell = work, started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._work.warm()
        self._tell()

    async def on_tick(self, counter: int) -> bool:
        if counter % SWEEP == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, Impatient):
                    connection.sweep(now)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._work.stop()  # event streams end by themselves then
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def run(files: Sequence[Path], *, lab: bool, host: str, port: int | None, announce: Callable[[str], None]) -> None:
    shelf = Shelf()
    for path in files:
        shelf.put(_open(path), path.name)
    listening = listen(host, port)
    door = Door(host, listening.getsockname()[1])
    first = next(iter(shelf), None)
    place = "" if lab or first is None else f"#/view/{first.id}"
    serve(door, listening, shelf, lab=lab, started=lambda: announce(f"{door.url}?token={door.token}{place}"))


def serve(door: Door, listening: socket.socket, shelf: Shelf, *, lab: bool, started: Callable[[], None]) -> None:
    """Answer until a signal comes."""
    work = Workshop()
    server = Server(configured(build(door, Page(), shelf, work, lab=lab)), work, started)
    if lab:
        work.behind.start(_warm)
    try:
        server.run(sockets=[listening])
    finally:
        work.stop()
        listening.close()
        shelf.close()
        if not work.wait(1.0):  # a thread deep inside torch hears nothing, and nothing of it is worth waiting for
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)


def _warm(job: Job[None]) -> None:
    """Import torch and show each lesson once while people still look for the page; models wait until asked for."""
    from regard.lab.pages import PAGES

    for page in PAGES.values():
        if page.name not in ("heads", "relevance") and not job.cancelled():
            page.show(page.read({}))


def configured(app: Any) -> uvicorn.Config:
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # what fails in the application is told there
    return uvicorn.Config(
        app,
        http=Impatient,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=HEADER_LIMIT,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
        backlog=128,
    )


def listen(host: str, port: int | None) -> socket.socket:
    """A socket that is ours: the port that was asked for, or the usual one, or else any."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port or USUAL_PORT, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise ChoiceError(f"{host!r} is no address of this machine: {error}") from error
    for number in (port,) if port is not None else (USUAL_PORT, 0):
        # With its protocol: asyncio sends small answers at once only on a socket that says it is TCP.
        listening = socket.socket(family, kind, protocol)
        if os.name == "posix":  # elsewhere it would let two servers share a port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((address[0], number, *address[2:]))
            listening.listen(128)
        except OSError as error:
            listening.close()
            if error.errno == errno.EADDRINUSE and port is None and number:
                continue
            raise _refused(host, number, error) from error
        return listening
    raise AssertionError  # port 0 is never taken


def _refused(host: str, port: int, error: OSError) -> Exception:
    if error.errno == errno.EADDRINUSE:
        return CallError(f"port {port} is taken by another program: choose another, --port N, or leave --port out")
    if error.errno == errno.EACCES:
        return CallError(f"port {port} is not ours to take: choose one above 1023")
    if error.errno == errno.EADDRNOTAVAIL:
        return ChoiceError(f"{host} is no address of this machine")
    return error


def _open(path: Path) -> Any:
    import regard as rg

    return rg.open(path)
