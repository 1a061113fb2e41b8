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


class ByKeyword(torch.nn.Module):
    """Calls the attention interface with names for all that it gives, as Parakeet does."""

    is_causal = False
    num_key_value_groups = 1

    def __init__(self, implementation):
        super().__init__()
        self.implementation = implementation

    def forward(self, q, k, v, mask=None):
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
        from transformers.models.llama.modeling_llama import eager_attention_forward

        attend = ALL_ATTENTION_FUNCTIONS.get_interface(self.implementation, eager_attention_forward)
        return attend(self, query=q, key=k, value=v, attention_mask=mask, scaling=0.25, dropout=0.0)[0]


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("masked", [False, True])
@torch.no_grad()
def test_attention_interface_with_keywords_is_recorded(implementation, masked):
    q, k, v = torch.randn(2, 3, 7, 16), torch.randn(2, 3, 11, 16), torch.randn(2, 3, 11, 16)
    hidden = torch.zeros(2, 1, 7, 11).masked_fill(torch.rand(2, 1, 7, 11) < 0.3, -torch.inf) if masked else None
    model = ByKeyword(implementation)
    with rg.record(model) as recording:
        output = model(q, k, v, hidden)
    scores = q @ k.mT * 0.25 + (0 if hidden is None else hidden)
    torch.testing.assert_close(recording["ByKeyword"].dense(), scores.softmax(-1))
    torch.testing.assert_close(output, (scores.softmax(-1) @ v).transpose(1, 2))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@torch.no_grad()
def test_large_scores_that_eager_attention_rounds_are_not_taken_for_wrong(dtype):
    """Scores around 640 are rounded to multiples of 4 in bfloat16, and to those of 0.5 in float16."""
    q, v = 20 + torch.randn(2, 3, 7, 16), torch.randn(2, 3, 11, 16)
    k = 8 + 0.02 * torch.randn(2, 3, 11, 16)
    model = ByKeyword("eager")
    with rg.record(model, check="all") as recording:
        model(*(x.to(dtype) for x in (q, k, v)))
    assert [call.check for call in recording.calls] == ["passed"]
