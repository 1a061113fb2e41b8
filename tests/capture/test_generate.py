"""generate() is one step whose rows were appended: the same as one pass over what came out."""

import pytest
import tiny_models
import torch

import regard as rg
from regard.errors import RecordError

NEW = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False, "eos_token_id": None}
CASES = {
    "GPT-2, padded at the left": ("GPT-2", "GPT2LMHeadModel", "left", {}),
    "grouped heads": ("Llama", "LlamaForCausalLM", "left", {}),
    "a cache that forgets": ("Mistral", "MistralForCausalLM", None, {}),
    "two kinds of layers": ("Gemma 3", "Gemma3ForCausalLM", "left", {}),
    "softcap": ("Gemma 2", "Gemma2ForCausalLM", None, {}),
    "a static cache": ("Llama", "LlamaForCausalLM", "left", {"cache_implementation": "static"}),
    "a static cache that forgets": ("Gemma 3", "Gemma3ForCausalLM", None, {"cache_implementation": "static"}),
}


def assert_same(one, two):
    assert [layer.name for layer in one.layers] == [layer.name for layer in two.layers]
    for layer in two.layers:
        ours, wanted = one[layer.name], two[layer.name]
        assert ours.shape == wanted.shape
        assert torch.equal(ours.empty_rows(), wanted.empty_rows())
        torch.testing.assert_close(ours.dense(), wanted.dense(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("case", CASES)
@torch.no_grad()
def test_step_by_step_is_one_pass(case):
    name, kind, side, options = CASES[case]
    model = tiny_models.build(name, kind)
    inputs = {"input_ids": tiny_models.tokens()} if side is None else tiny_models.padded(side)
    plain = model.generate(**inputs, **NEW, **options)
    with rg.record(model) as recording:
        assert torch.equal(model.generate(**inputs, **NEW, **options), plain)
    seen = inputs.get("attention_mask", torch.ones(2, 11, dtype=torch.long))
    seen = torch.cat([seen, torch.ones(2, 5, dtype=torch.long)], 1)
    with rg.record(model) as whole:
        places = (seen.cumsum(1) - 1).clamp_min(0)
        model(plain[:, :-1], attention_mask=seen, position_ids=places, use_cache=False)
    assert {layer.steps for layer in recording.layers} == {(0,)}
    assert_same(recording, whole)


@pytest.mark.parametrize(
    ("name", "kind"), [("T5", "T5ForConditionalGeneration"), ("BART", "BartForConditionalGeneration")]
)
@torch.no_grad()
def test_a_translation_is_one_step_with_its_cross_attention(name, kind):
    model, inputs = tiny_models.build(name, kind), tiny_models.padded("right")
    plain = model.generate(**inputs, **NEW)
    with rg.record(model) as recording:
        assert torch.equal(model.generate(**inputs, **NEW), plain)
    with rg.record(model) as whole:
        model(**inputs, decoder_input_ids=plain[:, :-1], use_cache=False)
    assert {layer.cross for layer in whole.layers} == {True, False}
    assert_same(recording, whole)


@torch.no_grad()
def test_every_key_is_kept_once():
    model = tiny_models.build("Mistral", "MistralForCausalLM")
    with rg.record(model) as recording:
        model.generate(tiny_models.tokens(), **NEW)
    for call in recording.calls:
        assert call.query.shape[-2] == call.key.shape[-2] == 11 + 6 - 1


def test_beam_search_is_refused_and_goes_on():
    model, out = tiny_models.build("GPT-2", "GPT2LMHeadModel"), None
    plain = model.generate(tiny_models.tokens(), **NEW, num_beams=3)
    with pytest.raises(RecordError, match="beam search"), rg.record(model):
        out = model.generate(tiny_models.tokens(), **NEW, num_beams=3)
    assert out is not None and torch.equal(out, plain)
    assert torch.equal(model.generate(tiny_models.tokens(), **NEW, num_beams=3), plain)


@torch.no_grad()
def test_without_a_cache_every_pass_is_a_step():
    model = tiny_models.build("Llama", "LlamaForCausalLM")
    with rg.record(model) as recording:
        model.generate(tiny_models.tokens(), **NEW, use_cache=False)
    name = recording.layers[0].name
    assert [recording[name, step].shape[-2:] for step in recording.steps] == [(n, n) for n in range(11, 17)]


@torch.no_grad()
def test_passes_before_and_after_are_steps_of_their_own():
    model = tiny_models.build("Llama", "LlamaForCausalLM")
    with rg.record(model) as recording:
        model(tiny_models.tokens())
        model.generate(tiny_models.tokens(), **NEW)
        model(tiny_models.tokens(length=7))
    lengths = [recording["model.layers.1.self_attn", step].shape[-1] for step in (0, 1, 2)]
    assert lengths == [11, 16, 7]
