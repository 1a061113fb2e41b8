"""A file is there as a whole or not at all."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from regard.engine import files
from regard.engine.files import atomic_file


@pytest.fixture(params=["nameless", "named"])
def naming(request, monkeypatch):
    if request.param == "named":  # as on systems that cannot write a file without a name
        monkeypatch.setattr(files, "DESCRIPTORS", Path("nowhere"))
    return request.param


def names(folder):
    return [path.name for path in folder.iterdir()]


def write(path, content=b"new"):
    with atomic_file(path) as file:
        file.write(content)


def test_a_new_file_replaces_the_old_one(tmp_path, naming):
    path = tmp_path / "a"
    write(path, b"old")
    write(path)
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, SystemExit])
def test_the_old_file_stays_after_an_error(tmp_path, naming, error):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def stop():
        with atomic_file(path) as file:
            file.write(b"ne")
            file.flush()
            assert path.read_bytes() == b"old"
            raise error

    with pytest.raises(error):
        stop()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files without a name are Linux's")
def test_a_killed_process_leaves_nothing_behind(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    code = """
import os, signal
from regard.engine.files import atomic_file
with atomic_file("a") as file:
    file.write(b"half of it")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False)
    assert run.returncode == -9
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_a_new_file_keeps_the_permissions_of_the_old_one(tmp_path, naming):
    old = os.umask(0o022)
    try:
        write(tmp_path / "a")
        (tmp_path / "secret").touch(0o600)
        write(tmp_path / "secret")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_writing_through_a_link_keeps_the_link(tmp_path, naming):
    (tmp_path / "link").symlink_to("a")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a").read_bytes() == b"new"


def test_a_device_is_written_to_as_it_is():
    write(os.devnull)
    assert not Path(os.devnull).is_file()


def test_a_missing_folder_is_an_error(tmp_path, naming):
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "nowhere" / "a")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="locks of files are Unix'")
def test_what_killed_processes_left_is_removed_and_what_is_being_written_stays(tmp_path, naming):
    write(tmp_path / "other")
    left = {f".a.{number}.part": tmp_path / f".a.{number}.part" for number in ("00000000", "11111111")}
    left[".a.00000000.part"].write_bytes(b"half of it")
    left[".a.11111111.part"].mkdir()
    (left[".a.11111111.part"] / "inside").write_bytes(b"half of it")
    unrelated = (".a.part", ".b.00000000.part", ".a.00000000.part.keep")
    for name in unrelated:
        (tmp_path / name).touch()
    with atomic_file(tmp_path / "a") as file:
        file.write(b"slow")
        write(tmp_path / "a", b"quick")
        assert (tmp_path / "a").read_bytes() == b"quick"
    assert (tmp_path / "a").read_bytes() == b"slow"
    assert sorted(names(tmp_path)) == sorted([*unrelated, "a", "other"])


def test_a_folder_that_a_killed_process_left_is_removed(tmp_path):
    code = """
import os, signal
from pathlib import Path
from regard.engine.files import atomic_folder
def fill(folder):
    (folder / "half").touch()
    os.kill(os.getpid(), signal.SIGKILL)
atomic_folder(Path("a").absolute(), fill)
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == -9
    assert len(names(tmp_path)) == 1

    def fill(folder):
        files.atomic_folder(tmp_path / "a", lambda other: (other / "first").touch())  # another process at the same time
        (folder / "second").touch()

    files.atomic_folder(tmp_path / "a", fill)
    assert names(tmp_path) == ["a"]
    assert names(tmp_path / "a") == ["first"]
