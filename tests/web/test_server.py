"""The server as people meet it: the address, the cookie, events that stop, a page that is not there, Ctrl-C."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from web_server import a_recording, events, running

from regard.errors import CallError, ChoiceError
from regard.lab import strict_json
from regard.web.api.registry import MAX_LAB_RECORDINGS, RecordingRegistry, batch_and_heads
from regard.web.serve import listen
from regard.web.server import workers
from regard.web.server.errors import ApiError
from regard.web.server.guard import HEADERS, ServerAddress
from regard.web.server.page import StaticPage

WAIT = 200  # seconds: on a busy machine `import torch` alone may take one minute


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("web")) as running_server:
        yield running_server


def until(condition) -> bool:
    end = time.monotonic() + WAIT
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


# The way in


def test_the_token_becomes_a_cookie_and_leaves_the_address(server):
    with httpx.Client(base_url=server.address.url, trust_env=False) as client:
        for _ in range(2):  # it can be used again
            answer = client.get("/", params={"lang": "zh", "token": server.address.token, "x": "a b"})
            assert answer.status_code == 303
            assert answer.headers["location"] == "/?lang=zh&x=a+b"
            said = answer.headers["set-cookie"].lower()
            assert all(
                word in said for word in (f"regard-{server.address.port}=", "httponly", "samesite=strict", "path=/")
            )
        assert client.get("/").status_code == 200


def test_a_visitor_from_another_sites_link_is_reloaded(server):
    """Browsers keep a strict cookie back then; `Sec-Fetch-Site` is how they say so."""
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    with httpx.Client(base_url=server.address.url, trust_env=False, headers=link) as client:
        answer = client.get("/?lang=zh&x=%22%3E%3Cscript%3E&y=%27")
        assert answer.status_code == 401
        assert 'content="0;url=/?lang=zh&amp;x=%22%3E%3Cscript%3E&amp;y=%27"' in answer.text
        assert client.get("/api/health").json()["error"].startswith("open the address")


def test_every_response_has_the_security_headers(server):
    with server.client() as client:
        for answer in (client.get("/"), client.get("/api/health"), client.get("/nothing"), client.put("/")):
            assert all(answer.headers[name] == value for name, value in HEADERS.items())
            assert not [name for name in answer.headers if name.startswith("access-control")]
            assert "server" not in answer.headers


def test_localhost_and_the_servers_own_origin_are_accepted(server):
    host = f"localhost:{server.address.port}"
    with server.client(headers={"Host": host, "Origin": f"http://{host}"}) as client:
        assert client.get("/api/health").status_code == 200


@pytest.mark.parametrize(
    ("bound", "asked", "ours"),
    [
        ("127.0.0.1", "127.0.0.1:80", True),
        ("127.0.0.1", "LOCALHOST:80", True),
        ("127.0.0.1", "[::1]:80", True),
        ("127.0.0.1", "192.168.1.7:80", False),
        ("192.168.1.7", "192.168.1.7:80", True),
        ("192.168.1.7", "192.168.1.8:80", False),
        ("0.0.0.0", "192.168.1.8:80", True),  # noqa: S104
        ("0.0.0.0", "evil.example:80", False),  # noqa: S104
        ("fe80::1", "[fe80::1]:80", True),
        ("127.0.0.1", "127.0.0.1", False),
    ],
)
def test_a_server_knows_the_names_of_its_own_host(bound, asked, ours):
    assert ServerAddress(bound, 80).is_own_host(asked) is ours


def test_the_token_is_not_in_the_repr():
    address = ServerAddress("127.0.0.1", 80)
    assert address.token not in repr(address)
    assert address.token != ServerAddress("127.0.0.1", 80).token


# Events


def test_training_sends_an_event_for_each_step(server):
    with server.client() as client:
        found = events(client.get("/api/lessons/regression/train", params={"state": '{"steps": 3}'}).text)
    assert len(found) >= 4
    assert found[-1].get("done")


def test_training_stops_when_the_client_disconnects(server):
    with server.client() as client:
        with client.stream("GET", "/api/lessons/regression/train") as answer:
            assert next(answer.iter_lines()).startswith("data: ")
        assert until(lambda: not server.workers.long.is_busy)


def test_a_failing_event_stream_ends_with_the_error(server, monkeypatch):
    from regard.web.api import recorder

    def failing(*_):
        yield {"stage": "loading"}
        raise ChoiceError("no such thing")

    monkeypatch.setattr(recorder, "events", failing)
    with server.client() as client:
        found = events(client.post("/api/recordings", json={"text": "a"}).text)
    assert found == [{"stage": "loading"}, {"error": "no such thing", "kind": "ChoiceError"}]


def test_a_text_is_recorded_by_a_real_model(server):
    text = "His father is two meters tall </script><b>"
    with server.client() as client:
        found = events(client.post("/api/recordings", json={"text": text, "model": "minilm"}).text)
        assert [found[0]["stage"], found[-1]["stage"]] == ["loading", "done"]
        made = client.get(f"/api/recordings/{found[-1]['id']}").json()
        assert (made["model"], made["layers"], made["heads"], made["name"]) == ("minilm", 6, 12, text)
        texts = made["tokens"]["0"]["input_ids"][0]
        assert texts[0] == "[CLS]" and len(texts) == made["entries"][0]["shape"][2]
        profiles = f"/api/recordings/{made['id']}/profiles"
        assert until(lambda: client.get(profiles).status_code == 200)
        rows = client.get(profiles).json()["rows"]
        assert all(0 < row["separators"] < 1 for row in rows)  # [CLS] and [SEP] are there


@pytest.mark.parametrize(("text", "why"), [("他爱吃苹果", "does not know"), ("word " * 600, "512")])
def test_a_text_that_the_model_cannot_read_is_an_error(server, text, why):
    with server.client() as client:
        found = events(client.post("/api/recordings", json={"text": text, "model": "minilm"}).text)
    assert why in found[-1]["error"]


# Work


def test_cancelled_jobs_leave_the_queue_and_a_full_queue_is_503():
    pool = workers.WorkerPool("test", workers=1, max_queued=2)
    go, ran = threading.Event(), []
    first = pool.submit(lambda _: go.wait(WAIT))
    assert until(first.future.running)
    second, third = (pool.submit(lambda _, n=n: ran.append(n)) for n in (2, 3))
    with pytest.raises(ApiError) as refused:
        pool.submit(lambda _: None)
    assert refused.value.status == 503 and refused.value.headers["retry-after"] == "1"
    second.cancel()
    fourth = pool.submit(lambda _: ran.append(4))  # there is room again
    go.set()
    assert until(lambda: fourth.future.done() and third.future.done())
    assert ran == [3, 4]
    pool.stop()


def test_a_full_queue_is_503_over_http(server, monkeypatch):
    monkeypatch.setattr(server.workers.quick, "_max_queued", 0)
    with server.client() as client:
        answer = client.get("/api/recordings")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_json_responses_have_null_for_nan_and_infinity():
    assert (
        strict_json.dumps({"a": [float("nan"), float("inf"), 1.5], "b": "\ud800"}) == b'{"a":[null,null,1.5],"b":"?"}'
    )


# What is served


def test_a_page_that_is_not_built_is_503_with_instructions(tmp_path):
    with running(tmp_path, page=StaticPage(tmp_path / "nothing")) as server, server.client() as client:
        answer = client.get("/")
        assert answer.status_code == 503 and "not built" in answer.text
        assert client.get("/api/health").status_code == 200


def test_files_added_after_the_start_are_not_served(tmp_path):
    with running(tmp_path) as server, server.client() as client:
        assert client.get("/assets/page-1a2b.js").text == "export {}"
        assert client.get("/assets/page-1a2b.js").headers["content-type"] == "text/javascript; charset=utf-8"
        (tmp_path / "static" / "assets" / "later.js").write_text("x")
        assert client.get("/assets/later.js").status_code == 404


def test_the_viewer_without_the_lab_cannot_record(tmp_path):
    with running(tmp_path, lab=False) as server, server.client() as client:
        answer = client.post("/api/recordings", json={"text": "a"})
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


def test_ids_are_stable_per_file_and_old_lab_recordings_are_deleted(tmp_path):
    registry, recording = RecordingRegistry(), a_recording(tmp_path)
    assert registry.add(recording, "a").id == RecordingRegistry().add(recording, "b").id
    files = [registry.new_file() for _ in range(MAX_LAB_RECORDINGS + 2)]
    for file in files:
        file.write_bytes(b"")
        registry.add(recording, "made", temporary=file)
    assert [file.exists() for file in files] == [False, False] + [True] * MAX_LAB_RECORDINGS
    registry.close()
    assert not files[-1].parent.exists()


@pytest.mark.parametrize(
    ("shape", "expected"), [((5, 7), (1, 1)), ((3, 5, 7), (3, 1)), ((2, 3, 5, 7), (2, 3)), ((2, 3, 11, 5, 7), (6, 11))]
)
def test_batch_and_heads_of_any_shape(shape, expected):
    assert batch_and_heads(shape) == expected


# The commands


def test_a_taken_port_is_an_error_but_the_default_port_falls_back():
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(CallError, match=f"port {port} is taken"):
            listen("127.0.0.1", port)
    with listen("127.0.0.1", None), listen("127.0.0.1", None) as second:
        assert second.getsockname()[1] > 0
    with pytest.raises(ChoiceError):
        listen("256.0.0.1", None)


def start(*arguments, **options) -> subprocess.Popen:
    command = [sys.executable, "-c", "from regard.cli import main; main()", *arguments]
    environment = {**os.environ, "COLUMNS": "20", "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True, **options
    )


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is sent as a signal")
def test_the_command_prints_one_line_and_stops_at_once_with_streams_open(tmp_path):
    a_recording(tmp_path)
    process = start("view", str(tmp_path / "tiny.regard"), "--no-open")
    try:
        line = process.stdout.readline().rstrip("\n")
        assert line.startswith("http://127.0.0.1:") and "?token=" in line and "#/view/" in line
        with httpx.Client(trust_env=False, timeout=WAIT) as client:
            base = line.partition("?")[0]
            assert client.get(line.partition("#")[0]).status_code == 303
            with client.stream("GET", f"{base}api/lessons/regression/train") as answer:
                next(answer.iter_lines())
                process.send_signal(signal.SIGINT)
                assert process.wait(WAIT) == 0
        assert process.stdout.read() == ""
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.communicate()


def test_wrong_files_and_ports_are_errors_of_one_line(tmp_path):
    (tmp_path / "no.regard").write_text("hello")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        asked = [
            (("view", str(tmp_path / "no.regard"), "--no-open"), "no.regard"),
            (("view", str(tmp_path / "none.regard"), "--no-open"), "none.regard"),
            (("lab", "--no-open", "--port", port), f"port {port} is taken"),
        ]
        for process, why in [(start(*arguments), why) for arguments, why in asked]:
            out, err = process.communicate(timeout=WAIT)
            assert process.returncode == 1 and out == ""
            assert why in err and err.startswith("regard: ") and err.count("\n") == 1


def test_a_public_address_is_warned_of():
    process = start("lab", "--no-open", "--host", "0.0.0.0")  # noqa: S104
    try:
        assert "nothing is encrypted" in process.stderr.readline()
        assert process.stdout.readline().startswith("http://127.0.0.1:")
    finally:
        process.kill()
        process.communicate()


def test_the_built_page_or_its_source_is_there():
    """The built page is checked in; until it is, the server says so itself."""
    page = StaticPage()
    assert page.index is None or Path(__file__).parents[2].joinpath("frontend").exists()


def test_the_server_starts_without_importing_torch():
    code = "import sys; import regard.web.serve; sys.exit('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
