"""Far from all points: against rational arithmetic, which loses no digits however large the squares are."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import torch

import regard as rg
from regard.regression.kernel_sums import engine, relative_weights
from regard.regression.kernel_sums.sample import Sample

DISTANCES = [1e3, 1e6, 1e9]
FARTHEST = [1e17, 1e100, 1e160, 1e300]
NOTHING = Fraction(-(10**6))  # the log of it, at most


def exact(sample, query):
    """The averages from differences of squared distances, as fractions of what the floats say."""
    x = [[Fraction(v) for v in row] for row in sample.x.tolist()]
    h = [Fraction(v) for v in sample.bandwidth.tolist()]
    weight = np.zeros(len(x)) if sample.log_weight is None else sample.log_weight.numpy()
    found = []
    for q in query.tolist():
        squares = [sum(((Fraction(a) - b) / w) ** 2 for a, b, w in zip(q, row, h, strict=True)) for row in x]
        logits = np.array([_log_kernel(s, min(squares), sample.kernel) for s in squares]) + weight
        p = np.exp(logits - logits.max())
        found.append(p @ sample.values.numpy() / p.sum())
    return np.array(found)


def _log_kernel(square, least, kernel):
    """Relative to the nearest point."""
    if kernel == "gaussian":
        return float(max((least - square) / 2, NOTHING))
    with localcontext() as context:
        context.prec = 60 if least < 10**30 else 700
        far, near = (Decimal(s.numerator) / Decimal(s.denominator) for s in (square, least))
        return float(near.sqrt() - far.sqrt())


def random_data(dim, generator):
    return torch.randn(41, dim, dtype=torch.float64, generator=generator)


def lattice(dim, generator):
    """Many points are as far along an axis: the other axes decide among them."""
    return torch.randint(0, 4, (41, dim), generator=generator).double() / 2


def near_copies(dim, generator):
    """Points that differ by about the inverse of the distance, so that several of them count."""
    few = torch.randn(3, dim, dtype=torch.float64, generator=generator)
    return few.repeat(13, 1) + 1e-9 * torch.rand(39, 1, dtype=torch.float64, generator=generator)


def asked(x, h, distance):
    """Along the first axis, from both sides and beside."""
    aside = torch.linspace(-0.3, 0.7, 5, dtype=torch.float64).unsqueeze(1) * torch.ones_like(x[:5])
    aside[:, 0] = torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0], dtype=torch.float64) * distance * h[0]
    return aside


def example(maker, dim, kernel, weighted, distance):
    generator = torch.Generator().manual_seed(dim)
    x = maker(dim, generator)
    h = torch.tensor([0.5, 0.7, 0.3, 1.1, 0.9], dtype=torch.float64)[:dim]
    y = torch.randn(len(x), 2, dtype=torch.float64, generator=generator)
    weight = torch.rand(len(x), dtype=torch.float64, generator=generator) + 0.1 if weighted else None
    sample = Sample(x, y, h, kernel, None if weight is None else weight.log())
    return sample, asked(x, h, distance)


@pytest.mark.parametrize("maker", [random_data, lattice, near_copies])
@pytest.mark.parametrize("dim", [1, 2, 3, 5])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("distance", DISTANCES)
def test_a_far_query_is_as_exact_as_a_near_one(maker, dim, kernel, weighted, distance):
    sample, query = example(maker, dim, kernel, weighted, distance)
    found = engine.pool(sample, query)
    np.testing.assert_allclose(found.mean, exact(sample, query), rtol=0, atol=1e-9)


@pytest.mark.parametrize("plan", ["pairs", "cells", "fast"])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_every_plan_is_exact_far_away(plan, dim):
    for distance in DISTANCES:
        sample, query = example(lattice, dim, "gaussian", True, distance)
        found = engine.pool(sample, query, plan=plan)
        np.testing.assert_allclose(found.mean, exact(sample, query), rtol=0, atol=1e-9)


def test_between_two_clouds_far_from_each():
    """Far is from every point, not from the box around them."""
    x = torch.cat([torch.arange(7.0), 2e6 + torch.arange(7.0)]).double().unsqueeze(1)
    y = torch.arange(14.0, dtype=torch.float64).unsqueeze(1).square()
    sample = Sample(x, y, torch.ones(1, dtype=torch.float64), log_weight=torch.linspace(-1, 1, 14).double())
    query = torch.tensor([[1e6 + 3.0], [1e6 + 3.0 + 1e-7], [1e6 + 3.0 - 2e-6], [3.0]], dtype=torch.float64)
    np.testing.assert_allclose(engine.pool(sample, query).mean, exact(sample, query), atol=1e-9)


def test_the_estimator_at_any_distance():
    x, y = np.array([[0.0, 1.0], [0.0, 2.0], [-0.5, 1.0]]), np.array([1.0, 5.0, 9.0])
    model = rg.NadarayaWatson("gaussian", 0.5).fit(x, y, [3.0, 1.0, 2.0])
    halfway = (3 * 1.0 + 5.0) / 4  # the first two are as near, and the third is out of the question
    np.testing.assert_allclose(model.predict([[1e9, 1.5]]), halfway, atol=1e-9)
    np.testing.assert_array_equal(model.predict([[-1e200, 3.0]]), 9.0)


def test_a_near_query_is_not_told_twice(monkeypatch):
    sample, query = example(random_data, 2, "gaussian", True, 1e6)
    told = []
    pool = relative_weights.pool
    monkeypatch.setattr(relative_weights, "pool", lambda sample, query: told.append(len(query)) or pool(sample, query))
    engine.pool(sample, torch.cat([sample.x, query]))
    assert told == [len(query)]


def test_far_heavy_points_outweigh_near_light_ones(monkeypatch):
    """Tiles of points are pruned by the weights of their own points, in whatever order these came."""
    monkeypatch.setattr(relative_weights, "TILE_PAIRS", 1)  # a tile for each query
    generator = torch.Generator().manual_seed(0)
    x, query = (1000 * torch.rand(n, 2, dtype=torch.float64, generator=generator) for n in (2000, 200))
    log_weight = torch.where(x[:, 0] < 900, -3e6, 0.0).double()
    values = x[:, :1].sin()
    logits = log_weight - (query.unsqueeze(1) - x).square().sum(2) / 2
    sample = Sample(x, values, torch.ones(2, dtype=torch.float64), log_weight=log_weight)
    np.testing.assert_allclose(relative_weights.pool(sample, query).mean, logits.softmax(1) @ values, atol=1e-9)


@pytest.mark.parametrize("distance", [1e5, 1e7, 1e9])
def test_a_band_far_away_is_that_of_the_point_that_decides(distance):
    """One point alone keeps all of its noise: no band of no width, and none without end."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 1))
    fit = rg.NadarayaWatson(bandwidth=0.3).fit(x, np.sin(x[:, 0]) + 0.2 * rng.normal(size=50))
    near, far = (fit.predict([[place]], return_std=True)[1] for place in (1e3, distance))
    np.testing.assert_allclose(far, near, rtol=1e-3)


