"""A real server on a real socket, and a client that can say things which no library would."""

import json
import socket
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import httpx
import torch
from tiny_models import build as tiny_model
from tiny_models import tokens

import regard as rg
from regard.web.api.registry import RecordingRegistry
from regard.web.app import TableRow, build, table
from regard.web.serve import Server, configure, listen
from regard.web.server.guard import ServerAddress
from regard.web.server.page import StaticPage
from regard.web.server.workers import WorkerPools


class Running(NamedTuple):
    address: ServerAddress
    registry: RecordingRegistry
    workers: WorkerPools
    rows: list[TableRow]
    id: str
    recording: rg.Recording
    server: Server

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.address.port}"

    def client(self, **options) -> httpx.Client:
        return httpx.Client(
            base_url=self.address.url,
            cookies={self.address.cookie: self.address.token},
            timeout=60,
            trust_env=False,
            **options,
        )

    def healthy(self) -> bool:
        with self.client() as client:
            return client.get("/api/health").json() == {"ok": True}


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def a_page(folder: Path) -> StaticPage:
    """Something like a built page, so that tests do not wait for one."""
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>regard</title>")
    (folder / "assets" / "page-1a2b.js").write_text("export {}")
    (folder / "secret.txt").write_text("not listed")
    return StaticPage(folder)


def a_recording(folder: Path) -> rg.Recording:
    model = tiny_model("Llama without padding")
    with torch.no_grad(), rg.record(model) as recording:
        model(input_ids=tokens(2, 301))
    recording.miss("lm_head", "it stands for a layer that was left out")
    recording.save(folder / "tiny.regard")
    return rg.open(folder / "tiny.regard")


@contextmanager
def running(folder: Path, *, lab: bool = True, page: StaticPage | None = None):
    registry, workers = RecordingRegistry(), WorkerPools()
    page = page or a_page(folder / "static")
    recording = a_recording(folder)
    registered = registry.add(recording, "tiny.regard")
    listening = listen("127.0.0.1", 0)
    address = ServerAddress("127.0.0.1", listening.getsockname()[1])
    ready = threading.Event()
    server = Server(configure(build(address, page, registry, workers, lab=lab)), workers, ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    assert ready.wait(30)
    rows = table(page, registry, workers, lab=lab)
    try:
        yield Running(address, registry, workers, rows, registered.id, recording, server)
    finally:
        server.should_exit = True
        thread.join(10)
        registry.close()
        assert not thread.is_alive(), "the server does not stop"


def raw(
    method: str, target: str, headers: list[tuple[str, str]], body: bytes = b"", version: str = "HTTP/1.1"
) -> bytes:
    lines = [f"{method} {target} {version}", *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def ask(port: int, request: bytes, *, timeout: float = 20) -> Answer | None:
    """Send bytes and read one answer; None if the server just closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        with suppress(OSError):  # it answered and closed before all was sent: that is what we want to read
            connection.sendall(request)
        return read_answer(connection, body=not request.startswith(b"HEAD "))


def read_answer(connection: socket.socket, *, body: bool = True) -> Answer | None:
    got = b""
    try:
        while b"\r\n\r\n" not in got:
            part = connection.recv(65536)
            if not part:
                return None
            got += part
        head, _, rest = got.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        length = int(headers.get("content-length", "0")) if body else 0
        while len(rest) < length:
            part = connection.recv(65536)
            if not part:
                break
            rest += part
    except ConnectionResetError:
        return None
    return Answer(int(first.split()[1]), headers, rest)


def events(text: str) -> list[dict]:
    return [json.loads(line.removeprefix("data: ")) for line in text.split("\n\n") if line]
