"""MultiheadAttention beside torch's: the same wherever torch's is defined, and better where it is not."""

import copy
import io
import pickle
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import normal, seeded
from torch import Tensor, nn

import regard as rg
from regard import errors
from regard.nn import MultiheadAttention

NEVER = -torch.inf
HEAD = 7  # width of a head


class Case(NamedTuple):
    options: dict[str, Any]  # of the constructor
    batched: bool
    shared: str  # which of query, key and value are one tensor
    n: int
    m: int
    attn: str
    padding: str
    hint: bool
    average: bool
    seed: int

    @property
    def batch(self) -> int:
        return 2 if self.batched else 1

    def layers(self) -> tuple[nn.MultiheadAttention, MultiheadAttention]:
        torch.manual_seed(self.seed)
        theirs = nn.MultiheadAttention(**self.options, dtype=torch.float64)
        for parameter in theirs.parameters():  # biases start at 0, where nothing could be seen of them
            nn.init.normal_(parameter, std=0.5)
        ours = MultiheadAttention(**self.options, dtype=torch.float64)
        ours.load_state_dict(theirs.state_dict())
        return theirs, ours

    def tensors(self) -> list[Tensor]:
        """Query, key and value, with a gradient each."""
        g, width = seeded(self.seed), self.options["embed_dim"]
        widths = (width, self.options["kdim"] or width, self.options["vdim"] or width)
        rows = (self.n, self.m, self.m)
        found = [self.shaped(normal(g, self.batch, r, w)) for r, w in zip(rows, widths, strict=True)]
        return [t.clone().requires_grad_() for t in found]

    def shaped(self, x: Tensor) -> Tensor:
        if not self.batched:
            return x.squeeze(0)
        return x if self.options["batch_first"] else x.transpose(0, 1)

    def inputs(self, tensors: list[Tensor]) -> list[Tensor]:
        query, key, value = tensors
        return {"none": [query, key, value], "memory": [query, key, key], "all": [query, query, query]}[self.shared]

    def masks(self) -> dict[str, Tensor | None]:
        g, heads = seeded(self.seed + 1), self.options["num_heads"]
        lead = () if self.attn.endswith("2") else (self.batch * heads,)
        attn = kind_of_mask(self.attn.rstrip("23"), (*lead, self.n, self.m), g)
        padding = kind_of_mask(self.padding, (self.batch, self.m) if self.batched else (self.m,), g)
        return {"attn_mask": attn, "key_padding_mask": padding}


def kind_of_mask(kind: str, shape: tuple[int, ...], g: torch.Generator) -> Tensor | None:
    """Every query sees the first key: without one torch is not defined."""
    hidden = torch.rand(shape, generator=g) < 0.4
    hidden[..., 0] = False
    if kind == "causal":
        hidden = torch.ones(shape, dtype=torch.bool).triu(1)
    if kind == "none":
        return None
    if kind in ("bool", "causal"):
        return hidden
    if kind == "nothing":
        return torch.zeros(shape, dtype=torch.bool)
    numbers = normal(g, *shape) if kind == "float" else torch.zeros(shape, dtype=torch.float64)
    numbers = numbers.masked_fill(hidden, NEVER)
    return numbers.requires_grad_() if kind == "float" else numbers


@st.composite
def cases(draw: st.DrawFn) -> Case:
    heads = draw(st.sampled_from([1, 2, 3]))
    shared = draw(st.sampled_from(["none", "memory", "all"]))
    other = st.sampled_from([None, 11]) if shared == "none" else st.just(None)
    options = {
        "embed_dim": heads * HEAD,
        "num_heads": heads,
        "bias": draw(st.booleans()),
        "add_bias_kv": draw(st.booleans()),
        "add_zero_attn": draw(st.booleans()),
        "kdim": draw(other),
        "vdim": draw(other),
        "batch_first": draw(st.booleans()),
    }
    n, m = draw(st.sampled_from([(5, 19), (19, 5), (5, 13), (23, 17), (1, 17)]))
    m = n if shared == "all" else m
    attn = draw(st.sampled_from(["none2", "bool2", "bool3", "never2", "float2", "float3", "causal2", "nothing2"]))
    hint = attn == "causal2" and draw(st.booleans())
    padding = draw(st.sampled_from(["none", "bool", "never", "float", "nothing"]))
    last = draw(st.booleans()), draw(st.integers(0, 2**31))
    return Case(options, draw(st.booleans()), shared, n, m, attn, padding, hint, *last)


