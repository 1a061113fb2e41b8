"""Progress of long calls: a line in a terminal, a bar in a notebook, silence elsewhere."""

import os
import pty
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest
import torch
from shown_progress import show_progress

import regard as rg
from regard import analysis
from regard.display import progress

# A long call of four parts, shown from the beginning; {end} is what happens after the third.
CALL = """
import signal, sys, threading
from regard.display import progress
progress.DELAY = progress.REFRESH = 0.0
with progress.progress("profiling heads", 4) as advance:
    for part in range(4):
        advance()
        if part == 2:
            {end}
print("after")
"""


@pytest.fixture
def terminal(monkeypatch):
    return show_progress(monkeypatch)


def in_a_real_terminal(code):
    """What a process writes to a terminal on its error output, its other output, and how it ended."""
    ours, its = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=its, text=True)
    os.close(its)
    shown = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(ours)
    out = process.communicate(timeout=60)[0]
    return shown.decode(), out, process.returncode


def last_line(shown):
    """What is left on the screen of everything that was written to one line."""
    line = ""
    for part in shown.split("\r"):
        line = part + line[len(part) :]
    return line.strip()


def test_a_terminal_shows_one_line_and_it_is_gone_at_the_end():
    shown, out, code = in_a_real_terminal(CALL.format(end="pass"))
    assert (out, code) == ("after\n", 0)
    assert "\rprofiling heads [############............] 2 of 4, 0:00" in shown
    assert "\n" not in shown and last_line(shown) == ""


def test_ctrl_c_leaves_a_clean_line():
    shown, out, _ = in_a_real_terminal(CALL.format(end="signal.raise_signal(signal.SIGINT)"))
    line, _, trace = shown.partition("Traceback")
    assert last_line(line) == "" and trace.rstrip().endswith("KeyboardInterrupt") and out == ""


def test_an_output_that_is_no_terminal_shows_nothing():
    done = subprocess.run([sys.executable, "-c", CALL.format(end="pass")], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("after\n", "")


def test_a_quick_call_shows_nothing(terminal, monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 3600.0)
    with progress.progress("quick", 5) as advance:
        advance()
    assert terminal.getvalue() == ""


def test_a_long_first_part_shows_the_line_too(terminal):
    with progress.progress("first part", 2):
        while "first part [" not in terminal.getvalue():
            time.sleep(0.01)
    assert "0 of 2" in terminal.getvalue()


def test_a_call_inside_another_is_silent_and_so_is_one_of_a_single_part(terminal):
    with progress.progress("outer", 2) as outer:
        with progress.progress("inner", 2) as inner:
            inner()
        outer()
    with progress.progress("single", 1) as single:
        single()
    assert "outer" in terminal.getvalue()
    assert "inner" not in terminal.getvalue() and "single" not in terminal.getvalue()


def test_other_threads_show_nothing(terminal):
    def work():
        with progress.progress("background", 2) as advance:
            advance()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert terminal.getvalue() == ""


def test_a_call_of_unknown_length_shows_its_text_and_the_time(terminal):
    with progress.progress("loading") as advance:
        advance("loading words")
    assert "\rloading words 0:00" in terminal.getvalue()
    assert "[" not in terminal.getvalue() and last_line(terminal.getvalue()) == ""


def test_the_time_goes_on_during_a_long_part(terminal, monkeypatch):
    monkeypatch.setattr(progress, "TICK", 0.01)
    with progress.progress("one long part", 2):
        while terminal.getvalue().count("one long part") < 3:
            time.sleep(0.01)


def test_several_parts_may_be_done_at_once(terminal):
    with progress.progress("rows", 3000) as advance:
        advance(done=2000)
    assert "2,000 of 3,000" in terminal.getvalue()


def test_a_line_fits_the_terminal_and_commands_nothing(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    with progress.progress("读数据\x1b[31m" * 3) as advance:
        advance()
    shown = terminal.getvalue().split("\r")[1]
    assert shown == "读数据?[31m读数据?["  # 19 columns, since a Chinese character takes two


def test_an_error_ends_the_line_and_the_next_call_shows_its_own(terminal):
    with suppress(ZeroDivisionError), progress.progress("one", 2) as advance:
        advance()
        1 / 0  # noqa: B018
    with progress.progress("two", 2) as advance:
        advance()
    assert last_line(terminal.getvalue()) == "" and "two [" in terminal.getvalue()


@pytest.fixture(scope="module")
def recording():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).eval()
    with torch.no_grad(), rg.record(model) as made:
        model(torch.randn(1, 5, 8))
    return made


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (analysis.profiles, "profiling heads"),
        (analysis.heads, "measuring heads"),
        (analysis.receivers, "summing weights"),
        (lambda made: analysis.rollout(made, 0), "multiplying layers"),
        (lambda made: analysis.compare(made, made), "comparing layers"),
        (lambda made: analysis.saturation([1, 2, 4], keys=3, queries=3, trials=2), "measuring saturation"),
    ],
)
def test_long_calls_of_analysis_show_their_progress(terminal, recording, call, text):
    call(recording)
    assert f"{text} [########................] 1 of 3" in terminal.getvalue()
    assert last_line(terminal.getvalue()) == ""


NOTEBOOK = """
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from regard.display import progress
shell = InteractiveShell.instance()
shell.kernel = object()  # a notebook's shell has one
shell.display_pub = CapturingDisplayPublisher()
progress.DELAY = progress.REFRESH = 0.0
with progress.progress("a < b", 4) as advance:
    for part in range(4):
        advance()
first, *updates = shell.display_pub.outputs
names = {output["transient"]["display_id"] for output in shell.display_pub.outputs}
print(len(names), first["update"], all(output["update"] for output in updates))
shown = [output["data"] for output in shell.display_pub.outputs]
print(*(data["text/html"] for data in shown if "2 of 4" in data["text/plain"]))
print(repr(updates[-1]["data"]["text/html"]), repr(updates[-1]["data"]["text/plain"]))
"""


def test_a_notebook_shows_one_bar_that_is_updated_and_removed():
    done = subprocess.run([sys.executable, "-c", NOTEBOOK], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert lines == [
        "1 False True",
        '<div>a &lt; b <progress max="1" value="0.500"></progress> 2 of 4, 0:00</div>',
        "'' ''",
    ], done.stderr
