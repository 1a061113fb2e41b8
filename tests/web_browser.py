"""A real browser that keeps a diary: what it complained about, and whom it asked."""

import shutil
from dataclasses import dataclass, field
from importlib.resources import files
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, expect

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WAIT = 30_000  # a machine that does something else, too
WIDE, NARROW = (1440, 900), (390, 844)
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text()


def chromium() -> str:
    found = [path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))]
    assert found, "the page is tested in Chromium; as root: apt-get install chromium"
    return found[0]


@dataclass
class Visit:
    """One window, and what happened in it."""

    page: Page
    root: str
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def open(self, place: str, language: str = "en") -> None:
        self.page.goto(f"{self.root}/?lang={language}#/{place}")
        self.page.reload()  # another fragment alone is the same page

    def settled(self, lesson: str) -> None:
        """The answer to the last change is on the page."""
        article = self.page.get_by_test_id(f"lesson-{lesson}")
        article.get_by_test_id("formula").wait_for(timeout=WAIT)
        expect(article).to_have_attribute("data-busy", "false", timeout=WAIT)

    def value(self, testid: str) -> float:
        found = self.page.get_by_test_id(testid).get_attribute("data-value")
        assert found, testid
        return float(found)

    def serious(self) -> list[str]:
        """What axe finds that keeps people out."""
        self.page.evaluate(AXE)
        found = self.page.evaluate("axe.run().then(found => found.violations)")
        return [
            f"{one['id']}: {node['html']}" for one in found if one["impact"] in ("serious", "critical") for node in one["nodes"]
        ]

    def overflow(self) -> int:
        return self.page.evaluate("document.documentElement.scrollWidth - innerWidth")

    def is_clean(self) -> None:
        assert self.complaints == []
        assert {urlsplit(url).hostname for url in self.asked if not url.startswith(("data:", "blob:"))} <= {"127.0.0.1"}


def visit(browser: Browser, root: str, token: str, size: tuple[int, int] = WIDE, theme: str = "light", **more) -> Visit:
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme, **more)  # pyright: ignore
    page = context.new_page()
    page.set_default_timeout(WAIT)
    one = Visit(page, root.rstrip("/"))
    page.on("console", lambda said: one.complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: one.complaints.append(str(error)))
    page.on("request", lambda request: one.asked.append(request.url))
    page.goto(f"{one.root}/?token={token}")
    return one
