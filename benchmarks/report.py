"""Records as tables: on the terminal, in results/README.md, in docs/*/benchmarks.md and, five rows, in the READMEs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from rich.table import Column, Table

from benchmarks.goals import METRICS, Goal, Metric
from benchmarks.machine import Limits
from benchmarks.memory import OURS
from benchmarks.records import ERROR, MB, PASS, REPORTED, SHORT, UNFINISHED, Record

COLUMNS = (
    "work",
    "peer",
    "goal",
    "measured",
    "IQR",
    "time: regard",
    "time: peer",
    "memory: regard",
    "memory: peer",
    "of the limit",
    "verdict",
)
COLOURS = {PASS: "green", UNFINISHED: "green", SHORT: "red", REPORTED: "dim"}
HEADS = {
    "en": ("work", "against", "goal", "measured", "verdict"),
    "zh": ("任务", "对照", "目标", "实测", "结论"),
}
VERDICTS = {"en": {PASS: "PASS", SHORT: "FALLS SHORT"}, "zh": {PASS: "达标", SHORT: "未达标"}}
HIGHLIGHTS = (  # the rows of the READMEs: the beginning of a line's name
    "attend/",
    "window/n8192",
    "questions/n8192/causal",
    "record/n4096/eager",
    "regression_bandwidth/n10000",
)
HIGHLIGHT_HEADS = {"en": ("work", "against", "measured"), "zh": ("任务", "对照", "实测")}
RESULTS_LINK = "[benchmarks/results](../../benchmarks/results/README.md)"
NOTES = {
    "en": f"""{{cpu}}, {{threads}} threads, torch {{torch}}, {{date}}; H = 8, d = 64 unless said otherwise. Matrix
products reach {{gflops:.0f}} GFLOP/s on this machine. Medians over interleaved rounds of the ratio within a round; a
range spans several sizes. Every line with its times, memory and share of the machine's limit: {RESULTS_LINK}.""",
    "zh": f"""{{cpu}}，{{threads}} 线程，torch {{torch}}，{{date}}；未注明时 H = 8，d = 64。
本机矩阵乘法可达 {{gflops:.0f}} GFLOP/s。数字为交错轮次中轮内之比的中位数，
区间涵盖多种规模。各行的耗时、内存及占机器极限的比例见 {RESULTS_LINK}。""",
}
INTRODUCTION = """Made by `python -m benchmarks` from the JSON files beside it; do not edit. Figures are medians over
interleaved rounds of the ratio within a round, with the quartiles beside them. Memory is the peak above inputs and
results, in a process of its own. `of the limit` says which part of regard's time the task's matrix products (mm) and
exponentials (exp) would take at the best rates measured in the same run."""


def show_time(seconds: float) -> str:
    for unit, factor, below in (("us", 1e6, 1e-3), ("ms", 1e3, 1.0)):
        if seconds < below:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def show_memory(peak: Mapping[str, int] | None) -> str:
    return "" if peak is None else f"{peak['extra'] / MB:.1f} MB"


def main_metric(record: Record) -> str:
    """The metric a line is read by: that of its first goal, else the ratio of times."""
    return Goal.parse(record["goals"][0]).metric if record["goals"] else "time_ratio"


def show_spread(metric: Metric, spread: Mapping[str, float]) -> str:
    return f"{spread['q1']:.{metric.decimals}f}-{spread['q3']:.{metric.decimals}f}"


def cells(record: Record) -> tuple[str, ...]:
    """A record as the texts under COLUMNS."""
    goal = "; ".join(Goal.parse(text).show() for text in record["goals"])
    if record["verdict"] == ERROR:
        return (record["name"], record["against"]["en"], goal, record["error"], *[""] * 6, ERROR)
    name = main_metric(record)
    metric, spread, times, memory = METRICS[name], record["metrics"][name], record["times"], record["memory"]
    return (
        record["name"],
        times["peer"],
        goal,
        f"{metric.label['en']} {metric.show(spread['median'])}",
        show_spread(metric, spread),
        show_time(times["ours_seconds"]),
        show_time(times["peer_seconds"]),
        show_memory(memory.get(OURS)),
        show_memory(memory.get(record.get("memory_peer", times["peer"]))),
        f"{record['shares']['matrix']:.0%} mm, {record['shares']['exp']:.0%} exp",
        record["verdict"],
    )


def rich_table(records: Iterable[Record], title: str) -> Table:
    table = Table(*(Column(name, overflow="fold") for name in COLUMNS), title=title)
    for record in records:
        table.add_row(*cells(record), style=COLOURS.get(record["verdict"], "bold red"))
    return table


def one_line(record: Record) -> str:
    """A record while the run goes on: name, figure, verdict."""
    name, _, goal, measured, *_, verdict = cells(record)
    return f"{name}: {measured}{f' (goal: {goal})' if goal else ''}: {verdict}"


def show_limits(limits: Mapping[int, Limits]) -> str:
    return "limits of the machine: " + "; ".join(show_rates(*pair) for pair in limits.items())


