"""What peers get wrong, on every plan and precision: empty rows, hidden NaN, dropout, odd shapes, torch's modes."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest
import reference
import torch
from largest_allocation import LargestAllocation
from strategies import normal, seeded
from torch import Tensor

import regard as rg
from regard import errors, masks, normalisers, scores

PLANS = ["dense", "tiled", "fused"]
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}

every = pytest.mark.parametrize
plans = every("plan", PLANS)
dtypes = every("dtype", DTYPES, ids=lambda t: str(t).removeprefix("torch."))


def attend(plan: str, *x: Tensor, **words: Any) -> Any:
    """A forced plan; where torch's kernel says it does not serve, what "auto" takes in its place."""
    try:
        return rg.attend(*x, plan=plan, budget=1 << 14 if plan == "tiled" else None, **words)
    except errors.PlanError:
        assert plan == "fused"
        return rg.attend(*x, **words)


def qkv(
    dtype: torch.dtype, n: int = 24, m: int = 24, d: int = 8, d_v: int = 5, lead: tuple[int, ...] = (2, 3)
) -> list[Tensor]:
    return [normal(seeded(i), *lead, *size, dtype=dtype) for i, size in enumerate([(n, d), (m, d), (m, d_v)])]


def close(actual: Tensor, expected: Tensor, dtype: torch.dtype) -> None:
    torch.testing.assert_close(actual.double(), expected.double(), atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


def learn(*x: Tensor) -> list[Tensor]:
    return [t.detach().clone().requires_grad_() for t in x]


# --- a row with no visible key

NOTHING_FOR_ROW_3 = torch.zeros(24, 24, dtype=torch.bool).index_fill(0, torch.tensor([3]), True)
IDS = torch.zeros(24, dtype=torch.long)
EMPTYING = {
    "hide": masks.hide(NOTHING_FOR_ROW_3),
    "allow": masks.allow(~NOTHING_FOR_ROW_3),
    "segments": masks.segments(IDS.index_fill(0, torch.tensor([3]), 7), IDS),
    "causal and hide": masks.causal() & masks.hide(NOTHING_FOR_ROW_3),
    "not": ~masks.allow(NOTHING_FOR_ROW_3),
}


@every("mask", list(EMPTYING.values()), ids=list(EMPTYING))
@plans
@dtypes
def test_an_empty_row_is_zero_and_so_is_its_gradient(mask: Any, plan: str, dtype: torch.dtype) -> None:
    q, k, v = learn(*qkv(dtype))
    output, weights = attend(plan, q, k, v, mask=mask)
    output.sum().backward()
    assert not output[..., 3, :].any() and not q.grad[..., 3, :].any()
    assert all(x.isfinite().all() for x in (output, q.grad, k.grad, v.grad))
    assert torch.equal(weights.empty_rows(), (torch.arange(24) == 3).expand(2, 3, 24))


@plans
@dtypes
def test_questions_of_an_empty_row(plan: str, dtype: torch.dtype) -> None:
    weights = attend(plan, *qkv(dtype), mask=masks.hide(NOTHING_FOR_ROW_3)).weights
    for answer in (weights.entropy(), weights.saturation(), weights.distance(), weights.mass(IDS), weights.dense()):
        assert answer.isfinite().all() and not answer[:, :, 3].any()
    assert (weights.logsumexp()[..., 3] == -torch.inf).all()
    assert (weights.top(2).indices[..., 3, :] == -1).all() and not weights.top(2).values[..., 3, :].any()
    close(weights.received().sum(-1), torch.full((2, 3), 23.0), torch.float32)


@every("question", ["entropy", "saturation", "logsumexp", "distance"])
@plans
def test_questions_of_an_empty_row_have_a_zero_gradient(question: str, plan: str) -> None:
    q, k, v = learn(*qkv(torch.float64))
    answer = getattr(attend(plan, q, k, v, mask=masks.hide(NOTHING_FOR_ROW_3)).weights, question)()
    answer.where(answer > -torch.inf, 0).sum().backward()
    assert not q.grad[..., 3, :].any()
    assert q.grad.isfinite().all() and k.grad.isfinite().all() and q.grad.any()


@plans
@dtypes
def test_a_batch_element_with_length_zero(plan: str, dtype: torch.dtype) -> None:
    q, k, v = learn(*qkv(dtype))
    output, weights = attend(plan, q, k, v, mask=masks.padding(torch.tensor([0, 24])))
    output.sum().backward()
    assert not any(x[0].any() for x in (output, q.grad, k.grad, v.grad, weights.dense()))
    close(output[1], reference.attend(q, k, v).output[1], dtype)


# --- what is hidden cannot be felt

AT = 20  # the poisoned key


class Hider(NamedTuple):
    mask: Any
    sees: Tensor  # (24,) which queries see key AT


def nobody() -> Tensor:
    return torch.zeros(24, dtype=torch.bool)


ROWS = torch.arange(24)
HIDERS = {
    "hide": Hider(masks.hide((ROWS == AT)[None, :]), nobody()),
    "allow": Hider(masks.allow((ROWS != AT).expand(24, 24)), nobody()),
    "padding": Hider(masks.padding(torch.tensor([AT, AT])), nobody()),
    "prefix": Hider(masks.prefix(AT), nobody()),
    "segments": Hider(masks.segments(IDS, IDS.index_fill(0, torch.tensor([AT]), 1)), nobody()),
    "causal": Hider(masks.causal(), ROWS >= AT),
    "window": Hider(masks.window(3, 0), (ROWS >= AT) & (ROWS <= AT + 3)),
    "two-sided window": Hider(masks.window(2, 2), (ROWS - AT).abs() <= 2),
    "causal and padding": Hider(masks.causal() & masks.padding(torch.tensor([AT, AT])), nobody()),
    "not prefix": Hider(~(masks.prefix(AT + 1) & ~masks.prefix(AT)), nobody()),
}
hiders = every("hider", list(HIDERS.values()), ids=list(HIDERS))


def visible(mask: Any) -> Tensor:
    return rg.Weights(*qkv(torch.float64)[:2], score=scores.uniform(), mask=mask).dense() > 0


@every("poison", [torch.nan, torch.inf, -torch.inf])
@every("place", ["key", "value", "one number of both"])
@hiders
@plans
@dtypes
def test_hidden_poison_reaches_neither_output_nor_gradient(
    poison: float, place: str, hider: Hider, plan: str, dtype: torch.dtype
) -> None:
    q, k, v = qkv(dtype)
    k[..., AT, :], v[..., AT, :] = 0, 0
    clean = learn(q, k, v)
    if place == "one number of both":
        k[..., AT, 1], v[..., AT, 1] = poison, poison
    else:
        {"key": k, "value": v}[place][..., AT, :] = poison
    dirty = learn(q, k, v)
    weight = normal(seeded(5), 2, 3, 24, 5) * ~hider.sees[:, None]
    output = attend(plan, *dirty, mask=hider.mask).output
    expected = reference.attend(*clean, visible=visible(hider.mask)).output
    close(output[..., ~hider.sees, :], expected[..., ~hider.sees, :], dtype)
    (output[..., ~hider.sees, :] * weight[..., ~hider.sees, :].to(dtype)).sum().backward()
    (expected * weight).sum().backward()
    for a, b in zip(dirty, clean, strict=True):
        close(a.grad, b.grad, dtype)


@every(
    "words",
    [{"score": scores.gaussian(0.5)}, {"score": scores.cosine()}, {"normaliser": normalisers.sparsemax()}],
    ids=str,
)
@every("hider", ["hide", "padding", "causal", "window"])
@plans
def test_hidden_nan_under_other_terms(words: dict[str, Any], hider: str, plan: str) -> None:
    mask, sees = HIDERS[hider]
    q, k, v = qkv(torch.float64)
    clean = learn(q, k, v)
    k[..., AT, :], v[..., AT, :] = torch.nan, torch.nan
    dirty = learn(q, k, v)
    results = [attend(plan, *x, mask=mask, **words).output[..., ~sees, :] for x in (dirty, clean)]
    torch.testing.assert_close(*results)
    for result in results:
        result.sum().backward()
    kept = (ROWS != AT)[:, None]
    for a, b in zip(dirty, clean, strict=True):
        torch.testing.assert_close(a.grad.where(kept, 0), b.grad.where(kept, 0), atol=1e-9, rtol=1e-9)
    assert not dirty[1].grad[..., AT, :].any() and not dirty[2].grad[..., AT, :].any()


@every("hider", ["hide", "padding", "segments"])
@plans
@dtypes
def test_questions_do_not_feel_a_hidden_key(hider: str, plan: str, dtype: torch.dtype) -> None:
    q, k, v = qkv(dtype)
    k[..., AT, :] = torch.nan
    weights = attend(plan, q, k, v, mask=HIDERS[hider].mask).weights
    dense = reference.attend(q, k.nan_to_num(0), v, visible=visible(HIDERS[hider].mask)).weights
    answers = [(weights.entropy(), reference.entropy(dense)), (weights.received(), reference.received(dense))]
    answers += [(weights.distance(), reference.distance(dense)), (weights.saturation(), reference.saturation(dense))]
    answers += [
        (weights.top(3).values, dense.topk(3).values),
        (weights.heatmap(5), reference.heatmap(dense, 5, "mean")),
    ]
    for actual, expected in answers:
        torch.testing.assert_close(actual.double(), expected, atol=2e-5 + TOLERANCE[dtype] / 5, rtol=1e-5)


@every("question", ["entropy", "saturation", "logsumexp", "distance"])
@every("hider", ["hide", "padding", "causal"])
@plans
def test_gradients_of_questions_do_not_feel_a_hidden_key(question: str, hider: str, plan: str) -> None:
    mask, sees = HIDERS[hider]
    q, k, v = qkv(torch.float64)
    clean = learn(q, k)
    k[..., AT, :] = torch.inf
    dirty = learn(q, k)
    for x in (dirty, clean):
        getattr(attend(plan, *x, v, mask=mask).weights, question)()[..., ~sees].sum().backward()
    for a, b in zip(dirty, clean, strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-9, rtol=1e-9)


# --- what is attended always shows


@every("m", [1, 3, 7, 8, 15, 16, 17, 33])
@every("numbers", [slice(None), slice(0, 1)], ids=["all", "one"])
@plans
@dtypes
def test_a_nan_query_shows(m: int, numbers: slice, plan: str, dtype: torch.dtype) -> None:
    q, k, v = qkv(dtype, n=5, m=m)
    q[..., 2, numbers] = torch.nan
    output, weights = attend(plan, q, k, v)
    assert output[..., 2, :].isnan().all()
    assert output[..., [0, 1, 3, 4], :].isfinite().all()
    assert weights[..., 2, :].isnan().all()


@plans
@dtypes
def test_a_nan_query_does_not_reach_the_gradients_of_other_rows(plan: str, dtype: torch.dtype) -> None:
    q, k, v = qkv(dtype)
    clean = learn(q, k, v)
    q[..., 20, :] = torch.nan
    dirty = learn(q, k, v)
    for x in (dirty, clean):
        attend(plan, *x, mask=masks.causal()).output[..., :20, :].sum().backward()
    for a, b in zip(dirty, clean, strict=True):
        close(a.grad, b.grad, dtype)


@plans
@dtypes
def test_a_nan_query_that_sees_nothing_is_an_empty_row(plan: str, dtype: torch.dtype) -> None:
    q, k, v = qkv(dtype)
    q[..., 3, :] = torch.nan
    output, weights = attend(plan, q, k, v, mask=masks.hide(NOTHING_FOR_ROW_3))
    assert not output[..., 3, :].any()
    assert output.isfinite().all() and weights.dense().isfinite().all()


@every("place", ["key", "value"])
@every("hider", ["causal", "window", "two-sided window", None])
@plans
@dtypes
def test_an_attended_nan_shows(place: str, hider: str | None, plan: str, dtype: torch.dtype) -> None:
    mask, sees = HIDERS[hider] if hider else (None, ~nobody())
    q, k, v = qkv(dtype)
    {"key": k, "value": v}[place][..., AT, :] = torch.nan
    output = attend(plan, q, k, v, mask=mask).output
    assert torch.equal(output.isnan().all(-1), sees.expand(2, 3, 24))
    assert torch.equal(output.isnan().any(-1), sees.expand(2, 3, 24))


@plans
@dtypes
def test_an_attended_infinite_value_shows(plan: str, dtype: torch.dtype) -> None:
    q, k, v = qkv(dtype)
    v[..., AT, 1] = torch.inf
    output = attend(plan, q, k, v).output
    assert (output[..., 1] == torch.inf).all()
    assert output[..., [0, 2, 3, 4]].isfinite().all()


# --- nothing of the caller's changes


def ask_everything(weights: Any) -> None:
    weights.entropy(), weights.saturation(), weights.received(), weights.distance(), weights.mass(IDS), weights.top(3)
    (
        weights.heatmap(4),
        weights.empty_rows(),
        weights.logsumexp(),
        weights.dense(),
        weights[..., 1, 2:5],
        weights.mT[..., 0, :],
    )


@plans
@dtypes
def test_inputs_are_never_modified(plan: str, dtype: torch.dtype) -> None:
    cells = torch.rand(24, 24) < 0.5
    x = [*learn(*qkv(dtype)), cells]
    before = [(t.detach().clone(), t._version) for t in x]
    output, weights = attend(plan, *x[:3], mask=masks.allow(cells))
    ask_everything(weights)
    output.sum().backward()
    assert all(torch.equal(t, old) and t._version == version for t, (old, version) in zip(x, before, strict=True))


@plans
@dtypes
def test_asking_for_weights_never_changes_the_output(plan: str, dtype: torch.dtype) -> None:
    q, k, v = qkv(dtype)
    alone = attend(plan, q, k, v, mask=masks.causal()).output
    output, weights = attend(plan, q, k, v, mask=masks.causal())
    kept = output.clone()
    ask_everything(weights)
    assert torch.equal(output, kept) and torch.equal(alone, kept)
    close(weights @ v, output, dtype)


@plans
@dtypes
def test_the_output_keeps_the_type_of_the_input(plan: str, dtype: torch.dtype) -> None:
    output, weights = attend(plan, *qkv(dtype))
    assert output.dtype == weights.dense().dtype == weights[..., 0, :].dtype == (weights @ qkv(dtype)[2]).dtype == dtype
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    assert {weights.entropy().dtype, weights.received().dtype, weights.logsumexp().dtype, weights.distance().dtype} == {
        wide
    }


@plans
@dtypes
def test_scores_far_below_minus_a_million_stay_off_the_padding(plan: str, dtype: torch.dtype) -> None:
    q, k = torch.full((2, 24, 64), 256.0, dtype=dtype), torch.full((2, 24, 64), -256.0, dtype=dtype)
    weights = attend(plan, q, k, k, score=scores.dot(), mask=masks.padding(torch.tensor([3, 24]))).weights.dense()
    assert not weights[0, :, 3:].any()
    close(weights[0, :, :3], torch.full((24, 3), 1 / 3, dtype=torch.float64), dtype)
    close(weights[1], torch.full((24, 24), 1 / 24, dtype=torch.float64), dtype)


# --- padding on the left


@plans
@dtypes
def test_left_padded_batches_show_no_pattern_that_is_not_there(plan: str, dtype: torch.dtype) -> None:
    q, k, v = qkv(dtype)
    pad = torch.tensor([5, 0])
    hidden = (pad[:, None] > ROWS)[:, None, None, :]  # (batch, 1, 1, keys)
    output, weights = attend(plan, q, k, v, mask=masks.causal() & masks.hide(hidden))
    short = reference.attend(q[0, :, 5:], k[0, :, 5:], v[0, :, 5:], visible=reference.causal(19, 19))
    close(output[0, :, 5:], short.output, dtype)
    assert not output[0, :, :5].any() and not weights.dense()[0, :, :5].any()
    assert weights.empty_rows().sum((-1, -2)).tolist() == [15, 0]


# --- dropout


@every("budget", [1 << 12, 1 << 14, 1 << 20])
@dtypes
def test_dropout_depends_on_position_not_on_tiles(budget: int, dtype: torch.dtype) -> None:
    outputs = []
    for options in ({"plan": "dense"}, {"plan": "tiled", "budget": budget}):
        torch.manual_seed(11)
        outputs.append(rg.attend(*qkv(dtype), mask=masks.causal(), dropout_p=0.5, **options).output)
    close(*outputs, dtype)
    torch.manual_seed(12)
    assert not torch.allclose(rg.attend(*qkv(dtype), mask=masks.causal(), dropout_p=0.5).output, outputs[0], atol=0.1)


@plans
@dtypes
def test_weights_are_those_before_dropout(plan: str, dtype: torch.dtype) -> None:
    q, k, v = qkv(dtype)
    dropped, plain = attend(plan, q, k, v, dropout_p=0.9), attend(plan, q, k, v)
    torch.testing.assert_close(dropped.weights.dense(), plain.weights.dense())
    torch.testing.assert_close(dropped.weights @ v, plain.output)
    close(dropped.weights.dense().double().sum(-1), torch.ones(2, 3, 24, dtype=torch.float64), dtype)
    assert not torch.allclose(dropped.output, plain.output, atol=0.1)


@dtypes
@every("d_v", [1, 8, 128])
@every("plan", ["auto", "tiled", "fused"])
def test_no_width_of_values_builds_the_matrix(plan: str, dtype: torch.dtype, d_v: int) -> None:
    """torch's own function does, where values are not as wide as keys."""
    n = 2048
    q, k, v = (torch.randn(n, width).to(dtype).requires_grad_() for width in (64, 64, d_v))
    with LargestAllocation() as largest:
        rg.attend(q, k, v, plan=plan, budget=4 << 20).output.sum().backward()
    assert largest.bytes < n * n * dtype.itemsize / 3


@plans
@every("p", [0.1, 0.5])
def test_dropout_is_right_on_average(plan: str, p: float) -> None:
    """4000 copies of one query: their mean is the output without dropout, their spread what Bernoulli says."""
    q, k, v = qkv(torch.float64, n=1, m=7, lead=())
    dropped = attend(plan, q.expand(4000, 8), k, v, dropout_p=p).output
    weights, plain, *_ = reversed(reference.attend(q, k, v)[:2])
    spread = (weights**2 @ v**2 * p / (1 - p)).sqrt()
    assert ((dropped.mean(0) - plain[0]).abs() < 5 * spread[0] / 4000**0.5).all()
    torch.testing.assert_close(dropped.std(0), spread[0], rtol=0.1, atol=0)


def test_dropout_zero_is_no_dropout_and_draws_nothing() -> None:
    q, k, v = qkv(torch.float32)
    state = torch.get_rng_state()
    assert torch.equal(rg.attend(q, k, v, dropout_p=0.0).output, rg.attend(q, k, v).output)
    assert torch.equal(torch.get_rng_state(), state)


# --- hard attention draws once


@every("plan", ["auto", "dense", "tiled"])
def test_hard_attention_draws_once(plan: str) -> None:
    q, k, v = qkv(torch.float64)
    hard = normalisers.hard(sample=True, generator=seeded(3))
    output, weights = rg.attend(q, k, v, normaliser=hard, plan=plan)
    dense = weights.dense()
    assert torch.equal(dense, weights.dense()) and torch.equal(dense.sum(-1), torch.ones(2, 3, 24, dtype=torch.float64))
    torch.testing.assert_close(dense @ v, output)
    torch.testing.assert_close(weights.received(), dense.sum(-2))
    assert torch.equal(weights.top(1).indices[..., 0], dense.argmax(-1))


def test_hard_attention_draws_with_the_probabilities_of_softmax() -> None:
    q, k, _ = qkv(torch.float64, n=1, m=5, lead=())
    drawn = rg.Weights(q.expand(8000, 8), k, normaliser=normalisers.hard(sample=True, generator=seeded(4)))
    expected = reference.attend(q, k, k).weights[0]
    assert ((drawn.received() / 8000 - expected).abs() < 5 * (expected * (1 - expected) / 8000).sqrt()).all()


# --- odd shapes

SHAPES = {
    "no keys": ((2, 3), 5, 0, 7, 4),
    "no queries": ((2, 3), 0, 5, 7, 4),
    "neither": ((2, 3), 0, 0, 7, 4),
    "empty batch": ((0, 3), 5, 6, 7, 4),
    "one value": ((2, 3), 5, 6, 7, 1),
    "one of all": ((), 1, 1, 1, 1),
    "many axes": ((2, 1, 3, 1), 5, 6, 7, 4),
    "one key": ((2,), 5, 1, 7, 4),
    "wide values": ((2,), 20, 21, 7, 64),
    "no values": ((2,), 5, 6, 7, 0),
}


@every("shape", list(SHAPES.values()), ids=list(SHAPES))
@every(
    "mask", [None, masks.causal(align="bottom-right"), masks.window(2, 1, align="top-left"), masks.prefix(1)], ids=str
)
@plans
@dtypes
def test_attention_of_empty_and_single_dimensions(shape: Any, mask: Any, plan: str, dtype: torch.dtype) -> None:
    lead, n, m, d, d_v = shape
    q, k, v = learn(*qkv(dtype, n, m, d, d_v, lead))
    output, weights = attend(plan, q, k, v, mask=mask)
    output.sum().backward()
    seen = rg.Weights(q, k, score=scores.uniform(), mask=mask, plan="dense").dense() > 0
    close(output, reference.attend(q, k, v, visible=seen).output, dtype)
    assert output.shape == (*lead, n, d_v) and weights.shape == (*lead, n, m)
    assert all(x.grad.shape == x.shape and x.grad.isfinite().all() for x in (q, k, v))


@every("shape", list(SHAPES.values()), ids=list(SHAPES))
@plans
def test_questions_of_empty_and_single_dimensions(shape: Any, plan: str) -> None:
    lead, n, m, d, d_v = shape
    weights = attend(plan, *qkv(torch.float32, n, m, d, d_v, lead)).weights
    rows = [
        weights.entropy(),
        weights.saturation(),
        weights.distance(torch.arange(n)),
        weights.logsumexp(),
        weights.empty_rows(),
    ]
    assert {tuple(x.shape) for x in rows} == {(*lead, n)}
    assert weights.received().shape == (*lead, m)
    assert weights.mass(torch.zeros(m, dtype=torch.long)).shape == (*lead, n, min(m, 1))
    assert weights.top(2).values.shape == weights.top(2).indices.shape == (*lead, n, 2)
    assert weights.heatmap(4).shape == (*lead, min(4, n), min(4, m))
    assert weights.empty_rows().all() if m == 0 else not weights.empty_rows().any()


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "transposed": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "strided": lambda x: x.repeat_interleave(2, -1)[..., ::2],
    "reversed axes": lambda x: x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
    "offset": lambda x: torch.cat([x, x])[x.shape[0] :],
    "expanded": lambda x: x[:1].expand(x.shape),
}


