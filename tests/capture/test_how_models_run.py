"""Recording under every way to run a model: implementations, precision, training, threads, nested recordings."""

import contextlib
import copy
import inspect
import io
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest
import tiny_models
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

import regard as rg
from regard.errors import ChoiceError, DtypeError, IncompleteRecordingWarning, RecordError


class Direct(nn.Module):
    """One call of torch's function with what it was given."""

    def __init__(self, **options):
        super().__init__()
        self.options = options

    def forward(self, q, k, v):
        return scaled_dot_product_attention(q, k, v, **self.options)


def recorded(model, *args, **options):
    """The recording of one pass, whose output is that without it."""
    state = torch.get_rng_state()
    plain = model(*args, **options)
    torch.set_rng_state(state)
    with rg.record(model) as recording:
        again = model(*args, **options)
    for one, two in zip(tensors(plain), tensors(again), strict=True):
        assert torch.equal(one, two)
    return recording


def tensors(output):
    return [output] if isinstance(output, torch.Tensor) else [output[0]]


def assert_same(one, two, tolerance=1e-6):
    for layer in two.layers:
        seen = ~two[layer.name].empty_rows()
        torch.testing.assert_close(
            one[layer.name].dense()[seen], two[layer.name].dense()[seen], atol=tolerance, rtol=0, check_dtype=False
        )


EAGER = [(name, "eager") for name in ("BERT", "GPT-2", "Mistral", "Gemma 2", "T5")]
FLEX = [(name, "flex_attention") for name in ("BERT", "Llama", "Mistral", "Gemma 2")]


@pytest.mark.parametrize(("name", "implementation"), [*EAGER, *FLEX])
@torch.no_grad()
def test_other_implementations_give_the_same_weights(name, implementation):
    model, inputs = tiny_models.build(name), tiny_models.MODELS[name].inputs()
    twin = copy.deepcopy(model)
    twin.set_attn_implementation(implementation)
    with torch.compiler.set_stance("force_eager"):  # flex attention without its compiler
        other = recorded(twin, **inputs)
    assert_same(other, recorded(model, **inputs))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
@pytest.mark.parametrize("name", ["BERT", "Gemma 3"])
def test_weights_do_not_depend_on_gradients(name, mode):
    model, inputs = tiny_models.build(name), tiny_models.MODELS[name].inputs()
    with mode():
        recording = recorded(model, **inputs)
    with torch.no_grad():
        wanted = recorded(model, **inputs)
    assert_same(recording, wanted)
    assert not any(call.query.requires_grad for call in recording.calls)
    recording[recording.layers[0].name].entropy()  # also outside the mode


def test_weights_of_a_training_model_are_those_before_dropout():
    torch.manual_seed(3)
    q, k, v = torch.randn(3, 2, 3, 7, 16).unbind()
    recording = recorded(Direct(dropout_p=0.5), q, k, v)
    torch.testing.assert_close(recording["Direct"].dense(), (q @ k.mT / 4).softmax(-1))
    layer = nn.TransformerEncoderLayer(12, 3, 17, dropout=0.5, batch_first=True).train()
    weights = recorded(layer, torch.randn(2, 7, 12))["self_attn"]
    torch.testing.assert_close(weights.dense().sum(-1), torch.ones(2, 3, 7))


@pytest.mark.parametrize("name", ["BERT", "Llama", "Gemma 3"])
@torch.no_grad()
def test_half_precision_is_kept_as_it_is(name):
    model, inputs = copy.deepcopy(tiny_models.build(name)).bfloat16(), tiny_models.MODELS[name].inputs()
    recording = recorded(model, **inputs)
    assert {call.query.dtype for call in recording.calls} == {torch.bfloat16}
    twin = copy.deepcopy(model)
    twin.set_attn_implementation("eager")
    eager = twin(**inputs, output_attentions=True).attentions
    for layer, dense in zip(recording.layers, eager, strict=True):
        seen = ~recording[layer.name].empty_rows()
        found = recording[layer.name].dense()[seen]
        torch.testing.assert_close(found.float(), dense[seen].float(), atol=3e-2, rtol=0)


@pytest.mark.parametrize("name", ["BERT", "Llama"])
@torch.no_grad()
def test_autocast_is_followed(name):
    model, inputs = tiny_models.build(name), tiny_models.MODELS[name].inputs()
    with torch.autocast("cpu", torch.bfloat16):
        recording = recorded(model, **inputs)
    assert {call.query.dtype for call in recording.calls} == {torch.bfloat16}
    assert_same(recording, recorded(model, **inputs), tolerance=2e-2)


