"""Recorded weights are those that eager attention shows, and the model does not notice that it is recorded."""

import copy

import pytest
import tiny_models
import torch

import regard as rg

ARCHITECTURES = list(tiny_models.MODELS)


def eager(model, inputs):
    """(part of the model, weights) of every layer, from a copy that builds them."""
    twin = copy.deepcopy(model)
    twin.set_attn_implementation("eager")
    output = twin(**inputs, output_attentions=True)
    if "encoder_attentions" not in output:
        return {"all": list(output.attentions)}
    parts = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}
    return {part: list(output[name]) for part, name in parts.items()}


def by_part(recording, parts):
    found = {part: [] for part in parts}
    for layer in recording.layers:
        part = "cross" if layer.cross else "encoder" if layer.name.startswith("encoder") else "decoder"
        found[part if "all" not in parts else "all"].append(recording[layer.name])
    return found


@pytest.mark.parametrize("name", ARCHITECTURES)
@torch.no_grad()
def test_recorded_weights_are_those_of_eager_attention(name):
    model, inputs = tiny_models.build(name), tiny_models.MODELS[name].inputs()
    with rg.record(model) as recording:
        model(**inputs)
    wanted = eager(model, inputs)
    found = by_part(recording, wanted)
    assert {part: len(layers) for part, layers in found.items()} == {part: len(w) for part, w in wanted.items()}
    for part, layers in wanted.items():
        for lazy, dense in zip(found[part], layers, strict=True):
            seen = ~lazy.empty_rows()
            assert seen.any()
            torch.testing.assert_close(lazy.dense()[seen], dense[seen], atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ARCHITECTURES)
@torch.no_grad()
def test_recording_changes_no_bit_of_the_output(name):
    model, inputs = tiny_models.build(name), tiny_models.MODELS[name].inputs()
    before = model(**inputs)
    with rg.record(model):
        during = model(**inputs)
    after = model(**inputs)
    for key, value in before.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(during[key], value) and torch.equal(after[key], value), key
