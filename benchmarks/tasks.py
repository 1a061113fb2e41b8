"""Inputs, operation counts and texts that several lines share."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.goals import Text, words
from benchmarks.harness import Sizes, Tensors, Work

Make = Callable[[Sizes], Tensors]
SEED = 20_26
BOTH = (False, True)
SDPA, SHORT_SDPA = "F.scaled_dot_product_attention", "F.sdpa"


def mode_name(gradients: bool) -> str:
    return "forward+backward" if gradients else "forward"


def mode_words(gradients: bool) -> Text:
    return words(mode_name(gradients), "前向加反向" if gradients else "前向")


def mask_name(causal: bool) -> str:
    return "causal" if causal else "full"


def make_tensors(sizes: Sizes, *, gradients: bool = False, dtype: torch.dtype = torch.float32) -> Tensors:
    """Return q, k, v and the gradient of the output: standard normal, equal for equal sizes."""
    generator = torch.Generator().manual_seed(SEED)

    def normal(heads: int, rows: int, width: int) -> Tensor:
        return torch.randn(sizes.batch, heads, rows, width, generator=generator).to(dtype)

    key_heads = sizes.key_heads or sizes.heads
    q = normal(sizes.heads, sizes.n, sizes.d)
    k, v = normal(key_heads, sizes.keys, sizes.d), normal(key_heads, sizes.keys, sizes.d_v)
    cotangent = normal(sizes.heads, sizes.n, sizes.d_v)
    leaves = tuple(x.requires_grad_() for x in (q, k, v)) if gradients else ()
    return Tensors(q, k, v, cotangent, leaves)


def maker(*, gradients: bool = False, dtype: torch.dtype = torch.float32) -> Make:
    return lambda sizes: make_tensors(sizes, gradients=gradients, dtype=dtype)


def pairs_full(n: int) -> int:
    return n * n


def pairs_causal(n: int) -> int:
    return n * (n + 1) // 2


def pairs_window(n: int, left: int) -> int:
    return pairs_causal(n) - pairs_causal(max(0, n - left - 1))


def attention_work(sizes: Sizes, pairs: int, *, gradients: bool) -> Work:
    """Count the products of visible pairs: two forward; backward the scores again and four more, as FlashAttention.

    `pairs` are those of one head, over the whole batch.
    """
    forward = 2 * (sizes.d + sizes.d_v)
    backward = 2 * (3 * sizes.d + 2 * sizes.d_v) if gradients else 0
    return Work(flops=pairs * sizes.heads * (forward + backward), exps=pairs * sizes.heads * (1 + gradients))
