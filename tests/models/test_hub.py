"""Names of models, with a hub that is a server of this machine: there, away, silent, or without the model."""

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import tiny_folder

from regard import models
from regard.errors import ChoiceError
from regard.models import _hub

LOAD = "from regard import models; print(type(models.load({name!r})[1]).__name__)"


class Hub(BaseHTTPRequestHandler):
    """The two addresses of the hub that loading a model needs, for one model `owner/tiny`."""

    def do_HEAD(self):
        self.answer(with_body=False)

    def do_GET(self):
        self.answer(with_body=True)

    def answer(self, *, with_body):
        if self.path.startswith("/api/agent"):  # a question of the client about itself
            return self.send(404, b"{}", with_body)
        self.server.asked.append(f"{self.command} {self.path}")
        if self.path == "/api/models/owner/tiny":
            return self.send(200, json.dumps({"id": "owner/tiny", "siblings": []}).encode(), with_body)
        if "/owner/tiny/" not in self.path:
            return self.send(401, b"{}", with_body, {"X-Error-Code": "RepoNotFound"})
        file = self.server.folder / self.path.rsplit("/", 1)[-1]
        if not file.is_file():
            return self.send(404, b"{}", with_body, {"X-Error-Code": "EntryNotFound"})
        content = file.read_bytes()
        return self.send(200, content, with_body, {"ETag": f'"{file.name}"', "X-Repo-Commit": "c" * 40})

    def send(self, status, body, with_body, headers=()):
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *_):
        """Print nothing."""


@contextmanager
def serving(folder, handler=Hub):
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.folder, server.asked = folder, []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def run(code, home, endpoint, seconds="60"):
    """Run Python with another hub, which may take some seconds on a busy machine; its client reads all this at once."""
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(home), "NO_PROXY": "127.0.0.1"}
    environment |= {_hub.PATIENCE: seconds} if seconds else {}
    environment.pop("HF_HUB_OFFLINE", None)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)


def address(server):
    return f"http://127.0.0.1:{server.server_address[1]}"


def closed_port():
    with serving(None) as server:
        return address(server)


def test_a_model_of_the_hub_is_loaded_and_later_without_a_network(tmp_path):
    tiny = tiny_folder.make(tmp_path / "tiny", context=31)
    code = LOAD.format(name="owner/tiny")
    with serving(tiny) as server:
        first = run(code, tmp_path / "home", address(server))
        assert first.stdout.startswith("Llama"), first.stderr
        assert any("resolve/main/model.safetensors" in one for one in server.asked)
    later = run(code, tmp_path / "home", closed_port())
    assert later.stdout == first.stdout, later.stderr
    assert "Retry" not in later.stderr


@pytest.mark.parametrize("name", ["minlm", "nobody/nothing"])
def test_an_unknown_name_is_refused_after_one_question(tmp_path, name):
    with serving(tmp_path) as server:
        done = run(LOAD.format(name=name), tmp_path / "home", address(server))
    assert f"{name}: there is no such folder, and the Hugging Face hub has no model of that name" in done.stderr
    assert server.asked == [f"GET /api/models/{name}"]


def test_a_mistyped_name_without_a_network_is_refused_with_the_known_names(tmp_path):
    done = run(LOAD.format(name="minlm"), tmp_path / "home", closed_port())
    assert "minlm: there is no such folder, and the Hugging Face hub cannot be asked" in done.stderr
    assert "Did you mean 'minilm'? The names that need no network are minilm, smollm2" in done.stderr
    assert "Retry" not in done.stderr


def test_the_offline_mode_of_the_hub_is_obeyed(tmp_path):
    with serving(tmp_path) as server:
        code = "import os; os.environ['HF_HUB_OFFLINE'] = '1'; " + LOAD.format(name="owner/tiny")
        assert "offline mode is enabled" in run(code, tmp_path / "home", address(server)).stderr
    assert server.asked == []


def test_a_silent_hub_is_asked_once_and_not_waited_for(tmp_path):
    over = threading.Event()

    class Silent(Hub):
        def answer(self, *, with_body):
            if "/models/" not in self.path:
                return super().answer(with_body=with_body)
            self.server.asked.append(self.path)
            return over.wait(60)

    with serving(tmp_path, Silent) as server:
        done = run(LOAD.format(name="owner/tiny"), tmp_path / "home", address(server), seconds=None)
        over.set()
    assert "owner/tiny: there is no such folder, and the Hugging Face hub" in done.stderr
    assert server.asked == ["/api/models/owner/tiny"]
    assert _hub.HUB_SECONDS <= 2  # so that the command answers within three


def test_an_unknown_name_does_not_import_transformers(tmp_path):
    code = (
        "import sys; from regard import models\n"
        "try: models.load('minlm')\n"
        "except ValueError: print('transformers' in sys.modules, 'torch' in sys.modules)"
    )
    assert run(code, tmp_path / "home", closed_port()).stdout == "False False\n"


def test_a_file_and_the_word_vectors_are_no_model(tmp_path):
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(ChoiceError, match="is a file; name the folder that holds the model"):
        models.load(tmp_path / "model.safetensors")
    with pytest.raises(ChoiceError, match="words are word vectors for relate"):
        models.load("words")
