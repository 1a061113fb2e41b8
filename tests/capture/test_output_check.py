"""A recording proves itself: weights @ values is what the model computed, or the layer is named as missing."""

import contextlib
import copy
import threading

import pytest
import tiny_models
import torch
from torch import nn
from torch.nn.attention.bias import causal_lower_right, causal_upper_left
from torch.nn.functional import multi_head_attention_forward, scaled_dot_product_attention

import regard as rg
from regard.capture import _attend, _hugging_face, _multihead, _sdpa
from regard.errors import ChoiceError, IncompleteRecordingWarning, RecordError


class Direct(nn.Module):
    """One call of torch's function with what it was given."""

    def __init__(self, function=scaled_dot_product_attention, **options):
        super().__init__()
        self.function, self.options = function, options

    def forward(self, q, k, v):
        return self.function(q, k, v, **self.options)


def qkv(n=7, m=11, lead=(2, 3)):
    torch.manual_seed(3)
    return torch.randn(*lead, n, 16), torch.randn(*lead, m, 16), torch.randn(*lead, m, 16)


def checks(recording):
    return {call.check for call in recording.calls}


# A route that is wrong is noticed


def twice_as_sharp(module, query, key, value, attention_mask, scaling=None, **options):
    """An attention function that does not do what its arguments say."""
    del module, attention_mask, options
    return ((query @ key.mT * scaling * 2).softmax(-1) @ value).transpose(1, 2).contiguous(), None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@torch.no_grad()
def test_an_attention_function_that_computes_something_else_is_missing(dtype):
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register("twice_as_sharp", twice_as_sharp)
    AttentionMaskInterface.register("twice_as_sharp", sdpa_mask)
    model = tiny_models.make("LlamaModel", "LlamaConfig", tiny_models.BODY)
    for parameter in model.parameters():
        parameter.mul_(6)  # so that sharpness matters
    model.to(dtype).set_attn_implementation("twice_as_sharp")
    message = r"of layers\.0\.self_attn.*its weights do not give its output"
    with pytest.raises(RecordError, match=message), rg.record(model) as recording:
        model(tiny_models.tokens())
    assert [name for name, _ in recording.missing] == ["layers.0.self_attn", "layers.1.self_attn"]
    with rg.record(model, check="none") as recording:
        model(tiny_models.tokens())
    assert checks(recording) == {"none"}


class CallsTheFunction(nn.Module):
    """As the attention pool of CLIP's image encoder does."""

    def __init__(self):
        super().__init__()
        self.layer = nn.MultiheadAttention(12, 3)

    def forward(self, x):
        layer = self.layer
        return multi_head_attention_forward(
            x[:1], x, x, 12, 3, layer.in_proj_weight, layer.in_proj_bias, None, None, False, 0.0,
            layer.out_proj.weight, layer.out_proj.bias, training=self.training, need_weights=False,
        )[0]  # fmt: skip


def sharp_llama():
    model = tiny_models.make("LlamaModel", "LlamaConfig", tiny_models.BODY)
    for parameter in model.parameters():
        parameter.data.mul_(6)
    return model


ROUTES = {  # the file of a route, a model that takes it, and its inputs
    "torch's function": (_sdpa, Direct, qkv),
    "Hugging Face": (_hugging_face, sharp_llama, lambda: (tiny_models.tokens(),)),
    "torch's layer": (_multihead, lambda: nn.MultiheadAttention(12, 3), lambda: 3 * (3 * torch.randn(7, 2, 12),)),
    "torch's layer with heads for its fast path": (
        _multihead, lambda: nn.MultiheadAttention(12, 4, batch_first=True).eval(),
        lambda: 3 * (3 * torch.randn(2, 7, 12),),
    ),
    "torch's function for layers": (_multihead, CallsTheFunction, lambda: (3 * torch.randn(7, 2, 12),)),
}  # fmt: skip


@pytest.mark.parametrize("route", ROUTES)
@torch.no_grad()
def test_a_route_that_reads_queries_wrongly_is_noticed(route, monkeypatch):
    file, make, inputs = ROUTES[route]
    right = file.ObservedCall
    monkeypatch.setattr(file, "ObservedCall", lambda query, *rest, **options: right(2 * query, *rest, **options))
    model = make()
    with pytest.raises(RecordError, match="its weights do not give its output"), rg.record(model):
        model(*inputs())


