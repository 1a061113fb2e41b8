"""Predictions of the cost model for 8 to 1,024 devices, as a table and docs/images/distributed-scale.png.

    python -m benchmarks.distributed_scale

Beside them stands the model with the rates of this machine, and what benchmarks/results/distributed.json has measured.
"""

from __future__ import annotations

import json
from typing import Any

from matplotlib.axes import Axes

from benchmarks.distributed import DIM, HEADS, RESULTS
from benchmarks.memory import ROOT
from benchmarks.report import markdown
from regard import masks, plot
from regard.distributed import Estimate, Link, estimate
from regard.engine.costs import duration

PICTURE = ROOT / "docs" / "images" / "distributed-scale.png"
MODEL: dict[str, Any] = {"heads": 32, "dim": 128, "key_heads": 8, "flops": "h100"}
CASES = ((10**6, 8), (10**6, 64), (10**6, 256), (10**6, 1024), (10**7, 64), (10**7, 1024), (10**8, 256), (10**8, 1024))
MASKS = {"full": None, "causal": masks.causal(), "window 4,096": masks.window(4095, 0)}
LINKS = {"nvlink4": "#1f6f8b", "infiniband-ndr": "#d1793b", "ethernet-100g": "#888888"}
WORLDS = (8, 16, 32, 64, 128, 256, 512, 1024)


def predicted(n: int, world: int, mask: str, link: str) -> Estimate:
    return estimate(n, mask=MASKS[mask], world=world, link=link, **MODEL)


def table() -> str:
    """One layer's forward pass: seconds and share of ideal, for each mask, over InfiniBand."""
    rows = []
    for n, world in CASES:
        found = [predicted(n, world, mask, "infiniband-ndr") for mask in MASKS]
        rows.append((f"{n:,}", f"{world:,}", *(f"{duration(one.seconds)} ({one.efficiency:.0%})" for one in found)))
    return markdown(("tokens", "devices", *MASKS), rows)


def draw(ax: Axes, n: int) -> None:
    """Share of ideal against devices, for each link; causal solid, window dashed."""
    for link, colour in LINKS.items():
        for mask, style in (("causal", "-"), ("window 4,096", "--")):
            shares = [predicted(n, world, mask, link).efficiency for world in WORLDS]
            ax.plot(WORLDS, shares, style, color=colour, label=f"{link}, {mask}")
    ax.set_xscale("log", base=2)
    ax.set_xticks(WORLDS[::2], [f"{world:,}" for world in WORLDS[::2]])
    ax.set_ylim(0, 1.05)
    ax.set_xlabel("devices")
    ax.set_title(f"{n:,} tokens", loc="left", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)


def measured() -> str:
    """The model with this machine's rates beside what was measured; empty if nothing was."""
    if not RESULTS.exists():
        return ""
    fit = json.loads(RESULTS.read_text("utf-8"))["results"]["fit"]
    rows = []
    for world, seconds in fit["seconds"].items():
        busy = min(1.0, fit["cores"] / int(world))  # processes that share a core share its rate
        line = Link(fit["bandwidth"], fit["latency"])
        model = estimate(fit["n"], HEADS, DIM, None, int(world), line, fit["flops"] * busy, itemsize=4)
        rows.append((world, duration(seconds), duration(model.seconds)))
    return markdown(("processes", "measured", "model"), rows)


def main() -> None:
    figure = plot.Picture(figsize=(9.2, 3.4), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    for ax, n in zip(axes, (10**6, 10**7, 10**8), strict=True):
        draw(ax, n)
    axes[0].set_ylabel("share of ideal (predicted)")
    axes[0].legend(frameon=False, fontsize=7, loc="lower left")
    figure.savefig(PICTURE, dpi=110)
    print(table())
    print(measured())


if __name__ == "__main__":
    main()
