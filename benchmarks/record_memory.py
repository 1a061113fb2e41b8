"""The memory of a recorded run against that of eager attention, which keeps every matrix: 7 GB for eight layers."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.harness import Line
from benchmarks.record import GPT2, SMALL, Model, against_eager, shallow


def memory(model: Model, n: int, goals: tuple[str, ...]) -> Line:
    return replace(against_eager(model, n, goals), name=f"record_memory/n{n}/eager", rounds=1, memory=True)


def lines(quick: bool) -> list[Line]:
    return [memory(SMALL, 512, ())] if quick else [memory(shallow(GPT2, 8), 4096, ("memory_ratio <= 1/20",))]
