"""The gradient of hard attention's expected reward: exact, and estimated from drawn keys (REINFORCE)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard import nn, scores
from regard.attention import attend
from regard.weights import Weights


class SampledGradients(NamedTuple):
    """Keys that were drawn, and an estimate of the gradient from each draw alone."""

    weights: Weights  # (draws, keys) one-hot
    earned: Float[Tensor, ""]  # mean reward
    gradients: Float[Tensor, "draws keys"]  # of the expected reward by the scores
    baseline: Float[Tensor, ""]  # subtracted from the rewards


def sample_gradients(
    key_scores: Float[Tensor, " keys"],
    rewards: Float[Tensor, " keys"],
    draws: int,
    seed: int,
    baseline: str | None,
) -> SampledGradients:
    """Draw keys by hard attention, and estimate the gradient by (reward - baseline) d log p / d scores.

    Draw i is a query of its own, one-hot, so that q W k picks row i of W: the gradient of that row is that of draw i.
    """
    generator = torch.Generator().manual_seed(seed + 1)
    layer = nn.HardAttention(draws, len(key_scores), baseline=baseline, generator=generator, dtype=key_scores.dtype)
    with torch.no_grad():
        layer.w.copy_(key_scores.expand(draws, -1))
    inputs = torch.eye(draws).to(key_scores), torch.eye(len(key_scores)).to(key_scores), rewards[:, None]
    subtracted = rewards.new_zeros(())
    if baseline == "moving":
        output, weights = layer(*inputs)
        layer.surrogate(weights, output[:, 0])  # updates the layer's moving average of rewards
        subtracted = layer.average / (1 - layer.momentum)
    generator.manual_seed(seed)
    output, weights = layer(*inputs)
    (gradients,) = torch.autograd.grad(layer.surrogate(weights, output[:, 0], reduction="sum"), layer.w)
    return SampledGradients(weights, output.mean(), -gradients, subtracted)  # the loss is minus the reward


class ExactGradient(NamedTuple):
    expected: Float[Tensor, ""]  # sum_j p_j r_j
    gradient: Float[Tensor, " keys"]  # by the scores: p_j (r_j - expected)


def exact_gradient(key_scores: Float[Tensor, " keys"], rewards: Float[Tensor, " keys"]) -> ExactGradient:
    """Expected reward of a drawn key and its gradient, through soft attention."""
    bias = key_scores.clone().requires_grad_()
    query, key = key_scores.new_zeros(1, 1), key_scores.new_zeros(len(key_scores), 1)
    expected = attend(query, key, rewards[:, None], score=scores.bias(bias)).output.sum()
    return ExactGradient(expected.detach(), torch.autograd.grad(expected, bias)[0])
