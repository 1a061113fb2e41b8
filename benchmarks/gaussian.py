"""Attention by distance against an eager softmax of squared distances."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

import regard as rg
from benchmarks.goals import words
from benchmarks.harness import Family, Line, Sizes, Tensors
from benchmarks.tasks import BOTH, attention_work, maker, mode_name, pairs_full
from regard import scores

PEER = words("eager softmax of squared distances", "逐步计算的平方距离 softmax")
NARROW = Family(words("gaussian, d <= 15", "高斯核，d <= 15"), PEER)
WIDE = Family(words("gaussian, d = 64", "高斯核，d = 64"), PEER)


def width(x: Tensors) -> float:
    """Return the w for which squared distances are near 1 in any dimension."""
    return x.q.shape[-1] ** -0.5


def ours(x: Tensors) -> Tensor:
    return rg.attend(x.q, x.k, x.v, score=scores.gaussian(width(x))).output


def by_cdist(x: Tensors) -> Tensor:
    w = width(x)
    return torch.softmax(torch.cdist(w * x.q, w * x.k).square() / -2, -1) @ x.v


def by_expanded_square(x: Tensors) -> Tensor:
    w = width(x)
    q, k = w * x.q, w * x.k
    logits = q @ k.mT
    logits -= q.square().sum(-1, keepdim=True) / 2
    logits -= k.square().sum(-1).unsqueeze(-2) / 2
    return torch.softmax(logits, -1) @ x.v


def line(n: int, d: int, gradients: bool) -> Line:
    sizes = Sizes(n=n, d=d, d_v=d)
    goals = (f"speedup >= {1.3 if d > 15 else 4}", "memory_mb <= 64")
    return Line(
        name=f"gaussian/d{d}/{mode_name(gradients)}",
        family=WIDE if d > 15 else NARROW,
        sizes=sizes,
        make=maker(gradients=gradients),
        ours=ours,
        peers={"cdist": by_cdist, "expanded square": by_expanded_square},
        work=attention_work(sizes, pairs_full(n), gradients=gradients),
        goals=() if gradients else goals,
        gradients=gradients,
        rounds=9 if gradients else 15,
        memory=not gradients,
    )


def lines(quick: bool) -> list[Line]:
    dimensions = (15, 64) if quick else (5, 15, 64)
    return [line(1024 if quick else 2048, d, gradients) for d, gradients in product(dimensions, BOTH)]
