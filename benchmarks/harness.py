"""Two contestants in one process, measured in turn: the clock behind every line of the table.

A round times ours and the peer one right after the other, and the next round swaps the order, so that a machine that
speeds up or slows down does so for both. The figure of a line is the median over rounds of the ratio *within* a round;
quartiles stand beside it. A peer with several ways to do its work is represented by the fastest in a pilot run.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Any

import torch
from torch import Tensor

from benchmarks.goals import Goal, Spread, Text

SETTLE = 0.1  # seconds before a long run: threads of the other side spin for a while after they are done
BATCH_SECONDS = 0.03  # short calls are repeated until one timing lasts this long
PILOT_SECONDS = 1.0
PILOT_RUNS = 3
MINUTES = 40.0  # seconds: a peer that takes longer is run once
SMALL = 512  # positions at most in the small version of a line


@dataclass(frozen=True)
class Sizes:
    """Self-attention over n positions, batch 1; `hidden` is the width inside an additive score.

    Where queries and points are not the same, n counts the queries and m the points.
    """

    n: int
    heads: int = 8
    d: int = 64
    d_v: int = 64
    hidden: int = 0
    m: int = 0

    def shapes(self) -> dict[str, Any]:
        return {"batch": 1, **{name: value for name, value in asdict(self).items() if value}}


@dataclass
class Tensors:
    """What a contestant is handed. `leaves` are those whose gradients are wanted; `more` is what else it needs."""

    q: Tensor
    k: Tensor
    v: Tensor
    cotangent: Tensor
    leaves: tuple[Tensor, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)


Results = Any  # a tensor, or tensors nested in tuples
Contestant = Callable[[Tensors], Results]


@dataclass(frozen=True)
class Family:
    """Lines that share a row of a table: the work and the peer, in words."""

    work: Text
    peer: Text


@dataclass(frozen=True)
class Work:
    """The arithmetic that the task itself asks for, whoever does it."""

    flops: float
    exps: float = 0.0


@dataclass(frozen=True)
class Line:
    """One comparison. `ours` and `peers` go forward; with `gradients` the harness adds the backward pass to both."""

    name: str
    family: Family
    sizes: Sizes
    make: Callable[[Sizes], Tensors]
    ours: Contestant
    peers: Mapping[str, Contestant]
    work: Work
    goals: tuple[str, ...] = ()
    gradients: bool = False
    rounds: int = 20
    threads: int = 2
    dtype: str = "float32"
    memory: bool = False
    # Whose memory ours is held against: the fastest peer's, or that of the one named here.
    memory_peer: str | None = None
    # The peer works on other sizes.
    peer_sizes: Sizes | None = None
    # The peer does this share of the work, and its time is divided by it: for those that would take minutes.
    peer_share: float = 1.0
    # Ours continues what the peer leaves in `more`, so the peer comes first in each round.
    chained: bool = False
    # Metrics other than time and memory.
    quality: Callable[[], Mapping[str, float]] | None = None
    tolerance: float = 1e-3

    @property
    def comparable(self) -> bool:
        """Whether both answer the same question."""
        return self.peer_sizes is None and not self.chained and self.peer_share == 1

    def parsed_goals(self) -> tuple[Goal, ...]:
        return tuple(Goal.parse(text) for text in self.goals)

    def contestant(self, forward: Contestant) -> Contestant:
        return with_gradients(forward) if self.gradients else forward

    def shrunk(self) -> Line:
        return replace(self, sizes=replace(self.sizes, n=min(SMALL, self.sizes.n // 4)), peer_sizes=None)


def with_gradients(forward: Contestant) -> Contestant:
    def forward_and_backward(x: Tensors) -> Results:
        output = forward(x)
        return (output, *torch.autograd.grad(output, x.leaves, x.cotangent))

    return forward_and_backward


Thunk = Callable[[], Results]


def seconds(run: Thunk, calls: int = 1) -> float:
    """Seconds per call over one batch of calls, the garbage collector kept out of it."""
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in range(calls):
            run()
        return (time.perf_counter() - start) / calls
    finally:
        gc.enable()


@contextmanager
def settled_heap() -> Iterator[None]:
    """Leave what is alive now out of later collections: they then take no time between the rounds."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def pilot(run: Thunk) -> float:
    """Warm-up and a first estimate: the best of a few runs, of one if a run is long."""
    best, spent = math.inf, 0.0
    for _ in range(PILOT_RUNS):
        best = min(best, took := seconds(run))
        spent += took
        if spent > PILOT_SECONDS:
            break
    return best


