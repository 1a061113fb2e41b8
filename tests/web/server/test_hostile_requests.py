"""Every route of the table against those who mean no good."""

import socket

import pytest
from web_hostile import EXAMPLES, Hostile
from web_server import ask, raw, read_answer, running


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("web")) as running_server:
        yield running_server


def test_every_route_has_hostile_cases(server):
    assert {(row.method, row.path) for row in server.rows} == set(EXAMPLES)


@pytest.mark.parametrize("route", list(EXAMPLES), ids=" ".join)
def test_hostile_requests_are_refused_with_the_right_status(server, route):
    method, path = route
    row = next(row for row in server.rows if (row.method, row.path) == (method, path))
    cases = list(Hostile(server, row).cases())
    wrong = []
    for case in cases:
        answer = ask(server.address.port, case.request)
        if answer is None or answer.status != case.status:
            wrong.append(f"{case.name}: {case.status} expected, {answer and (answer.status, answer.body[:80])}")
        elif answer.status == 405 and method not in answer.headers["allow"]:
            wrong.append(f"{case.name}: Allow is {answer.headers['allow']}")
        elif "frame-ancestors 'none'" not in answer.headers["content-security-policy"]:
            wrong.append(f"{case.name}: no policy")
    assert not wrong, "\n".join(wrong)
    assert len(cases) >= 50
    assert len({case.name for case in cases}) == len(cases)
    assert server.healthy()


AMBIGUOUS = {
    "length and pieces": b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n",
    "folded length": b"Content-Length:\r\n 0\r\n\r\n",
    "pieces that end in LF": b"Transfer-Encoding: chunked\r\n\r\n1\r\naXX0\r\n\r\n",
    "header behind LF": b"X-Odd: a\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("rest", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_a_request_behind_an_ambiguous_one_is_never_answered(server, rest):
    cookie = ("Cookie", f"{server.address.cookie}={server.address.token}")
    first = raw("POST", "/api/lessons/cues", [("Host", server.host), cookie])[:-2] + rest
    second = raw("GET", "/api/health", [("Host", server.host), cookie])
    with socket.create_connection(("127.0.0.1", server.address.port), timeout=20) as connection:
        connection.sendall(first + second)
        answer = read_answer(connection)
        assert answer.status == 400 and answer.headers["connection"] == "close"
        assert connection.recv(1) == b""
    assert server.healthy()


def test_a_chunk_extension_and_a_trailer_are_ignored(server):
    """RFC 9112 asks for it; neither may be taken for a part of the body."""
    cookie = ("Cookie", f"{server.address.cookie}={server.address.token}")
    headers = [("Host", server.host), cookie, ("Transfer-Encoding", "chunked")]
    body = b'1;a="b;c"\r\n{\r\n1\r\n}\r\n0;x\r\nContent-Length: 7\r\n\r\n'
    answer = ask(server.address.port, raw("POST", "/api/lessons/cues", headers, body))
    assert answer is not None and answer.status == 200
