"""Terminals that cannot show everything: other encodings, file names that are no text, and texts that give orders."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard.cli import console
from regard.errors import DataError

COMMAND = Path(sys.executable).with_name("regard")
TABLE = "größe,y\n1,2\n2,3\n3,5\n4,4\n"
LOCALES = {
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "cp1252": {"PYTHONIOENCODING": "cp1252"},
    "the locale C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}


def run(*arguments, cwd, **environment):
    """Run the installed command; its outputs are bytes."""
    environment = {**os.environ, **environment}
    done = subprocess.run([COMMAND, *arguments], capture_output=True, check=False, cwd=cwd, env=environment)
    assert b"Traceback" not in done.stderr, done.stderr.decode(errors="replace")
    return done


@pytest.fixture(params=["ascii", "cp1252", pytest.param("the locale C", marks=pytest.mark.long)])
def locale(request):
    return LOCALES[request.param]


def test_relate_prints_what_the_terminal_has(tmp_path, locale):
    done = run("relate", "His father is tall | He loves apples, 苹果", "-q", "Why tall?", cwd=tmp_path, **locale)
    assert done.returncode == 0
    assert b"##" in done.stdout and b"He loves apples, ??" in done.stdout


def test_fit_prints_what_the_terminal_has_and_writes_utf_8(tmp_path, locale):
    (tmp_path / "t.csv").write_text(TABLE, encoding="utf-8")
    options = ("--y", "y", "--predict", "new.csv", "--out", "out.csv")
    (tmp_path / "new.csv").write_text("größe,note\n2,苹果\n", encoding="utf-8")
    done = run("fit", "t.csv", *options, cwd=tmp_path, **locale)
    assert done.returncode == 0, done.stderr
    wanted = "größe".encode("cp1252") if "cp1252" in locale.values() else b"gr??e"
    assert b"y from " + wanted in done.stdout
    assert b"leave-one-out" in done.stdout
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()[0] == "größe,note,predicted,low,high"


def test_errors_print_what_the_terminal_has(tmp_path, locale):
    done = run("fit", "größe.csv", "--y", "y", cwd=tmp_path, **locale)
    assert done.returncode == 1 and b"there is no such file" in done.stderr
    assert run("fit", "--größe", cwd=tmp_path, **locale).returncode == 2


@pytest.mark.parametrize("command", ["relate", "fit", "record", "inspect", "export", "lab"])
def test_help_is_printed_in_ascii(tmp_path, command):
    assert run(command, "--help", cwd=tmp_path, PYTHONIOENCODING="ascii").stdout.isascii()


def test_inspect_prints_valid_json_in_ascii(tmp_path):
    record = ("record", "--text", "Ein größerer Apfel…", "-o", "größe.regard")
    done = run(*record, cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and b"written  gr??e.regard" in done.stdout
    assert run("inspect", "größe.regard", cwd=tmp_path, PYTHONIOENCODING="ascii").stdout.isascii()
    facts = json.loads(run("inspect", "größe.regard", "--json", cwd=tmp_path, PYTHONIOENCODING="ascii").stdout)
    assert facts["file"] == "größe.regard"


@pytest.mark.skipif(sys.platform == "win32", reason="file names are text there")
def test_a_file_name_that_is_not_utf_8_is_printed(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE, encoding="utf-8")
    done = run("fit", "t.csv", "--y", "y", "--save", b"a\xff.fit", cwd=tmp_path, PYTHONIOENCODING="utf-8")
    assert done.returncode == 0, done.stderr
    assert b"saved    a\\xff.fit" in done.stdout


def test_streams_without_an_encoding_are_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", object())
    console.replace_unprintable()


# Texts that would command the terminal


def test_control_characters_of_a_text_are_spelled_out(tmp_path, monkeypatch, regard):
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("A \x1b[31m red wall | a \x1b]0;title\x07 house", encoding="utf-8")
    said = regard("relate", "text.txt", "-q", "Which \x1b[5m colour?")
    assert said.code == 0, said.err
    assert "\x1b[31m" not in said.out and "\x1b]" not in said.out and "\x1b[5m" not in said.out
    assert "\\x1b[31m red wall" in said.out


def test_control_characters_of_column_names_are_spelled_out(tmp_path, monkeypatch, regard):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(TABLE.replace("größe", "a\x1b[31m"), encoding="utf-8")
    assert "y from a\\x1b[31m" in regard("fit", "t.csv", "--y", "y").out
    said = regard("fit", "t.csv", "--y", "z")
    assert said.code == 1 and "\\x1b[31m" in said.err and "\x1b" not in said.err


# Texts and files


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_text_file_is_read_and_a_text_is_taken_as_it_is(here):
    (here / "story").write_text("an apple", encoding="utf-8-sig")
    assert console.read_text("story") == "an apple"
    for text in ("stories", "an apple | a tree", "a" * 5000, "a\0b", "story/of", "Read story.txt!", "and/or", "1/2"):
        assert console.read_text(text) == text


def test_a_folder_is_no_text(here):
    (here / "story").mkdir()
    with pytest.raises(DataError, match=r"^story: is a folder; name a text file in it"):
        console.read_text("story")


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0\0", b"text\0text"], ids=["a picture", "a NUL"])
def test_a_binary_file_is_no_text(here, content):
    (here / "picture").write_bytes(content)
    with pytest.raises(DataError, match=r"^picture: is no text, since byte \d+ of it is 0"):
        console.read_text("picture")


@pytest.mark.parametrize("content", ["größe".encode("cp1252"), "größe".encode("utf-16")], ids=["cp1252", "utf-16"])
def test_a_text_in_another_encoding_is_refused(here, content):
    (here / "story").write_bytes(content)
    with pytest.raises(DataError, match="story: is not written in UTF-8"):
        console.read_text("story")


@pytest.mark.parametrize(
    "name", ["story.txt", "my story.txt", "report.pdf", "./story", "../a/story", "/a/story", "~/s"]
)
def test_a_name_without_a_file_is_no_text(here, name):
    with pytest.raises(DataError, match="there is no such file"):
        console.read_text(name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_read(here):
    os.mkfifo(here / "pipe")
    with subprocess.Popen([sys.executable, "-c", "open('pipe', 'w').write('an apple')"]):
        assert console.read_text("pipe") == "an apple"


@pytest.mark.parametrize("name", ["secret", "closed/story"])
def test_a_file_that_may_not_be_read_is_no_text(here, monkeypatch, name):
    (here / "secret").write_text("an apple")
    (here / "closed").mkdir()
    (here / "closed" / "story").write_text("an apple")
    (here / "secret").chmod(0)
    (here / "closed").chmod(0)
    here.chmod(0o755)  # root may read everything, so another user tries
    code = f"import os; from regard.cli import console; os.getuid() or os.setuid(65534); console.read_text({name!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    (here / "closed").chmod(0o755)
    assert "PermissionError" in done.stderr


@pytest.mark.parametrize(
    "arguments", [("relate", "story", "-q", "why"), ("record", "-o", "a.regard", "--text", "story")]
)
def test_every_command_that_takes_a_text_refuses_a_folder(here, regard, arguments):
    (here / "story").mkdir()
    said = regard(*arguments)
    assert said.code == 1 and "story: is a folder" in said.err
    assert [path.name for path in here.iterdir()] == ["story"]


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_piped_text_is_read_as_utf_8_first(here, encoding):
    code = "from regard.cli import console; print(ascii(console.read_text('-')))"
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    options = {"capture_output": True, "env": environment}
    done = subprocess.run([sys.executable, "-c", code], input="\ufeff苹果 ö".encode(), check=False, **options)
    assert done.stdout.strip() == ascii("苹果 ö").encode(), done.stderr
    done = subprocess.run([sys.executable, "-c", code], input=b"\xf6", check=False, **options)
    if encoding == "cp1252":
        assert done.stdout.strip() == ascii("ö").encode()
    else:
        assert b"standard input: is not written in UTF-8" in done.stderr


def test_bytes_that_are_no_text_are_refused_as_a_text():
    assert console.plain_text("苹果".encode().decode("ascii", "surrogateescape")) == "苹果"
    with pytest.raises(DataError, match="the text: is not written in UTF-8"):
        console.plain_text("\udcff")
