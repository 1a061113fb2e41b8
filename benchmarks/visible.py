"""Masks of regard, each with the same rule written as booleans, and the pairs that they show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

from benchmarks.harness import Sizes
from benchmarks.tasks import SEED
from regard import masks
from regard.masks import Align, Mask

DOCUMENTS = 4
SINKS = 4
BLOCK = 64  # a fused kernel computes blocks of about so many queries and keys, or nothing of them


@dataclass(frozen=True)
class Places:
    """Where queries and keys stand: the last query beside the last key, four documents, a length a sequence."""

    sizes: Sizes

    @property
    def align(self) -> Align | None:
        return None if self.sizes.n == self.sizes.keys else "bottom-right"

    @property
    def left(self) -> int:
        return max(1, self.sizes.keys // 16)

    @cached_property
    def keys(self) -> Tensor:
        return torch.arange(self.sizes.keys)

    @cached_property
    def queries(self) -> Tensor:
        return self.keys[-self.sizes.n :]

    @cached_property
    def documents(self) -> Tensor:
        return self.keys * DOCUMENTS // self.sizes.keys

    @cached_property
    def lengths(self) -> Tensor:
        shares = torch.linspace(0.1, 1, self.sizes.batch) if self.sizes.batch > 1 else torch.tensor([0.75])
        return (shares * self.sizes.keys).ceil().long()

    @cached_property
    def table(self) -> Tensor:
        shape = (self.sizes.n, self.sizes.keys)
        return torch.rand(shape, generator=torch.Generator().manual_seed(SEED)) < 0.5

    @cached_property
    def starts(self) -> Tensor:
        return self.queries // 2

    @cached_property
    def stops(self) -> Tensor:
        return self.queries + 1


@dataclass(frozen=True)
class Rule:
    """A mask, and the same as booleans that broadcast to (batch, 1, queries, keys)."""

    mask: Callable[[Places], Mask]
    dense: Callable[[Places], Tensor]

    def __and__(self, other: Rule) -> Rule:
        return Rule(lambda at: self.mask(at) & other.mask(at), lambda at: self.dense(at) & other.dense(at))

    def __or__(self, other: Rule) -> Rule:
        return Rule(lambda at: self.mask(at) | other.mask(at), lambda at: self.dense(at) | other.dense(at))


def distances(at: Places) -> Tensor:
    return at.queries[:, None] - at.keys


SINGLE = {
    "causal": Rule(lambda at: masks.causal(at.align), lambda at: distances(at) >= 0),
    "window": Rule(
        lambda at: masks.window(at.left, 0, at.align), lambda at: (distances(at) >= 0) & (distances(at) <= at.left)
    ),
    "prefix": Rule(lambda at: masks.prefix(at.sizes.keys // 2), lambda at: (at.keys < at.sizes.keys // 2)[None]),
    "padding": Rule(lambda at: masks.padding(at.lengths), lambda at: at.keys < at.lengths[:, None, None, None]),
    "segments": Rule(
        lambda at: masks.segments(at.documents[-at.sizes.n :], at.documents),
        lambda at: at.documents[-at.sizes.n :, None] == at.documents,
    ),
    "allow": Rule(lambda at: masks.allow(at.table), lambda at: at.table),
    "ranges": Rule(
        lambda at: masks.ranges(at.starts, at.stops),
        lambda at: (at.keys >= at.starts[:, None]) & (at.keys < at.stops[:, None]),
    ),
}
SINK = Rule(lambda _: masks.prefix(SINKS), lambda at: (at.keys < SINKS)[None])
PAIRS = {f"{a} & {b}": SINGLE[a] & SINGLE[b] for a, b in combinations(SINGLE, 2)}
SINKS_AND_WINDOW = "sinks | window"
RULES = SINGLE | PAIRS | {SINKS_AND_WINDOW: (SINK & SINGLE["causal"]) | SINGLE["window"]}


def visible_pairs(mask: str | None, sizes: Sizes) -> Tensor:
    """Return booleans (batch or 1, 1, queries, keys): what each query sees."""
    at = Places(sizes)
    dense = RULES[mask].dense(at) if mask else torch.ones(1, 1, dtype=torch.bool)
    dense = dense.reshape((*[1] * (4 - dense.dim()), *dense.shape))
    return dense.expand(dense.shape[0], 1, sizes.n, sizes.keys)


def count(visible: Tensor, sizes: Sizes) -> int:
    """Count the pairs of one head over the whole batch."""
    return int(visible.sum()) * sizes.batch // visible.shape[0]


def count_in_blocks(visible: Tensor, sizes: Sizes) -> int:
    """Count all pairs of the blocks of 64 x 64 in which any pair is visible."""
    touched = max_pool2d(visible.float(), BLOCK, ceil_mode=True) > 0
    edges = (torch.arange(0, length, BLOCK) for length in visible.shape[-2:])
    heights, widths = (
        (length - start).clamp(max=BLOCK) for length, start in zip(visible.shape[-2:], edges, strict=True)
    )
    return int((touched * heights[:, None] * widths).sum()) * sizes.batch // visible.shape[0]


def key_range(visible: Tensor) -> tuple[int, int]:
    """Return the range of keys beyond which no query of a sequence (..., queries, keys) sees any."""
    seen = visible.flatten(0, -2).any(0).nonzero()
    return (int(seen[0]), int(seen[-1]) + 1) if len(seen) else (0, 1)
