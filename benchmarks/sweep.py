"""Where is a call slow? A few hundred combinations, each in nanoseconds per visible pair and head.

A combination is held against the plain call of its shape, against the fastest code by hand, and against the machine's
limit. What takes more than 1.3 x of the first, per visible pair, or of the second is a cliff. It is explained by the
limit if it takes at most 1.3 x of that, and nobody does it faster by hand; and by the fixed cost of a call if that
would be so with the fixed cost of the code by hand.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cache

from rich.console import Console

from benchmarks import machine, memory, report, sweep_report
from benchmarks.bounds import Rates, best, bounds, measure_rates, smallest
from benchmarks.combinations import Combination, every
from benchmarks.harness import bind, contest
from benchmarks.peaks import AskPeak, peaks
from benchmarks.records import Record, Settings, complaint, document, write
from benchmarks.sweep_report import CLIFF
from regard.engine.inputs import BUDGET

GROUP, UNFINISHED = "sweep", "sweep_unfinished"
ROUNDS = 3
THREADS = 2


@dataclass(frozen=True)
class Seconds:
    """The times of a combination: ours, code by hand, the plain call for as many pairs, the limit, and fixed costs."""

    ours: float
    by_hand: float
    plain: float
    limit: float
    fixed: float  # of ours
    fixed_by_hand: float

    def ratios(self) -> dict[str, float]:
        return {name: self.ours / getattr(self, name) for name in ("plain", "by_hand", "limit")}

    @property
    def with_fixed_cost_by_hand(self) -> float:
        return self.ours - max(0.0, self.fixed - self.fixed_by_hand)


def verdict(seconds: Seconds, limit: str) -> Record:
    """Judge a combination by its times; `limit` is the name of its limit."""

    def is_explained(ours: float) -> bool:
        return ours <= CLIFF * seconds.by_hand and ours <= CLIFF * max(seconds.plain, seconds.limit)

    if seconds.ours <= CLIFF * min(seconds.plain, seconds.by_hand):
        return {"cliff": False, "explained": ""}
    if is_explained(seconds.ours):
        return {"cliff": True, "explained": limit}
    return {"cliff": True, "explained": "call" if is_explained(seconds.with_fixed_cost_by_hand) else ""}


def measure(combination: Combination, rates: Rates, peak: AskPeak | None) -> Record:
    """Return the record of a combination; the error of one that fails is part of its record."""
    record: Record = {"name": combination.name, "shapes": combination.sizes.shapes()}
    try:
        return record | measured(combination, rates, peak)
    except Exception as error:  # noqa: BLE001  one broken combination must not cost the others
        return record | {"error": complaint(error), "cliff": True, "explained": "", "differs": True}


def measured(combination: Combination, rates: Rates, peak: AskPeak | None) -> Record:
    line = combination.line()
    outcome = contest(line, ROUNDS)
    ours, hand = min(outcome.timing.ours), min(outcome.timing.theirs)
    plain = ours if combination.is_plain else own_seconds(combination.plain())
    bound = bounds(combination, rates, plain)
    as_many = plain * combination.pairs / combination.plain().pairs
    seconds = Seconds(ours, hand, as_many, bound.seconds, *fixed_costs(smallest(combination), outcome.timing.peer))
    extra = peak(combination.name) if peak else None
    return {
        "pairs": combination.pairs,
        "blocks": combination.pairs_in_blocks,
        "seconds": asdict(seconds),
        "bounds": asdict(bound),
        "by_hand": outcome.timing.peer,
        "ns_per_pair": ours * 1e9 / (combination.pairs * combination.sizes.heads),
        "limit": bound.largest,
        "ratios": seconds.ratios(),
        "extra_bytes": extra.extra if extra else None,
        "matrix_bytes": combination.matrix_bytes,
        "builds_matrix": extra is not None and builds_matrix(extra.extra, combination.matrix_bytes),
        "difference": outcome.difference,
        "differs": outcome.difference is None or not outcome.difference <= line.tolerance,
        "plan": combination.plan(),
        **verdict(seconds, bound.largest),
    }


def builds_matrix(extra: int, matrix: int) -> bool:
    """Tell if scratch memory is that of n x m weights; a matrix within the budget of a call may be one tile."""
    return matrix > BUDGET and extra >= matrix


def own_seconds(combination: Combination) -> float:
    line = combination.line()
    return best(bind(line.contestant(line.ours), line.make(line.sizes)))


@cache
def fixed_costs(small: Combination, peer: str) -> tuple[float, float]:
    """Return the seconds of ours and of a peer on inputs with hardly any work."""
    line = small.line()
    x = line.make(line.sizes)
    theirs = line.peers.get(peer, next(iter(line.peers.values())))
    return best(bind(line.contestant(line.ours), x)), best(bind(line.contestant(theirs), x))


def collect(chosen: Iterable[Combination], one: Callable[[Combination], Record], console: Console) -> list[Record]:
    """Measure combinations one by one; an interrupt ends it and keeps what is done."""
    records: list[Record] = []
    chosen = list(chosen)
    try:
        for number, combination in enumerate(chosen, 1):
            records.append(record := one(combination))
            console.print(f"{number:>3} of {len(chosen)}  {sweep_report.one_line(record)}", highlight=False)
    except KeyboardInterrupt:
        console.print(f"stopped after {len(records)} of {len(chosen)} combinations")
    return records


def run(options: Namespace, console: Console) -> int:
    settings = Settings(options.quick, options.rounds, not options.no_memory)
    start, limits = time.perf_counter(), machine.limits()
    rates = measure_rates(limits[THREADS], THREADS)
    console.print(report.show_limits(limits))
    chosen = every(quick=options.quick)
    with ExitStack() as stack:
        ask = None
        if settings.memory and memory.supported():
            ask = stack.enter_context(peaks("benchmarks.combinations", quick=options.quick, threads=THREADS))
        records = collect(chosen, lambda one: measure(one, rates, ask), console)
    console.print(sweep_report.rich_table(records, f"cliffs ({time.perf_counter() - start:.0f} s)"))
    folder = options.out or (None if options.quick else memory.ROOT / "benchmarks" / "results")
    if folder:
        group = GROUP if len(records) == len(chosen) and settings.memory else UNFINISHED
        write(document(group, records, limits, settings), folder)
        (folder / f"{group}.md").write_text(sweep_report.page(document(group, records, limits, settings)), "utf-8")
    return int(any(record["differs"] or record.get("builds_matrix") for record in records))
