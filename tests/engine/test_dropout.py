"""Dropout is applied to what is pooled, never to the weights, and depends on position alone."""

import reference
import torch
from every_plan import attend, close, dtypes, every, plans, qkv

import regard as rg
from regard import masks


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
