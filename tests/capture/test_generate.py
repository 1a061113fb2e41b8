"""generate() is one step whose rows were appended: the same as one pass over what came out."""

from dataclasses import replace

import pytest
import tiny_models
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import regard as rg
from regard.capture._generation_steps import GenerationSteps
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


@pytest.mark.parametrize("field", ["query", "key"])
@torch.no_grad()
def test_steps_that_are_joined_wrongly_are_missing(field, monkeypatch):
    right, model = GenerationSteps.joined, tiny_models.build("Llama", "LlamaForCausalLM")

    def turned(steps, rows):
        call = right(steps, rows)
        return replace(call, **{field: 40 * getattr(call, field).flip(-2)})

    monkeypatch.setattr(GenerationSteps, "joined", turned)
    with pytest.raises(RecordError, match="its weights do not give its output"), rg.record(model):
        model.generate(tiny_models.tokens(), **NEW)


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


BEAMS = {"max_new_tokens": 7, "do_sample": False, "num_beams": 4, "eos_token_id": 11, "pad_token_id": 2}


@pytest.mark.parametrize("returned", [1, 3])
@pytest.mark.parametrize(
    ("name", "kind"), [("GPT-2", "GPT2LMHeadModel"), ("Llama", "LlamaForCausalLM"), ("Mistral", "MistralForCausalLM")]
)
@torch.no_grad()
def test_beam_search_is_recorded_for_the_sequences_that_it_returns(name, kind, returned):
    model, inputs = tiny_models.build(name, kind), {"input_ids": tiny_models.tokens(3, 5)}
    options = {**BEAMS, "num_return_sequences": returned}
    plain = model.generate(**inputs, **options)
    with rg.record(model) as recording:
        assert torch.equal(model.generate(**inputs, **options), plain)
    assert recording.missing == ()
    assert torch.equal(recording.inputs[0]["input_ids"], plain[:, :-1])
    with rg.record(model) as whole:
        model(plain[:, :-1], use_cache=False)
    assert_same_until_the_end(recording, whole, plain, prompt=5)


def assert_same_until_the_end(recording, whole, sequences, prompt):
    """Both agree in the rows that were read before a sequence ended; after that, a row of a beam sees nothing."""
    assert [layer.name for layer in recording.layers] == [layer.name for layer in whole.layers]
    ends = sequences == BEAMS["eos_token_id"]
    ends[:, :prompt] = False
    ended = ends.cumsum(1)[:, :-1] > 0
    for layer in whole.layers:
        ours, wanted = recording[layer.name].dense(), whole[layer.name].dense()
        if ours.shape[-2] == ended.shape[-1]:
            after = ended[:, None, :, None].expand_as(ours)
            assert not bool(ours[after].any())
            ours, wanted = ours[~after], wanted[~after]
        torch.testing.assert_close(ours, wanted, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("name", "kind"), [("T5", "T5ForConditionalGeneration"), ("BART", "BartForConditionalGeneration")]
)
@torch.no_grad()
def test_beams_of_a_translation_share_their_encoder(name, kind):
    model, inputs = tiny_models.build(name, kind), tiny_models.padded("right")
    options = {**BEAMS, "num_return_sequences": 2}
    plain = model.generate(**inputs, **options)
    with rg.record(model) as recording:
        assert torch.equal(model.generate(**inputs, **options), plain)
    twice = {key: tensor.repeat_interleave(2, 0) for key, tensor in inputs.items()}
    with rg.record(model) as whole:
        model(**twice, decoder_input_ids=plain[:, :-1], use_cache=False)
    assert {layer.shape[0] for layer in recording.layers} == {4}
    assert_same_until_the_end(recording, whole, plain, prompt=1)


@torch.no_grad()
def test_beams_that_are_returned_without_their_prompt():
    model = tiny_models.build("Whisper", "WhisperForConditionalGeneration")
    sound = {"input_features": tiny_models.sound()["input_features"]}
    options = {"num_beams": 3, "max_new_tokens": 5}
    plain = model.generate(**sound, **options)
    with rg.record(model) as recording:
        assert torch.equal(model.generate(**sound, **options), plain)
    assert recording.missing == ()
    start = torch.full((2, 1), model.config.decoder_start_token_id)
    assert torch.equal(recording.inputs[0]["decoder_input_ids"], torch.cat([start, plain], 1)[:, :-1])
    with rg.record(model) as whole:
        model(**sound, decoder_input_ids=recording.inputs[0]["decoder_input_ids"], use_cache=False)
    assert_same(recording, whole)


def test_beams_of_a_search_that_was_stopped_are_missing():
    model, calls = tiny_models.build("GPT-2", "GPT2LMHeadModel"), []

    def stop(*_):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt

    hook = model.register_forward_hook(stop)
    try:
        with pytest.raises(KeyboardInterrupt), rg.record(model) as recording:
            model.generate(tiny_models.tokens(), **BEAMS)
    finally:
        hook.remove()
    assert {reason for _, reason in recording.missing} == {"beam search was stopped before it chose a beam"}


