"""The benchmark suite's own logic. Nothing here asserts on a time."""

import json
import math
from dataclasses import replace

import pytest
import torch

from benchmarks import machine, memory, records, report, suite
from benchmarks.goals import METRICS, Goal, Spread, words
from benchmarks.harness import Family, Line, Sizes, Work, contest, difference, orders
from benchmarks.machine import Limits
from benchmarks.records import DISAGREES, ERROR, PASS, REPORTED, SHORT, UNFINISHED, Settings
from benchmarks.tasks import make_tensors, maker, pairs_causal, pairs_window

BEGIN, END = report.region("benchmark")
LIMITS = {threads: Limits(matrix_gflops=100.0, copy_gb_per_second=10.0, exp_per_ns=1.0) for threads in (1, 2)}
SETTINGS = Settings(rounds=3, memory=False)
PAGES = ("README.md", "README.zh.md", "docs/en/benchmarks.md", "docs/zh/benchmarks.md")


def pooled(x):
    return torch.softmax(x.q @ x.k.mT, -1) @ x.v


@pytest.fixture(scope="module")
def line():
    """A function against itself."""
    return Line(
        name="trivial/itself",
        family=Family(words("trivial", "平凡"), words("itself", "自身")),
        sizes=Sizes(n=32, heads=2, d=5, d_v=3),
        make=maker(gradients=True),
        ours=pooled,
        peers={"one": pooled, "other": pooled},
        work=Work(flops=1e6, exps=1e3),
        goals=("time_ratio <= 1000000",),
        gradients=True,
        threads=1,
    )


@pytest.fixture(scope="module")
def document(line):
    record = records.measure(line, LIMITS, SETTINGS)
    return records.document("trivial", [record], LIMITS, SETTINGS)


@pytest.fixture(autouse=True)
def same_threads_afterwards():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


class TestRace:
    def test_a_function_against_itself_has_a_finite_ratio_and_the_same_answer(self, line):
        outcome = contest(line, rounds=4)
        spread = outcome.timing.metrics()["time_ratio"]
        assert math.isfinite(spread.median)
        assert spread.q1 <= spread.median <= spread.q3
        assert outcome.difference == 0

    def test_every_round_times_both(self, line):
        timing = contest(line, rounds=4).timing
        assert len(timing.ours) == len(timing.theirs) == 4
        assert timing.peer in timing.pilots
        assert timing.pilots.keys() == {"one", "other"}

    def test_ours_and_theirs_alternate_who_goes_first(self):
        assert [first for first, _ in orders(4)] == ["theirs", "ours", "theirs", "ours"]

    def test_a_peer_that_did_a_share_of_the_work_is_charged_for_all_of_it(self, line):
        def one_of_four(x):
            return pooled(replace(x, q=x.q[..., ::4, :]))

        outcome = contest(replace(line, peers={"some": one_of_four}, peer_share=0.25, gradients=False), rounds=2)
        timing = outcome.timing
        assert outcome.difference is None
        assert timing.scaled(0.5).theirs == [2 * took for took in timing.theirs]
        assert timing.scaled(0.5).ours == timing.ours

    def test_a_chained_line_finds_what_the_peer_left(self, line):
        def leave(x):
            x.more["left"] = x.q.sum()
            return x.more["left"]

        chained = replace(
            line, ours=lambda x: x.more.pop("left"), peers={"leave": leave}, gradients=False, chained=True
        )
        assert contest(replace(chained, name="trivial/chained"), rounds=2).difference is None

    def test_difference_is_relative_and_refuses_other_shapes(self):
        assert difference((torch.tensor([2.0, 1.0]),), (torch.tensor([2.0, 2.0]),)) == pytest.approx(0.5)
        with pytest.raises(ValueError, match="differ in shape"):
            difference(torch.ones(2), torch.ones(3))

    def test_inputs_are_the_same_every_time(self):
        first, second = (make_tensors(Sizes(n=7, heads=3, d=5, d_v=2)) for _ in range(2))
        assert first.q.shape == (1, 3, 7, 5)
        assert first.v.shape == (1, 3, 7, 2)
        assert torch.equal(first.q, second.q)


