"""A query that sees no key: weights, output, answers and gradients are 0, on every plan and in every precision."""

from typing import Any

import reference
import torch
from every_plan import IDS, NOTHING_FOR_ROW_3, attend, close, dtypes, every, learn, plans, qkv

from regard import masks

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
