"""Dropout whose mask is drawn as random bytes."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Dropout(nn.Module):
    """Dropout from random bytes, which on a processor takes a third of the time of torch's.

    The probability is rounded to a multiple of 1/256, and what stays is divided by the share that stays.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.hidden: int = min(255, round(256 * p))  # bytes below this, of 256, drop their number

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """x with some of its numbers set to 0, in training; x itself otherwise."""
        if not self.training or not self.hidden:
            return x
        words = torch.empty(-(-x.numel() // 8), dtype=torch.int64, device=x.device).random_(-(2**63), None)
        drawn = words.view(torch.uint8)[: x.numel()].view(x.shape)
        return x * (drawn >= self.hidden).to(x.dtype).mul_(256 / (256 - self.hidden))

    def extra_repr(self) -> str:
        """The probability, as `print(model)` shows it."""
        return f"p={self.hidden / 256:.3g}"
