"""Documentation: code blocks run and keep their promises, links resolve, and both languages have one structure."""

import doctest
import importlib
import re
from pathlib import Path

import documents
import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
ENGLISH = [ROOT / "README.md", *sorted((DOCS / "en").rglob("*.md"))]
CHINESE = [ROOT / "README.zh.md", *sorted((DOCS / "zh").rglob("*.md"))]
OTHERS = [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((DOCS / "formats").glob("*.md"))]
SOURCE = ROOT / "src"
MODULES = sorted(".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in SOURCE.rglob("*.py"))


def name_of(path):
    return str(path.relative_to(ROOT))


def chinese_of(path):
    return ROOT / "README.zh.md" if path.parent == ROOT else DOCS / "zh" / path.relative_to(DOCS / "en")


def read(path):
    return path.read_text(encoding="utf-8")


# The Chinese pages need no run of their own: the test below holds them to the same code.
@pytest.mark.parametrize("path", ENGLISH, ids=name_of)
def test_the_code_of_a_page_runs_and_keeps_its_promises(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    broken = []
    for block in documents.blocks(read(path)):
        if block.language == "python":
            broken += documents.run(block, namespace, path)
    assert broken == []


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_hold(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name.removesuffix(".__init__"))
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).failed == 0


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_a_readme_has_at_most_150_lines(name):
    assert len(read(ROOT / name).splitlines()) <= 150


def test_every_page_has_its_translation():
    assert [chinese_of(path) for path in ENGLISH] == CHINESE


@pytest.mark.parametrize("path", ENGLISH, ids=name_of)
def test_both_languages_have_one_structure(path):
    english, chinese = read(path), read(chinese_of(path))
    assert documents.heading_levels(english) == documents.heading_levels(chinese)
    assert documents.images(english) == documents.images(chinese)
    assert english.count("\n|") == chinese.count("\n|"), "tables of different length"
    ours, theirs = documents.blocks(english), documents.blocks(chinese)
    assert [block.language for block in ours] == [block.language for block in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert documents.meaning(one) == documents.meaning(other)
        promised = [list(documents.promises(b.code).values()) for b in (one, other) if b.language == "python"]
        assert promised[:1] == promised[1:]


@pytest.mark.parametrize("path", [*ENGLISH, *CHINESE, *OTHERS], ids=name_of)
def test_links_point_to_existing_files(path):
    local = [link.split("#")[0] for link in documents.links(read(path)) if "://" not in link]
    assert [link for link in local if link and not (path.parent / link).exists()] == []


def test_contributing_names_files_that_exist():
    section = read(ROOT / "CONTRIBUTING.md").split("## Changes, and where to make them")[1].split("\n## ")[0]
    paths = [name for name in re.findall(r"`([\w*/.]+(?:/|\.py|\.md))`", section) if "NAME" not in name]
    assert len(paths) > 20
    assert [path for path in paths if not [*ROOT.glob(path), *(SOURCE / "regard").glob(path)]] == []


def test_a_broken_promise_is_noticed():
    block = documents.Block("python", "x = 2\nx + 2  # -> 5\nprint(x)  # -> 2\n[x, x]  # -> [2, ...]\n", 1)
    assert documents.run(block, {}, Path("page.md")) == ["page.md:2: promised 5, came 4"]
    commented = documents.Block("python", "2 + 2  # a sum  # -> 5\n", 1)
    assert documents.run(commented, {}, Path("page.md")) == ["page.md:1: promised 5, came 4"]
    orphan = documents.Block("python", "# -> 5\n", 1)
    assert len(documents.run(orphan, {}, Path("page.md"))) == 1
