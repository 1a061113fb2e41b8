"""Our layer inside torch's models: swapped in and out, in training and in eval, where torch would not call it."""

import copy
import pickle
import warnings

import pytest
import tiny_models
import torch
from torch import nn

from regard import errors
from regard.nn import MultiheadAttention, restore, swap

WIDTH, HEADS = 22, 2  # an even number of heads, as the fast path wants


def encoder(layers=2, **options):
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 13, dropout=0.0, batch_first=True, **options)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=not options)


def padded():
    """Sequences of 17, 11 and no tokens."""
    return torch.randn(3, 17, WIDTH), torch.arange(17) >= torch.tensor([[17], [11], [0]])


@pytest.fixture
def calls(monkeypatch):
    """How often each layer's forward ran. A hook would not do: with hooks torch leaves the fast path by itself."""
    found = {"torch": 0, "regard": 0}
    for name, kind in (("torch", nn.MultiheadAttention), ("regard", MultiheadAttention)):
        monkeypatch.setattr(kind, "forward", counted(kind.forward, found, name))
    return found


def counted(forward, found, name):
    def run(*args, **options):
        found[name] += 1
        return forward(*args, **options)

    return run


@pytest.mark.parametrize("options", [{}, {"norm_first": True}, {"activation": "gelu"}], ids=str)
def test_in_eval_our_forward_runs_and_a_fully_padded_sequence_is_finite(options, calls):
    model, (x, padding) = encoder(**options).eval(), padded()
    with torch.no_grad():
        model(x[:2], src_key_padding_mask=padding[:2])
        assert calls == {"torch": 0, "regard": 0}, "torch has changed: its fast path calls the layer now"
        swap(model)
        output = model(x, src_key_padding_mask=padding)
    assert calls == {"torch": 0, "regard": 2}
    assert output.isfinite().all()


def test_a_lone_layer_in_eval_calls_ours(calls):
    layer, (x, padding) = encoder().layers[0].eval(), padded()
    swap(layer)
    with torch.no_grad():
        output = layer(x, src_key_padding_mask=padding)
    assert calls["regard"] == 1 and output.isfinite().all()


def test_ours_put_in_by_hand_is_called_too(calls):
    model, (x, padding) = encoder().eval(), padded()
    for layer in model.layers:
        layer.self_attn = MultiheadAttention(WIDTH, HEADS, batch_first=True).eval()
    with torch.no_grad():
        assert model(x, src_key_padding_mask=padding).isfinite().all()
    assert calls == {"torch": 0, "regard": 2}


def test_an_encoder_built_around_ours_calls_it(calls):
    layer, (x, padding) = encoder().layers[0], padded()
    swap(layer)
    with warnings.catch_warnings(action="ignore"):  # torch says that it will not pack sequences
        model = nn.TransformerEncoder(layer, 2).eval()
    with torch.no_grad():
        assert model(x, src_key_padding_mask=padding).isfinite().all()
    assert calls == {"torch": 0, "regard": 2}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("mask", ["padding", "causal", "nothing"])
def test_a_swapped_encoder_equals_the_original(training, grad, mask):
    model, (x, padding) = encoder().train(training), padded()
    x, padding = x[:2], padding[:2]
    causal = nn.Transformer.generate_square_subsequent_mask(17)
    options = {"padding": {"src_key_padding_mask": padding}, "causal": {"mask": causal}, "nothing": {}}[mask]
    with torch.set_grad_enabled(grad):
        expected = model(x, **options)
        with swap(model):
            output = model(x, **options)
    torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_a_swapped_decoder_layer_equals_the_original(training):
    layer = nn.TransformerDecoderLayer(WIDTH, HEADS, 13, dropout=0.0, batch_first=True).train(training)
    target, memory = torch.randn(2, 5, WIDTH), torch.randn(2, 17, WIDTH)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    options = {"tgt_mask": mask, "tgt_is_causal": True, "memory_key_padding_mask": padded()[1][:2]}
    expected = layer(target, memory, **options)
    assert swap(layer).names == ("self_attn", "multihead_attn")
    torch.testing.assert_close(layer(target, memory, **options), expected, rtol=1e-4, atol=1e-5)


def test_a_whole_transformer_equals_the_original():
    model = nn.Transformer(WIDTH, HEADS, 1, 1, 13, dropout=0.0, batch_first=True)
    source, target = torch.randn(2, 17, WIDTH), torch.randn(2, 5, WIDTH)
    options = {"src_key_padding_mask": padded()[1][:2], "tgt_mask": nn.Transformer.generate_square_subsequent_mask(5)}
    expected = model(source, target, **options)
    assert len(swap(model).names) == 3
    torch.testing.assert_close(model(source, target, **options), expected, rtol=1e-4, atol=1e-5)


