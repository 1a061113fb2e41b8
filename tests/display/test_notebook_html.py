"""Weights and recordings as a notebook shows them: facts, a picture, safe texts, a bounded size."""

import base64
import re
import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest
import torch
from letter_recording import Letters, recorded
from web_viewer import HOSTILE, chromium

import regard as rg
from regard import masks, normalisers
from regard.display.notebook_html import BROKEN, EMPTY, LEVELS
from regard.recording import Recording

MAX_BYTES = 50_000


def pixels(html: str) -> list[np.ndarray]:
    """The palette numbers of every picture in a text of HTML."""
    found = []
    for text in re.findall(r'src="data:image/png;base64,([^"]*)"', html):
        image = base64.b64decode(text)
        width, height = struct.unpack(">II", image[16:24])
        at = image.index(b"IDAT")
        raw = zlib.decompress(image[at + 4 : at + 4 + struct.unpack(">I", image[at - 4 : at])[0]])
        found.append(np.frombuffer(raw, np.uint8).reshape(height, width + 1)[:, 1:])
    return found


def test_the_picture_of_weights_is_their_heatmap():
    weights = rg.Weights(torch.randn(2, 3, 300, 8) * 2, torch.randn(2, 3, 420, 8))
    html = weights._repr_html_()
    for fact in (
        "2 &times; 3 &times; 300 &times; 420",
        "softmax(q·k / √d)",
        "plan: ",
        "weights[0, 0]",
        "torch.float32",
    ):
        assert fact in html
    (shown,) = pixels(html)
    cells = weights.heatmap(64)[0, 0]
    wanted = (cells / cells.max() * (LEVELS - 1)).round().numpy()
    assert np.abs(shown[2::4, 2::4] - wanted).max() <= 1  # 4 pixels a cell; a shade may round the other way
    assert len(html.encode()) < 10_000


def test_empty_rows_are_hatched_and_nan_is_grey():
    query = torch.randn(6, 8)
    query[5] = torch.nan
    visible = torch.ones(6, 20, dtype=torch.bool)
    visible[2] = False
    html = rg.Weights(query, torch.randn(20, 8), mask=masks.allow(visible))._repr_html_()
    (shown,) = pixels(html)
    rows = shown.reshape(6, -1)
    assert (rows[2] == EMPTY).any()
    assert not (rows[[0, 1, 3, 4, 5]] == EMPTY).any()
    assert (rows[5] == BROKEN).all()
    assert "hatched: rows without any weight" in html


@pytest.mark.parametrize(
    ("shape", "shown"),
    [
        ((0, 7), "nothing to draw"),
        ((5, 0), "nothing to draw"),
        ((1, 1), "full colour: 1"),
        ((2, 3, 4, 5, 7), "[0, 0, 0]"),
    ],
)
def test_weights_of_any_shape_are_shown(shape, shown):
    *lead, n, m = shape
    assert shown in rg.Weights(torch.randn(*lead, n, 8), torch.randn(*lead, m, 8))._repr_html_()


def test_rows_that_do_not_sum_to_1_are_said_and_stale_weights_have_no_picture():
    query = torch.randn(5, 8)
    weights = rg.Weights(query, torch.randn(5, 8), normaliser=normalisers.sigmoid())
    assert "rows do not sum to 1" in weights._repr_html_()
    query.zero_()
    assert "no picture: query has been changed in place" in weights._repr_html_()


def test_a_long_matrix_is_shown_from_some_of_its_rows():
    long = torch.randn(70_000, 2)
    weights = rg.Weights(long, long, mask=masks.causal())
    (shown,) = pixels(weights._repr_html_())
    cells = shown[2::4, 2::4]
    rows, columns = np.indices(cells.shape)
    later = columns / cells.shape[1] > (rows + 1) / cells.shape[0]  # keys that come after the queries
    assert cells.shape[0] >= 50
    assert cells[later].max() == 0
    assert (cells[:8, 0] > 0).all()


def test_ipython_asks_for_html_and_for_nothing_else(large):
    """The formatter of a notebook's kernel, which tries a dozen names of methods on whatever a cell ends with."""
    from IPython.core.formatters import DisplayFormatter

    for shown in (rg.Weights(torch.eye(3), torch.eye(3)), large):
        found, _ = DisplayFormatter().format(shown)
        assert set(found) == {"text/plain", "text/html"}
        assert found["text/html"] == shown._repr_html_()
        assert len(found["text/plain"]) < 200


# Recordings


@pytest.fixture(scope="module")
def large() -> Recording:
    model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(64, 32, 8, batch_first=True), 40).eval()
    with torch.no_grad(), rg.record(model) as recording:
        model(torch.randn(2, 40, 64))
    return recording


def test_a_wall_of_many_layers_and_heads_stays_small(large):
    html = large._repr_html_()
    assert len(html.encode()) <= MAX_BYTES
    assert html.count("<tr ") == html.count("<img") == 12
    assert "[0] layers.0.self_attn" in html
    assert "[39] layers.39.self_attn" in html
    assert "12 of 40 layers are drawn" in html


def test_long_names_do_not_make_it_large():
    call = recorded([[1, 2, 3]]).calls[0]
    named = [replace(call, name=f"{number}" + "<&" * 5000, step=0) for number in range(30)]
    assert len(Recording(named)._repr_html_().encode()) <= MAX_BYTES


@pytest.mark.parametrize("steps", [1, 2])
def test_every_layer_has_a_line_and_a_picture_of_its_heads(steps):
    html = recorded([[2, 0, 19]], steps=steps, tokenizer=Letters())._repr_html_()
    assert ("step 0 (2 steps)" in html) == (steps == 2)
    first, second = pixels(html)
    assert (first.shape[1], second.shape[1]) == (3 * 15 + 2, 2 * 15 + 1)  # 3 and 2 heads, 5 pixels a token
    assert "[0] first" in html
    assert "[1] second" in html


def test_an_empty_recording_and_a_damaged_file_are_said(tmp_path):
    assert "no layer was recorded" in Recording()._repr_html_()
    path = tmp_path / "run.regard"
    recorded([[2, 0, 19]]).save(path)
    data = bytearray(path.read_bytes())
    start = rg.open(path).entries[0].group.arrays["query"].at + 64
    data[start : start + 8] = b"\xff" * 8
    path.write_bytes(data)
    html = rg.open(path)._repr_html_()
    assert "is damaged" in html
    assert html.count("<img") == 1


@pytest.fixture(scope="module")
def tab():
    with chromium() as browser:
        yield browser.new_page(viewport={"width": 900, "height": 700})


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_browser_shows_it_and_runs_nothing(tab, theme):
    """The output of a notebook's cell, on white and on black, with names that would do harm."""
    call = recorded([[1, 2, 3]]).calls[0]
    recording = Recording([replace(call, name=name or "-", step=i) for i, name in enumerate(HOSTILE)])
    weights = rg.Weights(torch.randn(9, 4), torch.randn(9, 4), mask=masks.causal())
    colours = {"light": "background:#fff;color:#000", "dark": "background:#111;color:#ddd"}[theme]
    tab.set_content(f'<body style="{colours}">{recording._repr_html_()}{weights._repr_html_()}</body>')
    assert tab.evaluate("window.hurt") is None
    assert tab.locator("script").count() == 0
    assert tab.locator("img").count() == len(HOSTILE) + 1
    assert tab.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    written = tab.locator("td").first.evaluate("cell => getComputedStyle(cell).color")
    assert written == {"light": "rgb(0, 0, 0)", "dark": "rgb(221, 221, 221)"}[theme]
    assert tab.get_by_text("<b>bold</b>").is_visible()
