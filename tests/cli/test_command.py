import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import regard
from regard import cli
from regard.lab.examples import gallery


def run(*arguments, cwd=None):
    command = Path(sys.executable).with_name("regard")
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=False, cwd=cwd)


def test_help_lists_the_commands():
    said = run("--help")
    assert said.returncode == 0
    commands = set(re.findall(r"^│ (\w+) ", said.stdout, re.MULTILINE))
    assert commands == {
        "demo",
        "saturation",
        "fit",
        "relate",
        "record",
        "inspect",
        "lengths",
        "export",
        "lab",
        "view",
        "train",
        "translate",
    }


def test_no_command_prints_the_help():
    assert "Usage: regard" in run().stdout


def test_version_is_printed():
    said = run("--version")
    assert said.returncode == 0
    assert said.stdout.strip() == regard.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", regard.__version__)


def test_an_unknown_command_is_refused():
    said = run("gaze")
    assert said.returncode == 2
    assert "gaze" in said.stderr


def test_demo_writes_to_the_folder_of_out(tmp_path, monkeypatch):
    monkeypatch.setattr(gallery, "PICTURES", {name: gallery.PICTURES[name] for name in list(gallery.PICTURES)[:2]})
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(cli.build(), ["demo", "--out", "pictures"])
    assert said.exit_code == 0, said.output
    assert_pictures(said.stdout.splitlines(), tmp_path / "pictures", count=2)


@pytest.mark.long
def test_demo_writes_the_whole_gallery(tmp_path):
    said = run("demo", cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    assert_pictures(said.stdout.splitlines(), tmp_path / "gallery", count=len(gallery.PICTURES))


def assert_pictures(names, folder, count):
    assert len(names) == count
    for path in (folder.parent / name for name in names):
        assert path.parent == folder
        assert path.suffix == ".png"
        assert path.read_bytes().startswith(b"\x89PNG")


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


def test_ctrl_c_while_packages_are_imported_ends_with_130(monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "build", interrupt)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 130


def test_memory_that_is_not_there_is_said_in_one_line(regard):
    said = regard("saturation", "--d-k", "99999999999")
    assert said.code == 1 and said.err.startswith("regard: there is not enough memory: ")


def run_into_closed_pipe(*arguments, cwd):
    """Run the command while nobody reads what it prints."""
    reader, writer = os.pipe()
    os.close(reader)
    command = Path(sys.executable).with_name("regard")
    done = subprocess.run([command, *arguments], stdout=writer, stderr=subprocess.PIPE, text=True, check=False, cwd=cwd)
    os.close(writer)
    assert "Traceback" not in done.stderr
    return done


def test_files_are_written_although_nobody_reads_the_output(tmp_path):
    rows = "".join(f"{i},{i * i % 7}\n" for i in range(20))
    (tmp_path / "t.csv").write_text("x,y\n" + rows)
    files = ("--save", "m.fit", "--plot", "p.png", "--predict", "new.csv", "--out", "o.csv")
    (tmp_path / "new.csv").write_text("x\n3\n")
    run_into_closed_pipe("fit", "t.csv", "--y", "y", *files, cwd=tmp_path)
    run_into_closed_pipe("relate", "He is tall | She runs", "-q", "Who is tall?", "--png", "r.png", cwd=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} >= {"m.fit", "p.png", "o.csv", "r.png"}
