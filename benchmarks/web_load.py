"""A server in a process of its own, and clients that ask it at a given rate or as fast as it answers.

Open loop: requests leave at their times whether or not earlier ones are answered, and a latency counts from the time at
which the request should have left. Closed loop: each connection asks again when it has its answer.
"""

from __future__ import annotations

import asyncio
import atexit
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PLAIN = """
import sys, uvicorn
body = open(sys.argv[1], "rb").read()
head = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]}
async def app(scope, receive, send):
    await send(head)
    await send({"type": "http.response.body", "body": body})
port = int(sys.argv[2])
print(f"http://127.0.0.1:{port}/?token=", flush=True)
uvicorn.run(app, port=port, http="h11", loop="asyncio", lifespan="off", log_level="critical", access_log=False)
"""


@dataclass
class Served:
    """A server process, with its address and cookie."""

    process: subprocess.Popen[str]
    port: int
    token: str

    @property
    def memory(self) -> int:
        """Resident bytes."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))

    def request(self, target: str) -> bytes:
        cookie = f"regard-{self.port}={self.token}"
        return f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nCookie: {cookie}\r\n\r\n".encode()


def serve(file: Path) -> Served:
    """Start `regard view` as users do."""
    return started([sys.executable, "-c", "from regard.cli import main; main()", "view", str(file), "--no-open"])


def serve_plain(file: Path) -> Served:
    """Start uvicorn with an application that always returns the same bytes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    served = started([sys.executable, "-c", PLAIN, str(file), str(port)])
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return served


def started(command: list[str]) -> Served:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    atexit.register(process.kill)
    assert process.stdout is not None  # noqa: S101  it is a pipe
    address, _, token = process.stdout.readline().strip().partition("#")[0].partition("?token=")
    return Served(process, int(address.rstrip("/").rpartition(":")[2]), token)


class Asking:
    """One connection, one question after the other."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")

    def __call__(self, request: bytes) -> tuple[int, bytes]:
        self._socket.sendall(request)
        status, length = int(self._file.readline().split()[1]), 0
        while (line := self._file.readline()) != b"\r\n":
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return status, self._file.read(length)


@dataclass
class Tally:
    """The results of many requests."""

    latencies: list[float] = field(default_factory=list)
    errors: int = 0
    seconds: float = 0.0

    def quantile(self, share: float) -> float:
        """In milliseconds."""
        ordered = sorted(self.latencies)
        return 1e3 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    @property
    def per_second(self) -> float:
        return len(self.latencies) / self.seconds


def closed_loop(served: Served, targets: Iterator[str], connections: int, seconds: float) -> Tally:
    return asyncio.run(_closed(served, targets, connections, seconds))


def open_loop(
    served: Served, targets: Sequence[str], rate: float, seconds: float, each_second: Callable[[], None]
) -> Tally:
    return asyncio.run(_open(served, targets, rate, seconds, each_second))


async def _fetch(stream: tuple[asyncio.StreamReader, asyncio.StreamWriter], request: bytes) -> bool:
    """Send one request; return True if the status is 200."""
    reader, writer = stream
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(length)
    return head.startswith(b"HTTP/1.1 200")


async def _connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port, limit=2**20)


async def _closed(served: Served, targets: Iterator[str], connections: int, seconds: float) -> Tally:
    tally, end = Tally(), time.perf_counter() + seconds

    async def one() -> None:
        stream = await _connect(served.port)
        while (begin := time.perf_counter()) < end:
            tally.errors += not await _fetch(stream, served.request(next(targets)))
            tally.latencies.append(time.perf_counter() - begin)
        stream[1].close()

    begin = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(connections)))
    tally.seconds = time.perf_counter() - begin
    return tally


async def _open(
    served: Served, targets: Sequence[str], rate: float, seconds: float, each_second: Callable[[], None]
) -> Tally:
    tally, idle, tasks = Tally(), [await _connect(served.port) for _ in range(8)], set[asyncio.Task[None]]()

    async def one(due: float, target: str) -> None:
        stream = idle.pop() if idle else await _connect(served.port)
        try:
            tally.errors += not await _fetch(stream, served.request(target))
        except (OSError, asyncio.IncompleteReadError):
            tally.errors += 1
            return
        tally.latencies.append(time.perf_counter() - due)
        idle.append(stream)

    begin = time.perf_counter()
    for number in range(int(rate * seconds)):
        due = begin + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        task = asyncio.create_task(one(due, targets[number % len(targets)]))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        if number % int(rate) == 0:
            each_second()
    await asyncio.gather(*tasks)
    tally.seconds = time.perf_counter() - begin
    return tally
