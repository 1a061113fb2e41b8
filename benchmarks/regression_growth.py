"""How the cost of kernel regression grows with the data: python -m benchmarks.regression_growth [--draw]

Measures n points at n queries for d = 1, 2, 3 and at 10^4 queries for d = 5, every query certified, from 10^3 points up
to 10^7. A curve ends before a point that takes more than a minute. Writes results/regression_growth.json and, from
it, docs/images/regression-growth.png.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial

import torch

from benchmarks import machine
from benchmarks.growth import MAX_SECONDS, climb
from benchmarks.memory import ROOT
from benchmarks.regression_fast import sample_of, tol_for
from benchmarks.tasks import SEED
from regard.regression.kernel_sums import engine

TABLE = ROOT / "benchmarks" / "results" / "regression_growth.json"
PICTURE = ROOT / "docs" / "images" / "regression-growth.png"
SIZES = [1_000, 3_162, 10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000]
FEW_QUERIES = 10_000


def once(n: int, dim: int) -> float:
    """Return the seconds of one size, with the automatic plan."""
    sample, query = sample_of(n, dim, torch.Generator().manual_seed(SEED))
    tol = tol_for(dim)
    if dim > 3:
        query = query[torch.arange(FEW_QUERIES) % n]
    best = float("inf")
    for _ in range(3 if n <= 10**5 else 1):
        start = time.perf_counter()
        answer = engine.pool(sample, query, tol=tol)
        best = min(best, time.perf_counter() - start)
        if not bool((answer.error <= tol).all()):
            raise ArithmeticError("an answer is not certified")
    return best


def curve(dim: int) -> list[tuple[int, float]]:
    points: list[tuple[int, float]] = []
    for n, took in climb(SIZES, partial(once, dim=dim)):
        points.append((n, took))
        print(f"d = {dim}, n = {n:>10,}: {took:.4f} s", flush=True)
    return points


def draw(table: dict[str, list[tuple[int, float]]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    for dim, points in table.items():
        queries = f"{FEW_QUERIES:,} queries" if int(dim) > 3 else "n queries"
        axes.loglog(*zip(*points, strict=True), marker="o", label=f"d = {dim}, {queries}")
    axes.axhline(MAX_SECONDS, color="grey", linewidth=0.8, linestyle=":")
    axes.set(xlabel="points n", ylabel="seconds")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(PICTURE, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regression_growth")
    parser.add_argument("--draw", action="store_true", help="draw the stored table again, measure nothing")
    parser.add_argument("--only", type=int, nargs="*", help="measure these d alone, keep the rest of the table")
    options = parser.parse_args()
    stored = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {"seconds": {}}
    if not options.draw:
        torch.set_num_threads(2)
        for dim in options.only or (1, 2, 3, 5):
            seconds = dict(sorted((stored["seconds"] | {str(dim): curve(dim)}).items()))
            stored = {"machine": machine.describe(), "versions": machine.versions(), "seconds": seconds}
            TABLE.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    draw(stored["seconds"])


if __name__ == "__main__":
    main()
