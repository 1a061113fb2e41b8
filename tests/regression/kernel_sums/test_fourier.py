"""Fast sums keep what they promise: every query is within its own bound of the sum over all pairs."""

import math

import pytest
import torch

from regard.regression.kernel_sums import engine, fourier, nufft, radius_search
from regard.regression.kernel_sums.plan import Workload, obstacle, seconds
from regard.regression.kernel_sums.sample import Sample, scale_of, standardise_by_axis

SMALL_GRIDS = {1: 2**20, 2: 2**20, 3: 2**22}
N, QUERIES = 2003, 211
GENERATOR = torch.Generator()


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=GENERATOR)


def uniform(*shape):
    return torch.rand(*shape, dtype=torch.float64, generator=GENERATOR)


def filled(dim, width):
    return torch.full((dim,), float(width), dtype=torch.float64)


def width_for(dim):
    return 0.3 if dim < 3 else 0.6


def values_at(x, columns=2):
    waves = [torch.sin((c + 1) * x).sum(1) + 0.3 * normal(len(x)) for c in range(columns)]
    return torch.stack(waves, -1) if columns else x.new_zeros(len(x), 0)


def brute(sample, query):
    """log weight, mean and squared distance to the nearest point, pair by pair in float64; differences come first."""
    parts = []
    for some in query.split(max(1, 2**22 // len(sample.x))):
        apart = (some.unsqueeze(1) - sample.x) / sample.bandwidth
        exponent = apart.square().sum(-1) / -2
        nearest = exponent.amax(1)
        if sample.log_weight is not None:
            exponent = exponent + sample.log_weight
        lse = torch.logsumexp(exponent, 1)
        middle = sample.values.mean(0)
        parts.append((lse, torch.exp(exponent - lse.unsqueeze(1)) @ (sample.values - middle) + middle, -2 * nearest))
    return tuple(torch.cat(column) for column in zip(*parts, strict=True))


def rounding(sample, query, nearest):
    """What float64 leaves open whoever sums: places and squared distances are rounded, and so are the values."""
    counts = torch.isfinite(sample.bandwidth)
    both = torch.cat([sample.x, query])[:, counts]
    extent = float(((both - both.mean(0)) / sample.bandwidth[counts]).abs().max())
    values = sample.values if sample.values.numel() else sample.x
    spread = ((values.amax(0) - values.amin(0)) / scale_of(values)).amax()
    large = (values.abs().amax(0) / scale_of(values)).amax()
    exponent = nearest + (nearest.sqrt() + 8) * extent + 100
    return 2.0**-51 * (exponent * (1 + spread) + 4 * large)


def average(sample, query, tol):
    """By the Fourier series and, for queries that it leaves uncertain, from the points near them."""
    data = standardise_by_axis(sample, query)
    return engine.restored(data, engine.pool_fourier(data, tol))


def violations(sample, query, tol, answer=None):
    """Queries whose error is above their bound or whose bound is above `tol`; and how many queries there were."""
    answer = answer or average(sample, query, tol)
    lse, mean, nearest = brute(sample, query)
    error = torch.expm1((answer.lse - lse).clamp(-700, 700)).abs()
    if mean.shape[1]:
        error = torch.maximum(error, ((answer.mean - mean).abs() / scale_of(sample.values)).amax(1))
    broken = ~(error <= answer.error + rounding(sample, query, nearest))
    return int(broken.sum()), int((~(answer.error <= tol)).sum())


def plain(dim, n, queries):
    x = normal(n, dim)
    return Sample(x, values_at(x), filled(dim, width_for(dim))), 1.3 * normal(queries, dim)


def clusters(dim, n, queries):
    centres = 30 * uniform(7, dim)
    x = centres[torch.randint(7, (n,), generator=GENERATOR)] + 0.05 * normal(n, dim)
    near = x[torch.randint(n, (queries,), generator=GENERATOR)] + 0.5 * normal(queries, dim)
    return Sample(x, values_at(x), filled(dim, 0.2)), torch.where(uniform(queries, 1) < 0.7, near, 30 * near / 20)


def duplicates(dim, n, queries):
    x = normal(5, dim)[torch.randint(5, (n,), generator=GENERATOR)]
    return Sample(x, values_at(x), filled(dim, 0.1)), normal(queries, dim)


def large_numbers(dim, n, queries):
    sample, query = plain(dim, n, queries)
    x, query = sample.x * 1e6 + 1e9, query * 1e6 + 1e9
    return Sample(x, sample.values * 1e6 - 1e8, sample.bandwidth * 1e6), query


def constant_feature(dim, n, queries):
    sample, query = plain(dim, n, queries)
    x = sample.x.clone()
    x[:, 0] = 2.5
    query[:, 0] = 2.5 + 0.1 * query[:, 0]
    return Sample(x, sample.values, sample.bandwidth), query


def heavy_tails(dim, n, queries):
    x = normal(n, dim) / normal(n, 1)
    values = values_at(x) / normal(n, 1)
    return Sample(x, values, filled(dim, width_for(dim))), normal(queries, dim) / normal(queries, 1)


def tiny_width(dim, n, queries):
    x = normal(n, dim)
    return Sample(x, values_at(x), filled(dim, 1e-3)), torch.cat([normal(queries // 2, dim), x[: queries // 2 + 1]])


def huge_width(dim, n, queries):
    x = normal(n, dim)
    return Sample(x, values_at(x), filled(dim, 1e5)), 1.3 * normal(queries, dim)


def far_queries(dim, n, queries):
    sample, query = plain(dim, n, queries)
    return sample, query * 10 ** (4 * uniform(queries, 1))


def weighted(dim, n, queries):
    sample, query = plain(dim, n, queries)
    log_weight = 5 * normal(n)
    log_weight[::7] = -math.inf
    return Sample(sample.x, sample.values, sample.bandwidth, log_weight=log_weight), query


def ignored_feature(dim, n, queries):
    x = torch.cat([normal(n, dim), 1e3 * normal(n, 1)], 1)
    bandwidth = torch.cat([filled(dim, width_for(dim)), filled(1, math.inf)])
    return Sample(x, values_at(x[:, :dim]), bandwidth), torch.cat([normal(queries, dim), normal(queries, 1)], 1)


def wild_values(dim, n, queries):
    sample, query = plain(dim, n, queries)
    values = torch.stack([torch.full((n,), 0.1, dtype=torch.float64), torch.exp(8 * normal(n)), sample.values[:, 0]], 1)
    return Sample(sample.x, values, sample.bandwidth), query


MAKERS = [
    plain,
    clusters,
    duplicates,
    large_numbers,
    constant_feature,
    heavy_tails,
    tiny_width,
    huge_width,
    far_queries,
    weighted,
    ignored_feature,
    wild_values,
]


@pytest.fixture(autouse=True)
def same_numbers():
    GENERATOR.manual_seed(20_26)


@pytest.fixture(autouse=True)
def small_grids(monkeypatch):
    """A grid as large as for a million points would take seconds here; what does not fit is answered nearby."""
    monkeypatch.setattr(fourier, "MAX_CELLS", SMALL_GRIDS)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_no_bound_is_violated(maker, dim):
    """36 kinds of data, 211 queries each: 7,596 answers."""
    sample, query = maker(dim, N, QUERIES)
    assert violations(sample, query, 1e-6 if dim < 3 else 1e-4) == (0, 0)


@pytest.mark.long
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_no_bound_is_violated_at_a_million_queries(maker, dim):
    sample, query = maker(dim, 1009, 1_000_003 // len(MAKERS) // 3 + 1)
    assert violations(sample, query, 1e-6 if dim < 3 else 1e-4) == (0, 0)


@pytest.mark.long
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_a_million_points_at_full_size(dim, monkeypatch):
    monkeypatch.undo()
    x, query = normal(1_000_003, dim), normal(1_000_003, dim)
    sample = Sample(x, values_at(x, 1), filled(dim, len(x) ** (-1 / (dim + 4))))
    answer = average(sample, query, tol := 1e-6 if dim < 3 else 1e-4)
    assert (answer.error <= tol).all()
    some = torch.cat([torch.arange(200), answer.error.topk(200).indices])
    part = type(answer)(*(whole[some] for whole in answer))
    assert violations(sample, query[some], tol, part) == (0, 0)


class TestWhatIsCertain:
    @pytest.mark.parametrize("dim", [1, 2, 3])
    def test_most_queries_need_no_second_look(self, dim, monkeypatch):
        sample, query = plain(dim, N, QUERIES)
        asked = []
        original = radius_search.pool
        monkeypatch.setattr(
            radius_search, "pool", lambda data, *rest: asked.append(len(data.query)) or original(data, *rest)
        )
        average(sample, query / 2, 1e-6)
        assert sum(asked) < QUERIES / 10

    def test_the_bound_is_not_blind(self, monkeypatch):
        """A transform ten thousand times worse than it promises must show: the bound is sharp enough to notice."""
        sample, query = plain(2, N, QUERIES)
        original = nufft.plan
        monkeypatch.setattr(nufft, "plan", lambda k, p, m, eps, *, rows: original(k, p, m, eps * 1e4, rows=rows))
        assert violations(sample, query, 1e-6)[0] > 0

    def test_the_series_is_off_by_no_more_than_it_says(self):
        for eps in (1e-7, 1e-10, 1e-13):
            series = fourier.Series.of([3.7], eps)
            u = torch.linspace(-3.7, 3.7, 1001, dtype=torch.float64)
            k = torch.arange(-(series.modes[0] // 2), series.modes[0] // 2 + 1)
            wave = torch.cos(2 * math.pi / series.periods[0] * torch.outer(u, k.double()))
            off = (wave @ series.coefficients() - torch.exp(-u.square() / 2)).abs().max()
            assert off <= series.truncation + 1e-15
            assert series.truncation <= 3 * eps

    @pytest.mark.parametrize("tol", [1e-2, 1e-9, 1e-12])
    def test_no_bound_is_violated_at_any_tolerance(self, tol):
        sample, query = plain(2, N, QUERIES)
        assert violations(sample, query, tol) == (0, 0)


class TestShapes:
    @pytest.mark.parametrize("columns", [0, 1, 2, 3, 5])
    def test_no_bound_is_violated_for_any_number_of_columns(self, columns):
        x = normal(N, 2)
        sample = Sample(x, values_at(x, columns), filled(2, 0.3))
        query = normal(QUERIES, 2)
        assert average(sample, query, 1e-6).mean.shape == (QUERIES, columns)
        assert violations(sample, query, 1e-6) == (0, 0)

    def test_no_queries_give_empty_results(self):
        sample, query = plain(2, 13, 1)
        answer = average(sample, query[:0], 1e-6)
        assert answer.lse.shape == (0,) and answer.mean.shape == (0, 2)

    def test_points_of_weight_zero_give_an_empty_state(self):
        x = normal(3, 2)
        nothing = Sample(x, values_at(x), filled(2, 1.0), log_weight=filled(3, -math.inf))
        answer = average(nothing, normal(5, 2), 1e-6)
        assert (answer.lse == -math.inf).all() and (answer.mean == 0).all() and (answer.error == 0).all()

    @pytest.mark.parametrize("n", [1, 2])
    def test_no_bound_is_violated_with_one_or_two_points(self, n):
        sample, query = plain(2, n, 17)
        assert violations(sample, 10 * query, 1e-6) == (0, 0)


class TestCost:
    def workload(self, spans, kernel="gaussian", n=1000, queries=1000, columns=1):
        return Workload(queries, n, len(spans), kernel, 1e-6, columns, tuple(spans))

    def test_wide_data_is_not_offered(self):
        assert obstacle("fast", self.workload([50.0, 50.0])) is None
        assert obstacle("fast", self.workload([50.0, 1e9]))
        assert obstacle("fast", self.workload([]))
        assert obstacle("fast", self.workload([50.0] * 4))
        assert obstacle("fast", self.workload([50.0], "epanechnikov"))

    def test_cost_grows_with_everything(self):
        base = seconds("fast", self.workload([50.0, 50.0]))
        assert seconds("fast", self.workload([50.0, 50.0], n=2000)) > base
        assert seconds("fast", self.workload([50.0, 50.0], queries=2000)) > base
        assert seconds("fast", self.workload([50.0, 90.0])) > base
        assert seconds("fast", self.workload([50.0, 50.0], columns=4)) > base


class TestNearby:
    def data(self, maker, dim):
        sample, query = maker(dim, N, QUERIES)
        return sample, query, standardise_by_axis(sample, query)

    @pytest.mark.parametrize("maker", MAKERS)
    @pytest.mark.parametrize("dim", [1, 2, 3])
    def test_nearest_points_serve_every_query(self, maker, dim):
        sample, query, data = self.data(maker, dim)
        answer = engine.restored(data, radius_search.pool(data, 1e-6))
        assert violations(sample, query, 1e-6, answer) == (0, 0)

    def test_pieces_of_any_size_give_one_answer(self, monkeypatch):
        _, _, data = self.data(plain, 2)
        floor = data.query.new_full((QUERIES,), -20.0)
        whole = radius_search.pool(data, 1e-6, floor)
        monkeypatch.setattr(radius_search, "TILE_PAIRS", 171)
        for one, other in zip(whole, radius_search.pool(data, 1e-6, floor), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)

    def test_far_away_the_nearest_point_is_the_answer(self):
        sample, query = plain(2, N, 5)
        far = query + torch.tensor([1e5, 0.0])
        answer = average(sample, far, 1e-6)
        nearest = torch.cdist(far, sample.x).argmin(1)
        torch.testing.assert_close(answer.mean, sample.values[nearest], rtol=1e-5, atol=1e-5)
        assert torch.isfinite(answer.lse).all()
