"""Random queries, keys and values, always the same ones."""

import torch


def qkv(n=20, m=20, d=8, lead=(3,), dtype=torch.float32):
    generator = torch.Generator().manual_seed(7)
    return tuple(torch.randn(*lead, length, d, generator=generator, dtype=dtype) for length in (n, m, m))
