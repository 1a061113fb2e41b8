"""The course around the lessons: start page, progress, glossary, guides and presenter mode, in a real browser."""

import json
import re

import pytest
from playwright.sync_api import expect
from web_browser import NARROW, WIDE, visit

from regard.lab.pages import PAGES

ORDER = (
    "why", "cues", "regression", "heatmaps", "scores", "saturation", "by_hand", "masks", "heads", "relevance",
    "normalisers", "block", "translation", "bottleneck",
)  # fmt: skip
LESSONS = [name for name in ORDER if name in PAGES]
MORE_STEPS = 6  # no guide has more


@pytest.fixture
def open_page(server, window):
    """Opens windows, and after the test looks whether one of them complained or asked a stranger."""
    visits = []

    def open_one(place="", language="en", size=WIDE, theme="light", **more):
        one = visit(window, server.address.url, server.address.token, size, theme, reduced_motion="reduce", **more)
        visits.append(one)
        one.open(place, language)
        return one

    yield open_one
    for one in visits:
        one.page.context.close()
        one.is_clean()


def at_lesson(one, name: str) -> None:
    one.settled(name)
    one.page.get_by_test_id("tools").or_(one.page.get_by_test_id("guide")).first.wait_for()


def asked_states(one) -> dict[str, list[dict]]:
    """The states that the page asked the server for, by lesson."""
    states: dict[str, list[dict]] = {name: [] for name in LESSONS}

    def note(request) -> None:
        found = re.search(r"/api/lessons/(\w+)$", request.url)
        if found and request.method == "POST":
            states[found[1]].append(without_language(request.post_data_json))

    one.page.on("request", note)
    return states


def without_language(state: dict) -> dict:
    """A state without the field that follows the language of the page."""
    return {field: value for field, value in state.items() if field != "language"}


# The start page


def test_the_lab_opens_at_the_start_page_and_its_map_has_every_lesson_in_order(open_page):
    one = open_page()
    links = one.page.locator("[data-testid=map] li a")
    expect(links).to_have_count(len(LESSONS))
    assert [link.get_attribute("href") for link in links.all()] == [f"#/{name}" for name in LESSONS]
    expect(one.page.get_by_test_id("begin")).to_have_attribute("href", f"#/{LESSONS[0]}")
    expect(one.page.get_by_test_id("go-on")).to_have_count(0)
    targets = [link.get_attribute("href") for link in one.page.locator("[data-testid=read-about] a").all()]
    assert set(targets) <= {f"#/{name}" for name in LESSONS}
    assert len(targets) == len(set(targets)) >= 8
    expect(one.page.get_by_test_id("to-viewer")).to_have_attribute("href", "#/view")


def test_the_light_of_the_start_page_is_the_librarys(open_page):
    one = open_page()
    page = PAGES["cues"]
    for look, name in (("learned", "red coffee cup"), ("query", "book")):
        one.page.get_by_test_id(f"look-{look}").check(force=True)
        expect(one.page.get_by_test_id("hero-finding")).to_contain_text(name)
        weights = page.show(page.read({"pooling": look}))["weights"]
        assert [one.value(f"light-{i}") for i in range(5)] == pytest.approx(weights, abs=1e-9)


@pytest.mark.parametrize(("language", "size", "theme"), [("en", WIDE, "dark"), ("zh", NARROW, "light")])
def test_start_page_and_glossary_keep_nobody_out(open_page, language, size, theme):
    one = open_page("", language, size, theme)
    one.page.get_by_test_id("map").wait_for()
    assert one.serious() == [] and one.overflow() <= 0
    text = one.page.locator("main").inner_text()
    assert bool(re.search("[一-鿿]", text)) == (language == "zh")
    one.open("glossary/entropy", language)
    expect(one.page.get_by_test_id("term-entropy")).to_be_focused()
    assert one.serious() == [] and one.overflow() <= 0


def test_progress_is_kept_in_the_browser_and_can_be_forgotten(open_page):
    one = open_page("masks")
    at_lesson(one, "masks")
    one.page.get_by_test_id("step-next").scroll_into_view_if_needed()
    expect(one.page.locator("nav .read")).to_have_count(1)
    one.open("")
    expect(one.page.get_by_test_id("map-masks")).to_have_attribute("data-value", "read")
    expect(one.page.get_by_test_id("map-heads")).to_have_attribute("data-value", "")
    expect(one.page.get_by_test_id("progress")).to_have_attribute("data-value", "1")
    expect(one.page.get_by_test_id("go-on")).to_have_attribute("href", "#/masks")
    one.page.get_by_test_id("forget").click()
    expect(one.page.get_by_test_id("go-on")).to_have_count(0)
    one.page.reload()
    expect(one.page.get_by_test_id("map-masks")).to_have_attribute("data-value", "")


