"""Fourier sums at points that lie anywhere (non-uniform FFT), by finufft.

    type1   F_k = sum_j c_j exp(-i k.x_j)        from points to modes
    type2   c_j = sum_k f_k exp(+i k.x_j)        from modes to points

for k_a = -(N_a // 2) .. (N_a - 1) // 2 on each of 1 to 3 axes. `error_bound` says how far a result may be off;
docs/en/regression-bound.md argues why.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from regard.engine import threads
from regard.regression.kernel_sums.sample import UNIT_ROUNDOFF

Modes = tuple[int, ...]
Radians = Float[Tensor, "dim n"]  # points, a row for each axis
Strengths = Complex[Tensor, "rows n"]
Coefficients = Complex[Tensor, "rows *modes"]

# A cell of the grid adds at most this many points before its sum is added to the rest: the rounding error then grows
# with this number and not with n.
RUN_LENGTH = 2_000
# What one point of strength 1 adds to the error of all modes together, each weighted as in `error_bound`, in units of
# eps and for each axis. Measured all over a cell of the grid in tests/regression/kernel_sums/test_nufft.py: below 0.7.
# By linearity no other strengths can do worse for the same sum of |c|.
SINGLE_POINT_ERROR = 1.0
_loading = Lock()


def error_bound(eps: float, points: int, dim: int) -> float:
    """Bound on the error of a transform, as a share of the sum of |inputs|: its own, and the rounding of its sums.

    It is the error of sum_k g_k F_k e^{ikx} that either transform causes, where the weights g_k are those of a
    Gaussian: positive, of sum 1, and down to `eps` at the last mode. (A single mode at the edge may be off by 6 eps.)
    """
    rounding = min(points, RUN_LENGTH) + points / RUN_LENGTH + 100 * 3**dim
    return dim * SINGLE_POINT_ERROR * eps + UNIT_ROUNDOFF * rounding


def type1(points: Radians, strengths: Strengths, modes: Modes, eps: float) -> Coefficients:
    """F_k = sum_j c_j exp(-i k.x_j) for each row of strengths."""
    return plan(1, points, modes, eps, rows=len(strengths))(strengths)


def type2(points: Radians, coefficients: Coefficients, eps: float) -> Strengths:
    """c_j = sum_k f_k exp(i k.x_j) for each row of coefficients."""
    modes = tuple(coefficients.shape[1:])
    return plan(2, points, modes, eps, rows=len(coefficients))(coefficients)


def plan(kind: int, points: Radians, modes: Modes, eps: float, *, rows: int = 1) -> Callable[[Tensor], Tensor]:
    """The transform of type `kind` for these points: call it for each input of `rows` rows.

    Planning sorts the points, which is a good part of the work; leave-one-out uses one plan for many bandwidths.
    """
    shape = (rows, *modes) if kind == 1 else (rows, points.shape[1])
    if points.shape[1] == 0:
        return lambda inputs: inputs.new_zeros(shape)
    finufft_plan: Any = _finufft().Plan(
        kind,
        modes,
        n_trans=rows,
        eps=eps,
        isign=-1 if kind == 1 else 1,
        dtype="complex128",
        nthreads=threads.n_threads() if points.shape[1] >= threads.WORTH_THREADS else 1,
        upsampfac=2.0,
        spread_sort=1 if kind == 1 else 2,  # unsorted points are not cut into runs
        spread_max_sp_size=RUN_LENGTH,
    )
    finufft_plan.setpts(*(_numpy(axis) for axis in points))

    def run(inputs: Tensor) -> Tensor:
        return torch.from_numpy(finufft_plan.execute(_numpy(inputs))).reshape(shape).to(inputs.device)

    return run


@cache
def _finufft() -> Any:
    """The package finufft, loaded so that its threads sleep soon after their work.

    Its OpenMP threads would else spin for some milliseconds, and hold up torch's, which have the next step to do.
    OpenMP reads the setting when it is loaded, and only then; where others have loaded it, it is slower.
    """
    with _loading:
        chosen = {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys()
        if not chosen:
            os.environ["GOMP_SPINCOUNT"] = "1000"
        try:
            return importlib.import_module("finufft")
        finally:
            if not chosen:
                del os.environ["GOMP_SPINCOUNT"]


def _numpy(x: Tensor) -> Any:
    return x.detach().cpu().contiguous().numpy()
