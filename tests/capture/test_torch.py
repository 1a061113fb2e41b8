"""Models of torch alone: direct calls, nn.MultiheadAttention, and encoders whose fast path calls nothing."""

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import regard as rg
from regard.engine import index
from regard.errors import RecordError


class Block(nn.Module):
    """Written by hand: one module, one call."""

    def __init__(self, **options):
        super().__init__()
        self.project = nn.Linear(12, 36)
        self.options = options

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (3, 4)).transpose(1, 2) for t in self.project(x).chunk(3, -1))
        self.weights = (q @ k.mT / 2).softmax(-1)
        return scaled_dot_product_attention(q, k, v, **self.options).transpose(1, 2).flatten(2)


def encoder(**options):
    layer = nn.TransformerEncoderLayer(12, 4, 17, batch_first=True, **options)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=not options.get("norm_first")).eval()


def padding():
    mask = torch.zeros(2, 7, dtype=torch.bool)
    mask[1, 4:] = True
    return mask


@torch.no_grad()
def test_a_direct_call_is_recorded_where_it_happens():
    model = nn.Sequential(Block(), nn.Linear(12, 12), Block())
    x = torch.randn(2, 7, 12)
    plain = model(x)
    with rg.record(model) as recording:
        assert torch.equal(model(x), plain)
    assert [layer.name for layer in recording.layers] == ["0", "2"]
    for name in ("0", "2"):
        torch.testing.assert_close(recording[name].dense(), model.get_submodule(name).weights)


@torch.no_grad()
def test_the_kernel_gives_its_statistic_away():
    model = Block()
    with rg.record(model) as recording:
        model(torch.randn(2, 23, 12))
    (call,) = recording.calls
    whole = rg.Weights(call.query, call.key, call.spec.score, call.spec.mask)
    torch.testing.assert_close(call.lse, whole.logsumexp())
    assert torch.equal(call.weights().logsumexp(), call.lse), "nobody computes it again"


@pytest.mark.parametrize("mask", ["nothing", "causal", "some rows see nothing", "bias"])
@torch.no_grad()
def test_with_the_statistic_a_block_needs_its_own_scores_alone(mask, monkeypatch):
    options = {
        "nothing": {},
        "causal": {"is_causal": True},
        "some rows see nothing": {"attn_mask": torch.rand(23, 23) < 0.1},
        "bias": {"attn_mask": torch.randn(2, 3, 23, 23)},
    }[mask]
    model = Block(**options)
    with rg.record(model) as recording:
        model(torch.randn(2, 23, 12))
    (call,) = recording.calls
    assert call.lse is not None
    whole = rg.Weights(call.query, call.key, call.spec.score, call.spec.mask).dense()
    monkeypatch.setattr(index, "_row_blocks", None)  # no whole row is made
    weights = recording["Block"]
    for picked in ((..., slice(3, 20), slice(17, 22)), (1, 2, 5, 7), (..., slice(None), [11, 3, 3]), (0, [2, 1])):
        wanted = whole[picked]
        found = weights[picked] if picked != (0, [2, 1]) else weights[(*picked, ..., slice(5))]
        torch.testing.assert_close(found, wanted if picked != (0, [2, 1]) else wanted[..., :5], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("masked", ["nothing", "padding", "causal"])
@pytest.mark.parametrize("training", [False, True])
@torch.no_grad()
def test_an_encoder_is_recorded_with_its_fast_path_and_without(norm_first, masked, training):
    model = encoder(norm_first=norm_first, dropout=0.0).train(training)
    x = torch.randn(2, 7, 12)
    options = {
        "nothing": {},
        "padding": {"src_key_padding_mask": padding()},
        "causal": {"mask": nn.Transformer.generate_square_subsequent_mask(7)},
    }[masked]
    plain = model(x, **options)
    with rg.record(model) as recording:
        assert torch.equal(model(x, **options), plain)
    assert [layer.name for layer in recording.layers] == ["layers.0.self_attn", "layers.1.self_attn"]
    first = model.layers[0]
    given = first.norm1(x) if norm_first else x
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        wanted = first.self_attn(
            given, given, given,
            attn_mask=options.get("mask"), key_padding_mask=options.get("src_key_padding_mask"),
            average_attn_weights=False,
        )[1]  # fmt: skip
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    found = recording["layers.0.self_attn"].dense()
    real = ~padding() if masked == "padding" else torch.ones(2, 7, dtype=torch.bool)
    for b in range(2):
        torch.testing.assert_close(found[b][:, real[b]], wanted[b][:, real[b]], atol=1e-6, rtol=1e-5)


@torch.no_grad()
def test_a_decoder_has_self_and_cross_attention():
    model = nn.Transformer(12, 3, 1, 1, 17, batch_first=True).eval()
    with rg.record(model) as recording:
        model(torch.randn(2, 7, 12), torch.randn(2, 5, 12))
    found = {layer.name: (layer.shape, layer.cross) for layer in recording.layers}
    assert found == {
        "encoder.layers.0.self_attn": ((2, 3, 7, 7), False),
        "decoder.layers.0.self_attn": ((2, 3, 5, 5), False),
        "decoder.layers.0.multihead_attn": ((2, 3, 5, 7), True),
    }


def test_a_model_is_left_as_it_was_also_when_it_raises():
    model = nn.Sequential(Block(), nn.Linear(11, 12))
    hooks = [(len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()]
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), rg.record(model):
        model(torch.randn(2, 7, 12))
    assert [(len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()] == hooks


def test_gradients_flow_through_a_recorded_model():
    model, x = Block(), torch.randn(2, 7, 12)
    model(x).sum().backward()
    plain = model.project.weight.grad.clone()
    model.zero_grad()
    with rg.record(model):
        model(x).sum().backward()
    assert torch.equal(model.project.weight.grad, plain)


@torch.no_grad()
def test_several_passes_are_several_steps():
    model = Block()
    with rg.record(model) as recording:
        for length in (5, 7, 11):
            model(torch.randn(2, length, 12))
    (layer,) = recording.layers
    assert layer.steps == (0, 1, 2)
    assert tuple(recording["Block", 2].shape) == (2, 3, 11, 11)
    with pytest.raises(ValueError, match="steps 0, 1, 2"):
        recording["Block"]


@torch.no_grad()
def test_only_selected_layers_heads_and_steps_are_kept():
    model = nn.Sequential(Block(), Block())
    x = torch.randn(2, 7, 12)
    with rg.record(model, layers="1", heads=[2, 0], steps=[1]) as recording:
        model(x)
        model(x)
    (layer,) = recording.layers
    assert (layer.name, layer.steps, layer.shape) == ("1", (1,), (2, 2, 7, 7))
    torch.testing.assert_close(recording["1"].dense(), model[1].weights[:, [2, 0]])


def test_nothing_recorded_is_an_error_that_says_why():
    with pytest.raises(RecordError, match="did not run"), rg.record(Block()):
        pass
    silent = nn.Linear(2, 2)
    with pytest.raises(RecordError, match="in no way that can be watched"), rg.record(silent):
        silent(torch.randn(2, 2))


def test_a_compiled_model_is_refused_by_name():
    with pytest.raises(RecordError, match=r"compiled by torch\.compile"), rg.record(torch.compile(Block())):
        pass