@pytest.mark.parametrize("case", ["one encoder token", "keys that are all equal"])
@torch.no_grad()
def test_cross_attention_does_not_grow(case):
    model = tiny_models.make("T5ForConditionalGeneration", "T5Config", tiny_models.MODELS["T5"].options)
    ids = tiny_models.tokens(1, 1 if case == "one encoder token" else 4)
    if case == "keys that are all equal":
        for block in model.decoder.block:
            block.layer[1].EncDecAttention.k.weight.zero_()
    with rg.record(model) as recording:
        model.generate(ids, **NEW)
    shapes = {layer.shape[-2:] for layer in recording.layers if layer.cross}
    assert shapes == {(6, ids.shape[1])}


class ReadsAMemory(nn.Module):
    """A generating model whose cross attention has no name that Hugging Face's models give it."""

    def __init__(self, memory):
        super().__init__()
        self.memory = memory

    def forward(self, x):
        return scaled_dot_product_attention(x, self.memory, self.memory)

    def generate(self, passes):
        for n in passes:
            self(torch.randn(1, 2, n, 16))


@pytest.mark.parametrize("memory", [torch.ones(1, 2, 4, 16), torch.ones(1, 2, 1, 16), torch.randn(1, 2, 4, 16)])
@pytest.mark.parametrize("prompt", [1, 3, 4])
@torch.no_grad()
def test_cross_attention_without_a_known_name_does_not_grow(memory, prompt):
    model = ReadsAMemory(memory)
    with rg.record(model) as recording:
        model.generate([prompt, 1, 1])
    assert recording.layers[0].shape[-2:] == (prompt + 2, memory.shape[-2])


class ChangesItsTensors(nn.Module):
    """A generating model that gates an output in place, and empties its cache at the end."""

    def __init__(self):
        super().__init__()
        self.cache = torch.zeros(1, 2, 0, 16)

    def forward(self, x):
        self.cache = torch.cat([self.cache, x], -2)
        mask = torch.ones(x.shape[-2], self.cache.shape[-2], dtype=torch.bool).tril(self.cache.shape[-2] - x.shape[-2])
        return scaled_dot_product_attention(x, self.cache, self.cache, attn_mask=mask).mul_(2)

    def generate(self, passes):
        for n in passes:
            self(torch.randn(1, 2, n, 16))
        self.cache.zero_()


@torch.no_grad()
def test_tensors_that_change_after_the_last_step_are_not_taken_for_wrong_weights():
    model = ChangesItsTensors()
    with rg.record(model) as recording:
        model.generate([3, 1, 1])
    assert [(call.shape, call.check) for call in recording.calls] == [((1, 2, 5, 5), "passed")]


@torch.no_grad()
def test_a_layer_that_attends_twice_in_a_pass_has_two_entries():
    model = tiny_models.make("DiffLlamaForCausalLM", "DiffLlamaConfig", tiny_models.GROUPED)
    with rg.record(model) as one_pass:
        model(tiny_models.tokens())
    with rg.record(model) as recording:
        model.generate(tiny_models.tokens(), **NEW)
    assert [layer.name for layer in recording.layers] == [layer.name for layer in one_pass.layers]
    assert {layer.shape[-2:] for layer in recording.layers} == {(16, 16)}


@torch.no_grad()
def test_a_static_cache_of_a_model_that_calls_sdpa_itself():
    options = {**tiny_models.BODY, "multi_query": True, "parallel_attn": True, "bias": False}
    model = tiny_models.make("FalconForCausalLM", "FalconConfig", options)
    with rg.record(model) as recording:
        out = model.generate(tiny_models.tokens(), **NEW, cache_implementation="static")
    with rg.record(model) as whole:
        model(out[:, :-1], use_cache=False)
    assert_same(recording, whole)


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


@pytest.mark.parametrize("options", [{"num_beams": 3, "num_return_sequences": 2}, {"use_cache": False}])
@torch.no_grad()
def test_a_config_that_is_given_by_position_counts(options):
    from transformers import GenerationConfig

    model = tiny_models.build("GPT-2", "GPT2LMHeadModel")
    config = GenerationConfig(**NEW, **options)
    with rg.record(model) as recording:
        out = model.generate(tiny_models.tokens(), config)
    assert recording.missing == ()
    if "use_cache" in options:
        assert len(recording.steps) == NEW["max_new_tokens"]
        return
    with rg.record(model) as whole:
        model(out[:, :-1], use_cache=False)
    assert_same(recording, whole)


@torch.no_grad()
def test_beams_that_begin_with_embeddings_are_missing_in_words():
    model = tiny_models.build("Llama", "LlamaForCausalLM")
    embeddings = model.get_input_embeddings()(tiny_models.tokens())
    with pytest.raises(RecordError, match="begins with inputs_embeds"), rg.record(model):
        model.generate(inputs_embeds=embeddings, **NEW, num_beams=3)
