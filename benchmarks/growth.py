"""How time and memory of attend and of five questions grow with n: python -m benchmarks growth

One head of d = 64, from 2^8 to 2^17 positions; documents of 512 tokens, a window of 256, padding in a batch of two, of
which one has half the length. A curve ends before a point that takes more than a minute. Writes results/growth.json
and, from it, docs/images/growth.png and growth-zh.png; `python -m benchmarks.growth` draws the stored curves again.
"""

from __future__ import annotations

import json
import math
import signal
import statistics
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from rich.console import Console
from torch import Tensor

import regard as rg
from benchmarks import machine, memory
from benchmarks.goals import Text, words
from benchmarks.harness import Family, Line, Sizes, Tensors, bind, pilot, settled_heap
from benchmarks.memory import ROOT
from benchmarks.peaks import AskPeak, peaks
from benchmarks.records import MB, Record, Settings, document, write
from benchmarks.report import markdown
from benchmarks.tasks import attention_work, make_tensors, pairs_full
from regard import masks
from regard.masks import Mask
from regard.plot._fonts import families_for

GROUP = "growth"
TABLE = ROOT / "benchmarks" / "results" / "growth.json"
PICTURES = {language: ROOT / "docs" / "images" / f"growth{end}.png" for language, end in (("en", ""), ("zh", "-zh"))}
SIZES, QUICK_SIZES = [2**k for k in range(8, 18)], [2**k for k in range(8, 12)]
MAX_SECONDS = 60.0
DOCUMENT, LEFT, ROWS, TOP = 512, 256, 64, 8
LAST_POINTS = 4  # of a curve give its slope; before them the fixed cost of a call is seen
HEADS = {"en": ("work", "longest n", "time", "slope of time", "memory", "slope of memory"),
         "zh": ("任务", "最大 n", "耗时", "耗时的斜率", "内存", "内存的斜率")}  # fmt: skip
AXES = {"en": ("positions n", "seconds", "extra memory, MB"), "zh": ("位置数 n", "秒", "额外内存（MB）")}
TITLES = words("Time and memory against n", "耗时与内存随 n 的增长")
Once = Callable[[int], float]


@dataclass(frozen=True)
class Curve:
    """Work that is done at every n."""

    label: Text
    mask: Callable[[Tensors], Mask | None] = lambda _: None
    ask: Callable[[rg.Weights], Tensor] | None = None
    batch: int = 1

    def run(self, x: Tensors) -> Tensor:
        if self.ask:
            return self.ask(rg.Weights(x.q, x.k))
        return rg.attend(x.q, x.k, x.v, mask=self.mask(x)).output


CURVES = {
    "plain": Curve(words("attend", "attend")),
    "causal": Curve(words("causal", "因果"), lambda _: masks.causal()),
    "window": Curve(words(f"window {LEFT}", f"窗口 {LEFT}"), lambda _: masks.window(LEFT, 0)),
    "packed": Curve(
        words(f"documents of {DOCUMENT}", f"长 {DOCUMENT} 的文档"), lambda x: masks.segments(x.more["ids"])
    ),
    "padded": Curve(words("padding", "padding"), lambda x: masks.padding(x.more["lengths"]), batch=2),
    "entropy": Curve(words("entropy"), ask=lambda weights: weights.entropy()),
    "received": Curve(words("received"), ask=lambda weights: weights.received()),
    "top": Curve(words(f"top({TOP})"), ask=lambda weights: weights.top(TOP).values),
    "heatmap": Curve(words("heatmap"), ask=lambda weights: weights.heatmap()),
    "rows": Curve(words(f"{ROWS} rows", f"{ROWS} 行"), ask=lambda weights: weights[..., :ROWS, :]),
}


