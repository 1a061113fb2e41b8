"""Values narrower or wider than keys, where torch builds the n x n matrix."""

from __future__ import annotations

from functools import partial
from itertools import product

from benchmarks.attend import attend, sdpa
from benchmarks.goals import words
from benchmarks.harness import Family, Line, Sizes
from benchmarks.tasks import BOTH, SDPA, SHORT_SDPA, attention_work, maker, mode_name, mode_words, pairs_full

PEER = words(f"{SDPA} (builds n x n)", f"{SDPA}（会构造 n x n 矩阵）")
SPEEDUPS = {(1, False): 2.5, (1, True): 1.9, (8, False): 2.5, (8, True): 1.9, (128, False): 1.8, (128, True): 1.3}


def family(d_v: int, gradients: bool) -> Family:
    mode, widths = mode_words(gradients), "128" if d_v == 128 else "1, 8"
    return Family(words(f"d_v = {widths}, {mode['en']}", f"d_v = {widths}，{mode['zh']}"), PEER)


def line(n: int, d_v: int, gradients: bool) -> Line:
    sizes = Sizes(n=n, d_v=d_v)
    return Line(
        name=f"value_width/d_v{d_v}/{mode_name(gradients)}",
        family=family(d_v, gradients),
        sizes=sizes,
        make=maker(gradients=gradients),
        ours=partial(attend, causal=False),
        peers={SHORT_SDPA: partial(sdpa, causal=False)},
        work=attention_work(sizes, pairs_full(n), gradients=gradients),
        goals=(f"speedup >= {SPEEDUPS[d_v, gradients]}", "memory_mb <= 64"),
        gradients=gradients,
        rounds=15,
        memory=True,
    )


def lines(quick: bool) -> list[Line]:
    return [line(1024 if quick else 2048, d_v, gradients) for d_v, gradients in product((1, 8, 128), BOTH)]
