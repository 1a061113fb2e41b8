"""Scores so large that float32 would lose digits of the weights."""

import math

import pytest
import torch
from random_qkv import qkv

import regard as rg
from regard import masks, scores


@pytest.mark.parametrize("plan", ["auto", "dense", "tiled", "fused"])
def test_a_gaussian_far_from_the_origin_keeps_its_digits(plan):
    q, k, v = qkv(n=64, m=64, d=6)
    exact = rg.attend(q.double(), k.double(), v.double(), score=scores.gaussian(40.0), plan="dense").output
    output = rg.attend(q, k, v, score=scores.gaussian(40.0), plan=plan).output
    torch.testing.assert_close(output.double(), exact, atol=1e-5, rtol=1e-5)


def test_alibi_slopes_with_large_scores_keep_their_digits():
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


def test_the_magnitude_of_a_bias_is_that_of_all_its_parts():
    t = torch.zeros(3, 700, 1100)
    t[2, 699, 1099], t[0, 0, 0] = -70.0, math.nan
    assert scores.bias(t).magnitude(t, t) == 70
