"""One pass from sums to residuals, pulls and the rows that are not certain, whatever the blocks."""

import os
import subprocess
import sys

import pytest
import torch

from regard.regression.bandwidth.leave_one_out import fourier
from regard.regression.bandwidth.leave_one_out.fourier import Certain, Rows, sweep

N = 211


def problem(outputs, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.rand(*shape, generator=generator, dtype=torch.float64)

    sums = draw((outputs + 2) // 2, N, 2) * 3 - 1
    sums[0, :, 0] = 1 + 10 ** (-4 * draw(N))  # weights of the others, some of them faint
    deviation = 1 + draw(outputs)
    rows = Rows(draw(N, outputs), torch.ones(N, dtype=torch.float64), draw(N) / N, deviation, (-deviation).tolist())
    return sums, rows, Certain([1e-6] * len(sums), 1e-3)


def by_rows(sums, rows, certain):
    """Row by row, in plain numbers: residuals, pulls, poor rows."""
    residuals, pull, poor = torch.zeros(N, rows.values.shape[1]).double(), torch.zeros_like(sums), []
    for i in range(N):
        weight = sums[0, i, 0].item() - rows.left_out[i].item()
        good = True
        for column, deviation in enumerate(rows.deviation.tolist()):
            row, part = divmod(column + 1, 2)
            value = rows.values[i, column].item()
            fit = (sums[row, i, part].item() - rows.left_out[i].item() * value) / weight
            residuals[i, column] = deviation * (value - fit)
            pulled = rows.pulls[column] * rows.share[i].item() * (value - fit) / weight
            pull[row, i, part] = pulled
            pull[0, i, 0] -= pulled * fit
            bound = (certain.error[row] + certain.error[0] * abs(fit)) / (weight - certain.error[0])
            good = good and weight > certain.error[0] and bound <= certain.tol
        if not good:
            poor.append(i)
            pull[:, i] = 0
    return residuals, pull, poor


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
    monkeypatch.setattr(fourier, "BLOCK", block)
    sums, rows, certain = problem(outputs)
    found = sweep(sums, rows, certain, gradient=True)
    residuals, pull, poor = by_rows(sums, rows, certain)
    assert 0 < len(poor) < N
    assert found.poor.tolist() == poor
    assert torch.equal(found.least, sums[0, poor, 0] - rows.left_out[poor] - certain.error[0])
    torch.testing.assert_close(found.residuals, residuals)
    torch.testing.assert_close(torch.view_as_real(found.pull), pull)


def test_what_is_nan_is_not_certain():
    sums, rows, certain = problem(1)
    certain = Certain(certain.error, 1e9)
    sums[0, 3] = sums[0, 100, 1] = torch.nan
    found = sweep(sums, rows, certain, gradient=True)
    assert found.poor.tolist() == [3, 100]
    assert torch.isfinite(torch.view_as_real(found.pull)).all()


def test_the_weight_of_a_row_left_out_whole_is_poor():
    sums, rows, certain = problem(1)
    sums[0, 5, 0] = rows.left_out[5]
    assert 5 in sweep(sums, rows, certain, gradient=False).poor.tolist()


@pytest.mark.parametrize("asked", [None, "17"])
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
