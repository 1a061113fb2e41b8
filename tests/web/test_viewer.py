"""The viewer in a real browser: what it shows is what the weights say."""

import csv
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import torch
from playwright.sync_api import Page, expect
from web_viewer import HOSTILE, LONG, chromium, number, opened, record, served

import regard as rg
from regard.recording import Recording

AXE = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
MISSING = (
    ("encoder.layer.0.attention", "it writes out softmax, which no route serves"),
    ("encoder.layer.1.attention", "weights @ values is not what the layer computed: off by 0.31"),
    ("encoder.layer.1.attention", HOSTILE[0]),
)
WORDS = [f"w{i}" for i in range(97)]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("viewer")
    files = {name: folder / f"{name}.regard" for name in ("long", "small", "hostile", "partial", "deep", "halves")}
    record(files["long"], LONG, layers=2, heads=2, dim=16, texts=WORDS)
    record(files["small"], 311, layers=3, heads=5, dim=8, padding=17, texts=WORDS)
    record(files["hostile"], 23, layers=1, heads=2, dim=8, texts=HOSTILE)
    record(files["deep"], 13, layers=30, heads=9, dim=8, texts=WORDS)
    record(files["halves"], 31, layers=1, heads=2, dim=8)
    Recording(rg.open(files["small"]).calls[:2], missing=MISSING).save(files["partial"])
    with served(files) as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def watched(browser, shown):
    with browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce") as context:
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield opened(context, shown)


@pytest.fixture
def page(watched):
    yield watched.page
    assert watched.errors == []


def go(page: Page, shown, name: str, query: str = "") -> None:
    """By way of the list, so that nothing of the view before is left."""
    page.goto(f"{shown.base}#/view")
    page.get_by_test_id("shelf").wait_for()
    page.goto(f"{shown.base}#/view/{shown.ids[name]}{'?' if query else ''}{query}")


def on_map(page: Page, pane: str = "map") -> None:
    """The map is there, and nothing moves any more."""
    expect(page.get_by_test_id(f"{pane}-stage")).to_have_attribute("data-size", re.compile(r"\d"))
    page.wait_for_function(
        """pane => { const at = document.querySelector(`[data-testid=${pane}-stage]`).dataset
             const now = `${pane} ${at.size} ${at.left} ${at.top}`
             const still = window.lastFrame === now; window.lastFrame = now; return still }""",
        arg=pane,
        polling=100,
    )


def held(page: Page, pane: str = "map") -> tuple[int, int, float]:
    out = page.get_by_test_id(f"{pane}-readout")
    expect(out).to_have_attribute("data-value", re.compile(r"\d"))
    return tuple(
        kind(out.get_attribute(f"data-{name}")) for kind, name in ((int, "row"), (int, "column"), (float, "value"))
    )


def test_layers_that_are_missing_are_counted_and_named_with_their_reason(page, shown):
    go(page, shown, "small")
    page.get_by_test_id("wall").wait_for()
    assert page.get_by_test_id("missing").count() == 0
    go(page, shown, "partial")
    missing = page.get_by_test_id("missing")
    expect(missing.locator("summary")).to_have_text("2 layers that ran are not in this recording")
    expect(missing.locator("dd").first).to_be_hidden()
    missing.locator("summary").click()
    expect(missing.locator("dt")).to_have_text([name for name, _ in MISSING])
    expect(missing.locator("dd")).to_have_text([reason for _, reason in MISSING])
    assert page.evaluate("window.hurt") is None


def cells(page: Page) -> list[tuple[int, int]]:
    found = page.get_by_test_id("thumb").evaluate_all("all => all.map(e => [+e.dataset.entry, +e.dataset.head])")
    return [tuple(pair) for pair in found]


def measured(page: Page) -> None:
    expect(page.get_by_test_id("wall")).to_have_attribute("data-measured", "1", timeout=60_000)