@pytest.mark.parametrize(
    "storage",
    [
        "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('', 'SecurityError') } })",
        "localStorage.setItem('regard-progress', '{broken')",
    ],
)
def test_a_browser_without_storage_shows_the_course_all_the_same(server, window, storage):
    one = visit(window, server.address.url, server.address.token)
    one.page.add_init_script(storage)
    one.open("cues")
    at_lesson(one, "cues")
    one.page.get_by_test_id("nav-start").click()
    expect(one.page.get_by_test_id("map-cues")).to_have_attribute("data-value", re.compile("opened|read"))
    one.page.context.close()
    one.is_clean()


# The glossary


def test_a_term_is_explained_where_it_stands_and_nothing_moves(open_page):
    one = open_page("by_hand")
    at_lesson(one, "by_hand")
    term = one.page.locator("a.term").first
    term.wait_for()
    height = one.page.evaluate("document.documentElement.scrollHeight")
    term.focus()
    tip = one.page.get_by_test_id("tip")
    expect(tip).to_be_visible()
    assert term.get_attribute("aria-describedby") == tip.get_attribute("id")
    assert one.page.evaluate("document.documentElement.scrollHeight") == height
    one.page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    term.hover()
    expect(tip).to_be_visible()
    wanted = term.get_attribute("data-term")
    term.focus()
    one.page.keyboard.press("Enter")
    expect(one.page.get_by_test_id(f"term-{wanted}")).to_be_focused()
    one.page.go_back()
    at_lesson(one, "by_hand")


def test_terms_follow_the_language_and_each_is_linked_once(open_page):
    one = open_page("heads")
    at_lesson(one, "heads")
    ids = "[...document.querySelectorAll('a.term')].map(link => link.dataset.term)"
    one.page.wait_for_function(f"{ids}.length > 0")
    for language, letters in (("zh", True), ("en", False)):
        one.page.get_by_test_id(f"language-{language}").check(force=True)
        one.page.wait_for_function(
            "chinese => { const link = document.querySelector('article .idea a.term');"
            " return link && /[一-鿿]/.test(link.closest('p').textContent) === chinese }",
            arg=letters,
        )
        found = one.page.evaluate(ids)
        assert len(found) == len(set(found)) >= 1
        text = one.page.locator("article .idea").inner_text()
        assert text.count(text[:12]) == 1  # and nothing of the language before is left
    texts = one.page.evaluate("[...document.querySelectorAll('article .idea')].map(p => p.textContent)")
    assert texts[0].startswith("One model looks at one sentence")


# Guides


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_guided_step_of_every_lesson_sets_what_it_says(open_page, server, language):
    with server.client() as client:
        defaults = {entry["name"]: entry["state"] for entry in client.get("/api/lessons").json()}
    one = open_page(LESSONS[0], language)
    asked = asked_states(one)
    for name in LESSONS:
        if name != LESSONS[0]:
            one.page.evaluate("name => location.hash = `#/${name}`", name)
        at_lesson(one, name)
        expected = defaults[name]
        one.page.get_by_test_id("guide-start").click()
        for step in range(MORE_STEPS):
            caption = one.page.get_by_test_id("guide-caption")
            expect(caption).to_have_attribute("data-value", str(step))
            expected = expected | json.loads(caption.get_attribute("data-state") or "")
            one.settled(name)
            assert without_language(expected) in asked[name], (name, step)
            assert one.page.get_by_role("alert").count() == 0, (name, step)
            look = caption.get_attribute("data-look")
            if look:
                framed = "look => !!document.querySelector(`main [data-testid=${look}]`)?.closest('[data-looked]')"
                one.page.wait_for_function(framed, arg=look)
            if (
                one.page.get_by_test_id("guide-next").count() == 0
                or one.page.get_by_test_id("guide-next").is_disabled()
            ):
                break
            one.page.get_by_test_id("guide-next").click()
        assert one.page.get_by_test_id("guide-more").count() == (name != LESSONS[-1])


def test_a_guide_goes_back_to_the_state_of_the_step_before(open_page):
    one = open_page("saturation")
    at_lesson(one, "saturation")
    one.page.get_by_test_id("guide-start").click()
    one.settled("saturation")
    first = one.value("variance")
    expect(one.page.get_by_test_id("guide-back")).to_be_disabled()
    one.page.get_by_test_id("guide-next").click()
    one.settled("saturation")
    assert one.value("variance") > 10 * first
    one.page.get_by_test_id("guide-back").click()
    one.settled("saturation")
    assert one.value("variance") == first
    assert one.serious() == []
    one.page.get_by_test_id("guide-close").click()
    expect(one.page.get_by_test_id("guide")).to_have_count(0)
    assert one.value("variance") == first


# Presenter mode


