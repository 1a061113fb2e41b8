"""The textbook's kernel average, pair by pair with more digits than float64 has, and data that is hard on others."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Generator, Tensor

from regard.regression.kernel_sums.sample import Sample, scale_of

EPS = 2.0**-52
INFINITE = ("gaussian", "laplace")
KERNELS = (*INFINITE, "boxcar", "epanechnikov", "biweight", "triweight", "triangular", "tricube", "cosine")
KINDS = ("normal", "clusters", "duplicates", "offset", "scale", "constant", "tails")


class Truth(NamedTuple):
    mean: np.ndarray  # (q, columns)
    lse: np.ndarray  # (q,)
    rounding: np.ndarray  # (q,) what float64 may lose, in standard deviations and in lse


def kernel(name: str, square: np.ndarray) -> np.ndarray:
    """log K of u^2."""
    root = np.sqrt(square)
    inside = np.clip(square, 0, 1)
    with np.errstate(divide="ignore"):
        return {
            "gaussian": lambda: -square / 2,
            "laplace": lambda: -root,
            "boxcar": lambda: np.where(square > 1, -np.inf, 0),
            "epanechnikov": lambda: np.log(1 - inside),
            "biweight": lambda: 2 * np.log(1 - inside),
            "triweight": lambda: 3 * np.log(1 - inside),
            "triangular": lambda: np.log(1 - np.sqrt(inside)),
            "tricube": lambda: 3 * np.log(1 - np.sqrt(inside) ** 3),
            "cosine": lambda: np.where(square < 1, np.log(np.cos(np.pi / 2 * np.sqrt(inside))), -np.inf),
        }[name]()


def truth(sample: Sample, query: Tensor, rows: int = 256) -> Truth:
    parts = [_truth(sample, query[low : low + rows]) for low in range(0, len(query), rows)]
    return Truth(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _truth(sample: Sample, query: Tensor) -> Truth:
    x, values, ask = (t.numpy().astype(np.longdouble) for t in (sample.x, sample.values, query))
    told = np.isfinite(sample.bandwidth.numpy())
    h = sample.bandwidth.numpy()[told]
    square = (((ask[:, None, told] - x[None][:, :, told]) / h) ** 2).sum(-1)
    log = kernel(sample.kernel, square)
    weighted = log if sample.log_weight is None else log + sample.log_weight.numpy()
    top = weighted.max(1, keepdims=True)
    base = np.where(np.isfinite(top), top, 0)
    weights = np.exp(weighted - base)
    total = weights.sum(1, keepdims=True)
    mean = (weights @ values) / np.where(total > 0, total, 1)
    with np.errstate(divide="ignore"):
        lse = (base + np.log(total))[:, 0]
    return Truth(mean, lse, _rounding(sample, query, square.min(1), log.max(1)))


def _rounding(sample: Sample, query: Tensor, nearest: np.ndarray, best: np.ndarray) -> np.ndarray:
    """Numbers in bandwidths are rounded once: that moves points by 2^-52 of the width of the data, and scores with it.

    A kernel with an edge is 0 there: what is left of its digits is what K is of the nearest point.
    """
    told = torch.isfinite(sample.bandwidth)
    both = (torch.cat([sample.x, query])[:, told] - sample.x[:1, told]) / sample.bandwidth[told]
    width = float(both.abs().max()) if both.numel() else 0.0
    slope = np.sqrt(nearest) + 10 if sample.kernel == "gaussian" else 10.0
    lost = 16 * EPS * (1 + width * slope + nearest * (sample.kernel in INFINITE))
    faint = 1.0 if sample.kernel in INFINITE else np.exp(np.maximum(best, -600.0))
    return np.asarray(lost / faint, dtype=float)


def assert_within(found, sample: Sample, query: Tensor, expected: Truth | None = None) -> None:
    """Every mean and total is as near to the truth as its own bound says, rounding aside."""
    expected = truth(sample, query) if expected is None else expected
    seen = np.isfinite(expected.lse)
    assert (np.isfinite(found.lse.numpy()) == seen).all()
    assert (found.mean.numpy()[~seen] == 0).all()
    allowed = (found.error.numpy() + expected.rounding)[seen]
    off = np.abs(found.mean.numpy() - expected.mean)[seen] / scale_of(sample.values).numpy()
    offset = np.abs(sample.values.numpy()).max(initial=0) / scale_of(sample.values).numpy().min(initial=1)
    assert (off.max(1, initial=0) <= allowed * 1.001 + 8 * EPS * offset).all()
    ratio = np.abs(found.lse.numpy()[seen] - expected.lse[seen])
    assert (ratio <= allowed * 1.001 + 4 * EPS * np.abs(expected.lse[seen])).all()


def normal(generator: Generator, *shape: int) -> Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def points(kind: str, count: int, dim: int, generator: Generator) -> Tensor:
    x = normal(generator, count, dim)
    if kind == "clusters":
        return x * 0.01 + 5 * normal(generator, 3, dim)[torch.randint(3, (count,), generator=generator)]
    if kind == "duplicates":
        return x.round()
    if kind == "offset":
        return x + 1e6
    if kind == "scale":
        return x * 1e6
    if kind == "constant":
        return torch.cat([torch.full((count, 1), 3.0, dtype=torch.float64), x[:, 1:]], 1)
    return torch.tan(1.5 * torch.tanh(x)) ** 3 if kind == "tails" else x


def sample_of(
    kind: str, count: int, dim: int, name: str, generator: Generator, *, weighted: bool = False, width: float = 0.7
) -> Sample:
    """Data of a kind; bandwidths differ between features, and columns are of different sizes and shapes."""
    x = points(kind, count, dim, generator)
    size = 1e6 if kind == "scale" else 1.0
    bandwidth = width * size * (1 + 0.1 * torch.arange(dim, dtype=torch.float64))
    values = torch.stack(
        [torch.sin(x[:, 0] / size) + 0.1 * normal(generator, count), 1e3 + normal(generator, count) ** 3], 1
    )
    return Sample(x, values, bandwidth, name, normal(generator, count) if weighted else None)


def queries_of(sample: Sample, count: int, generator: Generator) -> Tensor:
    """Near points, at points, and far from all of them."""
    chosen = sample.x[torch.randint(len(sample.x), (count,), generator=generator)]
    near = chosen + normal(generator, count, sample.x.shape[1]) * sample.bandwidth
    near[::3] = chosen[::3]
    near[1::11] += 40 * sample.bandwidth
    near[2::31] += 1e4 * sample.bandwidth
    return near


def mixed(n=59, seed=0):
    """Two features, three and two categories, of which some matter and some do not."""
    generator = np.random.default_rng(seed)
    a, b = generator.normal(size=n), generator.uniform(-2, 2, size=n)
    c, d = generator.integers(0, 2 + seed % 4, n), generator.integers(0, 2 + seed % 3, n)
    y = [
        np.sin(2 * a) + 2.0 * (c == 1) - (d == 0),
        np.where(c == 0, np.sin(2 * a), np.cos(3 * b)),
        0.3 * b + (c == 1) * a,
        np.sin(3 * b) * (1 + (d == 1)),
    ][seed % 4]
    return np.column_stack([a, b, c, d]), y + [0.05, 0.3, 1.0][seed % 3] * generator.normal(size=n)
