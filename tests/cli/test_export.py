"""`regard export`: a head as a picture, as numbers and as a page; hostile tokens, long texts, a real browser."""

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import chromium
import numpy as np
import pytest
import tiny_folder
import tiny_models
import torch
from matplotlib.image import imread

import regard as rg
from regard import scores
from regard.cli import exporters
from regard.cli.selectors import select_layer
from regard.errors import ChoiceError
from regard.recording import Call, Layer, Recording
from regard.spec import Spec

LONG = 20_011
WORDS = [*tiny_folder.HOSTILE, *tiny_folder.text(6).split()]
HIDDEN = {"\u202eabc": "\ufffdabc", "\x1b[31m": "\ufffd[31m"}  # as the page shows them


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """Two layers and four heads over thirteen tokens, hostile ones among them."""
    folder = tmp_path_factory.mktemp("short")
    tiny_folder.make(folder / "model")
    tokenizer, model = rg.models.load(folder / "model")
    with torch.no_grad():
        for layer in model.layers:
            layer.self_attn.q_proj.weight *= 30  # heads that look at something
    inputs = tokenizer(" ".join(WORDS), return_tensors="pt")
    with torch.no_grad(), rg.record(model, path=folder / "run.regard", tokenizer=tokenizer):
        model(input_ids=inputs["input_ids"])
    return folder / "run.regard"


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """20,011 tokens, recorded from a tiny model."""
    folder = tmp_path_factory.mktemp("long")
    tiny_folder.make(folder / "model", layers=1, context=2**15)
    tokenizer, model = rg.models.load(folder / "model")
    inputs = tokenizer(tiny_folder.text(LONG), return_tensors="pt")
    with torch.no_grad(), rg.record(model, path=folder / "run.regard", tokenizer=tokenizer, heads=[2]):
        model(input_ids=inputs["input_ids"])
    return folder / "run.regard"


def weights(path, layer=1, head=2):
    return rg.open(path)[f"layers.{layer}.self_attn", 0, head][0, 0]


def embedded(page):
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    return json.loads(text)


# Which file


def test_export_writes_every_format_at_once(here, short, regard):
    said = regard("export", short, "--layer", "1", "--head", "2", "--png", "--svg", "--npz", "--html", "-o", "head")
    assert said.code == 0, said.err
    assert sorted(path.name for path in here.iterdir()) == ["head.html", "head.npz", "head.png", "head.svg"]
    assert imread("head.png")[..., :3].std() > 0.01
    assert Path("head.svg").read_text().startswith("<?xml")
    assert "head.npz: all 13 x 13 weights" in said.out and "head.html: 13 x 13, every weight" in said.out


def test_the_format_follows_the_ending_and_the_file_name_has_a_default(here, short, regard):
    assert regard("export", short, "--layer", "*.1.*", "--head", "0", "-o", "picture.SVG").code == 0
    assert Path("picture.SVG").read_text().startswith("<?xml")
    said = regard("export", short, "--layer", "layers.1.self_attn", "--head", "0", "--npz")
    assert said.out.startswith("written  run-layers.1.self_attn-0.npz")
    assert Path("run-layers.1.self_attn-0.npz").exists()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--png",), 1, "--layer is needed: .* layers.0.self_attn, layers.1.self_attn"),
        (("--layer", "*", "--png"), 1, r"--layer \* means 2 layers"),
        (("--layer", "7", "--png"), 1, "--layer 7 means none of the recorded layers"),
        (("--layer", "0", "--png"), 1, "has heads 0, 1, 2, 3: say which, with --head"),
        (("--layer", "0", "--head", "4", "--png"), 1, "has no head 4 in this recording; it has 0, 1, 2, 3"),
        (("--layer", "0", "--head", "1", "--step", "3", "--png"), 1, "has no step 3"),
        (("--layer", "0", "--head", "1", "--sequence", "1", "--png"), 1, "is not in a batch of 1"),
        (("--layer", "0", "--head", "1", "-o", "nowhere/x.png"), 1, "there is no folder nowhere"),
        (("--layer", "0", "--head", "1"), 2, "say what to write"),
        (
            ("--layer", "0", "--head", "1", "-o", "x.pdf"),
            2,
            "x.pdf ends in .pdf; what can be written is .png, .svg, .npz, .html",
        ),
        (("--layer", "0", "--head", "1", "-o", "x.png", "--html"), 2, "would be .png"),
    ],
)
def test_an_export_that_cannot_be_written_is_refused(here, short, regard, options, code, message):
    said = regard("export", short, *options)
    assert said.code == code
    assert re.search(message, " ".join(re.sub("[│╭╮╰╯─]", " ", said.err).split())), said.err
    assert list(here.iterdir()) == []


