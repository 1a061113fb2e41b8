"""Draw docs/images/speed.png from the stored results: python -m benchmarks.speed_picture"""

from __future__ import annotations

from matplotlib.axes import Axes

from benchmarks.memory import ROOT
from benchmarks.records import Record, read_all
from benchmarks.suite import GROUPS
from regard import plot

PICTURE = ROOT / "docs" / "images" / "speed.png"
BARS = {  # name of a line -> (work, peer)
    "attend/n4096/full/forward": ("attend, n = 4,096", "torch's fused kernel"),
    "record/n4096/eager": ("record a model, n = 4,096", "output_attentions=True"),
    "gaussian/d15/forward": ("Gaussian score, d = 15", "eager softmax"),
    "questions/n8192/causal": ("five questions, n = 8,192", "the dense matrix"),
    "regression_pairs/keops": ("kernel regression, d = 5", "KeOps"),
    "additive/forward": ("additive score, h = 128", "the broadcast formula"),
    "window/n8192": ("window of 256, n = 8,192", "a boolean mask"),
    "regression_fast/keops/d1": ("kernel regression, n = 10$^6$, d = 1", "KeOps at 1 query in 1,000"),
    "regression_bandwidth/n10000-d1": ("bandwidth, n = 10$^4$", "statsmodels"),
}
OURS, PARITY = "#1f6f8b", "#888888"


def records_by_name() -> dict[str, Record]:
    documents = read_all(ROOT / "benchmarks" / "results", GROUPS)
    return {record["name"]: record for document in documents for record in document["lines"]}


def draw(ax: Axes, records: dict[str, Record]) -> None:
    speeds = [records[name]["metrics"]["speedup"]["median"] for name in BARS]
    labels = [f"{work}\nagainst {peer}" for work, peer in BARS.values()]
    bars = ax.barh(labels, [speed - 1 for speed in speeds], left=1, color=OURS, height=0.6)
    ax.bar_label(bars, [f"{speed:.1f} x" if speed < 10 else f"{speed:.0f} x" for speed in speeds], padding=4)
    ax.axvline(1, color=PARITY, linewidth=1)
    ax.set_xscale("log")
    ax.set_xlim(0.9, 1500)
    ax.set_xticks([1, 10, 100, 1000], ["1 x", "10 x", "100 x", "1,000 x"])
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set_xlabel("times as fast, on two cores")


def main() -> None:
    figure = plot.Picture(figsize=(8.4, 5.0), layout="constrained")
    draw(figure.add_subplot(), records_by_name())
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
