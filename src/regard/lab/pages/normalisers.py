"""Normalisers and hard attention: from scores to weights, and the REINFORCE gradient of drawn keys.

`show` returns, for m scores that are divided by the temperature:

    scores          (m,)  as given
    sharpened       (m,)  scores / temperature: the input of the normaliser
    rows            one a normaliser, in the order of `NORMALISERS`: {name, weights (m,), total: their sum, support: how
                    many are above 0, entropy: null for sigmoid, which gives no distribution}; "sample" is one draw
    weights         (m,)  of the one that is `chosen`
    normalised      bool: whether these sum to 1 (all but sigmoid)
    probabilities   (m,)  softmax: the distribution that hard attention draws from
    counts          (m,)  how often each key was drawn in `draws` draws; `shares` = counts / draws
    rewards         (m,)  the reward of each key
    expected        the expected reward, sum_j p_j r_j, and `earned`: the mean reward of the draws
    exact           (m,)  gradient of the expected reward by the (sharpened) scores: p_j (r_j - expected)
    estimate        (m,)  its score-function estimate from the draws (REINFORCE), without a baseline
    spread          (m,)  standard deviation of that estimate from a single draw
    baseline        the baseline: the mean reward of as many earlier draws
    calmer          (m,)  the estimate from the same draws with the baseline
    calmer_spread   (m,)  its standard deviation; `variance_ratio`: sum of its squares over those of `spread`; null
                    where nothing varies
    learning        what `STEPS` draws teach, one after the other: null unless `view` is "gradient", else
                    {scores, probabilities (steps + 1, m): before each draw and at the end; expected (steps + 1,): the
                    reward; drawn (steps,): keys, counted from 0; earned (steps,): their rewards; baseline (steps,):
                    the mean reward so far}
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard import normalisers, scores
from regard.errors import ShapeError
from regard.lab.pages._numbers import literal
from regard.lab.pages._reinforce import exact_gradient, learn, sample_gradients
from regard.lab.pages._state import Choice, Many, Maybe, Real, Whole, setting
from regard.lab.strict_json import plain
from regard.weights import Weights

NORMALISERS = ("softmax", "sparsemax", "entmax15", "sigmoid", "hard", "sample")
VIEWS = ("weights", "gradient")
MAX_KEYS = 12  # bars that fit the picture
STEPS = 60  # draws from which is learned


@dataclass(frozen=True)
class State:
    scores: tuple[float, ...] = setting((2.0, 1.0, 0.5, -0.5, -1.5), Many(Real(-20, 20), 2, MAX_KEYS))
    temperature: float = setting(1.0, Real(0.05, 20))
    chosen: str = setting("softmax", Choice(NORMALISERS))
    view: str = setting("weights", Choice(VIEWS))  # which half the code is about
    draws: int = setting(200, Whole(2, 500))
    seed: int = setting(0, Whole(0, 2**31 - 2))
    rewards: tuple[float, ...] | None = setting(
        None, Maybe(Many(Real(-20, 20), 2, MAX_KEYS))
    )  # none: 1 for the second key
    rate: float = setting(0.5, Real(0.05, 5))  # of learning
    step: int = setting(0, Whole(0, STEPS))  # of learning, that is looked at


def show(state: State) -> dict[str, Any]:
    """Every normaliser on the same scores, and the gradient of hard attention, exact and from draws."""
    sharpened = torch.tensor(state.scores, dtype=torch.float64) / state.temperature
    rows = [_row(name, _weights(sharpened, _normaliser(name, state.seed))) for name in NORMALISERS]
    chosen = rows[NORMALISERS.index(state.chosen)]
    return plain({
        "scores": state.scores,
        "sharpened": sharpened,
        "rows": rows,
        "weights": chosen["weights"],
        "normalised": state.chosen != "sigmoid",
        "probabilities": rows[0]["weights"],
        **_gradients(state, sharpened),
        "learning": _learning(state) if state.view == "gradient" else None,
    })  # fmt: skip


def _normaliser(name: str, seed: int) -> normalisers.Normaliser:
    if name == "sample":
        return normalisers.hard(sample=True, generator=torch.Generator().manual_seed(seed))
    return NORMALISER_OF_NAME[name]()


NORMALISER_OF_NAME: dict[str, Callable[[], normalisers.Normaliser]] = {
    "softmax": normalisers.softmax,
    "sparsemax": normalisers.sparsemax,
    "entmax15": normalisers.entmax15,
    "sigmoid": normalisers.sigmoid,
    "hard": normalisers.hard,
}


def _weights(sharpened: Float[Tensor, " keys"], normaliser: normalisers.Normaliser) -> Weights:
    """Weights of given scores; queries and keys are zeros."""
    query, key = sharpened.new_zeros(1, 1), sharpened.new_zeros(len(sharpened), 1)
    return Weights(query, key, score=scores.bias(sharpened), normaliser=normaliser)


def _row(name: str, weights: Weights) -> dict[str, Any]:
    row = weights.dense()[0]
    entropy = weights.entropy()[0] if weights.normalised else None
    return {"name": name, "weights": row, "total": row.sum(), "support": (row > 0).sum(), "entropy": entropy}


def _gradients(state: State, sharpened: Float[Tensor, " keys"]) -> dict[str, Any]:
    rewards = _rewards(state)
    plain_draws = sample_gradients(sharpened, rewards, state.draws, state.seed, None)
    with_baseline = sample_gradients(sharpened, rewards, state.draws, state.seed, "moving")
    exact = exact_gradient(sharpened, rewards)
    spread, calmer_spread = plain_draws.gradients.std(0), with_baseline.gradients.std(0)
    variance, counts = spread.square().sum(), plain_draws.weights.received().detach()
    return {
        "counts": counts.round().to(torch.int64),
        "shares": counts / state.draws,
        "rewards": rewards,
        "expected": exact.expected,
        "earned": plain_draws.earned,
        "exact": exact.gradient,
        "estimate": plain_draws.gradients.mean(0),
        "spread": spread,
        "baseline": with_baseline.baseline,
        "calmer": with_baseline.gradients.mean(0),
        "calmer_spread": calmer_spread,
        "variance_ratio": calmer_spread.square().sum() / variance if variance > 0 else None,
    }


def _learning(state: State) -> dict[str, Any]:
    return _learned(state.scores, state.temperature, tuple(_rewards(state).tolist()), state.rate, state.seed)


@lru_cache(maxsize=64)
def _learned(
    key_scores: tuple[float, ...], temperature: float, rewards: tuple[float, ...], rate: float, seed: int
) -> dict[str, Any]:
    sharpened = torch.tensor(key_scores, dtype=torch.float64) / temperature
    steps = learn(sharpened, torch.tensor(rewards, dtype=torch.float64), STEPS, rate, seed)
    drawn = [step.drawn for step in steps if step.drawn is not None]
    return plain({
        "scores": [step.scores for step in steps],
        "probabilities": [step.probabilities for step in steps],
        "expected": [step.expected for step in steps],
        "drawn": drawn,
        "earned": [rewards[key] for key in drawn],
        "baseline": [step.baseline for step in steps[:-1]],
    })  # fmt: skip


def _rewards(state: State) -> Float[Tensor, " keys"]:
    m = len(state.scores)
    rewards = [float(place == 1) for place in range(m)] if state.rewards is None else state.rewards
    if len(rewards) != m:
        raise ShapeError(f"rewards must be as many as scores, one a key: {m} scores came, and {len(rewards)} rewards")
    return torch.tensor(rewards, dtype=torch.float64)


def code(state: State) -> str:
    """Python code that computes `weights`, or the REINFORCE `estimate` from drawn keys, by `view`."""
    start = f"""import torch
