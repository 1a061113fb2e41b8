"""Every route of the table against those who mean no good."""

import pytest
from web_hostile import EXAMPLES, Hostile
from web_server import ask, running


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