@given(cases())
def test_outputs_weights_and_gradients_are_those_of_torch(case):
    theirs, ours = case.layers()
    found = [answer(layer, case) for layer in (theirs, ours)]
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(two, one, rtol=1e-9, atol=1e-9)


def answer(layer: nn.MultiheadAttention, case: Case) -> list[Tensor | None]:
    """Output, weights, and the gradients of inputs, masks and parameters; torch is defined for need_weights=True."""
    tensors, masks = case.tensors(), case.masks()
    output, weights = layer(
        *case.inputs(tensors), **masks, average_attn_weights=case.average, is_causal=case.hint, need_weights=True
    )
    g = seeded(case.seed + 2)
    loss = (output * normal(g, *output.shape)).sum() + (weights * normal(g, *weights.shape)).sum()
    leaves = [*tensors, *(t for t in masks.values() if t is not None and t.requires_grad), *layer.parameters()]
    return [output, weights, *torch.autograd.grad(loss, leaves, allow_unused=True)]


@given(cases())
def test_asking_for_weights_does_not_change_the_output(case):
    _, ours = case.layers()
    outputs, weights = zip(*(ask(ours, case, need) for need in (False, True, "lazy")), strict=True)
    assert torch.equal(outputs[0], outputs[1]) and torch.equal(outputs[0], outputs[2])
    assert weights[0] is None
    assert isinstance(weights[2], rg.Weights) and weights[2].ndim == (4 if case.batched else 3)
    dense = weights[2].dense()
    torch.testing.assert_close(weights[1], dense.mean(-3) if case.average else dense, rtol=1e-9, atol=1e-9)


def ask(layer, case, need):
    masks = {name: None if t is None else t.detach() for name, t in case.masks().items()}
    inputs = case.inputs([t.detach() for t in case.tensors()])
    with torch.no_grad():
        return layer(*inputs, **masks, need_weights=need, average_attn_weights=case.average, is_causal=case.hint)


@pytest.mark.parametrize("need", [False, True, "lazy"])
def test_without_weights_gradients_are_those_of_torch_too(need):
    """The way without a graph of weights: the fused kernel's."""
    theirs, ours = pair(21, 3, batch_first=True)
    x = torch.randn(2, 17, 21, dtype=torch.float64)
    mask = nn.Transformer.generate_square_subsequent_mask(17, dtype=torch.float64)
    found = []
    for layer in (theirs, ours):
        leaf = x.clone().requires_grad_()
        wanted = need if layer is ours else False
        layer(leaf, leaf, leaf, attn_mask=mask, is_causal=True, need_weights=wanted)[0].pow(2).sum().backward()
        found.append([leaf.grad, *(p.grad for p in layer.parameters())])
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(two, one, rtol=1e-9, atol=1e-9)


def pair(embed_dim: int, heads: int, dtype: torch.dtype = torch.float64, **options: Any) -> tuple[Any, Any]:
    theirs = nn.MultiheadAttention(embed_dim, heads, dtype=dtype, **options)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.5)
    ours = MultiheadAttention(embed_dim, heads, dtype=dtype, **options)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


# --- parameters


