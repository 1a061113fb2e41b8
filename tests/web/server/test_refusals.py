"""What a browser without a token shows, and that programs still get JSON."""

import pytest
from web_browser import NARROW, WIDE
from web_server import running
from web_viewer import chromium

from regard.web.server.guard import HEADERS

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("web")) as running_server:
        yield running_server


@pytest.fixture(scope="module")
def window():
    """A browser that ends with this module: other modules start one of their own, and there can be but one."""
    with chromium() as browser:
        yield browser


@pytest.mark.parametrize("path", ["/", "/?token=wrong", "/nothing", "/assets/page-1a2b.js"])
def test_a_browser_without_a_token_gets_a_page_in_both_languages(server, path):
    with server.client(headers=BROWSER) as client:
        client.cookies.clear()
        answer = client.get(path)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert f"<code>{server.address.url}?token=…</code>" in answer.text
    assert "printed in the terminal" in answer.text and "在终端里显示的网址" in answer.text
    assert server.address.token not in answer.text


def test_a_program_without_a_token_gets_json(server):
    asked = [("/", {"Accept": "*/*"}), ("/", {"Accept": "application/json"}), ("/api/health", BROWSER)]
    for path, headers in asked:
        with server.client(headers=headers) as client:
            client.cookies.clear()
            answer = client.get(path)
        assert answer.status_code == 401
        assert answer.json()["error"].startswith("open the address")


def test_other_refusals_are_pages_too(server):
    with server.client(headers=BROWSER) as client:
        nothing = client.get("/nothing")
        assert nothing.status_code == 404
        assert "There is nothing here" in nothing.text and "这里什么也没有" in nothing.text
        foreign = client.get("/", headers={"Host": "<b>evil.example</b>"})
        assert foreign.status_code == 403
        assert "The server refuses this request" in foreign.text and "<b>" not in foreign.text
        assert client.get("/api/nothing").json() == {"error": "there is nothing here"}
        assert client.put("/").json() == {"error": "PUT is not offered here"}


def test_a_page_of_refusal_has_a_stricter_policy_and_all_other_headers(server):
    with server.client(headers=BROWSER) as client:
        answer = client.get("/nothing")
    policy = answer.headers["content-security-policy"]
    assert "script" not in policy and "connect" not in policy and "'self'" not in policy
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    others = {name: value for name, value in HEADERS.items() if name != "content-security-policy"}
    assert all(answer.headers[name] == value for name, value in others.items())


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_page_is_readable_in_every_theme_and_width(server, window, size, theme):
    width, height = size
    context = window.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
    page = context.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(server.address.url)
    assert page.locator("h1").all_inner_texts() == ["The token is missing", "缺少令牌"]
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.locator("main").bounding_box()["width"] <= 36 * 16  # the style is applied, and not blocked
    assert not [text for text in said if "Content Security Policy" in text]
    context.close()


def test_a_link_of_another_site_opens_what_it_names(server, window):
    """The cookie comes with the second request, and the part behind # stays."""
    context = window.new_context()
    context.add_cookies([
        {"name": server.address.cookie, "value": server.address.token, "url": server.address.url, "sameSite": "Strict"}
    ])  # fmt: skip
    page = context.new_page()
    page.goto("data:text/html,<title>elsewhere</title>")
    page.set_content(f'<a href="{server.address.url}?lang=zh#/masks">a link</a>')
    page.click("a")
    page.wait_for_function("document.title === 'regard' && !document.querySelector('a')")
    assert page.url == f"{server.address.url}?lang=zh#/masks"
    assert page.content().startswith("<!DOCTYPE html>")
    context.close()
