"""Models that people use, with their own weights, in English and Chinese: against eager attention, layer by layer."""

import functools
import socket

import pytest
import torch

import regard as rg
from regard import models

ENGLISH = "His father is two meters tall. He has been bad at math since childhood, and he often skips class."
CHINESE = "他爸有 2 米高，他从小的数学成绩并不好，经常旷课。"
SHORT = {"en": "He loves eating apples.", "zh": "他爱吃苹果"}
LONG = {"en": ENGLISH, "zh": CHINESE}
NEW = {"max_new_tokens": 7, "min_new_tokens": 7, "do_sample": False, "pad_token_id": 0}


@functools.cache
def load(name):
    """SmolLM2 is in the user's cache afterwards, whichever of several processes was the first to convert it."""
    return models.load(name, causal=name == "smollm2")


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_):
        raise AssertionError("somebody asked the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def eager(model, inputs):
    before = model.config._attn_implementation
    assert before == "sdpa", "a recording is of the fused kernel"
    model.set_attn_implementation("eager")
    try:
        return model(**inputs, output_attentions=True, use_cache=False).attentions
    finally:
        model.set_attn_implementation(before)


def assert_eager(recording, model, inputs):
    wanted = eager(model, inputs)
    assert len(recording.layers) == len(wanted) == model.config.num_hidden_layers
    for layer, dense in zip(recording.layers, wanted, strict=True):
        weights = recording[layer.name]
        assert weights.shape == dense.shape
        seen = ~weights.empty_rows()
        torch.testing.assert_close(weights.dense()[seen], dense[seen], atol=1e-5, rtol=0)


def first(output):
    return output[0]  # the last hidden state, or the logits


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", ["minilm", "smollm2"])
@torch.no_grad()
def test_recorded_weights_are_those_of_eager_attention(name, language, tmp_path):
    tokenizer, model = load(name)
    inputs = tokenizer(LONG[language], return_tensors="pt")
    plain = first(model(**inputs))
    with rg.record(model, path=tmp_path / "run.regard", tokenizer=tokenizer):
        assert torch.equal(first(model(**inputs)), plain)
    recording = rg.open(tmp_path / "run.regard")
    assert_eager(recording, model, inputs)
    assert len(recording.tokens[0]["input_ids"][0]) == inputs["input_ids"].shape[-1]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", ["minilm", "smollm2"])
@torch.no_grad()
def test_padding_hides_what_it_should(name, side):
    tokenizer, model = load(name)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    texts = [SHORT["en"], ENGLISH]
    inputs = tokenizer(texts, return_tensors="pt", padding=True, padding_side=side)
    real = inputs["attention_mask"].bool()
    assert bool(real[0, 0]) == (side == "right") and int((~real).sum()) > 5
    plain = first(model(**inputs))
    with rg.record(model) as recording:
        assert torch.equal(first(model(**inputs)), plain)
    assert_eager(recording, model, inputs)
    for layer in recording.layers:
        assert float(recording[layer.name].mass((~real).long() - 1)[:, :, :, 0].max()) == 0.0


@pytest.mark.parametrize("language", ["en", "zh"])
@torch.no_grad()
def test_what_was_generated_step_by_step_is_one_full_pass(language):
    tokenizer, model = load("smollm2")
    inputs = tokenizer(SHORT[language], return_tensors="pt")
    plain = model.generate(**inputs, **NEW)
    with rg.record(model) as recording:
        assert torch.equal(model.generate(**inputs, **NEW), plain)
    with rg.record(model) as whole:
        model(plain[:, :-1], use_cache=False)
    assert [layer.name for layer in recording.layers] == [layer.name for layer in whole.layers]
    for layer in whole.layers:
        torch.testing.assert_close(recording[layer.name].dense(), whole[layer.name].dense(), atol=1e-5, rtol=0)
        assert recording.calls[0].key.shape == whole.calls[0].key.shape, "every key once"