@pytest.mark.parametrize("lead", [(), (2,), (2, 3), (2, 5, 3)])
@pytest.mark.parametrize("masked", [False, True])
def test_calls_of_any_number_of_dimensions(lead, masked):
    q, k, v = torch.randn(*lead, 7, 16), torch.randn(*lead, 11, 16), torch.randn(*lead, 11, 16)
    mask = torch.rand(*lead, 7, 11) < 0.7 if masked else None
    logits = q @ k.mT / 4
    wanted = (logits if mask is None else logits.masked_fill(~mask, -torch.inf)).softmax(-1)
    found = recorded(Direct(attn_mask=mask), q, k, v)["Direct"].dense()
    torch.testing.assert_close(found.reshape(wanted.shape), wanted)


@pytest.mark.parametrize(("queries", "keys"), [((1, 3), (2, 3)), ((2, 3), (1, 1)), ((5, 1, 3), (1, 2, 3))])
def test_queries_and_keys_of_one_batch_meet_those_of_many(queries, keys):
    q, k, v = torch.randn(*queries, 7, 16), torch.randn(*keys, 11, 16), torch.randn(*keys, 11, 16)
    wanted = (q @ k.mT / 4).softmax(-1)
    found = recorded(Direct(), q, k, v)["Direct"].dense()
    torch.testing.assert_close(found, wanted.flatten(0, -4))


@torch.no_grad()
def test_layers_of_regard_are_recorded():
    x, y = torch.randn(2, 7, 12), torch.randn(2, 5, 12)
    both = nn.ModuleDict({
        "heads": rg.nn.MultiheadAttention(12, 3, batch_first=True),
        "additive": rg.nn.AdditiveAttention(12, 12, hidden=17),
    })  # fmt: skip
    with rg.record(both["heads"]) as recording:
        _, lazy = both["heads"](x, x, x, need_weights="lazy")
    torch.testing.assert_close(recording["MultiheadAttention"].dense(), lazy.dense())
    with rg.record(both["additive"]) as recording:
        _, lazy = both["additive"](y, x, x)
    torch.testing.assert_close(recording["AdditiveAttention"].dense(), lazy.dense())


@torch.no_grad()
def test_two_models_and_one_model_twice():
    bert, gpt = tiny_models.build("BERT"), tiny_models.build("GPT-2")
    inputs = tiny_models.MODELS["BERT"].inputs()
    block = Direct()
    q = torch.randn(2, 3, 7, 16)
    with rg.record(bert) as one, rg.record(gpt) as two, rg.record(bert) as three, rg.record(block) as four:
        bert(**inputs)
        gpt(**inputs)
        with rg.record(block) as five:
            block(q, q, q)
    for recording, model in ((one, bert), (two, gpt), (three, bert)):
        assert_same(recording, recorded(model, **inputs))
        assert len(recording.calls) == 2
    assert torch.equal(four["Direct"].dense(), five["Direct"].dense())


@torch.no_grad()
def test_the_library_is_as_it_was_even_after_an_exception():
    from transformers.modeling_utils import AttentionInterface

    before = AttentionInterface.get_interface
    model = copy.deepcopy(tiny_models.build("BERT"))

    def broken(*_):
        raise ArithmeticError

    model.pooler.register_forward_pre_hook(broken)
    with pytest.raises(ArithmeticError), rg.record(model):
        model(**tiny_models.MODELS["BERT"].inputs())
    assert AttentionInterface.get_interface is before
    assert "forward" not in vars(model)