def show_rates(threads: int, rates: Limits) -> str:
    speeds = (
        f"{rates.matrix_gflops:.0f} GFLOP/s, copy {rates.copy_gb_per_second:.1f} GB/s, {rates.exp_per_ns:.2f} exp/ns"
    )
    return f"{threads} thread{'s' * (threads > 1)}: {speeds}"


def markdown(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = tuple(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def results_page(documents: list[Record]) -> str:
    """results/README.md: every line of every document."""
    parts = ["# Benchmark results", INTRODUCTION]
    for document in documents:
        parts += [f"## {document['group']}", provenance(document), markdown(COLUMNS, map(cells, document["lines"]))]
    return "\n\n".join(parts) + "\n"


def provenance(document: Record) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in document["versions"].items())
    rates = {int(threads): Limits(**values) for threads, values in document["limits"].items()}
    quick = " **Quick run: sizes and rounds reduced.**" if document["quick"] else ""
    machine = "{cpu}, {cores} cores, {vector}".format_map(document["machine"])
    return f"{document['date']}; {machine}; {versions}; {show_limits(rates)}.{quick}"


def grouped(documents: list[Record], language: str) -> dict[tuple[str, str, tuple[str, ...]], list[Record]]:
    """Lines with goals, grouped by work, peer and goals: each group is one row of a table."""
    rows: dict[tuple[str, str, tuple[str, ...]], list[Record]] = {}
    for record in (record for document in documents for record in document["lines"] if record["goals"]):
        key = (record["work"][language], record["against"][language], tuple(record["goals"]))
        rows.setdefault(key, []).append(record)
    return rows


def summary(documents: list[Record], language: str) -> str:
    """The table of docs/*/benchmarks.md: all rows, with goals and verdicts. Lines without goals stay in results/."""
    rows = (summary_row(*key, records, language) for key, records in grouped(documents, language).items())
    return markdown(HEADS[language], rows) + "\n\n" + note(documents, language)


def highlights(documents: list[Record], language: str) -> str:
    """The table of the READMEs: the rows of HIGHLIGHTS, without goals."""
    rows: dict[str, tuple[str, ...]] = {}
    for key, records in grouped(documents, language).items():
        for start in HIGHLIGHTS:
            if records[0]["name"].startswith(start):
                work, peer, _, measured, _ = summary_row(*key, records, language)
                rows[start] = (work, peer, measured)
    return markdown(HIGHLIGHT_HEADS[language], (rows[start] for start in HIGHLIGHTS if start in rows))


def summary_row(work: str, peer: str, goals: tuple[str, ...], records: list[Record], language: str) -> tuple[str, ...]:
    parsed = [Goal.parse(text) for text in goals]
    verdicts = [record["verdict"] for record in records]
    verdict = next((word for word in verdicts if word != PASS), PASS)
    shown = VERDICTS[language].get(verdict, verdict)
    reached = f" ({verdicts.count(PASS)}/{len(records)} {VERDICTS[language][PASS]})"
    return (
        work,
        peer,
        "; ".join(goal.show(language) for goal in parsed),
        "; ".join(measured_range(goal, records, language) for goal in parsed),
        shown if len(records) == 1 or verdict == PASS else shown + reached,
    )


def measured_range(goal: Goal, records: list[Record], language: str) -> str:
    metric = METRICS[goal.metric]
    spreads = (record.get("metrics", {}).get(goal.metric) for record in records)
    found = sorted(spread["median"] for spread in spreads if spread)
    if not found:
        return f"{metric.label[language]}: -"
    shown = list(dict.fromkeys(metric.show(value) for value in (found[0], found[-1])))
    return f"{metric.label[language]} " + " – ".join(shown)


def note(documents: list[Record], language: str) -> str:
    first = documents[0]
    threads = max(first["limits"], key=int)
    return NOTES[language].format(
        cpu=first["machine"]["cpu"],
        threads=threads,
        torch=first["versions"]["torch"],
        date=max(document["date"] for document in documents),
        gflops=first["limits"][threads]["matrix_gflops"],
    )


def region(name: str) -> tuple[str, str]:
    """Return the two comments of a page between which a table stands."""
    return f"<!-- {name}:begin -->", f"<!-- {name}:end -->"


def fill(text: str, table: str, name: str = "benchmark") -> str:
    """Return `text` with the table between the two comments of a name, in place of what was there."""
    first, last = region(name)
    before, begin, rest = text.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(
            f"the table goes between the comments {first} and {last}: the text does not hold both, in order"
        )
    return f"{before}{first}\n{table}\n{last}{after}"


def fill_pages(root: Path, documents: list[Record]) -> list[Path]:
    """Renew the tables of both READMEs and both pages docs/*/benchmarks.md; results of a quick run are refused."""
    if not documents or any(document["quick"] for document in documents):
        raise ValueError("the READMEs take results of a full run; run `python -m benchmarks` without --quick first")
    tables = {
        root / "README.md": highlights(documents, "en"),
        root / "README.zh.md": highlights(documents, "zh"),
        root / "docs" / "en" / "benchmarks.md": summary(documents, "en"),
        root / "docs" / "zh" / "benchmarks.md": summary(documents, "zh"),
    }
    for path, table in tables.items():
        path.write_text(fill(path.read_text(encoding="utf-8"), table), encoding="utf-8")
    return list(tables)