import regard as rg

sharpened = torch.tensor({literal(state.scores)}, dtype=torch.float64) / {literal(state.temperature)}
"""
    _rewards(state)  # raises the same error as `show`
    return start + (_code_of_weights(state) if state.view == "weights" else _code_of_gradient(state))


def _code_of_weights(state: State) -> str:
    generator, made = "", f"{state.chosen}()"
    if state.chosen == "sample":
        generator = f"generator = torch.Generator().manual_seed({state.seed})\n"
        made = "hard(sample=True, generator=generator)"
    m = len(state.scores)
    return f"""query, key = torch.zeros(1, 1).double(), torch.zeros({m}, 1).double()  # the scores are given
{generator}normaliser = rg.normalisers.{made}
weights = rg.Weights(query, key, score=rg.scores.bias(sharpened), normaliser=normaliser)
print(weights.dense())
"""


def _code_of_gradient(state: State) -> str:
    m, rewards = len(state.scores), literal(_rewards(state).tolist())
    return f"""rewards = torch.tensor({rewards}, dtype=torch.float64)
generator = torch.Generator().manual_seed({state.seed})
layer = rg.nn.HardAttention({state.draws}, {m}, baseline=None, generator=generator, dtype=torch.float64)
layer.w.data = sharpened.repeat({state.draws}, 1)  # a row of W for each draw
query, key = torch.eye({state.draws}).double(), torch.eye({m}).double()
output, drawn = layer(query, key, rewards[:, None])
layer.surrogate(drawn, output[:, 0], reduction="sum").backward()
counts, estimate = drawn.received(), -layer.w.grad.mean(0)
print(counts, estimate)
"""
