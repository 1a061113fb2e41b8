"""Token ids as texts that a person reads."""

from __future__ import annotations

from functools import cache
from typing import Any

from torch import Tensor

Texts = dict[str, list[list[str]]]
HALF = "\ufffd"  # what a tokenizer says of bytes that are no whole character
LONGEST = (
    8  # tokens that are tried together: four bytes are a character, and a token may hold the end of the one before
)


def texts_of(ids: dict[str, Tensor], tokenizer: Any) -> Texts:
    """Each token by itself. Where several tokens make one character, each is told as its part of it: 旷 2/3."""

    @cache
    def text(*tokens: int) -> str:
        return str(tokenizer.decode(list(tokens)))

    return {name: [_row(row, text) for row in tensor.tolist()] for name, tensor in ids.items()}


def _row(tokens: list[int], text: Any) -> list[str]:
    texts = [text(token) for token in tokens]
    start = 0
    while start < len(texts):
        count = _parts(tokens[start : start + LONGEST], text) if HALF in texts[start] else 1
        if count > 1:
            whole = text(*tokens[start : start + count])
            texts[start : start + count] = [f"{whole} {part + 1}/{count}" for part in range(count)]
        start += count
    return texts


def _parts(tokens: list[int], text: Any) -> int:
    """How many of these tokens make whole characters together; 1 if they never do."""
    return next((count for count in range(2, len(tokens) + 1) if HALF not in text(*tokens[:count])), 1)
