"""Which way is taken: pure, by cost, and told in words."""

from dataclasses import replace

import pytest
import torch
from kernel_average import normal, points

from regard.errors import ChoiceError, PlanError
from regard.regression.kernel_sums import pairwise
from regard.regression.kernel_sums.plan import NAMES, Workload, choose, estimate_share_in_reach, obstacle, seconds
from regard.regression.kernel_sums.sample import EXACT_PAIRS, Sample, standardise

MANY = Workload(queries=10**6, points=10**6, dim=2, kernel="gaussian", tol=1e-6, extent=(30.0, 30.0), share=0.5)


class TestChoice:
    def test_few_pairs_are_all_taken_whatever_else_there_is(self):
        few = replace(MANY, queries=1000, points=EXACT_PAIRS // 1000)
        assert choose(few).name == "pairs"
        assert "float64" in choose(few).reason
        assert choose(replace(few, queries=1001)).name != "pairs"

    def test_a_million_points_in_a_plane_are_summed_fast(self):
        assert choose(MANY).name == "fast"

    def test_a_kernel_that_reaches_few_points_takes_these(self):
        narrow = replace(MANY, share=0.001)
        assert choose(replace(narrow, kernel="epanechnikov")).name == "cells"
        assert choose(replace(narrow, extent=(1e6, 1e6))).name == "cells"  # more frequencies than fit

    def test_in_many_dimensions_every_pair_is_taken(self):
        wide = replace(MANY, dim=5, extent=(30.0,) * 5, share=1.0)
        assert choose(wide).name == "pairs"

    def test_the_choice_is_the_cheapest_of_those_that_can(self):
        for dim in range(1, 6):
            for share in (1e-4, 0.1, 1.0):
                for tol in (1e-6, 1e-3):
                    workload = replace(MANY, dim=dim, extent=(9.0,) * dim, share=share, tol=tol)
                    able = [name for name in NAMES if obstacle(name, workload) is None]
                    assert seconds(choose(workload).name, workload) == min(seconds(name, workload) for name in able)

    def test_a_tolerance_that_no_fast_sum_can_promise_is_not_summed_fast(self):
        assert choose(replace(MANY, tol=1e-12)).name == "fast"
        assert choose(replace(MANY, tol=0.0)).name != "fast"

    def test_a_loose_promise_makes_pairs_cheaper(self):
        assert seconds("pairs", replace(MANY, tol=1e-4)) < seconds("pairs", MANY)

    def test_more_of_everything_costs_more(self):
        for name in NAMES:
            assert seconds(name, MANY) < seconds(name, replace(MANY, queries=2 * 10**6))
        assert seconds("cells", replace(MANY, share=0.1)) < seconds("cells", MANY)
        assert seconds("fast", MANY) < seconds("fast", replace(MANY, extent=(300.0, 310.0)))

    def test_the_reason_can_be_read(self):
        told = str(choose(replace(MANY, extent=(1e6, 1e6), share=0.001)))
        assert told.startswith("cells: about 0.1% of 1,000,000 x 1,000,000 pairs are within the kernel's reach")
        assert "against pairs" in told


class TestForced:
    @pytest.mark.parametrize("name", NAMES)
    def test_a_forced_plan_is_taken(self, name):
        plan = choose(replace(MANY, forced=name))
        assert plan.name == name
        assert plan.reason.startswith("asked for")

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ({"kernel": "boxcar"}, "Gaussian kernel alone, and the kernel is boxcar"),
            ({"dim": 4, "extent": (1.0,) * 4}, "1 to 3 dimensions, and 4 features matter"),
            ({"extent": (1e9, 1e9)}, "1e\\+09 x 1e\\+09 bandwidths wide"),
            ({"device": "cuda"}, "the data is on cuda"),
            ({"dim": 0, "extent": ()}, "no feature has a finite bandwidth"),
        ],
    )
    def test_a_fast_sum_that_cannot_serve_says_why(self, change, why):
        with pytest.raises(PlanError, match=f"plan='fast' cannot serve this: .*{why}.*'pairs'"):
            choose(replace(MANY, forced="fast", **change))

    def test_cells_are_for_the_processor(self):
        with pytest.raises(PlanError, match=r"'cells' cannot serve this: .* the data is on cuda; 'auto' or 'pairs'"):
            choose(replace(MANY, forced="cells", device="cuda"))
        assert choose(replace(MANY, device="cuda")).name == "pairs"

    def test_a_way_nobody_knows_is_refused(self):
        with pytest.raises(ChoiceError, match="'auto' or one of 'pairs', 'cells', 'fast', but it is 'quick'"):
            choose(replace(MANY, forced="quick"))


class TestShare:
    @pytest.mark.parametrize("kind", ["normal", "tails"])
    @pytest.mark.parametrize("dim", [1, 2])
    def test_the_estimate_is_near_what_tiles_keep(self, kind, dim, monkeypatch):
        """What decides between ways that differ by a hundred need not be exact."""
        generator = torch.Generator().manual_seed(0)
        x, query = (points(kind, count, dim, generator) for count in (20_011, 5_003))
        for width in (0.003, 0.1, 3.0):
            bandwidth = torch.full((dim,), width, dtype=torch.float64)
            sample = Sample(x, normal(generator, len(x), 1), bandwidth)
            seen: list[int] = []
            original = pairwise.pool_block
            monkeypatch.setattr(
                pairwise, "pool_block", lambda b, s=seen, f=original: s.append(len(b.query) * len(b.x)) or f(b)
            )
            pairwise.pool_pruned(standardise(sample, query), 1e-6)
            monkeypatch.undo()
            kept = sum(seen) / (len(x) * len(query))
            estimate = estimate_share_in_reach(sample, query, 1e-6)
            assert kept / 6 < estimate < max(6 * kept, 0.1)
            assert 0 < estimate <= 1
