"""How the matrix is cut into tiles: which heads and rows each has, from sizes and terms alone.

So the cuts are found once for all calls of a kind. To find them takes as long as the scores of a short sequence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from itertools import product
from typing import TypeVar

import torch

from regard.engine.costs import KEY_READ_COST
from regard.masks import Mask
from regard.operands import Size, Span
from regard.tracing import is_tracing

Cut = tuple[tuple[slice, ...], Span]  # heads and rows of a tile
Cuts = TypeVar("Cuts", bound=tuple[object, ...])

MAX_TILE_HEADS = 64  # in a tile
ROW_STEPS = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)  # rows that a tile may have
MAX_KINDS = 32  # of calls whose cuts are remembered; the cache starts anew when it is full
MAX_REMEMBERED = 1 << 13  # cuts of such a call, or positions in them: with more, computing the tiles takes far longer

_remembered: dict[Hashable, tuple[object, ...]] = {}


def remembered(kind: Hashable, make: Callable[[], Cuts], count: Callable[[Cuts], int] = len) -> Cuts:
    """The result of `make()`, computed once for a kind of call, which holds all that it depends on.

    It is kept if `count` of it is small.
    """
    if is_tracing() or torch._C._len_torch_dispatch_stack():  # noqa: SLF001  sizes may be symbols, and tensors fake
        return make()
    try:
        known = _remembered.get(kind)
    except TypeError:  # a mask from outside, with a field that has no hash
        return make()
    if known is not None:
        return known  # pyright: ignore[reportReturnType]  stored under its own kind
    with torch._C._InferenceMode(False):  # noqa: SLF001  positions that are kept must serve gradients too
        cuts = make()
    if count(cuts) <= MAX_REMEMBERED:
        if len(_remembered) >= MAX_KINDS:
            _remembered.clear()
        _remembered[kind] = cuts
    return cuts


def find_cuts(
    mask: Mask | None, size: Size, lead: tuple[int, ...], tile_scores: int, overhead: int, workers: int
) -> tuple[Cut, ...]:
    """Heads and rows of tiles that cover the matrix, of at most `tile_scores` scores where a row of one head allows.

    `overhead` is the fixed cost of a tile, in scores. Where possible, each of `workers` gets equally many groups of
    heads.
    """
    kind = ("cuts", None if mask is None else mask.signature, size, lead, tile_scores, overhead, workers)
    return remembered(kind, lambda: tuple(_cuts(mask, size, lead, tile_scores, overhead, workers)))


def _cuts(
    mask: Mask | None, size: Size, lead: tuple[int, ...], tile_scores: int, overhead: int, workers: int
) -> Iterator[Cut]:
    """The cuts of all heads, a block of heads after the other."""
    max_heads = min(math.prod(lead), MAX_TILE_HEADS) or 1
    cuts: dict[int, list[Span]] = {}  # for each number of heads in a tile
    for heads in head_slices(lead, _heads_in_tile(mask, size, max_heads, tile_scores, overhead, workers)):
        count = math.prod([cut.stop - cut.start for cut in heads])
        if count not in cuts:
            cuts[count] = list(_row_cuts(mask, size, tile_scores // count, overhead / count))
        for rows in cuts[count]:
            yield heads, rows


def _heads_in_tile(mask: Mask | None, size: Size, max_heads: int, tile_scores: int, overhead: int, workers: int) -> int:
    """The cheapest number of heads in a tile, judged at the middle row: many rows of few heads beat the reverse."""
    middle = size.n // 2
    widths = {step: _width(mask, size, middle, step) for step in ROW_STEPS}
    row = max(1, widths[1])
    share = workers if workers <= max_heads else 1
    even = sorted({-(-max_heads // g) for g in range(1, max_heads + 1) if g % share == 0 or g == max_heads})
    counts = [count for count in even if count * row <= tile_scores] or [1]
    costs = [min(_costs(widths.__getitem__, size.n, tile_scores // count, overhead / count)) for count in counts]
    return counts[costs.index(min(costs))]


def _row_cuts(mask: Mask | None, size: Size, tile_scores: int, overhead: float) -> Iterator[Span]:
    """The rows of each tile: many, to spread the overhead; few, to follow the mask's edge."""
    low = 0
    while low < size.n:
        costs = _costs(partial(_width, mask, size, low), size.n, tile_scores, overhead)
        step = ROW_STEPS[costs.index(min(costs))]
        yield Span(low, min(low + step, size.n))
        low += step


def _costs(width_of: Callable[[int], int], n: int, tile_scores: int, overhead: float) -> list[float]:
    """The cost of a row, in scores, for each number of rows in ROW_STEPS that a tile may have."""
    costs: list[float] = []
    for step in ROW_STEPS:
        width = width_of(step)
        taken = min(step, n) or 1
        cost = width * (1 + KEY_READ_COST / taken) + overhead / taken
        if costs and (step * width > tile_scores or cost > costs[-1]):
            break
        costs.append(cost)
    return costs


def _width(mask: Mask | None, size: Size, low: int, step: int) -> int:
    """The number of columns that a block of `step` rows may see, from sizes alone."""
    if mask is None:
        return size.m
    return sum(high - start for start, high in mask.reach(Span(low, min(low + step, size.n)), size))


def bounding_span(rows: Span, n: int) -> Span:
    """The smallest range that holds all these rows."""
    if rows.index is None:
        return rows
    if is_tracing():
        return Span(0, n)
    return Span(int(rows.index.min()), int(rows.index.max()) + 1)


def head_slices(lead: tuple[int, ...], max_heads: int) -> Iterator[tuple[slice, ...]]:
    """Blocks of at most `max_heads` heads that cover the leading dimensions, whole dimensions from the right first."""
    steps: list[int] = []
    for length in reversed(lead):
        step = max(1, min(length, max_heads))
        steps.insert(0, step)
        max_heads = max_heads // length if length and step == length else 1
    cuts = [
        [slice(a, min(a + step, length)) for a in range(0, length, step)]
        for step, length in zip(steps, lead, strict=True)
    ]
    yield from product(*cuts)