OPTIONS = [
    {},
    {"bias": False},
    {"add_bias_kv": True},
    {"kdim": 5, "vdim": 11},
    {"kdim": 5, "add_bias_kv": True, "add_zero_attn": True, "bias": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_parameters_have_torchs_names_order_and_start(options):
    layers = []
    for kind in (nn.MultiheadAttention, MultiheadAttention):
        torch.manual_seed(3)
        layers.append(kind(21, 3, **options))
    theirs, ours = layers
    assert [name for name, _ in theirs.named_parameters()] == [name for name, _ in ours.named_parameters()]
    for one, two in zip(theirs.parameters(), ours.parameters(), strict=True):
        assert torch.equal(one, two)
    assert type(theirs.out_proj) is type(ours.out_proj)
    torch.manual_seed(5)
    ours._reset_parameters()
    torch.manual_seed(5)
    theirs._reset_parameters()
    assert torch.equal(*(next(layer.parameters()) for layer in layers))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_state_dict_loads_both_ways(options):
    theirs, ours = nn.MultiheadAttention(21, 3, **options), MultiheadAttention(21, 3, **options)
    back = nn.MultiheadAttention(21, 3, **options)
    ours.load_state_dict(theirs.state_dict())
    back.load_state_dict(ours.state_dict())
    for name, parameter in theirs.state_dict().items():
        assert torch.equal(parameter, back.state_dict()[name])


def through_pickle(layer):
    return pickle.loads(pickle.dumps(layer))  # noqa: S301  our own


def through_a_file(layer):
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, through_pickle, through_a_file])
def test_a_copy_computes_the_same_and_stays_off_the_fast_path(copied):
    layer = MultiheadAttention(21, 3)
    twin = copied(layer)
    x = torch.randn(17, 2, 21)
    assert type(twin) is MultiheadAttention and not twin._qkv_same_embed_dim
    assert torch.equal(layer(x, x, x)[0], twin(x, x, x)[0])


# --- what is better than torch's


def all_hidden(kind: str) -> dict[str, Tensor]:
    """The second of two sequences is all padding, or query 3 sees nothing."""
    padding = torch.zeros(2, 17, dtype=torch.bool)
    padding[1] = True
    attn = torch.zeros(17, 17, dtype=torch.bool)
    attn[3] = True
    floats = {True: NEVER, False: 0.0}
    return {
        "padding": {"key_padding_mask": padding},
        "float padding": {"key_padding_mask": padding.double().masked_fill(padding, floats[True])},
        "attn": {"attn_mask": attn},
        "float attn": {"attn_mask": attn.double().masked_fill(attn, floats[True])},
    }[kind]


@pytest.mark.parametrize("kind", ["padding", "float padding", "attn", "float attn"])
def test_a_query_that_sees_nothing_gets_the_bias_alone(kind):
    theirs, ours = pair(21, 3, batch_first=True)
    x = torch.randn(2, 17, 21, dtype=torch.float64, requires_grad=True)
    output, weights = ours(x, x, x, **all_hidden(kind), average_attn_weights=False)
    lost = (1, slice(None)) if "padding" in kind else (slice(None), 3)
    assert torch.equal(output[lost], ours.out_proj.bias.expand_as(output[lost]))
    assert (weights.sum(-1).transpose(1, 2)[lost] == 0).all()
    expected = theirs(x, x, x, **all_hidden(kind))[0]
    assert expected[lost].isnan().all()  # the trap is there
    torch.testing.assert_close(output[0, :3], expected[0, :3])
    (output.sum() + weights.pow(2).sum()).backward()
    assert x.grad.isfinite().all() and all(p.grad.isfinite().all() for p in ours.parameters())


