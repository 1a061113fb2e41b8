"""Attention over two processes with a thread each, beside one process with two threads, in turns within one run.

    python -m benchmarks.distributed          about ten minutes on a quiet machine; writes results/distributed.json
    python -m benchmarks.distributed --quick  small sizes, nothing is written

Each round times both sides one right after the other, and the next round swaps the order. A result is the median over
rounds of the ratio within a round, with its quartiles.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import torch
import torch.distributed as dist

import regard as rg
from benchmarks import machine
from benchmarks.ranks import Ranks
from regard import distributed as rd
from regard import masks
from regard.engine.distributed.transport import BYTES_SENT

RESULTS = Path(__file__).parent / "results" / "distributed.json"
ROUNDS = 7
DOCUMENTS = (3000, 1800, 1200, 800, 600, 400, 200, 128, 64)
HEADS, DIM = 8, 64
QUESTIONS = ("entropy", "received", "heatmap", "top")


def whole(n: int, *, heads: int = HEADS) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(n)
    return [torch.randn(1, heads, n, DIM, generator=generator) for _ in range(3)]


def mask_of(name: str) -> Any:
    if name == "documents":
        return masks.causal() & masks.segments(document_ids())
    return {"full": None, "causal": masks.causal(), "window": masks.window(511, 0)}[name]


def document_ids() -> torch.Tensor:
    return torch.cat([torch.full((length,), i) for i, length in enumerate(DOCUMENTS)])


def once(q: Any, k: Any, v: Any, mask: Any, gradients: bool) -> None:
    """One forward pass, and one backward pass if gradients are wanted."""
    if not gradients:
        with torch.no_grad():
            rg.attend(q, k, v, mask=mask)
        return
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    output: Any = rg.attend(*leaves, mask=mask).output
    local = output.to_local() if hasattr(output, "to_local") else output
    local.sum().backward()


_inputs: dict[Any, Any] = {}  # of a process, so that rounds do not make them anew


def ours(name: str, n: int, gradients: bool, layout: str = "balanced") -> tuple[float, int, float]:
    """(seconds, bytes sent, peak in MB above the inputs) of one rank; the ranks start together."""
    key = name, n, layout
    mask = mask_of(name)
    if key not in _inputs:
        _inputs.clear()
        given = "contiguous" if mask is None else layout
        _inputs[key] = [rd.shard(x, dim=-2, layout=given, mask=mask) for x in whole(n)]
    q, k, v = _inputs[key]
    dist.barrier()
    before, start = BYTES_SENT[0], time.perf_counter()
    once(q, k, v, mask, gradients)
    dist.barrier()
    return time.perf_counter() - start, BYTES_SENT[0] - before, 0.0


def alone(name: str, n: int, gradients: bool) -> float:
    """Seconds of this process."""
    key = name, n, "alone"
    if key not in _inputs:
        _inputs.clear()
        _inputs[key] = whole(n)
    start = time.perf_counter()
    q, k, v = _inputs[key]
    once(q, k, v, mask_of(name), gradients)
    return time.perf_counter() - start


def documents_by_hand(gradients: bool) -> float:
    """Seconds of whole documents, the longest first to the rank with fewest pairs so far; runs on every rank."""
    rank, loads = dist.get_rank(), [0] * dist.get_world_size()
    mine = []
    for length in sorted(DOCUMENTS, reverse=True):
        taker = loads.index(min(loads))
        loads[taker] += length**2
        if taker == rank:
            mine.append(length)
    key = "documents", tuple(mine)
    if key not in _inputs:
        _inputs.clear()
        _inputs[key] = [whole(length) for length in mine]
    dist.barrier()
    start = time.perf_counter()
    for q, k, v in _inputs[key]:
        once(q, k, v, masks.causal(), gradients)
    dist.barrier()
    return time.perf_counter() - start


def peak(name: str, n: int, gradients: bool) -> float:
    """Megabytes that a call adds to the peak of a rank, which must be a new process: its inputs and a warm-up first."""
    q, k, v = (rd.shard(x, dim=-2) for x in whole(256))
    once(q, k, v, mask_of(name), gradients)
    mask = mask_of(name)
    q, k, v = (rd.shard(x, dim=-2, layout="contiguous" if mask is None else "balanced", mask=mask) for x in whole(n))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    once(q, k, v, mask, gradients)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def ask(question: str, n: int, sharded: bool) -> float:
    """Seconds of one question to causal weights; with sharded=True on every rank."""
    key = question, n, sharded
    if key not in _inputs:
        _inputs.clear()
        q, k, _ = whole(n)
        if sharded:
            q, k = (rd.shard(x, dim=-2, layout="balanced", mask=masks.causal()) for x in (q, k))
        _inputs[key] = q, k
    q, k = _inputs[key]
    if sharded:
        dist.barrier()
    start = time.perf_counter()
    weights = rg.Weights(q, k, mask=masks.causal())
    weights.top(8) if question == "top" else getattr(weights, question)()
    if sharded:
        dist.barrier()
    return time.perf_counter() - start


def bandwidth(size: int) -> float:
    """Seconds to send so many bytes to the next rank and back; runs on two ranks."""
    tensor = torch.zeros(max(1, size), dtype=torch.uint8)
    dist.barrier()
    start = time.perf_counter()
    if dist.get_rank() == 0:
        dist.send(tensor, 1)
        dist.recv(tensor, 1)
    elif dist.get_rank() == 1:
        dist.recv(tensor, 0)
        dist.send(tensor, 0)
    return time.perf_counter() - start


def ratios(first: Any, second: Any, rounds: int = ROUNDS) -> dict[str, Any]:
    """Times of two sides in turns, and the ratio second / first, how many times faster the first one is."""
    first(), second()
    pairs = []
    for number in range(rounds):
        order = (first, second) if number % 2 == 0 else (second, first)
        times = {side: side() for side in order}
        pairs.append((times[first], times[second]))
    found = [b / a for a, b in pairs]
    low, _, high = quantiles(found, n=4)
    return {
        "seconds": [median(a for a, _ in pairs), median(b for _, b in pairs)],
        "ratio": median(found), "quartiles": [low, high],
    }  # fmt: skip


def slowest(ranks: Ranks, *args: Any) -> float:
    answers = ranks.run(*args)
    return max(answer[0] if isinstance(answer, tuple) else answer for answer in answers)


def speed(ranks: Ranks, n: int) -> dict[str, Any]:
    found = {}
    for name in ("full", "causal"):
        for gradients in (False, True):
            line = f"{name}, n = {n}, {'forward+backward' if gradients else 'forward'}"
            found[line] = ratios(partial(slowest, ranks, ours, name, n, gradients), partial(alone, name, n, gradients))
            show(line, found[line], "goal 0.90")
    return found


def balance(ranks: Ranks, n: int) -> dict[str, Any]:
    line = f"causal, n = {n}, balanced against contiguous, forward"
    found = ratios(
        lambda: slowest(ranks, ours, "causal", n, False, "balanced"),
        lambda: slowest(ranks, ours, "causal", n, False, "contiguous"),
    )
    show(line, found, "goal 1.35, ideal 1.5")
    return {line: found}


def window(ranks: Ranks, n: int) -> dict[str, Any]:
    shifted = [sum(b for _, b, _ in ranks.run(ours, name, n, False, "contiguous")) for name in ("window", "full")]
    growth = ratios(
        lambda: slowest(ranks, ours, "window", n // 2, False, "contiguous"),
        lambda: slowest(ranks, ours, "window", n, False, "contiguous"),
    )
    line = f"window 512, n = {n}, contiguous"
    show(f"{line}: bytes {shifted[0]:,} of {shifted[1]:,}", growth, "goal 1/8 of the bytes, time ratio 2 at twice n")
    return {line: {"bytes": shifted, "growth": growth}}


def documents(ranks: Ranks) -> dict[str, Any]:
    n, found = sum(DOCUMENTS), {}
    for gradients in (False, True):
        line = f"ragged documents, {'forward+backward' if gradients else 'forward'}"
        shared, by_hand = partial(ours, "documents", n, gradients), partial(documents_by_hand, gradients)
        found[line] = ratios(partial(slowest, ranks, shared), partial(slowest, ranks, by_hand))
        show(line, found[line], "goal 0.90")
    return found


def questions(ranks: Ranks, n: int) -> dict[str, Any]:
    found = {}
    for question in QUESTIONS:
        line = f"{question}, causal, n = {n}"
        found[line] = ratios(partial(ask, question, n, False), partial(slowest, ranks, ask, question, n, True), 3)
        show(line, found[line], "time over one process's, goal at most 1.2")
    return found


def memory(n: int) -> dict[str, Any]:
    found = {}
    for gradients in (False, True):
        with group(2) as ranks:
            peaks = ranks.run(peak, "causal", n, gradients)
        line = f"peak above inputs, causal, n = {n}, {'forward+backward' if gradients else 'forward'}"
        shard, block = HEADS * DIM * 4 * n / 2 / 2**20, 2 * HEADS * DIM * 4 * n / 2 / 2**20
        limit = shard + 2 * block + 128 + (3 * shard + 2 * block if gradients else 0)
        found[line] = {"megabytes": peaks, "limit": limit}
        print(f"{line}: {max(peaks):,.0f} MB (goal at most {limit:,.0f})", flush=True)
    return found


def fit(n: int) -> dict[str, Any]:
    """Pairs a second of one process, bytes a second of a link and its latency, from 1, 2 and 4 processes."""
    pairs = HEADS * n * n
    seconds: dict[int, float] = {}
    for world in (1, 2, 4):
        with group(world) as ranks:
            ranks.run(ours, "full", n, False)
            seconds[world] = median(slowest(ranks, ours, "full", n, False) for _ in range(3))
    with group(2) as ranks:
        small, large = (median(ranks.run(bandwidth, size)[0] for _ in range(9)) / 2 for size in (1, 1 << 24))
    found = {
        "n": n, "seconds": seconds, "flops": 4 * DIM * pairs / seconds[1],
        "bandwidth": (1 << 24) / (large - small), "latency": small, "cores": os.cpu_count(),
    }  # fmt: skip
    print(f"fit: {json.dumps(found)}", flush=True)
    return found


class group:  # noqa: N801  reads as a statement
    """A group of new processes with one thread each."""

    def __init__(self, world: int) -> None:
        self.world = world

    def __enter__(self) -> Ranks:
        self.folder = tempfile.TemporaryDirectory()
        self.ranks = Ranks(self.world, self.folder.name)
        return self.ranks

    def __exit__(self, *_: object) -> None:
        self.ranks.close()
        self.folder.cleanup()


def show(line: str, found: dict[str, Any], goal: str) -> None:
    a, b = found["seconds"]
    low, high = found["quartiles"]
    print(f"{line}: {found['ratio']:.2f} ({low:.2f} to {high:.2f}; {a:.3f} s and {b:.3f} s; {goal})", flush=True)


def main() -> None:
    quick = "--quick" in sys.argv
    torch.set_num_threads(2)
    n = 1024 if quick else 8192
    with group(2) as ranks:
        results = speed(ranks, n) | balance(ranks, n) | window(ranks, 8 * n) | documents(ranks)
        results |= questions(ranks, 4 * n)
    results |= memory(4 * n)
    results["fit"] = fit(n)
    if not quick:
        RESULTS.write_text(json.dumps({"machine": machine.describe(), "results": results}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
