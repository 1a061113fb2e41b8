"""Self-attention by hand: query = key = value = tokens, no projections.

`show` returns, for n tokens of width d, all in double precision:

    tokens          (n, d)
    d_k             d
    scale           factor of every dot product: 1 / sqrt(d_k), or 1
    products        (n, n) tokens @ tokens.mT
    scores          (n, n) products * scale
    logsumexp       (n,)   log sum_j exp(score_ij): weights = exp(scores - logsumexp)
    weights         (n, n) rows sum to 1
    output          (n, d) weights @ tokens
    leaders         n lists: the keys (from 0) with the row's largest weight; more than one is a tie
    ties            the rows (from 0) whose largest weight is shared
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from regard import datasets, scores
from regard.attention import attend
from regard.lab.pages._numbers import leaders, literal, score_matrix
from regard.lab.pages._state import Flag, Grid, Real, setting
from regard.lab.strict_json import plain

TOKENS: tuple[tuple[float, ...], ...] = tuple(tuple(row) for row in datasets.worked_example().tokens.tolist())


@dataclass(frozen=True)
class State:
    tokens: tuple[tuple[float, ...], ...] = setting(TOKENS, Grid((2, 8), (1, 8), Real(-100, 100)))
    scaled: bool = setting(True, Flag())


def show(state: State) -> dict[str, Any]:
    """Scores, weights and output of the tokens among themselves."""
    tokens = torch.tensor(state.tokens, dtype=torch.float64)
    d_k = tokens.shape[-1]
    score = scores.scaled_dot() if state.scaled else scores.dot()
    output, weights = attend(tokens, tokens, tokens, score=score)
    dense = weights.dense()
    best = leaders(dense)
    return plain({
        "tokens": tokens,
        "d_k": d_k,
        "scale": d_k**-0.5 if state.scaled else 1.0,
        "products": score_matrix(scores.dot(), tokens, tokens),
        "scores": score_matrix(score, tokens, tokens),
        "logsumexp": weights.logsumexp(),
        "weights": dense,
        "output": output,
        "leaders": best,
        "ties": [row for row, keys in enumerate(best) if len(keys) > 1],
    })  # fmt: skip


def code(state: State) -> str:
    """Python code that computes `scores`, `weights` and `output`."""
    scale, score = (" / tokens.shape[1] ** 0.5", "") if state.scaled else ("", ", score=rg.scores.dot()")
    rows = ",\n    ".join(literal(row) for row in state.tokens)
    return f"""import torch
import regard as rg

tokens = torch.tensor([
    {rows},
], dtype=torch.float64)
scores = tokens @ tokens.mT{scale}
output, weights = rg.attend(tokens, tokens, tokens{score})
print(weights.dense().round(decimals=4))
"""
