"""Refusals as a browser shows them: a page in both languages for people, JSON for programs."""

from __future__ import annotations

import html
from base64 import b64encode
from hashlib import sha256

from starlette.responses import Response
from starlette.types import Scope

from regard.web.server.errors import ApiError

POLICY = "default-src 'none'; {source}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
STYLE = """
:root { color-scheme: light dark }
body { font: 1rem/1.6 system-ui, sans-serif; max-width: 36rem; margin: 10vh auto; padding: 0 1.25rem }
h1 { font-size: 1.25rem; line-height: 1.3; margin: 0 0 .5rem }
p { margin: .5rem 0 }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere }
section + section { margin-top: 2rem; padding-top: 2rem; border-top: 1px solid GrayText }
"""
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>regard</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style></head><body><main>
<section>{english}</section>
<section lang="zh">{chinese}</section>
</main></body></html>
"""
# By status: English, then Chinese. {url} is the address of the server, {message} what a program is told.
TEXTS = {
    401: (
        """<h1>The token is missing</h1>
<p>This server answers only with its token. Your browser has none, or one of a server that has stopped.</p>
<p>Open the address that <code>regard</code> or <code>make lab</code> printed in the terminal when it started:</p>
<p><code>{url}?token=…</code></p>""",
        """<h1>缺少令牌</h1>
<p>这个服务器只凭令牌应答。您的浏览器没有令牌，或者令牌属于一个已经停止的服务器。</p>
<p>请打开 <code>regard</code> 或 <code>make lab</code> 启动时在终端里显示的网址：</p>
<p><code>{url}?token=…</code></p>""",
    ),
    404: (
        '<h1>There is nothing here</h1><p><a href="/">To the start page</a></p>',
        '<h1>这里什么也没有</h1><p><a href="/">回到首页</a></p>',
    ),
}
OTHER_TEXT = (
    "<h1>The server refuses this request</h1><p>{message}</p><p>Its address is <code>{url}</code></p>",
    '<h1>服务器拒绝了这个请求</h1><p lang="en">{message}</p><p>它的网址是 <code>{url}</code></p>',
)
# A browser that follows a link of another site, or opens a file, sends no SameSite=Strict cookie, not even one that was
# just set. The page loads itself again: a request of its own has the cookie, and the part behind # stays.
RELOAD_SCRIPT = "if (performance.getEntriesByType('navigation')[0].type !== 'reload') location.reload()"
RELOAD = """<!doctype html><meta charset="utf-8"><title>regard</title><script>{script}</script>
<noscript><meta http-equiv="refresh" content="0;url=/?{query}"></noscript><p><a href="/?{query}">regard</a></p>
"""


def refusal(scope: Scope, error: ApiError, url: str = "/") -> Response:
    """Return a page if a browser asks for one to show, and JSON to everybody else, as to all calls of the API."""
    if not _is_navigation(scope):
        return error.response()
    texts = (text.format(url=html.escape(url), message=html.escape(error.message)) for text in _texts(error.status))
    english, chinese = texts
    page = PAGE.format(style=STYLE, english=english, chinese=chinese)
    return _html(page, error.status, f"style-src {_source(STYLE)}", error.headers)


def reload_page(query: bytes) -> Response:
    """Return the page that loads itself again with the cookies of this server."""
    page = RELOAD.format(script=RELOAD_SCRIPT, query=html.escape(query.decode("ascii", "replace")))
    return _html(page, 401, f"script-src {_source(RELOAD_SCRIPT)}", {})


def _texts(status: int) -> tuple[str, str]:
    return TEXTS.get(status, OTHER_TEXT)


def _is_navigation(scope: Scope) -> bool:
    accepted = b",".join(value for name, value in scope["headers"] if name == b"accept").lower()
    is_read = scope["method"] in ("GET", "HEAD")
    return is_read and b"text/html" in accepted and not scope["path"].startswith("/api/")


def _html(page: str, status: int, source: str, headers: dict[str, str]) -> Response:
    policy = {"cache-control": "no-store", "content-security-policy": POLICY.format(source=source)}
    return Response(page, status, {**headers, **policy}, "text/html; charset=utf-8")


def _source(text: str) -> str:
    """Return the text's hash as a content security policy names it: this text alone may stand in the page."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
