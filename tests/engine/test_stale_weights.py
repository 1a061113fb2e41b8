"""Weights over tensors that change: they refuse and name the tensor; a snapshot keeps its numbers."""

from collections.abc import Callable
from typing import Any

import pytest
import reference
import torch
from every_plan import every, learn, qkv
from torch import Tensor

import regard as rg
from regard import errors, masks, scores


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
def test_a_snapshot_keeps_its_weights_when_a_tensor_changes(what: str) -> None:
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
