"""Kernel regression over every pair: 10^5 queries, 10^4 points, 5 features, as exact as single precision can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.goals import words
from benchmarks.harness import Contestant, Family, Line, Sizes, Tensors, Work
from benchmarks.tasks import SEED
from regard.regression import NadarayaWatson

WIDTH = 0.104  # Scott's bandwidth for 10^4 points that fill the unit cube
TOL = 3e-4  # guaranteed error of every query; the actual error is float32 rounding, as with the peers
FLOAT32 = 2e-6  # the error that the quality line divides by; peers in single precision are off by 5e-7 to 8e-7
SHARE = 0.01  # of the queries, for peers that take minutes
CHUNKS = (64, 1024)  # MiB of working memory for scikit-learn


def make(sizes: Sizes) -> Tensors:
    """Points and queries in a cube, a wave with noise; peers get the same in single precision and in bandwidths."""
    generator = torch.Generator().manual_seed(SEED)
    query, x = (torch.rand(count, sizes.d, generator=generator, dtype=torch.float64) for count in (sizes.n, sizes.m))
    y = torch.sin(6 * x.sum(1)) + 0.1 * torch.randn(sizes.m, generator=generator, dtype=torch.float64)
    model = NadarayaWatson(bandwidth=WIDTH, tol=TOL).fit(x.numpy(), y.numpy())
    single = {"q": (query / WIDTH).float(), "x": (x / WIDTH).float(), "y": y.float().unsqueeze(1)}
    return Tensors(query, x, y, y, more={"model": model, **single})


def ours(x: Tensors) -> Tensor:
    return torch.from_numpy(x.more["model"].predict(x.q.numpy()))


def lazy(x: Tensors) -> tuple[Any, Tensor]:
    """Return KeOps' lazy matrix of scores."""
    from pykeops.torch import LazyTensor  # pyright: ignore[reportMissingImports]

    q, k = LazyTensor(x.more["q"][:, None, :]), LazyTensor(x.more["x"][None, :, :])
    return -((q - k) ** 2).sum(-1) / 2, x.more["y"]


def keops_sums(x: Tensors) -> Tensor:
    """Numerator and denominator in one reduction."""
    scores, y = lazy(x)
    sums = scores.exp() @ torch.cat([y, torch.ones_like(y)], 1)
    return sums[:, 0] / sums[:, 1]


def keops_softmax(x: Tensors) -> Tensor:
    from pykeops.torch import LazyTensor  # pyright: ignore[reportMissingImports]

    scores, y = lazy(x)
    return scores.sumsoftmaxweight(LazyTensor(y[None, :, :]), dim=1)[:, 0]


def sklearn_chunked(x: Tensors, mib: int) -> Tensor:
    from sklearn.metrics import pairwise_distances_chunked

    q, k, y = (x.more[name].numpy() for name in ("q", "x", "y"))

    def averages(squares: np.ndarray, _: int) -> np.ndarray:
        squares *= -0.5
        np.exp(squares, out=squares)
        return (squares @ y)[:, 0] / squares.sum(1)

    chunks = pairwise_distances_chunked(q, k, reduce_func=averages, metric="sqeuclidean", working_memory=mib)
    return torch.from_numpy(np.concatenate(list(chunks)))


def statsmodels_fit(x: Tensors) -> Tensor:
    from statsmodels.nonparametric.kernel_regression import KernelReg

    queries = x.q[: max(1, round(len(x.q) * SHARE))].numpy()
    dim = x.k.shape[1]
    model = KernelReg(x.v.numpy(), x.k.numpy(), var_type="c" * dim, reg_type="lc", bw=[WIDTH] * dim)  # pyright: ignore[reportArgumentType]
    return torch.from_numpy(model.fit(queries)[0])


def errors(sizes: Sizes, queries: int = 2000) -> Mapping[str, float]:
    """Return our largest error, in standard deviations of y, divided by FLOAT32."""
    x = make(sizes)
    truth = torch.cat([plain(x, part) for part in x.q[:queries].split(100)])
    return {"error_ratio": float((ours(x)[:queries] - truth).abs().max() / x.v.std()) / FLOAT32}


def plain(x: Tensors, query: Tensor) -> Tensor:
    squares = ((query.unsqueeze(1) - x.k) / WIDTH).square().sum(-1)
    return torch.softmax(squares / -2, -1) @ x.v


def line(
    sizes: Sizes, name: str, title: str, peers: Mapping[str, Contestant], goals: tuple[str, ...], **more: Any
) -> Line:
    en = f"kernel regression, every pair, {sizes.n:,} x {sizes.m:,}, d = {sizes.d}"
    zh = f"核回归，全部点对，{sizes.n:,} x {sizes.m:,}，d = {sizes.d}"
    pairs = sizes.n * sizes.m
    return Line(
        name=f"regression_pairs/{name}",
        family=Family(words(en, zh), words(title, more.pop("title_zh", None))),
        sizes=sizes,
        make=make,
        ours=ours,
        peers=peers,
        work=Work(flops=pairs * 2.0 * (sizes.d + 2), exps=pairs),
        goals=goals,
        **more,
    )


def lines(quick: bool) -> list[Line]:
    """Return all lines; a quick run omits KeOps, which takes long to compile."""
    n, m = (2_000, 1_000) if quick else (100_000, 10_000)
    sizes = Sizes(n=n, heads=1, d=5, d_v=1, m=m)
    chunked: dict[str, Contestant] = {f"{mib} MiB": partial(sklearn_chunked, mib=mib) for mib in CHUNKS}
    scaled = words("statsmodels KernelReg, 1 % of the queries, scaled", "statsmodels KernelReg，取 1 % 的查询再放大")
    without_keops = [
        line(sizes, "sklearn", "scikit-learn, chunked distances", chunked, ("speedup >= 10",), rounds=3),
        line(
            sizes,
            "statsmodels",
            scaled["en"],
            {"KernelReg": statsmodels_fit},
            ("speedup >= 100",),
            rounds=5,
            peer_share=SHARE,
            title_zh=scaled["zh"],
        ),
    ]
    if quick:
        return without_keops
    goals = ("speedup >= 6", "memory_mb <= 40", "error_ratio <= 1")
    peers: dict[str, Contestant] = {"sums": missing_or(keops_sums), "softmax": missing_or(keops_softmax)}
    quality = partial(errors, sizes)
    keops = line(sizes, "keops", "KeOps, float32", peers, goals, rounds=5, memory=True, quality=quality)
    return [keops, *without_keops]


def missing_or(contestant: Callable[[Tensors], Tensor]) -> Contestant:
    """Raise an error that names the missing peer; its line then has no result."""
    if find_spec("pykeops") is not None:
        return contestant

    def missing(_: Tensors) -> Tensor:
        raise RuntimeError("pykeops is not installed: pip install 'regard[bench]', which also needs a C++ compiler")

    return missing
