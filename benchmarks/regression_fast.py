"""A million points at a million queries, every answer certified, against the two bare transforms and against KeOps."""

from __future__ import annotations

import importlib.util

import torch
from torch import Tensor

from benchmarks.goals import words
from benchmarks.harness import Family, Line, Sizes, Tensors, Work
from benchmarks.tasks import SEED
from regard.regression import NadarayaWatson
from regard.regression.kernel_sums import engine, fourier
from regard.regression.kernel_sums.sample import Sample, standardise_by_axis

SUBSAMPLE = 1000  # KeOps computes all pairs, so it gets one query in 1,000
BARE = Family(
    words("kernel regression, n x n, d <= 3, every query certified", "核回归，n x n，d <= 3，每个查询都有误差保证"),
    words("the two bare finufft transforms", "两次裸的 finufft 变换"),
)
KEOPS = Family(
    words("kernel regression, n x n, d <= 2, every query certified", "核回归，n x n，d <= 2，每个查询都有误差保证"),
    words(f"KeOps, float32, with 1 query in {SUBSAMPLE:,}", f"KeOps，float32，每 {SUBSAMPLE:,} 个查询只算 1 个"),
)


def tol_for(dim: int) -> float:
    return 1e-6 if dim < 3 else 1e-4


def sample_of(n: int, dim: int, generator: torch.Generator) -> tuple[Sample, Tensor]:
    """Normal points with noisy waves on them, Scott's bandwidth, and as many queries."""

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    x = normal(n, dim)
    y = x.sin().sum(1, keepdim=True) + 0.3 * normal(n, 1)
    width = torch.full((dim,), n ** (-1 / (dim + 4)), dtype=torch.float64)
    return Sample(x, y, width), normal(n, dim)


def make(sizes: Sizes) -> Tensors:
    sample, query = sample_of(sizes.n, sizes.d, torch.Generator().manual_seed(SEED))
    model = NadarayaWatson(bandwidth=sample.bandwidth.numpy(), tol=tol_for(sizes.d))
    model.fit(sample.x.numpy(), sample.values[:, 0].numpy())
    if not bool((engine.pool(sample, query, tol=model.tol, plan="fast").error <= model.tol).all()):
        raise ArithmeticError("an answer is not certified")
    return Tensors(query, sample.x, sample.values, query, more={"sample": sample, "model": model})


def ours(x: Tensors) -> Tensor:
    return torch.from_numpy(x.more["model"].predict(x.q.numpy()))


def with_angles(sizes: Sizes) -> Tensors:
    """Return the inputs of `make`, and the inputs of the bare transforms."""
    x = make(sizes)
    sample, dim = x.more["sample"], sizes.d
    data = standardise_by_axis(sample, x.q)
    box = fourier.series_in_box(data, tol_for(dim))  # the peer does exactly our transforms
    if box is None:
        raise ValueError(f"no grid for {sizes}")
    series = box[0]
    points, at = (series.radians(part).numpy() for part in (data.x, data.query))
    strengths = fourier.pack(data.values, data.log_weight)[0].numpy()
    x.more |= {"points": points, "at": at, "series": series, "strengths": strengths}
    return x


def bare(x: Tensors) -> Tensor:
    from finufft import Plan

    series, threads = x.more["series"], torch.get_num_threads()
    forward = Plan(1, series.modes, eps=series.eps, isign=-1, nthreads=threads)
    forward.setpts(*x.more["points"])
    modes = forward.execute(x.more["strengths"])
    back = Plan(2, series.modes, eps=series.eps, isign=1, nthreads=threads)
    back.setpts(*x.more["at"])
    return torch.from_numpy(back.execute(modes))


def by_keops(x: Tensors) -> Tensor:
    from pykeops.torch import LazyTensor  # pyright: ignore[reportMissingImports]

    sample = x.more["sample"]
    q, k = ((points / sample.bandwidth).float().contiguous() for points in (x.q[::SUBSAMPLE], x.k))
    squares = ((LazyTensor(q[:, None]) - LazyTensor(k[None])) ** 2).sum(-1)
    weight = (-squares / 2).exp()
    both = torch.cat([x.v.float(), torch.ones(len(x.v), 1)], 1)
    sums = (weight * LazyTensor(both[None])).sum(1)
    return sums[:, :1] / sums[:, 1:]


def work(sizes: Sizes) -> Work:
    """Count two complex products for each grid cell that a point touches, in both transforms."""
    return Work(flops=8.0 * 2 * sizes.n * 14**sizes.d)


def against_transforms(n: int, dim: int) -> Line:
    sizes = Sizes(n=n, heads=1, d=dim, d_v=1)
    return Line(
        name=f"regression_fast/transforms/d{dim}",
        family=BARE,
        sizes=sizes,
        make=with_angles,
        ours=ours,
        peers={"two transforms": bare},
        work=work(sizes),
        goals=("time_ratio <= 3", "memory_mb <= 500") if dim < 3 else ("time_ratio <= 3",),
        rounds=9 if dim < 3 else 3,
        dtype="float64",
        memory=True,
        peer_sizes=sizes,  # the bare transforms give sums, not averages
    )


def against_keops(n: int, dim: int) -> Line:
    sizes = Sizes(n=n, heads=1, d=dim, d_v=1)
    return Line(
        name=f"regression_fast/keops/d{dim}",
        family=KEOPS,
        sizes=sizes,
        make=make,
        ours=ours,
        peers={"KeOps": by_keops},
        work=work(sizes),
        goals=("speedup >= 1",),  # with a thousandth of the queries: 1,000 x for as many
        rounds=5,
        dtype="float64",
        peer_sizes=sizes,  # the peer computes fewer queries
    )


def lines(quick: bool) -> list[Line]:
    n = 20_000 if quick else 1_000_000
    transforms = [against_transforms(n, dim) for dim in (1, 2, 3)]
    keops = [against_keops(n, dim) for dim in (1, 2)] if importlib.util.find_spec("pykeops") else []
    return transforms + keops
