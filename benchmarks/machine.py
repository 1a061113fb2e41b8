"""The best rates of this machine, for comparison. `python -m benchmarks.machine` prints them."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from benchmarks.harness import Line, seconds

THREADS = (1, 2)
SIDE = 2048  # of the square matrices
ELEMENTS = 2**26  # copied: 256 MB, beyond any cache
EXPONENTS = 2**19  # fits in the cache, so that arithmetic is measured and not memory


@dataclass(frozen=True)
class Limits:
    """Best measured rates with a number of threads."""

    matrix_gflops: float
    copy_gb_per_second: float
    exp_per_ns: float


def best(run: Callable[[], object], repeats: int, calls: int = 1) -> float:
    return min(seconds(run, calls) for _ in range(repeats))


def measure(threads: int, repeats: int = 10) -> Limits:
    torch.set_num_threads(threads)
    a, b = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE)
    product = torch.empty(SIDE, SIDE)
    source, target = torch.zeros(ELEMENTS), torch.ones(ELEMENTS)
    x, y = torch.randn(EXPONENTS), torch.empty(EXPONENTS)
    return Limits(
        matrix_gflops=2 * SIDE**3 / best(lambda: torch.mm(a, b, out=product), repeats) / 1e9,
        copy_gb_per_second=2 * source.nbytes / best(lambda: target.copy_(source), repeats) / 1e9,
        exp_per_ns=EXPONENTS / best(lambda: torch.exp(x, out=y), 5 * repeats, calls=5) / 1e9,
    )


def limits(repeats: int = 10) -> dict[int, Limits]:
    return {threads: measure(threads, repeats) for threads in THREADS}


def shares(line: Line, time: float, limit: Limits) -> dict[str, float]:
    """Return the share of the time that products and exponentials would take at the machine's best rates."""
    return {
        "matrix": line.work.flops / (limit.matrix_gflops * 1e9) / time,
        "exp": line.work.exps / (limit.exp_per_ns * 1e9) / time,
    }


def describe() -> dict[str, object]:
    """Describe the machine without its name."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "vector": torch.backends.cpu.get_cpu_capability(),
    }


def cpu_model() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    models = (line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name"))
    return next(models, platform.machine())


def versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: installed(name) for name in ("regard", "torch", "numpy")}}


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    print(json.dumps({"machine": describe(), "limits": {n: asdict(rates) for n, rates in limits().items()}}, indent=2))
