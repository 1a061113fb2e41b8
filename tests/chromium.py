"""A real browser without a driver: it opens a page, runs a script of the test in it, and its DOM comes back."""

import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
           "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip


def dom(page: Path, script: str = "", size: str = "1200,900") -> "Page":
    """What is on a page after its own scripts and `script` have run."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no browser: apt-get install chromium")
    poked = page.resolve().with_name(f"poked-{page.name}")
    poked.write_text(page.read_text(encoding="utf-8").replace("</body>", f"<script>{script}</script></body>"))
    command = [browser, *OPTIONS, f"--window-size={size}", "--virtual-time-budget=2000", "--dump-dom", poked.as_uri()]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    found = Page()
    found.feed(run.stdout)
    return found


class Page(HTMLParser):
    """The elements that a browser made: `texts[id]`, `tags`, and the attributes of the body."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.texts: dict[str, str] = {}
        self.words: list[str] = []
        self.body: dict[str, str | None] = {}
        self._open: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append(tag)
        if tag == "body":
            self.body = given
        if tag not in ("meta", "input", "br", "link", "img"):
            self._open.append((tag, given.get("id")))
        if len(self._open) > 1 and self._open[-2][1] == "words":
            self.words.append("")

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for _, name in self._open:
            if name is not None:
                self.texts[name] = self.texts.get(name, "") + data
        if len(self._open) > 1 and self._open[-2][1] == "words":
            self.words[-1] += data
