"""The viewer of a notebook: the built script in a browser, answered by the real widget, with no kernel between."""

import base64
import json
import queue
import re

import pytest
import torch
from letter_recording import Letters, recorded
from playwright.sync_api import expect
from web_viewer import chromium, number

import regard as rg
from regard.errors import ChoiceError, MissingExtraError
from regard.web.notebook.messages import reply
from regard.web.server.page import STATIC_FOLDER

HOST = "http://notebook.test"
# As much of a notebook as anywidget needs: a model with traits, and messages that go both ways.
NOTEBOOK = """<!doctype html><html lang="en"><meta charset="utf-8"><title>notebook</title>
<link rel="stylesheet" href="/widget.css">
<body data-jp-theme-light="true"><main><h1>Notebook</h1><div id="out"></div></main>
<script type="module">
import widget from "/widget.js"
const traits = JSON.parse(await window.ask(JSON.stringify({ traits: true })))
const heard = new Map()
const model = {
  get: name => traits[name],
  set: (name, value) => { traits[name] = value },
  save_changes: () => window.ask(JSON.stringify({ state: traits.state })),
  on: (event, f) => heard.set(event, [...(heard.get(event) ?? []), f]),
  off: (event, f) => heard.set(event, (heard.get(event) ?? []).filter(g => g !== f)),
  async send(message) {
    const said = JSON.parse(await window.ask(JSON.stringify(message)))
    if (!said) return
    const buffers = said.buffers.map(text => new DataView(Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer))
    for (const f of heard.get("msg:custom") ?? []) f(said.content, buffers)
  },
}
window.setState = value => { traits.state = value; for (const f of heard.get("change:state") ?? []) f() }
widget.render({ model, el: document.getElementById("out") })
</script></body></html>"""


def answer(route) -> None:
    name = route.request.url.removeprefix(f"{HOST}/")
    if name in ("widget.js", "widget.css"):
        kind = {"js": "text/javascript", "css": "text/css"}[name.rpartition(".")[2]]
        route.fulfill(path=STATIC_FOLDER / name, content_type=kind)
    else:
        route.fulfill(body=NOTEBOOK, content_type="text/html")


class Notebook:
    """What stands between the browser and the widget."""

    def __init__(self, widget) -> None:
        self.widget, self.said = widget, queue.Queue()
        widget.send = lambda content, buffers=None: self.said.put((content, buffers or []))

    def ask(self, text: str) -> str:
        message = json.loads(text)
        if "traits" in message:
            return json.dumps({name: getattr(self.widget, name) for name in ("recording", "state", "language")})
        if "state" in message:
            self.widget.state = message["state"]
            return "null"
        self.widget._handle_custom_msg(message, [])
        if message.get("forget"):
            return "null"
        content, buffers = self.said.get(timeout=30)
        return json.dumps({"content": content, "buffers": [base64.b64encode(b).decode() for b in buffers]})


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture
def show(browser):
    contexts = []

    def begin(widget):
        context = browser.new_context(viewport={"width": 1100, "height": 900}, reduced_motion="reduce")
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(90_000)
        page.expose_function("ask", Notebook(widget).ask)
        page.route(f"{HOST}/**", answer)
        page.goto(f"{HOST}/")
        return page

    yield begin
    for context in contexts:
        context.close()


def some(*shape: int) -> rg.Weights:
    generator = torch.Generator().manual_seed(3)
    n, m = shape[-2:]
    return rg.Weights(
        torch.randn(*shape[:-2], n, 8, generator=generator) * 2, torch.randn(*shape[:-2], m, 8, generator=generator)
    )


def test_weights_of_a_recording_are_shown_with_its_tokens(show):
    recording = recorded([[2, 0, 19], [3, 14, 6]], tokenizer=Spelling())
    page = show(recording["first"].select(batch=1, head=0).view())
    page.get_by_test_id("map-stage").wait_for()
    page.evaluate("setState('entry=0&head=0&cell=0,2')")
    expect(page.get_by_test_id("map-readout")).to_contain_text("(d)")
    expect(page.get_by_test_id("map-readout")).to_contain_text("(g)")


