"""The lab on a real server, and a real browser."""

import pytest
from playwright.sync_api import sync_playwright
from web_browser import ARGUMENTS, chromium
from web_server import running

from regard.web.server.page import StaticPage


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("lab"), page=StaticPage()) as server:
        yield server


@pytest.fixture(scope="module")
def window():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield browser
        browser.close()
