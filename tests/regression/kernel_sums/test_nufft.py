"""Fourier sums at points anywhere against the sums themselves."""

import math
from itertools import combinations

import pytest
import torch

from regard.regression.kernel_sums import nufft

SIZES = [(41,), (200,), (23, 31), (20, 13), (7, 11, 12)]
LETTERS = "abc"
EDGE = 6  # a single mode, in units of eps


def frequencies(count):
    """-(count // 2) .. (count - 1) // 2."""
    return torch.arange(-(count // 2), (count - 1) // 2 + 1, dtype=torch.float64)


def random(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def complex_random(*shape, seed=0):
    return torch.complex(random(*shape, seed=seed), random(*shape, seed=seed + 1))


def points_in(dim, n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(dim, n, dtype=torch.float64, generator=generator) - 0.5) * 2 * math.pi


def waves(points, modes):
    """exp(i k.x) for every mode and point."""
    ones = [torch.exp(1j * torch.outer(frequencies(c), x)) for c, x in zip(modes, points, strict=True)]
    names = LETTERS[: len(modes)]
    return torch.einsum(",".join(f"{letter}p" for letter in names) + f"->{names}p", *ones)


@pytest.mark.parametrize("modes", SIZES)
@pytest.mark.parametrize("eps", [1e-6, 1e-12])
def test_both_transforms_are_the_direct_sums(modes, eps):
    points = points_in(len(modes), 97)
    strengths, coefficients = complex_random(3, 97), complex_random(3, *modes, seed=5)
    wave = waves(points, modes)
    there = nufft.type1(points, strengths, modes, eps)
    back = nufft.type2(points, coefficients, eps)
    exact_there = torch.einsum("...p,rp->r...", wave.conj(), strengths)
    exact_back = torch.einsum("kp,rk->rp", wave.flatten(0, -2), coefficients.flatten(1))
    promised = EDGE * eps
    assert ((there - exact_there).abs().flatten(1).amax(1) <= promised * strengths.abs().sum(1)).all()
    assert ((back - exact_back).abs().amax(1) <= promised * coefficients.abs().flatten(1).sum(1)).all()


@pytest.mark.parametrize("modes", SIZES)
@pytest.mark.parametrize("eps", [1e-6, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13])
def test_no_single_mode_at_any_point_breaks_the_error_bound(modes, eps):
    """The transform is linear: its worst inputs of a given sum of absolute values are single modes or points."""
    points = points_in(len(modes), 2003, seed=1)
    everything = math.prod(modes)
    chosen = torch.linspace(0, everything - 1, 11).long().unique()
    unit = torch.zeros(len(chosen), everything, dtype=torch.complex128)
    unit[torch.arange(len(chosen)), chosen] = 1
    got = nufft.plan(2, points, modes, eps, rows=len(chosen))(unit.view(-1, *modes))
    assert (got - waves(points, modes).flatten(0, -2)[chosen]).abs().max() <= EDGE * eps


def gaussian_weights(modes, eps):
    """Fourier coefficients of a Gaussian, down to eps at the last mode, of sum 1."""
    weights = torch.ones((), dtype=torch.float64)
    for count in modes:
        k = frequencies(count)
        one = torch.exp(math.log(eps) * (k / k.max()).square())
        weights = weights.unsqueeze(-1) * (one / one.sum())
    return weights


def over_a_cell(modes, n):
    """Places all over a cell of the grid, which is twice as fine as the modes: by a whole cell only phases change."""
    generator = torch.Generator().manual_seed(2)
    share = torch.stack([torch.randperm(n, generator=generator) for _ in modes]).double() / (n - 1)
    side = torch.tensor([math.pi / count for count in modes], dtype=torch.float64).unsqueeze(1)
    return points_in(len(modes), 1, seed=2) + share * side


@pytest.mark.parametrize("modes", [(41,), (201,), (4001,), (23, 31), (7, 11, 13)])
@pytest.mark.parametrize("eps", [1e-5, 1e-6, 1e-8, 1e-10, 1e-12, 1e-13])
def test_no_single_point_breaks_the_error_bound(modes, eps):
    """The worst strengths of a given sum of absolute values are single points."""
    points, one = over_a_cell(modes, 61), torch.ones(1, 1, dtype=torch.complex128)
    got = torch.cat([nufft.plan(1, point.unsqueeze(-1), modes, eps)(one) for point in points.T])
    error = (got - waves(points, modes).conj().movedim(-1, 0)).abs() * gaussian_weights(modes, eps)
    # Where a point lies is rounded too, which has a bound of its own.
    place = 2 * nufft.UNIT_ROUNDOFF * sum(modes)
    assert error.flatten(1).sum(1).max() <= 0.7 * len(modes) * eps + 20 * nufft.UNIT_ROUNDOFF + place
    assert error.flatten(1).sum(1).max() <= nufft.error_bound(eps, 1, len(modes)) + place
    steep = []
    for axis, count in enumerate(modes):  # a derivative gives more weight to the higher modes
        kappa = (frequencies(count) / (count // 2)).abs() * math.sqrt(2 * math.log(1 / eps))
        steep.append(kappa.view(-1, *[1] * (len(modes) - 1 - axis)))
    second = [(1 - one.square()).abs() for one in steep] + [one * two for one, two in combinations(steep, 2)]
    for more in steep + second:
        assert (error * more).flatten(1).sum(1).max() <= nufft.error_bound(eps, 1, len(modes)) + 8 * place


def test_many_copies_of_one_point_round_within_the_error_bound():
    """Rounding of a long sum of equal numbers goes one way; runs of limited length keep it small."""
    n, modes = 300_007, (31,)
    points = points_in(1, 1).expand(1, n).contiguous()
    got = nufft.type1(points, torch.full((1, n), 0.1 + 0.3j, dtype=torch.complex128), modes, 1e-13)
    exact = n * (0.1 + 0.3j) * waves(points[:, :1], modes)[:, 0].conj()
    error = ((got[0] - exact).abs() * gaussian_weights(modes, 1e-13)).sum()
    assert error <= nufft.error_bound(1e-13, n, 1) * n * abs(0.1 + 0.3j)


def test_points_may_lie_in_any_turn():
    points, coefficients = points_in(2, 13), complex_random(1, 9, 14)
    turned = points + 2 * math.pi * torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    torch.testing.assert_close(nufft.type2(points, coefficients, 1e-12), nufft.type2(turned, coefficients, 1e-12))


def test_a_prepared_transform_serves_many_inputs():
    points, modes = points_in(2, 17), (5, 8)
    run = nufft.plan(2, points, modes, 1e-12, rows=2)
    for seed in (1, 2):
        coefficients = complex_random(2, *modes, seed=seed)
        assert torch.equal(run(coefficients), nufft.type2(points, coefficients, 1e-12))


@pytest.mark.parametrize("modes", [(5,), (5, 8), (3, 4, 5)])
def test_a_transform_without_points_is_zero_or_empty(modes):
    points = torch.empty(len(modes), 0, dtype=torch.float64)
    empty = torch.empty(2, 0, dtype=torch.complex128)
    assert torch.equal(nufft.type1(points, empty, modes, 1e-6), torch.zeros(2, *modes, dtype=torch.complex128))
    assert nufft.type2(points, complex_random(2, *modes), 1e-6).shape == (2, 0)
