"""Layers with a name: each is its paper's formula, written out here with loops over plain numbers."""

import copy
import io
import math
import pickle
import re
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from largest_allocation import LargestAllocation
from torch.func import functional_call

import regard as rg
from regard import datasets, errors, masks, nn
from regard.masks._rules import Near, QueryLengths
from regard.operands import Operand, Size, Span, Tile
from regard.scores import _additive

B, N, M, D_Q, D_K, D_V, HIDDEN = 2, 5, 7, 3, 11, 13, 17
ROOM = 19  # keys that a location layer has places for


def data(d_k=D_K, n=N, m=M, dtype=torch.float64):
    generator = torch.Generator().manual_seed(1)
    shapes = (B, n, D_Q), (B, m, d_k), (B, m, D_V)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]


def spread_out(layer):
    """Parameters large enough to matter."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return layer


# --- the formulas, on lists of numbers


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def times(matrix, x):
    return [dot(row, x) for row in matrix]


def tanh(x):
    return [math.tanh(number) for number in x]


def additive(p, q, k, j):
    return dot(p["v"], tanh([a + b for a, b in zip(times(p["w_q"], q), times(p["w_k"], k), strict=True)]))


ENERGIES = {
    "dot": lambda p, q, k, j: dot(q, k),
    "general": lambda p, q, k, j: dot(q, times(p["w"], k)),
    "concat": lambda p, q, k, j: dot(p["v"], tanh(times(p["w"], q + k))),
    "location": lambda p, q, k, j: times(p["w"], q)[j],
}


def by_hand(layer, energy, q, k, v, sees, factor=lambda b, i, j: 1.0):
    """(output, weights): e_ij over what is seen, exponentials over their sum, and the sum of the values."""
    p = {name: parameter.tolist() for name, parameter in layer.named_parameters()}
    output, weights = torch.zeros(*q.shape[:2], v.shape[-1]).double(), torch.zeros(*q.shape[:2], k.shape[1]).double()
    for b, i in product(range(q.shape[0]), range(q.shape[1])):
        seen = [j for j in range(k.shape[1]) if sees(b, i, j)]
        powers = {j: math.exp(energy(p, q[b, i].tolist(), k[b, j].tolist(), j)) for j in seen}
        for j in seen:
            weights[b, i, j] = powers[j] / sum(powers.values()) * factor(b, i, j)
            for f in range(v.shape[-1]):
                output[b, i, f] += weights[b, i, j] * v[b, j, f]
    return output, weights


PER_BATCH = torch.tensor([0, 4])
PER_QUERY = torch.tensor([[3, 0, 7, 1, 9], [7, 7, 2, 0, 5]])
CELLS = torch.rand(B, N, M, generator=torch.Generator().manual_seed(4)) < 0.6
SEEN = {
    "everything": ({}, lambda b, i, j: True),
    "lengths": ({"valid_lens": PER_BATCH}, lambda b, i, j: j < PER_BATCH[b]),
    "lengths for each query": ({"valid_lens": PER_QUERY}, lambda b, i, j: j < PER_QUERY[b, i]),
    "mask": ({"mask": masks.prefix(3)}, lambda b, i, j: j < 3),
    "both": (
        {"mask": masks.hide(~CELLS), "valid_lens": PER_QUERY},
        lambda b, i, j: CELLS[b, i, j] and j < PER_QUERY[b, i],
    ),
}

GLOBAL = {
    "additive": (lambda **o: nn.AdditiveAttention(D_Q, D_K, HIDDEN, **o), additive, D_K),
    "dot": (lambda **o: nn.LuongAttention(D_Q, D_Q, **o), ENERGIES["dot"], D_Q),
    "general": (lambda **o: nn.LuongAttention(D_Q, D_K, "general", **o), ENERGIES["general"], D_K),
    "concat": (lambda **o: nn.LuongAttention(D_Q, D_K, "concat", HIDDEN, **o), ENERGIES["concat"], D_K),
    "location": (
        lambda **o: nn.LuongAttention(D_Q, D_K, "location", max_keys=ROOM, **o),
        ENERGIES["location"],
        D_K,
    ),
}


def check(answer, expected, value):
    output, weights = answer
    torch.testing.assert_close(output, expected[0])
    torch.testing.assert_close(weights.dense(), expected[1])
    torch.testing.assert_close(weights @ value, output)


@pytest.mark.parametrize("seen", list(SEEN))
@pytest.mark.parametrize("name", list(GLOBAL))
def test_a_layer_is_its_papers_formula(name, seen):
    make, energy, d_k = GLOBAL[name]
    options, sees = SEEN[seen]
    layer = spread_out(make(dtype=torch.float64))
    q, k, v = data(d_k)
    check(layer(q, k, v, **options), by_hand(layer, energy, q, k, v, sees), v)


# --- local attention

D = 2
POSITIONS = torch.tensor([[0.0, 6.0, 2.5, 20.0, 3.0], [4.0, 4.0, -1.0, 1.2, 6.9]]).double()
LOCAL_SCORES = {"dot": D_Q, "general": D_K, "concat": D_K}


def local(method, score="dot", **options):
    hidden = HIDDEN if (method, score) != ("m", "dot") else None
    return nn.LocalAttention(D_Q, LOCAL_SCORES[score], D, method, score, hidden, **options)


@pytest.mark.parametrize("seen", list(SEEN))
@pytest.mark.parametrize("score", list(LOCAL_SCORES))
def test_local_attention_around_given_positions_is_the_formula(score, seen):
    options, sees = SEEN[seen]
    layer = spread_out(local("m", score, dtype=torch.float64))
    q, k, v = data(LOCAL_SCORES[score])
    answer = layer(q, k, v, positions=POSITIONS, **options)
    near = lambda b, i, j: sees(b, i, j) and abs(j - POSITIONS[b, i]) <= D  # noqa: E731
    check(answer, by_hand(layer, ENERGIES[score], q, k, v, near), v)
    assert answer.weights.normalised
    assert bool(answer.weights.empty_rows()[0, 3])  # its place is beyond the last key


@pytest.mark.parametrize("where", [None, torch.arange(N), torch.arange(N).expand(B, N).half()])
def test_local_m_stands_beside_its_own_key(where):
    layer = spread_out(local("m", "general", dtype=torch.float64))
    q, k, v = data(m=N)
    expected = by_hand(layer, ENERGIES["general"], q, k, v, lambda b, i, j: abs(j - i) <= D)
    check(layer(q, k, v, positions=where), expected, v)


def places(layer, q, counts):
    """p = S sigmoid(v_p tanh(W_p q))."""
    w_p, v_p = layer.w_p.tolist(), layer.v_p.tolist()
    return [
        [counts(b, i) / (1 + math.exp(-dot(v_p, tanh(times(w_p, q[b, i].tolist()))))) for i in range(q.shape[1])]
        for b in range(q.shape[0])
    ]


@pytest.mark.parametrize("seen", list(SEEN))
@pytest.mark.parametrize("score", list(LOCAL_SCORES))
def test_local_attention_around_predicted_positions_is_the_formula(score, seen):
    options, sees = SEEN[seen]
    layer = spread_out(local("p", score, dtype=torch.float64))
    q, k, v = data(LOCAL_SCORES[score])
    lengths = options.get("valid_lens", torch.tensor([M, M]))
    p = places(layer, q, lambda b, i: min(M, int(lengths[b] if lengths.dim() == 1 else lengths[b, i])))
    expected = by_hand(
        layer,
        ENERGIES[score],
        q,
        k,
        v,
        lambda b, i, j: sees(b, i, j) and abs(j - p[b][i]) <= D,
        lambda b, i, j: math.exp(-((j - p[b][i]) ** 2) / (2 * (D / 2) ** 2)),
    )
    check(layer(q, k, v, **options), expected, v)
    assert 0 < expected[1].sum(-1).max() < 1


def test_weights_of_local_p_are_not_normalised():
    layer = spread_out(local("p"))
    q, k, v = data(D_Q, dtype=torch.float32)
    output, weights = layer(q, k, v)
    assert weights.normalised is False
    assert re.fullmatch(
        r"Weights\(2 x 5 x 7, exp\(.*\) softmax\(q·k where .*\), .*rows do not sum to 1.*", repr(weights)
    )
    for question in ("entropy", "saturation", "distance", "logsumexp"):
        ask = getattr(weights, question)
        with pytest.raises(errors.NotNormalisedError, match=rf"{question}.*exp\(-\(j - p\)"):
            ask(torch.arange(N)) if question == "distance" else ask()
    dense = weights.dense()
    torch.testing.assert_close(weights.received(), dense.sum(-2))
    torch.testing.assert_close(weights.top(3).values, dense.topk(3).values)
    torch.testing.assert_close(weights.heatmap(4, "sum").sum((-1, -2)), dense.sum((-1, -2)))
    torch.testing.assert_close(weights.mT @ q, dense.mT @ q)
    torch.testing.assert_close(weights[1, 2:4, torch.tensor([6, 0])], dense[1, 2:4, torch.tensor([6, 0])])
    twin = weights.snapshot()
    with torch.no_grad():
        q.zero_()
    torch.testing.assert_close(twin.dense(), dense)
    assert not (twin @ v).requires_grad and output.requires_grad


def test_local_p_learns_where_to_look():
    """The place is learned through the Gaussian alone: scores are all equal, and the wanted value is at key 8."""
    torch.manual_seed(0)
    layer = nn.LocalAttention(4, 4, window=6, method="p")
    q, k = torch.ones(1, 4), torch.zeros(23, 4)
    v = torch.eye(23)
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.05)
    for _ in range(150):
        optimiser.zero_grad()
        (-layer(q, k, v).output[0, 8]).backward()
        optimiser.step()
    assert layer(q, k, v).weights.top(1).indices.item() == 8


def test_one_query_for_many_keys_and_lengths():
    """A query without leading dimensions, keys with two: places follow the lengths."""
    layer = spread_out(local("p", "general", dtype=torch.float64))
    q, k, _ = data()
    k = torch.stack([k, k.flip(1), k * 2], 1)  # (B, 3, M, D_K)
    output = layer(q[0], k, k, valid_lens=torch.tensor([3, 6])).output
    for b, h in product(range(B), range(3)):
        alone = layer(q[0], k[b, h], k[b, h], valid_lens=torch.tensor([3, 6][b])).output
        torch.testing.assert_close(output[b, h], alone)


# --- what all of them share

LAYERS = {
    **{name: (make, d_k) for name, (make, _, d_k) in GLOBAL.items()},
    "local-m": (lambda **o: local("m", "concat", **o), D_K),
    "local-p": (lambda **o: local("p", "general", **o), D_K),
    "kernel": (lambda **o: nn.KernelPooling(0.7, D_Q, **o), D_Q),
    "kernel, one w": (lambda **o: nn.KernelPooling(0.7, **o), D_Q),
}


def call(name, layer, q, k, v, **options):
    return layer(q, k, v, **options, **({"positions": POSITIONS} if name == "local-m" else {}))


@pytest.mark.parametrize("seen", ["everything", "lengths for each query"])
@pytest.mark.parametrize("name", list(LAYERS))
def test_gradients_of_inputs_and_parameters(name, seen):
    make, d_k = LAYERS[name]
    layer = make(dtype=torch.float64)
    names = [name for name, _ in layer.named_parameters()]
    inputs = [t[..., :3] if i == 2 else t for i, t in enumerate(data(d_k))]
    leaves = [t.detach().clone().requires_grad_() for t in (*inputs, *layer.parameters())]

    def output(q, k, v, *parameters):
        named = dict(zip(names, parameters, strict=True))
        options = SEEN[seen][0] | ({"positions": POSITIONS} if name == "local-m" else {})
        return functional_call(layer, named, (q, k, v), options).output

    assert torch.autograd.gradcheck(output, leaves, fast_mode=True)
    grads = torch.autograd.grad(output(*leaves).square().sum(), leaves, allow_unused=True)
    touched = {key for key, grad in zip(["q", "k", "v", *names], grads, strict=True) if grad is not None}
    assert touched >= {"v", *names}


STATES = {
    "additive": {"w_q": (HIDDEN, D_Q), "w_k": (HIDDEN, D_K), "v": (HIDDEN,)},
    "dot": {},
    "general": {"w": (D_Q, D_K)},
    "concat": {"w": (HIDDEN, D_Q + D_K), "v": (HIDDEN,)},
    "location": {"w": (ROOM, D_Q)},
    "local-m": {"w": (HIDDEN, D_Q + D_K), "v": (HIDDEN,)},
    "local-p": {"w": (D_Q, D_K), "w_p": (HIDDEN, D_Q), "v_p": (HIDDEN,)},
    "kernel": {"w": (D_Q,)},
    "kernel, one w": {"w": ()},
}


@pytest.mark.parametrize("name", list(LAYERS))
def test_a_layer_is_saved_copied_and_pickled(name):
    make, d_k = LAYERS[name]
    layer = spread_out(make())
    assert {key: tuple(t.shape) for key, t in layer.state_dict().items()} == STATES[name]
    memory = io.BytesIO()
    torch.save(layer.state_dict(), memory)
    memory.seek(0)
    loaded = make()
    loaded.load_state_dict(torch.load(memory))
    x = data(d_k, dtype=torch.float32)
    expected = call(name, layer, *x).output
    for twin in (loaded, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):  # noqa: S301  our own bytes
        assert repr(twin) == repr(layer)
        torch.testing.assert_close(call(name, twin, *x).output, expected, atol=0, rtol=0)


@pytest.mark.parametrize("name", list(LAYERS))
def test_reset_parameters_draws_new_parameters(name):
    make, _ = LAYERS[name]
    layer = make(dtype=torch.bfloat16)
    assert all(p.dtype == torch.bfloat16 and p.isfinite().all() for p in layer.parameters())
    before = [p.clone() for p in layer.parameters()]
    with torch.no_grad():
        for p in layer.parameters():
            p.fill_(9)
    layer.reset_parameters()
    for old, new in zip(before, layer.parameters(), strict=True):
        assert (new.abs() <= 1).all() and (old.dim() == 0 or name == "kernel" or not torch.equal(old, new))


@pytest.mark.parametrize("name", list(LAYERS))
def test_bfloat16_is_computed_in_better_numbers(name):
    make, d_k = LAYERS[name]
    layer = spread_out(make(dtype=torch.bfloat16))
    x = data(d_k, dtype=torch.bfloat16)
    output, weights = call(name, layer, *x, valid_lens=PER_BATCH)
    assert output.dtype == torch.bfloat16 == weights.dtype
    exact = call(name, copy.deepcopy(layer).double(), *(t.double() for t in x), valid_lens=PER_BATCH).output
    torch.testing.assert_close(output.double(), exact, atol=1e-2, rtol=1e-2)
    grads = torch.autograd.grad(output.sum(), layer.parameters()) if list(layer.parameters()) else ()
    assert all(grad.dtype == torch.bfloat16 and grad.isfinite().all() for grad in grads)


@pytest.mark.plain
@pytest.mark.parametrize("seen", [pytest.param("everything", marks=pytest.mark.long), "lengths for each query"])
@pytest.mark.parametrize("name", list(LAYERS))
def test_a_compiled_layer_equals_the_layer(name, seen):
    make, d_k = LAYERS[name]
    layer, x = spread_out(make()), data(d_k, dtype=torch.float32)
    torch.compiler.reset()
    compiled = torch.compile(
        lambda *x: call(name, layer, *x, **SEEN[seen][0]).output, fullgraph=True, backend="aot_eager"
    )
    expected = call(name, layer, *x, **SEEN[seen][0]).output
    output = compiled(*x)
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)
    parameters = list(layer.parameters())
    if parameters:
        grads = [torch.autograd.grad(out.square().sum(), parameters) for out in (output, expected)]
        torch.testing.assert_close(*grads, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", [name for name in LAYERS if name != "local-m"])
def test_vmap_over_a_batch(name):
    make, d_k = LAYERS[name]
    layer, x = spread_out(make()), data(d_k, dtype=torch.float32)
    each = torch.func.vmap(lambda *x: layer(*x).output)(*x)
    torch.testing.assert_close(each, layer(*x).output, atol=1e-5, rtol=1e-5)
    each = torch.func.vmap(lambda q, k, v, lens: layer(q, k, v, valid_lens=lens).output)(*x, PER_QUERY)
    torch.testing.assert_close(each, layer(*x, valid_lens=PER_QUERY).output, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", [name for name in LAYERS if not name.startswith("kernel")])
def test_dropout_is_for_training(name):
    make, d_k = LAYERS[name]
    layer, x = spread_out(make(dropout=0.5)), data(d_k, dtype=torch.float32)
    output, weights = call(name, layer, *x)
    assert not torch.allclose(output, weights @ x[2])
    layer.eval()
    calm = call(name, layer, *x)
    torch.testing.assert_close(calm.output, weights @ x[2])
    torch.testing.assert_close(calm.weights.dense(), weights.dense())
    assert "dropout=0.5" in repr(layer)


@pytest.mark.parametrize("name", list(LAYERS))
def test_nan_in_hidden_keys_reaches_no_output_or_gradient(name):
    make, d_k = LAYERS[name]
    layer = spread_out(make(dtype=torch.float64))
    q, k, v = data(d_k)
    clean = call(name, layer, q, k, v, valid_lens=torch.tensor([5, 5])).output
    k[:, 5:], v[:, 5:] = math.nan, math.inf
    leaves = [t.requires_grad_() for t in (q, k, v)]
    output = call(name, layer, *leaves, valid_lens=torch.tensor([5, 5])).output
    torch.testing.assert_close(output, clean)
    grads = torch.autograd.grad(output.sum(), [*leaves, *layer.parameters()], allow_unused=True)
    assert all(grad is None or grad.isfinite().all() for grad in grads)


def test_a_query_that_is_nan_shows_in_local_p():
    layer = local("p")
    q, k, v = data(D_Q, dtype=torch.float32)
    q[1, 2] = math.nan
    broken = layer(q, k, v).output.isnan()
    assert broken[1, 2].all() and broken.sum() == D_V


@pytest.mark.parametrize("score", list(LOCAL_SCORES))
@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_query_that_sees_nothing_does_no_harm_to_local_p(score, broken):
    layer = spread_out(local("p", score, dtype=torch.float64))
    q, k, v = data(LOCAL_SCORES[score])
    options = {"valid_lens": torch.tensor([0, M])}

    def answers():
        leaf = q.clone().requires_grad_()
        output, weights = layer(leaf, k, v, **options)
        return [output, weights.dense(), *torch.autograd.grad(output.square().sum(), [leaf, *layer.parameters()])]

    clean = answers()
    q[0, 1] = torch.tensor([broken, -broken, 1.0])
    torch.testing.assert_close(answers(), clean)


# --- lengths for each query


@pytest.mark.parametrize("plan", ["dense", "tiled", "fused"])
@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (1, 3)])
def test_lengths_for_each_query_as_a_mask(plan, lead):
    generator = torch.Generator().manual_seed(6)
    n, m = 71, 200
    q, k = (torch.randn(2, 3, length, 5, generator=generator, dtype=torch.float64) for length in (n, m))
    q, k = (t[(0,) * (2 - len(lead))] for t in (q, k))
    lengths = torch.randint(0, m + 9, (*lead, n), generator=generator)
    lengths[..., :40] = lengths[..., :40] % 30  # so that some blocks see little
    lengths[..., 3] = 0
    seen = torch.arange(m) < lengths[..., None]
    found = rg.attend(q, k, k, mask=nn._valid_lens.combined_mask(None, lengths, q, k), plan=plan, budget=1 << 16)
    expected = rg.attend(q, k, k, mask=masks.allow(seen), plan="dense")
    torch.testing.assert_close(found.output, expected.output)
    torch.testing.assert_close(found.weights.dense(), expected.weights.dense())
    torch.testing.assert_close(found.weights.entropy(), expected.weights.entropy())
    assert torch.equal(found.weights.empty_rows(), expected.weights.empty_rows())


def test_lengths_that_follow_the_leading_dimensions_stay_one_for_a_batch():
    q, k, v = data(D_Q)
    layer = nn.LuongAttention(D_Q, D_Q)
    heads = [t.unsqueeze(1).expand(B, 3, *t.shape[1:]) for t in (q, k, v)]
    output = layer(*heads, valid_lens=PER_BATCH).output
    torch.testing.assert_close(output[:, 1], layer(q, k, v, valid_lens=PER_BATCH).output)
    output = layer(*heads, valid_lens=PER_QUERY.unsqueeze(1)).output
    torch.testing.assert_close(output[:, 2], layer(q, k, v, valid_lens=PER_QUERY).output)
    assert layer(q, k, v, valid_lens=PER_BATCH).weights.spec.mask.per_key


@given(st.data())
def test_rules_for_each_query_answer_for_blocks_as_for_pairs(draw):
    """NONE, SOME and ALL of a block are true of the pairs in it, whatever the edges are."""
    n, m = draw.draw(st.integers(1, 9)), draw.draw(st.integers(1, 40))
    numbers = st.lists(st.floats(-5, 45), min_size=2 * n, max_size=2 * n)
    centres = torch.tensor(draw.draw(numbers), dtype=torch.float64).reshape(2, n)
    rule = draw.draw(
        st.sampled_from([Near(centres, draw.draw(st.integers(0, 12))), QueryLengths(centres.long().clamp_min(0))])
    )
    size = Size(n, m, torch.device("cpu"))
    edges = sorted({0, m, *draw.draw(st.lists(st.integers(0, m), max_size=4))})
    low = draw.draw(st.integers(0, n - 1))
    rows = Span(low, draw.draw(st.integers(low + 1, n)))
    operands = rule.operands((2,))
    kinds = rule.block_states([o.tensor for o in operands], rows, edges, size)
    assert rule.block_states(None, rows, edges, size) == [masks.SOME] * len(kinds)
    for kind, start, stop in zip(kinds, edges[:-1], edges[1:], strict=True):
        tile = Tile((slice(0, 2),), rows, Span(start, stop))
        pairs = rule.tile([tile.cut(Operand(*o)) for o in operands], rows, tile.cols, size)
        assert kind != masks.NONE or not pairs.any()
        assert kind != masks.ALL or pairs.all()
        if rows.stop - rows.start == 1 and torch.equal(centres[0], centres[1]) and stop - start == 1:
            assert kind == (masks.ALL if pairs.all() else masks.NONE)


def test_a_band_around_real_places_skips_blocks():
    centres = torch.arange(1000.0) + 0.5
    kinds = Near(centres, 3).block_states(
        [centres[:, None]], Span(100, 120), [0, 90, 110, 112, 130, 1000], Size(1000, 1000, torch.device("cpu"))
    )
    assert kinds == [masks.NONE, masks.SOME, masks.SOME, masks.SOME, masks.NONE]
    assert Near(centres, 30).block_states([centres[:, None]], Span(100, 120), [105, 115], None) == [masks.ALL]


# --- memory


@pytest.mark.parametrize("lengths", [None, "batch", "queries"])
def test_additive_attention_never_holds_queries_by_keys_by_features(lengths):
    n, m, hidden = 256, 256, 64
    layer = nn.AdditiveAttention(8, 8, hidden)
    q, k, v = (torch.randn(1, length, 8) for length in (n, m, m))
    lens = {None: None, "batch": torch.tensor([m]), "queries": torch.arange(n)[None]}[lengths]
    with LargestAllocation() as largest:
        layer(q, k, v, valid_lens=lens).output.sum().backward()
    assert largest.bytes <= 4 * _additive.BLOCK_NUMBERS < 4 * n * m * hidden


LARGE = 3000


@pytest.mark.parametrize("name", ["local-m", "local-m at positions", "local-p", "lengths for each query"])
def test_no_matrix_of_queries_by_keys(name):
    x = [torch.randn(LARGE, 8) for _ in range(3)]
    options = {
        "local-m at positions": {"positions": torch.arange(LARGE) / 2},
        "lengths for each query": {"valid_lens": torch.arange(LARGE)},
    }.get(name, {})
    layer = nn.LuongAttention(8, 8) if name.startswith("lengths") else nn.LocalAttention(8, 8, 9, name[6])
    with LargestAllocation() as largest:
        layer(*x, **options).output.sum().backward() if list(layer.parameters()) else layer(*x, **options)
    # A tile has at most 2^20 scores; a matrix of booleans would be the smallest that there could be.
    assert largest.bytes <= 4 << 20 < LARGE * LARGE


# --- pools


def rows_seen(x, lengths):
    return [[x[b, j].tolist() for j in range(lengths[b])] for b in range(len(x))]


@pytest.mark.parametrize(
    ("options", "lengths"),
    [
        ({}, [M, M]),
        ({"valid_lens": torch.tensor([0, 4])}, [0, 4]),
        ({"mask": masks.prefix(3)}, [3, 3]),
        ({"mask": masks.allow(torch.arange(M) < 5), "valid_lens": torch.tensor([6, 2])}, [5, 2]),
        ({"mask": masks.hide(torch.arange(M) >= torch.tensor([1, 6])[:, None, None])}, [1, 6]),
    ],
)
def test_pools_are_their_formulas(options, lengths):
    x = data()[1]
    rows = rows_seen(x, lengths)
    average, weights = nn.AveragePooling()(x, **options)
    largest, index = nn.MaxPooling()(x, **options)
    for b, f in product(range(B), range(D_K)):
        column = [row[f] for row in rows[b]]
        assert average[b, f].item() == pytest.approx(sum(column) / len(column) if column else 0.0)
        assert largest[b, f].item() == (max(column) if column else 0.0)
        assert index[b, f].item() == (column.index(max(column)) if column else -1)
    torch.testing.assert_close((weights @ x).squeeze(-2), average)
    for hidden in (None, HIDDEN):
        layer = spread_out(nn.LearnedPooling(D_K, hidden, dtype=torch.float64))
        v, w = layer.v.tolist(), None if layer.w is None else layer.w.tolist()
        output, weights = layer(x, **options)
        for b in range(B):
            powers = [math.exp(dot(v, row if w is None else tanh(times(w, row)))) for row in rows[b]]
            expected = [p / sum(powers) for p in powers] + [0.0] * (M - len(powers))
            torch.testing.assert_close(weights[b, 0], torch.tensor(expected).double())
            pooled = [sum(p * row[f] for p, row in zip(expected, rows[b], strict=False)) for f in range(D_K)]
            torch.testing.assert_close(output[b], torch.tensor(pooled).double())


POOLS = {
    "average": nn.AveragePooling,
    "max": nn.MaxPooling,
    "learned": lambda: nn.LearnedPooling(D_K),
    "learned, hidden": lambda: nn.LearnedPooling(D_K, HIDDEN),
}


@pytest.mark.parametrize("name", list(POOLS))
def test_gradients_of_pools(name):
    layer, x = POOLS[name]().double(), data()[1].requires_grad_()
    names = [name for name, _ in layer.named_parameters()]
    leaves = [x, *(p.detach().clone().requires_grad_() for p in layer.parameters())]

    def output(x, *parameters):
        named = dict(zip(names, parameters, strict=True))
        return functional_call(layer, named, (x,), {"valid_lens": PER_BATCH})[0]

    assert torch.autograd.gradcheck(output, leaves)


@pytest.mark.parametrize("name", list(POOLS))
def test_pools_take_any_leading_dimensions_dtype_and_copy(name):
    layer, x = POOLS[name](), data(dtype=torch.float32)[1]
    output = layer(x)[0]
    torch.testing.assert_close(layer(x[1])[0], output[1])
    torch.testing.assert_close(layer(x[:, None, None].expand(B, 1, 3, M, D_K))[0][:, 0, 2], output)
    torch.testing.assert_close(torch.func.vmap(lambda x: layer(x)[0])(x), output)
    torch.testing.assert_close(layer(x[:, :0])[0], torch.zeros(B, D_K))
    low = copy.deepcopy(layer).bfloat16()(x.bfloat16())[0]
    torch.testing.assert_close(low.float(), output, atol=3e-2, rtol=3e-2)
    assert low.dtype == torch.bfloat16
    twin = pickle.loads(pickle.dumps(layer))  # noqa: S301  our own bytes
    twin.load_state_dict(layer.state_dict())
    torch.testing.assert_close(twin(x)[0], output, atol=0, rtol=0)


@pytest.mark.plain
@pytest.mark.parametrize("name", list(POOLS))
def test_compiled_pooling_equals_pooling(name):
    layer, x = POOLS[name](), data(dtype=torch.float32)[1]
    torch.compiler.reset()
    compiled = torch.compile(lambda x: layer(x, valid_lens=PER_BATCH)[0], fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), layer(x, valid_lens=PER_BATCH)[0])


@pytest.mark.parametrize("name", list(POOLS))
def test_nan_in_keys_hidden_from_a_pool_reaches_no_output_or_gradient(name):
    layer, x = POOLS[name]().double(), data()[1]
    clean = layer(x, valid_lens=PER_BATCH)[0]
    x[1, 4:], x[0] = math.nan, math.inf
    x.requires_grad_()
    output = layer(x, valid_lens=PER_BATCH)[0]
    torch.testing.assert_close(output, clean)
    grads = torch.autograd.grad(output.sum(), [x, *layer.parameters()])
    assert all(grad.isfinite().all() for grad in grads)


def test_max_pooling_takes_a_visible_key():
    x = torch.tensor([[5.0, 1.0], [-math.inf, math.nan], [-math.inf, 3.0]])
    output, index = nn.MaxPooling()(x, masks.hide(torch.tensor([True, False, False])))
    assert output[0] == -math.inf and index[0] in (1, 2)
    assert output[1].isnan() and index[1] == 1
    assert nn.MaxPooling()(x[:0]).indices.tolist() == [-1, -1]


def test_the_desk_without_a_query_and_with_one():
    """The same five keys, two answers: what stands out, and what is wanted."""
    desk = datasets.desk()
    salient = nn.LearnedPooling(len(desk.features))
    with torch.no_grad():
        salient.v.copy_(desk.saliency)
    stands_out = salient(desk.keys).weights
    wanted = nn.LuongAttention(len(desk.features), len(desk.features))(desk.query, desk.keys, desk.values).weights
    winners = [desk.names[weights.top(1).indices.item()] for weights in (stands_out, wanted)]
    assert winners == ["red coffee cup", "book"]
    torch.testing.assert_close((stands_out @ desk.values).argmax(-1), torch.tensor([0]))  # what is seen is red
    even = nn.AveragePooling()(desk.keys).weights
    assert even.entropy().item() == pytest.approx(math.log(5)) and even.entropy() > stands_out.entropy()


# --- kernel regression


def learned_width(dim=None):
    sine = datasets.sine()
    x, y = sine.x_train[:, None], sine.y_train[:, None]
    layer = nn.KernelPooling(dim=dim)
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.1)
    for _ in range(150):
        optimiser.zero_grad()
        (layer.leave_one_out(x, y).output - y).square().mean().backward()
        optimiser.step()
    return layer, x, y


@pytest.mark.parametrize("dim", [None, 1])
def test_a_learned_width_fits_better_and_is_sharper(dim):
    layer, x, y = learned_width(dim)
    plain = nn.KernelPooling(learn=False)
    assert not list(plain.parameters()) and plain.state_dict()["w"] == 1
    error, sharpness = [], []
    for each in (layer, plain):
        output, weights = each.leave_one_out(x, y)
        error.append((output - y).square().mean().item())
        sharpness.append(weights.entropy().mean().item())
        assert weights.dense().diagonal().eq(0).all()
    assert layer.w.abs() > 1.5
    assert error[0] < 0.9 * error[1] and sharpness[0] < sharpness[1] - 0.5


def test_kernel_pooling_is_nadaraya_watson():
    layer = nn.KernelPooling(0.7, D_Q, dtype=torch.float64)
    spread_out(layer)
    w, (q, k, v) = layer.w.tolist(), data(D_Q)

    def energy(p, q, k, j):
        return -sum(((a - b) * c) ** 2 for a, b, c in zip(q, k, w, strict=True)) / 2

    check(layer(q, k, v, valid_lens=PER_QUERY), by_hand(layer, energy, q, k, v, lambda b, i, j: j < PER_QUERY[b, i]), v)
    x, lens = k, torch.tensor([1, 5])
    others = by_hand(layer, energy, x, x, v, lambda b, i, j: j != i and j < lens[b])
    check(layer.leave_one_out(x, v, valid_lens=lens), others, v)
    few = by_hand(layer, energy, x, x, v, lambda b, i, j: j != i and j < 3)
    check(layer.leave_one_out(x, v, masks.prefix(3)), few, v)


# --- words


def test_a_layer_reads_as_its_formula():
    assert repr(nn.AdditiveAttention(3, 5, 7)) == (
        "AdditiveAttention(softmax_j(v·tanh(W_q q + W_k k_j)), query_dim=3, key_dim=5, hidden=7)"
    )
    assert repr(nn.LuongAttention(3, 5, "location", max_keys=9)) == (
        "LuongAttention(softmax_j((W q)_j), query_dim=3, key_dim=5, max_keys=9)"
    )
    assert repr(nn.LocalAttention(3, 3, 4, "p")) == (
        "LocalAttention(softmax_j(q·k_j where |j - p| <= 4) exp(-(j - p)² / 8), p = S sigmoid(v_p·tanh(W_p q)), "
        "query_dim=3, key_dim=3)"
    )
    assert repr(nn.KernelPooling(2, 3, learn=False)) == (
        "KernelPooling(softmax_j(-(w|q - k_j|)² / 2), w=2, dim=3, learn=False)"
    )
    assert repr(nn.LearnedPooling(3, 5)) == "LearnedPooling(softmax_j(v·tanh(W x_j)), dim=3, hidden=5)"


X = torch.ones(2, 7, 3)
MISTAKES = {
    "hidden": (lambda: nn.AdditiveAttention(3, 3, 0), errors.ChoiceError, "hidden.*whole number.*0"),
    "dropout": (lambda: nn.AdditiveAttention(3, 3, 5, dropout=1.0), errors.ChoiceError, "dropout.*probability.*1"),
    "method": (lambda: nn.LuongAttention(3, 3, "dots"), errors.ChoiceError, "'dots'.*dot, general, concat, location"),
    "local method": (lambda: nn.LocalAttention(3, 3, 2, "x"), errors.ChoiceError, "method 'x'.*m, p"),
    "local location": (lambda: nn.LocalAttention(3, 3, 2, "m", "location"), errors.ChoiceError, "'location'.*concat"),
    "window": (lambda: nn.LocalAttention(3, 3, 0), errors.ChoiceError, "window.*0"),
    "unequal dot": (lambda: nn.LuongAttention(3, 5), errors.ChoiceError, "dot.*3.*5"),
    "no max_keys": (lambda: nn.LuongAttention(3, 3, "location"), errors.ChoiceError, "max_keys"),
    "stray max_keys": (lambda: nn.LuongAttention(3, 3, "dot", max_keys=3), errors.ChoiceError, "max_keys.*location"),
    "too many keys": (
        lambda: nn.LuongAttention(3, 3, "location", max_keys=5)(X, X, X),
        errors.ShapeError,
        "max_keys = 5.*7 keys",
    ),
    "width": (lambda: nn.AdditiveAttention(5, 3, 2)(X, X, X), errors.ShapeError, r"query of width 5.*\(2, 7, 3\)"),
    "local-m, n != m": (
        lambda: nn.LocalAttention(3, 3, 2)(X[:, :4], X, X),
        errors.ChoiceError,
        r"4 queries and 7 keys.*positions \(\.\.\., 4\)",
    ),
    "positions for local-p": (
        lambda: nn.LocalAttention(3, 3, 2, "p")(X, X, X, positions=torch.arange(7)),
        errors.ChoiceError,
        "'p' predicts positions",
    ),
    "too few positions": (
        lambda: nn.LocalAttention(3, 3, 2)(X, X, X, positions=torch.arange(6)),
        errors.ShapeError,
        r"positions.*7 queries.*\(6,\)",
    ),
    "positions of a kind": (
        lambda: nn.LocalAttention(3, 3, 2)(X, X, X, positions=[1, 2]),
        errors.DtypeError,
        "positions.*list",
    ),
    "float lengths": (
        lambda: nn.AdditiveAttention(3, 3, 2)(X, X, X, valid_lens=torch.ones(2)),
        errors.MaskError,
        "valid_lens.*integers.*float32",
    ),
    "lengths of another batch": (
        lambda: nn.LocalAttention(3, 3, 2, "p")(X, X, X, valid_lens=torch.ones(5, 7, dtype=torch.long)),
        errors.ShapeError,
        r"valid_lens.*\(2,\).*\(5,\)",
    ),
    "lengths for other queries": (
        lambda: nn.AdditiveAttention(3, 3, 2)(X, X, X, valid_lens=torch.ones(2, 5, dtype=torch.long)),
        errors.ShapeError,
        r"valid_lens.*7 queries.*\(2, 5\)",
    ),
    "a bare mask": (
        lambda: nn.AdditiveAttention(3, 3, 2)(X, X, X, torch.ones(7, 7).bool(), torch.tensor([1, 2])),
        errors.MaskError,
        "allow.*hide",
    ),
    "a pool's mask": (lambda: nn.MaxPooling()(X, masks.causal()), errors.MaskError, "which keys.*causal"),
    "a pool's lengths": (
        lambda: nn.AveragePooling()(X, valid_lens=torch.ones(2, 7, dtype=torch.long)),
        errors.ShapeError,
        r"one length for each sequence.*\(2,\) of x.*\(2, 7\)",
    ),
    "a pool of one row": (lambda: nn.AveragePooling()(X[0, 0]), errors.ShapeError, r"x must be.*\(3,\)"),
    "a pool of integers": (lambda: nn.MaxPooling()(X.long()), errors.DtypeError, "x must be.*int64"),
    "a pool's width": (lambda: nn.LearnedPooling(5)(X), errors.ShapeError, "x of width 5"),
    "w": (lambda: nn.KernelPooling(math.inf), errors.ChoiceError, "finite.*inf"),
}


@pytest.mark.plain
@pytest.mark.parametrize("name", list(MISTAKES))
def test_a_wrong_argument_of_a_layer_is_named(name):
    do, error, message = MISTAKES[name]
    with pytest.raises(error, match=message):
        do()
