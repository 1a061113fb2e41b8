"""Cosine scores and a bias on the keys: still inner products, so still one fused call."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import normalize, scaled_dot_product_attention

import regard as rg
from benchmarks.goals import words
from benchmarks.harness import Contestant, Family, Line, Sizes, Tensors
from benchmarks.tasks import BOTH, SDPA, attention_work, make_tensors, maker, mode_name, pairs_full
from regard import scores

TEMPERATURE = 0.125
COSINE = Family(words("cosine", "余弦"), words(f"normalise + {SDPA}", f"归一化 + {SDPA}"))
FIXED = Family(
    words("key bias without gradient", "键偏置，不求其梯度"),
    words(f"{SDPA} with a (..., 1, m) mask", f"{SDPA}，掩码 (..., 1, m)"),
)
LEARNED = Family(words("key bias with gradient", "键偏置，求其梯度"), words("eager softmax", "逐步计算的 softmax"))


def make_biased(sizes: Sizes, *, gradients: bool, learned: bool) -> Tensors:
    x = make_tensors(sizes, gradients=gradients)
    bias = torch.randn(1, sizes.heads, 1, sizes.n, generator=torch.Generator().manual_seed(1))
    leaves = (*x.leaves, bias.requires_grad_()) if learned else x.leaves
    return replace(x, leaves=leaves, more={"bias": bias})


def cosine(x: Tensors) -> Tensor:
    return rg.attend(x.q, x.k, x.v, score=scores.cosine(TEMPERATURE)).output


def normalised_sdpa(x: Tensors) -> Tensor:
    q, k = normalize(x.q, dim=-1), normalize(x.k, dim=-1)
    return scaled_dot_product_attention(q, k, x.v, scale=1 / TEMPERATURE)


def biased(x: Tensors) -> Tensor:
    return rg.attend(x.q, x.k, x.v, score=scores.scaled_dot() + scores.bias(x.more["bias"])).output


def masked_sdpa(x: Tensors) -> Tensor:
    return scaled_dot_product_attention(x.q, x.k, x.v, attn_mask=x.more["bias"])


def eager(x: Tensors) -> Tensor:
    logits = (x.q * x.q.shape[-1] ** -0.5) @ x.k.mT
    logits += x.more["bias"]
    return torch.softmax(logits, -1) @ x.v


def line(family: Family, name: str, n: int, gradients: bool, ours: Contestant, peers: dict[str, Contestant]) -> Line:
    sizes = Sizes(n=n)
    learned = family is LEARNED
    biased_maker = partial(make_biased, gradients=gradients, learned=learned)
    return Line(
        name=f"bias/{name}/{mode_name(gradients)}",
        family=family,
        sizes=sizes,
        make=maker(gradients=gradients) if family is COSINE else biased_maker,
        ours=ours,
        peers=peers,
        work=attention_work(sizes, pairs_full(n), gradients=gradients),
        goals=("speedup >= 1.5",) if learned else ("time_ratio <= 1.05",),
        gradients=gradients,
        rounds=20,
        memory=learned,
    )


def lines(quick: bool) -> list[Line]:
    n = 1024 if quick else 2048
    return [
        *(line(COSINE, "cosine", n, gradients, cosine, {"normalise + sdpa": normalised_sdpa}) for gradients in BOTH),
        *(line(FIXED, "key", n, gradients, biased, {"sdpa with attn_mask": masked_sdpa}) for gradients in BOTH),
        line(LEARNED, "learned_key", n, True, biased, {"eager": eager}),
    ]
