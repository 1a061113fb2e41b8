"""What a person sees in JupyterLab: a real server and kernel, and a notebook whose cells are run in Chromium."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect
from web_browser import AXE, WAIT
from web_viewer import chromium

import regard

TOKEN = "notebook"  # noqa: S105  no secret: the server lives as long as the test, on this machine
START = """
import torch, regard as rg
from regard import analysis
from regard.display import progress

torch.manual_seed(0)
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn = rg.nn.SelfAttention(48, 12)

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = torch.nn.ModuleDict({"layers": torch.nn.ModuleList([Block(), Block()])})

    def forward(self, x):
        for block in self.model["layers"]:
            x = block.self_attn(x, mask=rg.masks.causal()).output
            x = 4 * x / x.std()
        return x

model = Model()
with torch.no_grad(), rg.record(model) as recording:
    model(4 * torch.randn(1, 40, 48))
"""
# A long call is made again until the test has seen its progress, so that no machine is too fast or too slow for it.
LONG_CALL = """
from pathlib import Path
with torch.no_grad(), rg.record(model) as long_recording:
    model(torch.randn(1, 1000, 48))
progress.DELAY = 0
while not Path("seen").exists():
    table = analysis.profiles(long_recording)
print("the long call is over")
"""
CELLS = {
    "start": START,
    "weights": "rg.Weights(2 * torch.randn(2, 3, 40, 8), torch.randn(2, 3, 50, 8))",
    "recording": "recording",
    "profiles": "analysis.profiles(recording)",
    "summary": "x = torch.rand(200, 2)\nrg.NadarayaWatson().fit(x, torch.sin(6 * x[:, 0])).summary()",
    "view": "recording[0].view()",
    "progress": LONG_CALL,
}
SETTINGS = {
    "apputils-extension/themes": {"adaptive-theme": True},  # light or dark, as the browser is
    "apputils-extension/notification": {"checkForUpdates": False, "fetchNews": "false"},
    "notebook-extension/tracker": {"windowingMode": "none"},  # cells out of sight are in the page, too
}


def write_notebook(path: Path) -> None:
    empty = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**empty, "id": name, "source": code.strip()} for name, code in CELLS.items()]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path.write_text(
        json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells})
    )


def environment(home: Path) -> dict[str, str]:
    """That of a user whose folders are all in `home`, and whose regard is the one under test."""
    for name, values in SETTINGS.items():
        path = home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    folders = {f"JUPYTER_{name}_DIR": str(home / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    labs = {f"JUPYTERLAB_{name}_DIR": str(home / name.lower()) for name in ("SETTINGS", "WORKSPACES")}
    source = str(Path(regard.__file__).parents[1])
    python_path = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, **folders, **labs, "HOME": str(home), "PYTHONPATH": python_path, "PYTHONWARNINGS": "ignore"}


def address(runtime: Path, process: subprocess.Popen, log: Path) -> str:
    """Where the server is, as the file says that it writes once it listens."""
    end = time.monotonic() + WAIT / 1000
    while not (found := list(runtime.glob("jpserver-*.json"))):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, f"no server after {WAIT / 1000:.0f} s: {log.read_text()}"
        time.sleep(0.1)
    return json.loads(found[0].read_text())["url"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a JupyterLab, and the folder of its notebook."""
    home, work = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("work")
    write_notebook(work / "outputs.ipynb")
    log = home / "log"
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0",
        f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={work}", "--ServerApp.terminals_enabled=False",
        "--LabApp.extension_manager=readonly",
    ]  # fmt: skip
    with (
        log.open("w") as output,
        subprocess.Popen(command, cwd=work, env=environment(home), stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        try:
            yield address(home / "runtime", process, log), work
        finally:
            process.terminate()  # it stops its kernels, too


class Notebook:
    """The notebook in the browser, and what its page did that it should not do."""

    def __init__(self, page: Page, work: Path) -> None:
        self.page, self.work = page, work
        self.faults: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", lambda request: self._asked(request.url))

    def _asked(self, url: str) -> None:
        if urlsplit(url).scheme not in ("data", "blob") and urlsplit(url).hostname != "127.0.0.1":
            self.faults.append(f"asks {url}")

    def cell(self, name: str) -> Locator:
        return self.page.locator(".jp-Notebook .jp-Cell").nth(list(CELLS).index(name))

    def output(self, name: str) -> Locator:
        return self.cell(name).locator(".jp-OutputArea-output")

    def select(self, name: str) -> None:
        self.cell(name).locator(".jp-InputPrompt").click()

    def run_all_above(self, name: str) -> None:
        self.select(name)
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Above Selected Cell").click()

    def run(self, name: str) -> None:
        self.select(name)
        self.page.keyboard.press("Control+Enter")

    def unreadable(self) -> list[str]:
        """Texts of outputs whose contrast is too low."""
        self.page.evaluate(AXE)
        ask = """axe.run({ include: [".jp-Cell-outputArea"] }, { runOnly: ["color-contrast"] })
                 .then(({ violations }) => violations.flatMap(one => one.nodes.map(node => node.html)))"""
        return self.page.evaluate(ask)


@pytest.fixture(scope="module")
def notebook(server):
    """The notebook after all its cells but the last, which takes long, were run."""
    url, work = server
    with chromium() as browser, browser.new_context(viewport={"width": 1200, "height": 900}) as context:
        page = context.new_page()
        page.set_default_timeout(WAIT)
        shown = Notebook(page, work)
        page.goto(f"{url}lab/tree/outputs.ipynb?token={TOKEN}")
        expect(page.get_by_role("button", name="Python 3 (ipykernel) | Idle")).to_be_visible()
        shown.run_all_above("progress")
        expect(shown.cell("view").locator(".jp-InputPrompt")).to_have_text(re.compile(r"\d"))
        yield shown


def test_weights_are_a_formula_and_a_picture(notebook):
    output = notebook.output("weights")
    expect(output).to_contain_text("Weights 2 × 3 × 40 × 50, torch.float32, never built")
    expect(output).to_contain_text("softmax(q·k / √d)")
    picture = output.get_by_role("img", name="heatmap, queries down, keys across")
    expect(picture).to_have_js_property("naturalWidth", 250)
    expect(picture).to_have_js_property("width", 250)
    frame, room = picture.bounding_box(), output.bounding_box()
    assert frame["x"] >= room["x"] + 1, "the outline of the picture is cut off"


def test_a_recording_is_a_wall_of_heads(notebook):
    output = notebook.output("recording")
    expect(output).to_contain_text("Recording(2 calls of 2 layers")
    rows = output.get_by_role("row")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("[0] model.layers.0.self_attn")
    expect(rows.first).to_contain_text("1 × 12 × 40 × 40, causal")
    for number in range(2):
        picture = rows.nth(number).get_by_role("img", name=f"heads of layer {number}")
        expect(picture).to_have_js_property("naturalWidth", 12 * 17 - 1)
        expect(picture).to_have_js_property("width", 3 * (12 * 17 - 1))
        expect(picture).to_have_js_property("height", 3 * 16)


def test_a_table_is_sorted_by_a_click_on_its_heading(notebook):
    output = notebook.output("profiles")
    expect(output).to_contain_text("ProfileTable, 24 rows")
    entropies = output.locator("tbody td:nth-child(4)")
    before = [float(text) for text in entropies.all_inner_texts()]
    assert len(before) == 24 and before != sorted(before)
    output.get_by_role("button", name="entropy").click()
    expect(output.get_by_role("columnheader", name="entropy")).to_have_attribute("aria-sort", "ascending")
    assert [float(text) for text in entropies.all_inner_texts()] == sorted(before)
    expect(output.locator("td.text").first).to_have_css("text-align", "left")
    expect(entropies.first).to_have_css("text-align", "right")


def test_a_summary_is_two_tables(notebook):
    output = notebook.output("summary")
    expect(output).to_contain_text("y from x0, x1")
    for fact in ("R² by leave-one-out", "effective degrees of freedom", "local constant"):
        expect(output).to_contain_text(fact)
    number = output.get_by_role("row", name="x0").get_by_role("cell").first
    for cell in (output.get_by_role("columnheader", name="bandwidth"), number):
        expect(cell).to_have_css("text-align", "right")
    assert number.bounding_box()["width"] < 150, "a number stands far from its name"


def test_the_viewer_draws_heads_and_opens_one(notebook):
    output = notebook.output("view")
    output.get_by_test_id("thumb").first.scroll_into_view_if_needed()
    expect(output.locator("[data-testid=thumb][data-ready=true]").first).to_be_visible()
    expect(output.get_by_test_id("thumb")).to_have_count(12)
    output.get_by_test_id("thumb").nth(3).click()
    expect(output.get_by_test_id("map-stage").locator("canvas").first).to_be_visible()
    expect(output.get_by_test_id("head-title")).to_contain_text("head 3")


def test_progress_of_a_long_call_is_a_bar_that_goes_away(notebook):
    notebook.run("progress")
    output = notebook.output("progress")
    # Each call has an output of its own, which is empty once the call is over: any of them may be seen.
    bar = output.filter(has=notebook.page.get_by_role("progressbar"))
    expect(bar.filter(has_text=re.compile(r"profiling heads.*of 2, 0:0")).first).to_be_visible()
    (notebook.work / "seen").touch()
    expect(output.last).to_contain_text("the long call is over")
    expect(output.get_by_role("progressbar")).to_have_count(0)
    expect(output.filter(has_text="profiling heads")).to_have_count(0)
    assert output.first.bounding_box()["height"] == 0  # it leaves no gap


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_outputs_can_be_read_and_nothing_went_wrong(notebook, theme):
    notebook.page.emulate_media(color_scheme=theme)
    expect(notebook.page.locator("body")).to_have_attribute("data-jp-theme-light", str(theme == "light").lower())
    assert notebook.unreadable() == []
    expect(notebook.page.locator("[data-mime-type='application/vnd.jupyter.stderr']")).to_have_count(0)
    expect(notebook.page.locator("[data-mime-type='application/vnd.jupyter.error']")).to_have_count(0)
    assert notebook.faults == []