def test_a_number_that_two_names_begin_with_is_ambiguous():
    layers = [Layer(name, (0,), (1, 2, 3, 3), False, "everything") for name in ("encoder.3.attn", "decoder.3.attn")]
    with pytest.raises(ChoiceError, match=r"--layer 3 means 2 layers \(a number .* recording\[3\]\): .*encoder.3.attn"):
        select_layer("3", layers)


def test_a_folder_is_no_place_to_export_to_and_a_device_keeps_its_name(here, short, regard):
    (here / "folder").mkdir()
    options = ("export", short, "--layer", "0", "--head", "0", "--html", "-o")
    said = regard(*options, "folder")
    assert said.code == 1 and "--out folder: is a folder; name a file in it" in said.err
    said = regard(*options, "/dev/null")
    assert said.code == 0 and "written  /dev/null" in said.err and said.out == ""
    assert [path.name for path in here.iterdir()] == ["folder"]
    assert not Path("/dev/null.html").exists()


def test_export_selects_sequence_step_head_and_layers_without_heads(here, regard):
    model = tiny_models.build("BART")
    with torch.no_grad(), rg.record(model, path="run.regard", heads=[3, 1]) as recording:
        model(**tiny_models.translated())
        model(**tiny_models.translated())
    name = "decoder.layers.1.encoder_attn"
    options = ("--layer", name, "--step", "1", "--sequence", "1")
    said = regard("export", "run.regard", *options, "--head", "1", "-o", "x.npz")
    assert said.code == 0, said.err
    found = np.load("x.npz")
    np.testing.assert_allclose(found["weights"], recording[name, 1].dense()[1, 1], atol=1e-6)
    assert json.loads(str(found["about"]))["head"] == 1
    ids = tiny_models.translated()
    assert json.loads(str(found["tokens"])) == {
        "queries": [str(i) for i in ids["decoder_input_ids"][1].tolist()],
        "keys": [str(i) for i in ids["input_ids"][1].tolist()],
    }
    layer = rg.nn.AdditiveAttention(5, 5, 7)
    with torch.no_grad(), rg.record(layer, path="other.regard") as recording:
        layer(*(torch.randn(2, 3, 5) for _ in range(3)))
    assert regard("export", "other.regard", "--sequence", "1", "-o", "y.npz").code == 0
    (name,) = [one.name for one in recording.layers]
    np.testing.assert_allclose(np.load("y.npz")["weights"], recording[name].dense()[1], atol=1e-6)


# Numbers


def test_npz_holds_the_weights(here, short, regard):
    assert regard("export", short, "--layer", "1", "--head", "2", "-o", "x.npz").code == 0
    found = np.load("x.npz")
    np.testing.assert_allclose(found["weights"], weights(short), atol=1e-6)
    assert json.loads(str(found["tokens"])) == {"queries": WORDS, "keys": WORDS}
    about = json.loads(str(found["about"]))
    assert (about["model"], about["layer"], about["head"]) == ("LlamaModel", "layers.1.self_attn", 2)


def test_npz_of_a_large_head_is_pooled_and_says_so(here, short, regard, monkeypatch):
    monkeypatch.setattr(exporters, "NPZ_BYTES", 13 * 13 * 4 - 1)
    monkeypatch.setattr(exporters, "NPZ_BINS", 5)
    said = regard("export", short, "--layer", "1", "--head", "2", "-o", "x.npz")
    assert "pooled to 5 x 5" in said.out
    found, dense = np.load("x.npz"), weights(short).numpy()
    edges = found["query_edges"]
    assert edges.tolist() == found["key_edges"].tolist() == [0, 2, 5, 7, 10, 13]
    for name, pool in (("heatmap", np.mean), ("heatmap_max", np.max)):
        cells = [[pool(dense[a:b, c:d]) for c, d in pairwise(edges)] for a, b in pairwise(edges)]
        np.testing.assert_allclose(found[name], cells, atol=1e-6)
    best = np.sort(dense, axis=1)[:, ::-1][:, :8]
    np.testing.assert_allclose(found["top_weights"], best, atol=1e-6)
    seen = found["top_keys"] >= 0
    np.testing.assert_allclose(np.take_along_axis(dense, found["top_keys"].clip(0), 1)[seen], best[seen], atol=1e-6)