@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("where", ["key", "value"])
def test_nan_in_padding_reaches_no_output_or_gradient(kind, where):
    _, ours = pair(21, 3, batch_first=True)
    query, key, value = (torch.randn(2, 17, 21, dtype=torch.float64) for _ in range(3))
    padding = torch.zeros(2, 17, dtype=torch.bool)
    padding[:, 11:] = True
    clean = ours(query, key, value, key_padding_mask=padding, need_weights=False)[0]
    {"key": key, "value": value}[where][:, 11:] = torch.nan
    padding = padding if kind == "bool" else torch.zeros(2, 17).masked_fill(padding, NEVER)
    leaf = query.clone().requires_grad_()
    output = ours(leaf, key, value, key_padding_mask=padding, need_weights=False)[0]
    torch.testing.assert_close(output, clean)
    assert torch.autograd.grad(output.sum(), leaf)[0].isfinite().all()


HARMLESS = torch.zeros(17, 17, dtype=torch.bool)
HARMLESS[:, 11:] = True
HARMLESS[2, :5] = True


@pytest.mark.parametrize("need", [False, True])
@pytest.mark.parametrize("kind", ["bool2", "float2", "bool3", "float3"])
@pytest.mark.parametrize("where", ["key", "value"])
def test_nan_hidden_by_a_mask_reaches_no_output_or_gradient(kind, where, need):
    _, ours = pair(21, 3, batch_first=True)
    query, key, value = (torch.randn(2, 17, 21, dtype=torch.float64) for _ in range(3))
    mask = HARMLESS if "2" in kind else HARMLESS.expand(6, 17, 17)
    if "float" in kind:
        mask = torch.linspace(-2, 2, 17, dtype=torch.float64).expand(mask.shape).masked_fill(mask, NEVER)
    clean = ours(query, key, value, attn_mask=mask, need_weights=need)
    {"key": key, "value": value}[where][:, 11:] = torch.nan
    leaf = query.clone().requires_grad_()
    output, weights = ours(leaf, key, value, attn_mask=mask, need_weights=need)
    torch.testing.assert_close(output, clean[0])
    if need:
        torch.testing.assert_close(weights, clean[1])
    assert torch.autograd.grad(output.sum(), leaf)[0].isfinite().all()


@pytest.mark.parametrize("where", ["query", "key", "value"])
def test_a_nan_that_is_seen_shows_beside_a_mask_of_numbers(where):
    _, ours = pair(21, 3, batch_first=True)
    inputs = {name: torch.randn(2, 17, 21, dtype=torch.float64) for name in ("query", "key", "value")}
    inputs[where][1, 3] = torch.nan
    mask = torch.zeros(17, 17, dtype=torch.float64).masked_fill(HARMLESS, NEVER)
    broken = ours(**inputs, attn_mask=mask, need_weights=False)[0].isnan().all(-1)
    seen = torch.zeros(2, 17, dtype=torch.bool)
    seen[1] = torch.arange(17) == 3 if where == "query" else torch.arange(17) != 2
    assert torch.equal(broken, seen)


@pytest.mark.parametrize("need", [True, "lazy"])
def test_weights_are_those_before_dropout(need):
    layer = MultiheadAttention(21, 3, dropout=0.5)
    x = torch.randn(17, 2, 21)
    given = layer(x, x, x, need_weights=need)[1]
    quiet = layer.eval()(x, x, x, need_weights=need)[1]
    given, quiet = (w.dense() if need == "lazy" else w for w in (given, quiet))
    torch.testing.assert_close(given, quiet)
    torch.testing.assert_close(given.sum(-1), torch.ones_like(given[..., 0]))


def test_asking_for_weights_does_not_change_what_is_dropped():
    layer = MultiheadAttention(21, 3, dropout=0.5)
    x = torch.randn(17, 2, 21)
    outputs = []
    for need in (False, True, "lazy"):
        torch.manual_seed(7)
        outputs.append(layer(x, x, x, need_weights=need)[0])
    assert torch.equal(outputs[0], outputs[1]) and torch.equal(outputs[0], outputs[2])