def make(sizes: Sizes) -> Tensors:
    lengths = torch.tensor([sizes.n // 2, sizes.n])[-sizes.batch :]
    return replace(make_tensors(sizes), more={"ids": torch.arange(sizes.n) // DOCUMENT, "lengths": lengths})


def line(name: str, n: int) -> Line:
    curve = CURVES[name]
    sizes = Sizes(n=n, heads=1, batch=curve.batch)
    return Line(
        name=f"{name}/{n}",
        family=Family(curve.label, words("itself", "自身")),
        sizes=sizes,
        make=make,
        ours=curve.run,
        peers={},
        work=attention_work(sizes, pairs_full(n), gradients=False),
    )


def find(name: str, *, quick: bool) -> Line:
    del quick  # every n has its own line
    curve, n = name.split("/")
    return line(curve, int(n))


def once(name: str, n: int) -> float:
    """Return the seconds of one size: the best of three, or of one if it is long."""
    one = line(name, n)
    run = bind(one.ours, one.make(one.sizes))
    with settled_heap():
        return pilot(run)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TimeoutError if the block takes longer."""

    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def climb(sizes: Sequence[int], measure: Once, most: float = MAX_SECONDS) -> Iterator[tuple[int, float]]:
    """Yield (n, seconds) from the smallest n up, until a point would take longer than `most` seconds."""
    measure(sizes[0])  # loads libraries
    last: tuple[int, float] | None = None
    for n in sizes:
        if last and last[1] * n / last[0] > most:
            return
        try:
            with within(most):
                took = measure(n)
        except TimeoutError:
            return
        last = (n, took)
        yield last


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the exponent p of y ~ n^p at the upper end of a curve, by least squares of the logarithms."""
    logs = [(math.log(n), math.log(y)) for n, y in points[-LAST_POINTS:] if y > 0]
    if len(logs) < 2:
        return None
    return statistics.linear_regression(*zip(*logs, strict=True)).slope


def record(name: str, points: list[tuple[int, float, int | None]]) -> Record:
    known = [(n, extra) for n, _, extra in points if extra is not None]
    slopes = {"seconds": slope([(n, took) for n, took, _ in points]), "extra_bytes": slope(known)}
    return {
        "name": name,
        "work": dict(CURVES[name].label),
        "points": [list(point) for point in points],
        "slopes": slopes,
    }


def show_slope(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def measure(name: str, sizes: Sequence[int], ask: AskPeak | None, console: Console) -> Record:
    points: list[tuple[int, float, int | None]] = []
    for n, took in climb(sizes, partial(once, name)):
        peak = ask(f"{name}/{n}") if ask else None
        points.append((n, took, peak.extra if peak else None))
        extra = f", {peak.extra / MB:.1f} MB" if peak else ""
        console.print(f"{name}, n = {n:>7,}: {took:.4g} s{extra}", highlight=False)
    found = record(name, points)
    powers = (show_slope(found["slopes"][what]) for what in ("seconds", "extra_bytes"))
    console.print("{}: time ~ n^{}, memory ~ n^{}".format(name, *powers), highlight=False)
    return found


def run(options: Namespace, console: Console) -> int:
    """Measure every curve; an interrupt ends it, and what is done is written as unfinished."""
    settings = Settings(options.quick, None, not options.no_memory)
    torch.set_num_threads(2)
    limits = machine.limits()
    records: list[Record] = []
    with ExitStack() as stack:
        measured = settings.memory and memory.supported()
        ask = stack.enter_context(peaks("benchmarks.growth", quick=options.quick)) if measured else None
        try:
            for name in CURVES:
                found = measure(name, QUICK_SIZES if options.quick else SIZES, ask, console)
                records.append(found)
        except KeyboardInterrupt:
            console.print(f"stopped after {len(records)} of {len(CURVES)} curves")
    folder = options.out or (None if options.quick else TABLE.parent)
    if folder:
        group = GROUP if measured and len(records) == len(CURVES) else f"{GROUP}_unfinished"
        if write(document(group, records, limits, settings), folder) == TABLE:
            draw_stored()
    return 0


def row(found: Record, language: str) -> tuple[str, ...]:
    n, took, extra = found["points"][-1]
    slopes = found["slopes"]
    shown = "-" if extra is None else f"{extra / MB:.1f} MB"
    times, bytes_ = show_slope(slopes["seconds"]), show_slope(slopes["extra_bytes"])
    return (found["work"][language], f"{n:,}", f"{took:.3g} s", times, shown, bytes_)


def section(stored: Record, language: str) -> str:
    """Return the part of docs/*/benchmarks.md: the picture, and slopes as a table."""
    picture = f"![{TITLES[language]}](../images/{PICTURES[language].name})"
    return picture + "\n\n" + markdown(HEADS[language], (row(found, language) for found in stored["lines"]))


def draw(stored: Record, language: str, path: Path) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"font.family": families_for([*AXES[language]]) or ["sans-serif"]}):
        figure = Figure(figsize=(9.6, 4.4), layout="constrained")
        axes = figure.subplots(1, 2)
        for found in stored["lines"]:
            n, took, extra = zip(*found["points"], strict=True)
            style = {"marker": "o", "markersize": 3, "linestyle": "--" if CURVES[found["name"]].ask else "-"}
            axes[0].loglog(n, took, label=found["work"][language], **style)
            if None not in extra:
                axes[1].loglog(n, [max(value, 1) / MB for value in extra], **style)
        for ax, label in zip(axes, AXES[language][1:], strict=True):
            ax.set(xlabel=AXES[language][0], ylabel=label)
            ax.set_xscale("log", base=2)
            ax.grid(alpha=0.3)
        axes[0].axhline(MAX_SECONDS, color="grey", linewidth=0.8, linestyle=":")
        figure.legend(loc="outside right upper", fontsize=8)
        figure.savefig(path, dpi=110)


def draw_stored() -> None:
    stored = json.loads(TABLE.read_text(encoding="utf-8"))
    for language, path in PICTURES.items():
        draw(stored, language, path)


if __name__ == "__main__":
    draw_stored()