def test_the_wall_has_every_head_with_its_picture_and_numbers(page, shown):
    go(page, shown, "small")
    measured(page)
    assert cells(page) == [(entry, head) for entry in range(3) for head in range(5)]
    first = page.get_by_test_id("thumb").first
    expect(first).to_contain_text("layer 0 · head 0")
    expect(page.locator("[data-testid=thumb][data-ready=true]")).not_to_have_count(0)
    weights = shown.weights("small", 0)
    entropy = weights.entropy()[0, :, 17:].mean(-1)  # rows that see nothing do not count
    found = page.get_by_test_id("thumb-entropy").evaluate_all("all => all.slice(0, 5).map(e => +e.dataset.value)")
    torch.testing.assert_close(torch.tensor(found), entropy, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("order", ["entropy", "distance", "sink"])
def test_the_wall_is_sorted_and_filtered(page, shown, order):
    go(page, shown, "small", f"sort={order}")
    measured(page)
    values = page.get_by_test_id(f"thumb-{order}").evaluate_all("all => all.map(e => +e.dataset.value)")
    assert len(values) == 15 and values == sorted(values)
    page.get_by_test_id("direction").click()
    values = page.get_by_test_id(f"thumb-{order}").evaluate_all("all => all.map(e => +e.dataset.value)")
    assert values == sorted(values, reverse=True)
    middle = values[7]
    page.get_by_test_id("find").fill(f"{order}<{middle}")
    expect(page.get_by_test_id("thumb")).to_have_count(sum(value < middle for value in values))
    page.get_by_test_id("find").fill("layer 1")
    expect(page.get_by_test_id("thumb")).to_have_count(5)


@pytest.mark.parametrize("size", [(1440, 900), (1920, 1080)])
@pytest.mark.parametrize("query", ["", "sort=entropy"])
def test_thirty_layers_of_nine_heads_are_in_one_window(page, shown, size, query):
    before = page.viewport_size
    page.set_viewport_size({"width": size[0], "height": size[1]})
    try:
        go(page, shown, "deep", query)
        thumbs = page.get_by_test_id("thumb")
        expect(thumbs).to_have_count(270)
        expect(page.locator("[data-testid=thumb][data-ready=true]")).to_have_count(270, timeout=60_000)
        outside = thumbs.evaluate_all(
            """all => all.map(e => e.getBoundingClientRect()).filter(b => b.width < 20 || b.height < 20
                 || b.left < 0 || b.right > innerWidth || b.top < 0 || b.bottom > innerHeight).length"""
        )
        assert outside == 0
    finally:
        page.set_viewport_size(before)


def test_the_compact_wall_is_walked_by_arrow_keys_and_says_what_is_pointed_at(page, shown):
    go(page, shown, "deep")
    measured(page)
    assert page.locator("[data-testid=thumb][tabindex='0']").count() == 1
    page.get_by_test_id("thumb").first.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    said = page.get_by_test_id("pointed")
    expect(said).to_contain_text("layer 2 · head 1")
    wanted = float(shown.weights("deep", 2).entropy()[0, 1].mean())
    assert float(said.locator("[data-value]").first.get_attribute("data-value") or "nan") == pytest.approx(
        wanted, rel=1e-4
    )
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("head-title")).to_have_text("layer 2 · head 1")


def test_the_wall_is_compact_or_large_as_one_likes(page, shown):
    go(page, shown, "small")
    assert page.get_by_test_id("wall-size").get_attribute("data-value") == "large"
    page.get_by_test_id("wall-size-compact").locator("xpath=..").click()
    expect(page.get_by_test_id("compact")).to_be_visible()
    expect(page.get_by_test_id("thumb")).to_have_count(15)
    go(page, shown, "deep", "wall=large")
    expect(page.get_by_test_id("compact")).to_have_count(0)


def test_heads_are_sorted_while_others_are_measured_but_not_under_the_pointer(page, shown):
    path = f"api/recordings/{shown.ids['small']}/profiles"
    while (answer := page.request.get(shown.base + path)).status == 202:
        pass
    rows, calls = answer.json()["rows"], [1]

    def answer_in_part(route):
        known = [row for row in rows if row["entry"] < calls[0]]
        route.fulfill(status=202, json={"progress": calls[0] / 3.001, "rows": known})

    def order(count: int) -> list[tuple[int, int]]:
        known = sorted((row for row in rows if row["entry"] < count), key=lambda row: row["entropy"])
        return [(row["entry"], row["head"]) for row in known] + [(i, j) for i in range(count, 3) for j in range(5)]

    page.route(f"**/{path}", answer_in_part)
    try:
        go(page, shown, "small", "sort=entropy")
        page.mouse.move(1, 1)
        expect(page.locator("[data-testid=thumb][data-measured=true]")).to_have_count(5)
        assert cells(page) == order(1)
        page.get_by_test_id("thumb").nth(7).hover()
        calls[0] = 2
        expect(page.locator("[data-testid=thumb][data-measured=true]")).to_have_count(10)
        assert cells(page) == order(1)
        expect(page.get_by_test_id("found")).to_contain_text("5 more are sorted in when the pointer leaves")
        page.mouse.move(1, 1)
        expect(page.get_by_test_id("found")).not_to_contain_text("more are sorted in")
        assert cells(page) == order(2)
    finally:
        page.unroute(f"**/{path}")


