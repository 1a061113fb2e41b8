"""Hard attention that learns from rewards: the exact gradient, and what is drawn and learned (REINFORCE)."""

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


class LearningStep(NamedTuple):
    """The scores after some draws, and the draw that changes them next."""

    scores: Float[Tensor, " keys"]
    probabilities: Float[Tensor, " keys"]
    expected: Float[Tensor, ""]  # reward, sum_j p_j r_j
    drawn: int | None  # key; none at the end
    baseline: Float[Tensor, ""]  # mean reward of the draws so far, the latest ones counting most


def learn(
    key_scores: Float[Tensor, " keys"], rewards: Float[Tensor, " keys"], steps: int, rate: float, seed: int
) -> list[LearningStep]:
    """Learn scores by gradient ascent on the reward, one draw a step; `steps` draws make one entry more."""
    generator = torch.Generator().manual_seed(seed)
    layer = nn.HardAttention(1, len(key_scores), generator=generator, dtype=key_scores.dtype)
    layer.w.data = key_scores[None].clone()  # with a query of 1 and one-hot keys, W is the row of scores
    optimizer = torch.optim.SGD(layer.parameters(), lr=rate)
    query, key = torch.ones(1, 1).to(key_scores), torch.eye(len(key_scores)).to(key_scores)
    found = list[LearningStep]()
    for step in range(steps + 1):
        scores_now = layer.w.detach()[0].clone()
        probabilities = scores_now.softmax(-1)
        baseline = layer.average / (1 - layer.momentum ** layer.calls.item()) if step else layer.average.clone()
        last = step == steps
        drawn = None if last else _draw_and_update(layer, optimizer, query, key, rewards)
        found.append(LearningStep(scores_now, probabilities, probabilities @ rewards, drawn, baseline))
    return found


def _draw_and_update(
    layer: nn.HardAttention,
    optimizer: torch.optim.Optimizer,
    query: Float[Tensor, "1 1"],
    key: Float[Tensor, "keys keys"],
    rewards: Float[Tensor, " keys"],
) -> int:
    output, weights = layer(query, key, rewards[:, None])
    drawn = int(weights.dense()[0].argmax())
    optimizer.zero_grad()
    layer.surrogate(weights, output[:, 0]).backward()
    optimizer.step()
    return drawn
