"""Corners in which a plausible engine goes wrong without a word."""

import math

import pytest
import reference
import torch
from largest import Largest

import regard as rg
from regard import errors, masks, normalisers, scores
from regard.scores import _additive
from regard.weights import matrix_of

PLANS = ("auto", "dense", "tiled")


def qkv(n=20, m=20, d=8, lead=(3,), dtype=torch.float32):
    generator = torch.Generator().manual_seed(7)
    return tuple(torch.randn(*lead, length, d, generator=generator, dtype=dtype) for length in (n, m, m))


@pytest.mark.parametrize("question", ["received", "entropy", "saturation", "logsumexp"])
def test_an_answer_can_be_written_over(question):
    q, k, _ = qkv()
    weights = rg.Weights(q, k)
    first = getattr(weights, question)()
    before = first.clone()
    first.zero_()
    torch.testing.assert_close(getattr(weights, question)(), before)


def test_top_and_heatmap_can_be_written_over():
    q, k, _ = qkv()
    weights = rg.Weights(q, k)
    before = weights.top(3).values.clone(), weights.heatmap(256, "sum").clone()
    weights.top(3).values.zero_()
    weights.heatmap(256, "sum").zero_()
    torch.testing.assert_close((weights.top(3).values, weights.heatmap(256, "sum")), before)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("name", ["boxcar", "epanechnikov", "triangular", "tricube", "cosine"])
def test_a_nan_under_a_compact_kernel_shows(name, plan):
    q, k, v = qkv(d=2)
    q[0, 3] = math.nan
    output, weights = rg.attend(q, k, v, score=scores.kernel(name, 2.0), plan=plan)
    assert output[0, 3].isnan().all() and not weights.empty_rows()[0, 3]
    assert output[1:].isfinite().all()


@pytest.mark.parametrize("plan", PLANS)
def test_values_may_have_leading_dimensions_of_their_own(plan):
    q, k, _ = qkv(lead=())
    v = torch.randn(5, 20, 8)
    expected = torch.stack([rg.attend(q, k, part, plan=plan).output for part in v])
    output, weights = rg.attend(q, k, v, plan=plan)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(weights @ v, expected)


@pytest.mark.parametrize("plan", ["auto", "dense", "tiled", "fused"])
def test_a_wide_gaussian_keeps_its_digits(plan):
    q, k, v = qkv(n=64, m=64, d=6)
    exact = rg.attend(q.double(), k.double(), v.double(), score=scores.gaussian(40.0), plan="dense").output
    output = rg.attend(q, k, v, score=scores.gaussian(40.0), plan=plan).output
    torch.testing.assert_close(output.double(), exact, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("plan", ["auto", "dense", "tiled", "fused"])
@pytest.mark.parametrize("d", [3, 8])
def test_a_huge_hidden_key_is_absent(plan, d):
    q, k, v = qkv(n=40, m=40, d=d)
    expected = rg.attend(q, k, v, score=scores.gaussian(1.0), mask=masks.prefix(39), plan=plan).output
    k[:, 39] = 1e15
    output = rg.attend(q, k, v, score=scores.gaussian(1.0), mask=masks.prefix(39), plan=plan).output
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("plan", ["auto", "dense", "tiled", "fused"])
def test_a_nan_query_shows_also_where_few_keys_are_seen(plan):
    q, k, v = qkv()
    q[:, 19] = math.nan
    output = rg.attend(q, k, v, mask=masks.window(0, 0), plan=plan).output
    assert output[:, 19].isnan().all() and output[:, :19].isfinite().all()


def test_a_nan_row_says_nothing_of_keys_hidden_from_it():
    q, k, v = qkv()
    q[:, 5] = math.nan
    weights = rg.Weights(q, k, mask=masks.causal())
    assert weights.received()[:, 6:].isfinite().all() and weights.received()[:, :6].isnan().all()
    assert (weights.dense()[:, 5, 6:] == 0).all()
    assert (weights.mT @ v)[:, 6:].isfinite().all()


def test_two_tensors_of_one_name_are_two():
    q, k, v = qkv()
    first, second = torch.randn(20, 20, requires_grad=True), torch.randn(20, 20)
    output, weights = rg.attend(q, k, v, score=scores.scaled_dot() + scores.bias(first) + scores.bias(second))
    assert torch.autograd.grad(output.sum(), first)[0].abs().sum() > 0
    second.zero_()
    with pytest.raises(errors.StaleWeightsError, match="another t of bias"):
        weights.entropy()


def test_a_gaussian_kernel_follows_its_bandwidth():
    q, k, v = qkv()
    width = torch.tensor(2.0, requires_grad=True)
    score = scores.kernel("gaussian", width)
    for _ in range(2):
        rg.attend(q, k, v, score=score).output.square().sum().backward()
    with torch.no_grad():
        width.fill_(0.5)
    torch.testing.assert_close(
        rg.attend(q, k, v, score=score).output, rg.attend(q, k, v, score=scores.gaussian(2.0)).output
    )


def test_second_derivatives_of_an_additive_score_of_which_only_queries_learn():
    q, k, v = (t.double() for t in qkv(n=3, m=5, d=4, lead=()))
    q.requires_grad_()
    w_q, w_k, w = (torch.randn(*shape, dtype=torch.float64) for shape in ((7, 4), (7, 4), (7,)))

    def output(q):
        return rg.attend(q, k, v, score=scores.additive(w_q, w_k, w), plan="dense").output

    assert torch.autograd.gradgradcheck(output, (q,))


def test_autocast_decides_nothing():
    q, k, v = (t.requires_grad_() for t in qkv())
    weights = rg.Weights(q, k, mask=masks.window(3, 3))
    expected = [rg.attend(q, k, v, plan="tiled").output, weights @ v, weights.entropy(), weights.dense()]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        weights = rg.Weights(q, k, mask=masks.window(3, 3))
        found = [rg.attend(q, k, v, plan="tiled").output, weights @ v, weights.entropy(), weights.dense()]
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.plain
@pytest.mark.parametrize(
    "score", [scores.gaussian(1.0), scores.cosine(), scores.scaled_dot() + scores.bias(torch.ones(20))]
)
def test_compiled_without_a_mask(score):
    q, k, v = qkv()
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda q, k, v: rg.attend(q, k, v, score=score).output, fullgraph=True, backend="aot_eager"
    )
    torch.testing.assert_close(compiled(q, k, v), rg.attend(q, k, v, score=score).output, atol=1e-5, rtol=1e-5)


