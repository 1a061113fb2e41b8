"""Every architecture of transformers that can be built tiny is recorded exactly, refused, or named as missing."""

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import architecture_sweep as sweep
import pytest

TESTS = Path(__file__).parent.parent
BATCH = 8  # architectures in one process
SECONDS = 900  # for one process


def run(names):
    """Results of some architectures; what ends the process is reported, and the rest goes on in another one."""
    results = []
    while names:
        command = [sys.executable, str(TESTS / "architecture_sweep.py"), *names]
        paths = os.pathsep.join([str(TESTS), *sys.path])
        try:
            end = subprocess.run(
                command,
                capture_output=True,
                check=False,
                text=True,
                timeout=SECONDS,
                env={**os.environ, "PYTHONPATH": paths},
            )
            output, reason = end.stdout, f"exit {end.returncode}: {end.stderr[-200:]}" if end.returncode else ""
        except subprocess.TimeoutExpired as late:
            output, reason = (late.stdout or b"").decode(), f"it takes more than {SECONDS} s"
        found = [sweep.Result(*json.loads(line)) for line in output.splitlines() if line.startswith("[")]
        results += found
        if not reason:
            break
        last = found[-1].architecture if found else names[0]
        results.append(sweep.Result(last, "", "process", sweep.NOT_RUN, reason))
        names = names[names.index(last) + 1 :]
    return results


def table(results):
    """Counts of outcomes, by case, and of architectures by the least good of their outcomes."""
    cases = defaultdict(Counter)
    for result in results:
        cases[result.outcome][result.case] += 1
    lines = [f"{len({result.architecture for result in results})} architectures, {len(results)} cases"]
    for outcome, counts in sorted(cases.items(), key=lambda item: -item[1].total()):
        architectures = len({result.architecture for result in results if result.outcome == outcome})
        lines.append(f"{outcome}: {counts.total()} cases of {architectures} architectures {dict(counts)}")
    return "\n".join(lines)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_every_architecture_is_recorded_exactly_or_named_as_missing(capsys):
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    names = list(CONFIG_MAPPING_NAMES)
    batches = [names[first : first + BATCH] for first in range(0, len(names), BATCH)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = [result for batch in pool.map(run, batches) for result in batch]
    with capsys.disabled():
        print("\n" + table(results))  # noqa: T201  the counts are what one wants to read
    assert [result for result in results if result.outcome in sweep.FAULTS] == []
    assert sum(result.outcome == sweep.EXACT for result in results) > 1000


@pytest.mark.parametrize(
    ("architecture", "outcomes"),
    [("gpt2", {sweep.EXACT, sweep.CHECKED}), ("bloom", {sweep.REFUSED}), ("resnet", {sweep.NO_ATTENTION})],
)
def test_the_sweep_knows_what_an_architecture_does(architecture, outcomes):
    results = run([architecture])
    assert {result.outcome for result in results} <= outcomes
    assert len(results) >= 3
