"""The best that a user writes by hand for a mask: the documents as a batch or in a loop, or the mask as booleans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.harness import Tensors


def sdpa(x: Tensors, *, causal: bool = False, dropout_p: float = 0.0) -> Tensor:
    grouped = x.k.shape[1] != x.q.shape[1]
    return scaled_dot_product_attention(x.q, x.k, x.v, dropout_p=dropout_p, is_causal=causal, enable_gqa=grouped)


def sdpa_with(name: str) -> Callable[[Tensors], Tensor]:
    """Return F.sdpa with `more[name]`, booleans or numbers, as its mask."""

    def masked(x: Tensors) -> Tensor:
        grouped = x.k.shape[1] != x.q.shape[1]
        return scaled_dot_product_attention(x.q, x.k, x.v, attn_mask=x.more[name], enable_gqa=grouped)

    return masked


def as_batch(x: Tensors, *, documents: int, causal: bool) -> Tensor:
    """Attend within documents of equal length, packed into one sequence each, as a batch of documents."""
    q, k, v = (part.unflatten(2, (documents, -1)).transpose(1, 2).flatten(0, 1) for part in (x.q, x.k, x.v))
    output = scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=k.shape[1] != q.shape[1])
    return output.unflatten(0, (-1, documents)).transpose(1, 2).flatten(2, 3)


def loop(x: Tensors, *, lengths: Callable[[int], Sequence[int]], causal: bool) -> Tensor:
    """Attend within each document of a packed sequence, one after the other."""
    edges = (0, *accumulate(lengths(x.q.shape[2])))
    parts = [(x.q[:, :, a:b], x.k[:, :, a:b], x.v[:, :, a:b]) for a, b in pairwise(edges)]
    return torch.cat([scaled_dot_product_attention(*part, is_causal=causal) for part in parts], 2)
