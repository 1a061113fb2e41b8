"""The records of a sweep as tables: on the terminal, in results/sweep.md and in docs/*/benchmarks.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rich.table import Column, Table

from benchmarks.records import MB, Record
from benchmarks.report import RESULTS_LINK, markdown, provenance, show_time

CLIFF = 1.3  # times the plain call per visible pair, or the code by hand
COLUMNS = (
    "combination", "time", "fixed cost", "ns per pair", "/ plain", "/ by hand", "by hand", "/ limit", "limit",
    "extra memory", "cliff", "plan",
)  # fmt: skip
HEADS = {
    "en": ("combination", "/ plain call", "/ by hand", "/ limit", "limit"),
    "zh": ("组合", "/ 普通调用", "/ 手写", "/ 极限", "极限"),
}
LIMITS = {
    "products": {"en": "matrix products", "zh": "矩阵乘法"},
    "exponentials": {"en": "exponentials", "zh": "指数运算"},
    "passes": {"en": "passes over the scores", "zh": "对分数的逐元素运算"},
    "selection": {"en": "selection of the largest scores", "zh": "选出最大的分数"},
    "bytes": {"en": "bytes", "zh": "字节"},
    "call": {"en": "fixed cost of a call", "zh": "调用的固定开销"},
    "blocks": {"en": "whole blocks of pairs", "zh": "整块的点对"},
}
SUMMARY = {
    "en": "{count} combinations of shape, mask, score, dtype and mode were measured; {cliffs} take more than 1.3 x the"
    " time of the plain call per visible pair, or of the fastest code by hand. {explained} of these are explained by"
    " a limit ({reasons}), {open} are not. In {beaten} of those, which are listed here, code by hand is more than 1.3 x"
    " faster; in the others nobody is, but the limit is farther away than 1.3 x. {matrices} build n x m weights. Every"
    " combination with its limit, plan and memory: {link}.",
    "zh": "共测量 {count} 种形状、掩码、打分、精度与方式的组合；其中 {cliffs} 种每个可见点对的耗时超过普通调用的"
    " 1.3 倍，或超过最快手写代码的 1.3 倍。{explained} 种可由极限解释（{reasons}），{open} 种不能。其中下表的 {beaten}"
    " 种，手写代码快 1.3 倍以上；其余的没有更快的手写代码，只是距极限超过 1.3 倍。"
    "{matrices} 种会建立 n x m 权重。各组合的极限、方案与内存见 {link}。",
}
INTRODUCTION = """Made by `python -m benchmarks sweep`; do not edit. A name reads shape/mask/score/dtype/mode. `/ plain`
is the time per visible pair and head against the unmasked call of the same shape, `/ by hand` the time against the
fastest code that a user could write, for which tables of n x m are made outside of the timing. Above 1.3 x of one of
them is a cliff.

`/ limit` is the time against the largest of: matrix products, exponentials, element-wise passes and selections of the
visible pairs at the best rates of this machine; the bytes of queries, keys and results; a call of the kernel without
work; and `blocks`, the time of the plain call for the blocks of 64 keys that hold a visible pair, cut into calls of 64
rows or more, where few rows, few keys and a bias cost more by measured factors. A cliff is explained by its limit if it
takes at most 1.3 x of it and of the code by hand. It is explained by `call` if that would be so with the fixed cost of
the code by hand in place of ours; `fixed cost` is the time of ours on 16 queries and keys. Extra memory is the peak
above inputs and results, at twice the length for the shapes long and grouped; n x m is what all weights would take
then."""


def cells(record: Record) -> tuple[str, ...]:
    """Return a record as the texts under COLUMNS."""
    if "error" in record:
        return (record["name"], record["error"], *[""] * (len(COLUMNS) - 3), "error", "")[: len(COLUMNS)]
    ratios = record["ratios"]
    return (
        record["name"],
        show_time(record["seconds"]["ours"]),
        show_time(record["seconds"]["fixed"]),
        f"{record['ns_per_pair']:.3g}",
        f"{ratios['plain']:.2f}",
        f"{ratios['by_hand']:.2f}",
        record["by_hand"],
        f"{ratios['limit']:.2f}",
        record["limit"],
        show_extra(record),
        show_cliff(record),
        record["plan"],
    )


def show_extra(record: Record) -> str:
    extra = record["extra_bytes"]
    return "" if extra is None else f"{extra / MB:.1f} MB (n x m: {record['matrix_bytes'] / MB:.1f})"


def show_cliff(record: Record) -> str:
    if record["differs"]:
        return "DIFFERS"
    if record.get("builds_matrix"):
        return "N X M"
    return (record["explained"] or "CLIFF") if record["cliff"] else ""


def steepest_first(records: Iterable[Record]) -> list[Record]:
    """Return the cliffs: those that nothing explains first, then by how much they are above."""

    def order(record: Record) -> tuple[bool, float]:
        ratios = record.get("ratios", {"plain": float("inf")})
        return bool(record["explained"]), -max(ratios[name] for name in ratios if name != "limit")

    return sorted((record for record in records if record["cliff"]), key=order)


def one_line(record: Record) -> str:
    if "error" in record:
        return f"{record['name']}: {record['error']}"
    ratios = record["ratios"]
    return (
        f"{record['name']}: {record['ns_per_pair']:.3g} ns, {ratios['plain']:.2f} x plain, "
        f"{ratios['by_hand']:.2f} x by hand, {ratios['limit']:.1f} x limit {show_cliff(record)}"
    )


def rich_table(records: list[Record], title: str) -> Table:
    table = Table(*(Column(name, overflow="fold") for name in COLUMNS), title=title)
    for record in steepest_first(records):
        table.add_row(*cells(record), style="" if record["explained"] else "red")
    return table


def page(document: Record) -> str:
    """Return results/sweep.md: the cliffs, then every combination."""
    records = document["lines"]
    cliffs = markdown(COLUMNS, map(cells, steepest_first(records)))
    everything = markdown(COLUMNS, map(cells, records))
    parts = ["# Sweep", INTRODUCTION, provenance(document), "## Cliffs", cliffs, "## Every combination", everything]
    return "\n\n".join(parts) + "\n"


def section(document: Record, language: str) -> str:
    """Return the part of docs/*/benchmarks.md: a sentence, and the cliffs that code by hand does not have."""
    records = document["lines"]
    cliffs = steepest_first(records)
    unexplained = [record for record in cliffs if not record["explained"]]
    beaten = [record for record in unexplained if "error" not in record and record["ratios"]["by_hand"] > CLIFF]
    beaten.sort(key=lambda record: -record["ratios"]["by_hand"])
    reasons = Counter(record["explained"] for record in cliffs if record["explained"])
    listed = ", ".join(f"{LIMITS[name][language]} {count}" for name, count in reasons.most_common())
    sentence = SUMMARY[language].format(
        count=len(records),
        cliffs=len(cliffs),
        explained=reasons.total(),
        reasons=listed or "0",
        open=len(unexplained),
        beaten=len(beaten),
        matrices=sum(bool(record.get("builds_matrix")) for record in records),
        link=RESULTS_LINK.replace("README.md", "sweep.md").replace("[benchmarks/results]", "[sweep.md]"),
    )
    return sentence + "\n\n" + markdown(HEADS[language], (row(record, language) for record in beaten))


def row(record: Record, language: str) -> tuple[str, ...]:
    ratios = (f"{record['ratios'][name]:.2f} x" for name in ("plain", "by_hand", "limit"))
    return (record["name"], *ratios, LIMITS[record["limit"]][language])
