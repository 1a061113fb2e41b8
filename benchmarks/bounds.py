"""The least time that a combination needs: a pure function of what is computed and of rates measured on this machine.

A mask hides single pairs, but torch's kernel computes blocks of them. So a masked call needs at least the time of the
plain call of its shape for the blocks that hold a visible pair: 64 keys wide, on blocks of rows, each a call of its
own. With fewer rows or fewer keys a pair takes longer, and so does a pair of a block that is not visible throughout,
because it needs a bias; all of that is measured. The number of rows is the one that takes the least time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from benchmarks import by_hand, machine
from benchmarks.combinations import BITS, Combination
from benchmarks.formulas import FORMULAS
from benchmarks.harness import Sizes, bind, calls_for, pilot, settled_heap, with_gradients
from benchmarks.machine import Limits
from benchmarks.tasks import BOTH, make_tensors
from benchmarks.visible import BLOCK, count

ROUNDS = 5
ROWS = (64, 128, 256, 1024)  # queries of a kernel call for which the time of a pair is measured
KEYS = (64, 128, 256, 1024)  # and keys
RATE_PAIRS = 2**20  # of a head in a call whose time is measured, over the whole batch
TOP = 64  # numbers of a row that are selected
PASS_NUMBERS = 2**19  # of a tile that stays in the cache


@dataclass(frozen=True)
class Rates:
    """What the machine can do, with the threads of the sweep."""

    limits: Limits
    call: Mapping[bool, float]  # seconds of F.sdpa with hardly any work, without and with gradients
    pair: Mapping[tuple[int, int], float]  # seconds of a pair in F.sdpa, by the numbers of queries and keys
    biased_pair: Mapping[tuple[int, int], float]  # the same with a bias
    passes_per_ns: float  # numbers of a tile in the cache that are multiplied in place in a nanosecond
    selected_per_ns: float  # numbers of whole rows of which the largest are found by torch.topk in a nanosecond


@dataclass(frozen=True)
class Bounds:
    """Seconds that a combination needs at the best rates of the machine."""

    products: float
    exponentials: float
    passes: float
    selection: float
    bytes: float
    call: float
    blocks: float

    @property
    def seconds(self) -> float:
        return max(sum(self.arithmetic.values()), self.bytes, self.call, self.blocks)

    @property
    def arithmetic(self) -> dict[str, float]:
        names = ("products", "exponentials", "passes", "selection")
        return {name: getattr(self, name) for name in names}

    @property
    def largest(self) -> str:
        """Name what the limit is made of; of arithmetic, that which takes the most time."""
        if self.seconds in (found := {self.blocks: "blocks", self.bytes: "bytes", self.call: "call"}):
            return found[self.seconds]
        return max(self.arithmetic, key=self.arithmetic.__getitem__)


def best(run: Callable[[], object]) -> float:
    with settled_heap():
        return machine.best(run, ROUNDS, calls_for(pilot(run)))


def measure_rates(limits: Limits, threads: int) -> Rates:
    torch.set_num_threads(threads)
    small, tile = Sizes(n=16, heads=1, d=16, d_v=16), torch.randn(PASS_NUMBERS)
    ways = {False: by_hand.sdpa, True: with_gradients(by_hand.sdpa)}
    calls = {gradients: best(bind(ways[gradients], make_tensors(small, gradients=gradients))) for gradients in BOTH}
    pair, biased = {}, {}
    for rows, keys in product(ROWS, KEYS):
        x = make_tensors(sizes := Sizes(n=rows, m=keys, batch=RATE_PAIRS // (rows * keys)))
        bias, pairs = torch.zeros(1, 1, rows, keys), sizes.heads * RATE_PAIRS
        pair[rows, keys] = best(lambda x=x: by_hand.sdpa(x)) / pairs
        biased[rows, keys] = best(lambda x=x, b=bias: scaled_dot_product_attention(x.q, x.k, x.v, attn_mask=b)) / pairs
    passes = PASS_NUMBERS / best(lambda: tile.mul_(1.0)) / 1e9
    rows = tile.view(-1, KEYS[-1])
    return Rates(limits, calls, pair, biased, passes, PASS_NUMBERS / best(lambda: rows.topk(TOP)) / 1e9)


def bounds(combination: Combination, rates: Rates, plain: float) -> Bounds:
    """Return what a combination needs; `plain` are the seconds of the plain call of its shape and mode.

    16 bits are computed at the rate of float32, float64 at half of it. What has no fused kernel is computed in blocks.
    """
    formula, work, limit = FORMULAS[combination.formula], combination.line().work, rates.limits
    slower = max(1.0, BITS[combination.dtype] / 32)
    whole = 1.0 if formula.inner else combination.pairs_in_blocks / combination.pairs
    scores = whole * slower * combination.pairs * combination.sizes.heads
    return Bounds(
        products=whole * slower * work.flops / (limit.matrix_gflops * 1e9),
        exponentials=whole * slower * work.exps / (limit.exp_per_ns * 1e9),
        passes=(1 + combination.gradients) * scores * formula.passes / (rates.passes_per_ns * 1e9),
        selection=scores * formula.selects / (rates.selected_per_ns * 1e9),
        bytes=bytes_moved(combination) / (limit.copy_gb_per_second * 1e9),
        call=rates.call[combination.gradients],
        blocks=block_seconds(combination, rates, plain) if formula.inner else 0.0,
    )


def bytes_moved(combination: Combination) -> float:
    """Return the bytes of queries, results and the keys that are seen; a backward pass moves them once more."""
    s, seen = combination.sizes, combination.seen
    keys = count(seen.any(-2, keepdim=True), s)
    numbers = (s.batch * s.heads * s.n + (s.key_heads or s.heads) * keys) * (s.d + s.d_v)
    return (1 + combination.gradients) * numbers * BITS[combination.dtype] / 8


@dataclass(frozen=True)
class Block:
    """Pairs of a call on some rows, of one head over the whole batch: where 64 keys have no hidden pair, and others."""

    keys: int  # that some row may see, in the sequence with the most
    clear: int
    partial: int


def block_seconds(combination: Combination, rates: Rates, plain: float) -> float:
    """Return the seconds of the blocks at the rate of the plain call, for the best number of rows of a block."""
    sizes, n, call = combination.sizes, combination.seen.shape[-2], rates.call[combination.gradients]
    a_pair = max(0.0, plain - call) / combination.plain().pairs
    base = rates.pair[known(n, ROWS), known(sizes.keys, KEYS)]
    times = []
    for rows in sorted({min(rows, n) for rows in (*ROWS, n)}):
        seconds = 0.0
        for block in cut(combination.seen, sizes, rows):
            clear = 0 if FORMULAS[combination.formula].pair_bias else block.clear
            partial = block.clear + block.partial - clear
            kind = known(rows, ROWS), known(block.keys, KEYS)
            slow, biased = rates.pair[kind] / base, rates.biased_pair[kind] / base
            seconds += call + a_pair * (clear * slow + partial * max(slow, biased))
        times.append(seconds)
    return min(times)


def known(count: int, measured: tuple[int, ...]) -> int:
    """Return the largest number up to a count for which rates are measured, or the smallest."""
    return max((one for one in measured if one <= count), default=measured[0])


def cut(seen: Tensor, sizes: Sizes, rows: int) -> list[Block]:
    """Cut the visible pairs (batch or 1, 1, queries, keys) into calls of rows on blocks of 64 keys, if any is seen."""
    keys, share = seen.shape[-1], sizes.batch // seen.shape[0]
    spare = -keys % BLOCK
    widths = torch.full((-(-keys // BLOCK),), BLOCK)
    widths[-1] -= spare
    found = []
    for part in seen.split(rows, -2):
        shown = pad(part, (0, spare)).unflatten(-1, (-1, BLOCK)).any(-1).any(-2)
        full = pad(part, (0, spare), value=True).unflatten(-1, (-1, BLOCK)).all(-1).all(-2)
        if shown.any():
            clear, partial = (part.shape[-2] * share * int((some * widths).sum()) for some in (full, shown & ~full))
            found.append(Block(int((shown * widths).sum(-1).max()), clear, partial))
    return found


def smallest(combination: Combination) -> Combination:
    """Return the same call with hardly any work, of which the time is its fixed cost."""
    sizes = combination.sizes
    group = sizes.heads // (sizes.key_heads or sizes.heads)
    small = Sizes(
        n=min(sizes.n, 16), m=16 if sizes.m else 0, heads=group, key_heads=1 if group > 1 else 0, d=16, d_v=16
    )
    return replace(combination, shape="smallest", sizes=small)
