"""Layouts of a sequence over processes: which positions each rank holds, from length, number of ranks and mask alone.

A rank holds a few runs of neighbouring positions, in ascending order. Every rank knows the layout of all ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from regard.errors import ChoiceError, MaskError, ShapeError
from regard.masks import NONE, Mask
from regard.operands import Size, Span

NAMES = ("contiguous", "zigzag", "balanced")
MAX_IMBALANCE = (
    0.02  # of the busiest rank over the mean: with less, more and shorter chunks are not worth their overhead
)
CHUNKS_PER_RANK = (2, 4, 8, 16, 32)  # tried by the balanced layout, in this order
MIN_CHUNK = 64  # rows of a chunk at least: the kernel computes about so many at once
COUNT_COLUMNS = 64  # columns of a block in which the visible pairs are estimated where a mask has no ranges

Run = tuple[int, int]  # the first position and one behind the last


@dataclass(frozen=True, slots=True)
class Layout:
    """The runs of positions that each rank holds, in ascending order; together they are 0 to length - 1."""

    name: str
    length: int
    runs: tuple[tuple[Run, ...], ...]  # for each rank

    @property
    def world(self) -> int:
        """The number of ranks."""
        return len(self.runs)

    def size(self, rank: int) -> int:
        """The number of positions that a rank holds."""
        return sum(stop - start for start, stop in self.runs[rank])

    def spans(self, rank: int) -> list[tuple[Span, Span]]:
        """Each run of a rank as (its rows in the shard, its positions in the whole sequence)."""
        ends = list(accumulate((stop - start for start, stop in self.runs[rank]), initial=0))
        return [(Span(low, high), Span(*run)) for (low, high), run in zip(pairwise(ends), self.runs[rank], strict=True)]

    def positions(self, rank: int, device: torch.device | None = None) -> Int[Tensor, " rows"]:
        """The positions that a rank holds, one by one."""
        runs = [torch.arange(start, stop, device=device) for start, stop in self.runs[rank]]
        return torch.cat(runs) if runs else torch.empty(0, dtype=torch.int64, device=device)

    def take(self, tensor: Shaped[Tensor, "..."], dim: int, rank: int) -> Shaped[Tensor, "..."]:
        """The part of a whole tensor that a rank holds; a view where that is one run."""
        parts = [tensor.narrow(dim, start, stop - start) for start, stop in self.runs[rank]]
        if len(parts) == 1:
            return parts[0]
        return torch.cat(parts, dim) if parts else tensor.narrow(dim, 0, 0)

    def join(self, shards: Sequence[Shaped[Tensor, "..."]], dim: int) -> Shaped[Tensor, "..."]:
        """The whole tensor, in the order of positions, from the shards of all ranks."""
        pieces: list[tuple[int, Tensor]] = []
        for rank, shard in enumerate(shards):
            pieces += [(at.start, rows.take(shard, dim)) for rows, at in self.spans(rank)]
        pieces.sort(key=lambda piece: piece[0])
        return torch.cat([piece for _, piece in pieces], dim) if pieces else shards[0]


def make_layout(name: str, length: int, world: int, mask: Mask | None = None) -> Layout:
    """The layout of this name: "contiguous", "zigzag", or "balanced", which needs the mask."""
    if name not in NAMES:
        raise ChoiceError(f"layout is 'contiguous', 'zigzag' or 'balanced', not {name!r}")
    if name == "contiguous":
        return contiguous(length, world)
    if name == "zigzag":
        return zigzag(length, world)
    if mask is None:
        raise MaskError("layout='balanced' needs mask=, the mask of the attention: it balances what the mask shows")
    return balanced(length, world, mask)


def shard_sizes(length: int, world: int) -> list[int]:
    """The number of positions of each rank in every layout: as torch.chunk divides, so the last may have fewer.

    torch's DTensor takes each shard to be of this size.
    """
    step = -(-length // world)
    return [max(0, min(step, length - rank * step)) for rank in range(world)]


def contiguous(length: int, world: int) -> Layout:
    """One run a rank, in the order of ranks; the last shards may be shorter, or empty."""
    edges = list(accumulate(shard_sizes(length, world), initial=0))
    return Layout("contiguous", length, tuple(_runs([run]) for run in pairwise(edges)))


def zigzag(length: int, world: int) -> Layout:
    """One run from the front and one from the back a rank: rank 0 has the first and the last, rank 1 those inside.

    Under a causal mask all ranks then have about the same number of visible pairs.
    """
    sizes = shard_sizes(length, world)
    front = [-(-size // 2) for size in sizes]
    back = [size - half for size, half in zip(sizes, front, strict=True)]
    edges = list(accumulate([*front, *reversed(back)], initial=0))
    chunks = list(pairwise(edges))
    return Layout("zigzag", length, tuple(_runs([chunks[r], chunks[-1 - r]]) for r in range(world)))


def balanced(length: int, world: int, mask: Mask) -> Layout:
    """Runs of neighbouring rows, dealt out so that all ranks have about the same number of visible pairs.

    All ranks have the same number of rows too. Few long runs are preferred to many short ones, if they balance.
    """
    load = visible_pairs(mask, length)
    best: tuple[float, Layout] | None = None
    for per_rank in CHUNKS_PER_RANK:
        step = max(1, -(-length // (world * per_rank)))
        layout = Layout("balanced", length, tuple(_runs(share) for share in _deal(load, step, world)))
        imbalance = _imbalance(load, layout)
        if best is None or imbalance < best[0]:
            best = (imbalance, layout)
        if imbalance <= MAX_IMBALANCE or step <= MIN_CHUNK:
            break
    assert best is not None  # noqa: S101  the loop runs at least once
    return best[1]


def _deal(load: Float[Tensor, " rows"], step: int, world: int) -> list[list[Run]]:
    """Chunks of `step` rows for each rank: the heaviest goes first, each to the rank with the least load.

    A rank takes as many rows as its shard has; what is left of a chunk goes to the next rank.
    """
    sums = torch.cat([load.new_zeros(1), load.cumsum(0)]).tolist()
    free, loads = shard_sizes(len(load), world), [0.0] * world
    shares: list[list[Run]] = [[] for _ in range(world)]
    chunks = [(low, min(low + step, len(load))) for low in range(0, len(load), step)]
    for start, stop in sorted(chunks, key=lambda run: (sums[run[0]] - sums[run[1]], run)):
        low = start
        while low < stop:
            rank = min((rank for rank in range(world) if free[rank]), key=lambda rank: (loads[rank], rank))
            high = min(stop, low + free[rank])
            shares[rank].append((low, high))
            free[rank] -= high - low
            loads[rank] += sums[high] - sums[low]
            low = high
    return shares


def _imbalance(load: Float[Tensor, " rows"], layout: Layout) -> float:
    """How much more the busiest rank has than the mean, as a share of the mean."""
    loads = [sum(float(load[a:b].sum()) for a, b in runs) for runs in layout.runs]
    mean = sum(loads) / len(loads)
    return max(loads) / mean - 1 if mean else 0.0


def visible_pairs(mask: Mask, length: int) -> Float[Tensor, " rows"]:
    """The number of keys that each of `length` queries sees among as many keys, on average over heads."""
    lead = (1,) * max([0, *[tensor.dim() for tensor in mask.all_tensors()]])
    tensors = [operand.tensor for operand in mask.operands(lead)]
    device = tensors[0].device if tensors else torch.device("cpu")
    size = Size(length, length, device)
    ranges = mask.row_ranges(tensors, size) if length else None
    if ranges is not None:
        start, stop = (edge.clamp(0, length).double() for edge in ranges)
        seen = (stop - start).clamp_min(0)
        return seen.reshape(-1, seen.shape[-1]).mean(0).expand(length).cpu()
    counts = torch.zeros(length, dtype=torch.float64)
    for low in range(0, length, MIN_CHUNK):
        rows = Span(low, min(low + MIN_CHUNK, length))
        for first, last in mask.reach(rows, size):
            edges = [*range(first, last, COUNT_COLUMNS), last]
            states = mask.block_states(tensors, rows, edges, size)
            widths = [b - a for a, b in pairwise(edges)]
            # A block that is neither hidden nor visible throughout is computed whole, so it counts whole.
            counts[rows.start : rows.stop] += sum(w for w, s in zip(widths, states, strict=True) if s != NONE)
    return counts


def _runs(chunks: Sequence[Run]) -> tuple[Run, ...]:
    """Chunks in ascending order, neighbours joined, empty ones left out."""
    runs: list[Run] = []
    for start, stop in sorted(chunks):
        if start == stop:
            continue
        if runs and runs[-1][1] == start:
            runs[-1] = (runs[-1][0], stop)
        else:
            runs.append((start, stop))
    return tuple(runs)


def check_same_length(layout: Layout, length: int, name: str) -> None:
    """Refuse a layout of another length than the tensor's."""
    if layout.length != length:
        raise ShapeError(f"{name} has {length} rows, but its layout is one of {layout.length} positions")
