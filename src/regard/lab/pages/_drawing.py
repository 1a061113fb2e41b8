"""Keys that are drawn, what they earn, and the gradient that is estimated from it."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from regard import nn, scores
from regard.attention import attend
from regard.weights import Weights


class Draws(NamedTuple):
    weights: Weights  # (draws, m) one-hot
    earned: Tensor  # () the mean reward
    gradients: Tensor  # (draws, m) of the expected reward by the scores, estimated from each draw alone
    baseline: Tensor  # () what was subtracted from the rewards


def draw(sharp: Tensor, rewards: Tensor, draws: int, seed: int, baseline: str | None) -> Draws:
    """Draw keys by hard attention with scores `sharp` (m,).

    Draw number i is a query of its own, one-hot, so that q·Wk picks row i of W: its gradient is that of this one draw.
    """
    generator = torch.Generator().manual_seed(seed + 1)
    layer = nn.HardAttention(draws, len(sharp), baseline=baseline, generator=generator, dtype=sharp.dtype)
    with torch.no_grad():
        layer.w.copy_(sharp.expand(draws, -1))
    inputs = torch.eye(draws).to(sharp), torch.eye(len(sharp)).to(sharp), rewards[:, None]
    before = rewards.new_zeros(())
    if baseline == "moving":
        output, weights = layer(*inputs)
        layer.surrogate(weights, output[:, 0])  # remembers what was earned
        before = layer.average / (1 - layer.momentum)
    generator.manual_seed(seed)
    output, weights = layer(*inputs)
    (gradients,) = torch.autograd.grad(layer.surrogate(weights, output[:, 0], reduction="sum"), layer.w)
    return Draws(weights, output.mean(), -gradients, before)  # the loss is minus the reward


class Exact(NamedTuple):
    expected: Tensor  # () sum_j p_j r_j
    gradient: Tensor  # (m,) by the scores: p_j (r_j - expected)


def exact(sharp: Tensor, rewards: Tensor) -> Exact:
    """What all those draws are about: soft attention can be differentiated."""
    learned = sharp.clone().requires_grad_()
    query, key = sharp.new_zeros(1, 1), sharp.new_zeros(len(sharp), 1)
    expected = attend(query, key, rewards[:, None], score=scores.bias(learned)).output.sum()
    return Exact(expected.detach(), torch.autograd.grad(expected, learned)[0])