def test_boolean_indices():
    q, k, _ = qkv()
    weights = rg.Weights(q, k)
    rows = torch.arange(20) % 3 == 0
    torch.testing.assert_close(weights[..., rows, :], weights.dense()[..., rows, :])
    with pytest.raises(IndexError, match="20"):
        weights[..., torch.ones(4, dtype=torch.bool), :]


@pytest.mark.parametrize("score", [scores.alibi(torch.tensor([0.5, 0.1, 0.2])), scores.bias(torch.arange(20.0))])
def test_scores_of_positions_alone(score):
    q, k, v = qkv(lead=(2, 3))
    output, weights = rg.attend(q, k, v, score=score)
    dense = weights.dense()
    torch.testing.assert_close(dense @ v, output, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weights.received(), dense.sum(-2), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weights.heatmap(5, "sum").sum((-1, -2)), torch.full((2, 3), 20.0), atol=1e-4, rtol=1e-5)


# --- memory: an answer costs what it is large


def additive_operands(n=23, m=29, h=7, lead=(2,), dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    shapes = (*lead, n, h), (*lead, m, h), (h,)
    return [(torch.randn(s, generator=generator, dtype=dtype)).requires_grad_() for s in shapes]


@pytest.mark.parametrize("size", [1.0, 50.0, math.nan])
@pytest.mark.parametrize("chunk", [1, 100, 1 << 12])
def test_additive_scores_in_chunks_of_any_size(monkeypatch, size, chunk):
    """`chunk` cuts within a row, between rows, and not at all; a steep sum and a NaN take the plain tanh."""
    monkeypatch.setattr(_additive, "CHUNK", chunk)
    a, b, v = additive_operands()
    with torch.no_grad():
        a[0, 3, 2] = size
    x = (a, b, v)
    found, expected = _additive.tanh_score(*x), torch.tanh(a.unsqueeze(-2) + b.unsqueeze(-3)) @ v
    torch.testing.assert_close(found, expected, equal_nan=True)
    pull = torch.randn_like(expected)
    grads = torch.autograd.grad(found, x, pull), torch.autograd.grad(expected, x, pull)
    torch.testing.assert_close(*grads, equal_nan=True)


@pytest.mark.parametrize("size", [1.0, 50.0])
def test_gradients_of_additive_scores_in_chunks(monkeypatch, size):
    monkeypatch.setattr(_additive, "CHUNK", 20)
    a, b, v = additive_operands(3, 5, 2, ())
    with torch.no_grad():
        a[1, 1] = size
        b[2, 1] = -size  # so that something is steep and yet has a slope
    assert torch.autograd.gradcheck(_additive.tanh_score, (a, b, v))
    assert torch.autograd.gradgradcheck(_additive.tanh_score, (a, b, v))


@pytest.mark.parametrize("size", [1.0, 50.0, math.nan])
@pytest.mark.parametrize(("n", "m"), [(256, 256), (2, 1 << 15)])
def test_additive_scores_never_hold_rows_by_keys_by_features(size, n, m):
    a, b, v = additive_operands(n, m, 64, (), torch.float32)
    with torch.no_grad():
        a[0, 0] = size
    with Largest() as largest:
        _additive.tanh_score(a, b, v).sum().backward()
    assert 4 * n * m * 64 > 4 * 4 * _additive.CHUNK  # what the broadcast formula holds
    assert largest.bytes <= max(4 * _additive.CHUNK, 4 * m * 64)


def positions_of(weights, *lengths):
    generator = torch.Generator().manual_seed(5)
    return [
        torch.randint(-size, size, (length,), generator=generator)
        for size, length in zip(weights.shape, lengths, strict=True)
    ]


def test_elements_cost_what_they_are():
    q, k, _ = qkv(n=400, m=500, lead=(2, 3))
    weights = rg.Weights(q, k, plan="tiled", budget=1 << 18)
    index = tuple(positions_of(weights, *[300] * 4))
    with Largest() as largest:
        found = weights[index]
    torch.testing.assert_close(found, weights.dense()[index])
    assert largest.bytes <= 1 << 18  # 300 rows by 300 columns of 6 heads are 2 MiB


def test_a_row_of_many_heads_is_within_the_budget():
    q, k = qkv(n=3, lead=(200,))[0], torch.randn(500, 8)
    weights = rg.Weights(q, k, plan="tiled", budget=1 << 16)
    with Largest() as largest:
        found = weights[:, 1, 7]
    torch.testing.assert_close(found, weights.dense()[:, 1, 7])
    assert largest.bytes <= 1 << 16  # a row of all heads is 400 kB


I, J, H, B = (
    torch.tensor([0, 4, -1, 4]),
    torch.tensor([6, 0, 0, -2]),
    torch.tensor([2, 0, -1, 2]),
    torch.tensor([1, 0, 0, 1]),
)
ALL = slice(None)
MIXED = {
    "all four": (B, H, I, J),
    "broadcast": (B[:, None], H, I[:2, None, None], J),
    "heads and rows": (ALL, H, I),
    "heads and rows of some columns": (0, H, I, slice(1, 6, 2)),
    "heads and columns": (B, ALL, ALL, J),
    "heads and columns, side by side but for an int": (ALL, H, 3, J),
    "heads and columns of some rows": (ALL, H, slice(0, 5, 2), J),
    "batch and heads": (B, H),
    "batch and rows": (B, ALL, I),
    "batch, rows, columns": (B, slice(1, 3), I, J),
    "rows and columns": (slice(0, 1), ALL, I, J),
    "booleans": (torch.tensor([True, True]), torch.tensor([True, False, True]), 1, ALL),
    "none": (B[:0], H[:0], I[:0], J[:0]),
    "no heads of some": (B[:0], H[:0], ALL, ALL),
}


@pytest.mark.parametrize("name", list(MIXED))
@pytest.mark.parametrize("budget", [1, 1 << 10, None])
@pytest.mark.parametrize("mask", [None, masks.window(2, 1, align="top-left")])
def test_mixed_indices_mean_what_they_mean_for_tensors(name, budget, mask):
    q, k, _ = qkv(n=5, m=7, lead=(2, 3))
    weights = rg.Weights(q, k, mask=mask, plan="tiled", budget=budget)
    index = MIXED[name]
    torch.testing.assert_close(weights[index], weights.dense()[index])
    turned = tuple((*index, ALL, ALL, ALL)[:4])
    turned = (*turned[:2], turned[3], turned[2])
    torch.testing.assert_close(weights.mT[turned], weights.dense().mT[turned])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("plan", ["fused", "tiled"])
def test_a_bias_is_not_copied(dtype, plan):
    """A bias is as large as the matrix, also when it comes in another dtype and when it makes scores large."""
    q, k, v = qkv(n=1100, m=1100, lead=())
    t = torch.randn(1100, 1100, dtype=dtype)
    t[3, 5] = 60.0
    t[:, 7] = -math.inf
    with Largest() as largest:
        output, weights = rg.attend(q, k, v, scores.scaled_dot() + scores.bias(t), plan=plan, budget=1 << 20)
        row = weights[2]
    assert largest.bytes <= 1 << 20 < t.nbytes
    exact = torch.softmax(q.double() @ k.double().mT / math.sqrt(8) + t.double(), -1)
    torch.testing.assert_close(output.double(), exact @ v.double(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(row.double(), exact[2], atol=1e-5, rtol=1e-5)


def test_biases_of_low_precision_are_added_in_the_better_one():
    q, k, v = qkv(lead=())
    one, two = (torch.randn(20, 20, dtype=torch.bfloat16) for _ in range(2))
    score = scores.softcap(scores.bias(one) + scores.bias(two), 2.0)
    exact = torch.softmax(2 * torch.tanh((one.double() + two.double()) / 2), -1) @ v.double()
    torch.testing.assert_close(rg.attend(q, k, v, score).output.double(), exact, atol=1e-5, rtol=1e-5)


def test_the_largest_of_a_bias_is_that_of_all_its_pieces():
    t = torch.zeros(3, 700, 1100)
    t[2, 699, 1099], t[0, 0, 0] = -70.0, math.nan
    assert scores.bias(t).magnitude(t, t) == 70


def test_biases_before_a_product_run_on_the_fused_kernel():
    q, k, v = qkv()
    one, two = torch.randn(20, 20), torch.randn(20)
    score = scores.bias(one) + scores.bias(two) + scores.scaled_dot()
    output = rg.attend(q, k, v, score, plan="fused").output
    torch.testing.assert_close(output, rg.attend(q, k, v, score, plan="dense").output, atol=1e-5, rtol=1e-5)


# --- what changes between forward and backward

HELD = {
    "allow": (torch.bool, (20, 20), lambda t: {"mask": masks.allow(t)}),
    "hide": (torch.bool, (20, 20), lambda t: {"mask": masks.window(4, 4) & masks.hide(t)}),
    "q_ids": (torch.int64, (20,), lambda t: {"mask": masks.segments(t, torch.arange(20) % 3)}),
    "bias": (torch.float32, (20, 20), lambda t: {"score": scores.scaled_dot() + scores.bias(t)}),
    "hidden": (torch.bool, (20, 20), lambda t: {"mask": masks.hide(t)}),
    "t of bias": (
        torch.float32,
        (20,),
        lambda t: {"score": scores.scaled_dot() + scores.bias(t), "mask": masks.window(4, 4)},
    ),
}


@pytest.mark.parametrize("what", [what for what in HELD if what != "hidden"])
def test_a_word_that_changes_before_the_backward_pass_is_noticed(what):
    q, k, v = (t.requires_grad_() for t in qkv())
    dtype, shape, words = HELD[what]
    tensor = torch.randint(2, shape).to(dtype)
    output = rg.attend(q, k, v, plan="fused", budget=1 << 10, **words(tensor)).output  # no room for a copy of it
    output.sum().backward(retain_graph=True)
    tensor.copy_(tensor.roll(1))
    with pytest.raises(errors.StaleWeightsError, match=rf"(?s){what}.*changed in place.*backward"):
        output.sum().backward()


def test_a_bias_that_was_copied_may_change():
    q, k, v = (t.requires_grad_() for t in qkv())
    t = torch.randn(20, dtype=torch.float64)
    score = scores.scaled_dot() + scores.bias(t)
    output = rg.attend(q, k, v, score, masks.window(4, 4), plan="fused").output
    expected = torch.autograd.grad(output.square().sum(), q, retain_graph=True)
    t.zero_()
    torch.testing.assert_close(torch.autograd.grad(output.square().sum(), q), expected)


@pytest.mark.parametrize("what", ["allow", "hidden", "bias"])
def test_a_word_that_fits_into_one_call_is_copied_and_may_change(what):
    q, k, v = (t.requires_grad_() for t in qkv())
    dtype, shape, words = HELD[what]
    tensor = torch.randint(2, shape).to(dtype)
    output = rg.attend(q, k, v, plan="fused", **words(tensor)).output
    expected = torch.autograd.grad(output.square().sum(), (q, k, v), retain_graph=True)
    tensor.copy_(tensor.roll(1))
    torch.testing.assert_close(torch.autograd.grad(output.square().sum(), (q, k, v)), expected)


@pytest.mark.parametrize("what", list(HELD))
def test_a_word_made_in_inference_mode_serves_training(what):
    q, k, v = (t.requires_grad_() for t in qkv())
    dtype, shape, words = HELD[what]
    with torch.inference_mode():
        tensor = torch.randint(2, shape).to(dtype)
    rg.attend(q, k, v, plan="fused", **words(tensor)).output.sum().backward()
    assert q.grad.abs().sum() > 0


@pytest.mark.parametrize("attended", [True, False])
def test_one_tensor_of_inference_mode_does_not_excuse_the_others(attended):
    q, _, v = qkv()
    with torch.inference_mode():
        k = torch.randn(3, 20, 8)
    weights = rg.attend(q, k, v).weights if attended else rg.Weights(q, k, mask=masks.window(3, 3))
    assert weights.entropy().isfinite().all()
    q.zero_()
    with pytest.raises(errors.StaleWeightsError, match="query"):
        weights.entropy()


# --- scales


@pytest.mark.parametrize("plan", ["auto", "dense", "tiled", "fused"])
@pytest.mark.parametrize("scale", [0.0, 1e-42, -0.5])
@pytest.mark.parametrize("mask", [None, masks.window(4, 4)])
def test_a_learned_bias_beside_any_scale(plan, scale, mask):
    q, k, v = qkv()
    t = torch.randn(20, requires_grad=True)
    output = rg.attend(q, k, v, scores.scaled_dot(scale) + scores.bias(t), mask, plan=plan).output
    visible = torch.ones(20, 20, dtype=torch.bool) if mask is None else reference.window(20, 20, 4, 4, None)
    raw = (q.double() @ k.double().mT * scale + t.double()).masked_fill(~visible, -math.inf)
    exact = torch.softmax(raw, -1) @ v.double()
    torch.testing.assert_close(output.double(), exact, atol=1e-5, rtol=1e-5)
    grads = [torch.autograd.grad(out.square().sum(), t)[0] for out in (output, exact)]
    torch.testing.assert_close(*grads, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("plan", ["auto", "dense", "tiled", "fused"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [0.0, 1e-42, -0.5])
def test_what_is_hidden_stays_hidden_at_any_scale(plan, dtype, scale):
    """torch's kernel multiplies the -inf of its causal mask by the scale."""
    q, k, v = (t.requires_grad_() for t in qkv(dtype=dtype))
    output, weights = rg.attend(q, k, v, scores.scaled_dot(scale), masks.causal(), plan=plan)
    raw = (q.double() @ k.double().mT * scale).masked_fill(~reference.causal(20, 20), -math.inf)
    exact = torch.softmax(raw, -1) @ v.double()
    torch.testing.assert_close(output.double(), exact, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weights.logsumexp().double(), raw.logsumexp(-1), atol=1e-5, rtol=1e-5)
    grads = [torch.autograd.grad(out.square().sum(), (q, k, v)) for out in (output, exact)]
    torch.testing.assert_close(*grads, atol=1e-4, rtol=1e-4)


# --- heads


def test_one_key_head_serves_all_query_heads():
    q, k, v = qkv(lead=(2, 3))
    output, weights = rg.attend(q, k[:, :1], v[:, :1])
    expected = rg.attend(q, k[:, :1].expand(2, 3, 20, 8), v[:, :1].expand(2, 3, 20, 8))
    torch.testing.assert_close(output, expected.output)
    torch.testing.assert_close(weights.dense(), expected.weights.dense())


@pytest.mark.parametrize("lead", [(1,), ()])
def test_below_four_dimensions_one_query_head_broadcasts(lead):
    _, k, v = qkv()
    q = torch.randn(*lead, 20, 8)
    torch.testing.assert_close(rg.attend(q, k, v).output, rg.attend(q.expand(3, 20, 8), k, v).output)


# --- hard attention chooses once


def close_calls(n=64, m=64):
    """Scores so far above 48 that float32 and float64, in which questions are asked then, choose other keys."""
    generator = torch.Generator().manual_seed(11)
    q = torch.randn(2, n, 4, generator=generator)
    k = torch.randn(2, 1, 4, generator=generator) + 1e-6 * torch.randn(2, m, 4, generator=generator)
    return 1e4 * q, 300 * k, torch.eye(m).expand(2, m, m)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("sample", [True, False])
@pytest.mark.parametrize("mask", [None, masks.causal()])
def test_hard_attention_chooses_once(plan, sample, mask):
    q, k, v = close_calls()
    generator = torch.Generator().manual_seed(2)
    output, weights = rg.attend(
        q, k, v, mask=mask, normaliser=normalisers.hard(sample, generator), plan=plan, budget=1 << 14
    )
    assert matrix_of(weights).precise_operands()[0].dtype == torch.float64
    assert torch.equal(weights.dense(), output)
    assert torch.equal(weights.top(1).indices.squeeze(-1), output.argmax(-1))
    assert torch.equal(weights @ v, output) and torch.equal(weights.mT.dense(), output.mT)
    assert torch.equal(weights.received(), output.sum(-2)) and torch.equal(weights[1, 5:9], output[1, 5:9])
    assert torch.equal(weights.mass(torch.arange(64)), output)
    assert torch.equal(weights.snapshot().dense(), output)


def test_what_was_chosen_in_inference_mode_serves_gradients():
    q, k, v = (t.clone().requires_grad_() for t in qkv())
    weights = rg.Weights(q, k, normaliser=normalisers.hard(sample=True))
    with torch.inference_mode():
        weights.top(1)
    (weights @ v).sum().backward()
    assert v.grad.sum() == 3 * 20 * 8


def test_a_draw_from_scores_of_positions_alone():
    q, k, v = qkv()
    bias = torch.randn(20, 20)
    for plan in PLANS:
        output, weights = rg.attend(q, k, v, scores.bias(bias), normaliser=normalisers.hard(sample=True), plan=plan)
        torch.testing.assert_close(weights.dense() @ v, output)


@pytest.mark.parametrize("mask", [None, masks.causal(), masks.window(3, 0), masks.prefix(13)], ids=str)
@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (2, 3, 2)], ids=str)
@pytest.mark.parametrize("d", [8, 16])
def test_the_numbers_of_a_row_need_not_lie_side_by_side(d, lead, mask):
    plain = [t.requires_grad_() for t in qkv(d=d, lead=lead, dtype=torch.float64)]
    turned = [t.detach().mT.contiguous().mT.requires_grad_() for t in plain]
    outputs = [rg.attend(*tensors, mask=mask, plan="fused").output for tensors in (plain, turned)]
    torch.testing.assert_close(*outputs)
    towards = torch.randn_like(outputs[0]).mT.contiguous().mT
    gradients = [
        torch.autograd.grad(output, tensors, towards) for output, tensors in zip(outputs, (plain, turned), strict=True)
    ]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("question", ["entropy", "logsumexp"])
def test_a_question_lets_go_of_its_graph(question):
    q, k, _ = qkv(lead=(2, 3))
    answer = getattr(rg.Weights(q.requires_grad_(), k), question)()
    answer.sum().backward(retain_graph=True)
    answer.sum().backward()
    assert answer.grad_fn.answer is None
    with pytest.raises(RuntimeError, match="second time"):
        answer.sum().backward()


def test_slopes_that_make_large_scores_keep_their_digits():
    """Every key that is seen is far away, and its score large: float32 would leave three digits of a weight."""
    m = 20_000
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(1, 1, 8, generator=generator), torch.randn(1, m, 8, generator=generator)
    words = {"score": scores.scaled_dot() + scores.alibi(torch.tensor([0.3])), "mask": ~masks.prefix(m - 50)}
    weights = rg.Weights(q, k, **words)
    exact = rg.Weights(
        q.double(), k.double(), **{**words, "score": scores.scaled_dot() + scores.alibi(torch.tensor([0.3]).double())}
    )
    torch.testing.assert_close(weights.entropy().double(), exact.entropy(), atol=1e-5, rtol=0)
    torch.testing.assert_close(weights.top(5).values.double(), exact.top(5).values, atol=1e-5, rtol=0)
