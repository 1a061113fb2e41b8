"""Fourier sums at points that lie anywhere: by finufft where it is installed, else by a slower transform of our own.

    type1   F_k = sum_j c_j exp(-i k.x_j)        from points to modes
    type2   c_j = sum_k f_k exp(+i k.x_j)        from modes to points

for k_a = -(N_a // 2) .. (N_a - 1) // 2 on each of 1 to 3 axes. How far a result may be off: `promise`; why:
docs/en/regression-bound.md.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from regard.engine import threads
from regard.regression.kernel_sums import nufft_torch

Modes = tuple[int, ...]
Points = Float[Tensor, "dim n"]  # a row for each axis, in radians
Rows = Complex[Tensor, "rows n"]
Coefficients = Complex[Tensor, "rows *modes"]

ROUNDING = 2.0**-53
# A sum in a cell of the grid adds at most this many points before it is added to the rest: rounding then grows with
# this number and not with n.
RUN = 2_000
# What one point of strength 1 adds to the error of all modes together, each weighted as in `promise`, in units of eps
# and for each axis. Measured all over a cell of the grid in tests/regression/kernel_sums/test_nufft.py: below 0.7.
# By linearity no other strengths can do worse for the same sum of |c|.
FACTOR = 1.0
_loading = Lock()


@cache
def has_finufft() -> bool:
    return importlib.util.find_spec("finufft") is not None


def promise(eps: float, points: int, dim: int) -> float:
    """The error of a transform, as a share of the sum of |inputs|: its own, and the rounding of its sums.

    It is the error of sum_k g_k F_k e^{ikx} that either transform causes, where the weights g_k are those of a
    Gaussian: positive, of sum 1, and down to `eps` at the last mode. (A single mode at the edge may be off by 6 eps.)
    """
    return dim * FACTOR * eps + ROUNDING * (min(points, RUN) + points / RUN + 100 * 3**dim)


def type1(points: Points, strengths: Rows, modes: Modes, eps: float) -> Coefficients:
    """From points to modes, for each row of strengths."""
    return planned(1, points, modes, eps, rows=len(strengths))(strengths)


def type2(points: Points, coefficients: Coefficients, eps: float) -> Rows:
    """From modes to points, for each row of coefficients."""
    modes = tuple(coefficients.shape[1:])
    return planned(2, points, modes, eps, rows=len(coefficients))(coefficients)


def planned(kind: int, points: Points, modes: Modes, eps: float, *, rows: int = 1) -> Callable[[Tensor], Tensor]:
    """The transform of `kind` 1 or 2 for these points, prepared: call it as often as there are inputs of `rows` rows.

    Preparing sorts the points, which is a good part of the work; leave-one-out goes through many bandwidths with one.
    """
    if points.shape[1] == 0:
        shape = (rows, *modes) if kind == 1 else (rows, 0)
        return lambda inputs: inputs.new_zeros(shape)
    make = _by_finufft if has_finufft() else nufft_torch.planned
    return make(kind, points, modes, eps, rows)


@cache
def _finufft() -> Any:
    """The package, its threads told to sleep soon after their work.

    Those of its OpenMP would else wait for more, awake, for some milliseconds, and hold up torch's, which have the next
    step to do. It reads what it is told when it is loaded, and only then; where others have loaded it, it is slower.
    """
    with _loading:
        asked = {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys()
        if not asked:
            os.environ["GOMP_SPINCOUNT"] = "1000"
        try:
            return importlib.import_module("finufft")
        finally:
            if not asked:
                del os.environ["GOMP_SPINCOUNT"]


def _by_finufft(kind: int, points: Points, modes: Modes, eps: float, rows: int) -> Callable[[Tensor], Tensor]:
    plan: Any = _finufft().Plan(
        kind,
        modes,
        n_trans=rows,
        eps=eps,
        isign=-1 if kind == 1 else 1,
        dtype="complex128",
        nthreads=threads.n_threads() if points.shape[1] >= threads.WORTH_THREADS else 1,
        upsampfac=2.0,
        spread_sort=1 if kind == 1 else 2,  # unsorted points are not cut into runs
        spread_max_sp_size=RUN,
    )
    plan.setpts(*(_numpy(axis) for axis in points))
    shape = (rows, *modes) if kind == 1 else (rows, points.shape[1])

    def run(inputs: Tensor) -> Tensor:
        return torch.from_numpy(plan.execute(_numpy(inputs))).reshape(shape).to(inputs.device)

    return run


def _numpy(x: Tensor) -> Any:
    return x.detach().cpu().contiguous().numpy()
