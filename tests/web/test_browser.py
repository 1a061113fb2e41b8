"""The way from the command to the page: a browser opens a file, and nobody else sees the token."""

import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright
from web_browser import ARGUMENTS, chromium
from web_server import a_recording

from regard.web.browser import RedirectFile

COMMAND = Path(sys.executable).with_name("regard")
WAIT = 200  # seconds: on a busy machine `import torch` alone may take one minute


def until(condition):
    end = time.monotonic() + WAIT
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def test_the_file_is_readable_by_its_owner_alone_and_goes_away(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    before = os.umask(0)  # the most careless user there is
    try:
        with RedirectFile() as redirect:
            path = redirect.write('http://127.0.0.1:80/?token=x&lang=zh#/view/"1"')
            assert tmp_path in path.parents
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert 'url=http://127.0.0.1:80/?token=x&amp;lang=zh#/view/&quot;1&quot;"' in path.read_text()
    finally:
        os.umask(before)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("named", ["relative", "/no/such/folder", ""])
def test_without_a_runtime_folder_the_temporary_one_is_used(monkeypatch, named):
    monkeypatch.setenv("XDG_RUNTIME_DIR", named)
    with RedirectFile() as redirect:
        assert redirect.write("http://127.0.0.1/").is_file()


@pytest.fixture
def visible(tmp_path):
    """Start the command with Chromium as the user's browser; return the process, its address and the browser's port."""
    (tmp_path / "runtime").mkdir(mode=0o700)
    browser = tmp_path / "browser.sh"
    profile = tmp_path / "profile"
    options = [*ARGUMENTS, "--headless", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
    browser.write_text(f'#!/bin/sh\nexec {chromium()} {" ".join(options)} "$1" >/dev/null 2>&1\n')
    browser.chmod(0o755)
    started = []

    def start(*arguments):
        environment = {**os.environ, "BROWSER": f"{browser} %s &", "XDG_RUNTIME_DIR": str(tmp_path / "runtime")}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen([COMMAND, *arguments, "--port", "0"], env=environment, **pipes)
        started.append(process)
        address = process.stdout.readline().strip()
        port_file = profile / "DevToolsActivePort"
        assert until(lambda: port_file.is_file() and port_file.read_text().count("\n")), process.stderr.read()
        return process, address, int(port_file.read_text().split()[0])

    yield start
    for process in started:
        process.kill()
        process.communicate()


def command_lines():
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has ended
            continue


@pytest.mark.skipif(not Path("/proc/self/cmdline").is_file(), reason="command lines are looked up in /proc")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_browser_lands_on_the_page_and_no_command_line_has_the_token(tmp_path, visible, stop):
    a_recording(tmp_path)
    process, address, port = visible("view", str(tmp_path / "tiny.regard"))
    token = re.search(r"token=([\w-]+)", address)[1]
    with sync_playwright() as playwright:
        browser = playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port}")
        (context,) = browser.contexts
        page = context.pages[0] if context.pages else context.wait_for_event("page")
        page.wait_for_url(re.compile("#/view/"), timeout=1000 * WAIT)
        expect(page).to_have_title(re.compile("viewer"))
        assert page.url == address.replace(f"?token={token}", "")
        lines = list(command_lines())
        assert any("/open.html" in line for line in lines)  # the browser's own is among them
        assert [line for line in lines if token in line] == []
        page.go_back()  # to the file: the address with the token is no place to go back to
        assert token not in page.url
        browser.new_browser_cdp_session().send("Browser.close")
    assert list((tmp_path / "runtime").rglob("open.html")) != []
    process.send_signal(stop)
    process.wait(WAIT)
    assert list((tmp_path / "runtime").glob("regard-*")) == []
