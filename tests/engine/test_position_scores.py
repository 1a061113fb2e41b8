"""Scores that depend on positions alone: biases and slopes, added without a copy."""

import math

import pytest
import torch
from largest_allocation import LargestAllocation
from random_qkv import qkv

import regard as rg
from regard import scores


@pytest.mark.parametrize("score", [scores.alibi(torch.tensor([0.5, 0.1, 0.2])), scores.bias(torch.arange(20.0))])
def test_a_score_of_positions_alone_answers_every_question(score):
    q, k, v = qkv(lead=(2, 3))
    output, weights = rg.attend(q, k, v, score=score)
    dense = weights.dense()
    torch.testing.assert_close(dense @ v, output, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weights.received(), dense.sum(-2), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weights.heatmap(5, "sum").sum((-1, -2)), torch.full((2, 3), 20.0), atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("plan", ["fused", "tiled"])
def test_a_bias_is_not_copied(dtype, plan):
    """A bias is as large as the matrix, also when it comes in another dtype and when it makes scores large."""
    q, k, v = qkv(n=1100, m=1100, lead=())
    t = torch.randn(1100, 1100, dtype=dtype)
    t[3, 5] = 60.0
    t[:, 7] = -math.inf
    with LargestAllocation() as largest:
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


def test_biases_before_a_product_run_on_the_fused_kernel():
    q, k, v = qkv()
    one, two = torch.randn(20, 20), torch.randn(20)
    score = scores.bias(one) + scores.bias(two) + scores.scaled_dot()
    output = rg.attend(q, k, v, score, plan="fused").output
    torch.testing.assert_close(output, rg.attend(q, k, v, score, plan="dense").output, atol=1e-5, rtol=1e-5)