@every("layout", list(LAYOUTS))
@plans
@dtypes
def test_the_layout_of_the_input_does_not_matter(layout: str, plan: str, dtype: torch.dtype) -> None:
    x = learn(*qkv(dtype))
    odd = [LAYOUTS[layout](t) for t in x]
    output = attend(plan, *odd, mask=masks.causal()).output
    plain = attend(plan, *(t.detach().contiguous().clone() for t in odd), mask=masks.causal()).output
    close(output, plain, dtype)
    output.sum().backward()
    assert all(t.grad.isfinite().all() and t.grad.any() for t in x[:3:2])


# --- torch's modes


@every("mode", [torch.no_grad, torch.inference_mode])
@plans
@dtypes
def test_attention_without_gradients(mode: Any, plan: str, dtype: torch.dtype) -> None:
    x = learn(*qkv(dtype))
    with mode():
        output, weights = attend(plan, *x, mask=masks.causal())
        ask_everything(weights)
        made_inside = attend(plan, *(t * 1 for t in x), mask=masks.causal())
        ask_everything(made_inside.weights)
    assert not output.requires_grad and not weights.dense().requires_grad
    close(output, attend(plan, *x, mask=masks.causal()).output, dtype)
    assert torch.equal(output, made_inside.output)


@plans
def test_weights_made_without_gradients_still_answer_outside(plan: str) -> None:
    with torch.inference_mode():
        output, weights = attend(plan, *qkv(torch.float32))
    close(weights.dense() @ qkv(torch.float32)[2], output, torch.float32)