@pytest.mark.parametrize("group", suite.GROUPS)
def test_contestants_of_every_line_give_the_same_answer_on_a_small_version(group):
    for line in (line.shrunk() for line in suite.GROUPS[group](True) if line.comparable):
        x = line.make(line.sizes)
        ours = line.contestant(line.ours)(x)
        for peer in line.peers.values():
            assert difference(ours, line.contestant(peer)(x)) <= line.tolerance, line.name


class TestGoals:
    @pytest.mark.parametrize("quick", [False, True])
    def test_every_line_has_its_own_name_goals_that_parse_and_work(self, quick):
        lines = [line for group in suite.all_lines(quick=quick).values() for line in group]
        assert len({line.name for line in lines}) == len(lines)
        for line in lines:
            assert all(goal.metric in METRICS for goal in line.parsed_goals())
            assert (line.work.flops > 0) != line.name.endswith("/open"), "to open a file is no arithmetic"
            assert suite.find(line.name, quick=quick).sizes == line.sizes

    def test_goals_on_memory_come_with_a_measurement_of_memory(self):
        for line in (line for group in suite.all_lines(quick=False).values() for line in group):
            wants = any(goal.metric.startswith("memory") for goal in line.parsed_goals())
            assert line.memory or line.quality is not None or not wants, line.name  # some measure their own peak

    def test_a_goal_reads_fractions_and_judges_both_ways(self):
        least, most = Goal.parse("speedup >= 2.5"), Goal.parse("memory_ratio <= 1/50")
        assert least.met_by(2.5)
        assert not least.met_by(2.4)
        assert most.bound == pytest.approx(0.02)
        assert most.show("en") == "share of its memory ≤ 1/50"
        assert least.show("zh") == "速度 ≥ 2.5 x"

    @pytest.mark.parametrize("text", ["speedup > 2", "beauty >= 2", "speedup >= fast"])
    def test_a_goal_nobody_can_read_is_refused(self, text):
        with pytest.raises(ValueError, match="a goal reads"):
            Goal.parse(text)

    def test_a_verdict_follows_from_goals_and_measurements(self, line):
        metrics = {"time_ratio": Spread.of([2.0, 1.0, 3.0])}
        judge = lambda goals, apart=0.0: records.verdict(replace(line, goals=goals), metrics, apart)  # noqa: E731
        assert judge(("time_ratio <= 2",)) == PASS
        assert judge(("time_ratio <= 1.9",)) == SHORT
        assert judge(()) == REPORTED
        assert judge(("time_ratio <= 2", "memory_mb <= 64")) == UNFINISHED
        assert judge(("time_ratio <= 2",), apart=0.5) == DISAGREES
        assert judge(("time_ratio <= 2",), apart=math.nan) == DISAGREES

    def test_names_select_groups_or_parts_of_them(self):
        assert suite.select(["additive"], quick=True).keys() == {"additive"}
        assert [line.name for line in suite.select(["additive/forward"], quick=True)["additive"]] == [
            "additive/forward"
        ]
        with pytest.raises(SystemExit, match="no line is called nothing"):
            suite.select(["nothing"], quick=True)

    @pytest.mark.parametrize("n", [5, 300])
    def test_visible_pairs_are_counted_right(self, n):
        i = torch.arange(n)
        back = i[:, None] - i
        assert pairs_causal(n) == int((back >= 0).sum())
        assert pairs_window(n, 256) == int(((back >= 0) & (back <= 256)).sum())


class TestRecords:
    def test_a_result_file_holds_versions_machine_limits_and_lines(self, document, tmp_path):
        stored = json.loads(records.write(document, tmp_path).read_text())
        assert stored.keys() == {"group", "date", "quick", "versions", "machine", "limits", "lines"}
        assert stored["versions"].keys() == {"python", "regard", "torch", "numpy"}
        assert stored["machine"].keys() == {"cpu", "cores", "system", "vector"}
        (record,) = stored["lines"]
        described = {
            "name",
            "work",
            "against",
            "shapes",
            "peer_shapes",
            "peer_share",
            "dtype",
            "gradients",
            "threads",
            "goals",
        }
        measured = {"times", "metrics", "memory", "memory_peer", "shares", "difference", "verdict"}
        assert record.keys() == described | measured
        assert record["shapes"] == {"batch": 1, "n": 32, "heads": 2, "d": 5, "d_v": 3}
        assert records.read_all(tmp_path, ["absent", "trivial"]) == [stored]

    def test_a_broken_contestant_is_recorded_and_stops_nothing(self, line):
        def broken(_):
            raise RuntimeError("no such kernel\nand more")

        record = records.measure(replace(line, ours=broken), LIMITS, SETTINGS)
        assert record["verdict"] == ERROR
        assert record["error"] == "RuntimeError: no such kernel"
        assert ERROR in report.cells(record)

    def test_shares_of_the_limit(self, line):
        assert machine.shares(line, 1e-3, LIMITS[2]) == pytest.approx({"matrix": 0.01, "exp": 1e-3})