@dataclass(frozen=True)
class Timing:
    """Seconds per call in each round, and how the peer was chosen."""

    ours: list[float]
    theirs: list[float]
    peer: str
    pilots: dict[str, float]
    calls: dict[str, int]

    def scaled(self, share: float) -> Timing:
        """As if the peer, who did a share of the work, had done all of it."""
        pilots = {name: took / share for name, took in self.pilots.items()}
        return replace(self, theirs=[took / share for took in self.theirs], pilots=pilots)

    def metrics(self) -> dict[str, Spread]:
        pairs = list(zip(self.ours, self.theirs, strict=True))
        return {
            "time_ratio": Spread.of([ours / theirs for ours, theirs in pairs]),
            "speedup": Spread.of([theirs / ours for ours, theirs in pairs]),
            "seconds": Spread.of(self.ours),
            "added_us": Spread.of([(ours - theirs) * 1e6 for ours, theirs in pairs]),
        }


def race(ours: Thunk, peers: Mapping[str, Thunk], rounds: int) -> Timing:
    """Time `ours` against the fastest of `peers`, the order of the two alternating."""
    pilots = {name: pilot(run) for name, run in peers.items()}
    peer = min(pilots, key=pilots.__getitem__)
    if pilots[peer] > MINUTES:  # then the pilot was its one round
        mine = [seconds(ours, calls_for(pilot(ours))) for _ in range(rounds)]
        return Timing([median(mine)], [pilots[peer]], peer, pilots, {"theirs": 1, "ours": rounds})
    runs = {"theirs": peers[peer], "ours": ours}
    calls = {"theirs": calls_for(pilots[peer]), "ours": calls_for(pilot(ours))}
    times: dict[str, list[float]] = {"theirs": [], "ours": []}
    for order in orders(rounds):
        for side in order:
            if calls[side] == 1:
                time.sleep(SETTLE)
            times[side].append(seconds(runs[side], calls[side]))
    return Timing(times["ours"], times["theirs"], peer, pilots, calls)


def relay(ours: Thunk, peers: Mapping[str, Thunk], rounds: int) -> Timing:
    """Time a peer and `ours`, which uses up what the peer has just left: one call of each a round, in this order."""
    ((peer, run),) = peers.items()
    times = [(seconds(run), seconds(ours)) for _ in range(rounds)]
    return Timing([mine for _, mine in times], [theirs for theirs, _ in times], peer, {}, {"theirs": 1, "ours": 1})


def calls_for(estimate: float) -> int:
    return max(1, math.ceil(BATCH_SECONDS / estimate))


def orders(rounds: int) -> Iterator[tuple[str, str]]:
    for turn in range(rounds):
        yield ("ours", "theirs") if turn % 2 else ("theirs", "ours")


def tensors_in(results: Results) -> Iterator[Tensor]:
    if isinstance(results, Tensor):
        yield results
    elif isinstance(results, (tuple, list)):
        for part in results:
            yield from tensors_in(part)


def difference(ours: Results, theirs: Results) -> float:
    """The largest difference between two answers, relative to the largest number in each tensor."""
    pairs = zip(tensors_in(ours), tensors_in(theirs), strict=True)
    return max((relative_difference(a, b) for a, b in pairs), default=0.0)


def relative_difference(ours: Tensor, theirs: Tensor) -> float:
    a, b = ours.detach().double(), theirs.detach().double()
    if a.shape != b.shape:
        raise ValueError(f"the two answers differ in shape: ours {tuple(a.shape)}, the peer's {tuple(b.shape)}")
    return float((a - b).abs().max() / b.abs().max().clamp_min(1e-30)) if b.numel() else 0.0


@dataclass(frozen=True)
class Outcome:
    """A line's timing and, where both answer the same question, how far their answers are apart."""

    timing: Timing
    difference: float | None


def contest(line: Line, rounds: int | None = None) -> Outcome:
    """Make the inputs of a line, check that the answers agree, and race."""
    torch.set_num_threads(line.threads)
    x = line.make(line.sizes)
    y = line.make(line.peer_sizes) if line.peer_sizes else x
    ours = line.contestant(line.ours)
    peers = {name: line.contestant(forward) for name, forward in line.peers.items()}
    apart = difference(ours(x), next(iter(peers.values()))(x)) if line.comparable else None
    thunks = {name: bind(run, y) for name, run in peers.items()}
    run_small(line)
    with settled_heap():
        timing = (relay if line.chained else race)(bind(ours, x), thunks, rounds or line.rounds)
    return Outcome(timing.scaled(line.peer_share), apart)


def run_small(line: Line) -> None:
    """Each contestant once on a small version of the line: what is loaded or started at a first call is then there."""
    x = line.shrunk().make(line.shrunk().sizes)
    for forward in (*line.peers.values(), line.ours):
        line.contestant(forward)(x)


def bind(run: Contestant, x: Tensors) -> Thunk:
    return lambda: run(x)