def test_an_estimate_is_marked_and_becomes_exact(page, shown):
    go(page, shown, "long", "entry=1&head=1")
    expect(page.get_by_test_id("map-estimate")).to_contain_text("estimate from sampled rows")
    expect(page.get_by_test_id("map")).to_have_attribute("data-exact", "true", timeout=90_000)
    expect(page.get_by_test_id("map")).to_have_attribute("data-estimated", "false")
    expect(page.get_by_test_id("map-estimate")).to_have_count(0)


@pytest.mark.parametrize(("row", "column"), [(20_011, 19_997), (32_767, 0), (511, 256), (30_000, 31_000)])
def test_zoomed_to_single_cells_of_a_long_map_the_values_are_those_of_the_weights(page, shown, row, column):
    go(page, shown, "long", f"entry=1&head=1&zoom=44&x={column + 0.5}&y={row + 0.5}&cell={row},{column}")
    on_map(page)
    assert page.get_by_test_id("map-stage").get_attribute("data-level") == "0"
    assert number(page, "map-stage", "size") == pytest.approx(44, rel=1e-3)
    found = held(page)
    assert found[:2] == (row, column)
    assert found[2] == pytest.approx(float(shown.weights("long", 1)[0, 1, row, column]), rel=1e-5, abs=1e-9)


def test_the_pointer_reads_the_cell_under_it(page, shown):
    go(page, shown, "long", "entry=1&head=1&zoom=37&x=9000.5&y=9100.5")
    on_map(page)
    stage = page.get_by_test_id("map-stage")
    box = stage.bounding_box()
    assert box is not None
    weights = shown.weights("long", 1)
    for x, y in ((0.31, 0.62), (0.72, 0.24)):
        page.mouse.move(box["x"] + box["width"] * x, box["y"] + box["height"] * y)
        size, left, top = (number(page, "map-stage", name) for name in ("size", "left", "top"))
        row, column = int(top + box["height"] * y / size), int(left + box["width"] * x / size)
        expect(page.get_by_test_id("map-readout")).to_have_attribute("data-row", str(row))
        found = held(page)
        assert found[:2] == (row, column)
        assert found[2] == pytest.approx(float(weights[0, 1, row, column]), rel=1e-5, abs=1e-9)


def test_other_colours_ask_for_no_tile(page, shown):
    go(page, shown, "small", "entry=1&head=2")
    on_map(page)
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/tiles/" in request.url else None)
    before = page.evaluate(PIXEL)
    for control in ("colours-inferno", "scale-log", "colours-reds"):
        page.get_by_test_id(control).locator("xpath=..").click()
        page.wait_for_function(f"before => {PIXEL} !== before", arg=before)
        before = page.evaluate(PIXEL)
    page.get_by_test_id("gamma").press("ArrowRight")
    assert asked == []


# The colour in the middle of the lower edge of the map, where a causal one is not empty.
PIXEL = """(() => { const canvas = document.querySelector('[data-testid=map-stage] .openseadragon-canvas canvas')
  return canvas.getContext('2d').getImageData(canvas.width * 0.4, canvas.height * 0.8, 1, 1).data.join() })()"""


def test_rows_divided_by_their_maximum_have_one_scale(page, shown):
    go(page, shown, "small", "entry=1&head=2&rows=true")
    on_map(page)
    assert number(page, "colour-bar") == 1
    peaks = page.request.get(f"{shown.base}api/recordings/{shown.ids['small']}/maps/1/0/2/peaks/mean/0/1").body()
    wanted = shown.weights("small", 1)[0, 2, 256:].amax(-1)
    torch.testing.assert_close(torch.frombuffer(bytearray(peaks), dtype=torch.float32), wanted)


