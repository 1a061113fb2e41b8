"""The built page: small, whole, and nothing in it that the server's policy would refuse."""

import gzip
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "src" / "regard" / "web" / "static"
ASSETS = PAGE / "assets"
KB = 1000


def names(kind: str) -> list[str]:
    return sorted(path.name for path in ASSETS.glob(f"*.{kind}"))


def gzipped(files: set[str] | list[str]) -> int:
    return sum(len(gzip.compress((ASSETS / name).read_bytes(), 9)) for name in files)


def needed(name: str) -> set[str]:
    """A script and all that it imports at once, as the browser would fetch them."""
    found, waiting = set(), [name]
    while waiting:
        if (here := waiting.pop()) not in found:
            found.add(here)
            waiting += re.findall(r'(?:from|import)\s*"\./([^"]+\.js)"', (ASSETS / here).read_text())
    return found


def test_all_scripts_are_small():
    assert 0 < gzipped(names("js")) < 400 * KB


def test_the_first_lesson_is_small():
    entry = re.search(r'<script[^>]* src="\./assets/([^"]+)"', (PAGE / "index.html").read_text())
    (lesson,) = ASSETS.glob("cues-*.js")
    assert entry is not None
    together = needed(entry[1]) | needed(lesson.name)
    assert len(together) >= 3, "the entry, the lesson, and what it shares with the others"
    assert gzipped(together) < 200 * KB


def test_the_widget_of_a_notebook_is_one_small_file():
    script = (PAGE / "widget.js").read_text()
    assert len(gzip.compress(script.encode(), 9)) < 200 * KB
    assert re.findall(r"""\bimport\s*\(|^import\b|\bfrom\s*["'][\w./@]""", script, re.MULTILINE) == []


def test_nothing_is_written_into_the_page_itself():
    html = (PAGE / "index.html").read_text()
    assert re.findall(r"<script(?![^>]* src=)[^>]*>|<style|\son\w+=|\sstyle=|javascript:", html) == []
    assert all(link.startswith("./assets/") for link in re.findall(r'(?:src|href)="([^"]*)"', html))


@pytest.mark.parametrize("name", names("css") or ["none"])
def test_styles_fetch_only_what_is_built(name):
    for address in re.findall(r"url\(([^)]*)\)", (ASSETS / name).read_text()):
        file = ASSETS / address.strip("\"'").removeprefix("./")
        assert file.suffix in (".woff2", ".svg")
        assert file.is_file(), address


def test_scripts_write_no_style_into_their_templates():
    """A template with style="..." is refused by the browser without a word, and the thing has no style."""
    pattern = re.compile(r"<[a-z]+ [^>]*\sstyle=", re.ASCII)
    found = [path for path in (ROOT / "frontend" / "src").rglob("*.svelte") if pattern.search(path.read_text())]
    assert found == []


def test_every_built_file_is_named_by_what_is_in_it():
    known = {"index.html", "assets", "widget.js", "widget.css"}  # a notebook reads the last two from the disk
    assert {path.name for path in PAGE.iterdir()} == known
    wrong = [
        path.name for path in ASSETS.iterdir() if not re.fullmatch(r"[\w-]+-[\w-]{8}\.(js|css|woff2|svg)", path.name)
    ]
    assert wrong == []


def test_the_lock_says_what_and_not_where_from():
    lock = json.loads((ROOT / "frontend" / "package-lock.json").read_text())
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
    assert all("integrity" in package for name, package in lock["packages"].items() if name)
