"""Bandwidths by leave-one-out: the whole search against statsmodels', one evaluation against bare transforms.

statsmodels takes minutes at n = 10^4, and is run once there. With five features it takes a quarter of an hour, so it is
run on a tenth of the points and the goal is divided by ten, in its favour: its cost grows at least as n.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from benchmarks.goals import words
from benchmarks.harness import Family, Line, Sizes, Tensors, Work
from regard.regression import NadarayaWatson
from regard.regression.bandwidth.leave_one_out.fourier import Fourier
from regard.regression.bandwidth.leave_one_out.problem import Problem, Rows
from regard.regression.bandwidth.rules import scott
from regard.regression.kernel_sums import nufft
from regard.regression.kernel_sums.sample import Sample

PEER = words("statsmodels cv_ls", "statsmodels cv_ls")
WHOLE = Family(words("bandwidth by leave-one-out", "留一法选带宽"), PEER)
MANY = Family(words("bandwidth by leave-one-out, n = 10^4", "留一法选带宽，n = 10^4"), PEER)
OF_5 = Family(
    words("bandwidth by leave-one-out, n = 10^3, d = 5", "留一法选带宽，n = 10^3，d = 5"),
    words(
        "statsmodels cv_ls on 1/10 of the points: at least x 10 at the same size",
        "statsmodels cv_ls，只用十分之一的点：同规模至少再乘 10",
    ),
)
ONE = Family(
    words("one leave-one-out evaluation with gradient, n = 10^6", "一次留一法求值（含梯度），n = 10^6"),
    words("the 1 + d bare transforms", "1 + d 次裸变换"),
)


def make(sizes: Sizes) -> Tensors:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(sizes.n, sizes.d, generator=generator, dtype=torch.float64)
    noise = torch.randn(sizes.n, 1, generator=generator, dtype=torch.float64)
    y = torch.sin(3 * x[:, :1]) + (x[:, 1:2].square() if sizes.d > 1 else 0) + 0.3 * noise
    return Tensors(x, x, y, y)


def ours(x: Tensors) -> Tensor:
    return torch.tensor(NadarayaWatson().fit(x.q.numpy(), x.v[:, 0].numpy()).cv_)


def statsmodels(x: Tensors) -> Tensor:
    from statsmodels.nonparametric.kernel_regression import KernelReg

    peer: Any = KernelReg(x.v[:, 0].numpy(), x.q.numpy(), "c" * x.q.shape[1], reg_type="lc", bw="cv_ls")
    return torch.tensor(peer.cv_loo(peer.bw, peer.est["lc"]).item())


def make_prepared(sizes: Sizes) -> Tensors:
    """Return inputs for which both sides have sorted points and made plans."""
    data = make(sizes)
    fast = Fourier(Problem.of(Rows(Sample(data.q, data.v, torch.ones_like(data.q[0])))))
    h = scott(data.q) / 2
    fast(h)
    spectrum = fast.spectrum
    if spectrum is None:
        raise AssertionError("an evaluation leaves its spectrum")
    x = fast.problem.data.x
    turn = 2 * torch.pi / torch.tensor(spectrum.periods, dtype=torch.float64)
    points = ((x - (x.amax(0) + x.amin(0)) / 2) * turn).T.contiguous()
    rows = 1 + sizes.d
    bare = nufft.plan(2, points, spectrum.modes, fast.eps, rows=rows)
    modes = spectrum.coefficients.expand(rows, *spectrum.modes).contiguous()
    data.more |= {"fast": fast, "h": h, "bare": bare, "modes": modes}
    return data


def evaluation(x: Tensors) -> Tensor:
    return x.more["fast"](x.more["h"]).gradient


def transforms(x: Tensors) -> Tensor:
    return x.more["bare"](x.more["modes"]).real


def search(name: str, family: Family, sizes: Sizes, goal: str, *, peer: Sizes | None = None, rounds: int = 3) -> Line:
    return Line(
        name=f"regression_bandwidth/{name}",
        family=family,
        sizes=sizes,
        make=make,
        ours=ours,
        peers={"statsmodels": statsmodels},
        work=Work(flops=3.0 * sizes.d * sizes.n**2, exps=float(sizes.n) ** 2),
        goals=(goal,),
        rounds=rounds,
        dtype="float64",
        peer_sizes=peer,
        tolerance=1e-2,  # a lower value is better
    )


def one(n: int, d: int) -> Line:
    sizes = Sizes(n=n, heads=1, d=d, d_v=1)
    return Line(
        name=f"regression_bandwidth/evaluation-d{d}",
        family=ONE,
        sizes=sizes,
        make=make_prepared,
        ours=evaluation,
        peers={"type-2 transforms": transforms},
        work=Work(flops=2.0 * n * 13**d * (1 + d)),
        goals=("time_ratio <= 1.5",),
        rounds=25,  # rounds are short, and a third of them differ by 10 % from the median
        dtype="float64",
        peer_sizes=sizes,  # ours also computes residuals and their gradient
    )


def lines(quick: bool) -> list[Line]:
    def of(n: int, d: int) -> Sizes:
        return Sizes(n=n, heads=1, d=d, d_v=1)

    if quick:
        return [search("n1500-d1", WHOLE, of(120, 1), "speedup >= 1", rounds=1), one(5000, 1)]
    return [
        search("n1500-d1", WHOLE, of(1500, 1), "speedup >= 100"),
        search("n10000-d1", MANY, of(10_000, 1), "speedup >= 400"),
        search("n1000-d5", OF_5, of(1000, 5), "speedup >= 40", peer=of(100, 5)),
        one(10**6, 1),
        one(10**6, 2),
    ]