# Pages


def test_a_page_loads_nothing_from_elsewhere(here, short, regard):
    assert regard("export", short, "--layer", "1", "--head", "2", "-o", "x.html").code == 0
    page = Path("x.html").read_text()
    assert "default-src 'none'" in page
    shell = page.replace(re.search(r'id="data">(.*?)</script>', page)[1], "")
    assert not re.search(
        r"https?:|\bsrc=|@import|url\(|fetch\(|XMLHttp|import\(|innerHTML|eval\(|document\.write", shell
    )
    assert page.count("<script") == page.count("</script>") == 2


def test_tokens_cannot_end_the_script_of_a_page(here, short, regard):
    assert regard("export", short, "--layer", "1", "--head", "2", "-o", "x.html").code == 0
    (data,) = re.findall(r'id="data">(.*?)</script>', Path("x.html").read_text(), re.DOTALL)
    assert not set("<>&") & set(data)
    assert embedded(Path("x.html"))["keys"] == WORDS


def test_a_browser_shows_hostile_tokens_as_text(here, short, regard):
    assert regard("export", short, "--layer", "1", "--head", "2", "-o", "x.html", "--lang", "zh").code == 0
    page = chromium.dom(Path("x.html"), "document.body.dataset.title = document.title")
    assert page.body["data-title"] == page.texts["title"] == "layers.1.self_attn · 头 2"
    assert "img" not in page.tags and page.tags.count("script") == 3  # data, page, test
    assert page.words == [HIDDEN.get(word, word) for word in WORDS]
    assert page.texts["language"] == "English"


def point(i, j, n, m):
    return (
        f"(() => {{ const box = canvas.getBoundingClientRect(); return {{ bubbles: true, cancelable: true,"
        f" clientX: box.left + left + ({j} + .5) / {m} * size[0], clientY: box.top + above + ({i} + .5) / {n} * size[1]"
        "} })()"
    )


def test_a_page_shows_weights_zooms_and_changes_its_language(here, short, regard):
    assert regard("export", short, "--layer", "1", "--head", "2", "-o", "x.html").code == 0
    dense, script = weights(short), ""
    for name, (i, j) in {"one": (11, 7), "two": (8, 2), "three": (3, 9)}.items():
        script += f"canvas.dispatchEvent(new PointerEvent('pointermove', {point(i, j, 13, 13)}));"
        script += f"document.body.dataset.{name} = $('said').textContent;"
    script += f"choose(12); const place12 = {point(0, 0, 13, 13)};"
    script += "canvas.dispatchEvent(new WheelEvent('wheel', {...place12, deltaY: -100}));"
    script += (
        "document.body.dataset.view = JSON.stringify(view); document.body.dataset.english = $('asking').textContent;"
    )
    script += "$('language').click();"
    page = chromium.dom(Path("x.html"), script, "420,900")
    for name, (i, j) in {"one": (11, 7), "two": (8, 2), "three": (3, 9)}.items():
        words, number = page.body[f"data-{name}"].rsplit(": ", 1)
        assert words == " → ".join(f"{k} “{HIDDEN.get(WORDS[k], WORDS[k])}”" for k in (i, j))
        assert float(number) == pytest.approx(float(dense[i, j]), abs=2e-3)
    view = json.loads(page.body["data-view"])
    assert view["w"] == pytest.approx(0.8 * 13) and 0 <= view["x"] < 1
    best = int(dense[12].argmax())
    assert page.body["data-english"] == f"Query 12 “{WORDS[12]}” looks at"
    assert page.texts["asking"] == f"查询 12 “{WORDS[12]}” 看向"
    assert f"{float(dense[12, best]):.2f}" in page.texts["list"][:6] and f"“{WORDS[best]}”" in page.texts["list"]


MEASURED = """
import re, sys
from pathlib import Path
from regard import cli
sys.argv = ["regard", "export", *sys.argv[1:]]
try: cli.main()
except SystemExit as end: assert not end.code, end.code
# Not ru_maxrss: a process inherits that from the one that started it.
print(1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]))
"""


