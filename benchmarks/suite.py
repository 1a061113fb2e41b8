"""Every line, by group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks import (
    additive,
    attend,
    bias,
    cliffs,
    fixed_cost,
    gaussian,
    lab_load,
    layers,
    maps,
    precision,
    questions,
    record,
    record_long,
    record_memory,
    recorded,
    regression_bandwidth,
    regression_fast,
    regression_pairs,
    regression_stream,
    translation,
    value_width,
    window,
)
from benchmarks.harness import Line

MODULES = (
    attend,
    fixed_cost,
    value_width,
    gaussian,
    bias,
    window,
    cliffs,
    questions,
    additive,
    precision,
    layers,
    record,
    record_long,
    record_memory,
    recorded,
    maps,
    regression_bandwidth,
    regression_fast,
    regression_pairs,
    regression_stream,
    translation,
    lab_load,
)
Lines = Callable[[bool], list[Line]]
GROUPS: dict[str, Lines] = {module.__name__.rsplit(".", 1)[-1]: module.lines for module in MODULES}


def all_lines(*, quick: bool) -> dict[str, list[Line]]:
    return {group: sparing(lines(quick)) if quick else lines(quick) for group, lines in GROUPS.items()}


def sparing(lines: list[Line]) -> list[Line]:
    """Measure memory on one line only: each measurement is a process that loads torch again."""
    first = next((line.name for line in lines if line.memory), None)
    return [replace(line, memory=line.name == first) for line in lines]


def find(name: str, *, quick: bool) -> Line:
    for line in GROUPS[name.split("/", 1)[0]](quick):
        if line.name == name:
            return line
    raise KeyError(f"no line is called {name!r}; `python -m benchmarks --list` names them all")


def select(names: list[str], *, quick: bool) -> dict[str, list[Line]]:
    """Lines whose name is, or starts with, one of `names` (a group, or part of one); all of them without names."""
    everything = all_lines(quick=quick)
    lines = [line for group in everything.values() for line in group]
    unknown = [name for name in names if not any(matches(line, name) for line in lines)]
    if unknown:
        raise SystemExit(f"no line is called {', '.join(unknown)}; the groups are {', '.join(GROUPS)}")
    wanted = {line.name for line in lines if not names or any(matches(line, name) for name in names)}
    chosen = {group: [line for line in lines if line.name in wanted] for group, lines in everything.items()}
    return {group: lines for group, lines in chosen.items() if lines}


def matches(line: Line, name: str) -> bool:
    return line.name == name or line.name.startswith(name.rstrip("/") + "/")
