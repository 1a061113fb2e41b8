"""attend against the fused kernel it stands on."""

from __future__ import annotations

from functools import partial
from itertools import product

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

import regard as rg
from benchmarks.goals import words
from benchmarks.harness import Family, Line, Sizes, Tensors
from benchmarks.tasks import (
    BOTH,
    SDPA,
    SHORT_SDPA,
    attention_work,
    maker,
    mask_name,
    mode_name,
    pairs_causal,
    pairs_full,
)
from regard import masks

FAMILY = Family(
    work=words(
        "attend, n = 1024 to 8192, causal and not, forward and forward+backward",
        "attend，n = 1024 至 8192，因果与非因果，前向与前向加反向",
    ),
    peer=words(SDPA),
)


def attend(x: Tensors, *, causal: bool) -> Tensor:
    return rg.attend(x.q, x.k, x.v, mask=masks.causal() if causal else None).output


def sdpa(x: Tensors, *, causal: bool) -> Tensor:
    return scaled_dot_product_attention(x.q, x.k, x.v, is_causal=causal)


def line(n: int, causal: bool, gradients: bool) -> Line:
    sizes = Sizes(n=n)
    return Line(
        name=f"attend/n{n}/{mask_name(causal)}/{mode_name(gradients)}",
        family=FAMILY,
        sizes=sizes,
        make=maker(gradients=gradients),
        ours=partial(attend, causal=causal),
        peers={SHORT_SDPA: partial(sdpa, causal=causal)},
        work=attention_work(sizes, pairs_causal(n) if causal else pairs_full(n), gradients=gradients),
        goals=("time_ratio <= 1.05",),
        gradients=gradients,
        rounds=20 if n > 2048 else 30,
        memory=n == 8192,
    )


def lines(quick: bool) -> list[Line]:
    lengths = (1024, 2048) if quick else (1024, 2048, 4096, 8192)
    return [line(n, causal, gradients) for n, causal, gradients in product(lengths, BOTH, BOTH)]
