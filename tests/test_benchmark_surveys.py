"""The sweep over combinations and the curves of growth. Nothing here asserts on a time."""

import json
import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from rich.console import Console

import regard as rg
from benchmarks import bounds, cliffs, growth, memory, report, surveys, sweep, sweep_report
from benchmarks.bounds import Rates
from benchmarks.combinations import SHAPES, Combination, every, shrunk
from benchmarks.formulas import FORMULAS
from benchmarks.harness import Sizes, difference
from benchmarks.machine import Limits
from benchmarks.peaks import peaks
from benchmarks.records import Settings, document, write
from benchmarks.visible import BLOCK, RULES, Places, count_in_blocks, visible_pairs
from regard.engine.inputs import BUDGET

LIMIT = Limits(matrix_gflops=100.0, copy_gb_per_second=10.0, exp_per_ns=1.0)
CALLS = {False: 1e-5, True: 1e-4}
KINDS = tuple(product(bounds.ROWS, bounds.KEYS))
RATES = Rates(LIMIT, CALLS, dict.fromkeys(KINDS, 1e-9), dict.fromkeys(KINDS, 2e-9), 1.0, 0.1)
COMBINATIONS = every(quick=True)
PAGES = ("docs/en/benchmarks.md", "docs/zh/benchmarks.md")
SILENT = Console(quiet=True)


@pytest.fixture(autouse=True)
def same_threads_afterwards():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def record():
    return sweep.measure(Combination("tiny", shrunk(SHAPES["tiny"]), "causal"), RATES, None)


def seconds(ours, **others):
    return sweep.Seconds(
        **({"by_hand": 1.0, "plain": 1.0, "limit": 0.5, "fixed": 0.0, "fixed_by_hand": 0.0} | others), ours=ours
    )


def with_ratio(record, name, value):
    times = seconds(1.0, **({"limit": 0.2} | {name: 1 / value}))
    verdict = sweep.verdict(times, "bytes")
    return record | {"name": f"{name} {value}", "limit": "bytes", "ratios": times.ratios(), **verdict}


class TestCombinations:
    def test_there_are_hundreds_and_each_has_its_own_name(self):
        assert len({combination.name for combination in COMBINATIONS}) == len(COMBINATIONS) > 300
        assert {combination.mask for combination in COMBINATIONS} == {None, *RULES}
        assert all(combination.pairs for combination in every(quick=False) if combination.sizes.n == 1)
        assert {combination.formula for combination in COMBINATIONS} == FORMULAS.keys()

    def test_the_quick_version_has_the_same_ones(self):
        assert [combination.name for combination in every(quick=False)] == [one.name for one in COMBINATIONS]

    @pytest.mark.parametrize("shape", SHAPES)
    def test_every_combination_equals_all_that_is_written_by_hand(self, shape):
        for line in (combination.line() for combination in COMBINATIONS if combination.shape == shape):
            x = line.make(line.sizes)
            ours = line.contestant(line.ours)(x)
            for name, peer in line.peers.items():
                assert difference(ours, line.contestant(peer)(x)) <= line.tolerance, (line.name, name)

    @pytest.mark.parametrize(("shape", "mask"), [*product(SHAPES, RULES)])
    def test_visible_pairs_are_those_that_regard_shows(self, shape, mask):
        combination = Combination(shape, shrunk(SHAPES[shape]), mask)
        x = combination.make(combination.sizes)
        shown = rg.Weights(x.q, x.k, mask=RULES[mask].mask(Places(combination.sizes))).dense() > 0
        assert torch.equal(x.more["visible"].expand(shown.shape), shown)
        assert combination.pairs * combination.sizes.heads == int(shown.sum())

    @pytest.mark.parametrize("mask", [None, "window", "segments", "padding", "causal & allow"])
    def test_pairs_in_blocks_are_those_of_blocks_that_show_any(self, mask):
        sizes = Sizes(n=150, batch=2, heads=1, m=201)
        visible = visible_pairs(mask, sizes).expand(2, 1, 150, 201)
        blocks = (part for rows in visible.split(BLOCK, -2) for part in rows.split(BLOCK, -1))
        expected = sum(sequence.numel() for block in blocks for sequence in block if sequence.any())
        assert count_in_blocks(visible_pairs(mask, sizes), sizes) == expected

    def test_a_block_of_rows_counts_its_own_pairs(self):
        whole = Combination("long", shrunk(SHAPES["long"]))
        assert 0 < replace(whole, mode="rows").pairs < whole.pairs


