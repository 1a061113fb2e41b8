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
