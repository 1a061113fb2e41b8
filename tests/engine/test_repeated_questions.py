"""Answers that are remembered: overwriting the tensor that a question returned changes no later answer."""

import pytest
import torch
from random_qkv import qkv

import regard as rg


@pytest.mark.parametrize("question", ["received", "entropy", "saturation", "logsumexp"])
def test_overwriting_an_answer_leaves_the_next_one_right(question):
    q, k, _ = qkv()
    weights = rg.Weights(q, k)
    first = getattr(weights, question)()
    before = first.clone()
    first.zero_()
    torch.testing.assert_close(getattr(weights, question)(), before)


def test_overwriting_top_and_heatmap_leaves_the_next_ones_right():
    q, k, _ = qkv()
    weights = rg.Weights(q, k)
    before = weights.top(3).values.clone(), weights.heatmap(256, "sum").clone()
    weights.top(3).values.zero_()
    weights.heatmap(256, "sum").zero_()
    torch.testing.assert_close((weights.top(3).values, weights.heatmap(256, "sum")), before)