def test_the_keyboard_alone_finds_a_cell(page, shown):
    go(page, shown, "small")
    measured(page)
    page.get_by_test_id("thumb").nth(7).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("head-title")).to_have_text("layer 1 · head 2")
    on_map(page)
    stage = page.get_by_test_id("map-stage")
    stage.focus()
    for key in ("ArrowDown", "PageDown", "Home", "ArrowRight", "ArrowRight", "ArrowUp", "+", "+", "+", "+"):
        page.keyboard.press(key)
    row, column, value = held(page)
    assert (row, column) == (309, 2)
    assert value == pytest.approx(float(shown.weights("small", 1)[0, 2, 309, 2]), rel=1e-5)
    on_map(page)
    size, left, top = (number(page, "map-stage", name) for name in ("size", "left", "top"))
    box = stage.bounding_box()
    assert box is not None
    assert 0 <= (column - left) * size < box["width"] and 0 <= (row - top) * size < box["height"]
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("map-readout")).to_have_attribute("data-row", "")


def test_a_head_from_far_down_the_wall_is_seen_from_its_top(browser, page, shown):
    with browser.new_context(viewport={"width": 390, "height": 500}) as context:
        watched = opened(context, shown, f"#/view/{shown.ids['small']}")
        watched.page.get_by_test_id("thumb").last.click()
        expect(watched.page.get_by_test_id("head-title")).to_be_in_viewport()
        assert watched.errors == []


def test_without_the_first_token_colours_change_and_no_weight_does(page, shown):
    dense = shown.weights("hostile", 0)[0, 1]
    go(page, shown, "hostile", "entry=0&head=1&cell=5,0")
    on_map(page)
    assert number(page, "colour-bar") == pytest.approx(float(dense.max()), rel=1e-5)
    assert page.get_by_test_id("map-hidden").count() == 0
    page.get_by_test_id("hide-first").locator("xpath=..").click()
    expect(page.get_by_test_id("map-hidden")).to_have_attribute("data-value", "1")
    expect(page.get_by_test_id("map-hidden")).to_contain_text("All weights are unchanged")
    wanted = float(dense[:, 1:].max())
    assert wanted < 0.999 * float(dense.max())
    expect(page.get_by_test_id("colour-bar")).to_have_attribute("data-value", re.compile(str(wanted)[:5]))
    assert held(page) == (5, 0, pytest.approx(float(dense[5, 0]), rel=1e-5))
    path = f"api/recordings/{shown.ids['hostile']}/maps/0/0/1/peaks/mean/0/0?skip=1"
    peaks = torch.frombuffer(bytearray(page.request.get(shown.base + path).body()), dtype=torch.float32)
    torch.testing.assert_close(peaks, dense[:, 1:].amax(-1))


def test_pieces_of_a_character_have_one_label_and_keep_their_index(page, shown):
    tokens = page.request.get(f"{shown.base}api/recordings/{shown.ids['halves']}").json()["tokens"]["0"]
    texts = next(iter(tokens.values()))[0]
    first = texts.index("é 1/2")
    go(page, shown, "halves", f"entry=0&head=1&cell={first + 1},{first}")
    on_map(page)
    assert held(page)[:2] == (first + 1, first)
    said = " ".join(page.get_by_test_id("map-readout").locator(".token").all_inner_texts()).split()
    assert "".join(said) == f"é{first + 1}é{first}"
    go(page, shown, "halves", f"entry=0&head=1&show=text&token={first + 1}")
    pieces = [page.get_by_test_id("gives").locator(f"[data-token='{at}']") for at in (first, first + 1)]
    assert [piece.inner_text() for piece in pieces] == ["é", "·"]
    expect(pieces[1]).to_have_attribute("aria-label", re.compile(f"^é, {first + 1}"))
    expect(page.get_by_test_id("text-view")).to_contain_text("What “é” attends to")