def test_recordings_in_several_threads_do_not_meet():
    names, found = ("BERT", "GPT-2", "Llama"), {}
    start = threading.Barrier(len(names))

    def run(name):
        model, inputs = tiny_models.build(name), tiny_models.MODELS[name].inputs()
        start.wait()
        with torch.no_grad(), rg.record(model) as found[name]:
            model(**inputs)

    for name in names:
        tiny_models.build(name)
    threads = [threading.Thread(target=run, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in names:
        assert_same(found[name], recorded(tiny_models.build(name), **tiny_models.MODELS[name].inputs()))


@pytest.mark.parametrize("name", ["BERT", None])
def test_a_model_that_runs_in_another_thread_is_refused(name):
    model = Direct() if name is None else tiny_models.build(name)
    q = torch.randn(2, 3, 7, 16)
    inputs = {"q": q, "k": q, "v": q} if name is None else tiny_models.MODELS[name].inputs()
    with pytest.raises(RecordError, match="another thread"), rg.record(model):
        in_a_thread(model, inputs)


def in_a_thread(model, inputs):
    thread = threading.Thread(target=lambda: model(**inputs))
    thread.start()
    thread.join()


def test_an_unsupported_argument_does_not_stop_the_model():
    model, out = copy.deepcopy(tiny_models.build("BERT")), None
    attention = model.encoder.layer[1].attention.self
    forward = attention.forward
    attention.forward = lambda *args, **options: forward(*args, **options | {"s_aux": torch.zeros(4)})
    inputs = tiny_models.MODELS["BERT"].inputs()
    warning = pytest.warns(IncompleteRecordingWarning, match=r"encoder\.layer\.1\.attention\.self.*s_aux")
    with warning, rg.record(model) as recording:
        out = model(**inputs)
    assert out is not None
    name = "encoder.layer.1.attention.self"
    assert recording.missing == ((name, "it attends with s_aux, which recordings do not know"),)
    assert [layer.name for layer in recording.layers] == ["encoder.layer.0.attention.self"]
    assert torch.equal(out.last_hidden_state, tiny_models.build("BERT")(**inputs).last_hidden_state)


@pytest.mark.parametrize("how", ["wrapped", "in place", "its forward"])
def test_a_compiled_part_is_refused_by_name(how):
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    if how == "wrapped":
        model = nn.Sequential(model[0], cast("nn.Module", torch.compile(model[1])))
    elif how == "in place":
        model[1].compile()
    else:
        model[1].forward = torch.compile(model[1].forward)
    with pytest.raises(RecordError, match="'1' of this model is compiled"), rg.record(model):
        pass


def test_a_model_that_is_compiled_meanwhile_is_refused_and_runs():
    model, out = copy.deepcopy(tiny_models.build("BERT")), None
    inputs = tiny_models.MODELS["BERT"].inputs()
    with pytest.raises(RecordError, match=r"BertModel was run through torch\.compile"), rg.record(model):
        out = cast("nn.Module", torch.compile(model, backend="eager"))(**inputs)
    assert out is not None
    torch.testing.assert_close(out.last_hidden_state, tiny_models.build("BERT")(**inputs).last_hidden_state)


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_layer_that_backward_runs_again_is_recorded_once(reentrant):
    model = copy.deepcopy(tiny_models.build("Llama", "LlamaForCausalLM")).train()
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    with rg.record(model) as recording:
        model(tiny_models.tokens(), labels=tiny_models.tokens(), use_cache=False).loss.backward()
    assert [layer.steps for layer in recording.layers] == [(0,), (0,)]
    assert recording.steps == (0,)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"heads": [9]}, ChoiceError, "it has 4"),
        ({"heads": []}, ChoiceError, "asks for nothing"),
        ({"steps": 5}, RecordError, r"called in encoder\.layer\.0\.attention\.self, .* in steps 0 to 0"),
        ({"layers": "encoder.layer.1"}, RecordError, r"called in encoder\.layer\.0\.attention\.self"),
        ({"layers": "nobody"}, ChoiceError, "no module of this model"),
        ({"dtype": torch.int8}, DtypeError, "cannot hold queries"),
    ],
)
def test_layers_heads_and_steps_that_do_not_exist_are_refused_by_name(options, error, message):
    model, inputs = tiny_models.build("BERT"), tiny_models.MODELS["BERT"].inputs()
    with pytest.raises(error, match=message), rg.record(model, **options):
        model(**inputs)


@pytest.mark.plain
def test_recording_something_that_is_no_model_is_refused():
    with pytest.raises(RecordError, match="takes a torch module, and this is str"), rg.record("minilm"):
        pass


def test_one_head_and_one_step_need_no_list():
    model, inputs = tiny_models.build("BERT"), tiny_models.MODELS["BERT"].inputs()
    with torch.no_grad(), rg.record(model, heads=2, steps=1) as recording:
        model(**inputs)
        model(**inputs)
    assert [(layer.heads, layer.steps) for layer in recording.layers] == [((2,), (1,))] * 2


def test_a_model_that_computes_softmax_itself_gets_an_explaining_error():
    model = tiny_models.make("DebertaV2Model", "DebertaV2Config", tiny_models.BODY)
    with pytest.raises(RecordError, match=r"DebertaV2Model ran, but .*encoder\.layer\.0\.attention"), rg.record(model):
        model(tiny_models.tokens())


# What else is done with a model while it is recorded


def through_pickle(model):
    return pickle.loads(pickle.dumps(model))  # noqa: S301  our own


def through_a_file(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, through_pickle, through_a_file])
@torch.no_grad()
def test_a_copy_made_while_recording_is_a_model_of_its_own(duplicate):
    layer, x = nn.TransformerEncoderLayer(12, 4, 17, batch_first=True).eval(), torch.randn(2, 7, 12)
    with rg.record(layer) as recording:
        plain = layer(x)
        twin = duplicate(layer)
        for parameter in twin.parameters():
            parameter.zero_()
        assert not twin(x).any()
    assert len(recording.calls) == 1  # of the model, not of its copy
    assert not twin(x).any()
    assert torch.equal(layer(x), plain)
    with rg.record(twin) as recording:
        twin(x)
    assert len(recording.calls) == 1


