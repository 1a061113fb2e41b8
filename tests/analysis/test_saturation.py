"""Why scores are divided by sqrt(d_k): the measurements keep the promises of the theory."""

import math

import pytest
import torch

from regard import analysis
from regard.errors import ChoiceError


@pytest.fixture(scope="module")
def table():
    return analysis.saturation([1, 4, 16, 64, 256], trials=32)


def test_variance_of_the_dot_product_is_d_k(table):
    for row in table.unscaled:
        assert abs(row.variance - row.d_k) < 4 * row.error
        assert row.error < 0.1 * row.d_k


def test_variance_of_the_scaled_dot_product_is_one(table):
    for row in table.scaled:
        assert abs(row.variance - 1) < 4 * row.error


def test_mean_of_the_dot_product_is_zero(table):
    for row in table:
        # each of the 64 queries and keys of 32 trials is used 64 times, so only their number counts
        assert abs(row.mean) < 4 * math.sqrt(row.variance / (32 * 64))


def test_unscaled_weights_grow_sharper_with_d_k(table):
    entropy, sharpness = table.unscaled.column("entropy"), table.unscaled.column("saturation")
    assert list(entropy) == sorted(entropy, reverse=True)
    assert list(sharpness) == sorted(sharpness)
    assert entropy[-1] < 0.1 * math.log(64)
    assert sharpness[-1] > 0.8


def test_scaled_weights_stay_as_they_are(table):
    entropy = table.scaled.column("entropy")
    assert max(entropy) - min(entropy) < 0.1
    assert all(0.85 * math.log(64) < value < math.log(64) for value in entropy)


def test_without_scaling_the_gradient_vanishes(table):
    raw, scaled = table.unscaled.rows, table.scaled.rows
    assert raw[-1].jacobian < 0.5 * max(row.jacobian for row in raw)
    assert raw[-1].jacobian < scaled[-1].jacobian
    assert raw[-1].gradient < scaled[-1].gradient


def test_d_k_of_one_needs_no_scaling(table):
    first, second = table.rows[:2]
    assert first[2:] == pytest.approx(second[2:])


@pytest.mark.parametrize("m", [1, 2, 7])
def test_jacobian_norm_is_that_of_the_jacobian(m):
    logits = torch.randn(m, dtype=torch.float64)
    p = logits.softmax(0)
    jacobian = torch.autograd.functional.jacobian(lambda x: x.softmax(0), logits)
    norm = analysis.jacobian_norm(p.square().sum(), p.pow(3).sum())
    torch.testing.assert_close(norm, torch.as_tensor(jacobian).norm(), atol=1e-8, rtol=1e-8)


def test_jacobian_norm_is_what_autograd_sees():
    """A random direction through the Jacobian has, on average, its Frobenius norm squared."""
    (row,) = analysis.saturation([4], keys=64, queries=50, trials=50).scaled
    assert row.gradient == pytest.approx(row.jacobian, rel=0.1)
    assert row.gradient < row.jacobian  # the mean of a norm is below the root of the mean of its square


def test_same_seed_same_table():
    assert analysis.saturation([3], trials=2) == analysis.saturation([3], trials=2)
    assert analysis.saturation([3], trials=2) != analysis.saturation([3], trials=2, seed=1)


def test_global_random_state_is_left_alone():
    state = torch.get_rng_state()
    analysis.saturation([3], trials=2)
    assert torch.equal(torch.get_rng_state(), state)


def test_table_is_read_in_many_ways(table):
    assert len(table) == 10
    assert [row.d_k for row in table.scaled] == [1, 4, 16, 64, 256]
    assert table.to_dict()["variance"] == list(table.column("variance"))
    assert list(table.to_dict()) == list(analysis.SaturationRow._fields)
    lines = str(table).splitlines()
    assert len(lines) == 11
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split() == ["d_k", "score", *analysis.SaturationRow._fields[2:]]


def test_unknown_column_is_refused(table):
    with pytest.raises(ChoiceError, match="no column 'size', its columns are d_k, scaled, mean"):
        table.column("size")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"d_k": []}, r"d_k must hold lengths of at least 1, \[\] came"),
        ({"d_k": [4, 0]}, r"d_k must hold lengths of at least 1, \[4, 0\] came"),
        ({"trials": 1}, "trials must be at least 2 to measure anything, 1 came"),
        ({"keys": 0}, "keys must be at least 1"),
        ({"queries": 0}, "queries must be at least 1"),
    ],
)
def test_nothing_to_measure_is_refused(options, message):
    with pytest.raises(ChoiceError, match=message):
        analysis.saturation(**{"d_k": [4], **options})