COMPILED = {
    "plain": lambda q, k, v: rg.attend(q, k, v).output,
    "causal": lambda q, k, v: rg.attend(q, k, v, mask=masks.causal()).output,
    "window": lambda q, k, v: rg.attend(q, k, v, mask=masks.window(3, 0)).output,
    "gaussian": lambda q, k, v: rg.attend(q, k, v, score=scores.gaussian(0.5), mask=masks.causal()).output,
    "tiled": lambda q, k, v: rg.attend(q, k, v, mask=masks.causal(), plan="tiled", budget=1 << 14).output,
    "dense": lambda q, k, v: rg.attend(q, k, v, mask=masks.causal(), plan="dense").output,
    "sparsemax": lambda q, k, v: rg.attend(q, k, v, mask=masks.causal(), normaliser=normalisers.sparsemax()).output,
}


def poisoned(dtype: torch.dtype = torch.float32) -> tuple[list[Tensor], list[Tensor]]:
    q, k, v = qkv(dtype)
    clean = learn(q, k, v)
    k[..., AT, :], v[..., AT, :] = torch.nan, torch.inf
    return clean, learn(q, k, v)


@pytest.mark.plain
@every("name", list(COMPILED))
def test_compiled_attention(name: str) -> None:
    torch.compiler.reset()
    function = torch.compile(COMPILED[name], fullgraph=True, backend="aot_eager")
    compiled, eager = learn(*qkv(torch.float32)), learn(*qkv(torch.float32))
    outputs = function(*compiled), COMPILED[name](*eager)
    close(*outputs, torch.float32)
    for output in outputs:
        output.square().sum().backward()
    for a, b in zip(compiled, eager, strict=True):
        close(a.grad, b.grad, torch.float32)


