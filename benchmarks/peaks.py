"""Memory of many lines in one process: python -m benchmarks.peaks MODULE, names on its input, peaks on its output.

A process for each line, as in `benchmarks.memory`, would load torch hundreds of times. malloc is set in the same way.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module

from benchmarks.memory import MALLOC, ROOT, Peak, peak_of

STOP_SECONDS = 10
AskPeak = Callable[[str], Peak | None]


@contextmanager
def peaks(module: str, *, quick: bool = False, threads: int = 2) -> Iterator[AskPeak]:
    """Yield a function that measures ours of a line, which `module.find(name, quick=)` gives; None if it fails."""
    command = [sys.executable, "-m", "benchmarks.peaks", module, *(["--quick"] if quick else [])]
    environment = {**os.environ, **MALLOC, "OMP_NUM_THREADS": str(threads)}
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # an interrupt is for the parent, which then ends the child
    )

    def ask(name: str) -> Peak | None:
        if child.stdin is None or child.stdout is None:
            raise AssertionError("the process was started with pipes")
        print(name, file=child.stdin, flush=True)
        answer = json.loads(child.stdout.readline() or "null")
        return Peak(**answer) if answer else None

    try:
        yield ask
    finally:
        child.kill()
        child.wait(STOP_SECONDS)


def main() -> None:
    parser = ArgumentParser(prog="python -m benchmarks.peaks")
    parser.add_argument("module")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    find = import_module(options.module).find
    for name in sys.stdin:
        try:
            line = find(name.rstrip("\n"), quick=options.quick)
            print(json.dumps(asdict(peak_of(line, line.ours))), flush=True)
        except Exception as error:  # noqa: BLE001  one broken line must not cost the others
            print(error, file=sys.stderr)
            print("null", flush=True)


if __name__ == "__main__":
    main()
