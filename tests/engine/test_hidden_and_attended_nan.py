"""NaN and infinity in a hidden key reach nothing, and in a key that is attended they always show."""

from typing import Any

import reference
import torch
from every_plan import (
    AT,
    HIDERS,
    NOTHING_FOR_ROW_3,
    ROWS,
    TOLERANCE,
    Hider,
    attend,
    close,
    dtypes,
    every,
    learn,
    nobody,
    plans,
    qkv,
)
from strategies import normal, seeded
from torch import Tensor

import regard as rg
from regard import masks, normalisers, scores

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
