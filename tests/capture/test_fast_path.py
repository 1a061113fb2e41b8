"""torch's fast path for encoder layers: recording changes no output, and shows only what ran."""

import copy
from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch.nn.functional import linear, scaled_dot_product_attention

import regard as rg
from regard.errors import RecordError

X = torch.randn(2, 7, 12, generator=torch.Generator().manual_seed(3))


class Same(nn.TransformerEncoderLayer):
    """A subclass that changes nothing."""


class Rotated(nn.TransformerEncoderLayer):
    """The usual way to add rotary positions."""

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        del attn_mask, key_padding_mask, is_causal
        heads = x.unflatten(-1, (4, 3)).transpose(1, 2)
        return scaled_dot_product_attention(-heads, heads, heads).transpose(1, 2).flatten(2)


class Conditioned(nn.TransformerEncoderLayer):
    def forward(self, src):
        return super().forward(src + 1)


class RotatedAndConditioned(Rotated):
    def forward(self, src):
        return super().forward(src + 1)


class Scaled(nn.MultiheadAttention):
    def forward(self, query, key, value, **options):
        return super().forward(3 * query, key, value, **options)


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def layer(kind=nn.TransformerEncoderLayer, **parts):
    """An encoder layer that torch computes in its fast path, with other modules inside."""
    torch.manual_seed(5)
    made = kind(12, 4, 17, batch_first=True)
    for name, part in parts.items():
        setattr(made, name, part)
    return made.eval()


LAYERS = {
    "torch's own": layer,
    "a subclass that changes nothing": lambda: layer(Same),
    "an attention block of its own": lambda: layer(Rotated),
    "a forward of its own": lambda: layer(Conditioned),
    "both of its own": lambda: layer(RotatedAndConditioned),
    "an attention module of its own": lambda: layer(self_attn=Scaled(12, 4, batch_first=True)),
    "a linear layer of its own": lambda: layer(linear1=Doubled(12, 17)),
    "several": lambda: nn.TransformerEncoder(layer(Rotated), 2).eval(),
}


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("kind", LAYERS)
@torch.no_grad()
def test_recording_does_not_change_what_torch_computes(kind, fast, monkeypatch):
    monkeypatch.setattr(torch.backends.mha, "_is_fastpath_enabled", fast)
    model, recorded = LAYERS[kind](), None
    plain = model(X)
    try:
        with rg.record(model):
            recorded = model(X)
    except RecordError as error:
        assert "does not call" in str(error)  # noqa: PT017  what is asserted is the output
    assert recorded is not None
    assert torch.equal(recorded, plain)


@pytest.mark.parametrize(
    ("kind", "name", "what"),
    [
        ("an attention block of its own", "Rotated", "the layer's own _sa_block"),
        ("both of its own", "RotatedAndConditioned", "the layer's own _sa_block"),
        ("an attention module of its own", "self_attn", "the forward of its self_attn"),
    ],
)
@torch.no_grad()
def test_code_that_the_fast_path_does_not_call_is_missing(kind, name, what, monkeypatch):
    model = LAYERS[kind]()
    with pytest.raises(RecordError, match="nothing was recorded"), rg.record(model) as recording:
        model(X)
    ((missing, reason),) = recording.missing
    assert missing == name
    assert f"does not call {what}" in reason
    monkeypatch.setattr(torch.backends.mha, "_is_fastpath_enabled", False)  # as the reason advises
    with rg.record(model) as recording:
        model(X)
    assert [(call.name, call.check) for call in recording.calls] == [(name, "passed")]


@pytest.mark.parametrize(("kind", "given"), [(Same, X), (Conditioned, X + 1)])
@torch.no_grad()
def test_a_subclass_without_attention_of_its_own_is_recorded_in_the_fast_path(kind, given):
    model = layer(kind)
    with rg.record(model) as recording:
        model(X)
    assert [(call.name, call.check) for call in recording.calls] == [("self_attn", "by type")]
    wanted = model.self_attn(given, given, given, average_attn_weights=False)[1]
    torch.testing.assert_close(recording["self_attn"].dense(), wanted)
    assert nn.TransformerEncoderLayer.forward.__module__ == "torch.nn.modules.transformer"
    assert "_sa_block" not in vars(model)


@torch.no_grad()
def test_a_forward_that_was_put_into_a_layer_is_recorded_as_it_runs():
    model = layer()
    original = model.forward
    model.forward = lambda src: original(2 * src)
    wanted = model.self_attn(2 * X, 2 * X, 2 * X, average_attn_weights=False)[1]
    with rg.record(model) as recording:
        model(X)
    assert [call.check for call in recording.calls] == ["passed"]
    torch.testing.assert_close(recording["self_attn"].dense(), wanted)
    model.forward = lambda src: src
    with pytest.raises(RecordError, match="called attention in no way"), rg.record(model) as recording:
        model(X)
    assert recording.layers == ()


