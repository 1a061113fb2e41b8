"""Kills, full disks and lies: the trials are in recording_faults.py, which runs without torch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "recording_faults.py"


def run(what, folder, count, seed=1):
    command = [sys.executable, str(SCRIPT), what, str(folder), str(count), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_kills(counted):
    assert counted["shown"] >= counted["acknowledged"] > counted["trials"], "the trials must reach the middle of files"
    assert 0 < counted["cut"] < counted["trials"]


def test_a_kill_loses_nothing_acknowledged_and_shows_nothing_unwritten(tmp_path):
    check_kills(run("kills", tmp_path, 200))


@pytest.mark.long
def test_a_recording_survives_a_thousand_kills(tmp_path):
    check_kills(run("kills", tmp_path, 1000, seed=20000))


def test_a_file_that_is_saved_again_is_always_whole(tmp_path):
    counted = run("replaced", tmp_path, 60)
    assert counted["versions"] > 1
    assert counted["left"] == ["run.regard"]


def test_a_reader_beside_a_writer_sees_all_that_is_acknowledged(tmp_path):
    counted = run("watched", tmp_path, 100)
    assert counted["shown"] == 100 and counted["refreshed"] > 1


@pytest.mark.parametrize("limit", [1000, 70_000, 500_000])
def test_a_full_disk_is_a_typed_error_and_what_was_written_stays(tmp_path, limit):
    counted = run("full_disk", tmp_path, limit)
    assert counted["message"].endswith("full.regard cannot be written any further: File too large")
    assert counted["damage"] == []


@pytest.mark.parametrize("heads", [20_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_heads_that_lie_neither_crash_nor_hang_nor_take_memory(tmp_path, heads):
    counted = run("heads", tmp_path, heads)
    assert counted["heads"] >= heads and 0 < counted["refused"] < counted["files"]
