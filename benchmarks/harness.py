"""Timing of two contestants in one process, in turns.

A round times ours and the peer one right after the other, and the next round swaps the order, so that a change of the
machine's speed meets both. The result of a line is the median over rounds of the ratio *within* a round, with its
quartiles. If there are several peers, the one that is fastest in a pilot run is used.
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

SETTLE_SECONDS = 0.1  # pause before a long run: idle threads of the other side spin for a while
BATCH_SECONDS = 0.03  # short calls are repeated until one timing lasts this long
PILOT_SECONDS = 1.0
PILOT_RUNS = 3
ONCE_SECONDS = 40.0  # a peer that takes longer is run once
SMALL = 512  # largest number of positions in the small version of a line


@dataclass(frozen=True)
class Sizes:
    """Self-attention over n positions; `hidden` is the width inside an additive score.

    If there are fewer or more keys than queries, n counts the queries and m the keys. If several heads of queries share
    one head of keys, `key_heads` counts those of the keys.
    """

    n: int
    heads: int = 8
    d: int = 64
    d_v: int = 64
    hidden: int = 0
    m: int = 0
    batch: int = 1
    key_heads: int = 0

    @property
    def keys(self) -> int:
        return self.m or self.n

    def shapes(self) -> dict[str, Any]:
        return {"batch": self.batch, **{name: value for name, value in asdict(self).items() if value}}


@dataclass
class Tensors:
    """Inputs of a contestant. Gradients are taken for `leaves`; `more` holds any other inputs."""

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
    """The number of operations that the task needs, however it is done."""

    flops: float
    exps: float = 0.0


@dataclass(frozen=True)
class Line:
    """One comparison of forward passes; with `gradients` the harness adds the backward pass to both sides."""

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
    # The peer whose memory is compared; the fastest one if None.
    memory_peer: str | None = None
    # The peer works on other sizes.
    peer_sizes: Sizes | None = None
    # The peer does this share of the work, and its time is divided by it: for peers that would take minutes.
    peer_share: float = 1.0
    # Ours continues what the peer leaves in `more`, so the peer comes first in each round.
    chained: bool = False
    # Metrics other than time and memory.
    quality: Callable[[], Mapping[str, float]] | None = None
    tolerance: float = 1e-3

    @property
    def comparable(self) -> bool:
        """True if both sides compute the same result."""
        return self.peer_sizes is None and not self.chained and self.peer_share == 1

    def parsed_goals(self) -> tuple[Goal, ...]:
        return tuple(Goal.parse(text) for text in self.goals)

    def contestant(self, forward: Contestant) -> Contestant:
        return with_gradients(forward) if self.gradients else forward

    def shrunk(self) -> Line:
        return replace(self, sizes=replace(self.sizes, n=max(1, min(SMALL, self.sizes.n // 4))), peer_sizes=None)


def with_gradients(forward: Contestant) -> Contestant:
    def forward_and_backward(x: Tensors) -> Results:
        output = forward(x)
        return (output, *torch.autograd.grad(output, x.leaves, x.cotangent))

    return forward_and_backward


Thunk = Callable[[], Results]


def seconds(run: Thunk, calls: int = 1) -> float:
    """Return seconds per call over one batch of calls, without garbage collection."""
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
    """Exclude living objects from later garbage collections, which then take no time between rounds."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def pilot(run: Thunk) -> float:
    """Warm up and return a first estimate: the best of a few runs, or one run if it is long."""
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
        """Return the timing for a peer that does all the work, given that it did a share of it."""
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
    """Time `ours` against the fastest of `peers`, in alternating order."""
    pilots = {name: pilot(run) for name, run in peers.items()}
    peer = min(pilots, key=pilots.__getitem__)
    if pilots[peer] > ONCE_SECONDS:  # the pilot was its only run
        mine = [seconds(ours, calls_for(pilot(ours))) for _ in range(rounds)]
        return Timing([median(mine)], [pilots[peer]], peer, pilots, {"theirs": 1, "ours": rounds})
    runs = {"theirs": peers[peer], "ours": ours}
    calls = {"theirs": calls_for(pilots[peer]), "ours": calls_for(pilot(ours))}
    times: dict[str, list[float]] = {"theirs": [], "ours": []}
    for order in orders(rounds):
        for side in order:
            if calls[side] == 1:
                time.sleep(SETTLE_SECONDS)
            times[side].append(seconds(runs[side], calls[side]))
    return Timing(times["ours"], times["theirs"], peer, pilots, calls)


def relay(ours: Thunk, peers: Mapping[str, Thunk], rounds: int) -> Timing:
    """Time a peer and then `ours`, which continues from the peer's result: one call of each per round."""
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
    """Return the largest difference between two results, relative to the largest number of each tensor."""
    pairs = zip(tensors_in(ours), tensors_in(theirs), strict=True)
    return max((relative_difference(a, b) for a, b in pairs), default=0.0)


def relative_difference(ours: Tensor, theirs: Tensor) -> float:
    a, b = ours.detach().double(), theirs.detach().double()
    if a.shape != b.shape:
        raise ValueError(f"the two answers differ in shape: ours {tuple(a.shape)}, the peer's {tuple(b.shape)}")
    return float((a - b).abs().max() / b.abs().max().clamp_min(1e-30)) if b.numel() else 0.0


@dataclass(frozen=True)
class Outcome:
    """The timing of a line, and the difference of the results if both sides compute the same."""

    timing: Timing
    difference: float | None


def contest(line: Line, rounds: int | None = None) -> Outcome:
    """Make the inputs of a line, compare the results of both sides, and time them."""
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
    """Run each contestant once on a small version of the line, so that libraries and threads are loaded."""
    x = line.shrunk().make(line.shrunk().sizes)
    for forward in (*line.peers.values(), line.ours):
        line.contestant(forward)(x)


def bind(run: Contestant, x: Tensors) -> Thunk:
    return lambda: run(x)
