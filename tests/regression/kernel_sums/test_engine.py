"""One answer, whichever way: each way against the textbook within its own bound, and the laws of an average."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_average import KERNELS, KINDS, assert_within, normal, queries_of, sample_of, truth
from largest_allocation import LargestAllocation

import regard as rg
from regard import scores
from regard.regression.kernel_sums import (
    engine,
    pairwise_float32,
    pruned_sum,
)
from regard.regression.kernel_sums import plan as plan_module
from regard.regression.kernel_sums.engine import explain, pool
from regard.regression.kernel_sums.plan import NAMES
from regard.regression.kernel_sums.sample import Sample, standardise
from regard.regression.kernel_sums.state import empty, merge

POINTS, QUERIES, COLUMNS = 331, 67, 2
WAYS = [("pairs", 1e-6), ("pairs", 1e-4), ("cells", 1e-6), ("cells", 1e-3)]  # in double, single, double, single
MIB = 2**20


@pytest.fixture(scope="class")
def small_tiles():
    """Everything that is cut at a thousand points is cut at a few, so that small problems go through all of it."""
    sizes = [
        (pruned_sum, "POINTS", 16),
        (pruned_sum, "QUERIES", 8),
        (pruned_sum, "PREPARED_POINTS", 100),
        (pruned_sum, "PAIRS_OF_BOXES", 64),
        (pruned_sum, "POINTS_FOR_THRESHOLD", 20),
        (pairwise_float32, "REGION_QUERIES", 24),
        (engine, "EXACT_PAIRS", 0),
    ]
    with pytest.MonkeyPatch.context() as patch:
        for module, name, size in sizes:
            patch.setattr(module, name, size)
        yield


class Case(NamedTuple):
    """A problem in few words, so that one that fails can be read."""

    kind: str
    name: str
    seed: int
    dim: int
    width: float
    weighted: bool

    def build(self):
        generator = torch.Generator().manual_seed(self.seed)
        sample = sample_of(self.kind, POINTS, self.dim, self.name, generator, weighted=self.weighted, width=self.width)
        return sample, queries_of(sample, QUERIES, generator)


def cases(kernels=KERNELS):
    return st.builds(
        Case,
        st.sampled_from(KINDS),
        st.sampled_from(kernels),
        st.integers(0, 2**20),
        st.sampled_from([1, 2, 3, 5]),
        st.sampled_from([0.05, 0.7, 5.0]),
        st.booleans(),
    )


def assert_same(one, two, within=1e-10):
    torch.testing.assert_close(one.mean, two.mean, rtol=within, atol=within)
    torch.testing.assert_close(one.lse, two.lse, rtol=within, atol=within)


@pytest.mark.parametrize("tree", [False, True])
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("plan", ["auto", *NAMES])
def test_where_no_error_is_allowed_none_but_rounding_is_made(plan, dim, tree, monkeypatch):
    generator = torch.Generator().manual_seed(dim)
    sample = sample_of("normal", POINTS, dim, "gaussian", generator, weighted=True)
    query = queries_of(sample, QUERIES, generator)
    monkeypatch.setattr(plan_module, "EXACT_PAIRS", 0)
    monkeypatch.setattr(engine, "EXACT_PAIRS", 0)
    if tree:
        monkeypatch.setattr(engine, "MAX_DIRECT_PAIRS", 0)
    found = pool(sample, query, tol=0.0, plan=plan)
    assert (found.error <= 1e-15).all()
    assert_within(found, sample, query)


@pytest.mark.usefixtures("small_tiles")
class TestEveryWay:
    @given(cases(), st.sampled_from(WAYS))
    def test_is_the_textbook_within_its_own_bound(self, case, way):
        sample, query = case.build()
        plan, tol = way
        found = pool(sample, query, tol=tol, plan=plan)
        assert found.mean.shape == (QUERIES, COLUMNS)
        assert (found.error <= tol).all()
        assert_within(found, sample, query)

    @given(cases(kernels=["gaussian"]))
    @settings(max_examples=50)
    def test_single_precision_never_breaks_its_bound(self, case):
        sample, query = case.build()
        data = standardise(sample, query)
        found = engine.restored(data, pairwise_float32.pool(data, 1e-4))
        honest = torch.isfinite(found.error)
        told = truth(sample, query[honest])
        assert_within(type(found)(*(part[honest] for part in found)), sample, query[honest], told)
        assert honest.any()

    @given(cases(), st.sampled_from(WAYS), st.integers(1, 9))
    @settings(max_examples=40)
    def test_partitions_merge_into_the_whole(self, case, way, parts):
        sample, query = case.build()
        state = empty(QUERIES, COLUMNS, sample.x)
        share = torch.randint(parts, (POINTS,), generator=torch.Generator().manual_seed(case.seed))
        for part in range(parts):
            mine = share == part
            weight = None if sample.log_weight is None else sample.log_weight[mine]
            some = replace(sample, x=sample.x[mine], values=sample.values[mine], log_weight=weight)
            state = merge(state, pool(some, query, tol=way[1], plan=way[0]))
        seen = torch.isfinite(state.error)  # bounds of parts are in units of the parts
        assert seen.all()
        exact = way[1] == 1e-6 and (way[0] == "pairs" or sample.kernel not in ("gaussian", "laplace"))
        expected = truth(sample, query)
        slack = expected.rounding + (0 if exact else 10 * way[1])
        assert_within(state._replace(error=torch.from_numpy(np.asarray(slack))), sample, query, expected)

    @given(cases(), st.sampled_from(WAYS))
    @settings(max_examples=40)
    def test_the_order_of_points_does_not_matter(self, case, way):
        sample, query = case.build()
        order = torch.randperm(POINTS, generator=torch.Generator().manual_seed(case.seed))
        weight = None if sample.log_weight is None else sample.log_weight[order]
        other = replace(sample, x=sample.x[order], values=sample.values[order], log_weight=weight)
        assert_within(pool(other, query, tol=way[1], plan=way[0]), sample, query)

    @given(cases(), st.sampled_from(WAYS))
    @settings(max_examples=40)
    def test_a_point_twice_is_a_point_of_weight_two(self, case, way):
        sample, query = case.build()
        base = torch.zeros(POINTS, dtype=torch.float64) if sample.log_weight is None else sample.log_weight
        twice = torch.rand(POINTS, generator=torch.Generator().manual_seed(case.seed)) < 0.3
        x, values = (torch.cat([t, t[twice]]) for t in (sample.x, sample.values))
        copied = replace(sample, x=x, values=values, log_weight=torch.cat([base, base[twice]]))
        heavier = replace(sample, log_weight=base + twice.double() * np.log(2.0))
        found = pool(heavier, query, tol=way[1], plan=way[0])
        expected = truth(copied, query)
        assert_within(found, heavier, query, expected)

    @given(cases(), st.sampled_from(WAYS), st.floats(-3, 3), st.integers(-20, 20))
    @settings(max_examples=40)
    def test_moving_and_stretching_everything_changes_nothing(self, case, way, shift, power):
        sample, query = case.build()
        stretch = 2.0**power
        shift = 2.0 ** round(shift)
        moved = replace(sample, x=(sample.x + shift) * stretch, bandwidth=sample.bandwidth * stretch)
        found = pool(moved, (query + shift) * stretch, tol=way[1], plan=way[0])
        assert_within(found, sample, query)

    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("name", ["gaussian", "laplace"])
    def test_far_away_the_nearest_point_decides(self, way, name):
        x = torch.tensor([[0.0, 0], [1, 0], [1, 1]], dtype=torch.float64).repeat(7, 1)
        values = torch.arange(3.0, dtype=torch.float64).repeat(7).unsqueeze(1)
        sample = Sample(x, values, torch.full((2,), 0.001, dtype=torch.float64), name)
        query = torch.tensor([[-1e6, -1e5], [1e6, -1e5], [1e8, 1e7]], dtype=torch.float64)
        found = pool(sample, query, tol=way[1], plan=way[0])
        assert torch.isfinite(found.lse).all()
        torch.testing.assert_close(found.mean[:, 0], torch.tensor([0.0, 1, 2], dtype=torch.float64))

    @pytest.mark.parametrize("tol", [1e-6, 1e-3])
    @pytest.mark.parametrize("wrong", [-60.0, 5.0, 60.0])
    def test_a_wrong_estimate_of_the_sum_is_noticed_and_repaired(self, tol, wrong, monkeypatch):
        """One that is too high leaves out what matters, which is noticed; one that is too low leaves out nothing."""
        case = Case("clusters", "gaussian", 3, 2, 0.5, weighted=True)
        sample, query = case.build()
        estimate = pruned_sum._estimate_log_floor
        monkeypatch.setattr(pruned_sum, "_estimate_log_floor", lambda pieces, tiles: estimate(pieces, tiles) + wrong)
        found = pool(sample, query, tol=tol, plan="cells")
        assert float(found.error.max()) <= tol
        assert_within(found, sample, query)

    @pytest.mark.parametrize("kind", [torch.float32, torch.float64])
    @pytest.mark.parametrize("wrong", [-60.0, 0.0, 60.0, 700.0, 2000.0])
    def test_the_bound_holds_for_points_however_small_their_weight(self, wrong, kind):
        """A query far from all others may have nothing but a point that is nothing beside the guess."""
        generator = torch.Generator().manual_seed(0)
        far = torch.tensor([[400.0, 90, 80], [500.0, 95, 85], [700.0, 100, 99]], dtype=torch.float64)
        whole = standardise(sample_of("tails", 331, 3, "gaussian", generator, weighted=True, width=0.2), far)
        far = whole.query
        logits = whole.log_weight - (far.unsqueeze(1) - whole.x).square().sum(-1) / 2
        bound = pruned_sum.log_contribution_bound(whole, far.amin(0, keepdim=True), far.amax(0, keepdim=True)).to(kind)
        (kept,), (log_pruned,) = pruned_sum.prune_points(bound, logits.logsumexp(1).min().reshape(1) + wrong, 1e-9)
        gone = torch.ones(len(whole.x), dtype=torch.bool)
        gone[kept] = False
        assert gone.any()
        assert (logits[:, gone].logsumexp(1) <= log_pruned + 1e-9 * abs(log_pruned)).all()

    def test_points_with_a_bound_of_nan_are_not_pruned(self):
        bound = torch.tensor([[0.0, -1e3, math.nan, -1e3, math.inf, -math.inf]], dtype=torch.float64)
        (kept,), _ = pruned_sum.prune_points(bound, torch.zeros(1, dtype=torch.float64), 1e-3)
        assert kept.tolist() == [0, 2, 4]

    @pytest.mark.parametrize("way", WAYS)
    def test_out_of_reach_of_a_kernel_with_an_edge_there_is_nothing(self, way):
        generator = torch.Generator().manual_seed(0)
        sample = sample_of("normal", POINTS, 2, "biweight", generator)
        query = queries_of(sample, QUERIES, generator)
        query[:5] += 1e3
        found = pool(sample, query, tol=way[1], plan=way[0])
        assert (found.lse[:5] == -torch.inf).all()
        assert (found.mean[:5] == 0).all()
        assert (found.error[:5] == 0).all()

    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("name", KERNELS)
    def test_a_feature_of_infinite_width_does_not_exist(self, way, name):
        generator = torch.Generator().manual_seed(0)
        sample = sample_of("normal", POINTS, 3, name, generator)
        query = queries_of(sample, QUERIES, generator)
        wide = replace(sample, bandwidth=torch.tensor([0.7, torch.inf, 0.9], dtype=torch.float64))
        narrow = Sample(sample.x[:, ::2], sample.values, wide.bandwidth[::2], name)
        assert_same(pool(wide, query, tol=way[1], plan=way[0]), pool(narrow, query[:, ::2], tol=way[1], plan=way[0]))

    @pytest.mark.parametrize("way", WAYS)
    def test_points_without_weight_do_not_exist(self, way):
        generator = torch.Generator().manual_seed(0)
        sample = sample_of("normal", POINTS, 2, "gaussian", generator, weighted=True)
        query = queries_of(sample, QUERIES, generator)
        hidden = torch.rand(POINTS, generator=generator) < 0.5
        none = replace(sample, log_weight=sample.log_weight.masked_fill(hidden, -torch.inf))
        fewer = Sample(
            sample.x[~hidden], sample.values[~hidden], sample.bandwidth, "gaussian", sample.log_weight[~hidden]
        )
        assert_same(pool(none, query, tol=way[1], plan=way[0]), pool(fewer, query, tol=way[1], plan=way[0]))


class TestTheDoor:
    @given(st.integers(0, 2**20), st.floats(0.05, 20))
    @settings(max_examples=30)
    def test_a_gaussian_average_is_attention(self, seed, w):
        generator = torch.Generator().manual_seed(seed)
        x, query, values = (normal(generator, *shape) for shape in ((POINTS, 3), (QUERIES, 3), (POINTS, COLUMNS)))
        found = pool(Sample(x, values, torch.full((3,), 1 / w, dtype=torch.float64)), query)
        output, weights = rg.attend(query, x, values, score=scores.gaussian(w))
        torch.testing.assert_close(found.mean, output, rtol=0, atol=1e-11)
        torch.testing.assert_close(found.lse, weights.logsumexp(), rtol=1e-12, atol=1e-11)
        assert (found.error == 0).all()

    @pytest.mark.parametrize("name", KERNELS)
    @pytest.mark.parametrize("weighted", [False, True])
    def test_without_features_everybody_gets_the_mean(self, name, weighted):
        generator = torch.Generator().manual_seed(0)
        sample = sample_of("normal", POINTS, 2, name, generator, weighted=weighted)
        nothing = replace(sample, bandwidth=torch.full((2,), torch.inf, dtype=torch.float64))
        found = pool(nothing, queries_of(sample, QUERIES, generator))
        weight = torch.ones(POINTS, dtype=torch.float64) if sample.log_weight is None else sample.log_weight.exp()
        mean = (weight @ sample.values) / weight.sum()
        torch.testing.assert_close(found.mean, mean.expand(QUERIES, COLUMNS))
        torch.testing.assert_close(found.lse, weight.sum().log().expand(QUERIES))

    @pytest.mark.parametrize("plan", ["auto", "pairs", "cells"])
    @pytest.mark.parametrize("points", [0, 5])
    @pytest.mark.parametrize("queries", [0, 7])
    def test_an_average_without_points_is_an_empty_state(self, plan, points, queries):
        sample = Sample(torch.zeros(points, 3).double(), torch.ones(points, 2).double(), torch.ones(3).double())
        found = pool(sample, torch.zeros(queries, 3, dtype=torch.float64), plan=plan)
        assert found.mean.shape == (queries, 2)
        assert (found.mean == (1.0 if points else 0.0)).all()
        assert (torch.isfinite(found.lse) == bool(points)).all()

    def test_the_plan_is_explained_in_words(self):
        generator = torch.Generator().manual_seed(0)
        sample = sample_of("normal", POINTS, 2, "gaussian", generator)
        query = queries_of(sample, QUERIES, generator)
        assert str(explain(sample, query)) == "pairs: 67 x 331 pairs are few enough to take every one, in float64"
        assert explain(sample, query, plan="cells").name == "cells"

    def test_a_feature_of_infinite_width_does_not_change_the_plan(self, monkeypatch):
        generator = torch.Generator().manual_seed(0)
        sample = sample_of("normal", POINTS, 3, "laplace", generator)
        query = queries_of(sample, QUERIES, generator)
        monkeypatch.setattr(plan_module, "EXACT_PAIRS", 0)
        wide = replace(sample, bandwidth=torch.tensor([0.7, torch.inf, 0.9], dtype=torch.float64))
        narrow = Sample(sample.x[:, ::2], sample.values, wide.bandwidth[::2], "laplace")
        assert explain(wide, query) == explain(narrow, query[:, ::2])
        assert_within(pool(wide, query), wide, query)

    def test_values_far_from_zero_keep_their_digits(self):
        generator = torch.Generator().manual_seed(0)
        sample = sample_of("normal", POINTS, 2, "gaussian", generator)
        query = queries_of(sample, QUERIES, generator)
        far = replace(sample, values=sample.values + 2.0**30)
        torch.testing.assert_close(pool(far, query).mean - 2.0**30, pool(sample, query).mean, rtol=0, atol=1e-6)


class TestMemory:
    @pytest.mark.parametrize(
        ("name", "plan", "dim", "width", "tol"),
        [
            ("gaussian", "pairs", 5, 0.7, 1e-6),
            ("gaussian", "pairs", 5, 0.7, 1e-4),
            ("gaussian", "pairs", 2, 1e-3, 1e-6),
            ("laplace", "pairs", 5, 0.7, 1e-6),
            ("gaussian", "cells", 2, 0.7, 1e-6),
            ("epanechnikov", "cells", 2, 0.05, 1e-6),
        ],
    )
    def test_no_tensor_has_a_number_for_every_pair(self, name, plan, dim, width, tol):
        generator = torch.Generator().manual_seed(0)
        sample = sample_of("normal", 3001, dim, name, generator, width=width)
        query = queries_of(sample, 5003, generator)
        with LargestAllocation() as largest:
            pool(sample, query, tol=tol, plan=plan)
        assert largest.bytes < 16 * MIB < 3001 * 5003 * 4 / 2


ADVERSARIES = [(kind, dim) for kind in KINDS for dim in (1, 3)]


def violations(kind, dim, count, points, name="gaussian"):
    """Certified answers of both ways against the textbook; assert_within finds even one that breaks its bound."""
    generator = torch.Generator().manual_seed(count + dim)
    sample = sample_of(kind, points, dim, name, generator, weighted=True, width=0.2)
    query = queries_of(sample, count, generator)
    expected = truth(sample, query)
    for plan, tol in (("cells", 1e-6), ("cells", 1e-2), ("pairs", 1e-4)):
        found = pool(sample, query, tol=tol, plan=plan)
        assert (found.error <= tol).all()
        assert_within(found, sample, query, expected)


@pytest.mark.parametrize(("kind", "dim"), ADVERSARIES)
def test_no_bound_is_violated(kind, dim, monkeypatch):
    monkeypatch.setattr(engine, "EXACT_PAIRS", 0)
    violations(kind, dim, count=720, points=1009)


@pytest.mark.long
@pytest.mark.parametrize(("kind", "dim"), ADVERSARIES)
def test_no_bound_is_violated_a_million_times(kind, dim, monkeypatch):
    monkeypatch.setattr(engine, "EXACT_PAIRS", 0)
    violations(kind, dim, count=72_000, points=2003)