def test_a_clicker_walks_through_steps_and_lessons_and_escape_leaves(open_page):
    one = open_page("", size=(1920, 1080))
    one.page.get_by_test_id("map").wait_for()
    size = "parseFloat(getComputedStyle(document.documentElement).fontSize)"
    small = one.page.evaluate(size)
    one.page.keyboard.press("p")
    expect(one.page.get_by_test_id("navigation")).to_have_count(0)
    assert one.page.evaluate("document.fullscreenElement === document.documentElement")
    assert one.page.evaluate(size) > small
    first, second = LESSONS[:2]
    one.page.keyboard.press("PageDown")
    one.settled(first)
    caption = one.page.get_by_test_id("guide-caption")
    expect(caption).to_have_attribute("data-value", "0")
    steps = int(one.page.get_by_test_id("guide-at").inner_text().split()[-1])
    for step in range(1, steps):
        one.page.keyboard.press("PageDown")
        expect(caption).to_have_attribute("data-value", str(step))
    one.settled(first)
    assert one.serious() == []
    one.page.keyboard.press("PageDown")
    one.settled(second)
    expect(caption).to_have_attribute("data-value", "0")
    one.page.keyboard.press("PageUp")
    one.settled(first)
    expect(caption).to_have_attribute("data-value", str(steps - 1))
    one.page.evaluate("document.exitFullscreen()")  # as the browser does by itself on Escape
    expect(one.page.get_by_test_id("navigation")).to_be_visible()
    one.page.keyboard.press("PageDown")
    expect(caption).to_have_attribute("data-value", str(steps - 1))


ABOVE_THE_BAR = """() => {
    const boxOf = name => document.querySelector(name)?.getBoundingClientRect();
    const [looked, bar] = ['main [data-looked]', '[data-testid=guide]'].map(boxOf);
    return looked && looked.top >= 0 && looked.bottom <= bar.top;
}"""


def test_a_step_that_makes_the_picture_longer_is_brought_into_sight(open_page):
    one = open_page("translation", "zh", size=(1920, 1080))  # opens with nine rows, and the first step has 22
    at_lesson(one, "translation")
    one.page.get_by_test_id("present").click()
    one.page.keyboard.press("PageDown")
    expect(one.page.get_by_test_id("links-left-21")).to_be_visible()
    one.page.wait_for_function(ABOVE_THE_BAR)


def test_arrows_walk_only_while_no_control_has_the_focus(open_page):
    one = open_page("saturation")
    at_lesson(one, "saturation")
    one.page.get_by_test_id("present").click()
    one.page.keyboard.press("PageDown")
    caption = one.page.get_by_test_id("guide-caption")
    expect(caption).to_have_attribute("data-value", "0")
    one.settled("saturation")
    slider = one.page.get_by_test_id("d_k")
    slider.focus()
    before = slider.input_value()
    one.page.keyboard.press("ArrowRight")
    assert slider.input_value() != before
    expect(caption).to_have_attribute("data-value", "0")
    moved = slider.input_value()
    one.page.keyboard.press("PageDown")  # a clicker works wherever the focus is
    expect(caption).to_have_attribute("data-value", "1")
    assert slider.input_value() != moved
    slider.evaluate("node => node.blur()")
    for key, step in (("ArrowRight", "2"), ("ArrowLeft", "1")):
        one.page.keyboard.press(key)
        expect(caption).to_have_attribute("data-value", step)
    one.page.keyboard.press("Escape")
    expect(one.page.get_by_test_id("navigation")).to_be_visible()


def test_a_browser_that_refuses_full_screen_presents_in_its_window(open_page):
    one = open_page("cues")
    at_lesson(one, "cues")
    one.page.evaluate("() => { Element.prototype.requestFullscreen = () => Promise.reject(new TypeError('refused')) }")
    one.page.get_by_test_id("present").click()
    expect(one.page.get_by_test_id("navigation")).to_have_count(0)
    one.page.keyboard.press("Escape")
    expect(one.page.get_by_test_id("navigation")).to_be_visible()


def test_a_letter_that_is_typed_is_no_command(open_page):
    one = open_page("translation?direction=numbers")
    at_lesson(one, "translation")
    one.page.get_by_test_id("text").fill("")
    one.page.get_by_test_id("text").press_sequentially("p")
    assert one.page.get_by_test_id("text").input_value() == "p"
    expect(one.page.get_by_test_id("navigation")).to_be_visible()


# By keyboard alone, through the whole course


def test_the_whole_course_can_be_walked_by_keyboard_alone(open_page):
    one = open_page()
    one.page.get_by_test_id("begin").focus()
    one.page.keyboard.press("Enter")
    for name, following in zip(LESSONS, [*LESSONS[1:], None], strict=True):
        at_lesson(one, name)
        place = one.page.get_by_test_id("step-next" if following else "step-viewer")
        # On from the last control of the lesson; that every control is reached by tab is another test.
        one.page.locator("summary").last.focus()
        one.page.keyboard.press("Enter")
        for _ in range(12):
            one.page.keyboard.press("Tab")
            if place.evaluate("node => node === document.activeElement"):
                break
        expect(place).to_be_focused()
        leads = following == next(iter(ORDER[ORDER.index(name) + 1 :]), None)
        expect(one.page.get_by_test_id("thread")).to_have_count(int(leads))
        one.page.keyboard.press("Enter")
    expect(one.page).to_have_url(re.compile("#/view"))