@pytest.mark.skipif(not memory.supported(), reason="peaks are read from /proc")
class TestMemory:
    def test_the_peak_counts_what_is_held_and_freed(self, line):
        def greedy(x):
            return torch.ones(2**24).sum() + x.q.sum()  # 64 MiB for a moment

        peak = memory.peak_of(replace(line, ours=greedy, gradients=False), greedy)
        assert 2**26 * 0.9 < peak.extra < 2**26 * 1.5

    def test_results_are_counted_once(self):
        kept = torch.ones(1000)
        assert memory.result_bytes((kept, (kept.view(10, 100),))) == 4000

    def test_a_line_is_measured_in_a_process_of_its_own(self):
        peak = memory.in_fresh_process(suite.find("additive/forward", quick=True), "broadcast", quick=True)
        assert peak.extra > 512 * 512 * 128 * 4


class TestReport:
    def test_filling_a_region_is_idempotent_and_keeps_the_rest(self, document):
        text = f"before\n{BEGIN}\nold\n{END}\nafter\n"
        table = report.summary([document], "en")
        once = report.fill(text, table)
        assert report.fill(once, table) == once
        assert once.startswith("before\n")
        assert once.endswith("\nafter\n")
        assert "old" not in once

    def test_a_text_without_the_region_is_refused(self):
        with pytest.raises(ValueError, match="benchmark:begin"):
            report.fill(f"{END} {BEGIN}", "table")

    def test_readmes_and_pages_are_filled_in_their_language(self, document, tmp_path, monkeypatch):
        monkeypatch.setattr(report, "HIGHLIGHTS", ("trivial/",))
        for name in PAGES:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(f"{BEGIN}{END}", encoding="utf-8")
        written = report.fill_pages(tmp_path, [document])
        english, chinese, english_page, chinese_page = (path.read_text(encoding="utf-8") for path in written)
        assert "| work | against | measured |" in english
        assert "| 任务 | 对照 | 实测 |" in chinese
        assert "| work | against | goal | measured | verdict |" in english_page
        assert "| 任务 | 对照 | 目标 | 实测 | 结论 |" in chinese_page
        assert "| 平凡 | 自身 |" in chinese and "| 平凡 | 自身 |" in chinese_page

    def test_readmes_and_pages_show_the_stored_results(self, tmp_path):
        before = {name: (memory.ROOT / name).read_text(encoding="utf-8") for name in PAGES}
        for name, text in before.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        report.fill_pages(tmp_path, records.read_all(memory.ROOT / "benchmarks" / "results", suite.GROUPS))
        assert {name: (tmp_path / name).read_text(encoding="utf-8") for name in PAGES} == before

    def test_every_highlight_is_a_row(self):
        stored = records.read_all(memory.ROOT / "benchmarks" / "results", suite.GROUPS)
        assert report.highlights(stored, "en").count("\n") == 1 + len(report.HIGHLIGHTS)

    def test_quick_results_do_not_reach_the_readmes(self, document, tmp_path):
        with pytest.raises(ValueError, match="full run"):
            report.fill_pages(tmp_path, [document | {"quick": True}])

    def test_a_range_spans_the_lines_that_share_a_row(self, document):
        (record,) = document["lines"]
        low, high = (with_ratio(record, value) for value in (0.98, 1.04))
        assert "time 0.98 x – 1.04 x" in report.summary([document | {"lines": [high, low]}], "en")

    def test_the_page_has_a_row_for_every_line(self, document):
        page = report.results_page([document])
        assert page.count("trivial/itself") == 1
        assert document["versions"]["torch"] in page


def with_ratio(record, value):
    return record | {"metrics": {"time_ratio": {"median": value, "q1": value, "q3": value}}}