class TestSweep:
    def test_a_record_holds_three_ratios_a_plan_and_both_counts(self, record):
        assert all(math.isfinite(value) for value in record["ratios"].values())
        assert record["ratios"].keys() == {"plain", "by_hand", "limit"}
        assert record["plan"].startswith("fused: ")
        assert record["pairs"] <= record["blocks"]
        assert record["differs"] is False

    @pytest.mark.parametrize(
        ("times", "cliff", "explained"),
        [
            (seconds(1.2), False, ""),
            (seconds(1.4, by_hand=1.2), True, ""),
            (seconds(1.4, plain=1.2), True, ""),
            (seconds(4.0, by_hand=4.0, limit=3.9), True, "bytes"),
            (seconds(4.0, by_hand=2.0, limit=3.9), True, ""),  # what somebody does faster is no limit
            (seconds(4.0, by_hand=2.0, fixed=3.5, fixed_by_hand=0.5), True, "call"),
            (seconds(4.0, by_hand=2.0, fixed=2.0, fixed_by_hand=1.9), True, ""),
            (seconds(4.0, fixed=0.1, fixed_by_hand=3.0), True, ""),
        ],
    )
    def test_above_the_bound_is_a_cliff_unless_a_limit_explains_it(self, times, cliff, explained):
        assert sweep.verdict(times, "bytes") == {"cliff": cliff, "explained": explained}

    def test_cliffs_are_listed_steepest_first(self, record):
        records = [with_ratio(record, "plain", value) for value in (1.2, 1.5, 4.0)]
        assert [found["name"] for found in sweep_report.steepest_first(records)] == ["plain 4.0", "plain 1.5"]
        assert sweep_report.rich_table(records, "").row_count == 2

    def test_limits_grow_with_visible_pairs_and_bits(self):
        sizes = shrunk(SHAPES["long"])
        full, causal = (bounds.bounds(Combination("long", sizes, mask), RATES, 1e-3) for mask in (None, "causal"))
        double = bounds.bounds(Combination("long", sizes, dtype="float64"), RATES, 1e-3)
        assert causal.products < full.products < double.products
        assert double.bytes == 2 * full.bytes

    def test_the_bytes_of_hidden_keys_are_not_needed(self):
        sizes = SHAPES["decode"]
        full, half = (bounds.bytes_moved(Combination("decode", sizes, mask)) for mask in (None, "prefix"))
        queries = 4 * sizes.heads * 2 * sizes.d
        assert half - queries == (full - queries) / 2

    def test_the_limit_is_arithmetic_or_bytes_or_the_call_or_blocks(self):
        plain = Combination("long", shrunk(SHAPES["long"]))
        full = bounds.bounds(plain, RATES, 1e-3)
        assert full.seconds == full.blocks == pytest.approx(1e-3)
        assert full.largest == "blocks"
        assert bounds.bounds(plain, RATES, 0.0).largest == "products"
        assert bounds.bounds(replace(plain, formula="sparsemax"), RATES, 1e-3).largest == "selection"
        assert bounds.bounds(replace(plain, formula="kernel"), RATES, 1e-3).blocks == 0

    @pytest.mark.parametrize("mask", [None, "window", "segments", "padding", "causal & allow"])
    def test_pairs_are_cut_into_blocks_that_are_clear_or_partial(self, mask):
        sizes = Sizes(n=150, batch=2, heads=1, m=201)
        visible = visible_pairs(mask, sizes).expand(2, 1, 150, 201)
        blocks = [part for rows in visible.split(BLOCK, -2) for part in rows.split(BLOCK, -1)]
        clear = sum(one.numel() for block in blocks for one in block if one.all())
        shown = sum(one.numel() for block in blocks for one in block if one.any())
        found = bounds.cut(visible_pairs(mask, sizes), sizes, BLOCK)
        assert [sum(block.clear for block in found), sum(block.partial for block in found)] == [clear, shown - clear]
        assert len(found) == 3
        assert all(0 < block.keys <= 201 for block in found)
        assert (mask is None) == all(block.keys == 201 and not block.partial for block in found)

    def test_a_sparse_mask_needs_less_than_the_plain_call_and_a_bias_more(self):
        plain = Combination("long", SHAPES["long"])
        window, biased = replace(plain, mask="window"), replace(plain, formula="bias")
        assert bounds.block_seconds(window, RATES, 1.0) < 0.3
        assert bounds.block_seconds(biased, RATES, 1.0) == pytest.approx(2.0, rel=1e-3)

    def test_few_keys_cost_more_by_the_measured_factor(self):
        plain = Combination("long", SHAPES["long"])
        segments, rows = replace(plain, mask="segments"), max(bounds.ROWS)
        slow = {kind: 1e-9 if kind == (rows, max(bounds.KEYS)) else 3e-9 for kind in KINDS}
        free = replace(RATES, call={True: 0.0, False: 0.0})
        even, uneven = (bounds.block_seconds(segments, one, 1.0) for one in (free, replace(free, pair=slow)))
        assert uneven == pytest.approx(3 * even)  # documents of 512 keys

    def test_scratch_memory_of_the_size_of_the_weights_is_reported(self, record):
        long = Combination("long", SHAPES["long"])
        assert long.for_memory().sizes.n == 2 * long.sizes.n
        assert long.matrix_bytes > BUDGET
        assert sweep.builds_matrix(long.matrix_bytes, long.matrix_bytes)
        assert not sweep.builds_matrix(long.matrix_bytes // 2, long.matrix_bytes)
        assert not sweep.builds_matrix(1 << 20, 1 << 16)  # one tile
        assert sweep_report.show_cliff(record | {"builds_matrix": True}) == "N X M"

    def test_a_broken_combination_is_recorded_and_stops_nothing(self):
        broken = sweep.measure(Combination("tiny", SHAPES["tiny"], "moonlight"), RATES, None)
        assert "moonlight" in broken["error"]
        assert "moonlight" in sweep_report.one_line(broken)
        assert len(sweep_report.cells(broken)) == len(sweep_report.COLUMNS)

    def test_an_interrupt_keeps_what_is_done(self, record):
        def one(combination):
            if combination is COMBINATIONS[2]:
                raise KeyboardInterrupt
            return record

        assert sweep.collect(COMBINATIONS, one, SILENT) == [record, record]

    def test_the_page_names_every_combination_with_its_plan(self, record):
        records = [record | {"name": "flat", "cliff": False}, with_ratio(record, "by_hand", 2.0)]
        page = sweep_report.page(document("sweep", records, {2: LIMIT}, Settings()))
        assert page.count("| flat |") == 1
        assert page.count("| by_hand 2.0 |") == 2  # among the cliffs, and in the whole table
        assert record["plan"] in page


@pytest.mark.skipif(not memory.supported(), reason="peaks are read from /proc")
def test_one_process_gives_the_peaks_of_many_lines():
    dense = next(one for one in COMBINATIONS if one.mode == "heatmap")
    with peaks("benchmarks.combinations", quick=True) as ask:
        assert all(ask(one.name).extra >= 0 for one in (COMBINATIONS[0], dense))
        assert ask("no such line") is None
        assert ask(dense.name) is not None


class TestGrowth:
    def test_the_slope_is_the_exponent(self):
        assert growth.slope([(n, 3 * n**1.5) for n in growth.SIZES]) == pytest.approx(1.5)
        assert growth.slope([(256, 1.0)]) is None

    def test_a_curve_ends_before_a_point_that_would_take_too_long(self):
        assert [n for n, _ in growth.climb([1, 2, 4, 8], float, most=5)] == [1, 2, 4]

    @pytest.mark.parametrize("name", growth.CURVES)
    def test_every_curve_runs_and_a_mask_hides_what_it_says(self, name):
        line = growth.line(name, 1024)
        x, curve = line.make(line.sizes), growth.CURVES[name]
        answer = line.ours(x)
        assert bool(answer.isfinite().all())
        if curve.ask is None:
            dense = rg.attend(x.q, x.k, x.v, mask=curve.mask(x), plan="dense").output
            assert difference(answer, dense) <= line.tolerance
        assert growth.find(line.name, quick=True).sizes == line.sizes

    def test_curves_are_drawn_and_tabled_in_both_languages(self, tmp_path):
        points = [(256, 1e-3, 4_000), (512, 2e-3, 8_000), (1024, 4e-3, 16_000)]
        stored = document("growth", [growth.record(name, points) for name in growth.CURVES], {2: LIMIT}, Settings())
        for language in ("en", "zh"):
            growth.draw(stored, language, tmp_path / f"{language}.png")
            assert (tmp_path / f"{language}.png").stat().st_size > 1_000
        assert "| causal | 1,024 | 0.004 s | 1.00 | 0.0 MB | 1.00 |" in growth.section(stored, "en")
        assert "| 因果 | 1,024 |" in growth.section(stored, "zh")


class TestSections:
    def test_sections_of_both_pages_are_filled_in_their_language(self, record, tmp_path):
        for name in PAGES:
            (tmp_path / name).parent.mkdir(parents=True)
            (tmp_path / name).write_text("{}{}{}{}".format(*report.region("sweep"), *report.region("growth")))
        write(
            document("sweep", [with_ratio(record, name, 2.5) for name in ("plain", "by_hand")], {2: LIMIT}, Settings()),
            tmp_path,
        )
        english, chinese = (path.read_text("utf-8") for path in surveys.fill_sections(tmp_path, tmp_path))
        assert "| by_hand 2.5 | 1.00 x | 2.50 x | 5.00 x | bytes |" in english
        assert "| plain 2.5 |" not in english  # nobody is faster by hand
        assert "| 组合 | / 普通调用 |" in chinese

    def test_quick_results_do_not_reach_the_pages(self, record, tmp_path):
        write(document("sweep", [record], {2: LIMIT}, Settings(quick=True)), tmp_path)
        with pytest.raises(ValueError, match="full run"):
            surveys.fill_sections(tmp_path, tmp_path)

    def test_pages_show_the_stored_results(self, tmp_path):
        before = {name: (memory.ROOT / name).read_text(encoding="utf-8") for name in PAGES}
        for name, text in before.items():
            (tmp_path / name).parent.mkdir(parents=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        surveys.fill_sections(tmp_path, memory.ROOT / "benchmarks" / "results")
        assert {name: (tmp_path / name).read_text(encoding="utf-8") for name in PAGES} == before


def test_ragged_documents_fill_the_sequence_and_the_first_fit_is_timed_in_its_own_process():
    assert sum(cliffs.ragged_lengths(8192)) == 8192
    assert cliffs.ragged_lengths(8192) == list(cliffs.RAGGED)
    assert sum(cliffs.ragged_lengths(512)) == 512
    assert json.loads(json.dumps(cliffs.first_fit(40, processes=1)))["first_seconds"] > 0
