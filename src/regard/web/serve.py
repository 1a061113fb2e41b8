"""Run the server: choose a port, print the address, open a browser, and stop at once on a signal."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from regard.errors import CallError, ChoiceError
from regard.web.api.registry import RecordingRegistry
from regard.web.app import build
from regard.web.browser import RedirectFile
from regard.web.server.guard import HEADER_LIMIT, ServerAddress
from regard.web.server.page import StaticPage
from regard.web.server.protocol import TimeoutProtocol
from regard.web.server.workers import Job, WorkerPools

DEFAULT_PORT = 8765  # if it is taken, any free one
TICKS_PER_SWEEP = 5  # a tick of uvicorn is a tenth of a second; connections are checked twice a second


class Server(uvicorn.Server):
    """uvicorn that closes slow connections, and calls `on_start` as soon as it answers."""

    def __init__(self, config: uvicorn.Config, workers: WorkerPools, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._workers, self._on_start = workers, on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._workers.load_torch()
        self._on_start()

    async def on_tick(self, counter: int) -> bool:
        if counter % TICKS_PER_SWEEP == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, TimeoutProtocol):
                    connection.enforce_timeouts(now)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._workers.stop()  # event streams end by themselves then
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def run(
    files: Sequence[Path],
    *,
    lab: bool,
    host: str,
    port: int | None,
    announce: Callable[[str], None],
    open_browser: bool,
) -> None:
    """Open the files, take a port, and serve until a signal comes; `announce` is called with the address."""
    registry, workers = RecordingRegistry(), WorkerPools()
    for path in files:
        registry.add(_open(path), path.name)
    listening = listen(host, port)
    address = ServerAddress(host, listening.getsockname()[1])
    first = next(iter(registry), None)
    fragment = "" if lab or first is None else f"#/view/{first.id}"
    url = f"{address.url}?token={address.token}{fragment}"
    try:
        with _exit_on_signals(), RedirectFile() as redirect:

            def on_start() -> None:
                announce(url)
                if open_browser:
                    redirect.open(url)

            serve(address, listening, registry, workers, lab=lab, on_start=on_start)
    finally:
        if not workers.wait_until_idle(1.0):  # a thread deep inside torch cannot be stopped
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)


def serve(
    address: ServerAddress,
    listening: socket.socket,
    registry: RecordingRegistry,
    workers: WorkerPools,
    *,
    lab: bool,
    on_start: Callable[[], None],
) -> None:
    """Answer requests until a signal comes, and delete the recordings that the lab has made."""
    server = Server(configure(build(address, StaticPage(), registry, workers, lab=lab)), workers, on_start)
    if lab:
        workers.background.submit(_show_lessons_once)
    try:
        server.run(sockets=[listening])
    finally:
        workers.stop()
        listening.close()
        registry.close()


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Turn SIGTERM, and the SIGHUP of a terminal that is closed, into SystemExit: files are removed before the end.

    uvicorn stops on SIGTERM, and then sends it again to the handler that it found.
    """
    if threading.current_thread() is not threading.main_thread():  # signals are for the main thread alone
        yield
        return

    def leave(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    handlers: dict[int, Any] = {signal.SIGTERM: leave}
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # not after nohup
        handlers[signal.SIGHUP] = lambda *_: signal.raise_signal(signal.SIGTERM)
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _show_lessons_once(job: Job[None]) -> None:
    """Compute each lesson once, so that the first visit is quick; one with a language model waits for its visit."""
    from regard.lab.pages import PAGES

    for page in PAGES.values():
        if not page.loads_model and not job.cancelled():
            page.show(page.read({}))


def configure(app: Any) -> uvicorn.Config:
    """uvicorn's settings: HTTP/1.1 only, with our timeouts, and no log of its own."""
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # the application logs its own failures
    return uvicorn.Config(
        app,
        http=TimeoutProtocol,
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
    """A listening socket: on `port`, or on the default port, or on any free one if that is taken."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port or DEFAULT_PORT, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise ChoiceError(f"{host!r} is no address of this machine: {error}") from error
    for number in (port,) if port is not None else (DEFAULT_PORT, 0):
        # With its protocol: asyncio sets TCP_NODELAY, which sends small answers at once, only on a TCP socket.
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
            raise _bind_error(host, number, error) from error
        return listening
    raise AssertionError  # port 0 is never taken


def _bind_error(host: str, port: int, error: OSError) -> Exception:
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
