"""The cost model: what a call takes, from sizes alone, with rates that were measured once.

Rates are nanoseconds on two cores of the machine whose results are stored in benchmarks/results. Another machine is
faster or slower by about one factor, so what is the cheapest here is the cheapest there.
"""

from __future__ import annotations

from typing import NamedTuple

TILE_OVERHEAD = 1 << 16  # fixed cost of a tile or of a kernel call, in scores that are computed in the same time
REDUCER_TILE_OVERHEAD = 1 << 17  # the same where reducers make many small steps on each tile
KEY_READ_COST = 8  # cost of reading the keys from memory, in rows of scores
MIN_RUN_ROWS = 32  # on average, of a run of rows with equal keys: blocks of rows with a bias beat shorter runs
MIN_BLOCK_ROWS = 128  # of a block of rows with a bias of relative positions: the kernel is slower on fewer
SPARSE_KEYS = 0.25  # of a range: fewer are copied, which takes less time than to read the others too
SMALL_SCORES = 1 << 18  # up to so many, one call with a bias takes less time than to find out what is hidden


class Rate(NamedTuple):
    """The nanoseconds of a call, of a score, and of a score for each feature of keys and values."""

    call: float
    score: float
    feature: float


RATES = {
    "fused": Rate(call=59_000, score=0.29, feature=0.0202),
    "dense": Rate(call=101_000, score=0.38, feature=0.0210),
    "tiled": Rate(call=212_000, score=0.55, feature=0.0206),
}  # fitted to scaled dot products of 8 heads, 64 to 2,048 positions and 16 to 128 features, each within 10 %


def estimate(executor: str, scores: int, rows: int, features: int) -> float:
    """Seconds of a forward pass over so many scores in rows, whose keys and values have so many features on average."""
    rate = RATES[executor]
    read = KEY_READ_COST * RATES["fused"].feature * features / max(1, rows)  # the same for all of them
    return 1e-9 * (rate.call + scores * (rate.score + rate.feature * features + read))


def duration(seconds: float) -> str:
    """A time with two digits: "43 µs", "1.2 ms", "3.5 s"."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2g} {unit}" if seconds < 100 * size else f"{seconds / size:,.0f} {unit}"
    return f"{seconds / 1e-6:.2g} µs" if seconds < 1e-4 else f"{seconds / 1e-6:.0f} µs"
