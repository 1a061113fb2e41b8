"""A long text, recorded and asked for the profiles of all heads: what it takes in time and memory."""

from __future__ import annotations

from functools import partial

from torch import Tensor

import regard as rg
from benchmarks import memory
from benchmarks.goals import words
from benchmarks.harness import Family, Line, Tensors
from benchmarks.record import SMALL, Model, forward, make
from benchmarks.recorded import FORWARD, SMOLLM2, profiles

peak = {"memory_mb": 0.0}  # of the last run: a run takes minutes, and one must do for the clock and for the memory


def recorded_and_profiled(x: Tensors) -> Tensor:
    memory.release()
    before = memory.status()["RssAnon"]
    memory.reset_peak()
    with rg.record(x.more["model"]) as x.more["recording"]:
        forward(x)
    table = profiles(x)
    after = memory.status()
    peak["memory_mb"] = (after["VmHWM"] - after["RssFile"] - before) / 1e6
    return table


def whole_run(model: Model, n: int) -> Line:
    """Forward pass, recording and profiles together."""
    work = words(
        f"record {model.size} heads and ask for their profiles, n = {n}", f"录制 {model.size} 个头并求其画像，n = {n}"
    )
    return Line(
        name=f"record_long/n{n}/whole",
        family=Family(work, FORWARD),
        sizes=model.sizes(n),
        make=partial(make, model=model),
        ours=recorded_and_profiled,
        peers={"forward": forward},
        work=model.work(n),
        rounds=1,
        chained=True,
        quality=lambda: peak,
    )


def lines(quick: bool) -> list[Line]:
    return [whole_run(SMALL, 512)] if quick else [whole_run(SMOLLM2, 8192)]
