"""The layout of the lessons: what a control changes is in sight with it, and nothing moves while a page is loading."""

import pytest
from web_browser import visit

from regard.lab.pages import PAGES

# For each lesson, in a state, its main controls and what they change.
IN_SIGHT = {
    "cues": ("query-2", "pooling", "scene", "weights", "seen"),
    "regression": ("w", "query", "kernel", "fit", "map", "number-roughness"),
    "regression?mode=learned": ("learn", "w", "loss", "fit", "map", "number-roughness"),
    "heatmaps": ("kind", "shared", "head-0", "head-3", "told"),
    "heatmaps?heads=8": ("heads", "head-0", "head-7"),
    "scores": ("chosen", "plane", "weights"),
    "saturation": ("d_k", "play", "scaled", "histogram", "weights", "entropy-curves", "jacobian-curves"),
    "by_hand": ("row", "scaled", "tokens", "scores", "weights", "output"),
    "masks?n=16&m=16": ("preset-causal", "kind-0", "m", "weights"),
    "heads": ("wall", "layer", "sentence", "told", "map-map"),
    "relevance": ("preset", "temperature", "questions", "links", "verdict-1"),
    "normalisers": ("temperature", "chosen", "scores", "weights"),
    "normalisers?view=gradient&step=9": ("rate", "rewards", "play", "scores", "learned", "reward"),
    "block": ("part", "token", "causal", "stage", "scene", "made", "next"),
    "translation": ("play", "step", "query", "context", "candidate-0", "links", "model"),
    "translation?view=map": ("play", "step", "query", "context", "candidate-0", "map-map", "model"),
    "bottleneck": ("train", "words", "hidden", "lengths", "sample"),
}
SIZES = [(1440, 900), (1920, 1080)]
# Sizes on which a block of code must never become narrower than on the one before.
WIDTHS = (390, 820, 1100, 1280, 1440, 1920)
NOTE_SHIFTS = """
window.shift = 0;
new PerformanceObserver(list => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
}).observe({ type: 'layout-shift', buffered: true });
"""


@pytest.fixture
def open_lesson(server, window):
    visits = []

    def open_one(place: str, language: str, size: tuple[int, int]):
        one = visit(window, server.address.url, server.address.token, size)
        visits.append(one)
        one.page.add_init_script(NOTE_SHIFTS)
        one.open(place, language)
        one.settled(place.split("?", maxsplit=1)[0])
        one.page.evaluate("document.fonts.ready")
        return one

    yield open_one
    for one in visits:
        one.page.context.close()


def out_of_sight(one, testids, size: tuple[int, int]) -> list[str]:
    """Those of the elements that are not wholly inside the window."""
    found = []
    for testid in testids:
        box = one.page.get_by_test_id(testid).first.bounding_box()
        assert box, testid
        if box["y"] < 0 or box["y"] + box["height"] > size[1] or box["x"] + box["width"] > size[0]:
            found.append(f"{testid}: {box}")
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", IN_SIGHT)
def test_a_control_and_its_effect_are_in_sight_together_and_nothing_moves(open_lesson, name, language, size):
    one = open_lesson(name, language, size)
    assert out_of_sight(one, IN_SIGHT[name], size) == []
    assert one.page.evaluate("window.shift") < 0.05


@pytest.mark.parametrize("size", SIZES)
def test_no_column_of_the_weights_by_hand_is_cut(open_lesson, size):
    one = open_lesson("by_hand", "en", size)
    assert one.page.locator("[data-testid=picture] [data-more]").count() == 0


@pytest.mark.parametrize("name", PAGES)
def test_code_is_never_narrower_on_a_wider_page(open_lesson, name):
    one = open_lesson(name, "en", (WIDTHS[0], 900))
    widths = []
    for width in WIDTHS:
        one.page.set_viewport_size({"width": width, "height": 900})
        widths.append(one.page.get_by_test_id("code").bounding_box()["width"])
    assert widths == sorted(widths)


@pytest.mark.parametrize("name", PAGES)
def test_controls_that_are_higher_than_the_window_scroll_beside_the_picture(open_lesson, name):
    one = open_lesson(name, "en", (1440, 500))
    picture = one.page.get_by_test_id("picture").bounding_box()
    one.page.get_by_test_id("reset").scroll_into_view_if_needed()
    one.page.mouse.wheel(0, 0)
    controls = one.page.get_by_test_id("controls").bounding_box()
    assert controls["y"] >= 0 and controls["y"] + controls["height"] <= 500
    assert controls["x"] >= picture["x"] + picture["width"]