def test_parameters_hooks_and_modes_stay():
    model = encoder()
    layer = model.layers[1].self_attn
    layer.in_proj_weight.requires_grad_(False)
    layer.eval()
    seen = []
    layer.register_forward_hook(lambda *_: seen.append(1))
    before = dict(model.named_parameters())
    swap(model)
    assert model.layers[1].self_attn is layer and type(layer) is MultiheadAttention
    assert not layer.training and model.layers[0].self_attn.training
    after = dict(model.named_parameters())
    assert before.keys() == after.keys() and all(before[name] is after[name] for name in before)
    model(padded()[0])
    assert seen == [1]


def test_an_optimiser_still_trains_a_swapped_model():
    model, (x, _) = encoder(), padded()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    swap(model)
    weight = model.layers[0].self_attn.in_proj_weight
    before = weight.detach().clone()
    model(x).pow(2).mean().backward()
    optimiser.step()
    restore(model)
    assert model.layers[0].self_attn.in_proj_weight is weight and not torch.equal(weight, before)


@pytest.mark.parametrize("options", [{}, {"kdim": 5}, {"bias": False, "add_bias_kv": True}], ids=str)
def test_after_restore_a_layer_is_what_it_was(options):
    layer = nn.MultiheadAttention(WIDTH, HEADS, **options)
    state = dict(vars(layer))
    query, key, value = torch.randn(5, WIDTH), torch.randn(7, options.get("kdim", WIDTH)), torch.randn(7, WIDTH)
    expected = layer(query, key, value)
    assert swap(layer).names == ("",)
    assert restore(layer) == ("",)
    assert type(layer) is nn.MultiheadAttention and vars(layer) == state
    for one, two in zip(layer(query, key, value), expected, strict=True):
        assert torch.equal(one, two)


def test_after_restore_the_fast_path_is_back(calls):
    model, (x, padding) = encoder().eval(), padded()
    with torch.no_grad():
        expected = model(x, src_key_padding_mask=padding)
        swap(model)
        names = restore(model)
        assert names == ("layers.0.self_attn", "layers.1.self_attn")
        assert torch.equal(model(x, src_key_padding_mask=padding), expected)
    assert calls == {"torch": 0, "regard": 0}


def through_pickle(model):
    return pickle.loads(pickle.dumps(model))  # noqa: S301  our own


@pytest.mark.parametrize("copied", [copy.deepcopy, through_pickle])
def test_a_copy_of_a_swapped_model_can_be_restored(copied):
    model = encoder()
    swap(model)
    twin = copied(model)
    restore(twin)
    kinds = [type(m.layers[0].self_attn) for m in (model, twin)]
    assert kinds == [MultiheadAttention, nn.MultiheadAttention]


def test_the_context_turns_back_also_after_an_error():
    model = encoder()
    with pytest.raises(ZeroDivisionError), swap(model) as swapped:
        swapped.names.index("layers.1.self_attn") / 0
    assert type(model.layers[0].self_attn) is nn.MultiheadAttention


def test_restore_leaves_layers_that_were_never_torchs():
    model = nn.ModuleList([nn.MultiheadAttention(WIDTH, HEADS), MultiheadAttention(WIDTH, HEADS)])
    with swap(model) as swapped:
        assert swapped.names == ("0",)
    assert [type(layer) for layer in model] == [nn.MultiheadAttention, MultiheadAttention]


class Other(nn.MultiheadAttention):
    """It may compute anything."""


def test_a_model_without_torchs_layers_is_refused():
    with pytest.raises(errors.ChoiceError, match=r"Linear has no torch.nn.MultiheadAttention\. .* rg\.record\(model\)"):
        swap(nn.Linear(2, 3))
    with pytest.raises(errors.ChoiceError, match=r"BertModel has no .* as in models of Hugging Face, .* rg\.record"):
        swap(tiny_models.build("BERT"))
    with pytest.raises(errors.ChoiceError, match=r"Sequential has no .*; it has .*\.Other"):
        swap(nn.Sequential(Other(WIDTH, HEADS)))
    with pytest.raises(errors.ChoiceError, match=r"Linear has no layer that regard.nn.swap"):
        restore(nn.Linear(2, 3))


def test_nested_tensors_are_for_self_attention():
    layer = MultiheadAttention(WIDTH, HEADS, batch_first=True)
    with warnings.catch_warnings(action="ignore"):  # nested tensors are a prototype, says torch
        x = torch.nested.nested_tensor([torch.randn(5, WIDTH), torch.randn(3, WIDTH)])
        y = torch.nested.nested_tensor([torch.randn(5, WIDTH), torch.randn(3, WIDTH)])
    output, weights = layer(x, x, x, need_weights="lazy")
    alone = next(iter(x.unbind()))
    torch.testing.assert_close(output.unbind()[0], layer(alone, alone, alone)[0])
    assert weights.shape == (2, HEADS, 5, 5) and weights[1, :, :, 3:].sum() == 0
    with pytest.raises(errors.LayerError, match="self-attention"):
        layer(x, y, y)