def test_a_route_of_attend_that_is_broken_is_noticed(monkeypatch):
    right, layer = _attend._report, rg.nn.SelfAttention(12, 3)
    monkeypatch.setattr(_attend, "_report", lambda observer, result, value, p: right(observer, result, 2 * value, p))
    with pytest.raises(RecordError, match="its weights do not give its output"), rg.record(layer):
        layer(torch.randn(2, 7, 12))


def test_a_call_without_an_output_to_compare_with_is_missing(monkeypatch):
    monkeypatch.setattr(_sdpa, "PooledOutput", lambda *_: None)
    model = Direct()
    with pytest.raises(RecordError, match="of Direct: no output was seen"), rg.record(model):
        model(*qkv())


class TwoLayers(nn.Module):
    def __init__(self, wrong):
        super().__init__()
        self.right, self.wrong = nn.MultiheadAttention(12, 3, batch_first=True), wrong

    def forward(self, x):
        return self.right(x, x, x)[0] + self.wrong(x)


class WrittenOut(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        weights = self.dropout((x @ x.mT).softmax(-1).to(x.dtype))
        return torch.einsum("bij,bjd->bid", weights, x)


def test_the_rest_of_a_model_is_recorded_with_a_warning(tmp_path):
    model = TwoLayers(WrittenOut())
    warning = pytest.warns(IncompleteRecordingWarning, match="of wrong: it writes out softmax")
    with warning, rg.record(model, path=tmp_path / "run.regard") as recording:
        model(torch.randn(2, 7, 12))
    for known in (recording, rg.open(tmp_path / "run.regard")):
        assert [layer.name for layer in known.layers] == ["right"]
        assert [name for name, _ in known.missing] == ["wrong"]


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_attention_that_is_written_out_is_found_by_what_it_does(dropout):
    model = WrittenOut(dropout)
    with pytest.raises(RecordError, match=r"of WrittenOut: it writes out softmax.*rg.attend"), rg.record(model):
        model(torch.randn(2, 7, 12))


class WithLogSumExp(nn.Module):
    """Weights without a softmax, as Reformer has them."""

    def forward(self, x):
        scores = x @ x.mT
        return (scores - scores.logsumexp(-1, keepdim=True)).exp() @ x


class InBlocks(nn.Module):
    """A band of weights that is turned into blocks before the product, as in Longformer."""

    def forward(self, x):
        band = x.unfold(1, 3, 1)  # (batch, queries, dim, 3): each query sees its neighbours
        weights = (x[:, 1:-1, None] @ band).softmax(-1)  # (batch, queries, 1, 3)
        shifted = nn.functional.pad(weights, (0, x.shape[1] - 2)).flatten(2)  # one longer than the number of keys
        return shifted[..., : x.shape[1]] @ x


def written_in_parts(weights, x):
    buffer = torch.zeros_like(weights)
    buffer[:, :4], buffer[:, 4:] = weights[:, :4], weights[:, 4:]
    return buffer @ x


class Writes(nn.Module):
    """Attention in one expression of weights and values."""

    def __init__(self, expression):
        super().__init__()
        self.expression = expression

    def forward(self, x):
        return self.expression(x @ x.mT, x)


EXPRESSIONS = {
    "log_softmax": lambda s, x: s.log_softmax(-1).exp() @ x,
    "softmin": lambda s, x: nn.functional.softmin(-s, -1) @ x,
    "gumbel_softmax": lambda s, x: nn.functional.gumbel_softmax(s) @ x,
    "torch.special": lambda s, x: torch.special.softmax(s, -1) @ x,
    "rows in parts": lambda s, x: torch.cat([rows @ x for rows in s.softmax(-1).chunk(2, 1)], 1),
    "a sequence at a time": lambda s, x: torch.stack([w @ y for w, y in zip(s.softmax(-1).unbind(), x, strict=True)]),
    "one head with a bias": lambda s, x: torch.stack(
        [torch.addmm(y, w, y) for w, y in zip(s.softmax(-1), x, strict=True)]
    ),
    "a chain of products": lambda s, x: torch.stack(
        [torch.linalg.multi_dot([w, y @ y.mT, y]) for w, y in zip(s.softmax(-1), x, strict=True)]
    ),
    "a gate before the weights": lambda s, x: torch.sigmoid(x.mean()) * s.softmax(-1) @ x,
    "a mask before the weights": lambda s, x: torch.where(torch.ones(7, 7, dtype=torch.bool), s.softmax(-1), 0.0) @ x,
    "a buffer": lambda s, x: written_in_parts(s.softmax(-1), x),
    "inner": lambda s, x: torch.inner(s.softmax(-1), x[0].mT),
    "a sink": lambda s, x: torch.cat([s.softmax(-1), s[..., :1] * 0], -1) @ nn.functional.pad(x, (0, 0, 0, 1)),
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_softmax_in_other_words_is_found(expression):
    model = TwoLayers(Writes(EXPRESSIONS[expression]))
    with pytest.warns(IncompleteRecordingWarning, match="of wrong: it writes out softmax"), rg.record(model):
        model(torch.randn(2, 7, 12))


def test_torchs_own_kernel_of_a_layer_called_directly_is_missing():
    layer = nn.MultiheadAttention(12, 4)
    weights = layer.in_proj_weight, layer.in_proj_bias, layer.out_proj.weight, layer.out_proj.bias
    model = TwoLayers(Writes(lambda _, x: torch._native_multi_head_attention(x, x, x, 12, 4, *weights)[0]))
    warning = pytest.warns(IncompleteRecordingWarning, match="calls torch's kernel _native_multi_head_attention")
    with torch.no_grad(), warning, rg.record(model):
        model(torch.randn(2, 7, 12))


@pytest.mark.parametrize("layer", [WithLogSumExp, InBlocks])
def test_attention_that_is_written_out_in_other_ways_is_found(layer):
    message = f"of {layer.__name__}: it writes out softmax"
    model = layer()
    with pytest.raises(RecordError, match=message), rg.record(model):
        model(torch.randn(2, 7, 12))


def test_a_prediction_that_is_fed_back_is_not_taken_for_attention():
    head, back = nn.Linear(12, 5), nn.Linear(5, 12)  # as in speech models that are conditioned on their own guess
    model = TwoLayers(Writes(lambda _, x: back(head(x).softmax(-1))))
    with rg.record(model) as recording:
        model(torch.randn(2, 7, 12))
    assert recording.missing == ()


@pytest.mark.parametrize("kind", ["MixtralModel", "Qwen2MoeModel", "OlmoeModel"])
@torch.no_grad()
def test_the_router_of_a_mixture_is_not_taken_for_attention(kind):
    options = {**tiny_models.GROUPED, "num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2}
    model = tiny_models.make(kind, kind.replace("Model", "Config"), options)
    with rg.record(model) as recording:
        model(tiny_models.tokens())
    assert recording.missing == ()
    assert len(recording.layers) == 2


@pytest.mark.filterwarnings("ignore:the recording is not complete")
@torch.no_grad()
def test_encoder_layers_that_write_out_softmax_are_named():
    options = {**tiny_models.MODELS["T5"].options, "encoder_attention_type": "local", "local_radius": 3}
    model = tiny_models.make("LongT5Model", "LongT5Config", options)
    with rg.record(model) as recording:
        model(**tiny_models.translated())
    assert all(layer.name.startswith("decoder.") for layer in recording.layers)
    assert [name for name, _ in recording.missing] == [
        f"encoder.block.{number}.layer.0.LocalSelfAttention" for number in (0, 1)
    ]


# What is checked


def test_the_first_call_of_each_layer_is_checked_or_all_or_none():
    q, k, v = qkv()
    found = {}
    for check in ("first", "all", "none"):
        model = Direct()
        with rg.record(model, check=check) as recording:
            model(q, k, v)
            model(q, k, v)
        found[check] = [call.check for call in recording.calls]
    assert found == {"first": ["passed", "not first"], "all": ["passed"] * 2, "none": ["none"] * 2}


def test_a_call_of_another_kind_is_checked_again():
    (q, k, v), model = qkv(), Direct()
    with rg.record(model) as recording:
        model(q, k, v)
        model(q[..., :1, :], k, v)
    assert [call.check for call in recording.calls] == ["passed", "passed"]


def test_calls_with_dropout_are_marked():
    model = Direct(dropout_p=0.5)
    with rg.record(model) as recording:
        model(*qkv())
    assert checks(recording) == {"dropout"}


def test_another_check_is_refused_by_name():
    with pytest.raises(ChoiceError, match="check='some' is not one of 'first', 'all', 'none'"):  # noqa: SIM117
        with rg.record(Direct(), check="some"):
            pass


def test_rows_that_see_nothing_do_not_count():
    q, k, v = qkv()
    mask = torch.rand(7, 11) < 0.7
    mask[2], mask[:, 5] = False, False
    model = Direct(attn_mask=mask)
    with rg.record(model, check="all") as recording:
        for _ in range(5):
            model(q, k, v)
    assert checks(recording) == {"passed"}
    v[..., 5, :] = torch.nan  # hidden, but in torch's kernel it reaches every output
    with rg.record(model, check="all") as recording:
        model(q, k, v)
    assert checks(recording) == {"undecided"}


def warm_ups():
    """Inputs of a first call that prove nothing, and the mask that comes with them."""
    torch.manual_seed(3)
    _, _, x = qkv(n=7, m=7)
    nothing, one = torch.zeros(7, 7, dtype=torch.bool), torch.eye(7, dtype=torch.bool)
    return {
        "equal values": ((x, x, torch.ones_like(x)), None),
        "values of zero": ((x, x, torch.zeros_like(x)), None),
        "outputs that are not finite": ((x, x, x * torch.nan), None),
        "rows that see nothing": ((x, x, x), nothing),
        "one key": ((x[..., :1, :], x[..., :1, :], x[..., :1, :]), one[:1, :1]),
    }


@pytest.mark.parametrize("warm_up", warm_ups())
@torch.no_grad()
def test_a_first_call_that_proves_nothing_does_not_stand_for_the_next_one(warm_up, monkeypatch):
    right = _sdpa.ObservedCall

    def wrong(query, *rest, lse, **options):
        del lse  # which would tell that the query is another
        return right(2 * query, *rest, **options)

    monkeypatch.setattr(_sdpa, "ObservedCall", wrong)
    model = Direct()
    inputs, mask = warm_ups()[warm_up]
    with contextlib.ExitStack() as stack:
        stack.enter_context(pytest.warns(IncompleteRecordingWarning, match="do not give its output"))
        recording = stack.enter_context(rg.record(model))
        model.options = {"attn_mask": mask}
        model(*inputs)
        model.options = {"attn_mask": None if mask is None else torch.ones(7, 7, dtype=torch.bool)}
        model(*qkv(n=7, m=7))
    assert [call.check for call in recording.calls] == ["passed" if warm_up == "one key" else "undecided"]


@torch.no_grad()
def test_a_sequence_that_is_all_padding_is_not_the_one_that_is_compared(monkeypatch):
    right = _sdpa.ObservedCall
    monkeypatch.setattr(_sdpa, "ObservedCall", lambda query, *rest, **options: right(2 * query, *rest, **options))
    q, k, v = qkv(n=301, m=301)
    seen = torch.zeros(2, 1, 1, 301, dtype=torch.bool)
    seen[1, ..., -3:] = True  # left padding
    mask = seen & torch.ones(301, 301, dtype=torch.bool).tril()
    for _ in range(10):
        model = Direct(attn_mask=mask)
        with pytest.raises(RecordError, match="do not give its output"), rg.record(model):
            model(q, k, v)


@pytest.mark.parametrize("zero", ["in_proj_weight", "out_proj.weight"])
@torch.no_grad()
def test_a_layer_of_torch_whose_output_does_not_depend_on_weights_is_undecided(zero):
    layer = nn.MultiheadAttention(12, 3)
    x = torch.randn(7, 2, 12)
    with rg.record(layer) as recording:
        layer(x, x, x)
        layer.get_parameter(zero).zero_()
        layer(x, x, x)
    assert [call.check for call in recording.calls] == ["passed", "not first"]
    with rg.record(layer) as recording:
        layer(x, x, x)
        layer(x, x, x)
    assert [call.check for call in recording.calls] == ["undecided"] * 2


@torch.no_grad()
def test_another_attention_function_of_the_library_is_checked_again():
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    def as_told(module, query, key, value, attention_mask, scaling=None, **options):
        del module, attention_mask, options
        return ((query @ key.mT * scaling).softmax(-1) @ value).transpose(1, 2).contiguous(), None

    for function in (as_told, twice_as_sharp):
        AttentionInterface.register(function.__name__, function)
        AttentionMaskInterface.register(function.__name__, sdpa_mask)
    model = tiny_models.make("BertModel", "BertConfig", tiny_models.BODY)
    for parameter in model.parameters():
        parameter.mul_(6)  # so that sharpness matters
    with contextlib.ExitStack() as stack:
        stack.enter_context(pytest.warns(IncompleteRecordingWarning, match="do not give its output"))
        recording = stack.enter_context(rg.record(model))
        for function in (as_told, twice_as_sharp):
            model.set_attn_implementation(function.__name__)
            model(tiny_models.tokens())
    assert {(call.step, call.check) for call in recording.calls} == {(0, "passed")}


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@torch.no_grad()
def test_every_dtype_passes(dtype):
    model = Direct()
    with rg.record(model, check="all") as recording:
        model(*(x.to(dtype) * 3 for x in qkv()))
    assert checks(recording) == {"passed"}


def test_the_fast_path_of_torch_is_known_by_its_type():
    layer = nn.TransformerEncoderLayer(12, 4, 17, batch_first=True).eval()
    with torch.no_grad(), rg.record(layer) as recording:
        layer(torch.randn(2, 7, 12))
    assert checks(recording) == {"by type"}


# Layers that look like torch's


class Scaled(nn.MultiheadAttention):
    def forward(self, query, key, value, **options):
        return super().forward(3 * query, key, value, **options)


class ThroughSdpa(nn.MultiheadAttention):
    def forward(self, query, key, value, **options):
        del options
        q, k, v = (x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for x in (query, key, value))
        return scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2), None


class Nothing(nn.MultiheadAttention):
    """A subclass that changes nothing."""


def multihead_weights(layer, x, factor=1.0):
    torch_layer = nn.MultiheadAttention(layer.embed_dim, layer.num_heads, batch_first=True)
    torch_layer.load_state_dict(layer.state_dict())
    return torch_layer(factor * x, x, x, average_attn_weights=False)[1]


@pytest.mark.parametrize(("kind", "factor"), [(Scaled, 3.0), (Nothing, 1.0), (nn.MultiheadAttention, 1.0)])
@pytest.mark.parametrize("training", [False, True])
@torch.no_grad()
def test_a_subclass_of_multihead_attention_is_recorded_as_it_computes(kind, factor, training):
    layer, x = kind(12, 3, batch_first=True).train(training), 2 * torch.randn(2, 7, 12)
    with rg.record(layer) as recording:
        layer(x, x, x)
    assert checks(recording) == {"passed"}
    torch.testing.assert_close(recording[kind.__name__].dense(), multihead_weights(layer, x, factor))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("kind", ["normed", "drawn"])
@torch.no_grad()
def test_parameters_that_are_computed_are_read_no_more_often_than_by_the_model(kind, training):
    layer, x = nn.MultiheadAttention(12, 3, batch_first=True), torch.randn(2, 7, 12)
    if kind == "normed":  # each reading in training improves its estimate of the norm, which changes the weight
        torch.nn.utils.parametrizations.spectral_norm(layer, "in_proj_weight")
    else:
        torch.nn.utils.parametrize.register_parametrization(layer, "in_proj_weight", nn.Dropout(0.5))
    layer.train(training)
    twin = copy.deepcopy(layer)
    torch.manual_seed(5)
    plain = twin(x, x, x)[0]
    torch.manual_seed(5)
    with rg.record(layer) as recording:
        assert torch.equal(layer(x, x, x)[0], plain)
    assert checks(recording) == {"passed"}
    assert all(torch.equal(a, b) for a, b in zip(layer.buffers(), twin.buffers(), strict=True))


@torch.no_grad()
def test_a_subclass_that_calls_sdpa_has_one_entry():
    layer, x = ThroughSdpa(12, 3, batch_first=True), torch.randn(2, 7, 12)
    with rg.record(layer) as recording:
        layer(x, x, x)
    heads = x.unflatten(-1, (3, 4)).transpose(1, 2)
    assert [layer.name for layer in recording.layers] == ["ThroughSdpa"]
    torch.testing.assert_close(recording["ThroughSdpa"].dense(), (heads @ heads.mT / 2).softmax(-1))


@torch.no_grad()
def test_quantizable_attention_of_torch_is_missing():
    from torch.ao.nn.quantizable import MultiheadAttention

    layer, x = MultiheadAttention(12, 3, batch_first=True), torch.randn(2, 7, 12)
    with pytest.raises(RecordError, match="writes out softmax"), rg.record(layer):
        layer(x, x, x)


@pytest.mark.parametrize("options", [{}, {"add_bias_kv": True}, {"add_zero_attn": True}, {"kdim": 5, "vdim": 9}])
@pytest.mark.parametrize("batch_first", [False, True])
@torch.no_grad()
def test_layers_of_torch_with_all_their_options_pass(options, batch_first):
    layer = nn.MultiheadAttention(12, 3, batch_first=batch_first, **options)
    for vector in (layer.bias_k, layer.bias_v, layer.in_proj_bias, layer.out_proj.bias):
        if vector is not None:
            nn.init.normal_(vector)
    q, k, v = torch.randn(7, 2, 12), torch.randn(5, 2, layer.kdim), torch.randn(5, 2, layer.vdim)
    with rg.record(layer, check="all") as recording:
        layer(*((x.transpose(0, 1) for x in (q, k, v)) if batch_first else (q, k, v)))
        layer(q[:, 0], k[:, 0], v[:, 0])
    assert checks(recording) == {"passed"}


@torch.no_grad()
def test_a_module_that_calls_the_function_of_multihead_attention_is_recorded():
    model, x = CallsTheFunction(), torch.randn(7, 2, 12)
    with rg.record(model) as recording:
        model(x)
    assert checks(recording) == {"passed"}
    wanted = model.layer(x[:1], x, x, average_attn_weights=False)[1]
    torch.testing.assert_close(recording["CallsTheFunction"].dense(), wanted)


class Rotated(nn.TransformerEncoderLayer):
    """The usual way to add rotary positions."""

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        del attn_mask, key_padding_mask, is_causal
        heads = x.unflatten(-1, (4, 3)).transpose(1, 2)
        return scaled_dot_product_attention(-heads, heads, heads).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("training", [False, True])
def test_an_encoder_layer_with_a_block_of_its_own_has_no_invented_entry(training):
    layer, x = Rotated(12, 4, 17, batch_first=True).train(training), torch.randn(2, 7, 12)
    with rg.record(layer) as recording:
        layer(x)
    assert [layer.name for layer in recording.layers] == ["Rotated"]
    assert recording.missing == ()
    heads = x.unflatten(-1, (4, 3)).transpose(1, 2)
    torch.testing.assert_close(recording["Rotated"].dense(), (-heads @ heads.mT / 3**0.5).softmax(-1))


class Tripled(nn.LayerNorm):
    def forward(self, x):
        return 3 * super().forward(x)


@torch.no_grad()
def test_a_norm_that_the_fast_path_does_not_call_is_not_called_by_the_recording():
    layer, x = nn.TransformerEncoderLayer(12, 4, 17, batch_first=True, norm_first=True).eval(), torch.randn(2, 7, 12)
    layer.norm1 = Tripled(12).eval()
    with rg.record(layer) as recording:
        layer(x)
    plain = nn.functional.layer_norm(x, (12,), layer.norm1.weight, layer.norm1.bias)
    wanted = layer.self_attn(plain, plain, plain, average_attn_weights=False)[1]
    torch.testing.assert_close(recording["self_attn"].dense(), wanted)


# Calls of sdpa that torch accepts


@pytest.mark.parametrize("bias", [causal_lower_right, causal_upper_left])
@pytest.mark.parametrize(("n", "m"), [(7, 7), (7, 11)])
@torch.no_grad()
def test_causal_biases_of_torch_are_the_causal_masks_that_they_are(bias, n, m):
    q, k, v = qkv(n, m)
    model = Direct(attn_mask=bias(n, m))
    plain = model(q, k, v)
    with rg.record(model) as recording:
        assert torch.equal(model(q, k, v), plain)
    assert checks(recording) == {"passed"}
    torch.testing.assert_close(recording["Direct"] @ v, plain)
    offset = m - n if bias is causal_lower_right else 0
    visible = torch.ones(n, m, dtype=torch.bool).tril(offset)
    assert torch.equal(recording["Direct"].dense() > 0, visible.expand(2, 3, n, m))
    with torch.autocast("cpu", torch.bfloat16), rg.record(model) as recording:  # torch casts below the bias
        model(q, k, v)
    assert checks(recording) == {"passed"}


class Hides(torch.Tensor):
    """A mask that says what is hidden, and finds itself among the arguments by name."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is not scaled_dot_product_attention:
            return super().__torch_function__(func, types, args, kwargs or {})
        mask = kwargs["attn_mask"].as_subclass(torch.Tensor)
        return func(*args, **{**kwargs, "attn_mask": ~mask})


@torch.no_grad()
def test_a_class_of_masks_is_called_as_the_model_calls_it_and_is_not_taken_for_its_numbers():
    hidden = (torch.arange(7)[:, None] + torch.arange(11)) % 3 == 0
    model = Direct(attn_mask=hidden.as_subclass(Hides))
    plain = model(*qkv())
    with pytest.raises(RecordError, match="of Direct: attn_mask is a Hides, a class of"), rg.record(model) as recording:
        assert torch.equal(model(*qkv()), plain)
    assert [name for name, _ in recording.missing] == ["Direct"]


SHAPES = {
    "5-D query and 4-D mask": ((5, 2, 3, 7, 16), (5, 2, 3, 11, 16), (2, 3, 7, 11)),
    "5-D query and 3-D mask": ((5, 2, 3, 7, 16), (5, 2, 3, 11, 16), (3, 7, 11)),
    "3-D key beside 4-D query": ((2, 3, 7, 16), (3, 11, 16), None),
    "2-D key beside 4-D query": ((2, 3, 7, 16), (11, 16), None),
    "4-D key beside 3-D query": ((3, 7, 16), (2, 3, 11, 16), None),
    "one query head, several key heads": ((2, 1, 7, 16), (2, 3, 11, 16), None),
    "4-D mask beside 4-D query of one sequence": ((1, 3, 7, 16), (2, 3, 11, 16), (2, 1, 7, 11)),
}


@pytest.mark.parametrize(
    ("query", "key", "value", "options"),
    [
        ((6, 7, 16), (3, 11, 16), (3, 11, 16), {"enable_gqa": True}),
        ((2, 1, 7, 16), (2, 1, 11, 16), (2, 3, 11, 16), {}),
        ((2, 6, 7, 16), (2, 3, 11, 16), (2, 2, 11, 16), {"enable_gqa": True}),
    ],
)
@torch.no_grad()
def test_heads_that_torch_shares(query, key, value, options):
    q, k, v = torch.randn(query), torch.randn(key), torch.randn(value)
    model = Direct(**options)
    with rg.record(model) as recording:
        output = model(q, k, v)
    assert checks(recording) == {"passed"}
    found = recording["Direct"].dense()
    shared = k if "enable_gqa" not in options else k.repeat_interleave(2, -3)
    torch.testing.assert_close(found, (q @ shared.mT / 4).softmax(-1).expand(found.shape))
    assert output.shape[-3] == found.shape[1]


@pytest.mark.parametrize("case", SHAPES)
@torch.no_grad()
def test_shapes_that_torch_broadcasts(case):
    query, key, mask_shape = SHAPES[case]
    q, k, v = torch.randn(query), torch.randn(key), torch.randn(key)
    mask = None if mask_shape is None else torch.rand(mask_shape) < 0.7
    model = Direct(attn_mask=mask)
    with rg.record(model) as recording:
        output = model(q, k, v)
    logits = q @ k.mT / 4
    wanted = (logits if mask is None else logits.masked_fill(~mask, -torch.inf)).softmax(-1)
    assert checks(recording) == {"passed"}
    torch.testing.assert_close(recording["Direct"].dense(), wanted.reshape(recording["Direct"].shape))
    torch.testing.assert_close(wanted @ v, output)


@pytest.mark.parametrize("overload", ["packet", "default"])
@torch.no_grad()
def test_the_operator_of_torch_called_directly_is_recorded(overload):
    operator = torch.ops.aten.scaled_dot_product_attention
    model = Direct(operator if overload == "packet" else operator.default, is_causal=True)
    with rg.record(model) as recording:
        model(*qkv(7, 7))
    assert recording.layers[0].mask == "causal('top-left')"


@torch.no_grad()
def test_a_kernel_of_torch_called_directly_is_missing():
    model = Direct(torch.ops.aten._scaled_dot_product_flash_attention_for_cpu)
    with pytest.raises(RecordError, match="it calls torch's kernel _scaled_dot_product_flash"), rg.record(model):
        model(*qkv())


class KeepsItsMask(nn.Module):
    """A mask in a buffer that is filled anew for every call, as static caches do."""

    def __init__(self, counted):
        super().__init__()
        self.register_buffer("mask", torch.ones(7, 11, dtype=torch.bool))
        self.counted = counted

    def forward(self, q, k, v, hidden):
        mask = self.mask if self.counted else self.mask.data  # torch does not count what is changed through .data
        mask.fill_(True)
        mask[:, hidden] = False
        return scaled_dot_product_attention(q, k, v, attn_mask=self.mask)


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("check", ["first", "all"])
def test_a_mask_that_changes_in_place_is_read_again(mode, counted, check):
    with mode():
        model = KeepsItsMask(counted)
        q, k, v = qkv()
        with rg.record(model, check=check) as recording:
            for hidden in (2, 9):
                model(q, k, v, hidden)
    for step, hidden in enumerate((2, 9)):
        assert (recording["KeepsItsMask", step].received() == 0).nonzero()[:, -1].unique().tolist() == [hidden]


class InOnePass(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = KeepsItsMask(counted=True)

    def forward(self, q, k, v):
        return self.layer(q, k, v, 2) + self.layer(q, k, v, 9)


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_a_mask_that_changes_within_a_pass_is_read_again(mode):
    with mode():
        model = InOnePass()
        with rg.record(model) as recording:
            model(*qkv())
    for name, hidden in (("layer", 2), ("layer#2", 9)):
        assert (recording[name].received() == 0).nonzero()[:, -1].unique().tolist() == [hidden]


# Modules that call attend


class Attends(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.options = options

    def forward(self, q, k, v):
        return rg.attend(q, k, v, **self.options).output


@pytest.mark.parametrize(
    "options",
    [{}, {"mask": rg.masks.window(2, 1, "top-left")}, {"normaliser": rg.normalisers.sparsemax()}, {"plan": "tiled"}],
)
@torch.no_grad()
def test_attend_is_recorded_in_any_module(options):
    (q, k, v), model = qkv(), nn.ModuleDict({"layer": Attends(**options)})
    model.forward = model["layer"].__call__
    with rg.record(model) as recording:
        output = model(q, k, v)
    assert [layer.name for layer in recording.layers] == ["layer"]
    assert checks(recording) == {"passed"}
    torch.testing.assert_close(recording["layer"].dense() @ v, output)


@torch.no_grad()
def test_a_layer_that_returns_the_weights_of_attend_is_recorded_once():
    layer, x = rg.nn.SelfAttention(12, 3), torch.randn(2, 7, 12)
    with rg.record(layer, heads=[0, 2], dtype=torch.float16) as recording:
        _, weights = layer(x)
    (call,) = recording.calls
    assert (call.heads, call.query.dtype, call.shape) == ((0, 2), torch.float16, (2, 2, 7, 7))
    torch.testing.assert_close(call.weights().dense().float(), weights[:, [0, 2]], atol=1e-2, rtol=0)


def test_attend_in_another_thread_is_none_of_the_models_business():
    model, (q, k, v) = Attends(), qkv()
    with rg.record(model) as recording:
        thread = threading.Thread(target=lambda: rg.attend(q, k, v))
        thread.start()
        thread.join()
        rg.attend(q, k, v)
        model(q, k, v)
    assert len(recording.calls) == 1


@pytest.mark.parametrize("model", [Direct(), Attends()])
@pytest.mark.parametrize(("n", "m", "lead"), [(0, 5, (2, 3)), (5, 0, (2, 3)), (5, 5, (0, 3))])
def test_empty_calls_are_recorded(model, n, m, lead):
    with rg.record(model) as recording:
        model(*qkv(n, m, lead))
    assert recording.calls[0].shape == (*lead, n, m)


@torch.no_grad()
def test_functional_sdpa_of_regard_is_recorded():
    model = Direct(rg.nn.functional.scaled_dot_product_attention, is_causal=True)
    with rg.record(model) as recording:
        model(*qkv(7, 7))
    assert recording.layers[0].mask == "causal('top-left')"


# Several recordings


def test_recordings_may_end_in_another_order_than_they_began():
    (q, k, v), model, bert = qkv(), Direct(), tiny_models.build("BERT")
    inputs = tiny_models.MODELS["BERT"].inputs()
    for one in (model, bert):
        with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
            a = first.enter_context(rg.record(one))
            b = second.enter_context(rg.record(one))
            one(q, k, v) if one is model else one(**inputs)
            first.close()
            one(q, k, v) if one is model else one(**inputs)
            second.close()
        assert (len(a.steps), len(b.steps)) == (1, 2)
        assert "forward" not in vars(one)


def test_threads_record_one_model_each_for_itself():
    model, (q, k, v), recordings = Direct(), qkv(), {}
    begun, ran = threading.Barrier(2), threading.Barrier(2)

    def run(number):
        with rg.record(model) as recordings[number]:
            begun.wait()
            for _ in range(number + 1):
                model(q, k, v)
            ran.wait()

    threads = [threading.Thread(target=run, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(recordings[number].steps) for number in (0, 1)] == [1, 2]
    assert "forward" not in vars(model)
