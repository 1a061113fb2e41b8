"""Clients that take their time: half a request, a request in drops, an answer that is never read."""

import asyncio
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from web_hostile import EXAMPLES, target_of
from web_server import ask, raw, read_answer, running

from regard.web.serve import TICKS_PER_SWEEP
from regard.web.server import protocol

PATIENCE = 30  # of the test: a server that keeps a connection longer has not closed it


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("web")) as running_server:
        yield running_server


def connect(server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.address.port), timeout=PATIENCE)


def status(waiting) -> int | None:
    answer = waiting.result()
    return answer and answer.status


def half_header(server, target, method):
    """Sent up to the middle of a header, and no further."""
    with connect(server) as connection:
        connection.sendall(raw(method, target, [("Host", server.host)])[:-3])
        return read_answer(connection)


def drops(server, target, method):
    """A byte now and then: it moves, but it does not arrive."""
    with connect(server) as connection:
        stop = threading.Event()

        def drip():
            for byte in raw(method, target, [("Host", server.host), ("X-Long", "a" * 2000)]):
                if stop.wait(0.25):
                    return
                try:
                    connection.sendall(bytes([byte]))
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        answer = read_answer(connection)
        stop.set()
        dripping.join()
        return answer


def half_body(server, target, method):
    """A POST that announces ten bytes and sends four."""
    cookie = ("Cookie", f"{server.address.cookie}={server.address.token}")
    with connect(server) as connection:
        connection.sendall(raw("POST", target, [("Host", server.host), cookie, ("Content-Length", "10")], b'{"a"'))
        answer = read_answer(connection)
        assert answer is None or connection.recv(1) == b""  # and closed
        return answer


def silence(server, *_):
    """Connected, and not a word."""
    with connect(server) as connection:
        return connection.recv(1)


def second_half(server, target, method):
    """A good request, and then half of another one in the same connection."""
    good = raw("GET", "/api/health", [("Host", server.host)])
    with connect(server) as connection:
        connection.sendall(good)
        assert read_answer(connection).status == 401
        connection.sendall(raw(method, target, [("Host", server.host)])[:-3])
        return read_answer(connection)


def unread(server, target, *_):
    """Asks for a hundred tiles and reads none of them; what is left is cut off."""
    cookie = ("Cookie", f"{server.address.cookie}={server.address.token}")
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(PATIENCE)
        connection.connect(("127.0.0.1", server.address.port))
        connection.sendall(raw("GET", target, [("Host", server.host), cookie]) * 100)
        deadline = time.monotonic() + PATIENCE
        own = connection.getsockname()
        while time.monotonic() < deadline:
            if all(c.client != own for c in list(server.server.server_state.connections)):
                return "dropped"
            time.sleep(0.2)
    return "kept"


def test_slow_clients_get_408_or_are_dropped(server):
    """All of them at once, on every route; somebody who is quick is answered meanwhile."""
    targets = [(target_of(row, server.id), row.method) for row in server.rows]
    tile = target_of(next(row for row in server.rows if "{pool}" in row.path), server.id)
    posts = [(target, method) for target, method in targets if method == "POST"]
    with ThreadPoolExecutor(80) as pool:
        headers = [pool.submit(way, server, *where) for way in (half_header, drops, second_half) for where in targets]
        bodies = [pool.submit(half_body, server, *where) for where in posts]
        silent = [pool.submit(silence, server) for _ in range(8)]
        dropped = pool.submit(unread, server, tile)
        cookie = ("Cookie", f"{server.address.cookie}={server.address.token}")
        while not all(waiting.done() for waiting in headers):
            answer = ask(server.address.port, raw("GET", "/api/health", [("Host", server.host), cookie]))
            assert answer is not None and answer.status == 200
            time.sleep(0.1)
        assert [status(waiting) for waiting in headers] == [408] * 3 * len(EXAMPLES)
        assert [status(waiting) for waiting in bodies] == [408] * len(posts)
        assert [waiting.result() for waiting in silent] == [b""] * 8
        assert dropped.result() == "dropped"
    assert server.healthy()


def test_slow_clients_are_closed_within_ten_seconds():
    sweep = TICKS_PER_SWEEP / 10
    assert protocol.RECEIVE_SECONDS + 2 * sweep <= 10
    assert protocol.SEND_SECONDS + 2 * sweep <= 10


def test_cut_requests_leave_no_connection_open(server):
    cookie = ("Cookie", f"{server.address.cookie}={server.address.token}")
    for row in server.rows:
        request = raw(row.method, target_of(row, server.id), [("Host", server.host), cookie, ("Content-Length", "9")])
        for length in (1, 5, len(request) // 2, len(request) - 1, len(request)):
            with connect(server) as connection:
                connection.sendall(request[:length])
    deadline = time.monotonic() + PATIENCE
    while server.server.server_state.connections and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not server.server.server_state.connections
    assert server.healthy()


def test_an_idle_connection_is_evicted_for_a_new_one(server):
    """Whoever sits and says nothing goes first."""
    sitting = [connect(server) for _ in range(protocol.MAX_CONNECTIONS + 20)]
    try:
        assert server.healthy()
        alive = [c for c in list(server.server.server_state.connections) if not c.transport.is_closing()]
        assert len(alive) <= protocol.MAX_CONNECTIONS + 1
    finally:
        for connection in sitting:
            connection.close()


def test_nothing_is_written_or_logged_after_a_connection_was_aborted(caplog):
    async def write_after_abort() -> int:
        ours, theirs = socket.socketpair()
        with theirs:
            transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=ours)
            counted = protocol.CountingTransport(transport)
            counted.write(b"seen")
            transport.abort()
            for _ in range(20):  # asyncio logs from the sixth on
                counted.write(b"too late")
            await asyncio.sleep(0)
            return counted.bytes_written

    assert asyncio.run(write_after_abort()) == len(b"seen")
    assert not caplog.records