def test_a_page_of_a_long_text_is_small_on_disk_and_in_memory(here, long):
    command = [sys.executable, "-c", MEASURED, long, "--html", "-o", "long"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    peak = int(run.stdout.splitlines()[-1])
    assert peak < LONG * LONG * 4 // 2, "an n x m matrix of weights was built"
    page = Path("long.html")
    assert 1_000_000 < page.stat().st_size < 4_000_000
    data = embedded(page)
    assert (data["n"], data["shape"], len(data["keys"]), data["head"]) == (LONG, [512, 512], LONG, 2)
    script = (
        "const first = element => element.textContent.split(' ')[0].replace(',', '');"
        "choose(15000); for (let i = 0; i < 30; i++) zoom(.8, .5, .5);"
        "document.body.dataset.view = JSON.stringify(view); document.body.dataset.detail = !!detail();"
        "document.body.dataset.listed = JSON.stringify([...document.querySelectorAll('li div')].map(first));"
    )
    shown = chromium.dom(page, script)
    assert shown.texts["asking"] == f"Query 15,000 “{tiny_folder.text(LONG).split()[15_000]}” looks at"
    top = rg.open(long)["layers.0.self_attn"].top(6)
    listed = [int(key) for key in json.loads(shown.body["data-listed"])]
    assert listed == top.indices[0, 0, 15_000].tolist()
    assert shown.body["data-detail"] == "true" and json.loads(shown.body["data-view"])["w"] < 100
    assert shown.words == [], "a text of this length is no text view"


def test_a_page_of_a_very_long_text_drops_tokens_and_pairs(here, monkeypatch, short, regard):
    monkeypatch.setattr(exporters, "PAGE_BINS", 5)
    monkeypatch.setattr(exporters, "PAGE_PAIRS", 12)
    monkeypatch.setattr(exporters, "PAGE_TOKEN_BYTES", 20)
    said = regard("export", short, "--layer", "1", "--head", "2", "-o", "x.html")
    assert "5 x 5 bins" in said.out
    data = embedded(Path("x.html"))
    assert (data["top"], data["keys"], data["queries"], data["shape"]) == (None, None, "as keys", [5, 5])
    page = chromium.dom(
        Path("x.html"), f"canvas.dispatchEvent(new PointerEvent('pointermove', {point(12, 0, 13, 13)}));"
    )
    words, number = page.texts["said"].split(": mean of a bin ")
    assert words == "12 → 0"
    assert float(number) == pytest.approx(float(weights(short).numpy()[10:, :2].mean()), abs=1e-3)
    assert "too long to be in this page" in page.texts["hint"]


@pytest.mark.parametrize(
    ("mask", "en", "zh"),
    [
        (None, "sees everything", "可见所有键"),
        (rg.masks.causal("top-left"), "mask causal", "掩码 因果"),
        (rg.masks.window(2, 0, "top-left"), "mask window(2, 0)", "掩码 窗口(2, 0)"),
    ],
)
def test_a_page_describes_the_mask_in_both_languages(here, regard, mask, en, zh):
    q, k = torch.randn(1, 1, 5, 3), torch.randn(1, 1, 5, 3)
    Recording([Call("layer", 0, q, k, Spec(scores.scaled_dot(), mask, rg.normalisers.softmax()))]).save("run.regard")
    assert regard("export", "run.regard", "-o", "x.html").code == 0
    page = chromium.dom(Path("x.html"), "document.body.dataset.en = $('facts').textContent; $('language').click();")
    assert page.body["data-en"].endswith(en) and page.texts["facts"].endswith(zh)


def test_a_page_shows_empty_rows_and_nan(here, regard):
    q, k = torch.randn(1, 1, 4, 3), torch.randn(1, 1, 4, 3)
    q[..., 3, :] = torch.nan
    mask = rg.masks.allow(torch.tensor([[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]).bool())
    spec = Spec(scores.scaled_dot(), mask, rg.normalisers.softmax())
    Recording([Call("layer", 0, q, k, spec)]).save("run.regard")
    assert regard("export", "run.regard", "-o", "x.html").code == 0
    script = "choose(1); document.body.dataset.empty = $('asking').textContent; choose(3);"
    page = chromium.dom(Path("x.html"), script)
    assert page.body["data-empty"] == "Query 1 sees no key"
    assert page.texts["list"].count("NaN") == 4
