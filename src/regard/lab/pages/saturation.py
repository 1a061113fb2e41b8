"""Saturation: softmax becomes one-hot as the width of queries and keys grows, unless scores are scaled.

64 queries and 64 keys of width d_k are drawn with entries N(0, 1). `show` returns, for the m = `keys` first keys:

    d_k, scaled         those of the state
    mean, variance      of the 64 x 64 scores, measured
    expected            the variance in theory: d_k, or 1 for scaled scores
    edges               (b + 1,)  the histogram's bins, from -4 to 4 standard deviations of theory
    counts              (b,)      scores in each bin; those beyond the ends are counted in the last ones
    normal              (b,)      what N(0, expected) would give; q.k nears it as d_k grows
    weights             (m,)      of the first query                       scores (m,): before the softmax
    entropy             of these weights, in nats; `uniform` = log m is the largest there is
    saturation          sum p^2: 1 / m = uniform, 1 = one-hot
    jacobian            Frobenius norm of d weights / d scores: 0 = nothing can be learned
    largest             the largest weight
    nudge               a small change: each entry of every query moves by 0.1 N(0, 1): {size, weights (m,) of the
                        first query afterwards; moved: share of its weight that changed keys; mean_moved: the mean
                        over the 64 queries; flipped: share of them whose first key is another}
    curves              {scaled, unscaled}, each {d_k, variance, error, entropy, saturation, jacobian, gradient}: one
                        number for each power of four up to 1024 (`analysis.saturation`, m keys, means over queries)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard import analysis, scores
from regard.attention import attend
from regard.lab.pages._numbers import score_matrix
from regard.lab.pages._state import Flag, Whole, setting
from regard.lab.strict_json import plain
from regard.weights import Weights

DRAWN = 64  # number of queries, and of keys
BINS = 40  # of the histogram of scores
SPREAD = 4.0  # standard deviations
NUDGE = 0.1  # standard deviation of a small change of the queries
DIMENSIONS = tuple(4**i for i in range(6))  # values of d on the x axis of the curves
QUERIES, TRIALS = 16, 8  # for each point of the curves
COLUMNS = ("d_k", "variance", "error", "entropy", "saturation", "jacobian", "gradient")


@dataclass(frozen=True)
class State:
    d_k: int = setting(64, Whole(1, 1024))
    scaled: bool = setting(False, Flag())
    keys: int = setting(16, Whole(2, DRAWN))
    seed: int = setting(0, Whole(0, 2**31 - 1))


def show(state: State) -> dict[str, Any]:
    """Scores, weights, and the size of the softmax Jacobian."""
    query, key, noise = _draw(state)
    score = scores.scaled_dot() if state.scaled else scores.dot()
    dots = score_matrix(score, query, key)
    expected = 1.0 if state.scaled else float(state.d_k)
    weights = attend(query, key[: state.keys], key[: state.keys], score=score).weights
    rows, squares = weights.dense(), weights.saturation()
    return plain({
        "d_k": state.d_k,
        "scaled": state.scaled,
        "mean": dots.mean(),
        "variance": dots.square().mean(),  # the true mean is 0
        "expected": expected,
        **_histogram(dots, expected),
        "scores": dots[0, : state.keys],
        "weights": rows[0],
        "entropy": weights.entropy()[0],
        "uniform": math.log(state.keys),
        "saturation": squares[0],
        "jacobian": analysis.jacobian_norm(squares, rows.pow(3).sum(-1))[0],
        "largest": rows[0].max(),
        "nudge": _nudge(rows, Weights(query + NUDGE * noise, key[: state.keys], score=score).dense()),
        "curves": _curves(state.keys),
    })  # fmt: skip


def _draw(
    state: State,
) -> tuple[Float[Tensor, "queries dim"], Float[Tensor, "keys dim"], Float[Tensor, "queries dim"]]:
    generator = torch.Generator().manual_seed(state.seed)
    query, key, noise = torch.randn(3, DRAWN, state.d_k, generator=generator, dtype=torch.float64)
    return query, key, noise


def _histogram(dots: Float[Tensor, "queries keys"], expected: float) -> dict[str, Any]:
    edges = torch.linspace(-SPREAD, SPREAD, BINS + 1, dtype=torch.float64)
    inside = (dots.flatten() / expected**0.5).clamp(-SPREAD, SPREAD)
    below = torch.special.ndtr(edges)
    below[0], below[-1] = 0.0, 1.0  # the last bins hold the tails
    return {
        "edges": edges * expected**0.5,
        "counts": torch.histogram(inside, edges).hist.to(torch.int64),
        "normal": below.diff() * dots.numel(),
    }


def _nudge(before: Float[Tensor, "queries keys"], after: Float[Tensor, "queries keys"]) -> dict[str, Any]:
    moved = (after - before).abs().sum(-1) / 2
    flipped = (after.argmax(-1) != before.argmax(-1)).double().mean()
    return {
        "size": NUDGE,
        "weights": after[0],
        "moved": moved[0],
        "mean_moved": moved.mean(),
        "flipped": flipped,
    }


@lru_cache(maxsize=DRAWN)
def _curves(keys: int) -> dict[str, Any]:
    table = analysis.saturation(DIMENSIONS, keys=keys, queries=QUERIES, trials=TRIALS)
    halves = {"scaled": table.scaled, "unscaled": table.unscaled}
    return {name: {column: list(half.column(column)) for column in COLUMNS} for name, half in halves.items()}


def code(state: State) -> str:
    """Python code that computes `variance`, and `weights`, `entropy` and `jacobian` of the first query."""
    score, scale = ("scaled_dot", f" / {state.d_k} ** 0.5") if state.scaled else ("dot", "")
    return f"""import torch
import regard as rg

generator = torch.Generator().manual_seed({state.seed})
query, key, _ = torch.randn(3, {DRAWN}, {state.d_k}, generator=generator, dtype=torch.float64)
variance = (query @ key.mT{scale}).square().mean()
first = rg.Weights(query[:1], key[:{state.keys}], score=rg.scores.{score}())
weights, entropy = first[0], first.entropy()
jacobian = (torch.diag(weights) - torch.outer(weights, weights)).norm()
print(f"variance {{variance:.2f}}, entropy {{entropy.item():.2f}}, Jacobian {{jacobian:.4f}}")
"""
