"""From a line to its record (plain data), and records to files: `results/<group>.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import machine, memory
from benchmarks.goals import Spread
from benchmarks.harness import Line, Outcome, contest
from benchmarks.machine import Limits
from benchmarks.memory import OURS, Peak

PASS, SHORT, ERROR, DISAGREES, REPORTED = "PASS", "FALLS SHORT", "ERROR", "DISAGREES", "reported"
UNFINISHED = "passes as far as measured"
MB = 1e6
DIGITS = 6
Record = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """How a run is made."""

    quick: bool = False
    rounds: int | None = None
    memory: bool = True


def measure(line: Line, limits: Mapping[int, Limits], settings: Settings) -> Record:
    """Return the record of a line; the error of a contestant that fails is part of the record."""
    record = describe(line)
    try:
        return record | measured(line, limits[line.threads], settings)
    except Exception as error:  # noqa: BLE001  one broken line must not cost the others
        return record | {"verdict": ERROR, "error": complaint(error)}


def complaint(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def describe(line: Line) -> Record:
    return {
        "name": line.name,
        "work": dict(line.family.work),
        "against": dict(line.family.peer),
        "shapes": line.sizes.shapes(),
        "peer_shapes": (line.peer_sizes or line.sizes).shapes(),
        "peer_share": line.peer_share,
        "dtype": line.dtype,
        "gradients": line.gradients,
        "threads": line.threads,
        "goals": list(line.goals),
    }


def measured(line: Line, limit: Limits, settings: Settings) -> Record:
    outcome = contest(line, settings.rounds)
    peaks = memory.measure(line, quick=settings.quick) if line.memory and settings.memory else {}
    metrics = metrics_of(line, outcome, peaks)
    return {
        "times": times_of(outcome),
        "metrics": {name: asdict(spread) for name, spread in metrics.items()},
        "memory": {name: asdict(peak) for name, peak in peaks.items()},
        "memory_peer": line.memory_peer or outcome.timing.peer,
        "shares": machine.shares(line, median(outcome.timing.ours), limit),
        "difference": outcome.difference,
        "verdict": verdict(line, metrics, outcome.difference),
    }


def times_of(outcome: Outcome) -> Record:
    timing = outcome.timing
    return {
        "ours_seconds": median(timing.ours),
        "peer_seconds": median(timing.theirs),
        "peer": timing.peer,
        "pilots": timing.pilots,
        "calls_per_round": timing.calls,
        "ours_rounds": timing.ours,
        "peer_rounds": timing.theirs,
    }


def metrics_of(line: Line, outcome: Outcome, peaks: Mapping[str, Peak]) -> dict[str, Spread]:
    memory = memory_metrics(peaks, line.memory_peer or outcome.timing.peer)
    single = dict(line.quality() if line.quality else {}) | memory
    return outcome.timing.metrics() | {name: Spread.of([value]) for name, value in single.items()}


def memory_metrics(peaks: Mapping[str, Peak], peer: str) -> dict[str, float]:
    """Return our memory, and its ratio to the memory of `peer`."""
    if OURS not in peaks:
        return {}
    ours = {"memory_mb": peaks[OURS].extra / MB}
    return ours | {"memory_ratio": peaks[OURS].extra / max(1, peaks[peer].extra)} if peer in peaks else ours


def verdict(line: Line, metrics: Mapping[str, Spread], difference: float | None) -> str:
    if difference is not None and not difference <= line.tolerance:
        return DISAGREES
    goals = line.parsed_goals()
    judged = [goal.met_by(metrics[goal.metric].median) for goal in goals if goal.metric in metrics]
    if not judged:
        return REPORTED
    if not all(judged):
        return SHORT
    return PASS if len(judged) == len(goals) else UNFINISHED


def document(group: str, records: Iterable[Record], limits: Mapping[int, Limits], settings: Settings) -> Record:
    return rounded(
        {
            "group": group,
            "date": datetime.now(UTC).date().isoformat(),
            "quick": settings.quick,
            "versions": machine.versions(),
            "machine": machine.describe(),
            "limits": {str(threads): asdict(rates) for threads, rates in limits.items()},
            "lines": list(records),
        }
    )


def rounded(value: Any) -> Any:
    """Round to six significant digits: more would be noise in the files."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return [rounded(part) for part in value] if isinstance(value, list) else value


def write(document: Record, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{document['group']}.json"
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def read_all(folder: Path, order: Iterable[str]) -> list[Record]:
    """Read the documents of a folder, in the order of the suite."""
    paths = (folder / f"{group}.json" for group in order)
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]
