import re
import subprocess
import sys
from pathlib import Path

import pytest

import regard
from regard import cli


def run(*arguments, cwd=None):
    command = Path(sys.executable).with_name("regard")
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=False, cwd=cwd)


def test_help_lists_the_commands():
    said = run("--help")
    assert said.returncode == 0
    for name in ("demo", "saturation"):
        assert name in said.stdout


def test_no_command_is_a_question_for_help():
    assert "Usage: regard" in run().stdout


def test_version():
    said = run("--version")
    assert said.returncode == 0
    assert said.stdout.strip() == regard.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", regard.__version__)


def test_an_unknown_command_is_refused():
    said = run("gaze")
    assert said.returncode == 2
    assert "gaze" in said.stderr


def test_demo_writes_a_gallery_where_it_is_told(tmp_path):
    said = run("demo", "--out", "pictures", cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    written = [tmp_path / line for line in said.stdout.splitlines()]
    assert written
    assert all(path.parent == tmp_path / "pictures" and path.stat().st_size > 1000 for path in written)
    assert {path.suffix for path in written} == {".png"}


def test_saturation_prints_a_row_for_each_width():
    said = run("saturation", "--d-k", "4", "--d-k", "64")
    assert said.returncode == 0, said.stderr
    assert re.search(r"\b4\b", said.stdout)
    assert re.search(r"\b64\b", said.stdout)


def test_a_refusal_is_one_line_without_a_traceback(monkeypatch):
    from regard.errors import ChoiceError

    def refuse():
        raise ChoiceError("the answer is no")

    monkeypatch.setattr(cli, "build", lambda: refuse)
    with pytest.raises(SystemExit, match=r"^regard: the answer is no$"):
        cli.main()
