"""A layer of a recording, in a few words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layer:
    """Summary of one attention layer in a recording."""

    name: str
    steps: tuple[int, ...]
    shape: tuple[int, ...]  # (batch, heads, queries, keys) of its first step
    cross: bool  # True if queries and keys come from two sequences
    mask: str  # in words: "causal('top-left')", "padding", "everything", ...
    heads: tuple[int, ...] | None = None  # which of its heads were kept; None: all
    bytes: int = 0  # of all its steps