def test_a_copy_shares_a_function_that_was_put_into_its_place():
    layer = nn.Linear(3, 3)
    model = nn.Sequential(layer)
    model.forward = lambda x, *, factor=2: layer(factor * x)
    with contextlib.suppress(RecordError), rg.record(model):
        assert list(inspect.signature(model.forward).parameters) == ["x", "factor"]
        twin = copy.deepcopy(model)
    with contextlib.suppress(RecordError), rg.record(twin):
        pass
    x = torch.randn(2, 3)
    assert torch.equal(twin(x, factor=3), model(x, factor=3))


def test_the_signature_of_forward_stays():
    model = tiny_models.build("BERT")
    before = inspect.signature(model.forward)
    with contextlib.suppress(RecordError), rg.record(model):
        assert inspect.signature(model.forward) == before


class Counting(TorchFunctionMode):
    calls = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        return func(*args, **(kwargs or {}))


def test_a_torch_function_mode_of_the_user_stays_when_the_recording_ends():
    model, q, counting = Direct(), torch.randn(2, 3, 7, 16), Counting()
    depth = torch._C._len_torch_function_stack()
    with contextlib.ExitStack() as inner:
        with rg.record(model) as recording:
            inner.enter_context(counting)
            model(q, q, q)
        before = counting.calls
        model(q, q, q)
        assert counting.calls == before + 1
    assert len(recording.calls) == 1
    assert torch._C._len_torch_function_stack() == depth


def test_a_recording_may_end_in_another_thread():
    model, q, depth = Direct(), torch.randn(2, 3, 7, 16), torch._C._len_torch_function_stack()
    block = contextlib.ExitStack()
    first = block.enter_context(rg.record(model))
    model(q, q, q)
    with ThreadPoolExecutor(1) as another:
        another.submit(block.close).result()
    with rg.record(model) as second:
        model(q, q, q)
    assert len(first.calls) == len(second.calls) == 1
    assert torch._C._len_torch_function_stack() == depth


class CallsAFunction(nn.Module):
    """A layer that is recorded, and one that calls a function."""

    def __init__(self, function):
        super().__init__()
        self.seen, self.function = Direct(), function

    def forward(self, x):
        return self.seen(x, x, x) + self.function(x)


def test_a_compiled_function_runs_and_is_refused_if_it_attends():
    x = torch.randn(2, 3, 7, 16)
    attends = CallsAFunction(torch.compile(lambda x: Direct()(x, x, x), backend="eager", fullgraph=True))
    scales = CallsAFunction(torch.compile(lambda x: x / x.norm(), backend="eager", fullgraph=True))
    plain, out = attends(x), None
    for _ in range(2):  # the second time it is compiled already
        with pytest.raises(RecordError, match=r"run through torch\.compile"), rg.record(attends):
            out = attends(x)
        assert out is not None
        torch.testing.assert_close(out, plain)
    with rg.record(scales) as recording:
        scales(x)
    assert [layer.name for layer in recording.layers] == ["seen"]


def nested(x):
    rows = [torch.randn(3, 5, 16), torch.randn(3, 7, 16)]
    return scaled_dot_product_attention(*[torch.nested.nested_tensor(rows)] * 3).to_padded_tensor(0.0)[:, :, :5].mean()


def on_meta(x):
    q = x.to("meta")
    return scaled_dot_product_attention(q, q, q).numel()


def with_more_values(x):
    return scaled_dot_product_attention(x, x, torch.cat([x, x], -2)).mean()


WITHOUT_FORM = {
    "nested": (nested, "nested tensors"),
    "meta": (on_meta, "hold no numbers"),
    "vmap": (torch.vmap(lambda x: scaled_dot_product_attention(x, x, x)), r"a transform of torch\.func"),
    "grad": (torch.func.grad(lambda x: scaled_dot_product_attention(x, x, x).sum()), r"a transform of torch\.func"),
    "more values than keys": (with_more_values, "7 keys and 14 values"),
}


@pytest.mark.parametrize("check", ["first", "none"])
@pytest.mark.parametrize("case", WITHOUT_FORM)
def test_calls_without_a_form_are_named_in_words(case, check):
    function, reason = WITHOUT_FORM[case]
    model, x = CallsAFunction(function), torch.randn(2, 3, 7, 16)
    warning = pytest.warns(IncompleteRecordingWarning, match=f"of CallsAFunction: .*{reason}")
    with torch.no_grad(), warning, rg.record(model, check=check) as recording:
        model(x)
    assert [layer.name for layer in recording.layers] == ["seen"]
