"""Hard attention chooses each key once, for every later question and in any precision."""

import every_plan
import pytest
import reference
import torch
from random_qkv import qkv
from strategies import seeded

import regard as rg
from regard import masks, normalisers, scores
from regard.weights import matrix_of

PLANS = ("auto", "dense", "tiled")


def close_calls(n=64, m=64):
    """Scores so far above 48 that float32 and float64, in which questions are asked then, choose other keys."""
    generator = torch.Generator().manual_seed(11)
    q = torch.randn(2, n, 4, generator=generator)
    k = torch.randn(2, 1, 4, generator=generator) + 1e-6 * torch.randn(2, m, 4, generator=generator)
    return 1e4 * q, 300 * k, torch.eye(m).expand(2, m, m)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("sample", [True, False])
@pytest.mark.parametrize("mask", [None, masks.causal()])
def test_hard_attention_chooses_each_key_once(plan, sample, mask):
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


def test_keys_chosen_in_inference_mode_serve_gradients():
    q, k, v = (t.clone().requires_grad_() for t in qkv())
    weights = rg.Weights(q, k, normaliser=normalisers.hard(sample=True))
    with torch.inference_mode():
        weights.top(1)
    (weights @ v).sum().backward()
    assert v.grad.sum() == 3 * 20 * 8


def test_hard_attention_draws_from_scores_of_positions_alone():
    q, k, v = qkv()
    bias = torch.randn(20, 20)
    for plan in PLANS:
        output, weights = rg.attend(q, k, v, scores.bias(bias), normaliser=normalisers.hard(sample=True), plan=plan)
        torch.testing.assert_close(weights.dense() @ v, output)


@pytest.mark.parametrize("plan", ["auto", "dense", "tiled"])
def test_hard_attention_draws_once(plan: str) -> None:
    q, k, v = every_plan.qkv(torch.float64)
    hard = normalisers.hard(sample=True, generator=seeded(3))
    output, weights = rg.attend(q, k, v, normaliser=hard, plan=plan)
    dense = weights.dense()
    assert torch.equal(dense, weights.dense()) and torch.equal(dense.sum(-1), torch.ones(2, 3, 24, dtype=torch.float64))
    torch.testing.assert_close(dense @ v, output)
    torch.testing.assert_close(weights.received(), dense.sum(-2))
    assert torch.equal(weights.top(1).indices[..., 0], dense.argmax(-1))


def test_hard_attention_draws_with_the_probabilities_of_softmax() -> None:
    q, k, _ = every_plan.qkv(torch.float64, n=1, m=5, lead=())
    drawn = rg.Weights(q.expand(8000, 8), k, normaliser=normalisers.hard(sample=True, generator=seeded(4)))
    expected = reference.attend(q, k, k).weights[0]
    assert ((drawn.received() / 8000 - expected).abs() < 5 * (expected * (1 - expected) / 8000).sqrt()).all()
