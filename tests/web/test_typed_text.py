"""A text that somebody types on the page: recorded by the real model, and shown as it is."""

import re

import pytest
import torch
from playwright.sync_api import expect
from web_viewer import chromium, opened, served

import regard as rg
from regard import models

TEXT = "The river bank was steep, so the bank that lends money stayed dry; 银行 did, too."


@pytest.fixture(scope="module")
def page():
    with (
        served({}) as shown,
        chromium() as browser,
        browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce") as context,
    ):
        watched = opened(context, shown)
        yield watched.page
        assert watched.errors == []


def recorded(name: str) -> rg.Recording:
    tokenizer, model = models.load(name)
    inputs = tokenizer(TEXT, return_tensors="pt")
    with torch.no_grad(), rg.record(model) as recording:
        model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
    return recording


def type_and_record(page, name: str) -> None:
    page.goto(f"{page.url.partition('#')[0]}#/view")
    page.get_by_test_id("record-text").fill(TEXT)
    page.get_by_test_id(f"record-model-{name}").locator("xpath=..").click()
    page.get_by_test_id("record-go").click()
    expect(page).to_have_url(re.compile(r"#/view/[0-9a-f]{12}"))
    expect(page.get_by_test_id("wall")).to_have_attribute("data-measured", "1")


@pytest.mark.parametrize("name", ["minilm", "smollm2"])
def test_a_typed_text_is_recorded_and_shown_with_the_weights_of_the_library(page, name):
    entries = recorded(name).entries  # first: SmolLM2 is converted once in the life of a machine
    type_and_record(page, name)
    heads, n = entries[0].shape[-3:-1]
    expect(page.get_by_test_id("thumb")).to_have_count(len(entries) * heads)
    entry, head = len(entries) - 2, heads - 1
    page.locator(f"[data-testid=thumb][data-entry='{entry}'][data-head='{head}']").click()
    page.get_by_test_id("show-text").locator("xpath=..").click()
    gives, wanted = page.get_by_test_id("gives"), entries[entry].load().weights()[0, head]
    expect(gives.locator("[data-token]")).to_have_count(n)
    for query in (1, n // 2, n - 1):
        gives.locator(f"[data-token='{query}']").hover()
        expect(page.get_by_test_id("text-view")).to_have_attribute("data-shown", str(query))
        found = gives.locator("[data-token]").evaluate_all("all => all.map(e => +e.dataset.value)")
        torch.testing.assert_close(torch.tensor(found), wanted[query], rtol=1e-4, atol=1e-6)