class Holds(nn.Module):
    """A model that keeps a layer where torch does not look for it, or puts another one into its place meanwhile."""

    def __init__(self, inner):
        super().__init__()
        self.inner = [inner]

    def forward(self, x):
        return self.inner[0](x)


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("torch's own", None),
        ("an attention block of its own", "the layer's own _sa_block"),
        ("an attention module of its own", "the forward of its self_attn"),
    ],
)
@torch.no_grad()
def test_a_layer_that_is_not_registered_runs_as_without_a_recording(kind, what, fast, monkeypatch):
    monkeypatch.setattr(torch.backends.mha, "_is_fastpath_enabled", fast)
    model, recorded = Holds(LAYERS[kind]()), None
    plain, missing = model(X), fast and what is not None
    expected = pytest.raises(RecordError, match=f"of Holds: .*{what}") if missing else nullcontext()
    with expected, rg.record(model) as recording:
        recorded = model(X)
    assert torch.equal(recorded, plain)
    assert [call.name for call in recording.calls] == ([] if missing else ["Holds"])
    assert "_sa_block" not in vars(model.inner[0])


@pytest.mark.filterwarnings("ignore:the recording is not complete")
@torch.no_grad()
def test_a_layer_that_another_one_replaces_meanwhile_runs_as_without_a_recording():
    model, other = nn.Sequential(layer()).eval(), layer(Rotated)
    plain = other(X)
    with rg.record(model) as recording:
        model(X)
        model[0] = other
        assert torch.equal(model(X), plain)
    assert [call.name for call in recording.calls] == ["0.self_attn"]
    assert [name for name, _ in recording.missing] == ["Sequential"]


@pytest.mark.parametrize("kind", ["torch's own", "an attention block of its own"])
@torch.no_grad()
def test_a_model_that_is_not_recorded_runs_as_without_a_recording(kind):
    other = LAYERS[kind]()
    plain, model = other(X), layer()
    with rg.record(model) as recording:
        assert torch.equal(other(X), plain)
        model(X)
    assert [call.name for call in recording.calls] == ["self_attn"]


@torch.no_grad()
def test_the_fast_path_of_two_recordings_at_once():
    model = nn.TransformerEncoder(layer(), 2).eval()
    plain = copy.deepcopy(model)(X)
    with rg.record(model) as outer, rg.record(model.layers[1]) as inner:
        assert torch.equal(model(X), plain)
    assert [one.name for one in outer.layers] == ["layers.0.self_attn", "layers.1.self_attn"]
    assert [one.name for one in inner.layers] == ["self_attn"]


def masks_of_numbers():
    """Masks (mask, padding) that are not of True and False alone; some of their numbers are neither 0 nor -inf."""
    torch.manual_seed(3)
    distance = (torch.arange(7)[:, None] - torch.arange(7)).abs()
    hidden = torch.zeros(2, 7, dtype=torch.bool)
    hidden[0, 5:] = True
    slopes = torch.where(distance < 3, 0.0, -distance.float())
    causal = torch.full((7, 7), -torch.inf).triu(1)
    return {
        "by distance": (slopes, None),
        "by distance, causal": (slopes + causal, None),
        "by distance, padded": (slopes, hidden),
        "of every head": (slopes.expand(8, 7, 7) * torch.arange(8)[:, None, None], None),
        "causal": (causal, None),
        "padding of numbers": (None, torch.where(hidden, -3.0, 0.0)),
    }


@pytest.mark.filterwarnings("ignore:Converting mask without torch.bool dtype")
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("case", masks_of_numbers())
@torch.no_grad()
def test_the_fast_path_takes_numbers_in_a_mask_for_true_and_false_and_so_does_a_recording(case, norm_first):
    mask, padding = masks_of_numbers()[case]
    layer = nn.TransformerEncoderLayer(16, 4, 12, batch_first=True, norm_first=norm_first).eval()
    x = 2 * torch.randn(2, 7, 16)
    with rg.record(layer) as recording:
        output = layer(x, src_mask=mask, src_key_padding_mask=padding)
    assert [call.check for call in recording.calls] == ["by type"]
    attention, given = layer.self_attn, layer.norm1(x) if norm_first else x
    value = linear(given, attention.in_proj_weight[32:], attention.in_proj_bias[32:]).unflatten(-1, (4, 4))
    pooled = recording[0].dense() @ value.transpose(1, 2)
    y = x + attention.out_proj(pooled.transpose(1, 2).flatten(2))
    feed = layer._ff_block
    wanted = y + feed(layer.norm2(y)) if norm_first else layer.norm2((z := layer.norm1(y)) + feed(z))
    torch.testing.assert_close(output, wanted, atol=1e-5, rtol=0)