@pytest.mark.plain
@every("name", [name for name in COMPILED if name != "plain"])
def test_compiled_attention_with_hidden_nan(name: str) -> None:
    torch.compiler.reset()
    function = torch.compile(COMPILED[name], fullgraph=True, backend="aot_eager")
    clean, dirty = poisoned()
    expected, output = COMPILED[name](*clean), function(*dirty)
    assert output[..., AT, :].isnan().any(-1).all()
    close(output[..., :AT, :], expected[..., :AT, :], torch.float32)
    output[..., :AT, :].sum().backward()
    expected[..., :AT, :].sum().backward()
    for a, b in zip(dirty, clean, strict=True):
        close(a.grad, b.grad, torch.float32)


@pytest.mark.plain
@pytest.mark.long
@every("name", ["plain", "causal"])
def test_attention_compiled_by_inductor(name: str) -> None:
    torch.compiler.reset()
    function = torch.compile(COMPILED[name], fullgraph=True)
    clean, dirty = poisoned()
    x = clean if name == "plain" else dirty
    output, expected = function(*x), COMPILED[name](*clean)
    close(output[..., :AT, :], expected[..., :AT, :], torch.float32)
    output[..., :AT, :].sum().backward()
    assert all(t.grad.isfinite().all() for t in x)


@pytest.mark.plain
@every("name", ["plain", "causal"])
def test_exported_attention(name: str) -> None:
    class Module(torch.nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return COMPILED[name](q, k, v)

    x = qkv(torch.float32)
    program = torch.export.export(Module(), tuple(x))
    close(program.module()(*x), COMPILED[name](*x), torch.float32)
    if name == "causal":
        x[1][..., AT, :], x[2][..., AT, :] = torch.nan, torch.nan
        assert torch.equal(program.module()(*x).isnan().all(-1), (ROWS >= AT).expand(2, 3, 24))


@every("name", list(COMPILED))
def test_attention_under_vmap(name: str) -> None:
    x = qkv(torch.float32)
    close(torch.func.vmap(COMPILED[name])(*x), COMPILED[name](*x), torch.float32)
    shared = torch.func.vmap(COMPILED[name], in_dims=(0, None, None))(x[0], x[1][0], x[2][0])
    close(shared[1], COMPILED[name](x[0][1], x[1][0], x[2][0]), torch.float32)


@every("name", ["causal", "window", "dense", "tiled"])
def test_attention_under_vmap_with_hidden_nan(name: str) -> None:
    clean, dirty = poisoned()
    output = torch.func.vmap(COMPILED[name])(*dirty)
    close(output[..., :AT, :], COMPILED[name](*clean)[..., :AT, :], torch.float32)
    assert output[..., AT, :].isnan().any(-1).all()


@every("name", list(COMPILED))
def test_attention_under_func_grad(name: str) -> None:
    x = learn(*qkv(torch.float64))
    actual = torch.func.grad(lambda *t: COMPILED[name](*t).square().sum(), argnums=(0, 1, 2))(*x)
    COMPILED[name](*x).square().sum().backward()
    for a, t in zip(actual, x, strict=True):
        close(a, t.grad, torch.float64)


def test_attention_gradient_per_sample() -> None:
    q, k, v = qkv(torch.float64)
    loss = torch.func.grad(lambda q, k, v: rg.attend(q, k, v, mask=masks.causal()).output.square().sum())
    each = torch.func.vmap(loss)(q, k, v)
    for b in range(2):
        close(each[b], loss(q[b], k[b], v[b]), torch.float64)


# --- weights over tensors that change


def change(x: Tensor) -> None:
    with torch.no_grad():
        x.logical_not_() if x.dtype == torch.bool else x.add_(1)


def watched() -> dict[str, tuple[Tensor, Any]]:
    """What is changed -> the weights that stand on it."""
    q, k, v = qkv(torch.float32)
    w, t, bias = torch.randn(8, 8), torch.randn(()), torch.randn(24, 24)
    cells, lengths = torch.ones(24, 24, dtype=torch.bool), torch.tensor([3, 4])
    return {
        "query": (q, rg.attend(q, k, v).weights),
        "key": (k, rg.attend(q, k, v).weights),
        "general": (w, rg.attend(q, k, v, score=scores.general(w)).weights),
        "gaussian": (t, rg.attend(q, k, v, score=scores.gaussian(t)).weights),
        "bias": (bias, rg.attend(q, k, v, score=scores.scaled_dot() + scores.bias(bias)).weights),
        "allow": (cells, rg.attend(q, k, v, mask=masks.causal() & masks.allow(cells)).weights),
        "padding": (lengths, rg.attend(q, k, v, mask=masks.padding(lengths)).weights),
    }


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "entropy": lambda w: w.entropy(),
    "block": lambda w: w[0, 0],
    "dense": lambda w: w.dense(),
    "pool": lambda w: w @ torch.ones(2, 3, 24, 1),
    "transposed": lambda w: w.mT @ torch.ones(2, 3, 24, 1),
    "top": lambda w: w.top(1),
    "received": lambda w: w.received(),
    "snapshot": lambda w: w.snapshot(),
}


