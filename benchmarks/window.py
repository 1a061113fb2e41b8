"""A sliding window: key j is visible to query i when i - 256 <= j <= i."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

import regard as rg
from benchmarks.goals import Text, words
from benchmarks.harness import Family, Line, Sizes, Tensors
from benchmarks.tasks import SDPA, attention_work, make_tensors, maker, pairs_window
from regard import masks

LEFT = 256


def work(n: int) -> Text:
    return words(f"window 256, n = {n}, forward+backward", f"窗口 256，n = {n}，前向加反向")


def make_masked(sizes: Sizes) -> Tensors:
    i = torch.arange(sizes.n)
    back = i[:, None] - i
    return replace(make_tensors(sizes, gradients=True), more={"visible": (back >= 0) & (back <= LEFT)})


def windowed(x: Tensors) -> Tensor:
    return rg.attend(x.q, x.k, x.v, mask=masks.window(LEFT, 0)).output


def masked_sdpa(x: Tensors) -> Tensor:
    return scaled_dot_product_attention(x.q, x.k, x.v, attn_mask=x.more["visible"])


def against_sdpa(n: int) -> Line:
    sizes = Sizes(n=n)
    return Line(
        name=f"window/n{n}",
        family=Family(work(n), words(f"{SDPA} with the boolean mask", f"{SDPA}，布尔掩码")),
        sizes=sizes,
        make=make_masked,
        ours=windowed,
        peers={"sdpa with the boolean mask": masked_sdpa},
        work=attention_work(sizes, pairs_window(n, LEFT), gradients=True),
        goals=("speedup >= 15",) if n == 8192 else (),
        gradients=True,
        rounds=7 if n > 4096 else 15,
        memory=n == 8192,
    )


def against_itself(n: int, base: int) -> Line:
    return replace(
        against_sdpa(n),
        name=f"window/n{n}/from {base}",
        family=Family(work(n), words(f"itself at n = {base}", f"自身，n = {base}")),
        make=maker(gradients=True),
        peers={f"n = {base}": windowed},
        goals=("time_ratio <= 4.8", "memory_mb <= 256") if (n, base) == (32768, 8192) else (),
        rounds=15,
        memory=True,
        peer_sizes=Sizes(n=base),
    )


def lines(quick: bool) -> list[Line]:
    if quick:
        return [against_sdpa(2048), against_itself(8192, 2048)]
    return [*map(against_sdpa, (2048, 4096, 8192)), against_itself(16384, 8192), against_itself(32768, 8192)]
