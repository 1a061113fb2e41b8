"""A cost model of attention over many devices: computing, bytes and latency from sizes, mask and rates alone.

    seconds = (hops) * max(computing of a hop, sending of a hop) + computing of the last block

Keys and values travel while the block before is computed, so of the two the longer one counts. Rates of vendors are
limits that programs approach: what follows from them is predicted, not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from torch import device

from regard.engine.costs import duration
from regard.engine.distributed.layout import Run, contiguous, zigzag
from regard.errors import ChoiceError
from regard.masks import ALL, NONE, Mask
from regard.operands import Size, Span, Tile

T = TypeVar("T")

FORWARD = 4  # operations for each visible pair and feature: a product and a sum for the score, the same for the output
BACKWARD = 10  # five products of the same size: scores again, and the gradients of weights, values, queries and keys
SAMPLED_ROWS = 64  # of the whole matrix, whose visible keys are counted; counts change linearly along most masks
SAMPLED_ROWS_OF_RUN = 8  # of one rank's run
SAMPLED_RANKS = 8
EVEN = 1.02  # busiest rank over the mean, below which a layout counts as balanced
FINEST = 256  # columns that are counted one by one


class Link(NamedTuple):
    """How fast a device sends to the next one: bytes a second in one direction, and seconds for a message."""

    bandwidth: float
    latency: float = 5e-6


# One direction, as vendors publish it. The latency is that of a small message between processes, rounded up.
LINKS = {
    "nvlink4": Link(450e9),  # NVIDIA H100 data sheet: NVLink 900 GB/s in both directions
    "nvlink5": Link(900e9),  # NVIDIA B200 data sheet: NVLink 1.8 TB/s in both directions
    "infiniband-ndr": Link(50e9),  # NVIDIA Quantum-2: 400 Gb/s a port
    "ethernet-100g": Link(12.5e9, 2e-5),  # IEEE 802.3: 100 Gb/s
}
# Dense bfloat16 on tensor cores, operations a second, as vendors publish it.
DEVICES = {
    "a100": 312e12,  # NVIDIA A100 data sheet
    "h100": 989e12,  # NVIDIA H100 SXM data sheet, without sparsity
    "b200": 2250e12,  # NVIDIA HGX B200 data sheet: 4.5e15 with sparsity, half of it without
}
UTILISATION = 0.5  # share of a vendor's rate that attention reaches; FlashAttention-3 reports up to 0.75 on an H100


@dataclass(frozen=True)
class Estimate:
    """Time, bytes and memory that one pass of attention over many devices is expected to take."""

    n: int
    world: int
    pairs: float  # visible pairs of the whole matrix, of one head
    busiest: float  # of these, on the rank that has most
    computing: float  # seconds on the busiest rank
    hops: int
    bytes_per_hop: float  # received by a rank
    sending: float  # seconds of all hops, without computing
    seconds: float
    alone: float  # seconds on one device
    memory: float  # bytes of a rank: its queries, keys, values and output, and two foreign blocks
    predicted: bool  # rates are a vendor's, not measured

    @property
    def efficiency(self) -> float:
        """The speed over that of `world` devices without any cost of sharing: alone / (world x seconds)."""
        return self.alone / (self.world * self.seconds) if self.seconds else 1.0

    @property
    def bound(self) -> str:
        """The resource that takes longest: "computing" or "sending"."""
        return "computing" if self.computing >= self.sending else "sending"

    def __str__(self) -> str:
        source = ", predicted from vendor figures, not measured" if self.predicted else ""
        return (
            f"{self.n:,} tokens on {self.world:,} devices: {duration(self.seconds)} ({self.efficiency:.0%} of ideal, "
            f"bound by {self.bound}); computing {duration(self.computing)}, sending {duration(self.sending)} in "
            f"{self.hops:,} hops of {_bytes(self.bytes_per_hop)}; {_bytes(self.memory)} a device{source}"
        )


def estimate(
    n: int,
    heads: int,
    dim: int,
    mask: Mask | None = None,
    world: int = 1,
    link: str | float | Link = "infiniband-ndr",
    flops: str | float = "h100",
    *,
    key_heads: int | None = None,
    batch: int = 1,
    itemsize: int = 2,
    backward: bool = False,
    layout: str = "balanced",
) -> Estimate:
    """The time that attention over `world` devices is expected to take, from sizes and rates alone.

    n: tokens of the sequence. heads, dim: of the queries. key_heads: of keys and values, if they are fewer.
    mask: its visible pairs are counted in a sample of rows.
    link: bytes a second in one direction, a `Link` with a latency, or a name of `LINKS`.
    flops: operations a second that attention reaches on one device, or a name of `DEVICES`: half of the vendor's rate.
    itemsize: bytes of a number, 2 for bfloat16. backward: the time of forward and backward together.
    layout: "balanced", whose ranks have the mean of the visible pairs, "contiguous" or "zigzag".

    >>> from regard import masks
    >>> result = estimate(1_000_000, heads=32, dim=128, mask=masks.causal(), world=8, link="nvlink4", flops="h100")
    >>> round(result.computing, 2), result.hops, result.bound
    (2.07, 7, 'computing')
    """
    predicted = isinstance(link, str) or isinstance(flops, str)
    rate = _named(flops, DEVICES, "flops") * UTILISATION if isinstance(flops, str) else flops
    line = _named(link, LINKS, "link") if isinstance(link, str) else link if isinstance(link, Link) else Link(link)
    key_heads = heads if key_heads is None else key_heads
    busiest, total, received = _shares(n, world, mask, layout)
    operations = batch * heads * dim * (FORWARD + (BACKWARD if backward else 0))
    key_bytes = 2 * batch * key_heads * dim * itemsize  # of one position: its key and its value
    shard = -(-n // world)
    hops = min(world - 1, -(-int(received) // shard)) if shard else 0
    # The backward pass sends keys and values again, and their gradients home in float32.
    sent = received * key_bytes * (2 + 4 / itemsize if backward else 1)
    passes = 2 if backward else 1
    sending = sent / line.bandwidth + passes * hops * line.latency
    computing = operations * busiest / rate
    block = computing / (hops + 1)
    seconds = hops * max(block, sending / hops if hops else 0.0) + block
    width = batch * dim * itemsize
    memory = shard * width * (2 * heads + 2 * key_heads) + min(2, hops) * shard * key_bytes
    return Estimate(
        n, world, total, busiest, computing, hops, sent / max(1, hops), sending, seconds,
        operations * total / rate, memory, predicted,
    )  # fmt: skip


def _named(name: str, known: dict[str, T], what: str) -> T:
    """The rate of a name, or an error that lists the names."""
    if name not in known:
        raise ChoiceError(f"{what} is a number or one of {', '.join(known)}, not {name!r}")
    return known[name]


def _shares(n: int, world: int, mask: Mask | None, layout: str) -> tuple[float, float, float]:
    """(visible pairs of the busiest rank, of all ranks, positions of others that a rank receives)."""
    if layout not in ("balanced", "contiguous", "zigzag"):
        raise ChoiceError(f"layout is 'balanced', 'contiguous' or 'zigzag', not {layout!r}")
    ways = {"contiguous": contiguous, "zigzag": zigzag}
    count = _counter(mask, n)
    chosen = ways.get(layout, contiguous)(n, world).runs
    pairs = [sum(count.pairs(run, SAMPLED_ROWS_OF_RUN) for run in chosen[rank]) for rank in _sample(world)]
    total = count.pairs((0, n), SAMPLED_ROWS)
    busiest = max(pairs)
    if layout == "balanced":
        if busiest > EVEN * total / world:
            chosen = zigzag(n, world).runs
        busiest = total / world
    received = max(count.seen(chosen[rank]) - sum(b - a for a, b in chosen[rank]) for rank in _sample(world))
    return busiest, total, float(max(0, received))


def _sample(count: int) -> list[int]:
    """At most `SAMPLED_RANKS` ranks, the first and the last among them."""
    if count <= SAMPLED_RANKS:
        return list(range(count))
    return sorted({round(i * (count - 1) / (SAMPLED_RANKS - 1)) for i in range(SAMPLED_RANKS)})


class _Everything:
    """Counts of a matrix in which every pair is visible."""

    def __init__(self, n: int) -> None:
        self.n = n

    def pairs(self, run: Run, sampled: int) -> float:
        """Visible pairs of a run of rows."""
        return float(run[1] - run[0]) * self.n

    def seen(self, runs: Sequence[Run]) -> int:
        """Columns that some row of the runs sees."""
        return self.n if any(a < b for a, b in runs) else 0


class _Masked:
    """Counts of what a mask shows, by halving blocks of columns until the mask says none or all of a block."""

    def __init__(self, mask: Mask, n: int) -> None:
        lead = (1,) * max([0, *[tensor.dim() for tensor in mask.all_tensors()]])
        self.mask, self.n = mask, n
        self.operands = mask.operands(lead)
        self.tensors = [operand.tensor for operand in self.operands]
        self.size = Size(n, n, self.tensors[0].device if self.tensors else device("cpu"))

    def pairs(self, run: Run, sampled: int) -> float:
        """Visible pairs of a run of rows, from a sample of them."""
        length = run[1] - run[0]
        if length <= sampled:
            rows = range(*run)
        else:
            rows = [run[0] + int((i + 0.5) * length / sampled) for i in range(sampled)]
        counts = [self._count(Span(row, row + 1), 0, self.n, FINEST, self._one_by_one) for row in rows]
        return sum(counts) * length / max(1, len(counts))

    def seen(self, runs: Sequence[Run]) -> int:
        """Columns that some row of the runs sees, to a part in 256 of the runs' length."""
        finest = max(1, sum(b - a for a, b in runs) // 256)
        blocks: set[Run] = set()
        for start, stop in runs:
            self._count(Span(start, stop), 0, self.n, finest, lambda _, low, high: blocks.add((low, high)) or 0, blocks)
        return _length_of_union(blocks)

    def _count(
        self,
        rows: Span,
        low: int,
        high: int,
        finest: int,
        small: Callable[[Span, int, int], float],
        whole: set[Run] | None = None,
    ) -> float:
        """Visible columns from low to high: all of a block, none of it, or those of its halves."""
        (state,) = self.mask.block_states(self.tensors, rows, [low, high], self.size)
        if state == NONE:
            return 0
        if state == ALL:
            if whole is not None:
                whole.add((low, high))
            return high - low
        if high - low <= finest:
            return small(rows, low, high)
        middle = (low + high) // 2
        halves = ((low, middle), (middle, high))
        return sum(self._count(rows, a, b, finest, small, whole) for a, b in halves)

    def _one_by_one(self, rows: Span, low: int, high: int) -> float:
        """Visible columns of one row, on average over sequences and heads."""
        cols = Span(low, high)
        parts = [Tile((), rows, cols).cut(operand) for operand in self.operands]
        visible = self.mask.tile(parts, rows, cols, self.size).double()
        return float(visible.expand(*visible.shape[:-1], high - low).sum(-1).mean())


def _counter(mask: Mask | None, n: int) -> _Everything | _Masked:
    """Counts of the mask on n queries and n keys."""
    return _Everything(n) if mask is None else _Masked(mask, n)


def _length_of_union(blocks: set[Run]) -> int:
    """How many numbers are in at least one of the ranges."""
    total, end = 0, 0
    for start, stop in sorted(blocks):
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total


def _bytes(count: float) -> str:
    """A number of bytes with three digits."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} bytes"