@every("what", ["query", "key", "general", "gaussian", "bias", "allow", "padding"])
@every("question", list(QUESTIONS))
def test_stale_weights_refuse_and_name_the_tensor_and_the_way_out(what: str, question: str) -> None:
    tensor, weights = watched()[what]
    change(tensor)
    with pytest.raises(errors.StaleWeightsError, match=rf"(?s)(?=.*{what})(?=.*snapshot\(\))"):
        QUESTIONS[question](weights)


@every("what", ["query", "key", "general", "gaussian", "bias", "allow", "padding"])
def test_a_snapshot_survives(what: str) -> None:
    tensor, weights = watched()[what]
    before, kept = weights.dense().clone(), weights.snapshot()
    change(tensor)
    torch.testing.assert_close(kept.dense(), before)
    torch.testing.assert_close(kept.entropy(), reference.entropy(before.double()).float(), atol=1e-5, rtol=1e-5)


def test_a_snapshot_is_detached() -> None:
    q, k, v = learn(*qkv(torch.float32))
    kept = rg.attend(q, k, v).weights.snapshot()
    assert not kept.entropy().requires_grad and not (kept @ v.detach()).requires_grad


def test_a_changed_value_does_not_matter() -> None:
    q, k, v = qkv(torch.float32)
    weights = rg.attend(q, k, v).weights
    before = weights.dense()
    v.add_(1)
    assert torch.equal(weights.dense(), before)


