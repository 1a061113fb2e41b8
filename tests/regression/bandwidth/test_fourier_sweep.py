"""Sweep over Fourier sums: residuals, derivatives and uncertain rows are those of a loop over rows."""

import os
import subprocess
import sys

import pytest
import torch

from regard.regression.bandwidth.leave_one_out import fourier
from regard.regression.bandwidth.leave_one_out.fourier import SweepRows, sweep

N = 211
TOL = 1e-3


def problem(outputs, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.rand(*shape, generator=generator, dtype=torch.float64)

    sums = draw((outputs + 2) // 2, N, 2) * 3 - 1
    sums[0, :, 0] = 1 + 10 ** (-4 * draw(N))  # weights of the others, some of them faint
    by_residual = (-1 - draw(outputs)).tolist()
    rows = SweepRows(draw(N, outputs), torch.ones(N, dtype=torch.float64), draw(N) / N, by_residual)
    return sums, rows, [1e-6] * len(sums)


def by_rows(sums, rows, off):
    """Residuals, derivatives by each sum and uncertain rows, by a loop over rows in plain numbers."""
    residuals, by_sum, uncertain = torch.zeros(N, rows.values.shape[1]).double(), torch.zeros_like(sums), []
    for i in range(N):
        weight = sums[0, i, 0].item() - rows.left_out[i].item()
        good = True
        for column, by_residual in enumerate(rows.by_residual):
            row, part = divmod(column + 1, 2)
            value = rows.values[i, column].item()
            fit = (sums[row, i, part].item() - rows.left_out[i].item() * value) / weight
            residuals[i, column] = value - fit
            by_output = by_residual * rows.share[i].item() * (value - fit) / weight
            by_sum[row, i, part] = by_output
            by_sum[0, i, 0] -= by_output * fit
            bound = (off[row] + off[0] * abs(fit)) / (weight - off[0])
            good = good and weight > off[0] and bound <= TOL
        if not good:
            uncertain.append(i)
            by_sum[:, i] = 0
    return residuals, by_sum, uncertain


@pytest.fixture(params=[1, 2])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("outputs", [1, 2, 3])
@pytest.mark.parametrize("block", [7, 64, 1000])
def test_any_block_is_row_by_row(monkeypatch, outputs, block):
    monkeypatch.setattr(fourier, "ROW_BLOCK", block)
    sums, rows, off = problem(outputs)
    swept = sweep(sums, rows, off, TOL, gradient=True)
    residuals, by_sum, uncertain = by_rows(sums, rows, off)
    assert 0 < len(uncertain) < N
    assert swept.uncertain.tolist() == uncertain
    assert torch.equal(swept.least_weight, sums[0, uncertain, 0] - rows.left_out[uncertain] - off[0])
    torch.testing.assert_close(swept.residuals, residuals)
    torch.testing.assert_close(torch.view_as_real(swept.by_sum), by_sum)


def test_rows_with_nan_are_uncertain():
    sums, rows, off = problem(1)
    sums[0, 3] = sums[0, 100, 1] = torch.nan
    swept = sweep(sums, rows, off, 1e9, gradient=True)
    assert swept.uncertain.tolist() == [3, 100]
    assert torch.isfinite(torch.view_as_real(swept.by_sum)).all()


def test_the_weight_of_a_row_left_out_whole_is_uncertain():
    sums, rows, off = problem(1)
    sums[0, 5, 0] = rows.left_out[5]
    assert 5 in sweep(sums, rows, off, TOL, gradient=False).uncertain.tolist()


@pytest.mark.parametrize("asked", [None, pytest.param("17", marks=pytest.mark.long)])
def test_the_environment_is_as_it_was_when_finufft_has_been_loaded(asked):
    code = (
        "import os; from regard.regression.kernel_sums import nufft; nufft._finufft();"
        "print(os.environ.get('GOMP_SPINCOUNT'))"
    )
    environment = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    if asked is not None:
        environment["GOMP_SPINCOUNT"] = asked
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == str(asked)