@pytest.mark.parametrize("maker", [random_data, lattice, near_copies])
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize("distance", FARTHEST)
def test_the_estimator_is_exact_up_to_the_largest_number(maker, dim, kernel, distance):
    """Also where features beside the farthest decide."""
    sample, query = example(maker, dim, kernel, True, distance)
    model = rg.NadarayaWatson(kernel, sample.bandwidth.numpy())
    model.fit(sample.x.numpy(), sample.values.numpy(), sample.log_weight.exp().numpy())
    np.testing.assert_allclose(model.predict(query.numpy()), exact(sample, query), rtol=0, atol=1e-8)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("distance", [1e30, 1e160, 1.7e308, -1e100, -1.7e308])
def test_the_limit_is_that_of_a_far_query(kernel, degree, distance):
    """For everything that is asked of a fit; 10^7 is far, and told without losses."""
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 11)[:, None]
    model = rg.NadarayaWatson(kernel, 0.15, degree).fit(x, 3 * x[:, 0] + rng.normal(size=11))
    there, limit = [[distance]], [[np.copysign(1e7, distance)]]
    np.testing.assert_allclose(model.predict(there), model.predict(limit), rtol=1e-6)
    np.testing.assert_allclose(model.confidence_band(there), model.confidence_band(limit), rtol=1e-6)
    np.testing.assert_allclose(model.weights(there).dense(), model.weights(limit).dense(), atol=1e-6)
    np.testing.assert_allclose(model.derivative(there), 0, atol=1e-9)


@pytest.mark.parametrize("signs", [(1, 1), (-1, 1), (1, -1)])
@pytest.mark.parametrize("distance", [1e20, 1e160, 1e300])
def test_points_as_near_along_a_diagonal_stay_so(signs, distance):
    x = np.array([[0.0, 1.0], [1.0, 0.0], [0.25, 0.25]]) * signs
    for kernel in ("gaussian", "boxcar"):
        model = rg.NadarayaWatson(kernel, 0.5).fit(x, [1.0, 5.0, 9.0])
        np.testing.assert_allclose(model.predict(np.array([[distance, distance]]) * signs), 3.0)


def test_a_line_of_infinite_width_is_finite_anywhere():
    x = np.linspace(0, 1, 11)[:, None]
    model = rg.NadarayaWatson(bandwidth=np.inf, degree=1).fit(x, 3 * x[:, 0] + 1)
    assert np.isfinite(model.predict([[1e160], [-1.7e308]])).all()


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize("distance", [1e17, 1e160, 1.7e308])
def test_categories_have_the_same_limit(kernel, distance):
    x, y = np.stack([np.linspace(0, 1, 11), np.arange(11) % 2], 1), np.arange(11.0)
    model = rg.NadarayaWatson(kernel, [0.01, 0.0], categorical=[1]).fit(x, y)
    np.testing.assert_allclose(model.predict([[distance, 0], [distance, 1], [-distance, 1]]), [10, 9, 1])
    np.testing.assert_allclose(model.predict([[distance, 0]], return_std=True)[1], np.abs(model.loo_residuals_[10:]))


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "boxcar"])
@pytest.mark.parametrize("distance", [1e17, 1e160, 1.7e308])
def test_so_has_data_in_blocks(kernel, distance):
    da = pytest.importorskip("dask.array")
    x, y = np.linspace(0, 1, 11)[:, None], np.arange(11.0)
    model = rg.NadarayaWatson(kernel, 0.01).fit(da.from_array(x, chunks=(3, 1)), da.from_array(y, chunks=3))
    np.testing.assert_allclose(model.predict([[distance], [-distance]]), [10, 0], atol=1e-3)