def test_one_step_of_an_optimiser_makes_weights_stale() -> None:
    w = torch.nn.Parameter(torch.eye(8))
    output, weights = rg.attend(*qkv(torch.float32), score=scores.general(w))
    output.sum().backward()
    torch.optim.SGD([w], lr=0.1).step()
    with pytest.raises(errors.StaleWeightsError, match=r"(?s)general.*snapshot\(\)"):
        weights.entropy()


# --- questions shared among workers


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


WORKED: dict[str, tuple[Callable[[Any], Tensor], Callable[[Tensor], Tensor]]] = {
    "entropy": (lambda w: w.entropy(), reference.entropy),
    "saturation": (lambda w: w.saturation(), reference.saturation),
    "received": (lambda w: w.received(), reference.received),
    "distance": (lambda w: w.distance(), reference.distance),
    "top": (lambda w: w.top(3).values, lambda p: p.topk(3).values),
    "many on top": (lambda w: w.top(20).values, lambda p: p.topk(20).values),
    "heatmap": (lambda w: w.heatmap(), lambda p: reference.heatmap(p, 256, "mean")),
    "max heatmap": (lambda w: w.heatmap(9, pool="max"), lambda p: reference.heatmap(p, 9, "max")),
    "empty_rows": (lambda w: w.empty_rows(), lambda p: p.sum(-1) == 0),
}


@pytest.mark.usefixtures("two_threads")
@every("question", list(WORKED))
@every("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_workers_agree_with_one(question: str, mode: Any) -> None:
    n, (ask, answer) = 300, WORKED[question]
    with mode():
        q, k, v = qkv(torch.float64, n, n, lead=(2,))
        weights = rg.attend(q, k, v, mask=masks.window(30, 1), plan="tiled", budget=1 << 15).weights
        dense = reference.attend(q, k, v, visible=reference.window(n, n, 30, 1)).weights
        torch.testing.assert_close(ask(weights), answer(dense), atol=1e-9, rtol=1e-9)


@pytest.mark.usefixtures("two_threads")
def test_questions_leave_the_threads_of_torch_alone() -> None:
    def seen_by_a_new_thread() -> int:
        with ThreadPoolExecutor(1) as fresh:
            return fresh.submit(torch.get_num_threads).result()

    before = torch.get_num_threads(), seen_by_a_new_thread()
    q, k, _ = qkv(torch.float32, 300, 300)
    rg.Weights(q, k, plan="tiled", budget=1 << 15).entropy()
    assert (torch.get_num_threads(), seen_by_a_new_thread()) == before