def test_dropout_only_in_training_and_right_on_average():
    layer = MultiheadAttention(21, 3, dropout=0.4, dtype=torch.float64)
    x = torch.randn(17, 2, 21, dtype=torch.float64)
    with torch.no_grad():
        tries = torch.stack([layer(x, x, x, need_weights=False)[0] for _ in range(400)])
        layer.eval()
        calm = layer(x, x, x, need_weights=False)[0]
        assert torch.equal(calm, layer(x, x, x, need_weights=False)[0])
    assert tries.std(0).min() > 0
    off = (tries.mean(0) - calm).abs() / (tries.std(0) / 20)
    assert off.mean() < 1 and off.max() < 6


def test_dropping_everything_leaves_the_bias():
    layer = MultiheadAttention(21, 3, dropout=1.0)
    nn.init.normal_(layer.out_proj.bias)
    x = torch.randn(17, 2, 21)
    output, weights = layer(x, x, x)
    assert torch.equal(output, layer.out_proj.bias.expand_as(output)) and weights.sum() > 33


def test_long_weights_are_averaged_in_blocks(monkeypatch):
    monkeypatch.setattr("regard.nn._multihead.AVERAGED_AT_ONCE", 500)
    theirs, ours = pair(21, 3, batch_first=True)
    x = torch.randn(2, 17, 21, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(ours(x, x, x)[1], theirs(x, x, x)[1], rtol=1e-9, atol=1e-9)


def test_weights_with_a_gradient_may_take_several_tiles(monkeypatch):
    monkeypatch.setattr("regard.engine.lazy_matrix.scores_per_tile", lambda *_, **__: 500)
    case = Case(
        {"embed_dim": 21, "num_heads": 3, "kdim": None, "vdim": None, "batch_first": True},
        True, "all", 131, 131, "causal2", "bool", True, False, 0,
    )  # fmt: skip
    test_outputs_weights_and_gradients_are_those_of_torch.hypothesis.inner_test(case)


# --- other ways to call it


def test_bfloat16_is_as_good_as_its_digits():
    layer = MultiheadAttention(32, 4, batch_first=True)
    x = torch.randn(2, 17, 32)
    exact, weights = layer(x, x, x)
    low = copy.deepcopy(layer).bfloat16()
    output, low_weights = low(*[x.bfloat16()] * 3)
    assert output.dtype == low_weights.dtype == torch.bfloat16
    torch.testing.assert_close(output.float(), exact, rtol=0.03, atol=0.03)
    torch.testing.assert_close(low_weights.float(), weights, rtol=0.03, atol=0.01)


def test_autocast_gives_torchs_dtype_and_no_larger_error():
    theirs, ours = pair(32, 4, torch.float32, batch_first=True)
    x = torch.randn(2, 17, 32)
    exact = theirs(x, x, x)[0]
    with torch.autocast("cpu", torch.bfloat16):
        one, two = (layer(x, x, x, need_weights=False)[0] for layer in (theirs, ours))
    assert one.dtype == two.dtype
    assert (two - exact).abs().mean() < 1.2 * (one - exact).abs().mean()


MASKED = {
    "nothing": {},
    "causal": {"attn_mask": torch.ones(17, 17, dtype=torch.bool).triu(1), "is_causal": True},
    "padding": {"key_padding_mask": torch.arange(17).expand(2, 17) > torch.tensor([[16], [9]])},
    "float": {"attn_mask": torch.linspace(-2, 2, 17 * 17).view(17, 17)},
}


@pytest.mark.plain
@pytest.mark.parametrize("mask", MASKED)
@pytest.mark.parametrize("need", [pytest.param(False, marks=pytest.mark.long), True])
def test_multihead_attention_compiles_to_one_graph(mask, need):
    torch.compiler.reset()
    layer = MultiheadAttention(21, 3, batch_first=True)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    grads = []
    for call in (layer, compiled):
        x = torch.randn(2, 17, 21, generator=seeded(0), requires_grad=True)
        output, weights = call(x, x, x, need_weights=need, **MASKED[mask])
        loss = output.pow(2).sum() + (weights.pow(2).sum() if need else 0)
        grads.append((output, weights, *torch.autograd.grad(loss, [x, *layer.parameters()])))
    torch.testing.assert_close(grads[1], grads[0])


@pytest.mark.plain
@pytest.mark.parametrize("mask", MASKED)
def test_an_exported_layer_equals_the_layer(mask):
    layer = MultiheadAttention(21, 3, batch_first=True).eval()
    x = torch.randn(2, 17, 21)
    options = {"need_weights": False, **MASKED[mask]}
    program = torch.export.export(layer, (x, x, x), options)
    torch.testing.assert_close(program.module()(x, x, x, **options)[0], layer(x, x, x, **options)[0])


@pytest.mark.parametrize("need", [False, True])
def test_vmap_over_a_batch(need):
    layer = MultiheadAttention(21, 3, batch_first=True)
    x = torch.randn(5, 17, 21)
    alone = lambda one: layer(one, one, one, need_weights=need)[: 1 + need]  # noqa: E731
    torch.testing.assert_close(torch.func.vmap(alone)(x), layer(x, x, x, need_weights=need)[: 1 + need])


def test_functional_call_takes_other_parameters():
    layer, other = MultiheadAttention(21, 3), MultiheadAttention(21, 3)
    x = torch.randn(17, 2, 21)
    output = torch.func.functional_call(layer, dict(other.named_parameters()), (x, x, x))[0]
    assert torch.equal(output, other(x, x, x)[0]) and not torch.equal(output, layer(x, x, x)[0])


def test_lazy_weights_answer_questions():
    layer = MultiheadAttention(21, 3, batch_first=True)
    x = torch.randn(2, 17, 21)
    dense = layer(x, x, x, average_attn_weights=False)[1]
    weights = layer(x, x, x, need_weights="lazy")[1]
    torch.testing.assert_close(weights.entropy(), -(dense * dense.log()).sum(-1))
    torch.testing.assert_close(weights.top(3).values, dense.topk(3).values)


WRITTEN_OUT = torch.ones(17, 17, dtype=torch.bool).triu(1)
ALMOST = WRITTEN_OUT.clone()
ALMOST[5, 9] = False


@pytest.mark.parametrize(("hidden", "known"), [(WRITTEN_OUT, True), (ALMOST, False), (WRITTEN_OUT.mT, False)])
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_a_causal_mask_is_known_without_a_hint(hidden, known, kind):
    theirs, ours = pair(21, 3)
    x = torch.randn(17, 2, 21, dtype=torch.float64)
    mask = hidden if kind == "bool" else torch.zeros(17, 17, dtype=torch.float64).masked_fill(hidden, NEVER)
    output, weights = ours(x, x, x, attn_mask=mask, need_weights="lazy")
    assert ("causal" in repr(weights.spec)) == known
    torch.testing.assert_close(output, theirs(x, x, x, attn_mask=mask)[0], rtol=1e-9, atol=1e-9)


def test_no_sequence_and_no_batch():
    theirs, ours = pair(21, 3)
    for shape in [(0, 2, 21), (5, 0, 21)]:
        x = torch.randn(shape, dtype=torch.float64)
        assert ours(x, x, x)[0].shape == theirs(x, x, x)[0].shape
        assert ours(x, x, x)[1].shape == theirs(x, x, x)[1].shape


# --- mistakes


def x(*shape: int) -> Tensor:
    return torch.randn(shape)


def called(*shapes: tuple[int, ...], **options: Any) -> Any:
    return lambda kind: kind(21, 3)(*(x(*shape) for shape in shapes), **options)


GOOD = ((5, 2, 21), (7, 2, 21), (7, 2, 21))
MISTAKES = {
    "one dimension": called((21,), (21,), (21,)),
    "four dimensions": called((1, 5, 2, 21), (1, 7, 2, 21), (1, 7, 2, 21)),
    "a batch of queries alone": called((5, 2, 21), (7, 21), (7, 21)),
    "a batch of keys alone": called((5, 21), (7, 2, 21), (7, 2, 21)),
    "wide queries": called((5, 2, 23), (7, 2, 21), (7, 2, 21)),
    "wide keys": called((5, 2, 21), (7, 2, 23), (7, 2, 23)),
    "more values than keys": called((5, 2, 21), (7, 2, 21), (11, 2, 21)),
    "two batches": called((5, 2, 21), (7, 3, 21), (7, 3, 21)),
    "padding of another length": called(*GOOD, key_padding_mask=torch.zeros(2, 5, dtype=torch.bool)),
    "padding of another batch": called(*GOOD, key_padding_mask=torch.zeros(3, 7, dtype=torch.bool)),
    "padding without a batch": called(*GOOD, key_padding_mask=torch.zeros(7, dtype=torch.bool)),
    "padding of integers": called(*GOOD, key_padding_mask=torch.zeros(2, 7, dtype=torch.int64)),
    "mask turned round": called(*GOOD, attn_mask=torch.zeros(7, 5, dtype=torch.bool)),
    "mask by batch": called(*GOOD, attn_mask=torch.zeros(2, 5, 7, dtype=torch.bool)),
    "mask by batch and head": called(*GOOD, attn_mask=torch.zeros(2, 3, 5, 7, dtype=torch.bool)),
    "mask of one dimension": called(*GOOD, attn_mask=torch.zeros(7, dtype=torch.bool)),
    "mask of integers": called(*GOOD, attn_mask=torch.zeros(5, 7, dtype=torch.int64)),
    "a hint beside a mask that does not fit": called(
        *GOOD, is_causal=True, attn_mask=torch.zeros(7, 5, dtype=torch.bool)
    ),
    "a hint beside a mask of integers": called(*GOOD, is_causal=True, attn_mask=torch.zeros(5, 7, dtype=torch.int64)),
    "a hint without a mask": called(*GOOD, is_causal=True, need_weights=False),
    "heads that do not fit": lambda kind: kind(21, 4),
    "no heads": lambda kind: kind(21, 0),
    "no features": lambda kind: kind(0, 3),
}


@pytest.mark.plain
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_raises_what_torch_raises_in_our_words(mistake):
    with pytest.raises(Exception) as theirs:
        MISTAKES[mistake](nn.MultiheadAttention)
    with pytest.raises(errors.LayerError) as ours:
        MISTAKES[mistake](MultiheadAttention)
    assert isinstance(ours.value, theirs.type)


@pytest.mark.plain
def test_an_unknown_wish_for_weights_is_refused():
    with pytest.raises(errors.ChoiceError, match="'lazy', not 'dense'"):
        MultiheadAttention(21, 3)(x(5, 21), x(7, 21), x(7, 21), need_weights="dense")


@pytest.mark.parametrize("name", ["attn_mask", "key_padding_mask"])
def test_a_mask_that_is_no_tensor_is_refused(name):
    with pytest.raises(errors.DtypeError, match=f"{name} must be a torch tensor or None, but it is Band .*SelfAtt"):
        MultiheadAttention(21, 3)(x(7, 21), x(7, 21), x(7, 21), **{name: rg.masks.causal()})


def test_messages_of_wrong_shapes_say_what_was_given():
    with pytest.raises(errors.LayerError, match=r"21, 21 and 21 features.*\(5, 2, 21\), \(7, 2, 23\), \(7, 2, 23\)"):
        MISTAKES["wide keys"](MultiheadAttention)
    with pytest.raises(errors.LayerError, match=r"\(5, 7\) or .* \(6, 5, 7\), but it is \(7, 5\)"):
        MISTAKES["mask turned round"](MultiheadAttention)


def test_multihead_attention_prints_its_formula():
    assert "softmax(q·k / √7) v for each of 3 heads" in repr(MultiheadAttention(21, 3))
