"""Kernel averages of rows that stay in a file, against the same rows in memory."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from benchmarks.goals import words
from benchmarks.harness import Family, Line, Results, Sizes, Tensors, Work
from regard.regression import NadarayaWatson

QUERIES = 1000
TOL = 1e-4  # reachable with float32
WIDTH = 0.5
PIECE = 2**18  # rows that are generated at a time, so that the file need not fit in memory
PEER = words("the same rows in memory", "同样的行，放在内存里")


@cache
def folder() -> Path:
    path = Path(tempfile.mkdtemp(prefix="regard-bench-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@cache
def stored(n: int, d: int) -> tuple[Path, Path]:
    """Write x and y as .npy files."""
    paths = folder() / f"x{n}x{d}.npy", folder() / f"y{n}x{d}.npy"
    x = np.lib.format.open_memmap(paths[0], "w+", np.float64, (n, d))
    y = np.lib.format.open_memmap(paths[1], "w+", np.float64, (n,))
    for start in range(0, n, PIECE):
        random = np.random.default_rng(start)
        rows = slice(start, min(start + PIECE, n))
        x[rows] = random.standard_normal((rows.stop - rows.start, d))
        y[rows] = np.sin(x[rows]).sum(1) + random.standard_normal(rows.stop - rows.start)
    return paths


@cache
def parquet(n: int, d: int) -> Path:
    """Write the rows as a folder of Parquet files, a million rows each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder() / f"table{n}x{d}"
    path.mkdir()
    x, y = (np.load(file, mmap_mode="r") for file in stored(n, d))
    for part, start in enumerate(range(0, n, 2**20)):
        rows = slice(start, start + 2**20)
        columns = {f"x{k}": np.ascontiguousarray(x[rows, k]) for k in range(d)} | {"y": np.array(y[rows])}
        pq.write_table(pa.table(columns), path / f"{part:04}.parquet")
    return path


def make(sizes: Sizes) -> Tensors:
    stored(sizes.n, sizes.d)
    query = torch.randn(QUERIES, sizes.d, generator=torch.Generator().manual_seed(1)).double()
    nothing = torch.empty(0)
    return Tensors(query, nothing, nothing, nothing, more={"size": (sizes.n, sizes.d)})


def make_parquet(sizes: Sizes) -> Tensors:
    parquet(sizes.n, sizes.d)
    return make(sizes)


def model() -> NadarayaWatson:
    return NadarayaWatson(bandwidth=WIDTH, tol=TOL)


def from_arrays(x: Tensors) -> Results:
    """Predict with an estimator that was fitted in an untimed first call."""
    if "mapped" not in x.more:
        x.more["mapped"] = model().fit(*(np.load(file, mmap_mode="r") for file in stored(*x.more["size"])))
    return predicted(x.more["mapped"], x)


def from_parquet(x: Tensors) -> Results:
    if "parquet" not in x.more:
        x.more["parquet"] = model().fit(parquet(*x.more["size"]), "y")
    return predicted(x.more["parquet"], x)


def in_memory(x: Tensors) -> Results:
    if "arrays" not in x.more:
        x.more["arrays"] = model().fit(*(np.load(file) for file in stored(*x.more["size"])))
    return predicted(x.more["arrays"], x)


def predicted(fitted: NadarayaWatson, x: Tensors) -> Results:
    names = getattr(fitted, "feature_names_in_", None)
    query = x.q.numpy()
    return torch.from_numpy(fitted.predict(query if names is None else pd.DataFrame(query, columns=names)))


def line(name: str, n: int) -> Line:
    sizes = Sizes(n=n, heads=1, d=5, d_v=1)
    parts = words(f"from {name}", f"来自 {name}")
    work = words(
        f"kernel regression, {n:,} rows at {QUERIES} queries, d = 5, {parts['en']}",
        f"核回归，{n:,} 行，{QUERIES} 个查询，d = 5，{parts['zh']}",
    )
    pairs = n * QUERIES
    return Line(
        name=f"regression_stream/{'parquet' if name == 'Parquet' else 'npy'}",
        family=Family(work, PEER),
        sizes=sizes,
        make=make_parquet if name == "Parquet" else make,
        ours=from_parquet if name == "Parquet" else from_arrays,
        peers={"in memory": in_memory},
        work=Work(flops=2.0 * pairs * (sizes.d + 2), exps=pairs),
        goals=("time_ratio <= 1.25", "memory_mb <= 100"),
        rounds=3,
        dtype="float64",
        memory=True,
    )


def lines(quick: bool) -> list[Line]:
    return [line(".npy", 20_000 if quick else 20_000_000), line("Parquet", 20_000 if quick else 4_000_000)]