@pytest.mark.parametrize(("width", "height", "least"), [(1440, 900, 480), (1920, 1080, 660)])
def test_a_map_takes_the_room_of_the_window_and_its_readout_stays_in_it(page, shown, width, height, least):
    before = page.viewport_size
    page.set_viewport_size({"width": width, "height": height})
    try:
        go(page, shown, "small", "entry=1&head=2")
        on_map(page)
        stage, readout = (page.get_by_test_id(f"map-{name}").bounding_box() for name in ("stage", "readout"))
        assert stage is not None and readout is not None
        assert stage["height"] >= least
        assert height - 60 <= readout["y"] + readout["height"] <= height
        page.get_by_test_id("full-screen").click()
        expect(page.get_by_test_id("full-screen")).to_have_attribute("aria-pressed", "true")
        page.wait_for_timeout(200)
        on_map(page)
        full = page.get_by_test_id("map-stage").bounding_box()
        assert full is not None and full["height"] > stage["height"] and full["width"] > stage["width"]
        page.get_by_test_id("full-screen").click()
        expect(page.get_by_test_id("full-screen")).to_have_attribute("aria-pressed", "false")
    finally:
        page.set_viewport_size(before)


def test_empty_rows_are_hatched_and_said(page, shown):
    go(page, shown, "small", "entry=0&head=0&cell=3,2")
    on_map(page)
    assert held(page) == (3, 2, 0.0)
    expect(page.get_by_test_id("map-readout")).to_contain_text("this query sees no key")
    go(page, shown, "small", "entry=0&head=0&cell=40,2")
    expect(page.get_by_test_id("map-readout")).not_to_contain_text("this query sees no key")


def test_hostile_tokens_are_texts(page, shown):
    go(page, shown, "hostile", "entry=0&head=1&show=text&token=22")
    tokens = page.get_by_test_id("gives").locator("[data-token]")
    expect(tokens).to_have_count(23)
    shown_texts = tokens.all_text_contents()
    known = [text for text in HOSTILE if text and text != "\n" and not text.startswith("\u202e")]
    assert {text for text in shown_texts if text not in ("⏎", "∅")} <= {*known, HOSTILE[7]}
    assert any("</script>" in text for text in shown_texts) or any("onerror" in text for text in shown_texts)
    page.get_by_test_id("show-map").locator("xpath=..").click()
    on_map(page)
    page.get_by_test_id("map-stage").focus()
    for _ in range(14):
        page.keyboard.press("ArrowUp")
    assert page.evaluate("window.hurt") is None
    assert page.locator("article script, article b b, article img").count() == 0


def test_the_text_shows_what_a_token_gives_and_gets(page, shown):
    go(page, shown, "hostile", "entry=0&head=1&show=text")
    dense = shown.weights("hostile", 0)[0, 1]
    page.get_by_test_id("gives").locator("[data-token='9']").hover()
    expect(page.get_by_test_id("text-view")).to_have_attribute("data-shown", "9")
    for side, wanted in (("gives", dense[9]), ("gets", dense[:, 9])):
        found = page.get_by_test_id(side).locator("[data-token]").evaluate_all("all => all.map(e => +e.dataset.value)")
        torch.testing.assert_close(torch.tensor(found), wanted, rtol=1e-5, atol=1e-8)
    best = page.get_by_test_id("rank-gives").locator("li").first
    assert int(best.get_attribute("data-token") or -1) == int(dense[9].argmax())
    lines = drawn_lines(page)
    assert len(lines) > 3
    for row, column, value in lines:
        assert 9 in (row, column) and value == pytest.approx(float(dense[row, column]), rel=1e-5)
    page.get_by_test_id("gives").locator("[data-token='9']").click()
    page.get_by_test_id("gives").locator("[data-token='2']").hover()
    expect(page.get_by_test_id("text-view")).to_have_attribute("data-token", "9")  # it is held


@pytest.mark.parametrize(
    ("name", "entry", "head", "row", "column"), [("small", 1, 2, 200, 150), ("long", 1, 1, 20_000, 19_985)]
)
def test_lines_show_any_window_of_a_long_text(page, shown, name, entry, head, row, column):
    weights = shown.weights(name, entry)[0, head, row : row + 40, column : column + 40]
    token = row + int(weights.argmax()) // 40
    go(page, shown, name, f"entry={entry}&head={head}&show=text&token={token}&lines={row},{column}")
    window = page.get_by_test_id("lines-window")
    expect(window).to_have_attribute("data-row", str(row))
    expect(window).to_have_attribute("data-column", str(column))
    expect(page.get_by_test_id("lines-inside")).to_have_attribute("data-value", re.compile(r"\d"))
    assert number(page, "lines-widest") == pytest.approx(float(weights.max()), rel=1e-4)
    found = drawn_lines(page)
    assert found
    for i, j, value in found:
        assert token in (i, j)
        assert value == pytest.approx(float(weights[i - row, j - column]), rel=1e-4)
    assert number(page, "lines-inside") == pytest.approx(float(weights[token - row].sum()), rel=1e-3, abs=1e-6)
    page.get_by_test_id("lines-keys").fill("0")
    page.get_by_test_id("lines-keys").press("Enter")
    expect(window).to_have_attribute("data-column", "0")
    expect(window).to_have_attribute("data-row", str(row))
    page.get_by_test_id("lines-around").click()
    expect(window).to_have_attribute("data-column", str(token - 20))


