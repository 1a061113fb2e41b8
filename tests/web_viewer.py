"""Recordings to look at, the server as a process of its own, and Chromium."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from web_browser import ARGUMENTS, WAIT

import regard as rg

LONG = 32_768
HOSTILE = [
    "</script><script>window.hurt = 1</script>", "<img src=x onerror='window.hurt = 1'>", "{{7*7}}",
    "javascript:alert(1)",
       '" onmouseover="window.hurt = 1', "<b>bold</b>", "=1+1", "\u202eright to left", "\n", "", "&lt;", "中文，词元",
]  # fmt: skip


class Spelling:
    """A tokenizer of which only the way back is asked."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def decode(self, tokens: list[int]) -> str:
        return "".join(self.texts[token % len(self.texts)] for token in tokens)


class Halves:
    """A tokenizer whose tokens are single bytes, the first or the second half of é."""

    def decode(self, tokens: list[int]) -> str:
        return bytes((0xA9, 0xC3)[token % 2] for token in tokens).decode("utf-8", "replace")


def record(
    path: Path, length: int, *, layers: int, heads: int, dim: int, padding: int = 0, texts: list[str] | None = None
) -> None:
    """A tiny model with random weights; `padding` tokens at the left see nothing. Without texts tokens are `Halves`."""
    from transformers import LlamaConfig, LlamaModel

    torch.manual_seed(7)
    config = LlamaConfig(
        hidden_size=heads * dim, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=heads,
        head_dim=dim, intermediate_size=32, vocab_size=97, max_position_embeddings=LONG,
    )  # fmt: skip
    model = LlamaModel(config).eval()
    for layer in model.layers:  # sharp enough to have a picture
        for part in (layer.self_attn.q_proj, layer.self_attn.k_proj):
            part.weight.data.mul_(12)
    ids = torch.randint(3, 97, (1, length))
    given = {"input_ids": ids}
    if padding:
        given["attention_mask"] = (torch.arange(length) >= padding).long().unsqueeze(0)
    with torch.no_grad(), rg.record(model, path=path, tokenizer=Halves() if texts is None else Spelling(texts)):
        model(**given)


class Shown(NamedTuple):
    """A server, the recordings that it shows by name, and their ids."""

    url: str
    files: dict[str, Path]
    ids: dict[str, str]

    @property
    def base(self) -> str:
        return self.url.partition("?")[0]

    def weights(self, name: str, entry: int) -> rg.Weights:
        return rg.open(self.files[name]).entries[entry].load().weights()


@contextmanager
def served(files: dict[str, Path]) -> Iterator[Shown]:
    code = (
        "import sys; from pathlib import Path; from regard.web import serve; "
        "serve([Path(p) for p in sys.argv[1:]], lab=True, announce=lambda url: print(url, flush=True))"
    )
    command = [sys.executable, "-c", code, *map(str, files.values())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Shown(process.stdout.readline().strip(), files, {})
        finally:
            process.terminate()


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        yield browser
        browser.close()


class Watched(NamedTuple):
    """A page, and what went wrong on it."""

    page: Page
    errors: list[str]


def opened(context: BrowserContext, shown: Shown, place: str = "") -> Watched:
    page, errors = context.new_page(), []
    page.set_default_timeout(WAIT)
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "request",
        lambda asked: None if asked.url.startswith((shown.base, "blob:", "data:")) else errors.append(asked.url),
    )
    page.goto(shown.url.partition("#")[0] + place.replace("?", "&", 1))
    if not shown.ids:
        found = page.request.get(f"{shown.base}api/recordings").json()
        shown.ids.update({Path(one["name"]).stem: one["id"] for one in found})
    return Watched(page, errors)


def number(page: Page, testid: str, name: str = "value") -> float:
    text = page.get_by_test_id(testid).first.get_attribute(f"data-{name}")
    assert text, f"{testid} has no {name}"
    return float(text)
