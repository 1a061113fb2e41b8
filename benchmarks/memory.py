"""Memory of one contestant, in a process of its own.

`python -m benchmarks.memory LINE CONTESTANT` warms up on a small version of the line (libraries, thread pools and code
are then in memory), makes the inputs, notes the resident anonymous memory, resets the kernel's high-water mark (5 into
/proc/self/clear_refs), runs the work once, and reads VmHWM. File-backed pages (code read for the first time) are left
out. `extra` is that peak minus the results the caller keeps: what the work needed and gave back.

malloc is set to map every block above 64 KiB on its own (MALLOC_MMAP_THRESHOLD_, which also stops glibc from raising
the threshold by itself) and to use one arena: a freed tensor then leaves the resident memory at once, so the peak
counts live tensors and not reserves of the allocator. This holds for memory only: times are measured with malloc's
defaults. Linux only.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
from argparse import ArgumentParser
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from benchmarks.harness import Contestant, Line, Results, run_small, tensors_in

ROOT = Path(__file__).resolve().parent.parent
OURS = "regard"
MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": str(2**16),
    "MALLOC_MMAP_MAX_": str(2**20),
    "MALLOC_TRIM_THRESHOLD_": "0",
    "MALLOC_ARENA_MAX": "1",
}
RUN_SECONDS = 600


@dataclass(frozen=True)
class Peak:
    """Bytes: the peak above the inputs, the results within it, and the rest."""

    above_inputs: int
    results: int
    extra: int


def supported() -> bool:
    return Path("/proc/self/clear_refs").exists()


def status() -> dict[str, int]:
    """Return the memory counters of this process in bytes, by name."""
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines if words[-1] == "kB"}


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def release() -> None:
    """Return freed memory to the system, so that the baseline holds only living objects."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def peak_of(line: Line, forward: Contestant) -> Peak:
    """Return the peak of one run of a contestant in this process."""
    torch.set_num_threads(line.threads)
    run_small(line)
    x = line.make(line.sizes)
    kept = lead_in(line, forward)(x)
    release()
    before = status()["RssAnon"]
    reset_peak()
    results = line.contestant(forward)(x)
    after = status()
    above = max(0, after["VmHWM"] - after["RssFile"] - after.get("RssShmem", 0) - before)
    held = result_bytes(results)
    del kept
    return Peak(above, held, max(0, above - held))


def lead_in(line: Line, forward: Contestant) -> Contestant:
    """Return the peer if ours continues its work: its result is then part of the baseline."""
    if line.chained and forward is line.ours:
        return next(iter(line.peers.values()))
    return lambda _: None


def result_bytes(results: Results) -> int:
    storages = (tensor.untyped_storage() for tensor in tensors_in(results))
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


def measure(line: Line, *, quick: bool = False) -> dict[str, Peak]:
    """Measure each contestant of a line in a fresh process."""
    names = [OURS, *(line.peers if line.comparable or line.chained else [])]
    return {name: in_fresh_process(line, name, quick=quick) for name in names}


def in_fresh_process(line: Line, contestant: str, *, quick: bool) -> Peak:
    command = [sys.executable, "-m", "benchmarks.memory", line.name, contestant, *(["--quick"] if quick else [])]
    environment = {**os.environ, **MALLOC, "OMP_NUM_THREADS": str(line.threads)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=RUN_SECONDS, check=False
    )
    if done.returncode:
        complaint = (done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"])[-1]
        raise RuntimeError(f"measuring the memory of {contestant} in {line.name} failed: {complaint}")
    return Peak(**json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    from benchmarks.suite import find  # the suite knows every line; a line need not know the suite

    parser = ArgumentParser(prog="python -m benchmarks.memory")
    parser.add_argument("line")
    parser.add_argument("contestant")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    line = find(options.line, quick=options.quick)
    forward = line.ours if options.contestant == OURS else line.peers[options.contestant]
    print(json.dumps(asdict(peak_of(line, forward))))


if __name__ == "__main__":
    main()
