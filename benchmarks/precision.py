"""float16 and bfloat16: how exact, and how fast."""

from __future__ import annotations

import random
from functools import partial
from itertools import product

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

import regard as rg
from benchmarks.attend import attend, sdpa
from benchmarks.goals import words
from benchmarks.harness import Family, Line, Sizes
from benchmarks.tasks import BOTH, SDPA, SEED, SHORT_SDPA, attention_work, maker, mode_name, mode_words, pairs_full

TYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}
SHAPES = 500
ROUNDED = words("the float32 result rounded once", "float32 结果舍入一次")
GOALS = {
    ("float16", False): ("error_ratio <= 1.05",),
    ("bfloat16", False): ("error_ratio <= 1.05",),
    ("float16", True): ("speedup >= 5",),
}


def family(dtype: str, gradients: bool) -> Family:
    mode = mode_words(gradients)
    peer = words(f"{SDPA} in {dtype}", f"{SDPA}（{dtype}）")
    return Family(words(f"{dtype}, {mode['en']}", f"{dtype}，{mode['zh']}"), peer if gradients else ROUNDED)


def error(output: Tensor, truth: Tensor) -> float:
    return float(torch.linalg.vector_norm(output.double() - truth))


def error_ratio(shape: tuple[int, int, int, int], dtype: torch.dtype, generator: torch.Generator) -> float:
    """Our error over that of a float32 result rounded once, both against float64."""
    heads, n, m, d = shape
    q, k, v = (torch.randn(heads, rows, d, generator=generator).to(dtype) for rows in (n, m, m))
    truth = scaled_dot_product_attention(q.double(), k.double(), v.double())
    once = error(scaled_dot_product_attention(q.float(), k.float(), v.float()).to(dtype), truth)
    mine = error(rg.attend(q, k, v).output, truth)
    return 1.0 if mine == once else mine / max(once, 1e-30)


def worst_error(dtype: torch.dtype, shapes: int = SHAPES) -> dict[str, float]:
    """The largest ratio over random shapes."""
    choose, generator = random.Random(SEED), torch.Generator().manual_seed(SEED)

    def shape() -> tuple[int, int, int, int]:
        return choose.randint(1, 4), choose.randint(1, 300), choose.randint(1, 300), choose.randint(1, 96)

    return {"error_ratio": max(error_ratio(shape(), dtype, generator) for _ in range(shapes))}


def line(n: int, dtype: str, gradients: bool) -> Line:
    sizes = Sizes(n=n)
    return Line(
        name=f"precision/{dtype}/{mode_name(gradients)}",
        family=family(dtype, gradients),
        sizes=sizes,
        make=maker(gradients=gradients, dtype=TYPES[dtype]),
        ours=partial(attend, causal=False),
        peers={SHORT_SDPA: partial(sdpa, causal=False)},
        work=attention_work(sizes, pairs_full(n), gradients=gradients),
        goals=GOALS.get((dtype, gradients), ()),
        gradients=gradients,
        rounds=9,
        dtype=dtype,
        quality=None if gradients else partial(worst_error, TYPES[dtype]),
        tolerance=0.05,
    )


def lines(quick: bool) -> list[Line]:
    return [line(1024 if quick else 2048, dtype, gradients) for dtype, gradients in product(TYPES, BOTH)]