def drawn_lines(page: Page) -> list[tuple[int, int, float]]:
    paths = page.get_by_test_id("lines").locator("path")
    return paths.evaluate_all("all => all.map(e => [+e.dataset.row, +e.dataset.column, +e.dataset.value])")


def test_two_heads_side_by_side_move_together(page, shown):
    go(page, shown, "small", f"entry=1&head=2&with={shown.ids['small']}/2/0/4&cell=200,150")
    on_map(page)
    on_map(page, "other")
    assert held(page)[2] == pytest.approx(float(shown.weights("small", 1)[0, 2, 200, 150]), rel=1e-5)
    assert held(page, "other")[2] == pytest.approx(float(shown.weights("small", 2)[0, 4, 200, 150]), rel=1e-5)
    page.get_by_test_id("map-stage").hover()
    before = number(page, "map-stage", "size")
    page.mouse.wheel(0, -400)
    page.wait_for_function(
        "before => document.querySelector('[data-testid=map-stage]').dataset.size > 1.2 * before", arg=before
    )
    on_map(page)
    on_map(page, "other")
    for name in ("size", "left", "top"):
        assert number(page, "other-stage", name) == pytest.approx(number(page, "map-stage", name), rel=1e-3, abs=0.05)
    assert page.get_by_test_id("colour-bar").evaluate_all("all => new Set(all.map(e => e.dataset.value)).size") == 1
    page.get_by_test_id("with-recording").select_option(shown.ids["hostile"])
    expect(page.get_by_test_id("other")).to_have_attribute("aria-label", re.compile("hostile"))


def test_a_difference_is_one_head_minus_the_other(page, shown):
    a, b = shown.weights("small", 1)[0, 2], shown.weights("small", 2)[0, 4]
    go(page, shown, "small", f"entry=1&head=2&with={shown.ids['small']}/2/0/4&difference=true&cell=200,150")
    on_map(page, "difference")
    out = page.get_by_test_id("difference-readout")
    expect(out).to_have_attribute("data-a", re.compile(r"\d"))
    for name, weights in (("a", a), ("b", b)):
        assert float(out.get_attribute(f"data-{name}") or "nan") == pytest.approx(float(weights[200, 150]), rel=1e-5)
    assert held(page, "difference")[2] == pytest.approx(float(a[200, 150] - b[200, 150]), rel=1e-4, abs=1e-9)
    assert number(page, "colour-bar") == pytest.approx(float((a - b).abs().max()), rel=1e-4)
    expect(page.get_by_test_id("colour-bar-ends")).to_have_text("B largerA larger")
    assert page.get_by_test_id("difference-note").count() == 0
    page.get_by_test_id("compare-as-maps").locator("xpath=..").click()
    on_map(page)
    assert held(page)[2] == pytest.approx(float(a[200, 150]), rel=1e-5)


def test_maps_of_two_sizes_have_no_difference(page, shown):
    go(page, shown, "small", f"entry=1&head=2&with={shown.ids['hostile']}/0/0/0&difference=true")
    expect(page.get_by_test_id("no-difference")).to_contain_text("A has 311 × 311 cells, B has 23 × 23")
    expect(page.get_by_test_id("other")).to_be_visible()


