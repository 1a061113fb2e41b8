"""Scores and normalisers of regard, each with the same formula as a user writes it by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from benchmarks.harness import Tensors
from benchmarks.tasks import SEED
from regard import normalisers, scores
from regard.normalisers import Normaliser
from regard.scores import Score

PLAIN = "scaled_dot"
HIDDEN = 16  # of the additive score
CAP = 20.0
TEMPERATURE = 0.125
WIDTH = 0.2
HIDDEN_SCORE = -1e4  # finite, because the entmax package makes NaN of -inf


@dataclass(frozen=True)
class Inner:
    """A score as scale q . k + bias, which F.sdpa can compute."""

    q: Tensor
    k: Tensor
    scale: float
    bias: Tensor | None = None


@dataclass(frozen=True)
class Formula:
    """A score and a normaliser; by hand the logits of all pairs, and inner products where the score is one."""

    score: Callable[[Tensors], Score]
    logits: Callable[[Tensors], Tensor]
    inner: Callable[[Tensors], Inner] | None = None
    normaliser: Callable[[], Normaliser] | None = None
    weights: Callable[[Tensor], Tensor] = lambda logits: torch.softmax(logits, -1).nan_to_num()
    exps: int = 1  # exponentials (or tanh) for a pair
    passes: int = 0  # over all scores, beside products, exponentials and logarithms, where no kernel fuses them
    selects: bool = False  # the largest scores of each row have to be found
    uses_keys: bool = True
    pair_bias: bool = False  # a bias of n x m is added
    differentiable_bias: bool = False  # the bias depends on the keys, and F.sdpa gives it no gradient


def inner(
    score: Callable[[Tensors], Score],
    form: Callable[[Tensors], Inner],
    *,
    uses_keys: bool = True,
    learned: bool = False,
    pair_bias: bool = False,
) -> Formula:
    def logits(x: Tensors) -> Tensor:
        parts = form(x)
        product = (parts.q * parts.scale) @ spread(parts.k, parts.q).mT
        return product if parts.bias is None else product + parts.bias

    return Formula(score, logits, form, uses_keys=uses_keys, pair_bias=pair_bias, differentiable_bias=learned)


def spread(k: Tensor, q: Tensor) -> Tensor:
    """Repeat heads of keys for the heads of queries that share them."""
    return k.repeat_interleave(q.shape[1] // k.shape[1], 1) if k.shape[1] not in (1, q.shape[1]) else k


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(SEED))


def scaled(x: Tensors, bias: Tensor | None = None) -> Inner:
    return Inner(x.q, x.k, x.q.shape[-1] ** -0.5, bias)


def parameters(x: Tensors, *, pairs: bool) -> dict[str, Tensor]:
    """Return the tensors that scores need, made once with the inputs; with `pairs` also those of n x m."""
    n, m, d, heads = x.q.shape[-2], x.k.shape[-2], x.q.shape[-1], x.q.shape[1]
    back = torch.arange(m - n, m)[:, None] - torch.arange(m)
    slopes = 2.0 ** -torch.linspace(1, 8, heads)
    table = normal(heads, n + m - 1)
    numbers = {
        "general": normal(d, d) / d,
        "location": normal(m, d) / math.sqrt(d),
        "w_q": normal(HIDDEN, d) / math.sqrt(d),
        "w_k": normal(HIDDEN, d).flip(0) / math.sqrt(d),
        "v": normal(HIDDEN),
        "key_bias": normal(m),
        "slopes": slopes,
        "table": table,
    }
    if pairs:
        numbers["bias"] = normal(n, m)
        numbers["distances"] = -slopes[:, None, None] * back.abs()
        numbers["relative"] = table[:, n - 1 - back]
    return {name: tensor.to(x.q.dtype) for name, tensor in numbers.items()}


def squared_distances(x: Tensors) -> Tensor:
    return torch.cdist(x.q, spread(x.k, x.q)).square()


def bandwidth(x: Tensors) -> float:
    return 1.1 * math.sqrt(2 * x.q.shape[-1])  # a little above the typical distance


def gaussian_parts(x: Tensors) -> Inner:
    k = x.k * WIDTH
    return Inner(x.q * WIDTH, k, 1.0, -spread(k, x.q).square().sum(-1)[..., None, :] / 2)


def additive_logits(x: Tensors) -> Tensor:
    a, b = x.q @ x.more["w_q"].T, spread(x.k, x.q) @ x.more["w_k"].T
    return torch.tanh(a[..., :, None, :] + b[..., None, :, :]) @ x.more["v"]


def dot_logits(x: Tensors) -> Tensor:
    return (x.q * x.q.shape[-1] ** -0.5) @ spread(x.k, x.q).mT


def entmax_by(name: str) -> Callable[[Tensor], Tensor]:
    def weights(logits: Tensor) -> Tensor:
        import entmax

        return getattr(entmax, name)(logits.clamp_min(HIDDEN_SCORE), dim=-1)

    return weights


def plain(_: Tensors) -> Score:
    return scores.scaled_dot()


FORMULAS = {
    PLAIN: inner(plain, scaled),
    "dot": inner(lambda _: scores.dot(), lambda x: Inner(x.q, x.k, 1.0)),
    "cosine": inner(
        lambda _: scores.cosine(TEMPERATURE),
        lambda x: Inner(normalize(x.q, dim=-1), normalize(x.k, dim=-1), 1 / TEMPERATURE),
    ),
    "general": inner(lambda x: scores.general(x.more["general"]), lambda x: Inner(x.q @ x.more["general"], x.k, 1.0)),
    "location": inner(
        lambda x: scores.location(x.more["location"]),
        lambda x: Inner(x.q, x.more["location"].expand(*x.k.shape[:2], -1, -1), 1.0),
        uses_keys=False,
    ),
    "gaussian": inner(lambda _: scores.gaussian(WIDTH), gaussian_parts, learned=True),
    "kernel": Formula(
        lambda x: scores.kernel("epanechnikov", bandwidth(x)),
        lambda x: (1 - squared_distances(x) / bandwidth(x) ** 2).clamp_min(0).log(),
        exps=2,
        passes=8,  # two norms, the bandwidth, 1 - u, the clamp, and of a softmax: maximum, difference, quotient
    ),
    "additive": Formula(
        lambda x: scores.additive(x.more["w_q"], x.more["w_k"], x.more["v"]), additive_logits, exps=HIDDEN + 1, passes=3
    ),
    "uniform": Formula(lambda _: scores.uniform(), lambda x: dot_logits(x) * 0, uses_keys=False, passes=3),
    "key bias": inner(
        lambda x: scores.scaled_dot() + scores.bias(x.more["key_bias"]),
        lambda x: scaled(x, x.more["key_bias"][None, None, None]),
    ),
    "bias": inner(
        lambda x: scores.scaled_dot() + scores.bias(x.more["bias"]),
        lambda x: scaled(x, x.more["bias"][None, None]),
        pair_bias=True,
    ),
    "alibi": inner(
        lambda x: scores.scaled_dot() + scores.alibi(x.more["slopes"]),
        lambda x: scaled(x, x.more["distances"][None]),
        pair_bias=True,
    ),
    "relative": inner(
        lambda x: scores.scaled_dot() + scores.relative(x.more["table"], 1 - x.q.shape[-2]),
        lambda x: scaled(x, x.more["relative"][None]),
        pair_bias=True,
    ),
    "softcap": Formula(
        lambda _: scores.softcap(scores.scaled_dot(), CAP),
        lambda x: CAP * torch.tanh(dot_logits(x) / CAP),
        exps=2,
        passes=5,  # by the cap, and times the cap; of a softmax: maximum, difference, quotient
    ),
    "sigmoid": Formula(plain, dot_logits, normaliser=normalisers.sigmoid, weights=torch.sigmoid, passes=2),
    "sparsemax": Formula(
        plain,
        dot_logits,
        normaliser=normalisers.sparsemax,
        weights=entmax_by("sparsemax"),
        exps=0,
        passes=4,
        selects=True,
    ),
    "entmax15": Formula(
        plain,
        dot_logits,
        normaliser=normalisers.entmax15,
        weights=entmax_by("entmax15"),
        exps=0,
        passes=6,
        selects=True,
    ),
}