class Spelling(Letters):
    def decode(self, ids):
        return f"({super().decode(ids)})"


def test_weights_are_looked_at_in_a_notebook(show):
    weights = some(2, 3, 11, 13)
    page = show(weights.view(tokens=[f"<k{i}>" for i in range(13)]))
    expect(page.get_by_test_id("thumb")).to_have_count(3)
    expect(page.locator("[data-testid=thumb][data-ready=true]")).to_have_count(3)
    page.get_by_test_id("batch").select_option("1")
    page.get_by_test_id("thumb").nth(2).click()
    page.get_by_test_id("map-stage").focus()
    for key in ("ArrowDown", "PageUp", "Home", "ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    expect(page.get_by_test_id("map-readout")).to_have_attribute("data-value", re.compile(r"\d"))
    assert (number(page, "map-readout", "row"), number(page, "map-readout", "column")) == (2, 1)
    assert number(page, "map-readout") == pytest.approx(float(weights[1, 2, 2, 1]), rel=1e-5)
    expect(page.get_by_test_id("map-readout")).to_contain_text("<k1>")
    assert page.get_by_test_id("copy-link").count() == 0  # there is no address to copy


def test_a_recording_is_looked_at_and_its_state_is_a_trait(show):
    layer = rg.nn.SelfAttention(12, 2)
    with rg.record(layer) as recording:
        layer(torch.randn(1, 7, 12))
    widget = recording.view()
    widget.language = "zh"
    page = show(widget)
    expect(page.get_by_test_id("thumb")).to_have_count(2)
    expect(page.locator(".regard-viewer")).to_have_attribute("lang", "zh-Hans")
    page.evaluate("setState('entry=0&head=1&cell=4,5')")
    expect(page.get_by_test_id("map-readout")).to_have_attribute("data-value", re.compile(r"\d"))
    assert number(page, "map-readout") == pytest.approx(float(recording.entries[0].weights()[0, 1, 4, 5]), rel=1e-5)
    page.keyboard.press("Escape")
    page.get_by_test_id("show-text").locator("xpath=..").click()
    page.get_by_test_id("gives").wait_for()
    page.wait_for_timeout(400)
    assert "show=text" in widget.state


def test_the_style_of_the_viewer_stays_inside(show):
    page = show(some(5, 5).view())
    page.get_by_test_id("map-stage").wait_for()
    heading = "getComputedStyle(document.querySelector('main > h1'))"
    assert page.evaluate(f"{heading}.fontFamily") != page.evaluate(
        "getComputedStyle(document.querySelector('.regard-viewer')).fontFamily"
    )
    assert page.evaluate("getComputedStyle(document.body).marginTop") == "8px"
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    expect(page.locator(".regard-viewer")).to_have_attribute("data-theme", "dark")


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ({"question": "no such"}, 404),
        ({"question": "meta", "given": {"id": "../x"}}, 404),
        ({"question": "row", "given": {"entry": 0, "batch": 0, "head": 0, "i": 99}}, 404),
        ({"question": "row", "given": {"entry": 0, "batch": 0, "head": 0, "i": -1}}, 400),
        ({"question": "row", "given": {"entry": True, "batch": 0, "head": 0, "i": 1}}, 400),
        ({"question": "thumbs", "given": {"entry": 0, "batch": 0, "side": 100_000}}, 400),
        ({"question": "tile", "given": {"entry": 0, "batch": 0, "head": 0, "pool": "sum"}}, 404),
    ],
)
def test_messages_that_make_no_sense_are_refused(message, status):
    widget = some(5, 7).view()
    given = {"id": widget.recording, **message.get("given", {})}
    content, buffers = reply(widget._queries, {"number": 4, **message, "given": given})
    assert (content["number"], content["status"], buffers) == (4, status, [])


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ChoiceError, match="each of 7 keys, but there are 5"):
        some(5, 7).view(tokens=list("abcde"))


def test_without_anywidget_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "anywidget", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'regard\[jupyter\]'"):
        some(5, 7).view()
