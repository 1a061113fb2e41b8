"""The lessons as people see them, in a real browser: the numbers on the page are the library's."""

import json
import math
import re
import threading
from itertools import product

import pytest
import torch
from playwright.sync_api import expect
from web_browser import NARROW, WIDE, visit

from regard.attention import attend
from regard.errors import MissingExtraError, ShapeError, UnknownTextError
from regard.lab.pages import PAGES, block
from regard.lab.pages._background_load import BackgroundLoad
from regard.seq2seq import length_table, pretrained
from regard.web.api import recorder

LANGUAGES = ("en", "zh")
THEMES = ("light", "dark")
SIZES = {"wide": WIDE, "narrow": NARROW}
EVERYWHERE = list(product(PAGES, LANGUAGES, SIZES, THEMES))
# Every pair of lesson and language, with each of the other two in turn.
PAIRS = [
    (name, language, ("wide", "narrow")[(i + j) % 2], THEMES[(i // 2 + j) % 2])
    for i, name in enumerate(PAGES)
    for j, language in enumerate(LANGUAGES)
]


@pytest.fixture
def open_page(server, window):
    """Opens windows, and after the test looks whether one of them complained or asked a stranger."""
    visits = []

    def open_one(place, language="en", size=WIDE, theme="light", **more):
        one = visit(window, server.address.url, server.address.token, size, theme, **more)
        visits.append(one)
        one.open(place, language)
        one.settled(place.split("?")[0])
        return one

    yield open_one
    for one in visits:
        one.page.context.close()
        one.is_clean()


def shown(name: str, **state) -> dict:
    page = PAGES[name]
    return page.show(page.read(state))


def cells(prefix: str, rows) -> dict[str, float]:
    return {f"{prefix}-{i}-{j}": value for i, row in enumerate(rows) for j, value in enumerate(row)}


def bars(prefix: str, values) -> dict[str, float]:
    return {f"{prefix}-{i}": value for i, value in enumerate(values)}


def stored(table) -> dict[str, float]:
    """The cells of the length table that the lesson opens with."""
    return {
        f"stored-{cell['model']}-{row['words']}": row["exact_match"]
        for cell in table
        if (cell["data"], cell["trained_words"]) == ("numbers", 60)
        for row in cell["rows"]
    }


# What of an answer stands on the page, by the name under which a test finds it.
READ = {
    "why": lambda s: (
        cells("recalled", s["recalled"])
        | cells("candidate", [[one["probability"] for one in row] for row in s["candidates"]])
        | bars("right", s["right"])
        | {"per-word": s["hidden"] / s["n"], "path-1": max(s["weights"])}
    ),
    "cues": lambda s: bars("weight", s["weights"]) | {"total": s["total"]},
    "regression": lambda s: {f"number-{name}": value for name, value in s["numbers"].items()},
    "heatmaps": lambda s: bars("largest", s["largest"]),
    "scores": lambda s: bars("weights", s["weights"]) | cells("all", [row["weights"] for row in s["rows"]]),
    "saturation": lambda s: {"variance": s["variance"], "largest": s["largest"], "nudge": s["nudge"]["mean_moved"]},
    "masks": lambda s: cells("weights", s["weights"]) | cells("recipe-regard", s["recipe"]["regard"]),
    "by_hand": lambda s: cells("scores", s["scores"]) | cells("weights", s["weights"]) | cells("output", s["output"]),
    "heads": lambda s: {
        f"number-{name}": s["heads"][s["head"]][name] for name in ("entropy", "saturation", "previous")
    },
    "relevance": lambda s: cells("links", s["weights"]) | cells("among", s["among"]),
    "normalisers": lambda s: bars("weights", s["weights"]) | cells("shares", [row["weights"] for row in s["rows"]]),
    "block": lambda s: cells("query", s["query"]) | cells("key", s["key"]) | cells("value", s["value"]),
    "translation": lambda s: (
        cells("links", s["weights"][0])
        | bars("candidate", [one["probability"] for one in s["candidates"][s["at"]]])
        | {"query": s["query"][0][s["at"]][0], "context": s["context"][0][s["at"]][0]}
    ),
    "bottleneck": lambda s: {"memory": s["memory"]["attention"]} | stored(s["table"]),
}


def reads_as(one, name: str, **state) -> None:
    expected = READ[name](shown(name, **state))
    assert expected
    found = {testid: one.value(testid) for testid in expected}
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)


def opened(name: str, language: str) -> dict:
    """What a lesson begins with: texts may be in the language of the page."""
    return {"language": language} if "language" in PAGES[name].default else {}


def looks_right(open_page, name: str, language: str, size: str, theme: str) -> None:
    one = open_page(name, language, SIZES[size], theme)
    reads_as(one, name, **opened(name, language))
    assert one.overflow() <= 0
    assert one.serious() == []
    assert one.page.locator("html").get_attribute("lang") == {"en": "en", "zh": "zh-Hans"}[language]
    title = one.page.locator("h1").inner_text()
    assert any("一" <= letter <= "鿿" for letter in title) == (language == "zh")
    assert one.page.locator(".katex-error").count() == 0
    if language == "zh":
        comments = one.page.locator("pre .comment").all_inner_texts()
        assert [comment for comment in comments if not re.search("[一-鿿]", comment)] == []


@pytest.mark.parametrize(("name", "language", "size", "theme"), PAIRS)
def test_a_lesson_shows_the_librarys_numbers(open_page, name, language, size, theme):
    looks_right(open_page, name, language, size, theme)


@pytest.mark.long
@pytest.mark.parametrize(("name", "language", "size", "theme"), EVERYWHERE)
def test_a_lesson_looks_right_in_every_language_size_and_theme(open_page, name, language, size, theme):
    looks_right(open_page, name, language, size, theme)


# By keyboard alone: focus, keys, and what they should have done to the state.
KEYS = {
    "why": ("n", ["ArrowRight"], {"n": 25}),
    "cues": ("pooling-average", ["Space"], {"pooling": "average"}),
    "regression": ("mode-fixed", ["ArrowLeft"], {"mode": "average"}),
    "heatmaps": ("kind-heads", ["ArrowLeft"], {"kind": "random"}),
    "scores": ("chosen-scaled_dot", ["ArrowLeft"], {"chosen": "dot"}),
    "saturation": ("scaled", ["Space"], {"scaled": True}),
    "masks": ("m", ["ArrowRight"], {"m": 9, "align": "bottom-right"}),
    "by_hand": ("scaled", ["Space"], {"scaled": False}),
    "heads": ("layer-3", ["ArrowRight", "ArrowRight"], {"layer": 5}),
    "relevance": ("preset-en-short", ["ArrowRight", "ArrowRight"], {"preset": "zh-short"}),
    "normalisers": ("chosen-softmax", ["ArrowRight"], {"chosen": "sparsemax"}),
    "block": ("causal", ["Space"], {"causal": False}),
    "translation": ("step", ["ArrowRight", "ArrowRight"], {"step": 3}),
    "bottleneck": ("hidden", ["ArrowRight"], {"hidden": 112}),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_lesson_obeys_the_keyboard_and_its_address_opens_the_same_page(open_page, name):
    testid, keys, state = KEYS[name]
    one = open_page(name)
    one.page.get_by_test_id(testid).focus()
    for key in keys:
        one.page.keyboard.press(key)
    one.page.wait_for_function("expected => location.hash.includes(expected)", arg=next(iter(state)))
    one.settled(name)
    reads_as(one, name, **state)

    address = one.page.url.split("#/")[1]
    other = open_page(address, "zh")
    reads_as(other, name, **state)


# What people use, and whether the focus is on one of them: its place among all, or -1.
USED = "main :is(button, textarea, input[type=range], input[type=checkbox], summary)"
COUNT = """used => [...document.querySelectorAll(used)].filter(
    node => node.checkVisibility({visibilityProperty: true}) && !node.disabled && node.tabIndex >= 0).length"""
FOCUS = "used => [...document.querySelectorAll(used)].indexOf(document.activeElement)"


@pytest.mark.parametrize("name", PAGES)
def test_everything_that_can_be_used_can_be_reached_by_tab(open_page, name):
    one = open_page(name)
    wanted = one.page.evaluate(COUNT, USED)
    assert wanted > 0
    reached: set[int] = set()
    for _ in range(400):
        one.page.keyboard.press("Tab")
        reached.add(one.page.evaluate(FOCUS, USED))
        if len(reached - {-1}) >= wanted:
            break
    assert len(reached - {-1}) >= wanted


def test_the_language_changes_and_the_state_stays(open_page):
    one = open_page("normalisers?temperature=0.5&chosen=entmax15")
    before = one.page.url.split("#")[1]
    one.page.get_by_text("中文", exact=True).first.click()
    expect(one.page.locator("html")).to_have_attribute("lang", "zh-Hans")
    one.settled("normalisers")
    assert one.page.url.split("#")[1] == before
    assert "lang=zh" in one.page.url
    reads_as(one, "normalisers", temperature=0.5, chosen="entmax15")


@pytest.mark.parametrize("name", PAGES)
def test_the_code_is_copied_and_the_question_unfolds(open_page, name):
    one = open_page(name, permissions=["clipboard-read", "clipboard-write"])
    one.page.get_by_role("button", name="Copy").first.click()
    page = PAGES[name]
    expect(one.page.get_by_role("button", name="Copied")).to_be_visible()
    assert one.page.evaluate("navigator.clipboard.readText()") == page.code(page.read({}))
    answer = one.page.locator("details p").first
    expect(answer).to_be_hidden()
    one.page.locator("summary").click()
    expect(answer).to_be_visible()


# Why attention


def test_a_word_is_asked_for_by_mouse_by_arrow_keys_and_by_slider(open_page):
    one = open_page("why")
    one.page.get_by_test_id("recalled-0-4").click()
    one.settled("why")
    reads_as(one, "why", place=5)
    one.page.keyboard.press("ArrowRight")
    one.page.keyboard.press("ArrowRight")
    expect(one.page.get_by_test_id("recalled-0-6")).to_be_focused()
    one.settled("why")
    reads_as(one, "why", place=7)
    one.page.get_by_test_id("place").focus()
    one.page.keyboard.press("End")
    one.settled("why")
    reads_as(one, "why", place=24)
    expect(one.page.get_by_test_id("recalled-1-23")).to_have_attribute("aria-checked", "true")
    one.page.get_by_test_id("recalled-1-23").focus()
    one.page.keyboard.press("ArrowDown")  # from the last to the first
    one.settled("why")
    reads_as(one, "why", place=1)


def test_a_sentence_is_read_on_word_by_word(open_page):
    one = open_page("why?n=37", reduced_motion="reduce")
    one.page.get_by_test_id("play").click()
    expect(one.page.get_by_test_id("play")).to_have_attribute("data-playing", "true")
    expect(one.page.get_by_test_id("n-value")).to_have_attribute("data-value", "40")
    expect(one.page.get_by_test_id("play")).to_have_attribute("data-playing", "false")
    one.settled("why")
    reads_as(one, "why", n=40)
    one.page.get_by_test_id("play").click()  # once more, from the start
    expect(one.page.get_by_test_id("n-value")).to_have_attribute("data-value", "3")
    one.page.get_by_test_id("play").click()
    expect(one.page.get_by_test_id("play")).to_have_attribute("data-playing", "false")


@pytest.mark.parametrize(("language", "text"), [("en", "happy child"), ("zh", "快乐孩子")])
def test_own_words_are_typed_or_chosen_and_another_sentence_is_drawn(open_page, language, text):
    one = open_page("why?n=6", language)
    one.page.get_by_test_id("text").fill(text)
    one.page.get_by_test_id("text").blur()
    one.page.wait_for_function("() => location.hash.includes('text=')")
    one.settled("why")
    reads_as(one, "why", n=6, text=text)
    one.page.get_by_test_id("vocabulary").click()
    one.page.get_by_test_id("word-0").click()
    expect(one.page.get_by_test_id("recalled-0-2").locator(".word")).to_have_text({"en": "red", "zh": "红"}[language])
    assert one.serious() == []
    one.page.get_by_test_id("text").fill("")
    one.page.get_by_test_id("text").blur()
    one.page.wait_for_function("() => !location.hash.includes('text=')")
    one.page.get_by_test_id("redraw").click()
    one.settled("why")
    reads_as(one, "why", n=6, seed=7)
    one.page.get_by_test_id("reset").click()
    one.settled("why")
    reads_as(one, "why")


@pytest.mark.parametrize(("text", "said"), [("the cat", "只认识 64 个词"), ("猫" * 41, "最多 40 个词")])
def test_words_that_are_not_known_are_refused_in_the_language_of_the_page(server, window, text, said):
    one = visit(window, server.address.url, server.address.token)
    one.open("why", "zh")
    one.settled("why")
    one.page.get_by_test_id("text").fill(text)
    one.page.get_by_test_id("text").blur()
    alert = one.page.get_by_role("alert")
    expect(alert).to_contain_text(said)
    assert not re.search("[a-z]{4}", alert.inner_text())
    assert one.page.get_by_test_id("recalled-0-0").count() == 1  # the last picture stays
    one.page.context.close()


def test_applications_and_the_bridge_lead_into_the_course(open_page):
    one = open_page("why")
    links = one.page.locator("[data-testid=applications] a, [data-testid=bridge] a")
    places = [link.get_attribute("href").removeprefix("#/") for link in links.all()]
    names = [place for place in places if not place.startswith("glossary/")]
    assert names[-1] == "cues" and set(names) == {
        "translation", "bottleneck", "heads", "masks", "relevance", "regression", "cues",
    }  # fmt: skip
    assert set(names) <= set(PAGES)
    links.last.click()
    one.settled("cues")


@pytest.mark.parametrize("size", [(1440, 900), (1920, 1080)])
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_longest_sentence_and_its_controls_are_in_sight_together(open_page, size, language):
    one = open_page("why?n=40", language, size)
    for testid in ("play", "n", "place", "recalled-0", "recalled-1", "path-0", "path-1", "candidate-1-2"):
        box = one.page.get_by_test_id(testid).bounding_box()
        assert box and box["y"] >= 0 and box["y"] + box["height"] <= size[1], testid


def test_the_length_stays_in_sight_on_a_narrow_page(open_page):
    one = open_page("why?n=40", size=NARROW)
    one.page.get_by_test_id("candidate-1-0").scroll_into_view_if_needed()
    box = one.page.get_by_test_id("n").bounding_box()
    assert box and 0 <= box["y"] < 100


# Learning may be over before Playwright looks again.
NOTE_LIVE = """() => new MutationObserver((_, watching) => {
    if (document.querySelector('[data-testid=live]')) { watching.disconnect(); window.live = true; }
}).observe(document.body, { childList: true, subtree: true })"""


def test_learning_moves_the_slider_to_the_learned_width(open_page):
    one = open_page("regression?mode=learned", reduced_motion="reduce")  # all steps at once
    one.page.get_by_test_id("learn").click()
    expect(one.page).to_have_url(re.compile("learned="))
    one.settled("regression")
    learned = shown("regression", mode="learned")
    assert one.value("losses") == 100
    assert one.value("w-value") == pytest.approx(learned["w"], rel=1e-6) and one.value("live") == one.value("w-value")
    assert one.value("number-entropy") == pytest.approx(learned["numbers"]["entropy"], rel=1e-3)
    assert one.value("number-entropy") < shown("regression")["numbers"]["entropy"]


def test_learning_is_watched_step_by_step(open_page):
    one = open_page("regression?mode=learned&steps=7")
    expected = shown("regression", mode="learned", steps=7)["losses"]
    for count in (1, 2, 3):
        one.page.get_by_test_id("forward").click()
        expect(one.page.get_by_test_id("losses")).to_have_attribute("data-value", str(count))
    one.page.get_by_test_id("back").click()
    expect(one.page.get_by_test_id("losses")).to_have_attribute("data-value", "2")
    one.settled("regression")
    two = shown("regression", mode="learned", steps=2)
    assert two["losses"] == expected[:2]
    reads_as(one, "regression", mode="learned", steps=2, learned=two["w"])


def test_learning_is_played_and_paused_and_a_slider_moved_by_hand_ends_it(open_page):
    one = open_page("regression?mode=learned&steps=200&rate=0.001")
    one.page.get_by_test_id("speed-5").check(force=True)
    one.page.get_by_test_id("learn").click()
    one.page.get_by_test_id("stop").click()
    expect(one.page.get_by_test_id("stop")).to_have_count(0)
    assert 1 <= one.value("losses") < 200
    one.page.get_by_test_id("w").focus()
    one.page.keyboard.press("ArrowRight")
    expect(one.page.get_by_test_id("mode")).to_have_attribute("data-value", "fixed")


def test_dimensions_grow_by_a_play_button(open_page):
    one = open_page("saturation", reduced_motion="reduce")
    one.page.get_by_test_id("play").click()
    one.page.wait_for_function("() => location.hash.includes('d_k=1024')")
    one.settled("saturation")
    reads_as(one, "saturation", d_k=1024)


def test_the_middle_of_the_light_moves_to_what_is_wanted(open_page):
    one = open_page("cues")
    weights = shown("cues")["weights"]
    middle = sum(weight * (i + 0.5) for i, weight in enumerate(weights)) / len(weights)
    assert one.value("middle") == pytest.approx(100 * middle)
    link = one.page.get_by_test_id("to-translation")
    assert link.get_attribute("href").endswith("#/translation")


def test_a_number_out_of_range_is_told_the_range(open_page):
    one = open_page("by_hand", "zh")
    field = one.page.get_by_test_id("tokens-0-0").locator("input")
    field.fill("1000")
    expect(one.page.get_by_test_id("tokens-range")).to_have_text("请输入 −100 到 100 之间的数。")
    field.blur()
    expect(one.page.get_by_test_id("tokens-range")).to_have_text("")


@pytest.mark.parametrize(
    ("name", "testid"), [("by_hand", "weights-2-3"), ("masks", "weights-5-3"), ("heatmaps", "head-1-map")]
)
def test_a_tap_shows_the_nearest_cell_enlarged(open_page, name, testid):
    one = open_page(name, size=NARROW, has_touch=True)
    target = one.page.get_by_test_id(testid)
    target.scroll_into_view_if_needed()
    target.tap()
    expect(one.page.get_by_test_id("loupe")).to_be_visible()
    if place := re.fullmatch(r"weights-(\d)-(\d)", testid):
        weight = shown(name)["weights"][int(place[1])][int(place[2])]
        expect(one.page.get_by_test_id("loupe")).to_contain_text(f"{weight:.4f}")
    one.page.locator("h1").tap()
    expect(one.page.get_by_test_id("loupe")).to_have_count(0)


def test_every_head_has_the_colours_of_its_scale(open_page):
    one = open_page("heatmaps")
    assert one.page.get_by_test_id("scale").count() == 1
    one.page.get_by_test_id("shared").uncheck(force=True)
    one.settled("heatmaps")
    expect(one.page.get_by_test_id("scale")).to_have_count(4)
    reads_as(one, "heatmaps", shared=False)


def test_a_point_can_be_dragged(open_page):
    one = open_page("regression")
    before = one.value("number-training")
    box = one.page.get_by_test_id("fit-dot-3").bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    one.page.mouse.move(x, y)
    one.page.mouse.down()
    one.page.mouse.move(x, y + 150, steps=6)
    one.page.mouse.up()
    below = one.page.get_by_test_id("fit-dot-3").get_attribute("data-y")
    one.page.wait_for_function("y => location.hash.includes(`,${y}]`)", arg=below)  # the address follows when it rests
    one.settled("regression")
    points = json.loads(one.page.evaluate("new URLSearchParams(location.hash.split('?')[1]).get('points')"))
    assert not math.isclose(one.value("number-training"), before)
    reads_as(one, "regression", points=points)


def test_the_fifth_tokens_tie_is_marked(open_page):
    one = open_page("by_hand")
    for key, tied in enumerate([True, False, True, False, True]):
        cell = one.page.get_by_test_id(f"weights-4-{key}")
        assert ("marked" in (cell.get_attribute("class") or "")) == tied
    assert one.page.get_by_test_id("weights-0-0").inner_text().strip() == "0.2976"


def test_hostile_text_is_text(open_page):
    one = open_page("relevance")
    text = "His father is tall <img src=x onerror=alert(1)> | He loves apples </script><b>bold</b>"
    one.page.get_by_test_id("passage").fill(text)
    one.page.get_by_test_id("passage").blur()
    expect(one.page.get_by_test_id("links")).to_contain_text("<img src=x onerror=alert(1)>")
    assert one.page.locator("article img, article b:has-text('bold')").count() == 0


def test_a_head_is_chosen_at_once_and_stays_in_the_address(open_page):
    one = open_page("heads")
    expect(one.page.get_by_test_id("told")).to_contain_text("“it” looks at “animal”")
    one.page.get_by_test_id("head-8").check(force=True)
    found = shown("heads")["heads"][8]
    assert one.value("number-previous") == pytest.approx(found["previous"], rel=1e-6)
    one.page.wait_for_function("() => location.hash.includes('head=8')")
    other = open_page(one.page.url.split("#/")[1], "zh")
    expect(other.page.get_by_test_id("lesson-heads")).to_contain_text("第 3 层，头 8")


def test_a_text_of_the_page_changes_with_its_language(open_page):
    one = open_page("relevance")
    expect(one.page.get_by_test_id("links-right-0")).to_have_text(shown("relevance")["segments"][0])
    one.page.get_by_text("中文", exact=True).first.click()
    expect(one.page.get_by_test_id("links-right-0")).to_have_text(shown("relevance", language="zh")["segments"][0])
    expect(one.page.get_by_test_id("reset")).to_be_disabled()  # nothing was changed by hand


def test_arcs_join_the_segments_and_a_segment_shows_its_own(open_page):
    one = open_page("relevance")
    among = shown("relevance")["among"]
    for i, j in [(1, 0), (2, 1), (4, 3)]:
        assert one.value(f"links-arc-{i}-{j}") == pytest.approx((among[i][j] + among[j][i]) / 2, abs=1e-6)
    one.page.get_by_test_id("links-right-2").click()
    one.page.mouse.move(0, 0)
    expect(one.page.get_by_test_id("links").locator(".arcs path:not(.dim)")).to_have_count(4)
    expect(one.page.get_by_test_id("links-right-1").locator("xpath=..")).to_contain_text(f"{among[2][1]:.3f}")


def test_words_that_the_encoder_does_not_know_stand_apart_from_the_answers(open_page):
    one = open_page("relevance", "zh")
    one.page.get_by_test_id("passage").fill("他爱吃苹果 | 他的数学成绩 qqzx 不好")
    one.page.get_by_test_id("passage").blur()
    expect(one.page.get_by_test_id("unknown")).to_contain_text("qqzx")
    assert one.page.get_by_test_id("picture").get_by_text("qqzx").count() == 1  # in the segment alone
    assert one.page.get_by_role("alert").count() == 0
    assert not re.search("mean|words|averaged", one.page.get_by_test_id("encoder").inner_text())


def test_a_draw_learns_step_by_step(open_page):
    one = open_page("normalisers?view=gradient&step=2", reduced_motion="reduce")
    learning = shown("normalisers", view="gradient")["learning"]

    def shows(step: int) -> None:
        expect(one.page.get_by_test_id("step-value")).to_have_attribute("data-value", str(step))
        assert [one.value(f"learned-{key}") for key in range(5)] == pytest.approx(learning["probabilities"][step])
        expect(one.page.get_by_test_id("told")).to_contain_text(f"Draw {step}: key {learning['drawn'][step - 1] + 1}")

    shows(2)
    one.page.get_by_test_id("forward").click()
    shows(3)
    one.page.get_by_test_id("step").focus()
    one.page.keyboard.press("End")
    shows(60)
    one.page.get_by_test_id("play").click()  # from the start
    expect(one.page.get_by_test_id("step-value")).to_have_attribute("data-value", "1")


def test_a_refusal_is_shown_and_the_last_picture_stays(server, window):
    one = visit(window, server.address.url, server.address.token)
    one.open("relevance")
    one.settled("relevance")
    one.page.get_by_test_id("passage").fill("ჩემი სახელია გიორგი | მე მიყვარს ვაშლი")
    one.page.get_by_test_id("passage").blur()
    expect(one.page.get_by_role("alert")).to_be_visible()
    assert one.page.get_by_test_id("links-0-0").count() == 1
    one.page.context.close()


@pytest.mark.parametrize(
    ("place", "english", "chinese"),
    [
        ("regression?w=99", "w must be from 0.05 to 50, 99 came", "w 应当是 0.05 到 50 之间的数"),
        ("cues?query=[1,2,3]", "query must be a list of 4, a list of 3 came", "query 应当是有 4 项的列表"),
        ("heads?layer=9", "layer must be from 0 to 5, 9 came", "layer 应当是 0 到 5 之间的数"),
        ("view/nothing", "there is no such recording", "没有这份录制"),
    ],
)
def test_a_refusal_says_what_would_be_right_in_both_languages(server, window, place, english, chinese):
    one = visit(window, server.address.url, server.address.token)
    for language, said in (("en", english), ("zh", chinese)):
        one.open(place, language)
        expect(one.page.get_by_role("alert")).to_contain_text(said)
    assert " came" not in one.page.get_by_role("alert").inner_text()
    one.page.context.close()


def test_a_text_that_no_model_can_record_is_refused_in_the_language_of_the_page(server, window, monkeypatch):
    def unknown(*_):
        yield {"stage": "loading", "progress": 0.0}
        raise UnknownTextError("minilm does not know this text")

    monkeypatch.setattr(recorder, "events", unknown)  # this process is the server
    one = visit(window, server.address.url, server.address.token)
    for language, said in (("en", "does not know this text"), ("zh", "MiniLM 不认识")):
        one.open("view", language)
        one.page.get_by_test_id("record-text").fill("他爱吃苹果")
        one.page.get_by_test_id("record-go").click()
        expect(one.page.get_by_role("alert")).to_contain_text(said)
    one.page.context.close()


def test_the_shapes_of_many_heads_are_the_librarys(open_page):
    one = open_page("heads")
    query, key = torch.randn(2, 8, 10, 64), torch.randn(2, 8, 12, 64)
    output, weights = attend(query, key, key)
    joined = output.transpose(1, 2).flatten(2)
    tensors = {"query": query, "key": key, "value": key, "weights": weights, "output": output, "joined": joined}
    found = {name: one.page.get_by_test_id(f"shape-{name}").inner_text() for name in tensors}
    assert found == {name: str(tuple(tensor.shape)) for name, tensor in tensors.items()}


def test_the_demo_of_the_wrong_recipe_has_more_keys_than_queries(open_page):
    one = open_page("masks")
    one.page.get_by_test_id("demo-sizes").click()
    one.page.wait_for_function("() => location.hash.includes('m=12')")
    one.settled("masks")
    reads_as(one, "masks", n=10, m=12, align="bottom-right")


# Translation


LONG = "six hundred eighty three billion forty two million two hundred thirty one thousand eighty eight"


def test_the_decoder_is_stepped_and_played_and_dragged(open_page):
    one = open_page("translation?direction=numbers&step=0", reduced_motion="reduce")
    one.page.get_by_test_id("forward").click()
    reads_as(one, "translation", direction="numbers", step=1)
    one.page.get_by_test_id("back").click()
    expect(one.page.get_by_test_id("back")).to_be_disabled()
    one.page.get_by_test_id("step").focus()
    one.page.keyboard.press("End")
    last = len(shown("translation", direction="numbers")["target"]) - 1
    reads_as(one, "translation", direction="numbers", step=last)
    one.page.get_by_test_id("play").click()  # from the start
    expect(one.page.get_by_test_id("step-value")).to_have_attribute("data-value", "2")
    one.page.get_by_test_id("play").click()
    expect(one.page.get_by_test_id("play")).to_have_attribute("data-playing", "false")
    one.page.wait_for_function("() => location.hash.includes('step=2')")


def test_a_sentence_is_picked_and_typed(open_page):
    one = open_page("translation")
    one.page.get_by_test_id("direction-numbers").check(force=True)
    one.settled("translation")
    one.page.get_by_test_id("example").select_option(LONG)
    one.page.wait_for_function("() => location.hash.includes('eighty')")
    one.settled("translation")
    reads_as(one, "translation", direction="numbers", text=LONG, step=0)
    one.page.get_by_test_id("text").fill("three hundred cats")
    one.page.get_by_test_id("text").blur()
    expect(one.page.get_by_test_id("unknown")).to_contain_text("cats")
    reads_as(one, "translation", direction="numbers", text="three hundred cats", step=0)
    one.page.get_by_test_id("text").fill("")
    expect(one.page.get_by_test_id("text-blank")).to_contain_text("Nothing to translate")


def test_a_pinned_word_stays_while_the_walk_goes_on(open_page):
    one = open_page("translation?direction=numbers")
    one.page.get_by_test_id("links-left-2").click()
    one.page.get_by_test_id("links-right-0").click()
    one.page.get_by_test_id("forward").click()
    expect(one.page.get_by_test_id("links-left-2")).to_have_attribute("aria-pressed", "true")
    expect(one.page.get_by_test_id("links-right-0")).to_have_attribute("aria-pressed", "true")
    expect(one.page.get_by_test_id("told").locator("p")).to_have_count(3)
    one.page.wait_for_function("() => ['row=2', 'column=0', 'step=2'].every(part => location.hash.includes(part))")
    one.page.get_by_test_id("view-map").check(force=True)
    expect(one.page.locator("[data-testid=map] .band")).to_have_count(3)
    one.page.get_by_test_id("map-map").focus()
    for key in ("ArrowDown", "Enter"):
        one.page.keyboard.press(key)
    one.page.wait_for_function("() => location.hash.includes('row=1')")


def test_decoders_are_swapped_and_what_is_lost_is_shown(open_page):
    one = open_page(f"translation?direction=numbers&text=%22{LONG.replace(' ', '+')}%22&step=4")
    one.page.get_by_test_id("model-none").check(force=True)
    one.settled("translation")
    expect(one.page.get_by_test_id("links")).to_have_count(0)
    found = shown("translation", direction="numbers", model="none", text=LONG, step=4)
    assert one.value("candidate-0") == pytest.approx(found["candidates"][4][0]["probability"], rel=1e-6)
    for model, verdict in {"bahdanau": "right", "transformer": "right", "none": "wrong"}.items():
        expect(one.page.get_by_test_id(f"other-{model}")).to_contain_text(verdict)
    expect(one.page.get_by_test_id("other-none")).to_contain_text(found["text"])
    one.page.get_by_test_id("model-transformer").check(force=True)
    one.settled("translation")
    weights = shown("translation", direction="numbers", model="transformer", text=LONG)["weights"]
    mean = [[sum(cell) / len(weights) for cell in zip(*rows, strict=True)] for rows in zip(*weights, strict=True)]
    assert one.value("links-3-2") == pytest.approx(mean[3][2], abs=1e-9)
    one.page.get_by_test_id("head-2").check(force=True)
    expect(one.page.get_by_test_id("links-3-2")).to_have_attribute("data-value", str(weights[2][3][2]))


@pytest.mark.parametrize(
    ("text", "said"), [("我们走吧", "没有一个词是模型认识的"), ("seven " * 1000, "最多容得下 60 个词元")]
)
def test_a_refused_text_is_refused_in_the_language_of_the_page(server, window, text, said):
    one = visit(window, server.address.url, server.address.token)
    one.open("translation", "zh")
    one.settled("translation")
    one.page.get_by_test_id("text").fill(text)
    one.page.get_by_test_id("text").blur()
    alert = one.page.get_by_role("alert")
    expect(alert).to_contain_text(said)
    assert not re.search("[a-z]{4}", alert.inner_text())
    assert one.page.get_by_test_id("links-0-0").count() == 1  # the last picture stays
    one.page.context.close()


def test_a_decoder_that_is_not_trained_is_named(open_page, monkeypatch):
    monkeypatch.setattr(pretrained, "names", lambda: ("en-fr", "numbers", "numbers/none"))
    one = open_page("translation?direction=numbers", "zh")
    expect(one.page.get_by_test_id("missing")).to_contain_text("尚未训练：Transformer。")
    assert one.page.get_by_test_id("model").locator("input").count() == 2


def test_an_address_that_asks_for_a_decoder_that_there_is_not_leads_back(server, window):
    one = visit(window, server.address.url, server.address.token)
    one.open("translation?direction=numbers&model=oracle", "zh")
    alert = one.page.get_by_role("alert")
    expect(alert).to_contain_text("并不存在")
    assert not re.search("[a-z]{4}", alert.inner_text())
    one.page.get_by_test_id("model-bahdanau").check(force=True)
    one.settled("translation")
    expect(alert).to_have_count(0)
    one.page.context.close()


# The bottleneck

SMALL = "pairs=500&longest=6&hidden=16"
LONG_TRAINING = f"bottleneck?{SMALL}&steps=2000"


def learns(one) -> None:
    """Press the button, and wait for the first steps."""
    one.page.get_by_test_id("train").click()
    one.page.wait_for_function("() => Number(document.querySelector('[data-testid=losses]').dataset.value) > 1")


def is_idle(server) -> bool:
    """Whether all work of the server ends within seconds."""
    return server.workers.wait_until_idle(20)


def test_two_models_learn_while_one_looks(open_page):
    one = open_page(f"bottleneck?{SMALL}&steps=12")
    assert one.value("tested") == 0 and one.page.get_by_test_id("curve-bahdanau").get_attribute("d") == ""
    one.page.evaluate(NOTE_LIVE)
    one.page.get_by_test_id("train").click()
    expect(one.page.get_by_test_id("told")).to_contain_text("Trained: 12 steps")
    one.settled("bottleneck")
    assert one.page.evaluate("window.live") and one.value("losses") == 12 and one.value("tested") == 7
    found = shown("bottleneck", pairs=500, longest=6, hidden=16, steps=12)  # this process is the server
    for k, shares in enumerate(found["exact_match"]):
        assert [one.value(f"exact-{k}-{length}") for length in found["lengths"]] == shares
    for name in ("none", "bahdanau"):
        assert one.page.get_by_test_id(f"curve-{name}").get_attribute("d").count("L") == 6
    assert one.page.get_by_test_id("sample-source").inner_text() == " ".join(found["samples"][found["at"]]["source"])

    other = open_page(one.page.url.split("#/")[1], "zh")  # the server remembers what was learned
    assert other.value("losses") == 12
    assert other.page.get_by_test_id("sample-target").inner_text() == found["samples"][found["at"]]["target"]
    assert other.serious() == [] and other.overflow() <= 0


def test_a_training_is_stopped_and_one_runs_at_a_time(open_page, server):
    first, second = open_page(LONG_TRAINING), open_page(LONG_TRAINING, "zh")
    learns(first)
    second.page.get_by_test_id("train").click()
    expect(second.page.get_by_test_id("told")).to_contain_text("同一时间只能有一个训练")
    first.page.get_by_test_id("stop").click()
    expect(first.page.get_by_test_id("told")).to_contain_text("Stopped after step")
    assert is_idle(server)
    learns(second)
    second.page.get_by_test_id("stop").click()


def test_leaving_the_page_ends_the_training(open_page, server):
    one = open_page(LONG_TRAINING)
    learns(one)
    one.page.get_by_test_id("step-prev").click()
    one.page.get_by_test_id("lesson-bottleneck").wait_for(state="detached")
    assert is_idle(server)


def test_settings_that_no_training_has_are_refused(server, window):
    one = visit(window, server.address.url, server.address.token)
    one.open("bottleneck?hidden=17")
    expect(one.page.get_by_role("alert")).to_contain_text("hidden must be a multiple of 16, 17 came")
    one.page.get_by_test_id("hidden").focus()
    one.page.keyboard.press("ArrowRight")
    one.settled("bottleneck")
    assert one.page.get_by_role("alert").count() == 0
    one.page.context.close()


@pytest.mark.parametrize(("count", "absent"), [(0, 6), (13, 5), (18, 0)])
def test_stored_table_shows_each_cell_or_that_it_is_missing(open_page, monkeypatch, count, absent):
    cell = length_table.read()[0]
    cells = tuple(cell._replace(**place._asdict()) for place in length_table.PLACES[:count])
    monkeypatch.setattr(length_table, "read", lambda: cells)
    one = open_page("bottleneck?data=en-fr")
    expect(one.page.get_by_test_id("stored").locator("small", has_text="not trained yet")).to_have_count(absent)
    expect(one.page.get_by_test_id("stored").locator("td[data-value='']")).to_have_count(6 * absent)
    expect(one.page.get_by_test_id("stored-curves").locator("path.line")).to_have_count(6 - absent)


def test_the_stored_table_offers_what_it_has(open_page):
    one = open_page("bottleneck?trained_words=30")
    assert one.page.get_by_test_id("trained").locator("input").count() == 2
    one.page.get_by_test_id("data-en-fr").check(force=True)  # only trained on texts up to 60 words
    expect(one.page.get_by_test_id("trained")).to_have_attribute("data-value", "60")
    expect(one.page.get_by_test_id("measure")).to_have_attribute("data-value", "bleu")
    assert one.page.get_by_test_id("trained").locator("input").count() == 1


def test_stored_table_says_what_was_not_trained(open_page):
    one = open_page("bottleneck?data=en-fr&trained_words=30")
    assert one.page.get_by_test_id("no-cells").count() == 1
    assert one.value("printed-RNNsearch-50") == 26.75 and one.value("printed-RNNencdec-50") == 17.82


# A Transformer block

STAGES = (
    ("query", "key", "value"), ("scores",), ("weights",), ("pooled",), ("attention",),
    ("sum_1", "norm_1"), ("inner", "feed_forward"), ("sum_2", "output"), ("logits", "probabilities"),
)  # fmt: skip


def of_stage(found: dict, stage: int) -> dict[str, float]:
    """The cells of the matrices that a stage makes; those of heads have the head in their name."""
    cells_of: dict[str, float] = {}
    for name in STAGES[stage]:
        each = (
            {f"{name}-{h}": rows for h, rows in enumerate(found[name])} if stage in (1, 2, 3) else {name: found[name]}
        )
        for prefix, rows in each.items():
            cells_of |= {testid: value for testid, value in cells(prefix, rows).items() if value is not None}
    return cells_of


def matrices_are(one, stage: int, **state) -> None:
    expected = of_stage(shown("block", **state), stage)
    found = {testid: one.value(testid) for testid in expected}
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_every_stage_of_the_block_shows_its_matrices(open_page):
    one = open_page("block?causal=false")
    for stage in range(len(STAGES)):
        one.page.get_by_test_id(f"stage-{stage}").check(force=True)
        one.settled("block")
        matrices_are(one, stage, causal=False)
        assert one.page.get_by_test_id("made").locator(".katex").count() == 1
        assert one.page.locator(".katex-error").count() == 0
    assert one.value("next-0") == pytest.approx(shown("block", causal=False)["probabilities"][4][0])


def test_the_block_is_stepped_and_dragged_and_played(open_page):
    one = open_page("block", reduced_motion="reduce")
    expect(one.page.get_by_test_id("back")).to_be_disabled()
    one.page.get_by_test_id("forward").click()
    expect(one.page.get_by_test_id("stage")).to_have_attribute("data-value", "1")
    start, end = (one.page.locator(f"[data-stage='{i}']").bounding_box() for i in (1, 6))
    one.page.mouse.move(start["x"] + 10, start["y"] + 20)
    one.page.mouse.down()
    one.page.mouse.move(end["x"] + 10, end["y"] + 20, steps=8)
    one.page.mouse.up()
    expect(one.page.get_by_test_id("stage")).to_have_attribute("data-value", "6")
    one.page.get_by_test_id("play").click()
    expect(one.page.get_by_test_id("stage")).to_have_attribute("data-value", "8")
    expect(one.page.get_by_test_id("play")).to_have_attribute("data-playing", "false")
    one.page.wait_for_function("() => location.hash.includes('stage=8')")


def test_a_cell_lights_the_row_and_the_column_that_make_it(open_page):
    one = open_page("block")
    one.page.get_by_test_id("key-1-2").click()
    lit = one.page.eval_on_selector_all("td.lit", "cells => cells.map(cell => cell.dataset.testid)")
    assert sorted(lit) == sorted([f"tokens-1-{k}" for k in range(4)] + [f"w_k-{k}-2" for k in range(4)])
    expect(one.page.get_by_test_id("token-1")).to_be_checked()  # the row of the cell is followed
    one.page.keyboard.press("ArrowDown")
    expect(one.page.get_by_test_id("made")).to_have_attribute("data-cell", "key-2-2")
    one.page.get_by_test_id("value-4-3").hover()
    expect(one.page.get_by_test_id("made")).to_have_attribute("data-cell", "value-4-3")


def test_a_matrix_is_edited_by_keys_and_by_hand_within_its_range(open_page):
    one = open_page("block")
    field = one.page.get_by_test_id("w_q-0-0").locator("input")
    field.focus()
    one.page.keyboard.press("ArrowUp")
    one.page.keyboard.press("ArrowRight")
    one.page.keyboard.type("-3")
    one.page.wait_for_function("() => location.hash.includes('w_q=2.5,-3')")
    one.settled("block")
    w_q = PAGES["block"].default["w_q"]
    w_q[0][:2] = [2.5, -3]
    matrices_are(one, 0, w_q=w_q)
    field.fill("11")
    expect(one.page.get_by_role("alert")).to_contain_text("from −10 to 10")
    assert one.page.get_by_test_id("reset").is_enabled()
    field.blur()
    expect(one.page.get_by_role("alert")).to_have_count(0)
    one.page.get_by_test_id("preset-silent").click()
    one.page.get_by_test_id("stage-4").check(force=True)
    one.settled("block")
    assert one.value("attention-4-0") == 0
    one.page.get_by_test_id("reset").click()
    one.settled("block")
    reads_as(one, "block")


MODEL = "block?part=model&text=The+opposite+of+hot+is&layer=29"


def model_is_shown(one, **state) -> None:
    one.page.get_by_test_id("lens").wait_for()
    one.settled("block")
    found = shown("block", part="model", **state)
    expected = bars("candidate", found["candidates"]["probabilities"]) | cells(
        "heads", [row[: found["at"] + 1] for row in found["weights"]]
    )
    expected |= {f"length-{name}": lengths[found["layer"]] for name, lengths in found["lengths"].items()}
    expected |= {f"lens-{block}": row["last"] for block, row in enumerate(found["lens"][1:])}
    assert {testid: one.value(testid) for testid in expected} == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("language", "size", "theme"), [("en", WIDE, "dark"), ("zh", NARROW, "light")])
def test_a_real_model_is_followed_to_its_next_token(open_page, language, size, theme):
    assert block.SMOLLM2.get()  # this process is the server
    state = {"text": "The opposite of hot is"}
    one = open_page(MODEL, language, size, theme)
    model_is_shown(one, layer=29, **state)
    expect(one.page.get_by_test_id("told")).to_contain_text("cold")
    assert one.serious() == [] and one.overflow() <= 0
    one.page.get_by_test_id("piece-1").check(force=True)
    one.page.wait_for_function("() => location.hash.includes('position=1')")
    model_is_shown(one, layer=29, position=1, **state)
    one.page.get_by_test_id("lens-29").focus()
    one.page.keyboard.press("ArrowLeft")
    one.page.wait_for_function("() => location.hash.includes('layer=28')")
    model_is_shown(one, layer=28, position=1, **state)
    one.page.get_by_test_id("text").fill("Two plus")
    one.page.get_by_test_id("text").blur()
    one.page.wait_for_function("() => location.hash.includes('plus') && !location.hash.includes('position')")
    model_is_shown(one, layer=28, text="Two plus")


def test_the_page_says_that_the_model_is_loaded_and_goes_on_by_itself(open_page, monkeypatch):
    model, ready = block.SMOLLM2.get(), threading.Event()
    monkeypatch.setattr(block, "SMOLLM2", BackgroundLoad(lambda: ready.wait() and model, "test"))
    monkeypatch.setattr(block, "PATIENCE", 0.05)
    one = open_page("block", "zh")
    one.page.get_by_test_id("part-model").check(force=True)
    expect(one.page.get_by_test_id("loading")).to_contain_text("正在载入 SmolLM2")
    ready.set()
    one.page.get_by_test_id("lens").wait_for()


@pytest.mark.parametrize(
    ("error", "said"), [(MissingExtraError("no package"), "还没有安装 SmolLM2"), (ShapeError("too long"), "64 个词元")]
)
def test_a_model_that_cannot_answer_says_why_in_the_language_of_the_page(server, window, monkeypatch, error, said):
    def load():
        raise error

    monkeypatch.setattr(block, "SMOLLM2", BackgroundLoad(load, "test"))
    one = visit(window, server.address.url, server.address.token)
    one.open("block?part=model", "zh")
    alert = one.page.get_by_role("alert")
    expect(alert).to_contain_text(said)
    assert "no package" not in alert.inner_text()
    one.page.get_by_test_id("reset").click()  # back to the five tokens
    one.settled("block")
    reads_as(one, "block")
    one.page.context.close()


@pytest.mark.parametrize("size", [(1440, 900), (1920, 1080)])
@pytest.mark.parametrize(
    ("place", "testids"),
    [
        *((f"block?stage={stage}", ("part", "token", "next", "play", "stage", "scene", "made")) for stage in range(9)),
        (MODEL, ("part", "text", "pieces", "play", "lens", "told", "head-map", "length-after", "candidate-7")),
    ],
)
def test_the_stages_and_their_picture_are_in_sight_together(open_page, size, place, testids):
    one = open_page(place, size=size)
    for testid in testids:
        one.page.get_by_test_id(testid).wait_for()
        box = one.page.get_by_test_id(testid).bounding_box()
        assert box and box["y"] >= 0 and box["y"] + box["height"] <= size[1], testid
    assert one.page.locator("[data-testid^=group-][data-more], .scroll[data-more]").count() == 0  # nothing is cut


def test_every_guided_step_of_the_block_is_true(open_page):
    """What the captions say of the numbers."""
    first = shown("block")
    token_5 = [head[4] for head in first["weights"]]
    assert token_5[0].index(max(token_5[0])) == 2
    assert token_5[1][0] == pytest.approx(token_5[1][2]) == pytest.approx(token_5[1][4]) == max(token_5[1])
    assert first["probabilities"][4].index(max(first["probabilities"][4])) == 0
    ranks = [row["rank"] for row in shown("block", part="model")["lens"]]
    assert ranks[11] > 1000 and min(ranks[:-2]) > 1 and ranks[-2:] == [1, 1]
    assert shown("block", part="model")["candidates"]["tokens"][0] == " window"