def test_a_link_opens_the_same_view(page, shown):
    go(
        page,
        shown,
        "small",
        "entry=1&head=2&zoom=20&x=100.5&y=200.5&cell=200,100&map=cividis&scale=log&gamma=1.5&rows=true",
    )
    on_map(page)
    page.get_by_test_id("copy-link").click()
    link = page.evaluate("navigator.clipboard.readText()")
    page.goto("about:blank")
    page.goto(link)
    on_map(page)
    assert held(page)[:2] == (200, 100)
    assert number(page, "map-stage", "size") == pytest.approx(20, rel=1e-3)
    expect(page.get_by_test_id("colours")).to_have_attribute("data-value", "cividis")
    expect(page.get_by_test_id("scale")).to_have_attribute("data-value", "log")
    assert number(page, "gamma-value") == 1.5
    expect(page.get_by_test_id("by-row")).to_be_checked()


@pytest.mark.parametrize("rest", [0, 180, 190, 195, 198, 200, 202, 205, 210, 220])
def test_an_address_that_comes_late_takes_nobody_back(page, shown, rest):
    """The address follows a change after 200 ms. Whoever has left by then stays where they are."""
    go(page, shown, "small", "entry=1&head=2")
    on_map(page)
    page.evaluate(
        """rest => { document.querySelector('[data-testid=scale-log]').click()
             setTimeout(() => { location.hash = '#/view' }, rest) }""",
        rest,
    )
    page.get_by_test_id("shelf").wait_for()
    page.wait_for_timeout(300)  # nothing happens, which takes a while to see
    assert page.url.endswith("#/view")
    expect(page.get_by_test_id("shelf")).to_be_visible()


def test_the_visible_part_of_a_map_is_exported(page, shown, tmp_path):
    go(page, shown, "hostile", "entry=0&head=1")
    on_map(page)
    page.get_by_test_id("export").click()
    files = {}
    for kind in ("png", "svg", "csv"):
        with page.expect_download() as download:
            page.get_by_test_id(f"export-{kind}").click()
        files[kind] = tmp_path / f"export.{kind}"
        download.value.save_as(files[kind])
    assert files["png"].read_bytes().startswith(b"\x89PNG") and files["png"].stat().st_size > 5_000
    drawing = ET.parse(files["svg"])  # noqa: S314  it is ours
    names = {element.tag.rpartition("}")[2] for element in drawing.iter()}
    assert "script" not in names and {"text", "image"} <= names
    assert "Point" not in {element.text for element in drawing.iter()}  # what to do on the page is no part of it
    lines = list(csv.reader(files["csv"].read_text("utf-8-sig").splitlines()))
    found = torch.tensor([[float(value) for value in line[1:]] for line in lines[1:]])
    torch.testing.assert_close(found, shown.weights("hostile", 0)[0, 1], rtol=1e-6, atol=1e-9)
    assert not any(text.startswith(("=", "@")) for line in lines for text in line)


@pytest.mark.parametrize(
    ("query", "lang", "width", "dark"),
    [("", "zh", 390, True), ("entry=1&head=2", "en", 390, False), ("entry=1&head=2", "zh", 1440, True),
     ("entry=1&head=2&show=text&token=40", "en", 1440, True), ("wall=compact&first=false", "zh", 390, False),
     ("wall=compact&sort=entropy", "en", 1440, True),
     ("entry=1&head=2&with=SMALL/2/0/4&difference=true&first=false", "zh", 390, False)],
)  # fmt: skip
def test_the_viewer_has_no_accessibility_faults(browser, page, shown, query, lang, width, dark):
    del page  # it has asked for the ids
    with browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme="dark" if dark else "light", bypass_csp=True
    ) as context:
        place = f"?lang={lang}#/view/{shown.ids['small']}{'?' if query else ''}{query}"
        place = place.replace("SMALL", shown.ids["small"])
        watched = opened(context, shown, place)
        watched.page.get_by_test_id("export").wait_for()
        watched.page.wait_for_load_state("networkidle")
        watched.page.add_script_tag(path=AXE)
        found = watched.page.evaluate("axe.run(document, {resultTypes: ['violations']}).then(r => r.violations)")
        grave = [
            (one["id"], [node["html"] for node in one["nodes"]][:3])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert grave == []
        assert watched.page.evaluate("document.documentElement.scrollWidth <= innerWidth + 1")
        english = {"zh": ("Sort by", "Compare", "queries"), "en": ("排序", "比较", "查询")}[lang]
        text = watched.page.locator("article").inner_text()
        assert not any(word in text for word in english)
        assert watched.errors == []
